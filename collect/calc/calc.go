// Package calc evaluates calculated items: their formula is an expression over the values of other items, evaluated at the item's
// own interval.
//
// Formulas are compiled when an item is first due, and the items they name are found again after the configuration changed. What a
// formula reads is kept by the value cache as long as the item exists.
package calc

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect/poller"
	"tidemark/expr"
	"tidemark/model"
)

// Items finds what formulas name.
type Items interface {
	// Revision changes when hosts or items do.
	Revision() uint64
	// HostName is the technical name of a host.
	HostName(id model.HostID) (string, bool)
	// ItemByKey finds an enabled item of an enabled host by the host's technical name and the item's key.
	ItemByKey(host, key string) (model.ItemID, model.ValueType, bool)
	// Match calls fn for the enabled items of enabled hosts that q means, until fn returns false.
	Match(q *expr.Query, fn func(id model.ItemID, t model.ValueType, key string) bool)
	// Unsupported reports whether an item could not be measured last time.
	Unsupported(id model.ItemID) bool
}

// Values keeps and finds values.
type Values interface {
	expr.Values
	// Ask makes it keep at least count newest values of an item and those of the last span; Release undoes one Ask.
	Ask(item model.ItemID, t model.ValueType, span time.Duration, count int)
	Release(item model.ItemID, span time.Duration, count int)
}

// Options of a Checker. Items and Values are needed.
type Options struct {
	Items  Items
	Values Values
	// Trends may be nil: functions of trends are unknown then.
	Trends expr.Trends
	// Zone is the time zone of date functions; nil is the local one.
	Zone *time.Location
	// Metrics may be nil.
	Metrics *metrics.Set
}

const (
	// MaxMany is how many items one function of many items may read.
	MaxMany = 50_000
	// manyEvery is how long the items of a pattern are kept although the configuration changed: looking for them costs a walk over
	// many items.
	manyEvery = 30 * time.Second
)

// Checker evaluates calculated items; it is a poller.Checker.
type Checker struct {
	o       Options
	started int64

	mu       sync.Mutex
	formulas map[model.ItemID]*formula
	idle     []*expr.Machine

	evaluations, failures *metrics.Counter
	busy                  *metrics.FloatCounter
}

var _ poller.Checker = (*Checker)(nil)

// New returns a checker without formulas.
func New(o Options) *Checker {
	set := o.Metrics
	if set == nil {
		set = metrics.NewSet()
	}
	c := &Checker{
		o: o, started: time.Now().UnixNano(), formulas: make(map[model.ItemID]*formula),
		evaluations: set.NewCounter("tidemark_calc_evaluations_total"),
		failures:    set.NewCounter("tidemark_calc_unknown_results_total"),
		busy:        set.NewFloatCounter("tidemark_calc_busy_seconds_total"),
	}
	set.NewGauge("tidemark_calc_formulas", func() float64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return float64(len(c.formulas))
	})
	return c
}

// Check implements poller.Checker.
func (c *Checker) Check(ctx context.Context, tasks []*poller.Task, results []poller.Result) {
	start := time.Now()
	m := c.machine()
	for i, t := range tasks {
		results[i] = c.evaluate(ctx, m, t.Item)
	}
	c.mu.Lock()
	c.idle = append(c.idle, m)
	c.mu.Unlock()
	c.busy.Add(time.Since(start).Seconds())
}

// machine returns one that nobody else uses.
func (c *Checker) machine() *expr.Machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.idle); n > 0 {
		m := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return m
	}
	return &expr.Machine{Values: c.o.Values, Trends: c.o.Trends, Zone: c.o.Zone}
}

func (c *Checker) evaluate(ctx context.Context, m *expr.Machine, item *model.Item) poller.Result {
	c.evaluations.Inc()
	f := c.formula(item)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return poller.Result{} // The item changed just now; its next check has the new formula.
	}
	now := time.Now()
	why := f.broken
	if why == "" {
		why = c.resolve(f, now)
	}
	if why == "" {
		c.measure(ctx, f, now.UnixNano())
		r := m.Evaluate(ctx, f.program, f.items, expr.Moment{At: now.UnixNano(), Now: now.UnixNano()})
		if r.Failure.Code == expr.FailNone {
			return poller.Result{Outcome: poller.Value, Text: []byte(r.String())}
		}
		why = f.program.FailureText(r.Failure, f.refs)
	}
	if ctx.Err() != nil {
		return poller.Result{} // The server stops; that says nothing of the item.
	}
	c.failures.Inc()
	return poller.Result{Outcome: poller.NotSupported, Text: []byte("the formula cannot be evaluated: " + why)}
}

// formula is a compiled formula with the items it names.
type formula struct {
	mu   sync.Mutex
	text string
	host string
	// broken is why it cannot be evaluated at all.
	broken  string
	program *expr.Program
	refs    []expr.Ref
	// queries belong to those refs that functions of many items name; nil for the others.
	queries []*expr.Query

	// revision is that of the configuration in which items were found.
	revision uint64
	resolved bool
	manyAt   time.Time
	items    []expr.Item
	asked    []ask
	gone     bool
}

// ask is what the value cache keeps for a formula.
type ask struct {
	item  model.ItemID
	span  time.Duration
	count int
}

// formula returns the compiled formula of an item.
func (c *Checker) formula(item *model.Item) *formula {
	host, _ := c.o.Items.HostName(item.HostID)
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.formulas[item.ID]
	if f != nil && f.text == item.Params && f.host == host {
		return f
	}
	old := f
	f = compile(item.Params, host)
	if f.broken != "" && item.HasSecret(f.text) {
		f.broken = "it cannot be read with the values of its secret macros in place; the reason is not shown, because it may hold them"
	}
	c.formulas[item.ID] = f
	if old != nil {
		c.drop(old)
	}
	return f
}

func compile(text, host string) *formula {
	f := &formula{text: text, host: host}
	if text == "" {
		f.broken = "it is empty"
		return f
	}
	e, err := expr.ParseFormula(text)
	if err != nil {
		f.broken = err.Error()
		return f
	}
	f.program, f.refs, f.broken = e.Program, e.Refs, e.Program.Broken()
	f.queries = make([]*expr.Query, len(f.refs))
	for i := range f.program.Funcs {
		fn := &f.program.Funcs[i]
		ref := f.refs[fn.Ref]
		if !fn.Many() || f.queries[fn.Ref] != nil {
			continue
		}
		if f.queries[fn.Ref], err = expr.ParseQuery(ref); err != nil {
			f.broken = ref.String() + ": " + err.Error()
			return f
		}
		if f.queries[fn.Ref].Host == "" {
			f.queries[fn.Ref].Host = host
		}
	}
	return f
}

// drop releases what a formula asked for.
func (c *Checker) drop(f *formula) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone, f.resolved = true, false
	c.release(f.asked)
	f.asked = nil
}

func (c *Checker) release(asked []ask) {
	for _, a := range asked {
		c.o.Values.Release(a.item, a.span, a.count)
	}
}

// Forget drops the formulas of items that are gone.
func (c *Checker) Forget(ids []model.ItemID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if f := c.formulas[id]; f != nil {
			delete(c.formulas, id)
			c.drop(f)
		}
	}
}

// resolve finds the items that a formula names, unless it did since the configuration changed. It returns why they cannot be used.
func (c *Checker) resolve(f *formula, now time.Time) string {
	revision := c.o.Items.Revision()
	if f.resolved && f.revision == revision {
		return ""
	}
	items := make([]expr.Item, len(f.refs))
	patterns := f.manyAt.IsZero() || now.Sub(f.manyAt) >= manyEvery
	complete := true
	for i, ref := range f.refs {
		if q := f.queries[i]; q != nil {
			if !patterns {
				items[i].Many, complete = f.items[i].Many, false
				continue
			}
			var ok bool
			if items[i].Many, ok = c.many(q); !ok {
				return fmt.Sprintf("%s stands for more than %d items", ref, MaxMany)
			}
			continue
		}
		host := ref.Host
		if host == "" {
			host = f.host
		}
		id, t, ok := c.o.Items.ItemByKey(host, ref.Key)
		items[i] = expr.Item{ID: id, Type: t, Missing: !ok, Since: c.started}
	}
	if patterns {
		f.manyAt = now
	}
	// A pattern that was not looked at again is so at the next evaluation behind manyEvery.
	f.items, f.resolved, f.revision = items, complete, revision
	c.ask(f)
	return ""
}

// many finds the items that a pattern stands for; false when there are too many.
func (c *Checker) many(q *expr.Query) ([]expr.Item, bool) {
	var list []expr.Item
	c.o.Items.Match(q, func(id model.ItemID, t model.ValueType, key string) bool {
		list = append(list, expr.Item{ID: id, Type: t, Key: key, Since: c.started})
		return len(list) <= MaxMany
	})
	return list, len(list) <= MaxMany
}

// ask makes the value cache keep what the formula reads, and no longer what it read before.
func (c *Checker) ask(f *formula) {
	before := f.asked
	f.asked = nil
	add := func(i *expr.Item, span time.Duration, count int) {
		if i.Missing || i.ID == 0 {
			return
		}
		c.o.Values.Ask(i.ID, i.Type, span, count)
		f.asked = append(f.asked, ask{i.ID, span, count})
	}
	for n := range f.program.Funcs {
		fn := &f.program.Funcs[n]
		span, count := fn.Need()
		item := &f.items[fn.Ref]
		if !fn.Many() {
			add(item, span, count)
			continue
		}
		for k := range item.Many {
			add(&item.Many[k], span, count)
		}
	}
	// Only now, so that what is asked for again is not dropped in between.
	c.release(before)
}

// measure fills in what changes with every value.
func (c *Checker) measure(ctx context.Context, f *formula, now int64) {
	for i := range f.items {
		item := &f.items[i]
		if item.ID != 0 {
			item.Unsupported = c.o.Items.Unsupported(item.ID)
		}
		for k := range item.Many {
			item.Many[k].Unsupported = c.o.Items.Unsupported(item.Many[k].ID)
		}
	}
	// Functions of the clock ask when the newest value came.
	var sample expr.Sample
	for i := range f.program.Funcs {
		fn := &f.program.Funcs[i]
		item := &f.items[fn.Ref]
		if !fn.Timer() || fn.Many() || item.ID == 0 {
			continue
		}
		if found, err := c.o.Values.Last(ctx, item.ID, 1, now, &sample); err == nil && found {
			item.NewestAt = sample.At
		}
	}
}

// Formulas returns the items whose formulas are kept, for tests and tools.
func (c *Checker) Formulas() []model.ItemID {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make([]model.ItemID, 0, len(c.formulas))
	for id := range c.formulas {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
