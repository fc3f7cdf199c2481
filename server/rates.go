package server

import (
	"sync/atomic"
	"time"

	"tidemark/model"
)

// rates counts stored values, for the numbers on the overview.
type rates struct {
	values atomic.Uint64
	// perSecond is the rate of the last whole second, times 1000.
	perSecond atomic.Uint64
}

// Observe implements histsync.Observer.
func (r *rates) Observe(b *model.Batch) { r.values.Add(uint64(b.Len())) }

// ValuesPerSecond returns the rate over the last few seconds.
func (r *rates) ValuesPerSecond() float64 { return float64(r.perSecond.Load()) / 1000 }

// sample works out the rate each second until stop is closed. The rate is smoothed over about five seconds, because agents that send
// once a second beat against the sampling.
func (r *rates) sample(stop <-chan struct{}) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	last, at := r.values.Load(), time.Now()
	smooth := -1.0
	for {
		select {
		case <-stop:
			return
		case now := <-t.C:
			values := r.values.Load()
			rate := float64(values-last) / now.Sub(at).Seconds()
			last, at = values, now
			if smooth < 0 {
				smooth = rate
			}
			smooth += (rate - smooth) / 5
			r.perSecond.Store(uint64(smooth * 1000))
		}
	}
}
