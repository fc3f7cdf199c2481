// Package valuecache keeps the recent values of items that triggers and calculated items ask for, so that functions find
// them without a read of the history.
//
// An item is kept only while somebody asks for it, and only as far back as the widest ask (a span of time or a number of
// values). The cache knows from when on it has every stored value of an item; what lies before that is read once from the
// history, by whoever needs it first, and "there is nothing before" is remembered too. Values stay exact after late ones:
// they are merged into their place.
package valuecache

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/internal/idtable"
	"tidemark/model"
	"tidemark/storage"
)

// MaxValues is how many values of one item the cache holds at most; a window with more is refused (expr.ErrTooMany).
const MaxValues = 1 << 18

// DefaultMaxBytes is the memory limit when Options give none.
const DefaultMaxBytes = 512 << 20

// maxBack is how far before an item's newest value an evaluation may still cause a read of the history.
const maxBack = time.Hour

// retryAfter is how long a failed or refused read is not tried again.
const retryAfter = time.Second

// The times between which values can lie (before 1900, after 2200); not the extremes of int64, so that sums with a span do
// not overflow.
const (
	earliest = -1 << 62
	latest   = math.MaxInt64 - 1<<60
)

// History reads stored values; any engine does. See storage.Engine for the rules.
type History interface {
	Read(ctx context.Context, q storage.Query, fn func(*model.Columns) error) error
}

// Options of a Cache. History is needed.
type Options struct {
	History History
	// MaxBytes bounds the memory of all values; zero is DefaultMaxBytes.
	MaxBytes int64
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Metrics receives the cache's metrics; nil: none.
	Metrics *metrics.Set
	// Logger hears of failed reads and of a full cache; nil: discard.
	Logger *slog.Logger
}

// Cache keeps recent values. All methods may be called from several goroutines, Add from one at a time.
type Cache struct {
	history  History
	maxBytes int64
	now      func() time.Time
	logger   *slog.Logger

	mu     sync.RWMutex
	items  idtable.Table[model.ItemID, series]
	all    []*series // in no order, for eviction
	cursor int

	// epoch counts calls of Add; values that came with the newest call are not trimmed.
	epoch     uint32
	usedBytes atomic.Int64
	warnedAt  time.Time

	hits, reads, evictions *metrics.Counter
}

// New returns an empty cache.
func New(o Options) *Cache {
	c := &Cache{history: o.History, maxBytes: o.MaxBytes, now: o.Now, logger: o.Logger}
	if c.maxBytes <= 0 {
		c.maxBytes = DefaultMaxBytes
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	set := o.Metrics
	if set == nil {
		set = metrics.NewSet()
	}
	c.hits = set.NewCounter("tidemark_valuecache_hits_total")
	c.reads = set.NewCounter("tidemark_valuecache_history_reads_total")
	c.evictions = set.NewCounter("tidemark_valuecache_evictions_total")
	set.NewGauge("tidemark_valuecache_used_bytes", func() float64 { return float64(c.usedBytes.Load()) })
	set.NewGauge("tidemark_valuecache_limit_bytes", func() float64 { return float64(c.maxBytes) })
	set.NewGauge("tidemark_valuecache_low_memory", func() float64 {
		if c.maxBytes > 0 && c.usedBytes.Load() >= int64(c.maxBytes) {
			return 1
		}
		return 0
	})
	set.NewGauge("tidemark_valuecache_items", func() float64 { return float64(c.Len()) })
	return c
}

// Len returns the number of items that somebody asks for.
func (c *Cache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.items.Len()
}

// UsedBytes returns the memory that the values take.
func (c *Cache) UsedBytes() int64 { return c.usedBytes.Load() }

// Ask makes the cache keep an item's values: at least count newest ones and those of the last span. Each Ask is undone by one
// Release with the same arguments.
func (c *Cache) Ask(item model.ItemID, t model.ValueType, span time.Duration, count int) {
	c.mu.Lock()
	s := c.items.Get(item)
	if s == nil {
		s = &series{item: item, valueType: t, coveredFrom: nothing, place: len(c.all)}
		c.items.Set(item, s)
		c.all = append(c.all, s)
	}
	c.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.valueType != t {
		s.clear()
		s.valueType = t
	}
	s.ask(span, count, 1)
	c.account(s)
}

// Release undoes an Ask. Nothing is kept of an item that nobody asks for.
func (c *Cache) Release(item model.ItemID, span time.Duration, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.items.Get(item)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ask(span, count, -1)
	if len(s.asks) > 0 {
		return
	}
	c.usedBytes.Add(-s.accounted)
	c.items.Set(item, nil)
	last := c.all[len(c.all)-1]
	c.all[s.place], last.place = last, s.place
	c.all[len(c.all)-1] = nil
	c.all = c.all[:len(c.all)-1]
}

func (c *Cache) find(item model.ItemID) *series {
	c.mu.RLock()
	s := c.items.Get(item)
	c.mu.RUnlock()
	return s
}

// Add takes the values of a batch that is stored already. Values of items that nobody asks for, and values that must not reach
// triggers, are passed over. The batch is not kept.
func (c *Cache) Add(b *model.Batch) {
	c.mu.RLock()
	c.epoch++
	items := c.items.Cursor()
	for i, item := range b.Items {
		if b.Flags[i].Skipped() {
			continue
		}
		s := items.Get(item)
		if s == nil || b.Types[i] != s.valueType {
			continue
		}
		s.mu.Lock()
		if s.epoch != c.epoch {
			s.epoch = c.epoch
			s.trim()
		}
		var payload []byte
		if b.Types[i].InArena() {
			payload = b.Bytes(i)
		}
		s.add(b.At[i], b.Bits[i], payload, b.Flags[i]&model.Late != 0)
		c.account(s)
		s.mu.Unlock()
	}
	c.mu.RUnlock()
	if c.usedBytes.Load() > c.maxBytes {
		c.evict()
	}
}

// account brings the cache's total up to date with a series whose lock is held.
func (c *Cache) account(s *series) {
	if size := s.sizeBytes(); size != s.accounted {
		c.usedBytes.Add(size - s.accounted)
		s.accounted = size
	}
}

// evict forgets values until the cache is a tenth below its limit: of each 16 series that it meets the one that was
// unused for longest in relation to its size. They are read again when they are needed.
func (c *Cache) evict() {
	c.mu.Lock()
	defer c.mu.Unlock()
	target := c.maxBytes - c.maxBytes/10
	for tries := len(c.all); tries > 0 && c.usedBytes.Load() > target; tries-- {
		var victim *series
		worst := int64(0)
		for range min(16, len(c.all)) {
			c.cursor = (c.cursor + 1) % len(c.all)
			s := c.all[c.cursor]
			s.mu.Lock()
			cost := s.accounted * int64(c.epoch-s.usedEpoch+1)
			if s.length() > 0 && cost > worst {
				victim, worst = s, cost
			}
			s.mu.Unlock()
		}
		if victim == nil {
			continue
		}
		victim.mu.Lock()
		victim.clear()
		c.account(victim)
		victim.mu.Unlock()
		c.evictions.Inc()
	}
	if now := c.now(); now.Sub(c.warnedAt) >= 5*time.Minute {
		c.warnedAt = now
		c.logger.Warn("value cache is full; values are read from the history again, which is slow: raise its limit",
			"limit_bytes", c.maxBytes, "used_bytes", c.usedBytes.Load(), "items", c.items.Len())
	}
}
