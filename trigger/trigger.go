// Package trigger evaluates triggers: which expressions the values of a batch touch, what they yield, and what that
// changes.
//
// The Evaluator keeps for every trigger its program, shared with all triggers that differ only in their items, and its
// state. A batch is evaluated in three steps: a scan of its rows finds what is to be evaluated when; workers evaluate the
// programs, each trigger by one worker in rising time; what changed is put in order of time and handed to Events in one call.
// The design, and where it differs from Zabbix, is in docs/design/0013-trigger-evaluation.md.
package trigger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/expr"
	"tidemark/internal/idtable"
	"tidemark/model"
)

// Items resolves what expressions name.
type Items interface {
	// ItemByKey finds an enabled item of an enabled host by the host's technical name and the item's key.
	ItemByKey(host, key string) (model.ItemID, model.ValueType, bool)
}

// Keeper keeps the values that triggers ask for.
type Keeper interface {
	// Add takes the values of a batch that is stored already.
	Add(b *model.Batch)
	// Ask makes it keep at least count newest values of an item and those of the last span; Release undoes one Ask.
	Ask(item model.ItemID, t model.ValueType, span time.Duration, count int)
	Release(item model.ItemID, span time.Duration, count int)
}

// Values keeps and finds values.
type Values interface {
	Keeper
	expr.Values
}

// Events takes what evaluation changed.
type Events interface {
	// Record takes the changes of one batch, in order of time, and the LSN up to which triggers are evaluated with them. The
	// changes are valid during the call.
	Record(ctx context.Context, lsn model.LSN, changes []model.StateChange) error
	// OpenProblems returns how many problems of a trigger are open.
	OpenProblems(id model.TriggerID) int
	// Problem returns an open problem; false when it is over or unknown.
	Problem(id model.EventID) (model.Problem, bool)
}

// Options of an Evaluator. Values, Events and Items are needed.
type Options struct {
	Values Values
	Events Events
	Items  Items
	// Trends may be nil: functions of trends are unknown then.
	Trends expr.Trends
	// Absence, if not nil, says of the values of an item that come by way of a proxy since when none of an earlier time can come any more,
	// Unix nanoseconds, and for how long nothing was heard of the proxy. It is asked at now; zeros for other items.
	Absence func(item model.ItemID, now int64) (since int64, lag time.Duration)
	// States are the stored states, and Evaluated the LSN that they belong to.
	States    []model.TriggerState
	Evaluated model.LSN
	// Workers is how many goroutines evaluate a large batch; zero is GOMAXPROCS.
	Workers int
	// Zone is the time zone of date functions; nil is the local one.
	Zone *time.Location
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Metrics receives the evaluator's metrics; nil: none.
	Metrics *metrics.Set
	// Logger; nil: discard.
	Logger *slog.Logger
}

// Evaluator evaluates triggers. All methods may be called from several goroutines; Evaluate, Tick and Apply wait for each other.
type Evaluator struct {
	values Values
	events Events
	items  Items
	trends expr.Trends
	now    func() time.Time
	logger *slog.Logger
	zone   *time.Location

	// applying is held by a whole Apply, mu by one of its shares, a batch or a tick.
	applying sync.Mutex

	mu        sync.Mutex
	evaluated model.LSN
	started   int64
	triggers  map[model.TriggerID]*trigger
	// nodes are the items that triggers name, by name, by host, and those that exist by id.
	nodes    map[expr.Ref]*node
	hosts    map[string]*hostNodes
	byItem   idtable.Table[model.ItemID, node]
	programs expr.Interner
	// states are those of triggers that are not there (yet).
	states map[model.TriggerID]model.TriggerState
	// dependents counts for each trigger how many depend on it.
	dependents map[model.TriggerID]int
	timers     [timerSlots]map[*trigger]struct{}
	ticked     int64

	// Scratch of one batch.
	jobs    []job
	touched []*trigger
	spelled []*node // nodes with earlier spells, perhaps more than once
	workers []*worker
	// shareSize is a field so that tests can share out small batches too.
	shareSize int
	changes   []model.StateChange
	masters   []model.TriggerID

	evaluations, failures, late, skipped *metrics.Counter
	seconds                              *metrics.Histogram
	timerSeconds                         *metrics.FloatCounter
}

// New returns an evaluator without triggers.
func New(o Options) *Evaluator {
	e := &Evaluator{
		values: o.Values, events: o.Events, items: o.Items, trends: o.Trends, now: o.Now, logger: o.Logger, zone: o.Zone, evaluated: o.Evaluated,
		triggers: make(map[model.TriggerID]*trigger), nodes: make(map[expr.Ref]*node), hosts: make(map[string]*hostNodes),
		states:     make(map[model.TriggerID]model.TriggerState, len(o.States)),
		dependents: make(map[model.TriggerID]int), shareSize: shareSize,
	}
	if e.now == nil {
		e.now = time.Now
	}
	if e.logger == nil {
		e.logger = slog.New(slog.DiscardHandler)
	}
	if e.zone == nil {
		e.zone = time.Local
	}
	e.started = e.now().UnixNano()
	for _, s := range o.States {
		e.states[s.TriggerID] = s
	}
	for i := range e.timers {
		e.timers[i] = make(map[*trigger]struct{})
	}
	count := o.Workers
	if count <= 0 {
		count = runtime.GOMAXPROCS(0)
	}
	for range count {
		e.workers = append(e.workers, &worker{absence: o.Absence, machine: expr.Machine{Values: e.values, Trends: o.Trends, Zone: e.zone}})
	}
	e.meter(o.Metrics)
	return e
}

func (e *Evaluator) meter(set *metrics.Set) {
	if set == nil {
		set = metrics.NewSet()
	}
	e.evaluations = set.NewCounter("tidemark_trigger_evaluations_total")
	e.failures = set.NewCounter("tidemark_trigger_unknown_results_total")
	e.late = set.NewCounter("tidemark_trigger_late_values_total")
	e.skipped = set.NewCounter("tidemark_trigger_skipped_evaluations_total")
	e.seconds = set.NewHistogram("tidemark_trigger_batch_seconds")
	e.timerSeconds = set.NewFloatCounter("tidemark_trigger_timer_busy_seconds_total")
	set.NewGauge("tidemark_trigger_triggers", func() float64 {
		e.mu.Lock()
		defer e.mu.Unlock()
		return float64(len(e.triggers))
	})
	set.NewGauge("tidemark_trigger_programs", func() float64 { return float64(e.programs.Len()) })
}

// Evaluate evaluates the triggers that a stored batch touches and records what changed together with lsn. An error is
// one of Events.Record; the evaluator's state is that after the batch all the same.
func (e *Evaluator) Evaluate(ctx context.Context, lsn model.LSN, b *model.Batch) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	start := time.Now()
	e.values.Add(b)
	e.scan(b)
	// An evaluation that began is finished: a read that is broken off would look like a failing history.
	changes := e.work(context.WithoutCancel(ctx), b, e.now().UnixNano())
	e.seconds.UpdateDuration(start)
	e.evaluated = max(e.evaluated, lsn)
	return e.record(ctx, changes)
}

// record hands changes to the events. A recovery of a trigger whose problems are closed by tag may leave some open; then it is still in PROBLEM.
func (e *Evaluator) record(ctx context.Context, changes []model.StateChange) error {
	err := e.events.Record(ctx, e.evaluated, changes)
	for i := range changes {
		if t := e.triggers[changes[i].TriggerID]; t != nil && t.byTag && changes[i].Event {
			t.problem = e.events.OpenProblems(t.id) > 0
		}
	}
	return err
}

// State returns the present state of a trigger for display; false when the evaluator does not know it.
func (e *Evaluator) State(id model.TriggerID) (problem bool, failure string, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, ok := e.triggers[id]
	if !ok {
		return false, "", false
	}
	return t.problem, t.failureText, true
}

// ErrNotClosable is returned by CloseProblem for triggers that do not allow it.
var ErrNotClosable = errors.New("the trigger does not allow to close its problems by hand")

// Closable returns why the problems of a trigger cannot be closed by hand; nil when they can.
func (e *Evaluator) Closable(id model.TriggerID) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closable(id)
}

func (e *Evaluator) closable(id model.TriggerID) error {
	t, ok := e.triggers[id]
	if !ok {
		return fmt.Errorf("trigger %d is not active", id)
	}
	if !t.manualClose {
		return ErrNotClosable
	}
	return nil
}

// CloseProblem closes one open problem by hand. The trigger goes back to OK with its last one. One that ended meanwhile, by a value or by somebody
// else, changes nothing.
func (e *Evaluator) CloseProblem(ctx context.Context, id model.TriggerID, problem model.EventID) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.closable(id); err != nil {
		return fmt.Errorf("close problem %d: %w", problem, err)
	}
	if p, open := e.events.Problem(problem); !open || p.TriggerID != id {
		return nil
	}
	t := e.triggers[id]
	t.problem = e.events.OpenProblems(id) > 1
	change := model.StateChange{
		TriggerID: id, At: e.now().UnixNano(), Problem: t.problem, Event: true, Error: t.failureText, Closes: problem,
	}
	return e.record(ctx, []model.StateChange{change})
}

// EvaluateText evaluates an expression that belongs to no trigger, such as a macro {?…} of a name, and returns its result as
// text. It takes no lock of the evaluator, so Events may call it during Record.
func (e *Evaluator) EvaluateText(ctx context.Context, expression string, at int64) (string, error) {
	parsed, err := expr.Parse(expression)
	if err != nil {
		return "", err
	}
	items := make([]expr.Item, len(parsed.Refs))
	for i, ref := range parsed.Refs {
		id, t, ok := e.items.ItemByKey(ref.Host, ref.Key)
		items[i] = expr.Item{ID: id, Type: t, Missing: !ok, Since: e.started}
	}
	for i := range parsed.Program.Funcs {
		f := &parsed.Program.Funcs[i]
		if item := items[f.Ref]; !item.Missing {
			span, count := f.Need()
			e.values.Ask(item.ID, item.Type, span, count)
			defer e.values.Release(item.ID, span, count)
		}
	}
	m := expr.Machine{Values: e.values, Trends: e.trends, Zone: e.zone}
	r := m.Evaluate(ctx, parsed.Program, items, expr.Moment{At: at, Now: e.now().UnixNano()})
	if r.Failure.Code != expr.FailNone {
		return "", errors.New(parsed.Program.FailureText(r.Failure, parsed.Refs))
	}
	return r.String(), nil
}
