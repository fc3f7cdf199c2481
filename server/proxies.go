package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect/keyring"
	"tidemark/collect/trapper"
	"tidemark/confcache"
	"tidemark/confdb"
	"tidemark/model"
	"tidemark/wire/proxyconfig"
)

const (
	// proxyAway is for how long a proxy must be silent for what it brings then to count as the end of an outage: longer than the minute
	// between heartbeats.
	proxyAway = 75 * time.Second
	// proxyQuiet is for how long nodata() says nothing after a proxy is back or has said that it has more; a proxy without values says so
	// by heartbeats only.
	proxyQuiet = time.Minute
)

// proxies knows the proxies: who they are, what they are to do, and how they are doing. It implements trapper.Proxies.
type proxies struct {
	db      *confdb.DB
	cache   *confcache.Cache
	keys    *keyring.Keyring
	used    func() (usedBytes, limitBytes int)
	actions *netDiscovery
	newer   bool // takes agents in that register themselves
	logger  *slog.Logger
	start   int64

	turns  proxyTurns
	tasks  *proxyTasks
	values *metrics.Counter

	// refreshing is held from reading the proxies until they are known here, so that an older list is not put over a newer one.
	refreshing sync.Mutex

	mu     sync.Mutex
	byName map[string]*proxyState
	byID   map[model.ProxyID]*proxyState
}

// proxyState is how one proxy is doing; guarded by proxies.mu. Times are Unix nanoseconds, zero for never.
type proxyState struct {
	model.Proxy
	contact trapper.ProxyContact
	// seenAt is when it was heard of last, storedAt when values of it were stored.
	seenAt, storedAt, configuredAt int64
	values                         uint64
	backlog                        bool
	// quietUntil ends the time in which missing values say nothing.
	quietUntil int64
	interfaces map[uint64]trapper.ProxyInterface
	twice      proxyTwice
	finds      *proxyFinds
	// failure is why a passive proxy does not answer, since failingSince; empty when it does.
	failure      string
	failingSince int64
}

func (p *proxies) refresh(ctx context.Context) error {
	p.refreshing.Lock()
	defer p.refreshing.Unlock()
	list, err := p.db.Proxies(ctx)
	if err != nil {
		return fmt.Errorf("read the proxies: %w", err)
	}
	said, err := p.saidBefore(ctx, list)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.byID
	p.byName, p.byID = make(map[string]*proxyState, len(list)), make(map[model.ProxyID]*proxyState, len(list))
	for _, known := range list {
		state := old[known.ID]
		if state == nil {
			state = &proxyState{interfaces: said[known.ID], finds: &proxyFinds{}}
		}
		state.Proxy = known
		p.byName[known.Name], p.byID[known.ID] = state, state
	}
	return nil
}

// saidBefore reads what proxies that are not known yet said of interfaces before the last stop.
func (p *proxies) saidBefore(ctx context.Context, list []model.Proxy) (map[model.ProxyID]map[uint64]trapper.ProxyInterface, error) {
	said := map[model.ProxyID]map[uint64]trapper.ProxyInterface{}
	for _, known := range list {
		p.mu.Lock()
		_, ok := p.byID[known.ID]
		p.mu.Unlock()
		if ok {
			continue
		}
		states, err := p.db.ProxiedInterfaces(ctx, known.ID)
		if err != nil {
			return nil, err
		}
		of := make(map[uint64]trapper.ProxyInterface, len(states))
		for _, s := range states {
			id := proxyconfig.InterfaceID(s.Host, s.Number)
			of[id] = trapper.ProxyInterface{ID: id, Available: s.Available, Error: s.Error}
		}
		said[known.ID] = of
	}
	return said, nil
}

// measure registers the metrics.
func (p *proxies) measure(set *metrics.Set) {
	p.values = set.NewCounter("tidemark_proxies_values_total")
	set.NewGauge("tidemark_proxies", func() float64 { p.mu.Lock(); defer p.mu.Unlock(); return float64(len(p.byID)) })
	set.NewGauge("tidemark_proxies_silent", func() float64 {
		now, n := time.Now().UnixNano(), 0
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, s := range p.byID {
			if now-s.seenAt > 2*int64(proxyQuiet) {
				n++
			}
		}
		return float64(n)
	})
	set.NewGauge("tidemark_proxies_twice", func() float64 {
		now, n := time.Now().UnixNano(), 0
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, s := range p.byID {
			if s.twice.is(now) {
				n++
			}
		}
		return float64(n)
	})
	set.NewGauge("tidemark_proxies_waiting", func() float64 {
		if stopped, _ := p.turns.state(); stopped {
			return 1
		}
		return 0
	})
	set.NewGauge("tidemark_proxies_queued", func() float64 { _, waiting := p.turns.state(); return float64(waiting) })
}

// Proxy implements trapper.Proxies.
func (p *proxies) Proxy(name []byte) (model.ProxyID, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.byName[string(name)]
	if s == nil {
		return 0, false
	}
	return s.ID, true
}

// Passive implements trapper.Proxies.
func (p *proxies) Passive(id model.ProxyID) bool { return p.address(id) != "" }

// address is where a proxy is asked; empty for one that connects by itself or is gone.
func (p *proxies) address(id model.ProxyID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.byID[id]; s != nil {
		return s.Address
	}
	return ""
}

// said is the version and the session that a proxy said last.
func (p *proxies) said(id model.ProxyID) (version, session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.byID[id]; s != nil {
		return s.contact.Version, s.contact.Session
	}
	return "", ""
}

// answered notes whether a passive proxy answered, and logs it when that is another than before.
func (p *proxies) answered(id model.ProxyID, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.byID[id]
	switch {
	case s == nil:
	case err == nil:
		if s.failure != "" {
			p.logger.Info("a proxy answers again", "proxy", s.Name, "address", s.Address)
		}
		s.failure, s.failingSince = "", 0
	case s.failure != err.Error():
		p.logger.Warn("a proxy does not do what it is asked for; it is asked again", "proxy", s.Name, "address", s.Address, "error", err)
		s.failure = err.Error()
		if s.failingSince == 0 {
			s.failingSince = time.Now().UnixNano()
		}
	}
}

// name returns the name of a proxy, its id if it is not known any more.
func (p *proxies) name(id model.ProxyID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.byID[id]; s != nil {
		return s.Name
	}
	return strconv.FormatUint(uint64(id), 10)
}

// Takes implements trapper.Proxies.
func (p *proxies) Takes(id model.ProxyID, brings bool) bool {
	used, limit := p.used()
	return p.turns.takes(id, 100*used/max(1, limit), brings, time.Now())
}

// Began implements trapper.Proxies.
func (p *proxies) Began(id model.ProxyID, c trapper.ProxyContact) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.byID[id]
	if s == nil {
		return
	}
	if c.At-s.seenAt > int64(proxyAway) {
		s.quietUntil = c.At + int64(proxyQuiet)
		p.logger.Info("a proxy is here", "proxy", s.Name, "address", c.Peer, "version", c.Version)
	}
	if c.AheadNanos == 0 {
		c.AheadNanos = s.contact.AheadNanos
	}
	s.contact, s.seenAt = c, max(s.seenAt, c.At)
	if s.twice.heard(&c) {
		p.logger.Warn("two proxies send under one name: values of each are taken, each of them asks all hosts, and either may miss changes; stop one or give it another name",
			"proxy", s.Name, "address", s.twice.peer, "other_address", s.twice.beforePeer)
	}
}

// Stored implements trapper.Proxies.
func (p *proxies) Stored(id model.ProxyID, at int64, values int, backlog bool) {
	p.values.Add(values)
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.byID[id]
	if s == nil {
		return
	}
	s.seenAt, s.backlog = max(s.seenAt, at), backlog
	s.values += uint64(values)
	if values > 0 {
		s.storedAt = at
	}
	switch {
	case backlog:
		s.quietUntil = at + int64(proxyQuiet)
	case s.quietUntil > at:
		s.quietUntil = at
	}
}

// Available implements trapper.Proxies.
func (p *proxies) Available(ctx context.Context, id model.ProxyID, states []trapper.ProxyInterface) error {
	snapshot := p.cache.Snapshot()
	var changed []confdb.ProxiedInterface
	p.mu.Lock()
	s := p.byID[id]
	for _, state := range states {
		host, n := proxyconfig.OfInterfaceID(state.ID)
		h, ok := snapshot.HostByID(host)
		if s == nil || !ok || h.Proxy != id || n >= len(h.Interfaces) || state.Available < 0 || state.Available > 2 {
			continue
		}
		reason := state.Error[:min(len(state.Error), 2048)]
		if before, ok := s.interfaces[state.ID]; !ok || before.Available != state.Available || before.Error != reason {
			changed = append(changed, confdb.ProxiedInterface{Host: host, Number: n, Available: state.Available, Error: reason})
		}
	}
	p.mu.Unlock()
	if len(changed) == 0 {
		return nil
	}
	if err := p.db.SetProxiedInterfaces(ctx, id, changed); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range changed {
		at := proxyconfig.InterfaceID(c.Host, c.Number)
		s.interfaces[at] = trapper.ProxyInterface{ID: at, Available: c.Available, Error: c.Error}
	}
	return nil
}

// interfaceOf returns what the proxy of a host said of an interface.
func (p *proxies) interfaceOf(h *model.Host, index int) (trapper.ProxyInterface, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.byID[h.Proxy]
	if s == nil {
		return trapper.ProxyInterface{}, false
	}
	state, ok := s.interfaces[proxyconfig.InterfaceID(h.ID, index)]
	return state, ok
}

// Register implements trapper.Proxies.
func (p *proxies) Register(ctx context.Context, id model.ProxyID, hello trapper.AgentHello) error {
	p.mu.Lock()
	s := p.byID[id]
	p.mu.Unlock()
	if s == nil || !p.newer {
		return nil
	}
	if h, ok := p.cache.Snapshot().Host(hello.Host); ok && h.Metadata == hello.Metadata {
		return nil
	}
	_, made, err := p.actions.register(ctx, confdb.Registration{
		Proxy: s.Name, Host: hello.Host, Metadata: hello.Metadata, Interfaces: []confdb.Interface{{IP: hello.IP, DNS: hello.Interface, Port: hello.Port}},
	}, hello.IP)
	if err != nil {
		return err
	}
	if made {
		p.logger.Info("a new agent behind a proxy registered itself", "host", hello.Host, "proxy", s.Name, "address", hello.IP, "metadata", hello.Metadata)
	}
	_, err = p.cache.Refresh(ctx)
	return err
}

// Config implements trapper.Proxies.
func (p *proxies) Config(dst []byte, id model.ProxyID, version string, positions func(model.ItemID) (size, mtime uint64)) ([]byte, error) {
	dst, err := p.encode(dst, id, version, positions)
	if err == nil {
		p.configured(id)
	}
	return dst, err
}

// configured notes that a proxy was given its configuration.
func (p *proxies) configured(id model.ProxyID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.byID[id]; s != nil {
		s.configuredAt = time.Now().UnixNano()
	}
}

// encode appends the configuration for a proxy that says this version.
func (p *proxies) encode(dst []byte, id model.ProxyID, version string, positions func(model.ItemID) (size, mtime uint64)) ([]byte, error) {
	if line := versionLine(version); line != proxyconfig.Version {
		return dst, fmt.Errorf("the versions do not match: the proxy is of version %q, and configurations are given in the form of %s; values are taken all the same", line, proxyconfig.Version)
	}
	return proxyconfig.Encode(dst, p.configuration(id), positions)
}

// configuration is what a proxy is to do.
func (p *proxies) configuration(id model.ProxyID) *proxyconfig.Configuration {
	c := &proxyconfig.Configuration{}
	c.Newcomers, _ = p.keys.HostTLS(0)
	c.Discovery = p.actions.proxyRules(p.name(id))
	snapshot := p.cache.Snapshot()
	regexps := snapshot.Regexps()
	for _, name := range slices.Sorted(maps.Keys(regexps)) {
		c.Regexps = append(c.Regexps, regexps[name])
	}
	for h := range snapshot.Hosts() {
		if h.Proxy != id || !h.Enabled {
			continue
		}
		host := proxyconfig.Host{Host: h}
		host.TLS, _ = p.keys.HostTLS(h.ID)
		items := snapshot.Items(h.ID)
		enabled := make(map[model.ItemID]bool, len(items))
		for i := range items {
			enabled[items[i].ID] = items[i].Enabled && items[i].Remote
		}
		for i := range items {
			if item := &items[i]; enabled[item.ID] && (item.MasterID == 0 || enabled[item.MasterID]) {
				host.Items = append(host.Items, item)
			}
		}
		c.Hosts = append(c.Hosts, host)
	}
	return c
}

// versionLine cuts a version to its first two numbers.
func versionLine(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// absence says how the values of a host that a proxy asks may be late: since when the proxy has nothing older left, and by how much it
// was not heard of. Both are zero for hosts that the server asks.
func (p *proxies) absence(id model.ProxyID, now int64) (since int64, lag time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.byID[id]
	if s == nil {
		return 0, 0
	}
	seen := cmp.Or(s.seenAt, p.start)
	return min(now, s.quietUntil), time.Duration(max(0, now-seen))
}

// list returns copies of the states, by name.
func (p *proxies) list() []proxyState {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]proxyState, 0, len(p.byID))
	for _, s := range p.byID {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b proxyState) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
