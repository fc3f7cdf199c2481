package dbengine

import (
	"context"
	"slices"
	"sync"
)

// readers lets a pair that was replaced be removed only when all reads that may have it in sight are over.
type readers struct {
	mu  sync.Mutex
	now *readersEpoch
	// waited are epochs that ended with a wait and still have reads.
	waited []*readersEpoch
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
		r.waited = slices.DeleteFunc(r.waited, func(o *readersEpoch) bool { return o == e })
		close(e.done)
	}
}

// wait waits for the reads that have begun, whoever else waits or gave up waiting.
func (r *readers) wait(ctx context.Context) error {
	r.mu.Lock()
	if e := r.now; e != nil && e.count > 0 {
		e.closed = true
		r.waited = append(r.waited, e)
	}
	r.now = nil
	begun := slices.Clone(r.waited)
	r.mu.Unlock()
	for _, e := range begun {
		select {
		case <-e.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
