package trigger

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"tidemark/expr"
	"tidemark/model"
)

const (
	// maxLevels is how deep dependencies are followed, as in Zabbix.
	maxLevels = 32
	// maxMasters is how many triggers that one depends on, directly or not, are looked at.
	maxMasters = 256
	// maxValuesRead is how many values one trigger may go through one by one for one batch. Behind that it is evaluated at
	// its last time only, so that a burst of one item does not hold up all others.
	maxValuesRead = 2 << 20
	// maxIdleJobs is how much room for jobs is kept after a burst.
	maxIdleJobs = 1 << 18
	// shareSize is how many evaluations make another worker worth it.
	shareSize = 512
)

// job is an evaluation of one trigger at one time.
type job struct {
	at int64
	// row is the row that caused it; −1 for a timer.
	row int32
	// next is the next job of the same trigger, 1-based; zero: none.
	next int32
	// clamped says that the row is older than the time of the evaluation.
	clamped bool
	// quiet evaluations make no further problem of a trigger that is in PROBLEM: the cause is only in the recovery
	// expression.
	quiet bool
}

// verdict is what an evaluation found.
type verdict struct {
	t  *trigger
	at int64
	// failure is why there is none of the other.
	failure    expr.Failure
	inRecovery bool // the failure is one of the recovery expression
	isTrue     bool
	recovered  bool
	quiet      bool
}

// worker evaluates a share of the touched triggers.
type worker struct {
	machine     expr.Machine
	absence     func(item model.ItemID, now int64) (since int64, lag time.Duration)
	items       []expr.Item
	changes     []model.StateChange
	deferred    []verdict
	evaluations int
	failures    int
	skipped     int
	order       []int32
}

// scan finds the triggers that the rows of a batch touch, and when each is to be evaluated.
func (e *Evaluator) scan(b *model.Batch) {
	e.jobs, e.touched = e.jobs[:0], e.touched[:0]
	for _, n := range e.spelled {
		n.earlier = nil
	}
	clear(e.spelled)
	e.spelled = e.spelled[:0]
	nodes := e.byItem.Cursor()
	for i, item := range b.Items {
		if b.Flags[i].Skipped() {
			continue
		}
		n := nodes.Get(item)
		if n == nil {
			continue
		}
		if b.Types[i] != n.kind && b.Types[i] != model.Unsupported {
			continue
		}
		isLate := b.Flags[i]&model.Late != 0 || b.At[i] < n.newestAt
		if isLate {
			e.late.Inc()
		}
		newestAt := n.newestAt
		if n.note(b.Types[i], b.At[i]) {
			e.spelled = append(e.spelled, n)
		}
		for _, t := range n.triggers {
			if t.isBroken {
				continue
			}
			if !isLate {
				e.addJob(t, n, b.At[i], int32(i), max(b.At[i], t.lastAt))
				continue
			}
			// A value behind newer ones of its item changes no newest value, but perhaps a period's: as of now.
			at := max(b.At[i], t.lastAt, newestAt)
			if !t.newestOnly && at > b.At[i] {
				e.addJob(t, n, b.At[i], int32(i), at)
			}
		}
	}
}

// note keeps what a row says of its item, and tells whether a spell in which it was not supported moved to the earlier ones.
func (n *node) note(vt model.ValueType, at int64) bool {
	if vt != model.Unsupported {
		n.newestAt = max(n.newestAt, at)
		if n.supportedAt == 0 && at >= n.unsupportedAt {
			n.supportedAt = at
		}
		return false
	}
	if at < n.unsupportedAt || n.unsupportedAt != 0 && n.supportedAt == 0 {
		return false
	}
	moved := n.unsupportedAt != 0
	if moved {
		n.earlier = append(n.earlier, spell{n.unsupportedAt, n.supportedAt})
	}
	n.unsupportedAt, n.supportedAt = at, 0
	if n.newestAt > at {
		n.supportedAt = n.newestAt
	}
	return moved
}

// unsupported reports whether the item could not be measured at a time.
func (n *node) unsupported(at int64) bool {
	if n.unsupportedAt != 0 && n.unsupportedAt <= at {
		return n.supportedAt == 0 || at < n.supportedAt
	}
	for i := len(n.earlier) - 1; i >= 0; i-- {
		if s := n.earlier[i]; s.from <= at {
			return at < s.to
		}
	}
	return false
}

// addJob puts an evaluation behind those that the trigger has.
func (e *Evaluator) addJob(t *trigger, n *node, rowAt int64, row int32, at int64) {
	e.jobs = append(e.jobs, job{
		at: at, row: row, clamped: at != rowAt,
		quiet: t.recovery != nil && !slices.Contains(t.nodes[:t.recoveryFrom], n),
	})
	index := int32(len(e.jobs))
	if t.firstJob == 0 {
		t.firstJob, t.unsorted = index, false
		e.touched = append(e.touched, t)
	} else {
		last := &e.jobs[t.lastJob-1]
		last.next = index
		t.unsorted = t.unsorted || at < last.at
	}
	t.lastJob = index
}

// work evaluates the jobs of all touched triggers and returns what changed, in order of time.
func (e *Evaluator) work(ctx context.Context, b *model.Batch, now int64) []model.StateChange {
	workers := e.workers[:min(len(e.workers), len(e.jobs)/e.shareSize+1)]
	share := (len(e.touched) + len(workers) - 1) / len(workers)
	var wait sync.WaitGroup
	for i, w := range workers {
		w.changes, w.deferred, w.evaluations, w.failures, w.skipped = w.changes[:0], w.deferred[:0], 0, 0, 0
		part := e.touched[min(i*share, len(e.touched)):min((i+1)*share, len(e.touched))]
		if i == len(workers)-1 {
			e.evaluatePart(ctx, w, part, b, now)
			break
		}
		wait.Go(func() { e.evaluatePart(ctx, w, part, b, now) })
	}
	wait.Wait()
	e.changes = e.changes[:0]
	for _, w := range workers {
		e.changes = append(e.changes, w.changes...)
		e.evaluations.Add(w.evaluations)
		e.failures.Add(w.failures)
		e.skipped.Add(w.skipped)
	}
	e.decideDeferred(workers)
	slices.SortStableFunc(e.changes, func(x, y model.StateChange) int {
		return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(e.levelOf(x.TriggerID), e.levelOf(y.TriggerID)), cmp.Compare(x.TriggerID, y.TriggerID))
	})
	clear(e.touched)
	if cap(e.jobs) > maxIdleJobs {
		e.jobs = nil
	}
	return e.changes
}

func (e *Evaluator) levelOf(id model.TriggerID) uint8 {
	if t, ok := e.triggers[id]; ok {
		return t.level
	}
	return 0
}

// evaluatePart evaluates some of the touched triggers.
func (e *Evaluator) evaluatePart(ctx context.Context, w *worker, part []*trigger, b *model.Batch, now int64) {
	for _, t := range part {
		w.evaluateTrigger(ctx, e, t, b, now)
		t.firstJob, t.lastJob = 0, 0
	}
	clear(w.items[:cap(w.items)])
}

// evaluateTrigger runs the jobs of one trigger in rising time. Jobs at the same time are one evaluation.
func (w *worker) evaluateTrigger(ctx context.Context, e *Evaluator, t *trigger, b *model.Batch, now int64) {
	w.order = w.order[:0]
	for i := t.firstJob; i != 0; i = e.jobs[i-1].next {
		w.order = append(w.order, i-1)
	}
	if t.unsorted {
		slices.SortStableFunc(w.order, func(x, y int32) int { return cmp.Compare(e.jobs[x].at, e.jobs[y].at) })
	}
	clamped, quiet := true, true
	limit := w.machine.ValuesRead + maxValuesRead
	for k, index := range w.order {
		j := &e.jobs[index]
		clamped, quiet = clamped && j.clamped, quiet && j.quiet
		if k+1 < len(w.order) && e.jobs[w.order[k+1]].at == j.at {
			continue
		}
		if w.machine.ValuesRead > limit && k+1 < len(w.order) {
			w.skipped++
			continue
		}
		v := w.evaluateJob(ctx, t, j, b, now)
		v.quiet = clamped || quiet
		clamped, quiet = true, true
		if t.related {
			w.deferred = append(w.deferred, v)
		} else if change, changed := t.decide(&v, false); changed {
			w.changes = append(w.changes, change)
		}
	}
}

// evaluateJob evaluates the expression, and the recovery expression where it may matter.
func (w *worker) evaluateJob(ctx context.Context, t *trigger, j *job, b *model.Batch, now int64) verdict {
	moment := expr.Moment{At: j.at, Now: max(now, j.at)}
	rowItem := model.ItemID(0)
	unsupportedRow := false
	if j.row >= 0 {
		t.lastAt = max(t.lastAt, j.at)
		if !j.clamped {
			i := int(j.row)
			rowItem, unsupportedRow = b.Items[i], b.Types[i] == model.Unsupported
			if !unsupportedRow {
				moment.Row = expr.Row{Item: rowItem, At: j.at, Type: b.Types[i], Bits: b.Bits[i], Arena: b.Arena}
			}
		}
	}
	w.items = w.items[:0]
	for _, n := range t.nodes {
		item := expr.Item{ID: n.id, Type: n.kind, Missing: n.id == 0, NewestAt: n.newestAt}
		if t.slot != noSlot {
			item.Since = n.since
			if w.absence != nil && n.id != 0 {
				item.ProxySince, item.Lag = w.absence(n.id, moment.Now)
			}
		}
		if n.id == rowItem && rowItem != 0 {
			item.Unsupported = unsupportedRow
		} else {
			item.Unsupported = n.unsupported(j.at)
		}
		w.items = append(w.items, item)
	}
	w.evaluations++
	r := w.machine.Evaluate(ctx, t.program, w.items[:t.recoveryFrom], moment)
	v := verdict{t: t, at: j.at, failure: r.Failure}
	v.isTrue = v.failure.Code == expr.FailNone && r.True()
	if t.recovery != nil && v.failure.Code == expr.FailNone && !v.isTrue && (t.related || t.problem) {
		r = w.machine.Evaluate(ctx, t.recovery, w.items[t.recoveryFrom:], moment)
		v.failure, v.inRecovery = r.Failure, true
		v.recovered = v.failure.Code == expr.FailNone && r.True()
	}
	if v.failure.Code != expr.FailNone {
		w.failures++
	}
	return v
}
