// Package discovery is low-level discovery: it turns the values of discovery rules into the items, triggers and hosts that should exist.
//
// Take is called for each value of a rule and never waits: of several values of one rule that come before the first is worked on, the
// newest counts, because each is the complete truth. A value that is the same as the one before costs a hash and nothing else. A value that
// cannot be read changes nothing; the rule shows why.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/model"
)

// Rules knows the discovery rules in force.
type Rules interface {
	// Rule finds the rule whose values an item takes. The rule must not change.
	Rule(item model.ItemID) (*model.Rule, bool)
	// HostRevision is the revision at which a host last changed.
	HostRevision(host model.HostID) uint64
}

// Store makes what was found; confdb is one.
type Store interface {
	Discover(ctx context.Context, x *model.Discovery) (*model.Discovered, error)
	// RuleFailed keeps why a rule's value with that order could not be used; an empty reason takes an earlier one away.
	RuleFailed(ctx context.Context, item model.ItemID, order int64, reason string) error
	// KeepRuleValues keeps values until Discover or RuleFailed ends them; one that is not newer than what was kept or ended before is left out.
	KeepRuleValues(ctx context.Context, values []model.RuleValue) error
	// KeptRuleValues calls fn for each value that is kept and returns the order of the newest that was ever kept or ended.
	KeptRuleValues(ctx context.Context, fn func(model.RuleValue)) (newest int64, err error)
	// ExpireDiscovered disables and deletes what was lost and whose time has come.
	ExpireDiscovered(ctx context.Context, now time.Time) (disabled, deleted int, err error)
}

// Limits of discovery.
const (
	// MaxPayloadBytes is the longest value of a rule.
	MaxPayloadBytes = 16 << 20
	// MaxRows is how many elements one value may have.
	MaxRows = 50_000
	// MaxObjects is how many objects one rule may make; what is beyond is left out, counted and told.
	MaxObjects = 50_000
	// maxWaitingBytes bounds the values that wait.
	maxWaitingBytes = 256 << 20
	// guardedRows is from how many elements on a rule is guarded against losing most of them at once: a value with less than one in lossShare of those
	// that there were is taken when it comes lossValues times in a row.
	guardedRows = 10
	lossShare   = 4
	lossValues  = 3
	// workers is how many rules are worked on at once; rules of one host take turns.
	workers = 2
	// expireEvery is how often lost objects are looked at.
	expireEvery = time.Minute
)

// Options of New.
type Options struct {
	// Rules returns what is in force now.
	Rules func() Rules
	Store Store
	// Metrics and Logger may be nil.
	Metrics *metrics.Set
	Logger  *slog.Logger
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// MaxObjects bounds the objects of one rule; 0: MaxObjects.
	MaxObjects int
}

// Engine works on the values of discovery rules.
type Engine struct {
	o      Options
	logger *slog.Logger
	now    func() time.Time
	seed   maphash.Seed

	mu sync.Mutex
	// room is signalled when something waits, and when a host is free again.
	room    sync.Cond
	waiting map[model.ItemID]*payload
	order   []model.ItemID
	bytes   int
	// working are the values that workers have; newest is the order of the newest value: no two have the same.
	working map[model.ItemID]*payload
	newest  int64
	busy    map[model.HostID]bool
	done    map[model.ItemID]result
	closed  bool
	// keep has room for one sign that there is something to keep.
	keep chan struct{}

	values, unchanged, failed, created, updated, lost, refused, deleted, disabled, dropped, heldBack *metrics.Counter
	seconds                                                                                          *metrics.FloatCounter
}

// result is what the last value of a rule came to.
type result struct {
	sum      uint64
	revision uint64
	reason   string
	// applied is set when the value was; then an equal one needs nothing.
	applied bool
	// undone is set when the store failed: the value is worked on again.
	undone bool
	// rows is how many elements the last applied value had, held how many values in a row were held back because most of them were missing.
	rows, held int
}

// New returns an engine; Run works.
func New(o Options) *Engine {
	e := &Engine{
		o: o, logger: o.Logger, now: o.Now, seed: maphash.MakeSeed(), waiting: map[model.ItemID]*payload{}, working: map[model.ItemID]*payload{},
		busy: map[model.HostID]bool{}, done: map[model.ItemID]result{}, keep: make(chan struct{}, 1),
	}
	e.room.L = &e.mu
	if e.logger == nil {
		e.logger = slog.New(slog.DiscardHandler)
	}
	if e.now == nil {
		e.now = time.Now
	}
	if e.o.MaxObjects == 0 {
		e.o.MaxObjects = MaxObjects
	}
	set := o.Metrics
	if set == nil {
		set = metrics.NewSet()
	}
	count := func(name string) *metrics.Counter { return set.NewCounter("tidemark_discovery_" + name + "_total") }
	e.values, e.unchanged, e.failed, e.dropped = count("values"), count("unchanged_values"), count("failed_values"), count("overtaken_values")
	e.created, e.updated, e.lost = count("created_objects"), count("updated_objects"), count("lost_objects")
	e.refused, e.deleted, e.disabled = count("refused_objects"), count("deleted_objects"), count("disabled_objects")
	e.heldBack = count("held_back_values")
	e.seconds = set.NewFloatCounter("tidemark_discovery_busy_seconds_total")
	set.NewGauge("tidemark_discovery_waiting_values", func() float64 {
		e.mu.Lock()
		defer e.mu.Unlock()
		return float64(len(e.waiting))
	})
	return e
}

// Forget drops what is remembered of rules that are gone.
func (e *Engine) Forget(items []model.ItemID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range items {
		delete(e.done, id)
	}
}

// Run works until ctx ends; what waits then is kept for the next start.
func (e *Engine) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.closed = true
		e.room.Broadcast()
	})
	defer stop()
	e.load(ctx)
	var working sync.WaitGroup
	for range workers {
		working.Go(func() { e.work(ctx) })
	}
	working.Go(func() { e.keepSlow(ctx) })
	ticker := time.NewTicker(expireEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			working.Wait()
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
			defer cancel()
			e.keepWaiting(ending, true)
			return nil
		case <-ticker.C:
			e.Expire(ctx)
		}
	}
}

// Expire disables and deletes what was lost and whose time has come.
func (e *Engine) Expire(ctx context.Context) {
	disabled, deleted, err := e.o.Store.ExpireDiscovered(ctx, e.now())
	e.disabled.Add(disabled)
	e.deleted.Add(deleted)
	if err != nil && ctx.Err() == nil {
		e.logger.Error("lost discovered objects could not be deleted; it is tried again", "error", err)
	}
}

// Process works on one value of a rule. Of the host it remembers the revision that the rule was read from, or, when nothing else changed
// the host meanwhile, the one that the discovery itself made.
func (e *Engine) Process(ctx context.Context, id model.ItemID, text []byte, reason string, at time.Time, order int64) result {
	defer func(start time.Time) { e.seconds.Add(time.Since(start).Seconds()) }(time.Now())
	rules := e.o.Rules()
	rule, ok := rules.Rule(id)
	if !ok {
		return result{}
	}
	known := rules.HostRevision(rule.HostID)
	e.mu.Lock()
	before := e.done[id]
	e.mu.Unlock()
	next := result{rows: before.rows, held: before.held}
	if reason == "" {
		out, err := e.apply(ctx, rule, text, at, order, &next)
		if err == nil {
			if out.RevisionBefore == known {
				known = out.HostRevision
			}
			next.revision, next.applied, next.held = known, true, 0
			return next
		}
		var refused *RefusedError
		if !errors.As(err, &refused) {
			if ctx.Err() == nil {
				e.logger.Error("a discovery could not be stored; it is tried again", "rule", rule.Key, "after", retryAfter, "error", err)
			}
			return result{rows: before.rows, held: before.held, undone: true}
		}
		reason = err.Error()
	}
	e.failed.Inc()
	if err := e.o.Store.RuleFailed(ctx, id, order, reason); err != nil {
		if ctx.Err() == nil {
			e.logger.Error("the error of a discovery rule could not be kept", "rule", rule.Key, "error", err)
		}
		return next
	}
	next.reason = reason
	return next
}

// RefusedError says why a value of a rule cannot be used.
type RefusedError struct{ Reason string }

// Error is the reason.
func (e *RefusedError) Error() string { return e.Reason }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// guard holds a value back that has lost most of the elements of the one before: a device that restarts, or a list that was cut off, would
// otherwise take everything down. When it stays so it is true.
func (e *Engine) guard(rows int, next *result) error {
	if next.rows < guardedRows || rows*lossShare >= next.rows {
		next.rows, next.held = rows, 0
		return nil
	}
	if next.held++; next.held >= lossValues {
		next.rows, next.held = rows, 0
		return nil
	}
	e.heldBack.Inc()
	return refuse("the value has %d elements, the one before had %d; nothing is changed until %d values in a row have lost most of them (this is number %d)", rows, next.rows, lossValues, next.held)
}

func (e *Engine) apply(ctx context.Context, rule *model.Rule, text []byte, at time.Time, order int64, next *result) (*model.Discovered, error) {
	x := &model.Discovery{Rule: rule, At: at, Order: order}
	p, err := compile(rule)
	if err != nil {
		return nil, err
	}
	rows, err := readRows(text, p.paths)
	if err != nil {
		return nil, err
	}
	if err := e.guard(len(rows), next); err != nil {
		return nil, err
	}
	more := 0
	for _, row := range rows {
		list, err := p.instances(row)
		if err != nil {
			return nil, err
		}
		if room := e.o.MaxObjects - len(x.Instances); len(list) > room {
			more += len(list) - room
			list = list[:room]
		}
		x.Instances = append(x.Instances, list...)
	}
	x.Beyond, x.Limit = more, e.o.MaxObjects
	out, err := e.o.Store.Discover(ctx, x)
	if err != nil {
		return nil, err
	}
	e.created.Add(out.Created)
	e.updated.Add(out.Updated)
	e.lost.Add(out.Lost)
	e.deleted.Add(out.Deleted)
	e.refused.Add(out.Refused)
	if out.Created+out.Lost+out.Deleted > 0 {
		e.logger.Info("discovered", "rule", rule.Key, "host_id", uint64(rule.HostID), "rows", len(rows), "created", out.Created, "updated", out.Updated,
			"lost", out.Lost, "deleted", out.Deleted, "refused", out.Refused)
	}
	return out, nil
}
