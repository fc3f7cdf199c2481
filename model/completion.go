package model

import (
	"sync"
	"sync/atomic"
)

// Completion tells a collector that the values it Put are durable. A batch carries it along its way; the last stage
// that owns the batch finishes it, and the collector waits on Done before it answers.
type Completion struct {
	pending atomic.Int64
	mu      sync.Mutex
	err     error
	done    chan struct{}
}

// NewCompletion returns a completion that is done after one Finish.
func NewCompletion() *Completion {
	c := &Completion{done: make(chan struct{})}
	c.pending.Store(1)
	return c
}

// Add makes the completion wait for n more calls of Finish. It must be called before the last Finish.
func (c *Completion) Add(n int) { c.pending.Add(int64(n)) }

// Finish counts one part as durable, or as failed if err is not nil. The first error is kept.
func (c *Completion) Finish(err error) {
	if err != nil {
		c.mu.Lock()
		if c.err == nil {
			c.err = err
		}
		c.mu.Unlock()
	}
	if c.pending.Add(-1) == 0 {
		close(c.done)
	}
}

// Done is closed when every part is finished.
func (c *Completion) Done() <-chan struct{} { return c.done }

// Err returns the first error. It is meaningful after Done is closed.
func (c *Completion) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
