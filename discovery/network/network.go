// Package network looks for hosts in ranges of addresses: rules say where and by which checks, what answers is remembered, and what
// changes becomes events, for which actions say what is done.
//
// How checks are made is not known here: a Prober makes them. Source of the meaning: the public Zabbix manual, "Network discovery".
package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/discovery"
	"tidemark/model"
)

// Probe is one question to an address.
type Probe struct {
	Address netip.Addr
	Check   *Check
	Port    int
	Timeout time.Duration
}

// Prober makes checks.
type Prober interface {
	// Probe returns what a check brought and whether there was an answer. The error is one of the check, not of the address.
	Probe(ctx context.Context, p Probe) (value string, up bool, err error)
	// Name returns the name of an address; empty for none.
	Name(ctx context.Context, a netip.Addr) string
}

// Store keeps what was found.
type Store interface {
	NetHosts(ctx context.Context, rule string) (list []model.NetHost, scannedAt int64, err error)
	RecordNetHost(ctx context.Context, h *model.NetHost) (id int64, err error)
	EndNetScan(ctx context.Context, rule string, at, before int64) error
}

// Found is a host with what a look at one of its addresses made of it.
type Found struct {
	Host *model.NetHost
	IP   string
	// HostName and VisibleName are the names of a host that is made of it.
	HostName, VisibleName string
	// DNS is the name of the address; only looked for when the rule names hosts by it.
	DNS    string
	Events []discovery.HostEvent
	// Proxy is the name of the proxy that looked; empty for the server itself.
	Proxy string
	// Interfaces are those by which the host answered, of this address.
	Interfaces []model.Interface
}

// Handler does what is to be done with what was found, and returns the host that it became; zero for none.
type Handler interface {
	Found(ctx context.Context, f *Found) (model.HostID, error)
}

// Reporter takes what a proxy finds. It waits while there is no room.
type Reporter interface {
	Report(ctx context.Context, l *Look) error
}

// Options are the settings of a Scanner: that of a server has Store and Handler, that of a proxy a Reporter.
type Options struct {
	Prober   Prober
	Store    Store
	Handler  Handler
	Reporter Reporter
	Metrics  *metrics.Set
	Logger   *slog.Logger
}

// maxUnderWay bounds the addresses that are asked at the same time, over all rules.
const maxUnderWay = 512

// Scanner works rules off.
type Scanner struct {
	o    Options
	room chan struct{}

	mu    sync.Mutex
	rules map[string]*running
	// changed is told of new rules.
	changed chan struct{}

	probes, answers, scans, failed, events, strange, old *metrics.Counter
}

// Use sets what makes the checks; it is called before Run when New was told none.
func (s *Scanner) Use(p Prober) { s.o.Prober = p }

// running is a rule and the state of its work.
type running struct {
	rule *compiled
	// stop ends its goroutine; now has it look at once.
	stop context.CancelFunc
	now  chan struct{}

	mu    sync.Mutex
	state Status

	// taking guards the memory of a rule whose proxy looks; it is nil until something came.
	taking sync.Mutex
	memory *memory
}

// Status is how the work on a rule goes.
type Status struct {
	Rule     string `json:"rule"`
	Disabled bool   `json:"disabled,omitempty"`
	// Proxy is the proxy that looks; empty for the server. Done stays zero then, and LastAt is when it brought something.
	Proxy string `json:"proxy,omitempty"`
	// Running is set during a look; Done of Addresses were asked.
	Running   bool `json:"running"`
	Addresses int  `json:"addresses"`
	Done      int  `json:"done"`
	// Hosts are those that are remembered, Up those that answered.
	Hosts int `json:"hosts"`
	Up    int `json:"up"`
	// LastAt is when the last look ended, Unix seconds, and LastSeconds how long it took; zero for none since the start.
	LastAt      int64   `json:"last_at,omitempty"`
	LastSeconds float64 `json:"last_seconds,omitempty"`
	// Error is the last thing that went wrong.
	Error string `json:"error,omitempty"`
}

// New returns a scanner without rules.
func New(o Options) *Scanner {
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Scanner{
		o: o, room: make(chan struct{}, maxUnderWay), rules: make(map[string]*running), changed: make(chan struct{}, 1),
		probes:  o.Metrics.GetOrCreateCounter("tidemark_network_discovery_probes_total"),
		answers: o.Metrics.GetOrCreateCounter("tidemark_network_discovery_answered_probes_total"),
		scans:   o.Metrics.GetOrCreateCounter("tidemark_network_discovery_scans_total"),
		failed:  o.Metrics.GetOrCreateCounter("tidemark_network_discovery_failures_total"),
		events:  o.Metrics.GetOrCreateCounter("tidemark_network_discovery_events_total"),
		strange: o.Metrics.GetOrCreateCounter("tidemark_network_discovery_strange_answers_total"),
		old:     o.Metrics.GetOrCreateCounter("tidemark_network_discovery_old_answers_total"),
	}
	o.Metrics.GetOrCreateGauge("tidemark_network_discovery_addresses_under_way", func() float64 { return float64(len(s.room)) })
	o.Metrics.GetOrCreateGauge("tidemark_network_discovery_addresses_under_way_limit", func() float64 { return maxUnderWay })
	return s
}

// Apply replaces the rules. Those that did not change go on.
func (s *Scanner) Apply(rules []Rule) error {
	list, err := compileRules(rules)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[string]*running, len(list))
	for _, c := range list {
		if old := s.rules[c.Name]; old != nil && same(&old.rule.Rule, &c.Rule) {
			next[c.Name] = old
			continue
		}
		next[c.Name] = &running{rule: c, now: make(chan struct{}, 1), state: Status{Rule: c.Name, Disabled: c.Disabled, Proxy: c.Proxy, Addresses: c.ranges.Count()}}
	}
	for name, old := range s.rules {
		if next[name] != old && old.stop != nil {
			old.stop()
		}
	}
	s.rules = next
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return nil
}

// same reports whether two rules are.
func same(a, b *Rule) bool { return fmt.Sprint(plain(a)) == fmt.Sprint(plain(b)) }

func plain(r *Rule) []any {
	c := *r
	c.Checks = nil
	out := []any{c}
	for i := range r.Checks {
		k := r.Checks[i]
		k.SNMP = nil
		out = append(out, k, r.Checks[i].SNMP != nil)
		if r.Checks[i].SNMP != nil {
			out = append(out, *r.Checks[i].SNMP)
		}
	}
	return out
}

// Run works the rules off until ctx ends.
func (s *Scanner) Run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	for {
		s.mu.Lock()
		for _, r := range s.rules {
			if r.stop != nil || r.rule.Disabled {
				continue
			}
			var one context.Context
			one, r.stop = context.WithCancel(ctx)
			switch {
			case s.o.Reporter != nil:
				work.Go(func() { s.report(one, r) })
			case r.rule.Proxy != "":
				work.Go(func() { s.tend(one, r) })
			default:
				work.Go(func() { s.work(one, r) })
			}
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		}
	}
}

// retry is how long a rule waits after its store failed.
const retry = time.Minute

// work works one rule off, look after look.
func (s *Scanner) work(ctx context.Context, r *running) {
	list, last, err := s.o.Store.NetHosts(ctx, r.rule.Name)
	for err != nil {
		s.fail(r, err)
		if !wait(ctx, retry, nil) {
			return
		}
		list, last, err = s.o.Store.NetHosts(ctx, r.rule.Name)
	}
	m := newMemory(r.rule, list)
	r.count(m)
	due := time.Unix(last, 0).Add(r.rule.delay)
	for wait(ctx, time.Until(due), r.now) {
		start := time.Now()
		due = start.Add(r.rule.delay)
		err := s.scan(ctx, r, m)
		if ctx.Err() != nil {
			return
		}
		end := time.Now()
		before := end.Add(-r.rule.forget).Unix()
		m.forget(before)
		if endErr := s.o.Store.EndNetScan(ctx, r.rule.Name, start.Unix(), before); err == nil {
			err = endErr
		}
		s.scans.Inc()
		r.count(m)
		r.finish(start, end)
		if err != nil {
			s.fail(r, err)
		}
	}
}

// wait waits for a time, or until now has something; false when ctx ended.
func wait(ctx context.Context, d time.Duration, now <-chan struct{}) bool {
	timer := time.NewTimer(max(0, d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-now:
	}
	return ctx.Err() == nil
}

func (s *Scanner) fail(r *running, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	s.failed.Inc()
	r.mu.Lock()
	repeated := r.state.Error == err.Error()
	r.state.Error = err.Error()
	r.mu.Unlock()
	if !repeated {
		s.o.Logger.Warn("network discovery", "rule", r.rule.Name, "error", err)
	}
}

func (r *running) count(m *memory) {
	up := 0
	for _, h := range m.hosts {
		if h.Up {
			up++
		}
	}
	r.mu.Lock()
	r.state.Hosts, r.state.Up = len(m.hosts), up
	r.mu.Unlock()
}

// Status returns how the work on each rule goes, by name.
func (s *Scanner) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Status, 0, len(s.rules))
	for _, name := range slices.Sorted(maps.Keys(s.rules)) {
		r := s.rules[name]
		r.mu.Lock()
		list = append(list, r.state)
		r.mu.Unlock()
	}
	return list
}

// ErrNoRule says that no rule that is switched on has the name, ErrByProxy that its proxy looks when its time comes.
var (
	ErrNoRule  = errors.New("no rule that is switched on has the name")
	ErrByProxy = errors.New("its proxy looks at the rule's own times; it cannot be asked to look at once")
)

// ScanNow has a rule look at once. The error is ErrNoRule or ErrByProxy.
func (s *Scanner) ScanNow(rule string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rules[rule]
	switch {
	case r == nil || r.rule.Disabled:
		return ErrNoRule
	case r.rule.Proxy != "":
		return ErrByProxy
	}
	select {
	case r.now <- struct{}{}:
	default:
	}
	return nil
}
