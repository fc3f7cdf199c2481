package trigger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"tidemark/event"
	"tidemark/expr"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/valuecache"
)

const second = int64(time.Second)

// catalogue is Items and event.Objects over maps.
type catalogue struct {
	mu       sync.Mutex
	items    map[expr.Ref]model.Item
	triggers map[model.TriggerID]model.Trigger
}

func (c *catalogue) ItemByKey(host, key string) (model.ItemID, model.ValueType, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	item, ok := c.items[expr.Ref{Host: host, Key: key}]
	return item.ID, item.ValueType, ok
}

func (c *catalogue) ItemOf(host, key string) (*model.Item, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	item, ok := c.items[expr.Ref{Host: host, Key: key}]
	return &item, ok
}

func (c *catalogue) HostByName(host string) (*model.Host, bool) {
	return &model.Host{ID: 1, Host: host, Name: "Host " + host}, true
}

func (c *catalogue) TriggerByID(id model.TriggerID) (*model.Trigger, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.triggers[id]
	return &t, ok
}

func (c *catalogue) add(id model.ItemID, t model.ValueType, host, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.items[expr.Ref{Host: host, Key: key}] = model.Item{ID: id, Key: key, ValueType: t, Units: "B"}
}

func newCatalogue() *catalogue {
	c := &catalogue{items: make(map[expr.Ref]model.Item), triggers: make(map[model.TriggerID]model.Trigger)}
	for i, t := range []model.ValueType{model.Float, model.Uint, model.Text, model.LogEntry, model.Float} {
		c.add(model.ItemID(i+1), t, "h", string("futlg"[i]))
	}
	return c
}

// engine is a log of batches with a history, as an engine keeps them.
type engine struct {
	mu      sync.Mutex
	batches []*model.Batch
	values  map[model.ItemID]map[int64]stored
	newest  map[model.ItemID]int64
	reads   int
}

type stored struct {
	t       model.ValueType
	bits    uint64
	payload []byte
}

func newEngine() *engine {
	return &engine{values: make(map[model.ItemID]map[int64]stored), newest: make(map[model.ItemID]int64)}
}

// Append stores a batch, sets its flags, and returns the LSN, which counts batches.
func (g *engine) Append(b *model.Batch) model.LSN {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, item := range b.Items {
		if b.Types[i] == model.Unsupported {
			continue
		}
		vs := g.values[item]
		if vs == nil {
			vs = make(map[int64]stored)
			g.values[item] = vs
		}
		if _, taken := vs[b.At[i]]; taken {
			b.Flags[i] |= model.Duplicate
			continue
		}
		if b.At[i] < g.newest[item] {
			b.Flags[i] |= model.Late
		}
		g.newest[item] = max(g.newest[item], b.At[i])
		v := stored{t: b.Types[i], bits: b.Bits[i]}
		if v.t.InArena() {
			v.payload = slices.Clone(b.Bytes(i))
		}
		vs[b.At[i]] = v
	}
	kept := new(model.Batch)
	kept.Add(b)
	g.batches = append(g.batches, kept)
	return model.LSN(len(g.batches))
}

// Read is valuecache.History.
func (g *engine) Read(_ context.Context, q storage.Query, fn func(*model.Columns) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reads++
	for _, item := range q.Items {
		var times []int64
		for at := range g.values[item] {
			if q.Range.Contains(at) {
				times = append(times, at)
			}
		}
		slices.Sort(times)
		if q.Newest > 0 && len(times) > q.Newest {
			times = times[len(times)-q.Newest:]
		}
		c := model.Columns{Item: item}
		for _, at := range times {
			v := g.values[item][at]
			c.Type = v.t
			c.At = append(c.At, at)
			if v.t.InArena() {
				v.bits = model.Span(len(c.Arena), len(v.payload))
				c.Arena = append(c.Arena, v.payload...)
			}
			c.Bits = append(c.Bits, v.bits)
		}
		if len(c.At) > 0 {
			if err := fn(&c); err != nil {
				return err
			}
		}
	}
	return nil
}

// store is event.Store in memory. It dies at call number dieAt: before it stores, or after with the answer lost.
type store struct {
	loaded    event.Loaded
	events    []model.Event
	calls     int
	dieAt     int
	dieStored bool
}

var errDied = errors.New("the process died")

func (s *store) Load(context.Context) (event.Loaded, error) {
	l := s.loaded
	l.States, l.Problems = slices.Clone(l.States), slices.Clone(l.Problems)
	return l, nil
}

func (s *store) Record(_ context.Context, r event.Record) error {
	s.calls++
	died := s.dieAt > 0 && s.calls >= s.dieAt
	if died && (!s.dieStored || s.calls > s.dieAt) {
		return errDied
	}
	for _, e := range r.Events {
		if e.ID <= s.loaded.LastEventID {
			return fmt.Errorf("event %d after %d", e.ID, s.loaded.LastEventID)
		}
		s.loaded.LastEventID = e.ID
		s.events = append(s.events, e)
		if e.Problem {
			s.loaded.Problems = append(s.loaded.Problems, model.Problem{Event: e})
			continue
		}
		s.loaded.Problems = slices.DeleteFunc(s.loaded.Problems, func(p model.Problem) bool { return p.ID == e.ProblemID })
	}
	for _, state := range r.States {
		s.loaded.States = slices.DeleteFunc(s.loaded.States, func(o model.TriggerState) bool { return o.TriggerID == state.TriggerID })
		s.loaded.States = append(s.loaded.States, state)
	}
	if r.Evaluated < s.loaded.Evaluated {
		return fmt.Errorf("lsn %d after %d", r.Evaluated, s.loaded.Evaluated)
	}
	s.loaded.Evaluated = r.Evaluated
	if died {
		return errDied
	}
	return nil
}

// rig is a whole evaluation over an engine and a store.
type rig struct {
	t         testing.TB
	catalogue *catalogue
	engine    *engine
	store     *store
	log       *event.Log
	cache     *valuecache.Cache
	evaluator *Evaluator
	now       time.Time
	workers   int
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, catalogue: newCatalogue(), engine: newEngine(), store: new(store), now: time.Unix(1000, 0), workers: 1}
	r.start()
	return r
}

// start makes all parts anew over what engine and store hold, as after a restart, without triggers.
func (r *rig) start() {
	now := func() time.Time { return r.now }
	r.cache = valuecache.New(valuecache.Options{History: r.engine, Now: now})
	late := new(lateExpressions)
	log, err := event.Open(context.Background(), event.Options{
		Store: r.store, Objects: r.catalogue, Values: r.cache, Expressions: late, Now: now, Zone: time.UTC,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.log = log
	r.evaluator = New(Options{
		Values: r.cache, Events: log, Items: r.catalogue, States: log.States(), Evaluated: log.Evaluated(), Now: now, Zone: time.UTC, Workers: r.workers,
	})
	r.evaluator.shareSize = 1
	late.Evaluator = r.evaluator
}

// lateExpressions is known to the log before the evaluator is made.
type lateExpressions struct{ *Evaluator }

// apply sets triggers; those without an id get their place in the list as one.
func (r *rig) apply(triggers ...model.Trigger) {
	r.t.Helper()
	for i := range triggers {
		d := &triggers[i]
		if d.ID == 0 {
			d.ID = model.TriggerID(i + 1)
		}
		d.Enabled = true
		r.catalogue.mu.Lock()
		r.catalogue.triggers[d.ID] = *d
		r.catalogue.mu.Unlock()
	}
	if err := r.evaluator.Apply(context.Background(), Changes{Upserts: triggers}); err != nil {
		r.t.Fatal(err)
	}
}

// send stores a batch and evaluates it.
func (r *rig) send(b *model.Batch) {
	r.t.Helper()
	lsn := r.engine.Append(b)
	if err := r.evaluator.Evaluate(context.Background(), lsn, b); err != nil {
		r.t.Fatal(err)
	}
}

// floats sends values of item 1: times and values in turn.
func (r *rig) floats(pairs ...float64) {
	r.t.Helper()
	b := model.NewBatch()
	for i := 0; i < len(pairs); i += 2 {
		b.AppendFloat(1, int64(pairs[i]*1e9), pairs[i+1])
	}
	r.send(b)
}

// tick moves the clock and lets every timer trigger run.
func (r *rig) tick(to int64) {
	r.t.Helper()
	r.now = time.Unix(to, 0)
	r.evaluator.ticked = to - timerSlots
	if err := r.evaluator.Tick(context.Background(), r.now); err != nil {
		r.t.Fatal(err)
	}
}

// events returns the events that are stored as text: trigger, second, problem or ok.
func (r *rig) events() []string {
	return eventTexts(r.store.events)
}

func eventTexts(events []model.Event) []string {
	texts := []string{}
	for _, e := range events {
		state := "ok"
		if e.Problem {
			state = "problem"
		}
		texts = append(texts, fmt.Sprintf("%d@%g %s", e.TriggerID, float64(e.At)/1e9, state))
	}
	return texts
}

// want compares the events so far.
func (r *rig) want(texts ...string) {
	r.t.Helper()
	if got := r.events(); !slices.Equal(got, texts) {
		r.t.Errorf("events\n %q, want\n %q", got, texts)
	}
}

// wantFailure compares why a trigger is unknown.
func (r *rig) wantFailure(id model.TriggerID, text string) {
	r.t.Helper()
	if _, failure, _ := r.evaluator.State(id); failure != text {
		r.t.Errorf("trigger %d is unknown because %q, want %q", id, failure, text)
	}
}
