// Package histcache is the history cache: values that were collected and preprocessed but are not yet synced.
//
// It keeps batches in arrival order, but for values of items that flood it (lane.go), and is bounded in bytes. Put blocks while it is full, which is the pipeline's
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
	queue   []entry
	bulk    []entry
	tallies []tally // by slot; nil while the cache was never behind
	moves   []int32 // scratch of split
	// takenBatches and putBatches count the ordinary ones.
	takenBatches, putBatches uint64
	bulkUsed                 int // bytes waiting in the bulk lane
	used                     int // bytes waiting or taken and not Done
	values                   int // values waiting
	capped                   bool
	closed                   bool
	waiting, bulked          *metrics.Counter
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
	c.bulked = set.NewCounter("tidemark_histcache_bulk_values_total")
	set.NewGauge("tidemark_histcache_bulk_bytes", func() float64 { c.mu.Lock(); defer c.mu.Unlock(); return float64(c.bulkUsed) })
	set.NewGauge("tidemark_histcache_capped", func() float64 {
		if c.Capped() {
			return 1
		}
		return 0
	})
	set.NewGauge("tidemark_histcache_used_bytes", func() float64 { used, _ := c.Used(); return float64(used) })
	set.NewGauge("tidemark_histcache_limit_bytes", func() float64 { return float64(c.limitBytes) })
	set.NewGauge("tidemark_histcache_values", func() float64 { c.mu.Lock(); defer c.mu.Unlock(); return float64(c.values) })
	return c
}

// weight is what a batch counts for, so that empty batches with completions are bounded too.
func weight(b *model.Batch) int { return b.SizeBytes() + 256 }

// maxBulk is the part of the cache, 1/maxBulk, that the bulk lane may fill; who brings values for it waits beyond that.
const maxBulk = 2

// Put adds the batch and blocks while there is no room. After an error the batch still belongs to the caller.
func (c *Cache) Put(ctx context.Context, b *model.Batch) error {
	size := weight(b)
	blocked, heavy := false, false
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return ErrClosed
		}
		// Looked through only when it could matter, and not again after it waited.
		crowded := c.bulkUsed > 0 && c.bulkUsed+size > c.limitBytes/maxBulk
		heavy = crowded && (heavy || c.hasBulk(b))
		if c.used == 0 || c.used+size <= c.limitBytes && !heavy {
			c.add(b)
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

// add puts a batch into its lane, or its parts into both; c.mu is held.
func (c *Cache) add(b *model.Batch) {
	ordinary, bulk := b, (*model.Batch)(nil)
	counted := c.behind()
	if counted {
		ordinary, bulk = c.split(b)
	}
	if ordinary != nil {
		e := entry{batch: ordinary, weight: weight(ordinary), counted: counted}
		c.queue = append(c.queue, e)
		c.putBatches++
		c.used += e.weight
		c.values += ordinary.Len()
	}
	if bulk != nil {
		e := entry{batch: bulk, weight: weight(bulk), counted: true, after: c.putBatches}
		c.bulk = append(c.bulk, e)
		c.used += e.weight
		c.bulkUsed += e.weight
		c.values += bulk.Len()
		c.bulked.Add(bulk.Len())
	}
}

// signal wakes everyone who waits; c.mu is held.
func (c *Cache) signal() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Take waits for values and returns the oldest batches, merged, and some of the bulk lane. The caller owns the batch and must call Done with the
// returned number of bytes when it is finished with it. After Close it returns what is left, then ErrClosed.
func (c *Cache) Take(ctx context.Context) (*model.Batch, int, error) {
	for {
		c.mu.Lock()
		if len(c.queue)+len(c.bulk) > 0 {
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

// merge joins batches into the first and frees the others. size is what they counted for in the cache.
func merge(taken []*model.Batch) (*model.Batch, int) {
	first := taken[0]
	size := weight(first)
	values, arena := 0, 0
	for _, b := range taken[1:] {
		values, arena = values+b.Len(), arena+len(b.Arena)
	}
	first.Grow(values, arena)
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

// The fills at which collectors that can keep their values are asked to, and may send again; Zabbix's.
const (
	capPercent    = 80
	resumePercent = 60
)

// Capped reports whether senders that keep what is refused should wait: from 80 % full until 60 %.
func (c *Cache) Capped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch percent := 100 * c.used / c.limitBytes; {
	case percent >= capPercent:
		c.capped = true
	case percent < resumePercent:
		c.capped = false
	}
	return c.capped
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
