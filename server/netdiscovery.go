package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/confcache"
	"tidemark/confdb"
	"tidemark/discovery"
	"tidemark/discovery/network"
	"tidemark/model"
)

// netDiscovery keeps the rules of network discovery and the actions, and does what actions ask for.
type netDiscovery struct {
	db      *confdb.DB
	cache   *confcache.Cache
	agents  *agentAccess
	scanner *network.Scanner
	logger  *slog.Logger
	// proxyID finds a proxy by its name.
	proxyID func(name string) (model.ProxyID, bool)

	// changing is held by one change of the configuration at a time.
	changing sync.Mutex
	mu       sync.Mutex
	config   *network.Config
	actions  *discovery.Actions

	made, deleted, failed *metrics.Counter
}

// openNetDiscovery reads rules and actions.
func (s *Server) openNetDiscovery(ctx context.Context) error {
	n := &netDiscovery{
		db: s.db, cache: s.cache, agents: s.agents, logger: s.logger,
		made:    s.metrics.GetOrCreateCounter("tidemark_host_actions_made_hosts_total"),
		deleted: s.metrics.GetOrCreateCounter("tidemark_host_actions_deleted_hosts_total"),
		failed:  s.metrics.GetOrCreateCounter("tidemark_host_actions_failures_total"),
	}
	n.scanner = network.New(network.Options{Store: s.db, Handler: n, Metrics: s.metrics, Logger: s.logger})
	stored, err := s.db.DiscoveryObjects(ctx)
	if err != nil {
		return err
	}
	config, mistakes := network.FromObjects(stored)
	for _, err := range mistakes {
		s.logger.Error("a rule of network discovery or an action cannot be used", "error", err)
	}
	s.network = n
	return n.use(config)
}

// use brings a configuration that was checked into force.
func (n *netDiscovery) use(c *network.Config) error {
	actions, err := discovery.CompileActions(c.Actions)
	if err == nil {
		err = n.scanner.Apply(c.Rules)
	}
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.config, n.actions = c, actions
	n.mu.Unlock()
	return nil
}

func (n *netDiscovery) current() (*network.Config, *discovery.Actions) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.config, n.actions
}

// Apply puts rules and actions over those of the same name; with replace all others go.
func (n *netDiscovery) Apply(ctx context.Context, c *network.Config, replace bool) error {
	n.changing.Lock()
	defer n.changing.Unlock()
	old, _ := n.current()
	next, err := c.WithSecretsOf(old)
	if err != nil {
		return err
	}
	if !replace {
		next = old.With(next)
	}
	if err := next.Check(); err != nil {
		return err
	}
	for i := range next.Rules {
		if r := &next.Rules[i]; r.Proxy != "" {
			if _, known := n.proxyID(r.Proxy); !known {
				return fmt.Errorf("rule %s: no proxy has the name %s; make it known with 'tidemark proxies add'", r.Name, r.Proxy)
			}
		}
	}
	return n.store(ctx, old, next)
}

// Delete deletes rules or actions, all of them or, with an error, none; confdb.ErrNotFound when there is none of a name.
func (n *netDiscovery) Delete(ctx context.Context, kind string, names ...string) error {
	n.changing.Lock()
	defer n.changing.Unlock()
	old, _ := n.current()
	next := old
	for _, name := range names {
		var found bool
		if next, found = next.Without(kind, name); !found {
			return fmt.Errorf("%s %s: %w", kind, name, confdb.ErrNotFound)
		}
	}
	return n.store(ctx, old, next)
}

func (n *netDiscovery) store(ctx context.Context, old, next *network.Config) error {
	puts, err := next.Objects()
	if err != nil {
		return err
	}
	before, err := old.Objects()
	if err != nil {
		return err
	}
	kept := make(map[string]bool, len(puts))
	for _, o := range puts {
		kept[o.Kind+" "+o.Name] = true
	}
	var gone []model.AlertObject
	for _, o := range before {
		if !kept[o.Kind+" "+o.Name] {
			gone = append(gone, o)
		}
	}
	if err := n.db.PutDiscoveryObjects(ctx, puts, gone); err != nil {
		return err
	}
	return n.use(next)
}

// rulesOf names the rules that a proxy works off.
func (n *netDiscovery) rulesOf(proxy string) []string {
	config, _ := n.current()
	var list []string
	for i := range config.Rules {
		if config.Rules[i].Proxy == proxy {
			list = append(list, config.Rules[i].Name)
		}
	}
	return list
}

// Found implements network.Handler.
func (n *netDiscovery) Found(ctx context.Context, f *network.Found) (model.HostID, error) {
	_, actions := n.current()
	out := &discovery.Outcome{}
	f.DNS = dnsName(f.DNS)
	for i := range f.Interfaces {
		at := &f.Interfaces[i]
		at.DNS = dnsName(at.DNS)
	}
	host := f.Host.HostID
	if host == 0 {
		host = n.hostAt(f.IP, f.Proxy)
	}
	for i := range f.Events {
		e := &f.Events[i]
		e.DNS = f.DNS
		actions.Fit(e, out)
	}
	if out.Change == nil {
		return f.Host.HostID, errors.Join(out.Failed...)
	}
	c := out.Change
	c.HostID, c.Host, c.Name, c.Group = host, hostName(f.HostName), visibleName(f.VisibleName), confdb.DiscoveredGroup
	if c.Proxy = f.Proxy; c.Make {
		c.Interfaces = append(f.Interfaces, c.Interfaces...)
	}
	if host == 0 && !c.Make {
		return 0, errors.Join(out.Failed...) // what takes something away finds nothing
	}
	did, err := n.db.ChangeHost(ctx, c)
	if errors.Is(err, confdb.ErrNotFound) && c.Make {
		// Somebody deleted the host a moment ago.
		c.HostID = 0
		did, err = n.db.ChangeHost(ctx, c)
	}
	if err != nil {
		n.failed.Inc()
		return f.Host.HostID, errors.Join(append(out.Failed, err)...)
	}
	err = n.finish(ctx, did, out, "rule", f.Host.Rule, "address", f.IP)
	if did.Deleted {
		return 0, err
	}
	return did.HostID, err
}

// finish counts and logs what was done, and sets the pre-shared key of a host that was made.
func (n *netDiscovery) finish(ctx context.Context, did *model.HostChanged, out *discovery.Outcome, about ...any) error {
	errs := out.Failed
	switch {
	case did.Made && out.Change != nil:
		n.made.Inc()
		n.logger.Info("actions made a host", append(about, "host", did.Host, "actions", out.Names)...)
	case did.Deleted:
		n.deleted.Inc()
		n.logger.Info("actions deleted a host", append(about, "host", did.Host, "actions", out.Names)...)
	}
	if did.Made && out.TLS != nil {
		t := *out.TLS
		t.HostID = did.HostID
		if err := n.agents.set(ctx, t, 0); err != nil {
			errs = append(errs, err)
		}
	}
	for _, name := range did.Missing {
		errs = append(errs, fmt.Errorf("actions link template %s to %s, which does not exist; import it", name, did.Host))
	}
	if len(errs) > 0 {
		n.failed.Add(len(errs))
	}
	return errors.Join(errs...)
}

// hostAt finds a host with an interface at an address, in the network that a proxy sees, or the server itself; zero for none.
func (n *netDiscovery) hostAt(ip, proxy string) model.HostID {
	var id model.ProxyID
	if proxy != "" {
		var known bool
		if id, known = n.proxyID(proxy); !known {
			return 0
		}
	}
	for h := range n.cache.Snapshot().Hosts() {
		if h.Proxy != id {
			continue
		}
		for i := range h.Interfaces {
			if h.Interfaces[i].IP == ip {
				return h.ID
			}
		}
	}
	return 0
}

// hostName makes a technical name out of what a host is called: what cannot be in one becomes an underscore.
func hostName(text string) string {
	name := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("._- ", r) {
			return r
		}
		return '_'
	}, strings.TrimSpace(text))
	return strings.TrimSpace(name[:min(len(name), 120)])
}

// visibleName is what a host is shown as. It comes from outside: a user macro in it stays a text.
func visibleName(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "{$", "{ $")) }

// dnsName is the name of an address where it can be one, else empty: macros in the addresses of hosts are expanded, and who names an address must not
// read them.
func dnsName(text string) string {
	wrong := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("._-", r)
	}
	if len(text) > maxDNSBytes || strings.ContainsFunc(text, wrong) {
		return ""
	}
	return text
}

// ipAddress is an address where it is one, else empty.
func ipAddress(text string) string {
	if _, err := netip.ParseAddr(text); err != nil || strings.Contains(text, "{") {
		return ""
	}
	return text
}

// register registers an agent with what the actions ask for. peer is the address that it speaks from.
func (n *netDiscovery) register(ctx context.Context, x confdb.Registration, peer string) (model.HostID, bool, error) {
	e := discovery.HostEvent{Source: discovery.FromAgents, Host: x.Host, Metadata: x.Metadata, Proxy: x.Proxy, IP: peer}
	for n := range x.Interfaces {
		i := &x.Interfaces[n]
		// An agent may say of itself what it likes.
		if i.DNS, i.IP = dnsName(i.DNS), ipAddress(i.IP); i.DNS+i.IP == "" {
			i.IP = ipAddress(peer)
		}
		if e.DNS = i.DNS; i.IP != "" {
			e.IP = i.IP
		}
	}
	_, actions := n.current()
	out := &discovery.Outcome{}
	actions.Fit(&e, out)
	x.Change = out.Change
	did, err := n.db.Register(ctx, x)
	if err != nil {
		return 0, false, err
	}
	if err := n.finish(ctx, did, out); err != nil {
		n.logger.Warn("actions on an agent that registered itself", "host", x.Host, "error", err)
	}
	return did.HostID, did.Made, nil
}
