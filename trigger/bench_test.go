package trigger

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/valuecache"
)

// noHistory is an empty history.
type noHistory struct{}

func (noHistory) Read(context.Context, storage.Query, func(*model.Columns) error) error { return nil }

// noEvents takes everything.
type noEvents struct{ changes int }

func (n *noEvents) Record(_ context.Context, _ model.LSN, changes []model.StateChange) error {
	n.changes += len(changes)
	return nil
}

func (n *noEvents) OpenProblems(model.TriggerID) int { return 0 }

func (n *noEvents) Problem(model.EventID) (model.Problem, bool) { return model.Problem{}, false }

// BenchmarkEvaluate sends a value of every item, 2,000 to a batch, again and again. An operation is one value, which touches one
// trigger.
func BenchmarkEvaluate(b *testing.B) {
	for _, expression := range []string{"last(/h/%s)>10", "avg(/h/%s,5m)>1e9", "avg(/h/%s,24h)>1e9", "min(/h/%s,5m)>1e9", "count(/h/%s,5m)>1e9", "nodata(/h/%s,5m)=1"} {
		for _, items := range []int{1000, 100_000} {
			b.Run(fmt.Sprintf("%s,items=%d", fmt.Sprintf(expression, "k"), items), func(b *testing.B) {
				benchmarkEvaluate(b, expression, items)
			})
		}
	}
}

func benchmarkEvaluate(b *testing.B, expression string, items int) {
	const size = 2000
	c := newCatalogue()
	var triggers []model.Trigger
	for i := range items {
		key := fmt.Sprintf("k%d", i)
		c.add(model.ItemID(1000+i), model.Float, "h", key)
		triggers = append(triggers, model.Trigger{ID: model.TriggerID(i + 1), Enabled: true, Expression: fmt.Sprintf(expression, key)})
	}
	cache := valuecache.New(valuecache.Options{History: noHistory{}, MaxBytes: 4 << 30})
	e := New(Options{Values: cache, Events: new(noEvents), Items: c, Workers: 1})
	if err := e.Apply(b.Context(), Changes{Upserts: triggers}); err != nil {
		b.Fatal(err)
	}
	batch := model.NewBatch()
	next, at := 0, e.started
	step := func() {
		batch.Reset()
		for range size {
			batch.AppendFloat(model.ItemID(1000+next), at, float64(next&7))
			if next++; next == items {
				next, at = 0, at+second
			}
		}
		if err := e.Evaluate(b.Context(), 1, batch); err != nil {
			b.Fatal(err)
		}
	}
	for range 3 * max(1, items/size) {
		step()
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	for n := 0; n < b.N; n += size {
		step()
	}
	b.ReportMetric(float64(b.N)/(cpuTime(b)-before).Seconds()/1e6, "Mvalues/cpu-s")
}

// cpuTime returns the processor time of this process, which says more than the clock on a machine that others use too.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkBacklog sends ten values of each of 20 items in a batch to two triggers that share a window.
func BenchmarkBacklog(b *testing.B) {
	for _, expression := range []string{"avg(/h/k%d,24h)>1e9", "min(/h/k%d,24h)>1e9"} {
		b.Run(expression, func(b *testing.B) {
			c := newCatalogue()
			var triggers []model.Trigger
			for i := range 40 {
				c.add(model.ItemID(1000+i/2), model.Float, "h", fmt.Sprintf("k%d", i/2))
				triggers = append(triggers, model.Trigger{ID: model.TriggerID(i + 1), Enabled: true, Expression: fmt.Sprintf(expression, i/2)})
			}
			cache := valuecache.New(valuecache.Options{History: noHistory{}})
			e := New(Options{Values: cache, Events: new(noEvents), Items: c, Workers: 1})
			if err := e.Apply(b.Context(), Changes{Upserts: triggers}); err != nil {
				b.Fatal(err)
			}
			batch := model.NewBatch()
			at := e.started
			step := func() {
				batch.Reset()
				for range 10 {
					at += second
					for i := range 20 {
						batch.AppendFloat(model.ItemID(1000+i), at, float64(at%1013))
					}
				}
				if err := e.Evaluate(b.Context(), 1, batch); err != nil {
					b.Fatal(err)
				}
			}
			for range 8640 {
				step()
			}
			b.ResetTimer()
			before := cpuTime(b)
			for n := 0; n < b.N; n += 200 {
				step()
			}
			b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkApply takes over 100,000 triggers over as many items, as at a start. An operation is one trigger.
func BenchmarkApply(b *testing.B) {
	const count = 100_000
	c := newCatalogue()
	var triggers []model.Trigger
	for i := range count {
		host, key := fmt.Sprintf("load-%04d", i/1000), fmt.Sprintf("load.item[%d]", i%1000)
		c.add(model.ItemID(1000+i), model.Float, host, key)
		triggers = append(triggers, model.Trigger{ID: model.TriggerID(i + 1), Enabled: true, Expression: fmt.Sprintf("last(/%s/%s)>10", host, key)})
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	for n := 0; n < b.N; n += count {
		cache := valuecache.New(valuecache.Options{History: noHistory{}})
		e := New(Options{Values: cache, Events: new(noEvents), Items: c})
		if err := e.Apply(b.Context(), Changes{Upserts: triggers[:min(count, b.N)]}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// BenchmarkBurst sends 300,000 values of one item in one batch. An operation is one value.
func BenchmarkBurst(b *testing.B) {
	for _, expression := range []string{"last(/h/f)>1e9", "avg(/h/f,5m)>1e9", "avg(/h/f,#10)>1e9"} {
		b.Run(expression, func(b *testing.B) {
			c := newCatalogue()
			cache := valuecache.New(valuecache.Options{History: noHistory{}})
			e := New(Options{Values: cache, Events: new(noEvents), Items: c, Workers: 1})
			if err := e.Apply(b.Context(), Changes{Upserts: []model.Trigger{{ID: 1, Enabled: true, Expression: expression}}}); err != nil {
				b.Fatal(err)
			}
			const size = 300_000
			batch := model.NewBatch()
			at := e.started
			before := cpuTime(b)
			for n := 0; n < b.N; n += size {
				batch.Reset()
				for range size {
					at += second / 100
					batch.AppendFloat(1, at, 1)
				}
				if err := e.Evaluate(b.Context(), 1, batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/float64(max(b.N, size)), "cpu-ns/op")
		})
	}
}
