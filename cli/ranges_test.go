package cli

import (
	"bytes"
	"strings"
	"testing"
)

// TestFlags_numbers gives every flag that is a number something that is none, or one out of its bounds: a wrong call, with the bounds in its text.
func TestFlags_numbers(t *testing.T) {
	f := func(command, flag string, values ...string) {
		t.Helper()
		for _, value := range values {
			var out, errs bytes.Buffer
			args := append(strings.Fields(command), "--"+flag+"="+value)
			if code := Main(args, strings.NewReader(""), &out, &errs); code != 2 || !strings.Contains(errs.String(), "expected a number from ") || !strings.Contains(errs.String(), flag) {
				t.Errorf("%s: code %d, %s", strings.Join(args, " "), code, errs.String())
			}
		}
	}
	for _, share := range []string{"load:strings", "load:triggers", "store plan:varying"} {
		command, flag, _ := strings.Cut(share, ":")
		f(command, flag, "NaN", "Inf", "-Inf", "-0.1", "1.1", "x", "")
	}
	for _, seconds := range []string{"load", "mongo top", "store bench"} {
		f(seconds, "seconds", "NaN", "+Inf", "-1", "1e18")
	}
	f("load", "nvps", "NaN", "Inf", "-1")
	f("load", "connections", "-1", "NaN", "1e3")
	f("store migrate", "rate", "-1", "99999999999999999999")
	f("store migrate", "step", "-1")
	f("import zabbix history", "rate", "-5")
	f("migrate", "rate", "-5")
	f("mongo top", "ring", "-1", "99999999")
	f("mongo top", "shapes", "-1")
	f("alert list", "limit", "0", "-1")
	f("audit list", "limit", "0")
}
