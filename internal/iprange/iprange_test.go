package iprange

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func texts(l List, most int) []string {
	var out []string
	for a := range l.All() {
		if out = append(out, a.String()); len(out) == most {
			break
		}
	}
	return out
}

func TestParse(t *testing.T) {
	f := func(text string, count int, want ...string) {
		t.Helper()
		l, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Count(); got != count {
			t.Errorf("%s has %d addresses, want %d", text, got, count)
		}
		if got := texts(l, len(want)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	f("10.0.0.5", 1, "10.0.0.5")
	f("10.0.0.1-3, 10.0.1.9", 4, "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.1.9")
	f("192.168.1-2.254-255", 4, "192.168.1.254", "192.168.1.255", "192.168.2.254", "192.168.2.255")
	f("10.0.0.0/29", 6, "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6")
	f("10.0.0.8/31", 2, "10.0.0.8", "10.0.0.9")
	f("10.1.2.3/16", 65534, "10.1.0.1")
	f("2001:db8::fe-100", 3, "2001:db8::fe", "2001:db8::ff", "2001:db8::100")
	f("fd00::/126", 4, "fd00::", "fd00::1", "fd00::2", "fd00::3")
	f("::1", 1, "::1")
	f("1::", 1, "1::")
	f("0-255.0-255.0-255.0-255", 1<<32, "0.0.0.0")
}

func TestParse_mistakes(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if l, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v %v, want %s", text, l, err, want)
		}
	}
	f("", "there is no range")
	f(" , ", "there is no range")
	f("10.0.0", "expected an address")
	f("10.0.0.256", "expected a number up to 255")
	f("10.0.0.9-1", "expected a number")
	f("10.0.0.0/7", "too large")
	f("fd00::/64", "too large")
	f("10.0.0.0/x", "expected a network")
	f("host", "expected an address")
	f("1::2::3", "expected")
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"10.0.0.1-3", "10.0.0.0/29", "fd00::1-f", "1.2.3.4,::", "0-255.0-255.0.0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse(text)
		if err != nil {
			return
		}
		n, count := 0, l.Count()
		for a := range l.All() {
			if !l.Contains(a) {
				t.Fatalf("%s of %q is not in it", a, text)
			}
			if n++; n > 2000 {
				break
			}
		}
		if n <= 2000 && n != count {
			t.Errorf("%q: %d addresses, counted %d", text, n, count)
		}
		_ = l.Contains(netip.Addr{})
	})
}
