package server

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect"
	"tidemark/collect/calc"
	"tidemark/collect/poller"
	"tidemark/collect/self"
	"tidemark/collect/trapper"
	"tidemark/confcache"
	"tidemark/expr"
	"tidemark/model"
)

// pollingOptions are what polling needs of the server.
type pollingOptions struct {
	sink    collect.Sink
	names   *namedItems
	values  calc.Values
	trends  expr.Trends
	version string
	started time.Time
	// kinds are further kinds of checks, besides those of the server itself.
	kinds []poller.Kind
	// quiet, if not nil, says which hosts are not to be asked now.
	quiet func(model.HostID) bool
	// tasks, if not nil, gives an item of one of the further kinds its address; false leaves the item out.
	tasks func(h *model.Host, item *model.Item) (poller.Task, bool)
	// proxied, if not nil, says what a host's proxy last said of an interface.
	proxied func(h *model.Host, index int) (trapper.ProxyInterface, bool)
	// askProxy, if not nil, has a proxy ask for an item at once.
	askProxy func(model.ProxyID, model.ItemID) error
	// proxyName, if not nil, names a proxy.
	proxyName func(model.ProxyID) string
	// ticks are those of the poller; nil for those of Go's runtime.
	ticks   func(interval time.Duration) poller.Ticks
	metrics *metrics.Set
	logger  *slog.Logger
}

// polling asks for the values of items that do not come by themselves.
type polling struct {
	o        pollingOptions
	poller   *poller.Poller
	formulas *calc.Checker
	support  *support

	mu sync.Mutex
	// latest is the newest snapshot that was applied.
	latest *confcache.Snapshot
}

func newPolling(o pollingOptions) *polling {
	p := &polling{o: o, support: &support{}}
	p.formulas = calc.New(calc.Options{Items: formulaItems{o.names, p.support}, Values: o.values, Trends: o.trends, Metrics: o.metrics})
	facts := &facts{cache: o.names.cache, support: p.support, proxied: o.proxied}
	internals := self.New(self.Options{Metrics: o.metrics, Server: facts, Processes: p.processes(), Version: o.version, Started: o.started})
	p.poller = poller.New(poller.Options{Sink: o.sink, Kinds: append(ownKinds(p.formulas, internals), o.kinds...), Ticks: o.ticks, Log: o.logger, Metrics: o.metrics})
	facts.poller = p.poller
	s := o.names.cache.Snapshot()
	p.latest = s
	for h := range s.Hosts() {
		p.applyHost(s, h.ID)
	}
	return p
}

// processes are the server's, and those of the further kinds.
func (p *polling) processes() []self.Process {
	list := processes()
	for i, k := range ownKinds(nil, nil) {
		if k.Name == "self-monitoring" {
			list = append(list, self.Process{Name: k.Name, Count: 1, Percent: func() float64 { return p.poller.Busy()[i].Percent }})
		}
	}
	for i, k := range p.o.kinds {
		index := i + len(ownKinds(nil, nil))
		list = append(list, self.Process{Name: k.Name, Count: max(1, k.MaxInFlight), Percent: func() float64 { return p.poller.Busy()[index].Percent }})
	}
	for name, of := range pollerNames {
		list = append(list, p.together(name, of))
	}
	return list
}

// pollerNames are Zabbix 6.0's names of pollers, and the kinds of checks that they do.
var pollerNames = map[string][]string{
	"poller":             {"agent", "snmp", "simple check", "http agent", "script", "ssh", "external check"},
	"unreachable poller": {"agent", "snmp", "jmx"},
	"http poller":        {"http agent", "web scenario"},
	"icmp pinger":        {"simple check"},
	"odbc poller":        {"database"},
	"java poller":        {"jmx"},
	"ipmi poller":        {"ipmi"},
}

// together is a process that does several kinds of checks: as busy as the busiest of them.
func (p *polling) together(name string, of []string) self.Process {
	process := self.Process{Name: name}
	var indexes []int
	for i, k := range p.o.kinds {
		if slices.Contains(of, k.Name) {
			indexes = append(indexes, i+len(ownKinds(nil, nil)))
			process.Count += max(1, k.MaxInFlight)
		}
	}
	process.Percent = func() float64 {
		busy, most := p.poller.Busy(), 0.0
		for _, i := range indexes {
			most = max(most, busy[i].Percent)
		}
		return most
	}
	return process
}

// apply brings a change of the configuration to the poller.
func (p *polling) apply(c *confcache.Changes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latest = c.Snapshot
	for _, id := range c.DeletedHosts {
		p.applyHost(c.Snapshot, id)
	}
	for _, id := range c.Hosts {
		p.applyHost(c.Snapshot, id)
	}
	p.formulas.Forget(c.DeletedItems)
	p.support.forget(c.DeletedItems)
}

// again looks at a host anew that began or ceased to be quiet.
func (p *polling) again(id model.HostID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.applyHost(p.latest, id)
}

// applyHost replaces what one host is asked for; a host that is gone or disabled is asked for nothing.
func (p *polling) applyHost(s *confcache.Snapshot, id model.HostID) {
	var tasks []poller.Task
	if h, ok := s.HostByID(id); ok && h.Enabled && (p.o.quiet == nil || !p.o.quiet(id)) {
		items := s.Items(id)
		for i := range items {
			if t, ok := p.task(h, &items[i]); ok {
				tasks = append(tasks, t)
			}
		}
	}
	if err := p.poller.Apply(id, tasks); err != nil {
		p.o.logger.Warn("items are not asked for", "host_id", uint64(id), "error", err)
	}
}

func (p *polling) task(h *model.Host, item *model.Item) (poller.Task, bool) {
	switch {
	case !item.Enabled || item.Remote || !p.poller.Takes(item.Type):
		return poller.Task{}, false
	case item.Type == model.Calculated || item.Type == model.Internal:
		return poller.Task{Item: item}, true
	case p.o.tasks == nil:
		return poller.Task{}, false
	}
	return p.o.tasks(h, item)
}

// Observe implements histsync.Observer.
func (p *polling) Observe(b *model.Batch) { p.support.Observe(b) }

// Run asks until ctx ends. What was asked for until then is handed over.
func (p *polling) Run(ctx context.Context) error { return p.poller.Run(ctx) }
