package reactor

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
		answers := map[string][]netip.Addr{"both": {two, one}, "one": {netip.MustParseAddr("::ffff:192.0.2.1")}, "local": {netip.MustParseAddr("fe80::1%eth0")}}
		var lookups atomic.Int32
		n := NewNames()
		n.lookup = func(_ context.Context, _, name string) ([]netip.Addr, error) {
			lookups.Add(1)
			time.Sleep(time.Second)
			if list, ok := answers[name]; ok {
				return append([]netip.Addr{}, list...), nil
			}
			return nil, errors.New("no such host")
		}
		f := func(name string, want netip.Addr, limit time.Duration, ok bool) {
			t.Helper()
			if at, d, found := n.Find(name); at != want || d != limit || found != ok {
				t.Errorf("%s: %v, %v, %v; want %v, %v, %v", name, at, d, found, want, limit, ok)
			}
		}
		none := netip.Addr{}
		for _, name := range []string{"both", "one", "local", "none"} {
			f(name, none, 0, false)
			f(name, none, 0, false)
		}
		time.Sleep(2 * time.Second)
		f("both", two, connectTimeout, true)
		f("one", one, 0, true)
		f("local", none, 0, false)
		f("none", none, 0, false)
		if n := lookups.Load(); n != 4 {
			t.Errorf("%d lookups, want 4", n)
		}
		// The other address is tried after a failure, and stays the first when the name is looked up again.
		n.Failed("both", two)
		n.Failed("both", two)
		n.Failed("one", two)
		n.Failed("unknown", two)
		f("both", one, connectTimeout, true)
		time.Sleep(2 * time.Second)
		f("both", one, connectTimeout, true)
		if n := lookups.Load(); n != 5 {
			t.Errorf("%d lookups after a failure, want 5", n)
		}
		// It is used while it is looked up again, for a minute.
		answers["one"] = []netip.Addr{two}
		time.Sleep(freshFor)
		f("one", one, 0, true)
		time.Sleep(2 * time.Second)
		f("one", two, 0, true)
		time.Sleep(believedFor)
		f("one", none, 0, false)
		time.Sleep(2 * time.Second)
		for i := range maxNames + 10 {
			n.Find(string(rune('a'+i%26)) + time.Duration(i).String())
			n.mu.Lock()
			names, looking := len(n.known), n.looking
			n.mu.Unlock()
			if names > maxNames || looking > maxLookups {
				t.Fatalf("%d names, %d lookups at once", names, looking)
			}
		}
		time.Sleep(2 * time.Second)
	})
}
