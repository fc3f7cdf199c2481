package dbengine

import (
	"context"
	"sync"
)

// readers lets a pair that was replaced be removed only when all reads that may have it in sight are over.
type readers struct {
	mu  sync.Mutex
	now *readersEpoch
}

// readersEpoch is the reads that began between two waits.
type readersEpoch struct {
	count  int
	closed bool
	done   chan struct{}
}

func (r *readers) enter() *readersEpoch {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == nil {
		r.now = &readersEpoch{done: make(chan struct{})}
	}
	r.now.count++
	return r.now
}

func (r *readers) leave(e *readersEpoch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.count--; e.count == 0 && e.closed {
		close(e.done)
	}
}

// wait waits for the reads that have begun. Only one may wait at a time: reads of the epochs before are over then.
func (r *readers) wait(ctx context.Context) error {
	r.mu.Lock()
	e := r.now
	r.now = nil
	if e == nil || e.count == 0 {
		r.mu.Unlock()
		return nil
	}
	e.closed = true
	r.mu.Unlock()
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
