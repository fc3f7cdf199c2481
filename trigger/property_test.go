package trigger

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tidemark/event"
	"tidemark/expr"
	"tidemark/model"
	"tidemark/storage"
)

// plainValues is Values by plain search in an engine, without a cache.
type plainValues struct{ engine *engine }

func (plainValues) Add(*model.Batch)                                         {}
func (plainValues) Ask(model.ItemID, model.ValueType, time.Duration, int)    {}
func (plainValues) Release(item model.ItemID, span time.Duration, count int) {}
func (v plainValues) all(item model.ItemID, r expr.Range) (c model.Columns) {
	q := storage.Query{Items: []model.ItemID{item}, Range: model.TimeRange{From: r.From, To: r.To}, Newest: r.Count}
	if r.Count > 0 {
		q.Range.From = math.MinInt64
	}
	_ = v.engine.Read(context.Background(), q, func(part *model.Columns) error {
		c = *part
		return nil
	})
	return c
}

func (v plainValues) Last(_ context.Context, item model.ItemID, n int, at int64, dst *expr.Sample) (bool, error) {
	return v.first(item, expr.Range{To: at + 1, Count: n}, n, dst)
}

func (v plainValues) First(_ context.Context, item model.ItemID, r expr.Range, dst *expr.Sample) (bool, error) {
	return v.first(item, r, 1, dst)
}

func (v plainValues) first(item model.ItemID, r expr.Range, n int, dst *expr.Sample) (bool, error) {
	c := v.all(item, r)
	if len(c.At) < n {
		return false, nil
	}
	*dst = expr.Sample{At: c.At[0], Type: c.Type, Bits: c.Bits[0]}
	if c.Type.InArena() {
		dst.Text = slices.Clone(c.Bytes(0))
	}
	return true, nil
}

func (v plainValues) Summary(_ context.Context, item model.ItemID, r expr.Range, _ expr.Aggregate, dst *expr.Summary) error {
	c := v.all(item, r)
	*dst = expr.Summary{Count: uint64(len(c.At)), Min: math.Inf(1), Max: math.Inf(-1)}
	for i := range c.At {
		if c.Type.Numeric() {
			f := c.Float(i)
			dst.Sum, dst.Min, dst.Max = dst.Sum+f, min(dst.Min, f), max(dst.Max, f)
		}
	}
	return nil
}

func (v plainValues) Read(_ context.Context, item model.ItemID, r expr.Range, dst *model.Columns) error {
	*dst = v.all(item, r)
	return nil
}

// expressions are a sample of everything that evaluation treats differently.
var expressions = []string{
	"last(/h/f)>5", "last(/h/u)>5 and last(/h/f)>3", "avg(/h/f,10s)>4", "avg(/h/f,#3)>4 or last(/h/g)=0", "min(/h/u,20s)>2", "max(/h/f,1m:now-10s)>8",
	"sum(/h/g,#5:now-5s)>20", "count(/h/f,30s,gt,5)>3", "change(/h/f)>3", `find(/h/t,10s,"like","x")=1`, `find(/h/t,,"eq","x")=1`, "last(/h/f,#2)<last(/h/f)",
	"nodata(/h/g,5s)=0 and last(/h/f)>1", "percentile(/h/u,1m,50)>4", "10/last(/h/g)>3", "last(/h/f)<>last(/h/f,#1:now-7s)", "stddevpop(/h/f,#4)>2", `count(/h/t,#3,"regexp","^[xy]")>1`,
}

// steadyExpressions do not look at the clock.
var steadyExpressions = slices.DeleteFunc(slices.Clone(expressions), func(s string) bool { return strings.HasPrefix(s, "nodata") })

func drawTriggers(t *rapid.T, expressions []string) []model.Trigger {
	var triggers []model.Trigger
	for i := range rapid.IntRange(1, 25).Draw(t, "triggers") {
		d := model.Trigger{ID: model.TriggerID(i + 1), Expression: rapid.SampledFrom(expressions).Draw(t, "expression")}
		switch rapid.IntRange(0, 5).Draw(t, "mode") {
		case 0:
			d.RecoveryMode, d.Recovery = model.RecoverByRecoveryExpression, rapid.SampledFrom(expressions).Draw(t, "recovery")
		case 1:
			d.MultipleEvents = true
		case 2:
			d.DependsOn = []model.TriggerID{model.TriggerID(rapid.IntRange(1, 25).Draw(t, "master"))}
		}
		triggers = append(triggers, d)
	}
	return triggers
}

// drawBatches draws values, repeated ones, and items that could not be measured; with disorder also values out of order.
func drawBatches(t *rapid.T, disorder bool) []*model.Batch {
	var batches []*model.Batch
	now := 1000 * second
	for range rapid.IntRange(1, 12).Draw(t, "batches") {
		b := model.NewBatch()
		now += second
		for range rapid.IntRange(1, 30).Draw(t, "rows") {
			now += int64(rapid.IntRange(0, 2).Draw(t, "step")) * second / 2
			at := now
			if disorder {
				at -= int64(rapid.SampledFrom([]int{0, 0, 0, 0, 1, 4, 15}).Draw(t, "late")) * second
			}
			v := rapid.IntRange(0, 10).Draw(t, "value")
			switch item := model.ItemID(rapid.IntRange(1, 5).Draw(t, "item")); {
			case rapid.IntRange(0, 20).Draw(t, "fails") == 0:
				b.AppendString(item, at, model.Unsupported, "failed")
			case item == 2:
				b.AppendUint(item, at, uint64(v))
			case item == 3:
				b.AppendString(item, at, model.Text, string("xyz"[v%3]))
			case item == 4:
				b.AppendLog(item, at, model.Log{Text: "x", Severity: uint32(v)})
			default:
				b.AppendFloat(item, at, float64(v))
			}
		}
		batches = append(batches, b)
	}
	return batches
}

// copyOf returns a batch that can be sent again.
func copyOf(b *model.Batch) *model.Batch {
	c := new(model.Batch)
	c.Add(b)
	return c
}

// TestEvaluate_sharedOutEqualsPlain compares four workers and a value cache with one worker and plain search.
func TestEvaluate_sharedOutEqualsPlain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		triggers, batches := drawTriggers(rt, expressions), drawBatches(rt, true)
		var results [3][]string
		var states [3][]model.TriggerState
		for variant := range results {
			r := &rig{t: t, catalogue: newCatalogue(), engine: newEngine(), store: new(store), now: time.Unix(2000, 0), workers: 1}
			if variant == 2 {
				r.workers = 4
			}
			r.start()
			if variant == 0 {
				r.evaluator = New(Options{
					Values: plainValues{r.engine}, Events: r.log, Items: r.catalogue, Now: func() time.Time { return r.now }, Zone: time.UTC, Workers: 1,
				})
			}
			r.apply(slices.Clone(triggers)...)
			for _, b := range batches {
				r.send(copyOf(b))
			}
			if err := r.log.Close(); err != nil {
				rt.Fatal(err)
			}
			results[variant] = r.events()
			loaded, _ := r.store.Load(context.Background())
			slices.SortFunc(loaded.States, func(a, b model.TriggerState) int { return int(a.TriggerID) - int(b.TriggerID) })
			states[variant] = loaded.States
		}
		for variant := 1; variant < 3; variant++ {
			if !slices.Equal(results[variant], results[0]) {
				rt.Fatalf("variant %d:\n %q, plain:\n %q", variant, results[variant], results[0])
			}
			if !slices.Equal(states[variant], states[0]) {
				rt.Fatalf("variant %d:\n %+v, plain:\n %+v", variant, states[variant], states[0])
			}
		}
	})
}

// TestCrash_missesAndRepeatsNothing kills the process at every call of the store, before and after it stored, restarts over
// what is stored, replays what came after the stored LSN, and compares the events with those of a run without a crash. The
// values come in order of time: how late ones count depends on times that are not stored (docs/design/0013).
func TestCrash_missesAndRepeatsNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		triggers, batches := drawTriggers(rt, steadyExpressions), drawBatches(rt, false)
		calm := crashRun(rt, triggers, batches, 0, false)
		for dieAt := 1; dieAt <= calm.store.calls; dieAt++ {
			for _, stored := range []bool{false, true} {
				r := crashRun(rt, triggers, batches, dieAt, stored)
				if got, want := r.events(), calm.events(); !slices.Equal(got, want) {
					rt.Fatalf("killed at call %d (stored: %v):\n %q, want\n %q", dieAt, stored, got, want)
				}
				if got, want := problemsOf(r.log), problemsOf(calm.log); !slices.Equal(got, want) {
					rt.Fatalf("killed at call %d: open %q, want %q", dieAt, got, want)
				}
			}
		}
	})
}

func problemsOf(l *event.Log) []string {
	var events []model.Event
	for _, p := range l.Problems() {
		events = append(events, p.Event)
	}
	return eventTexts(events)
}

// crashRun sends all batches, with a crash at one call of the store. Every batch is stored by the engine before it
// is evaluated, so nothing is sent twice.
func crashRun(t *rapid.T, triggers []model.Trigger, batches []*model.Batch, dieAt int, stored bool) *rig {
	r := &rig{catalogue: newCatalogue(), engine: newEngine(), store: &store{dieAt: dieAt, dieStored: stored}, now: time.Unix(2000, 0), workers: 2}
	restart := func() {
		r.start()
		definitions := slices.Clone(triggers)
		for i := range definitions {
			definitions[i].Enabled = true
			r.catalogue.triggers[definitions[i].ID] = definitions[i]
		}
		if err := r.evaluator.Apply(context.Background(), Changes{Upserts: definitions}); err != nil {
			t.Fatal(err)
		}
		for item, at := range unsupportedItems(r.engine.batches[:r.log.Evaluated()]) {
			r.evaluator.RestoreUnsupported(item, at)
		}
	}
	evaluate := func(lsn model.LSN, b *model.Batch) bool {
		r.now = r.now.Add(400 * time.Millisecond)
		return r.evaluator.Evaluate(context.Background(), lsn, b) == nil
	}
	restart()
	for i, b := range batches {
		b = copyOf(b)
		if evaluate(r.engine.Append(b), b) {
			continue
		}
		// What the engine holds now is all that it will hold when the values are replayed.
		r.store.dieAt = 0
		restart()
		for lsn := r.log.Evaluated() + 1; lsn <= model.LSN(i+1); lsn++ {
			if !evaluate(lsn, copyOf(r.engine.batches[lsn-1])) {
				t.Fatal("the replay failed")
			}
		}
	}
	if err := r.log.Close(); err != nil && r.store.dieAt == 0 {
		t.Fatal(err)
	}
	if r.store.dieAt > 0 { // killed at the very last call
		r.store.dieAt = 0
		restart()
		for lsn := r.log.Evaluated() + 1; lsn <= model.LSN(len(batches)); lsn++ {
			evaluate(lsn, copyOf(r.engine.batches[lsn-1]))
		}
		if err := r.log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// unsupportedItems returns the items whose last row in some batches says that they could not be measured, and its time.
func unsupportedItems(batches []*model.Batch) map[model.ItemID]int64 {
	items := make(map[model.ItemID]int64)
	for _, b := range batches {
		for i, item := range b.Items {
			if b.Types[i] == model.Unsupported {
				items[item] = b.At[i]
			} else if !b.Flags[i].Skipped() {
				delete(items, item)
			}
		}
	}
	return items
}
