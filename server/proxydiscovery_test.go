package server

import (
	"context"
	"fmt"
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
		if took := time.Since(start); took > 30*time.Second { // far more than a busy machine needs
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

// netStore keeps what network discovery found, in memory, and makes no hosts of it.
type netStore struct{ hosts map[string]model.NetHost }

func (n *netStore) NetHosts(context.Context, string) ([]model.NetHost, int64, error) {
	return nil, 0, nil
}

func (n *netStore) RecordNetHost(_ context.Context, h *model.NetHost) (int64, error) {
	n.hosts[h.Ident] = *h
	return 1, nil
}

func (n *netStore) EndNetScan(context.Context, string, int64, int64) error { return nil }

func (n *netStore) Found(_ context.Context, f *network.Found) (model.HostID, error) {
	for i := range f.Events {
		if d := f.Events[i].For; d < 0 || d > time.Hour {
			return 0, fmt.Errorf("%s is %s since %s", f.IP, f.Events[i].Status, d)
		}
	}
	return 0, nil
}

// A proxy whose clock says 1970, and one far in the future, find hosts as others do: they are up since now, by the server's clock, and what was found
// some minutes ago by the proxy's own clock was found so many minutes ago.
func TestProxies_findsOfWrongClocks(t *testing.T) {
	now := time.Now()
	store := &netStore{hosts: map[string]model.NetHost{}}
	scanner := network.New(network.Options{Store: store, Handler: store})
	rule := network.Rule{Name: "branch", Proxy: "p", Ranges: "10.0.0.0/24", Checks: []network.Check{{Type: "ssh"}}}
	if err := scanner.Apply([]network.Rule{rule}); err != nil {
		t.Fatal(err)
	}
	state := &proxyState{Proxy: model.Proxy{ID: 1, Name: "p"}, finds: &proxyFinds{}}
	p := &proxies{actions: &netDiscovery{config: &network.Config{Rules: []network.Rule{rule}}, scanner: scanner}, byID: map[model.ProxyID]*proxyState{1: state}}
	clocks := []time.Time{time.Unix(100_000, 0), now.Add(200 * 365 * 24 * time.Hour), now.Add(-time.Minute), now}
	for n, clock := range clocks {
		ip := fmt.Sprintf("10.0.0.%d", n+1)
		state.contact.AheadNanos = clock.UnixNano() - now.UnixNano()
		at := clock.Add(-3 * time.Minute).Unix()
		list := []zbx.ProxyFind{{Rule: ruleID("branch"), Check: ruleID("branch", "ssh"), IP: ip, Port: 22, At: at}, {Rule: ruleID("branch"), IP: ip, At: at}}
		if err := p.Discovered(t.Context(), 1, list); err != nil {
			t.Fatal(err)
		}
		found := time.Unix(store.hosts[ip].ChangedAt, 0)
		if ago := now.Sub(found).Round(time.Minute); !store.hosts[ip].Up || ago < 2*time.Minute || ago > 4*time.Minute {
			t.Errorf("clock %s: found %s ago, up %t", clock, ago, store.hosts[ip].Up)
		}
	}
	// Without a clock in the request nothing is known of how wrong the times are.
	state.contact.AheadNanos = 0
	for ip, at := range map[string]int64{"10.0.0.8": 100_000, "10.0.0.9": now.Add(time.Hour).Unix()} {
		list := []zbx.ProxyFind{{Rule: ruleID("branch"), Check: ruleID("branch", "ssh"), IP: ip, Port: 22, At: at}, {Rule: ruleID("branch"), IP: ip, At: at}}
		if err := p.Discovered(t.Context(), 1, list); err != nil {
			t.Fatal(err)
		}
	}
	if h, old := store.hosts["10.0.0.8"]; old {
		t.Errorf("found in 1970: %+v", h)
	}
	if h := store.hosts["10.0.0.9"]; h.ChangedAt == 0 || h.ChangedAt > time.Now().Unix() {
		t.Errorf("found in an hour from now: %+v", h)
	}
	for _, status := range scanner.Status() {
		if status.Error != "" {
			t.Error(status.Error)
		}
	}
}

// What names a host or an address comes from outside and reads no macros, secret ones least of all.
func TestNamesFromOutside(t *testing.T) {
	for text, want := range map[string]string{"db1.example.org": "db1.example.org", "my_host-2.": "my_host-2.", "{$SECRET}.evil.example": "", "a b": "", strings.Repeat("x", 256): ""} {
		if got := dnsName(text); got != want {
			t.Errorf("name of an address %q: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"10.0.0.1": "10.0.0.1", "fe80::1%eth0": "fe80::1%eth0", "fe80::1%{$SECRET}": "", "{$SECRET}": "", "evil.example": ""} {
		if got := ipAddress(text); got != want {
			t.Errorf("address %q: %q, want %q", text, got, want)
		}
	}
	if got := visibleName(" switch {$SECRET} "); got != "switch { $SECRET}" {
		t.Errorf("visible name: %q", got)
	}
}
