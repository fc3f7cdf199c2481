package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestTokenFile: every verb that calls a server sends the token of --token-file.
func TestTokenFile(t *testing.T) {
	var sent atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Store(r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"error":{"code":"forbidden","message":"not you"}}`)
	}))
	defer server.Close()
	t.Setenv(tokenVariable, "of the environment")
	dir := t.TempDir()
	put := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token, hosts := put("token", "of the file\n"), put("hosts.yaml", "zabbix_export:\n  version: '7.0'\n")
	rules := put("rules.yaml", "media_types: []\n")
	for _, verb := range [][]string{
		{"alert", "apply", rules},
		{"alert", "list"},
		{"alert", "show"},
		{"import", hosts},
		{"import", "--plan", hosts},
		{"user", "list"},
		{"user", "disable", "eve"},
		{"token", "list"},
		{"audit", "list"},
		{"export", "--all"},
		{"get", "hosts"},
		{"get", "problems"},
		{"queue"},
		{"shadow", "status"},
		{"proxies", "list"},
		{"dashboard", "export"},
		{"discovery", "status"},
		{"store", "promote"},
		{"store", "digest"},
		{"store", "recompress"},
		{"store", "snapshot", filepath.Join(dir, "snapshot")},
	} {
		name := strings.Join(verb[:min(2, len(verb))], " ")
		sent.Store("nothing")
		var errs strings.Builder
		args := append(verb, "--http", server.URL, "--token-file", token)
		if code := Main(args, strings.NewReader(""), io.Discard, &errs); code == 0 || sent.Load() != "Bearer of the file" {
			t.Errorf("%s ends with %d and sent %q: %s", name, code, sent.Load(), errs.String())
		}
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"both":      {[]string{"user", "list", "--http", server.URL, "--token", "x", "--token-file", token}, "both given"},
		"no file":   {[]string{"user", "list", "--http", server.URL, "--token-file", filepath.Join(dir, "none")}, "--token-file"},
		"empty":     {[]string{"user", "list", "--http", server.URL, "--token-file", put("empty", "\n")}, "expected one line"},
		"two lines": {[]string{"user", "list", "--http", server.URL, "--token-file", put("two", "a\nb\n")}, "expected one line"},
		"a server":  {[]string{"server", "--token-file", token}, "http.token_file"},
	} {
		var errs strings.Builder
		if code := Main(c.args, strings.NewReader(""), io.Discard, &errs); code != 2 || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%s: %d %s", name, code, errs.String())
		}
	}
}
