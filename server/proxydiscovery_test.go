package server

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/discovery/network"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// TestProxies_findsThatDoNotEnd has a proxy report many answers and never the end of an address, and looks that what is kept of them, and the
// time that it takes, are bounded.
func TestProxies_findsThatDoNotEnd(t *testing.T) {
	rule := network.Rule{Name: "branch", Proxy: "p", Ranges: "10.0.0.0/16", Checks: []network.Check{{Type: "tcp", Ports: "1-1024"}}}
	finds := &proxyFinds{}
	p := &proxies{
		actions: &netDiscovery{config: &network.Config{Rules: []network.Rule{rule}}},
		byID:    map[model.ProxyID]*proxyState{1: {Proxy: model.Proxy{ID: 1, Name: "p"}, finds: finds}},
	}
	id, check := ruleID("branch"), ruleID("branch", "tcp")
	send := func(rows int, row func(n int) zbx.ProxyFind) {
		t.Helper()
		list := make([]zbx.ProxyFind, rows)
		for n := range list {
			list[n] = row(n)
			list[n].Rule = id
		}
		start := time.Now()
		if err := p.Discovered(t.Context(), 1, list); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("%d rows took %s", rows, took)
		}
	}
	held := func() (bytes int) {
		for key, look := range finds.open {
			if key.address.Zone() != "" {
				t.Errorf("address %s is kept", key.address)
			}
			bytes += len(look.DNS)
			for _, a := range look.Answers {
				bytes += len(a.Check) + len(a.Value)
			}
		}
		return bytes
	}
	// One address with each port, by a check that there is and by some that there are not.
	send(100_000, func(n int) zbx.ProxyFind {
		return zbx.ProxyFind{Check: check + uint64(n>>16), IP: "10.0.0.1", Port: n & 0xffff, At: 1}
	})
	long := strings.Repeat("x", 1<<20)
	for range 3 {
		send(20_000, func(n int) zbx.ProxyFind {
			return zbx.ProxyFind{Check: check, IP: "10.0." + strconv.Itoa(n>>8&0xff) + "." + strconv.Itoa(n&0xff), Port: n >> 16, DNS: long, Value: long, At: 1}
		})
	}
	send(100, func(n int) zbx.ProxyFind {
		return zbx.ProxyFind{Check: check, IP: "fe80::1%" + strconv.Itoa(n), At: 1}
	})
	if got := held(); got > maxOpenBytes || finds.bytes > maxOpenBytes || len(finds.open) > maxOpenFinds {
		t.Errorf("%d bytes of %d addresses are kept, %d by count; at most %d", got, len(finds.open), finds.bytes, maxOpenBytes)
	}
	for key := range finds.open {
		finds.forget(key)
	}
	if finds.bytes != 0 {
		t.Errorf("%d bytes are counted of nothing", finds.bytes)
	}
}
