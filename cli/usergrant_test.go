package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUserGrant: a grant on a host group that is not there is in force, and said; one that groups are below is as good as there.
func TestUserGrant(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "PUT /api/user_groups/Web people":
			_, _ = io.WriteString(w, `{}`)
		case "GET /api/configuration":
			_, _ = io.WriteString(w, `{"hosts":[],"host_groups":["Examples","Linux/Web"]}`)
		default:
			t.Errorf("asked for %s %s", r.Method, r.URL.Path)
		}
	}))
	defer server.Close()
	var out, errs strings.Builder
	args := []string{"user", "grant", "Web people", "Examples=viewer", "Linux=operator", "Linux/Db=editor", "Lin=viewer", "--http", server.URL}
	if code := Main(args, strings.NewReader(""), &out, &errs); code != 0 || out.String() != "user group Web people is in force\n" {
		t.Errorf("ends with %d: %s%s", code, out.String(), errs.String())
	}
	want := ""
	for _, name := range []string{"Linux/Db", "Lin"} {
		want += "there is no host group " + name + " yet: what is granted on it holds once there is one\n"
	}
	if errs.String() != want {
		t.Errorf("says %q, expected %q", errs.String(), want)
	}
}
