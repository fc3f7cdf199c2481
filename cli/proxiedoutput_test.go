package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What proxies do shows on a terminal: who works a rule of discovery off, and that a long output of a command is cut.
func TestProxiedOutput(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `{"rules":[{"rule":"Branch","proxy":"dmz","running":false,"addresses":4,"last_at":1790000000}]}`
		if r.URL.Path == "/api/commands" {
			answer = `{"output":"` + strings.Repeat("x", keptOutputBytes+4) + `"}`
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	for _, c := range []struct {
		args           []string
		stdout, stderr string
	}{
		{[]string{"discovery", "status"}, "by dmz", ""},
		{[]string{"host", "run", "db1", "cat large"}, "xxx", "the output is cut at 512 KiB"},
	} {
		var out, said strings.Builder
		args := append(c.args, "--http", server.URL)
		if code := Main(args, strings.NewReader(""), &out, &said); code != 0 || !strings.Contains(out.String(), c.stdout) || !strings.Contains(said.String(), c.stderr) {
			t.Errorf("%s: %d, %.300q, %q", c.args, code, out.String(), said.String())
		}
	}
}
