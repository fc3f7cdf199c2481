package event

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/model"
)

const (
	// lsnEvery is how often an LSN is written that came without events.
	lsnEvery = time.Second
	// maxPerTrigger bounds the open problems of one trigger with multiple events; further ones are counted only.
	maxPerTrigger = 1000
	// maxPending bounds events that wait for a store that fails; then Record blocks, which slows collection down.
	maxPending = 50_000
	// eagerEvents may wait without a pause between the tries; more take too long to write in vain again and again, while
	// those who ask for problems wait.
	eagerEvents = 1000
	// pauseFactor is how many times longer than a try the pause after it is.
	pauseFactor = 4
	// tellEvery is how often a failing store is told of.
	tellEvery = time.Minute
	// retryEvery is how often a blocked Record tries again.
	retryEvery = 200 * time.Millisecond
)

// ErrClosed is returned by Record after Close.
var ErrClosed = errors.New("event log: closed")

// Options of a Log. Store and Objects are needed.
type Options struct {
	Store   Store
	Objects Objects
	// Values and Expressions fill {ITEM.VALUE} and {?expression}; nil: they become *UNKNOWN*.
	Values Values
	// Past finds the values of the time at which an open problem began, which may be long ago; nil is Values.
	Past        Values
	Expressions Expressions
	// Sink is told of events after they were stored; nil: nobody.
	Sink Sink
	// Zone is the time zone of {EVENT.DATE} and {EVENT.TIME}; nil is the local one.
	Zone *time.Location
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Metrics receives the log's metrics; nil: none.
	Metrics *metrics.Set
	// Logger; nil: discard.
	Logger *slog.Logger
}

// Log turns state changes into events and problems. All methods may be called from several goroutines.
type Log struct {
	options Options

	mu     sync.Mutex
	closed bool
	nextID model.EventID
	states map[model.TriggerID]model.TriggerState
	// open are the open problems, by event and by trigger in rising order.
	open      map[model.EventID]model.Problem
	byTrigger map[model.TriggerID][]model.EventID

	// events and changed are what is not written yet, evaluated the LSN that goes with them.
	events    []model.Event
	changed   map[model.TriggerID]model.TriggerState
	evaluated model.LSN
	written   model.LSN
	writtenAt time.Time
	// failure is why the last try failed, and nextTry when many events may be tried again.
	failure        error
	nextTry        time.Time
	published      []model.Problem
	publishedStale bool
	subscribers    map[chan struct{}]struct{}

	// past are values of the begin of problems that were read for their operational data.
	pastMu sync.Mutex
	past   map[moment]string

	recorded, dropped, failures *metrics.Counter
}

// Open loads the states and open problems of the store.
//
// The log gives the ids of events itself, rising from behind Loaded.LastEventID.
func Open(ctx context.Context, o Options) (*Log, error) {
	loaded, err := o.Store.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("load events: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Zone == nil {
		o.Zone = time.Local
	}
	if o.Past == nil {
		o.Past = o.Values
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	l := &Log{
		options: o, nextID: loaded.LastEventID + 1, states: make(map[model.TriggerID]model.TriggerState, len(loaded.States)),
		open: make(map[model.EventID]model.Problem), byTrigger: make(map[model.TriggerID][]model.EventID),
		changed: make(map[model.TriggerID]model.TriggerState), evaluated: loaded.Evaluated, written: loaded.Evaluated,
		subscribers: make(map[chan struct{}]struct{}), publishedStale: true, past: make(map[moment]string),
	}
	l.use(&loaded)
	l.recorded = o.Metrics.NewCounter("tidemark_event_events_total")
	l.dropped = o.Metrics.NewCounter("tidemark_event_dropped_problems_total")
	l.failures = o.Metrics.NewCounter("tidemark_event_store_failures_total")
	o.Metrics.NewGauge("tidemark_event_open_problems", func() float64 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return float64(len(l.open))
	})
	return l, nil
}

// use takes over what the store knows.
func (l *Log) use(loaded *Loaded) {
	clear(l.states)
	clear(l.open)
	clear(l.byTrigger)
	for _, s := range loaded.States {
		l.states[s.TriggerID] = s
	}
	slices.SortFunc(loaded.Problems, func(a, b model.Problem) int { return cmp.Compare(a.ID, b.ID) })
	for _, p := range loaded.Problems {
		l.open[p.ID] = p
		l.byTrigger[p.TriggerID] = append(l.byTrigger[p.TriggerID], p.ID)
		l.nextID = max(l.nextID, p.ID+1)
	}
	l.publishedStale = true
}

// Reload reads again what the store knows, in the place of what was known: for a store that somebody else writes to. Nothing may be recorded here.
func (l *Log) Reload(ctx context.Context) error {
	loaded, err := l.options.Store.Load(ctx)
	if err != nil {
		return fmt.Errorf("load events: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use(&loaded)
	l.notify()
	return nil
}

// States returns the states of all triggers that ever changed, for the evaluator's start.
func (l *Log) States() []model.TriggerState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.states))
}

// Evaluated returns the LSN that is stored, from which evaluation goes on after a restart.
func (l *Log) Evaluated() model.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written
}

// OpenProblems returns how many problems of a trigger are open.
func (l *Log) OpenProblems(id model.TriggerID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byTrigger[id])
}

// Problems returns the open problems that are stored, newest first. The caller must not change them.
func (l *Log) Problems() []model.Problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.publishedStale && len(l.events) == 0 {
		l.published = slices.SortedFunc(maps.Values(l.open), func(a, b model.Problem) int { return cmp.Compare(b.ID, a.ID) })
		l.publishedStale = false
	}
	return l.published
}

// Subscribe returns a channel that has a value after problems changed; changes that come quickly may share one. The function
// ends the subscription.
func (l *Log) Subscribe() (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subscribers[ch] = struct{}{}
	return ch, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.subscribers, ch)
	}
}

// Record makes events of what evaluation changed and writes them with the states and the LSN in one transaction. Changes
// without an event wait at most a second for company.
//
// After an error of the store everything is kept and written with the next call; when too much waits, Record blocks until
// the store works again or ctx ends.
func (l *Log) Record(ctx context.Context, lsn model.LSN, changes []model.StateChange) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	for i := range changes {
		l.apply(ctx, &changes[i])
	}
	l.evaluated = max(l.evaluated, lsn)
	if len(l.events) == 0 && l.options.Now().Sub(l.writtenAt) < lsnEvery {
		return nil
	}
	err := l.tryWrite(ctx)
	for err != nil && len(l.events) > maxPending {
		l.mu.Unlock() // readers of problems need not wait for the store
		select {
		case <-ctx.Done():
		case <-time.After(retryEvery):
		}
		l.mu.Lock()
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		err = l.tryWrite(ctx)
	}
	return err
}

// tryWrite stores what waits, unless a try with as much failed a moment ago.
func (l *Log) tryWrite(ctx context.Context) error {
	if l.failure != nil && len(l.events) > eagerEvents && time.Now().Before(l.nextTry) {
		return l.failure
	}
	return l.write(ctx)
}

// Flush writes what waits.
func (l *Log) Flush(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(ctx)
}

// Run writes what waits every second, until ctx ends. While the store fails it says so once a minute.
func (l *Log) Run(ctx context.Context) error {
	ticker := time.NewTicker(lsnEvery)
	defer ticker.Stop()
	var told time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			l.mu.Lock()
			err := l.tryWrite(ctx)
			l.mu.Unlock()
			switch now := l.options.Now(); {
			case err == nil && !told.IsZero():
				l.options.Logger.Info("event log: what waited is written")
				told = time.Time{}
			case err != nil && ctx.Err() == nil && now.Sub(told) >= tellEvery:
				l.options.Logger.Error("event log: write; it is kept and tried again every second", "error", err, "waiting_events", l.pending())
				told = now
			}
		}
	}
}

func (l *Log) pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.events)
}

// Close writes what waits, unless it is much and the last try failed: a stop must not take longer than that, and the next start
// makes these events again from the stored values behind the evaluated LSN. A second call does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if l.failure != nil && len(l.events) > eagerEvents {
		return l.failure
	}
	return l.write(context.Background())
}

// write stores everything that waits in one transaction.
func (l *Log) write(ctx context.Context) error {
	if len(l.events) == 0 && len(l.changed) == 0 && l.evaluated == l.written {
		return nil
	}
	l.writtenAt = l.options.Now()
	start := time.Now()
	states := slices.SortedFunc(maps.Values(l.changed), func(a, b model.TriggerState) int { return cmp.Compare(a.TriggerID, b.TriggerID) })
	if err := l.options.Store.Record(ctx, Record{Events: l.events, States: states, Evaluated: l.evaluated}); err != nil {
		l.failures.Inc()
		l.failure = fmt.Errorf("record %d events up to lsn %d: %w", len(l.events), l.evaluated, err)
		l.nextTry = time.Now().Add(pauseFactor * time.Since(start))
		return l.failure
	}
	l.failure = nil
	l.written = l.evaluated
	clear(l.changed)
	if len(l.events) == 0 {
		return nil
	}
	l.recorded.Add(len(l.events))
	if l.options.Sink != nil {
		l.options.Sink.Put(l.events)
	}
	clear(l.events)
	l.events = l.events[:0]
	l.publishedStale = true
	l.notify()
	return nil
}

// notify tells subscribers that problems changed.
func (l *Log) notify() {
	for ch := range l.subscribers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// apply makes the events of one change and notes the new state.
func (l *Log) apply(ctx context.Context, c *model.StateChange) {
	switch {
	case c.Event && c.Closes != 0:
		l.resolve(c, []model.EventID{c.Closes})
	case c.Event && c.Problem:
		l.raise(ctx, c)
	case c.Event:
		l.resolve(c, l.recovered(ctx, c))
	}
	s := l.states[c.TriggerID]
	s.TriggerID, s.Problem, s.Error = c.TriggerID, c.Problem, c.Error
	if c.Event && !c.Problem && len(l.byTrigger[c.TriggerID]) > 0 {
		s.Problem = true // some problems do not have the recovery's tag
	} else if c.Event {
		s.ChangedAt = c.At
	}
	s.OpenProblem = 0
	if ids := l.byTrigger[c.TriggerID]; len(ids) > 0 {
		s.OpenProblem = ids[len(ids)-1]
	}
	l.states[c.TriggerID] = s
	l.changed[c.TriggerID] = s
}

// raise opens a problem.
func (l *Log) raise(ctx context.Context, c *model.StateChange) {
	if len(l.byTrigger[c.TriggerID]) >= maxPerTrigger {
		l.dropped.Inc()
		return
	}
	e := model.Event{ID: l.nextID, TriggerID: c.TriggerID, At: c.At, Problem: true}
	l.nextID++
	l.describe(ctx, &e)
	l.events = append(l.events, e)
	l.open[e.ID] = model.Problem{Event: e}
	l.byTrigger[e.TriggerID] = append(l.byTrigger[e.TriggerID], e.ID)
}

// recovered returns the problems that a recovery closes: all of the trigger, or those whose value of its correlation tag is the recovery's.
func (l *Log) recovered(ctx context.Context, c *model.StateChange) []model.EventID {
	ids := l.byTrigger[c.TriggerID]
	t, ok := l.options.Objects.TriggerByID(c.TriggerID)
	if !ok || t.CorrelationTag == "" || len(ids) == 0 {
		return ids
	}
	e := model.Event{TriggerID: c.TriggerID, At: c.At}
	l.describe(ctx, &e)
	var same []model.EventID
	for _, id := range ids {
		p := l.open[id]
		if slices.ContainsFunc(p.Tags, func(tag model.Tag) bool { return tag.Name == t.CorrelationTag && slices.Contains(e.Tags, tag) }) {
			same = append(same, id)
		}
	}
	return same
}

// resolve closes open problems, each by an event of its own.
func (l *Log) resolve(c *model.StateChange, ids []model.EventID) {
	for _, id := range slices.Clone(ids) {
		p, ok := l.open[id]
		if !ok || p.TriggerID != c.TriggerID {
			continue
		}
		e := p.Event
		// A problem may be made by the clock of a timer and end by that of a value, which can be older. As in Zabbix the event's time is the value's; but a problem
		// that ended before it began has no duration, so its end is never before its start.
		e.ID, e.At, e.Problem, e.ProblemID = l.nextID, max(c.At, p.At), false, id
		l.nextID++
		l.events = append(l.events, e)
		l.drop(id, c.TriggerID)
	}
}

// drop takes a problem out of the open ones.
func (l *Log) drop(id model.EventID, trigger model.TriggerID) {
	delete(l.open, id)
	rest := slices.DeleteFunc(l.byTrigger[trigger], func(other model.EventID) bool { return other == id })
	if len(rest) == 0 {
		delete(l.byTrigger, trigger)
		return
	}
	l.byTrigger[trigger] = rest
}

// Forget drops the states and open problems of triggers that were deleted, after what waits was written. The caller
// deletes the stored rows afterwards.
func (l *Log) Forget(ctx context.Context, ids []model.TriggerID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.write(ctx)
	for _, id := range ids {
		for _, problem := range slices.Clone(l.byTrigger[id]) {
			l.drop(problem, id)
		}
		delete(l.states, id)
		delete(l.changed, id)
	}
	l.publishedStale = true
	return err
}
