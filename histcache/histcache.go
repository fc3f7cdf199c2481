// Package histcache is the history cache: values that were collected and preprocessed but are not yet synced.
//
// It keeps batches in arrival order and is bounded in bytes. Put blocks while it is full, which is the pipeline's
// back-pressure; Take gives a syncer several batches merged into one, so that the cost per batch is shared by many values.
package histcache

import (
	"context"
	"errors"
	"sync"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/model"
)

// ErrClosed is returned by Put after Close, and by Take after Close when the cache is empty.
var ErrClosed = errors.New("history cache: closed")

// The defaults of Options.
const (
	DefaultLimitBytes = 64 << 20
	DefaultTakeValues = 20_000
	takeBytes         = 4 << 20
)

// Options of a Cache.
type Options struct {
	// LimitBytes bounds the values that wait or are being synced; 0 means DefaultLimitBytes. One batch larger than the
	// limit is let in when the cache is empty.
	LimitBytes int
	// TakeValues bounds what Take merges; 0 means DefaultTakeValues. One batch larger than it is taken alone.
	TakeValues int
	// Metrics may be nil.
	Metrics *metrics.Set
}

// Cache is a bounded queue of batches.
type Cache struct {
	limitBytes, takeValues int

	mu      sync.Mutex
	queue   []*model.Batch
	used    int // bytes waiting or taken and not Done
	values  int // values waiting
	closed  bool
	waiting *metrics.Counter
	// changed is closed and replaced whenever room or values appear.
	changed chan struct{}
}

// New returns an empty cache.
func New(o Options) *Cache {
	c := &Cache{limitBytes: o.LimitBytes, takeValues: o.TakeValues, changed: make(chan struct{})}
	if c.limitBytes == 0 {
		c.limitBytes = DefaultLimitBytes
	}
	if c.takeValues == 0 {
		c.takeValues = DefaultTakeValues
	}
	set := o.Metrics
	if set == nil {
		set = metrics.NewSet()
	}
	c.waiting = set.NewCounter("tidemark_histcache_blocked_puts_total")
	set.NewGauge("tidemark_histcache_used_bytes", func() float64 { used, _ := c.Used(); return float64(used) })
	set.NewGauge("tidemark_histcache_limit_bytes", func() float64 { return float64(c.limitBytes) })
	set.NewGauge("tidemark_histcache_values", func() float64 { c.mu.Lock(); defer c.mu.Unlock(); return float64(c.values) })
	return c
}

// weight is what a batch counts for, so that empty batches with completions are bounded too.
func weight(b *model.Batch) int { return b.SizeBytes() + 256 }

// Put adds the batch and blocks while there is no room. After an error the batch still belongs to the caller.
func (c *Cache) Put(ctx context.Context, b *model.Batch) error {
	size := weight(b)
	blocked := false
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return ErrClosed
		}
		if c.used == 0 || c.used+size <= c.limitBytes {
			c.queue = append(c.queue, b)
			c.used += size
			c.values += b.Len()
			c.signal()
			c.mu.Unlock()
			return nil
		}
		changed := c.changed
		c.mu.Unlock()
		if !blocked {
			blocked = true
			c.waiting.Inc()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// signal wakes everyone who waits; c.mu is held.
func (c *Cache) signal() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Take waits for values and returns the oldest batches, merged. The caller owns the batch and must call Done with the
// returned number of bytes when it is finished with it. After Close it returns what is left, then ErrClosed.
func (c *Cache) Take(ctx context.Context) (*model.Batch, int, error) {
	for {
		c.mu.Lock()
		if len(c.queue) > 0 {
			taken := c.cut()
			c.mu.Unlock()
			b, size := merge(taken)
			return b, size, nil
		}
		closed, changed := c.closed, c.changed
		c.mu.Unlock()
		if closed {
			return nil, 0, ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// cut removes from the queue what one Take returns; c.mu is held.
func (c *Cache) cut() []*model.Batch {
	n, values, size := 0, 0, 0
	for n < len(c.queue) {
		b := c.queue[n]
		if n > 0 && (values+b.Len() > c.takeValues || size+b.SizeBytes() > takeBytes) {
			break
		}
		values += b.Len()
		size += b.SizeBytes()
		n++
	}
	taken := make([]*model.Batch, n)
	copy(taken, c.queue)
	rest := copy(c.queue, c.queue[n:])
	clear(c.queue[rest:])
	c.queue = c.queue[:rest]
	c.values -= values
	return taken
}

// merge joins batches into the first and frees the others. size is what they counted for in the cache.
func merge(taken []*model.Batch) (*model.Batch, int) {
	first := taken[0]
	size := weight(first)
	for _, b := range taken[1:] {
		size += weight(b)
		first.Add(b)
		b.Free()
	}
	return first, size
}

// Done gives back the room of a taken batch; sizeBytes is what Take returned with it.
func (c *Cache) Done(sizeBytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used -= sizeBytes
	c.signal()
}

// Used returns the bytes in use and the limit.
func (c *Cache) Used() (usedBytes, limitBytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used, c.limitBytes
}

// Close refuses further batches; Take still returns what waits. A second call does nothing.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.signal()
	}
	return nil
}
