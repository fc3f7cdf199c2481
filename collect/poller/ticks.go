package poller

import (
	"sync"
	"time"

	"tidemark/internal/reactor"
)

// Ticks wake the poller again and again.
type Ticks interface {
	// Wait waits for the next tick; false when there are no more.
	Wait() bool
	// Stop ends a Wait. A second call does nothing.
	Stop()
}

// SystemTicks are those of a timer of the system, which wake one thread and that once.
func SystemTicks(interval time.Duration) Ticks { return reactor.NewTicker(interval) }

// ticks are those of Go's runtime.
type ticks struct {
	ticker  *time.Ticker
	stopped chan struct{}
	stop    func()
}

func newTicks(interval time.Duration) Ticks {
	t := &ticks{ticker: time.NewTicker(interval), stopped: make(chan struct{})}
	t.stop = sync.OnceFunc(func() { close(t.stopped) })
	return t
}

// Wait implements Ticks.
func (t *ticks) Wait() bool {
	select {
	case <-t.ticker.C:
		return true
	case <-t.stopped:
		return false
	}
}

// Stop implements Ticks.
func (t *ticks) Stop() {
	t.ticker.Stop()
	t.stop()
}
