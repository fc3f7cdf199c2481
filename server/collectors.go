package server

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"tidemark/catalog"

	"tidemark/collect/calc"
	"tidemark/collect/poller"
	"tidemark/collect/self"
	"tidemark/collect/trapper"
	"tidemark/confcache"
	"tidemark/expr"
	"tidemark/model"
	"tidemark/storage"
)

// ownKinds are the checks that the server makes of itself: calculated and internal items.
func ownKinds(formulas *calc.Checker, internals *self.Checker) []poller.Kind {
	return []poller.Kind{
		{Name: "history poller", Types: []model.ItemType{model.Calculated}, Checker: formulas, MaxInFlight: runtime.GOMAXPROCS(0), MaxBatch: 64, Timeout: time.Minute},
		{Name: "self-monitoring", Types: []model.ItemType{model.Internal}, Checker: internals, MaxInFlight: 1, MaxBatch: 256, Timeout: time.Minute},
	}
}

// formulaItems is what calculated items ask.
type formulaItems struct {
	*namedItems
	support *support
}

// Revision implements calc.Items.
func (f formulaItems) Revision() uint64 { return f.cache.Snapshot().Revision() }

// HostName implements calc.Items.
func (f formulaItems) HostName(id model.HostID) (string, bool) {
	h, ok := f.cache.Snapshot().HostByID(id)
	if !ok {
		return "", false
	}
	return h.Host, true
}

// Unsupported implements calc.Items.
func (f formulaItems) Unsupported(id model.ItemID) bool { return f.support.unsupported(id) }

// Match implements calc.Items.
func (f formulaItems) Match(q *expr.Query, fn func(id model.ItemID, t model.ValueType, key string) bool) {
	s := f.cache.Snapshot()
	each := func(h *model.Host) bool {
		return !h.Enabled || f.matchHost(s, h, q, fn)
	}
	if q.Host != "*" {
		if h, ok := s.Host(q.Host); ok {
			each(h)
		}
		return
	}
	for h := range s.Hosts() {
		if !each(h) {
			return
		}
	}
}

// matchHost calls fn for the items of one host that q means, and reports whether it wants more.
func (f formulaItems) matchHost(s *confcache.Snapshot, h *model.Host, q *expr.Query, fn func(model.ItemID, model.ValueType, string) bool) bool {
	take := func(id model.ItemID, t model.ValueType, key string, tags []model.Tag) bool {
		return q.HasFilter() && !q.Match(h.Groups, h.Tags, tags) || fn(id, t, key)
	}
	if !q.AnyKey() {
		if item, ok := f.definitions.ItemByKey(h.ID, q.Key); ok && item.Enabled && item.RuleID == 0 {
			return take(item.ID, item.ValueType, item.Key, item.Tags)
		}
		return true
	}
	items := s.Items(h.ID)
	for i := range items {
		item := &items[i]
		if item.Enabled && item.RuleID == 0 && q.MatchKey(item.Key) && !take(item.ID, item.ValueType, item.Key, item.Tags) {
			return false
		}
	}
	name, _ := expr.SplitKey(q.Key)
	declared, _ := f.catalog.Search(catalog.Filter{Host: h.ID, Text: name, Limit: calc.MaxMany})
	for i := range declared {
		e := &declared[i]
		if e.Kind == model.Declared && q.MatchKey(e.Key) && !take(e.ID, e.ValueType, e.Key, nil) {
			return false
		}
	}
	return true
}

// support knows which items could not be measured last time. It is an observer of stored batches.
type support struct {
	mu sync.RWMutex
	// bits has one bit per item id; ids come from a counter.
	bits  []uint64
	count int
}

// maxSupportID bounds the table.
const maxSupportID = 1 << 30

// Observe implements histsync.Observer.
func (s *support) Observe(b *model.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, id := range b.Items {
		word, bit := uint64(id)>>6, uint64(1)<<(id&63)
		if b.Types[i] != model.Unsupported {
			if word < uint64(len(s.bits)) && s.bits[word]&bit != 0 {
				s.bits[word] &^= bit
				s.count--
			}
			continue
		}
		if id >= maxSupportID {
			continue
		}
		if need := int(word) + 1 - len(s.bits); need > 0 {
			s.bits = append(s.bits, make([]uint64, need)...)
		}
		if s.bits[word]&bit == 0 {
			s.bits[word] |= bit
			s.count++
		}
	}
}

func (s *support) unsupported(id model.ItemID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	word := uint64(id) >> 6
	return word < uint64(len(s.bits)) && s.bits[word]&(1<<(id&63)) != 0
}

// forget drops items that are gone.
func (s *support) forget(ids []model.ItemID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if word, bit := uint64(id)>>6, uint64(1)<<(id&63); word < uint64(len(s.bits)) && s.bits[word]&bit != 0 {
			s.bits[word] &^= bit
			s.count--
		}
	}
}

func (s *support) total() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.count
}

// facts is what internal items ask of the server.
type facts struct {
	cache   *confcache.Cache
	support *support
	// poller may be nil: nothing is polled.
	poller *poller.Poller
	// proxied, if not nil, says what a host's proxy last said of an interface.
	proxied func(h *model.Host, index int) (trapper.ProxyInterface, bool)

	mu       sync.Mutex
	counts   self.Counts
	revision uint64
	counted  bool
}

// Counts implements self.Server. The configuration is counted once per revision.
func (f *facts) Counts() self.Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.cache.Snapshot()
	if !f.counted || f.revision != s.Revision() {
		f.counts, f.revision, f.counted = count(s), s.Revision(), true
	}
	c := f.counts
	c.Unsupported = f.support.total()
	return c
}

func count(s *confcache.Snapshot) self.Counts {
	var c self.Counts
	for h := range s.Hosts() {
		if !h.Enabled {
			continue
		}
		c.Hosts++
		items := s.Items(h.ID)
		for i := range items {
			if !items[i].Enabled {
				continue
			}
			c.Items++
			if items[i].Interval > 0 {
				c.Performance += 1 / items[i].Interval.Seconds()
			}
		}
		triggers := s.TriggersOf(h.ID)
		for i := range triggers {
			if triggers[i].Enabled {
				c.Triggers++
			}
		}
	}
	return c
}

// Host implements self.Server.
func (f *facts) Host(id model.HostID) (self.Host, bool) {
	s := f.cache.Snapshot()
	if _, ok := s.HostByID(id); !ok {
		return self.Host{}, false
	}
	var h self.Host
	items := s.Items(id)
	for i := range items {
		if !items[i].Enabled {
			continue
		}
		h.Items++
		if f.support.unsupported(items[i].ID) {
			h.Unsupported++
		}
	}
	return h, true
}

// Available implements self.Server: one interface of the kind that works is enough.
func (f *facts) Available(id model.HostID, kind string) int {
	if f.poller == nil {
		return poller.Unknown
	}
	states := f.poller.Interfaces(id)
	best := poller.Unknown
	if h, ok := f.cache.Snapshot().HostByID(id); ok && h.Proxy != 0 && f.proxied != nil {
		states = f.saidByProxy(h)
	}
	for _, s := range states {
		if !strings.HasPrefix(s.Kind, kind) {
			continue
		}
		if s.Available == poller.Available {
			return poller.Available
		}
		best = max(best, s.Available)
	}
	return best
}

// saidByProxy is what the proxy of a host says of its interfaces.
func (f *facts) saidByProxy(h *model.Host) []poller.InterfaceState {
	var states []poller.InterfaceState
	for i := range h.Interfaces {
		if said, ok := f.proxied(h, i); ok {
			states = append(states, poller.InterfaceState{Kind: interfaceTypes[h.Interfaces[i].Type], Available: said.Available})
		}
	}
	return states
}

// Queue implements self.Server.
func (f *facts) Queue(from, to time.Duration) int {
	if f.poller == nil {
		return 0
	}
	return f.poller.Queue(from, to)
}

// processes are the parts of the server under Zabbix's names.
func processes() []self.Process {
	cores := runtime.GOMAXPROCS(0)
	one := func(name string, counters ...string) self.Process {
		return self.Process{Name: name, Count: 1, BusySeconds: counters}
	}
	const alerts, sending, discoveries, preprocessing = "tidemark_alert_busy_seconds_total", "tidemark_alert_sending_seconds_total",
		"tidemark_discovery_busy_seconds_total", "tidemark_preproc_busy_seconds_total"
	return []self.Process{
		{Name: "trapper", Count: cores, BusySeconds: []string{"tidemark_trapper_busy_seconds_total"}},
		// What Zabbix parts between a manager and its workers is one here.
		{Name: "preprocessing manager", Count: cores, BusySeconds: []string{preprocessing}},
		one("alert manager", alerts), one("alert syncer", alerts), one("escalator", alerts), one("alerter", sending),
		one("lld manager", discoveries), one("lld worker", discoveries),
		one("configuration syncer", "tidemark_confcache_busy_seconds_total"), one("timer", "tidemark_trigger_timer_busy_seconds_total"),
		one("trigger housekeeper", "tidemark_housekeeper_busy_seconds_total"),
		{Name: "history syncer", Count: 2, BusySeconds: []string{"tidemark_histsync_append_busy_seconds_total", "tidemark_histsync_evaluate_busy_seconds_total"}},
		{Name: "preprocessing worker", Count: cores, BusySeconds: []string{preprocessing}},
		{Name: "history poller", Count: cores, BusySeconds: []string{"tidemark_calc_busy_seconds_total"}},
		one("housekeeper", "tidemark_housekeeper_busy_seconds_total"),
	}
}

// hourTrends reads hourly trends of the engine for functions, and keeps what was read lately: many triggers ask for the same hours.
type hourTrends struct {
	engine interface {
		Trends(ctx context.Context, q storage.Query, fn func(*storage.TrendColumns) error) error
	}

	mu   sync.Mutex
	kept map[trendKey]trendAnswer

	// hits and misses count the answers that were kept and those that had to be read; nil: nobody counts.
	hits, misses *metrics.Counter
}

// countIn counts in a set of metrics.
func (t *hourTrends) countIn(set *metrics.Set) *hourTrends {
	t.hits, t.misses = set.NewCounter("tidemark_trendfunctions_hits_total"), set.NewCounter("tidemark_trendfunctions_misses_total")
	set.NewGauge("tidemark_trendfunctions_answers", func() float64 { t.mu.Lock(); defer t.mu.Unlock(); return float64(len(t.kept)) })
	set.NewGauge("tidemark_trendfunctions_answers_limit", func() float64 { return trendsKept })
	return t
}

type trendKey struct {
	item model.ItemID
	r    model.TimeRange
}

type trendAnswer struct {
	trends []model.Trend
	vt     model.ValueType
	until  time.Time
}

const (
	// trendsKept bounds the answers that are kept, trendsFor how long: late values change their hour.
	trendsKept = 20_000
	trendsFor  = 5 * time.Minute
	// runningFor is for ranges that are not over, and for those without a value: the values of a new item may be on their way.
	runningFor = 30 * time.Second
)

// Hours implements expr.Trends.
func (t *hourTrends) Hours(ctx context.Context, item model.ItemID, r model.TimeRange, dst []model.Trend) ([]model.Trend, model.ValueType, error) {
	key, now := trendKey{item, r}, time.Now()
	t.mu.Lock()
	a, ok := t.kept[key]
	t.mu.Unlock()
	if ok && now.Before(a.until) {
		if t.hits != nil {
			t.hits.Inc()
		}
		return append(dst, a.trends...), a.vt, nil
	}
	if t.misses != nil {
		t.misses.Inc()
	}
	a = trendAnswer{until: now.Add(trendsFor)}
	err := t.engine.Trends(ctx, storage.Query{Items: []model.ItemID{item}, Range: r}, func(c *storage.TrendColumns) error {
		a.vt = c.Type
		a.trends = append(a.trends, c.Trends...)
		return nil
	})
	if err != nil {
		return dst, 0, err
	}
	if r.To > now.UnixNano() || len(a.trends) == 0 {
		a.until = now.Add(runningFor)
	}
	a.trends = slices.Clip(a.trends)
	t.mu.Lock()
	if t.kept == nil || len(t.kept) >= trendsKept {
		t.kept = make(map[trendKey]trendAnswer)
	}
	t.kept[key] = a
	t.mu.Unlock()
	return append(dst, a.trends...), a.vt, nil
}
