package trigger

import (
	"context"
	"time"

	"tidemark/model"
)

const (
	// timerSlots is how many seconds pass between two evaluations of the same trigger by the clock. A trigger's id
	// gives its second, so that the work spreads evenly.
	timerSlots = 30
	noSlot     = 255
)

// Run evaluates triggers with timer functions (nodata, date and time, trends) every 30 seconds each, until ctx ends.
func (e *Evaluator) Run(ctx context.Context) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := e.Tick(ctx, e.now()); err != nil && ctx.Err() == nil {
				e.logger.Error("trigger: record what timers changed", "error", err)
			}
		}
	}
}

// Tick evaluates the triggers with timer functions whose second came since the last Tick, at most all of them once.
func (e *Evaluator) Tick(ctx context.Context, now time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func(start time.Time) { e.timerSeconds.Add(time.Since(start).Seconds()) }(time.Now())
	second := now.Unix()
	first := max(e.ticked+1, second-timerSlots+1)
	if e.ticked == 0 {
		first = second
	}
	e.jobs, e.touched = e.jobs[:0], e.touched[:0]
	for s := first; s <= second; s++ {
		for t := range e.timers[s%timerSlots] {
			if t.isBroken {
				continue
			}
			e.jobs = append(e.jobs, job{at: now.UnixNano(), row: -1, quiet: !t.program.Timer()})
			t.firstJob, t.lastJob, t.unsorted = int32(len(e.jobs)), int32(len(e.jobs)), false
			e.touched = append(e.touched, t)
		}
	}
	e.ticked = max(e.ticked, second)
	if len(e.touched) == 0 {
		return nil
	}
	changes := e.work(context.WithoutCancel(ctx), new(model.Batch), now.UnixNano())
	if len(changes) == 0 {
		return nil
	}
	return e.record(ctx, changes)
}
