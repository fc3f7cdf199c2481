package server

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"tidemark/collect/trapper"
	"tidemark/confdb"
	"tidemark/model"
	"tidemark/wire/proxyconfig"
)

const proxiedExport = `zabbix_export:
  version: '6.0'
  groups: [{name: G}]
  hosts:
    - host: far
      name: far
      groups: [{name: G}]
      proxy: {name: p1}
      items:
        - {name: a, type: TRAP, key: a, delay: '0'}
        - {name: c, type: CALCULATED, key: c, delay: 1m, params: 'last(//a)'}
        - {name: d, type: DEPENDENT, key: d, delay: '0', master_item: {key: a}}
        - {name: e, type: DEPENDENT, key: e, delay: '0', master_item: {key: c}}
    - {host: near, name: near, groups: [{name: G}], items: [{name: a, type: TRAP, key: a, delay: '0'}]}
`

// A proxy is given the items of its hosts that it can make itself; nodata waits for it.
func TestProxies_configurationAndAbsence(t *testing.T) {
	s := openForTest(t)
	ctx := t.Context()
	if _, err := s.db.Import(ctx, "x.yaml", []byte(proxiedExport), confdb.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.cache.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	id, ok := s.proxies.Proxy([]byte("p1"))
	if !ok {
		t.Fatal("the proxy of the import is not known")
	}
	body, err := s.proxies.Config(nil, id, "6.0.14", func(model.ItemID) (uint64, uint64) { return 0, 0 })
	if err != nil {
		t.Fatal(err)
	}
	var tables map[string]struct {
		Fields []string
		Data   [][]any
	}
	if err := json.Unmarshal(body, &tables); err != nil {
		t.Fatal(err)
	}
	at := slices.Index(tables["items"].Fields, "key_")
	var keys []string
	for _, row := range tables["items"].Data {
		keys = append(keys, row[at].(string))
	}
	if slices.Sort(keys); !slices.Equal(keys, []string{"a", "d"}) || len(tables["hosts"].Data) != 1 {
		t.Errorf("items %q of %d hosts, want a and d of one", keys, len(tables["hosts"].Data))
	}
	if _, err := s.proxies.Config(nil, id, "7.0.1", nil); err == nil {
		t.Error("a proxy of another version is given a configuration")
	}
	far, _ := s.cache.Snapshot().Host("far")
	near, _ := s.cache.Snapshot().Host("near")
	item, _ := s.cache.Snapshot().ItemByKey(far.ID, "a")
	other, _ := s.cache.Snapshot().ItemByKey(near.ID, "a")
	start := s.started.UnixNano()
	f := func(what string, now int64, wantSince int64, wantLag time.Duration) {
		t.Helper()
		if since, lag := s.absence(item.ID, now); since != wantSince || lag != wantLag {
			t.Errorf("%s: since %d, lag %s, want %d and %s", what, since, lag, wantSince, wantLag)
		}
	}
	f("never seen", start+5, 0, 5)
	back := start + int64(time.Hour)
	s.proxies.Began(id, trapper.ProxyContact{At: back, Data: true})
	f("back", back+1, back+1, 1)
	s.proxies.Stored(id, back+10, 1, true)
	f("with a backlog", back+20, back+20, 10)
	s.proxies.Stored(id, back+30, 1, false)
	f("drained", back+40, back+30, 10)
	if since, lag := s.absence(other.ID, back); since != 0 || lag != 0 {
		t.Errorf("an item of the server: since %d, lag %s", since, lag)
	}
}

// Values of proxies are refused from 80 % of the history cache on, taken from one after the other below 60 %, and from all at 20 %.
func TestProxies_takes(t *testing.T) {
	used, now := 0, time.Unix(1000, 0)
	p := &proxies{used: func() (int, int) { return used, 100 }}
	if !p.Takes(1, true) {
		t.Error("an empty cache takes nothing")
	}
	const sends, asks = true, false
	for n, step := range []struct {
		used   int
		proxy  model.ProxyID
		brings bool
		after  time.Duration
		want   bool
	}{
		{0, 1, sends, 0, true},
		{79, 1, sends, 0, true},
		{80, 1, sends, 0, false},
		{70, 2, sends, 0, false},
		{60, 1, asks, 0, false},
		{59, 2, sends, 0, false}, // the first that asked has its turn
		{59, 1, asks, 0, true},
		{59, 1, asks, 0, true}, // asking does not end it
		{59, 1, sends, 0, true},
		{59, 1, sends, 0, false}, // it is the other's turn now
		{59, 3, sends, 0, false},
		{59, 2, sends, 0, true},
		{59, 3, asks, 0, false}, // behind the first, which asked again before
		{59, 1, sends, 0, true},
		{59, 2, asks, turnTime, false},
		{59, 2, asks, turnTime + 1, true}, // the third does not come
		{80, 2, sends, 0, false},
		{21, 1, asks, 0, false},
		{20, 3, sends, 0, true},
		{50, 1, sends, 0, true}, // nobody waits any more
	} {
		used, now = step.used, now.Add(step.after)
		if got := p.turns.takes(step.proxy, used, step.brings, now); got != step.want {
			t.Errorf("step %d: %+v: takes %t", n, step, got)
		}
	}
}

// TestProxies_availability keeps what a proxy said of interfaces over a restart: it tells a change once.
func TestProxies_availability(t *testing.T) {
	s := openForTest(t)
	ctx := t.Context()
	const file = `zabbix_export:
  version: '6.0'
  groups: [{name: G}]
  hosts:
    - {host: far, name: far, groups: [{name: G}], proxy: {name: p1}, interfaces: [{ip: 127.0.0.1, port: '10050', interface_ref: if1}]}
    - {host: near, name: near, groups: [{name: G}], interfaces: [{ip: 127.0.0.1, port: '10050', interface_ref: if1}]}
`
	if _, err := s.db.Import(ctx, "x.yaml", []byte(file), confdb.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.cache.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.proxies.refresh(ctx); err != nil {
		t.Fatal(err)
	}
	id, ok := s.proxies.Proxy([]byte("p1"))
	if !ok {
		t.Fatal("the proxy of the import is not known")
	}
	far, _ := s.cache.Snapshot().Host("far")
	near, _ := s.cache.Snapshot().Host("near")
	say := func(available int, reason string) {
		t.Helper()
		var states []trapper.ProxyInterface
		for _, at := range []uint64{proxyconfig.InterfaceID(far.ID, 0), proxyconfig.InterfaceID(far.ID, 1), proxyconfig.InterfaceID(near.ID, 0), 0} {
			states = append(states, trapper.ProxyInterface{ID: at, Available: available, Error: reason})
		}
		if err := s.proxies.Available(ctx, id, states); err != nil {
			t.Fatal(err)
		}
	}
	want := func(p *proxies, available int, reason string) {
		t.Helper()
		got, ok := p.interfaceOf(far, 0)
		if !ok || got.Available != available || got.Error != reason {
			t.Errorf("the interface is %+v, %t; want %d, %q", got, ok, available, reason)
		}
		if _, ok := p.interfaceOf(near, 0); ok {
			t.Error("the proxy speaks of a host of the server")
		}
	}
	say(2, "refused\x00\xff")
	want(s.proxies, 2, "refused\x00\xff")
	after := &proxies{db: s.db, cache: s.cache}
	if err := after.refresh(ctx); err != nil {
		t.Fatal(err)
	}
	want(after, 2, "refused")
	say(1, "")
	after = &proxies{db: s.db, cache: s.cache}
	if err := after.refresh(ctx); err != nil {
		t.Fatal(err)
	}
	want(after, 1, "")
	facts := &facts{cache: s.cache, proxied: s.proxies.interfaceOf, poller: s.polling.poller}
	if agent, snmp := facts.Available(far.ID, "agent"), facts.Available(far.ID, "snmp"); agent != 1 || snmp != 0 {
		t.Errorf("zabbix[host,agent,available] is %d, for snmp %d; want 1, 0", agent, snmp)
	}
	if err := s.db.SetProxiedInterfaces(ctx, id, []confdb.ProxiedInterface{{Host: 999_999}}); err == nil {
		t.Error("an interface of a host that is gone is kept")
	}
}
