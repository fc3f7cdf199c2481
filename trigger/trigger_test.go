package trigger

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"tidemark/model"
)

func TestEvaluate_firesAndRecovers(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{Expression: "last(/h/f)>10"}, model.Trigger{Expression: "avg(/h/f,10s)>10"}, model.Trigger{Expression: "last(/other/f)>1"})
	r.floats(1, 5, 2, 11, 3, 12, 4, 20, 5, 1) // the problem is in the middle of one batch
	r.want("1@2 problem", "2@4 problem", "1@5 ok", "2@5 ok")
	r.floats(6, 11)
	r.floats(7, 12)
	r.want("1@2 problem", "2@4 problem", "1@5 ok", "2@5 ok", "1@6 problem", "2@7 problem")
	if got := r.engine.reads; got > 2 {
		t.Errorf("%d reads of the history", got)
	}
	problems := r.log.Problems()
	if len(problems) != 2 || problems[1].TriggerID != 1 || problems[1].At != 6*second {
		t.Errorf("open problems %+v", problems)
	}
}

func TestEvaluate_typesAndFlags(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{Expression: `find(/h/t,,"like","bad")=1`}, model.Trigger{Expression: `logseverity(/h/l)>3`}, model.Trigger{Expression: "last(/h/u)=18446744073709551615"},
		model.Trigger{Expression: "last(/h/u)-last(/h/u,#2)<0"})
	b := model.NewBatch()
	b.AppendString(3, 1*second, model.Text, "a bad thing")
	b.AppendLog(4, 1*second, model.Log{Severity: 4, Text: "x"})
	b.AppendUint(2, 1*second, 1<<64-1)
	b.AppendUint(2, 2*second, 5)
	b.AppendUint(2, 2*second, 5) // a duplicate
	b.AppendString(3, 2*second, model.Text, "fine")
	r.send(b)
	r.want("1@1 problem", "2@1 problem", "3@1 problem", "1@2 ok", "3@2 ok", "4@2 problem")
}

func TestEvaluate_unknown(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{Expression: "last(/h/f)>10"}, model.Trigger{Expression: "last(/h/f)>10 or last(/h/g)>0"}, model.Trigger{Expression: "nodata(/h/f,1h)=1 or last(/h/g)>0"},
		model.Trigger{Expression: "avg(/h/t,5m)>1"}, model.Trigger{Expression: "1/last(/h/f)>0"}, model.Trigger{Expression: "last(/h/f,#2)>0"})
	r.floats(1, 11)
	r.want("1@1 problem", "2@1 problem", "5@1 problem")
	r.wantFailure(6, "last(/h/f,#2): not enough values in the period")
	b := model.NewBatch()
	b.AppendString(1, 2*second, model.Unsupported, "no permission")
	b.AppendFloat(5, 2*second, 1)
	r.send(b)
	r.want("1@1 problem", "2@1 problem", "5@1 problem", "3@2 problem") // "U or 1" is 1
	r.wantFailure(1, "last(/h/f): the item is not supported")
	r.wantFailure(2, "")
	r.wantFailure(3, "")
	r.floats(3, 0)
	r.wantFailure(1, "")
	r.wantFailure(5, "division by zero")
	r.want("1@1 problem", "2@1 problem", "5@1 problem", "3@2 problem", "1@3 ok", "6@3 problem")
	r.now = r.now.Add(2 * time.Second)
	r.floats(3.5, 0)
	states, _ := r.store.Load(context.Background())
	at := slices.IndexFunc(states.States, func(s model.TriggerState) bool { return s.TriggerID == 5 })
	if s := states.States[at]; s.TriggerID != 5 || s.Error != "division by zero" || !s.Problem || s.OpenProblem == 0 {
		t.Errorf("stored state %+v", s)
	}
}

// The parameters of a function that fails may be secrets.
func TestEvaluate_secretInFailure(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{Expression: `find(/h/f,#3,"like","hunter2")=1`, ShownExpression: `find(/h/f,#3,"like","{$PASSWORD}")=1`},
		model.Trigger{Expression: `find(/h/f,#3,"like","open")=1`, ShownRecovery: "x"},
		model.Trigger{Expression: `last(/h/f)=1 and length("hunter2")>1`, ShownExpression: `last(/h/f)=1 and length("{$PASSWORD}")>1`})
	b := model.NewBatch()
	b.AppendString(1, second, model.Unsupported, "cannot")
	r.send(b)
	r.wantFailure(1, "find(/h/f,…): the item is not supported")
	r.wantFailure(2, `find(/h/f,#3,"like","open"): the item is not supported`)
	r.wantFailure(3, "last(/h/f): the item is not supported")
}

func TestApply_brokenAndMissing(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{Expression: "last(/h/f)>"}, model.Trigger{Expression: "last(/h/new)>1"}, model.Trigger{Expression: "find(/h/f,,\"regexp\",\"@name\")>1"},
		model.Trigger{Expression: "last(/h/f)>1", RecoveryMode: model.RecoverByRecoveryExpression, Recovery: "foo()"})
	r.wantFailure(1, "expression: column 12: expected an operand, found the end")
	r.wantFailure(2, "item /h/new does not exist")
	r.wantFailure(3, "expression: there is no global regular expression of that name")
	r.wantFailure(4, "recovery expression: column 1: expected a function, foo is not known")
	// What cannot be read may be the value of a secret macro.
	const hidden = "expression: it cannot be read with the values of its secret macros in place; the reason is not shown, because it may hold them"
	r.apply(model.Trigger{ID: 5, Expression: "last(/h/f)=hunter2", ShownExpression: "last(/h/f)={$PASSWORD}"},
		model.Trigger{
			ID: 6, Expression: "last(/h/f)>1", RecoveryMode: model.RecoverByRecoveryExpression,
			Recovery: "hunter2()", ShownRecovery: "{$PASSWORD}()",
		})
	r.wantFailure(5, hidden)
	r.wantFailure(6, "recovery "+hidden)
	r.floats(1, 5)
	r.want()
	r.catalogue.add(9, model.Float, "h", "new")
	if err := r.evaluator.ItemsChanged(context.Background(), "h"); err != nil {
		t.Fatal(err)
	}
	r.wantFailure(2, "")
	b := model.NewBatch()
	b.AppendFloat(9, 2*second, 5)
	r.send(b)
	r.want("2@2 problem")
	delete(r.catalogue.items, r.evaluator.byItem.Get(9).ref)
	if err := r.evaluator.ItemsChanged(context.Background(), "h"); err != nil {
		t.Fatal(err)
	}
	r.wantFailure(2, "item /h/new does not exist")
	if r.evaluator.byItem.Len() != 1 {
		t.Errorf("%d items are known, want 1", r.evaluator.byItem.Len())
	}
}

func TestApply_incrementally(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{Expression: "last(/h/f)>10"}, model.Trigger{Expression: "avg(/h/f,5m)>10"})
	r.floats(1, 11)
	r.apply(model.Trigger{ID: 1, Expression: "last(/h/f)>20"}) // keeps its state, and recovers
	r.floats(2, 12)
	r.want("1@1 problem", "2@1 problem", "1@2 ok")
	disabled := model.Trigger{ID: 2, Expression: "avg(/h/f,5m)>10"}
	if err := r.evaluator.Apply(context.Background(), Changes{Upserts: []model.Trigger{disabled}, Deletes: []model.TriggerID{1}}); err != nil {
		t.Fatal(err)
	}
	r.floats(3, 0, 4, 0, 5, 0)
	if r.cache.Len() != 0 || len(r.evaluator.nodes) != 0 || r.evaluator.programs.Len() != 0 || len(r.evaluator.hosts) != 0 {
		t.Errorf("%d items, %d nodes, %d programs are left", r.cache.Len(), len(r.evaluator.nodes), r.evaluator.programs.Len())
	}
	r.apply(disabled) // comes back in PROBLEM
	r.floats(6, 0)
	r.want("1@1 problem", "2@1 problem", "1@2 ok", "2@6 ok")
}

func TestEvaluate_recovery(t *testing.T) {
	r := newRig(t)
	r.apply(
		model.Trigger{Expression: "last(/h/f)>10", RecoveryMode: model.RecoverByRecoveryExpression, Recovery: "last(/h/f)<5"},
		model.Trigger{Expression: "last(/h/f)>10", RecoveryMode: model.RecoverNever, ManualClose: true},
		model.Trigger{Expression: "last(/h/f)>10", RecoveryMode: model.RecoverByRecoveryExpression, Recovery: "last(/h/g)=1"},
		model.Trigger{Expression: "last(/h/f)>10", MultipleEvents: true, ManualClose: true})
	r.floats(1, 11)
	r.floats(2, 7)
	r.floats(3, 12, 4, 13)
	r.want("1@1 problem", "2@1 problem", "3@1 problem", "4@1 problem", "4@2 ok", "4@3 problem", "4@4 problem")
	b := model.NewBatch()
	b.AppendFloat(5, 5*second, 1) // touches trigger 3 only through its recovery expression, while it is still in PROBLEM
	r.send(b)
	r.floats(6, 4)
	want := []string{"1@1 problem", "2@1 problem", "3@1 problem", "4@1 problem", "4@2 ok", "4@3 problem", "4@4 problem", "1@6 ok", "3@6 ok", "4@6 ok", "4@6 ok"}
	r.want(want...)
	open := r.log.Problems()
	if len(open) != 1 || open[0].TriggerID != 2 {
		t.Fatalf("open %+v", open)
	}
	if err := r.evaluator.CloseProblem(context.Background(), 1, open[0].ID); !errors.Is(err, ErrNotClosable) {
		t.Errorf("error %v", err)
	}
	if err := r.evaluator.CloseProblem(context.Background(), 2, open[0].ID); err != nil {
		t.Fatal(err)
	}
	r.want(append(want, "2@1000 ok")...)
	r.floats(7, 20)
	r.want(append(want, "2@1000 ok", "1@7 problem", "2@7 problem", "3@7 problem", "4@7 problem")...)
}

// TestEvaluate_correlation has two problems with different tags: each goes with its own recovery, and the trigger is in PROBLEM until the last one
// did.
func TestEvaluate_correlation(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{
		Expression: "last(/h/f)>10", RecoveryMode: model.RecoverByRecoveryExpression, Recovery: "last(/h/f)<10", MultipleEvents: true, CorrelationTag: "g",
		Tags: []model.Tag{{Name: "g", Value: "{?last(/h/g)}"}},
	})
	g := func(at int64, v float64) {
		b := model.NewBatch()
		b.AppendFloat(5, at*second, v)
		r.send(b)
	}
	state := func(want bool) {
		t.Helper()
		if problem, _, _ := r.evaluator.State(1); problem != want {
			t.Errorf("problem is %v", problem)
		}
	}
	g(1, 1)
	r.floats(2, 11)
	g(3, 2)
	r.floats(4, 12)
	state(true)
	r.floats(5, 3) // closes the one of g=2
	r.want("1@2 problem", "1@4 problem", "1@5 ok")
	state(true)
	r.floats(6, 3)
	state(true)
	g(7, 1)
	r.floats(8, 3)
	r.want("1@2 problem", "1@4 problem", "1@5 ok", "1@8 ok")
	state(false)
	r.floats(9, 3)
	r.want("1@2 problem", "1@4 problem", "1@5 ok", "1@8 ok")
}

func TestCloseProblem_oneOfSeveral(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{Expression: "last(/h/f)>10", MultipleEvents: true, ManualClose: true})
	r.floats(1, 11, 2, 12)
	for i, want := range []bool{true, false} {
		problems := r.log.Problems()
		if err := r.evaluator.CloseProblem(context.Background(), 1, problems[0].ID); err != nil {
			t.Fatal(err)
		}
		if problem, _, _ := r.evaluator.State(1); problem != want {
			t.Errorf("after closing %d: problem is %v", i+1, problem)
		}
	}
}

// Two people close the same problem: the other one stays open, and the trigger in PROBLEM.
func TestCloseProblem_twice(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{Expression: "last(/h/f)>10", MultipleEvents: true, ManualClose: true})
	r.floats(1, 11, 2, 12)
	id := r.log.Problems()[0].ID
	for range 2 {
		if err := r.evaluator.CloseProblem(context.Background(), 1, id); err != nil {
			t.Fatal(err)
		}
		if problem, _, _ := r.evaluator.State(1); !problem || len(r.log.Problems()) != 1 {
			t.Errorf("problem is %v with %d open problems, want true with 1", problem, len(r.log.Problems()))
		}
	}
}

func TestEvaluate_dependencies(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{ID: 1, Expression: "last(/h/f)>10", DependsOn: []model.TriggerID{2}}, model.Trigger{ID: 2, Expression: "last(/h/g)=0", DependsOn: []model.TriggerID{3}},
		model.Trigger{ID: 3, Expression: "last(/h/u)=0"})
	b := model.NewBatch()
	// One batch, rows not in order of time: the dependent fires before its master, is quiet while it lasts, and
	// is heard again with its first value after.
	b.AppendFloat(1, 1*second, 11)
	b.AppendFloat(1, 2*second, 1)
	b.AppendFloat(1, 3*second, 11)
	b.AppendFloat(1, 4*second, 12)
	b.AppendFloat(1, 7*second, 13)
	b.AppendFloat(5, 3*second, 0)
	b.AppendFloat(5, 6*second, 1)
	r.send(b)
	r.want("1@1 problem", "1@2 ok", "2@3 problem", "2@6 ok", "1@7 problem")
	b = model.NewBatch()
	b.AppendUint(2, 8*second, 0) // the master's master
	b.AppendFloat(5, 8*second, 0)
	b.AppendFloat(1, 9*second, 0)
	r.send(b)
	b = model.NewBatch()
	b.AppendUint(2, 10*second, 1)
	r.send(b)
	r.floats(11, 0)
	r.want("1@1 problem", "1@2 ok", "2@3 problem", "2@6 ok", "1@7 problem", "3@8 problem", "3@10 ok", "1@11 ok")
}

func TestEvaluate_circleOfDependencies(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{ID: 1, Expression: "last(/h/f)>10", DependsOn: []model.TriggerID{2}}, model.Trigger{ID: 2, Expression: "last(/h/f)>10", DependsOn: []model.TriggerID{1}})
	r.floats(1, 11)
	if n := len(r.events()); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

func TestEvaluate_lateValues(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{Expression: "last(/h/f)>10"}, model.Trigger{Expression: "max(/h/f,10s)>10"}, model.Trigger{Expression: "last(/h/f)>10", MultipleEvents: true},
		model.Trigger{Expression: "last(/h/f)>10 and last(/h/g)=1"})
	b := model.NewBatch()
	b.AppendFloat(5, 99*second, 1)
	r.send(b)
	r.floats(100, 5)
	r.floats(90, 50) // older than the newest value and outside of the period
	r.want()
	r.floats(95, 60) // inside the period, whose maximum it is
	r.want("2@100 problem")
	r.floats(101, 11)
	r.floats(99, 12)
	r.want("2@100 problem", "1@101 problem", "3@101 problem", "4@101 problem")
	b = model.NewBatch()
	b.AppendFloat(5, 100*second, 0) // the newest of its item, though others are ahead
	r.send(b)
	r.want("2@100 problem", "1@101 problem", "3@101 problem", "4@101 problem", "4@101 ok")
	r.floats(1, 0, 0.5, 3) // long ago
	r.want("2@100 problem", "1@101 problem", "3@101 problem", "4@101 problem", "4@101 ok")
}

// TestEvaluate_stormOfOldValues sends values of 1970 for many items with windows.
func TestEvaluate_stormOfOldValues(t *testing.T) {
	r := newRig(t)
	r.now = time.Unix(1_700_000_000, 0)
	var triggers []model.Trigger
	for i := range 100 {
		key := fmt.Sprint("k", i)
		r.catalogue.add(model.ItemID(100+i), model.Float, "h", key)
		triggers = append(triggers, model.Trigger{Expression: "avg(/h/" + key + ",1h)>10 or change(/h/" + key + ")>5"})
	}
	r.apply(triggers...)
	fill := model.NewBatch()
	for i := range 100 {
		fill.AppendFloat(model.ItemID(100+i), r.now.UnixNano(), 1)
	}
	r.send(fill)
	r.engine.reads = 0
	for round := range 20 {
		b := model.NewBatch()
		for i := range 100 {
			b.AppendFloat(model.ItemID(100+i), int64(round)*second, 1000)
		}
		r.send(b)
	}
	r.want()
	if r.engine.reads != 0 {
		t.Errorf("%d reads of the history", r.engine.reads)
	}
}

func TestEvaluate_names(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{
		HostID: 7, Severity: model.High, Name: "plain", EventName: "Load on {HOST.NAME}: {ITEM.VALUE2} is over {?avg(/{HOST.HOST}/f,1m)}",
		Expression: "last(/h/f)>10 and last(/h/u)>1", OpData: "now {ITEM.LASTVALUE1}", Tags: []model.Tag{{Name: "host", Value: "{HOST.HOST}"}},
	})
	b := model.NewBatch()
	b.AppendUint(2, 1*second, 2048)
	b.AppendFloat(1, 1*second, 11)
	b.AppendFloat(1, 2*second, 13)
	r.send(b)
	r.want("1@1 problem")
	e := r.store.events[0]
	if e.Name != "Load on Host h: 2 KB is over 11" || e.OpData != "now 13 B" || e.Severity != model.High || e.HostID != 7 || e.Tags[0].Value != "h" {
		t.Errorf("event %+v", e)
	}
}

func TestEvaluate_failingStore(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{Expression: "last(/h/f)>10"})
	r.store.dieAt = r.store.calls + 1
	b := model.NewBatch()
	b.AppendFloat(1, 1*second, 11)
	if err := r.evaluator.Evaluate(context.Background(), r.engine.Append(b), b); !errors.Is(err, errDied) {
		t.Fatalf("error %v", err)
	}
	if len(r.log.Problems()) != 0 {
		t.Error("a problem is shown that is not stored")
	}
	r.store.dieAt = 0
	r.floats(2, 12)
	r.want("1@1 problem")
	if len(r.log.Problems()) != 1 {
		t.Error("the problem is not shown")
	}
}

// TestEvaluate_expensiveBurst sends 20,000 values of an item to a trigger that sorts an hour of them for each.
func TestEvaluate_expensiveBurst(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{Expression: "percentile(/h/f,1h,50)>10"}, model.Trigger{Expression: "last(/h/f)>10"})
	b := model.NewBatch()
	for i := range 20_000 {
		v := 0.0
		if i > 5_000 {
			v = 20
		}
		b.AppendFloat(1, int64(i+1)*second/10, v)
	}
	r.send(b)
	r.want("2@500.2 problem", "1@2000 problem") // the last time is evaluated
	if n := r.evaluator.skipped.Get(); n < 10_000 {
		t.Errorf("%d evaluations were left out", n)
	}
}

// TestEvaluator_severalGoroutines lets everything happen at once; the race detector watches.
func TestEvaluator_severalGoroutines(t *testing.T) {
	r := newRig(t)
	r.apply(model.Trigger{Expression: "last(/h/f)>10", EventName: "{?avg(/h/f,1m)}"}, model.Trigger{Expression: "nodata(/h/u,30s)=1"}, model.Trigger{Expression: "avg(/h/f,1m)>last(/h/u)"})
	ctx := context.Background()
	var wait sync.WaitGroup
	each := func(do func(i int) error) {
		wait.Go(func() {
			for i := range 200 {
				if err := do(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	each(func(i int) error {
		b := model.NewBatch()
		b.AppendFloat(1, int64(i)*second, float64(i%20))
		b.AppendUint(2, int64(i)*second, 5)
		return r.evaluator.Evaluate(ctx, r.engine.Append(b), b)
	})
	each(func(i int) error { return r.evaluator.Tick(ctx, time.Unix(int64(2000+i), 0)) })
	each(func(int) error { return r.evaluator.ItemsChanged(ctx, "h") })
	each(func(i int) error {
		d := model.Trigger{ID: 4, Enabled: i%2 == 0, Expression: "max(/h/f,2m)>3"}
		return r.evaluator.Apply(ctx, Changes{Upserts: []model.Trigger{d}})
	})
	each(func(int) error {
		r.log.Problems()
		r.evaluator.State(1)
		_, _ = r.evaluator.EvaluateText(ctx, "count(/h/f,1h)", 100*second)
		return r.log.Flush(ctx)
	})
	wait.Wait()
}

// bytesOf measures what the heap keeps after fill.
func bytesOf(fill func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	fill()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return after.HeapAlloc - before.HeapAlloc
}

func TestApply_takesLessThanAKibibytePerTrigger(t *testing.T) {
	const count = 30_000
	r := newRig(t)
	for i := range count {
		r.catalogue.add(model.ItemID(100+i), model.Float, "h", fmt.Sprintf("load.item[%d]", i))
	}
	b := model.NewBatch()
	for i := range count {
		b.AppendFloat(model.ItemID(100+i), second, 1)
	}
	size := bytesOf(func() {
		var triggers []model.Trigger
		for i := range count {
			triggers = append(triggers, model.Trigger{
				ID: model.TriggerID(i + 1), Enabled: true, Expression: fmt.Sprintf("last(/h/load.item[%d])>10 and avg(/h/load.item[%d],5m)>3", i, i),
			})
		}
		if err := r.evaluator.Apply(context.Background(), Changes{Upserts: triggers}); err != nil {
			t.Fatal(err)
		}
		r.cache.Add(b)
	})
	t.Logf("%d bytes a trigger with its item's values, %d programs", size/count, r.evaluator.programs.Len())
	if size/count > 1024 {
		t.Errorf("%d bytes a trigger", size/count)
	}
	runtime.KeepAlive(r)
}
