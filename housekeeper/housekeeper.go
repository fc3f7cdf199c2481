// Package housekeeper removes what is too old: values past their retention, old events, declared items that nobody sends any more.
//
// It never deletes row by row in the history: engines drop whole files or partitions. What it did and how long it took is in its metrics
// and in the log.
package housekeeper

import (
	"context"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// Pruner drops values past their retention; any engine does.
type Pruner interface {
	Prune(ctx context.Context, now int64) (freedBytes int64, err error)
}

// Events deletes at most limit events older than a time, and says how many it deleted.
type Events interface {
	PruneEvents(ctx context.Context, before int64, limit int) (int, error)
}

// Items forgets declared items without values, and says how many.
type Items interface {
	ExpireItems(ctx context.Context, now int64) (int, error)
}

// Options of a Housekeeper. Pruner is needed; the others may be nil.
type Options struct {
	Pruner Pruner
	Events Events
	Items  Items
	// EventsAge is how long events are kept; 0 means 365 days.
	EventsAge time.Duration
	// Every is the time between two runs; 0 means 10 minutes.
	Every time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Metrics and Logger may be nil.
	Metrics *metrics.Set
	Logger  *slog.Logger
}

// Housekeeper works in rounds.
type Housekeeper struct {
	o Options

	rounds, failures, freed, events, items *metrics.Counter
	seconds                                *metrics.FloatCounter
}

// New returns a housekeeper that works as soon as Run is called.
func New(o Options) *Housekeeper {
	if o.EventsAge == 0 {
		o.EventsAge = 365 * 24 * time.Hour
	}
	if o.Every == 0 {
		o.Every = 10 * time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	set := o.Metrics
	return &Housekeeper{
		o:        o,
		rounds:   set.NewCounter("tidemark_housekeeper_rounds_total"),
		failures: set.NewCounter("tidemark_housekeeper_failures_total"),
		freed:    set.NewCounter("tidemark_housekeeper_freed_bytes_total"),
		events:   set.NewCounter("tidemark_housekeeper_deleted_events_total"),
		items:    set.NewCounter("tidemark_housekeeper_forgotten_items_total"),
		seconds:  set.NewFloatCounter("tidemark_housekeeper_busy_seconds_total"),
	}
}

// Run works until ctx ends.
func (h *Housekeeper) Run(ctx context.Context) error {
	t := time.NewTicker(h.o.Every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			h.Round(ctx)
		}
	}
}

// Round does everything once.
func (h *Housekeeper) Round(ctx context.Context) {
	start := time.Now()
	now := h.o.Now()
	freed, err := h.o.Pruner.Prune(ctx, now.UnixNano())
	h.freed.Add(int(freed))
	h.note(ctx, "drop values past their retention", err)
	deleted := h.pruneEvents(ctx, now.Add(-h.o.EventsAge).UnixNano())
	forgotten := 0
	if h.o.Items != nil {
		forgotten, err = h.o.Items.ExpireItems(ctx, now.UnixNano())
		h.items.Add(forgotten)
		h.note(ctx, "forget items without values", err)
	}
	took := time.Since(start)
	h.rounds.Inc()
	h.seconds.Add(took.Seconds())
	if freed > 0 || deleted > 0 || forgotten > 0 {
		h.o.Logger.Info("housekeeping", "freed_bytes", freed, "deleted_events", deleted, "forgotten_items", forgotten, "took", took.Round(time.Millisecond))
	}
}

// eventsAtOnce bounds one transaction, so that recording new events waits for a moment only.
const eventsAtOnce = 1000

func (h *Housekeeper) pruneEvents(ctx context.Context, before int64) int {
	if h.o.Events == nil {
		return 0
	}
	total := 0
	for ctx.Err() == nil {
		n, err := h.o.Events.PruneEvents(ctx, before, eventsAtOnce)
		total += n
		h.events.Add(n)
		h.note(ctx, "delete old events", err)
		if err != nil || n < eventsAtOnce {
			break
		}
	}
	return total
}

// note reports what failed, but for what a stop cut off.
func (h *Housekeeper) note(ctx context.Context, what string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	h.failures.Inc()
	h.o.Logger.Error("housekeeping failed, it is tried again next time", "what", what, "error", err)
}
