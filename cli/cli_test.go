package cli

import (
	"strings"
	"testing"
)

// TestMain_wrongCall ends each wrong call with code 2 and an error that names the command whose help says more.
func TestMain_wrongCall(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"get", "values", "--host", "db1"}, "unknown flag: --host; see 'tidemark get values --help'"},
		{[]string{"get", "graphs"}, `tidemark get has no command "graphs"; see 'tidemark get --help'`},
		{[]string{"get", "--limit", "5", "graphs"}, `tidemark get has no command "graphs"`},
		{[]string{"proxies", "show"}, `tidemark proxies has no command "show"`},
		{[]string{"host", "tls", "frob"}, `tidemark host tls has no command "frob"`},
		{[]string{"store", "inof"}, `tidemark store has no command "inof"; see 'tidemark store --help'`},
		{[]string{"queue", "now"}, `tidemark queue takes no arguments, got "now"`},
	} {
		if code, _, errs := runMain(t, test.args...); code != 2 || !strings.Contains(errs, test.want) {
			t.Errorf("%q: code %d, %q, expected %q", test.args, code, errs, test.want)
		}
	}
	if code, out, errs := runMain(t, "proxies"); code != 0 || errs != "" || !strings.Contains(out, "Available Commands") {
		t.Errorf("proxies: code %d, %q, %q", code, out, errs)
	}
}

// TestStoreDigest_empty does not call two servers equal of which nothing was compared.
func TestStoreDigest_empty(t *testing.T) {
	address, _ := serve(t, t.TempDir())
	code, out, errs := runMain(t, "store", "digest", "--http", address, "--with", address, "--to", "1970-01-02T00:00:00Z")
	if code != 0 || !strings.HasPrefix(out, "nothing was compared") {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
}
