package guard

import (
	"net/netip"
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	parse := func(list ...string) []netip.Prefix {
		var out []netip.Prefix
		for _, text := range list {
			out = append(out, netip.MustParsePrefix(text))
		}
		return out
	}
	f := func(r *Rules, address, want string) {
		t.Helper()
		err := r.Control("tcp", address, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
	r := New(Options{Denied: parse("169.254.0.0/16", "fe80::/10"), OwnPorts: []uint16{8420}})
	f(r, "10.0.0.1:80", "")
	f(r, "127.0.0.1:80", "")
	f(r, "127.0.0.1:8420", "port 8420 there is this server's")
	f(r, "127.9.9.9:8420", "this server's")
	f(r, "[::1]:8420", "this server's")
	f(r, "0.0.0.0:8420", "this server's")
	f(r, "[::ffff:127.0.0.1]:8420", "this server's")
	f(r, "10.0.0.1:8420", "")
	f(r, "169.254.169.254:80", "checks must not reach 169.254.169.254: 169.254.0.0/16 is in collect.denied_networks")
	f(r, "[::ffff:169.254.169.254]:80", "collect.denied_networks")
	f(r, "[fe80::1%eth0]:80", "collect.denied_networks")
	f(r, "name:80", "name:80")
	r = New(Options{Denied: parse("10.0.0.9/32"), Allowed: parse("10.0.0.0/8")})
	f(r, "10.0.0.1:80", "")
	f(r, "10.0.0.9:80", "denied")
	f(r, "11.0.0.1:80", "not in collect.allowed_networks")
	f(nil, "169.254.169.254:80", "")
}
