// Package trendcache makes hourly summaries for engines that have no tiers, such as PostgreSQL.
//
// The running hour of every item is summed up in memory as values come. At the turn of the hour the finished hours are written spread
// over some minutes. What memory cannot tell is read from history and summed up again: the first hour after a start, an hour that a late value
// changed, and the hour after it. Nothing of this is durable by itself: after a crash, hours that have values and no summary are found and
// made. The reasons are in docs/design/0024-trends-cache.md.
package trendcache

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/internal/idtable"
	"tidemark/model"
	"tidemark/storage"
)

// Engine keeps values and their summaries. Trends must give stored hours, and behind the last stored hour of an item those that
// its values make; AppendTrends replaces hours.
type Engine interface {
	Read(ctx context.Context, q storage.Query, fn func(*model.Columns) error) error
	Trends(ctx context.Context, q storage.Query, fn func(*storage.TrendColumns) error) error
	AppendTrends(ctx context.Context, columns []storage.TrendColumns) error
	// UnsavedTrends calls fn for the hours before before that have values, are behind the last stored hour of their item, and are not stored.
	UnsavedTrends(ctx context.Context, before int64, fn func(*storage.TrendColumns) error) error
}

// Options of a Cache. Engine is needed.
type Options struct {
	Engine Engine
	// Spread is over how long the hours that finished are written; zero means 10 minutes, at most 45.
	Spread time.Duration
	// Grace is how long after an hour's end values of it are still expected; zero means one minute.
	Grace time.Duration
	// MaxWaiting bounds the hours that wait for a database that is away; zero means 1,000,000. Beyond it they are made anew from history.
	MaxWaiting int
	// Now returns Unix nanoseconds; nil means the system's clock.
	Now func() int64
	// Metrics and Logger may be nil.
	Metrics *metrics.Set
	Logger  *slog.Logger
}

// entry is the running hour of an item.
type entry struct {
	trend model.Trend
	// last is the time of the newest value, previous the last number.
	last        int64
	previous    uint64
	valueType   model.ValueType
	hasPrevious bool
	// incomplete says that the hour must be summed up from history, closed that it was handed over.
	incomplete, closed bool
}

// hour names an hour of an item.
type hour struct {
	item model.ItemID
	at   int64
}

// finished is an hour that is ready to be written.
type finished struct {
	item      model.ItemID
	valueType model.ValueType
	trend     model.Trend
}

// Cache holds the running hours. Add may be called while Run works.
type Cache struct {
	o Options

	mu      sync.Mutex
	entries idtable.Table[model.ItemID, entry]
	ids     []model.ItemID
	// ready are written as they are, stale are summed up from history first.
	ready map[hour]finished
	// A stale hour that got a late value (true) makes the hour behind it stale too, whose increase begins with another value now.
	stale map[hour]bool
	// swept is the hour up to which entries were looked through.
	swept int64
	// unsaved says that hours may be missing which only history knows. Until they are written nothing else is, because an engine takes
	// the hours before an item's last stored one for complete.
	unsaved bool
	// again says that this must be looked at once more when the hour has turned: entries do not know of values from before the start,
	// and those of an item that got none since are in no entry. started is the hour of the start.
	again   bool
	started int64

	written, rebuilt, late, failures *metrics.Counter
}

// New returns an empty cache.
func New(o Options) *Cache {
	if o.Spread <= 0 {
		o.Spread = 10 * time.Minute
	}
	o.Spread = min(o.Spread, 45*time.Minute)
	if o.Grace <= 0 {
		o.Grace = time.Minute
	}
	if o.MaxWaiting <= 0 {
		o.MaxWaiting = 1_000_000
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Cache{
		o: o, ready: map[hour]finished{}, stale: map[hour]bool{}, unsaved: true, again: true, started: storage.HourOf(o.Now()), swept: math.MinInt64,
		written:  o.Metrics.NewCounter("tidemark_trendcache_written_hours_total"),
		rebuilt:  o.Metrics.NewCounter("tidemark_trendcache_rebuilt_hours_total"),
		late:     o.Metrics.NewCounter("tidemark_trendcache_late_values_total"),
		failures: o.Metrics.NewCounter("tidemark_trendcache_failed_writes_total"),
	}
	o.Metrics.NewGauge("tidemark_trendcache_waiting_hours", func() float64 { return float64(c.Waiting()) })
	o.Metrics.NewGauge("tidemark_trendcache_limit_hours", func() float64 { return float64(o.MaxWaiting) })
	return c
}

// Waiting is how many hours are ready to be written or to be summed up from history.
func (c *Cache) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ready) + len(c.stale)
}

// Add takes the numbers of a batch that the engine has stored, with the flags that it gave them. It keeps no reference into b.
func (c *Cache) Add(b *model.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, id := range b.Items {
		if b.Flags[i].Skipped() || !b.Types[i].Numeric() {
			continue
		}
		c.add(id, b.At[i], b.Types[i], b.Bits[i], b.Flags[i]&model.Late != 0)
	}
}

// AddLate takes the late values of a batch that was stored before the start, as the engine replays them: a crash may have come before
// the hours that they belong to were summed up again. The batch may come more than once.
func (c *Cache) AddLate(b *model.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	running := storage.HourOf(c.o.Now() - int64(c.o.Grace))
	for i, id := range b.Items {
		if start := storage.HourOf(b.At[i]); b.Flags[i]&model.Late != 0 && !b.Flags[i].Skipped() && b.Types[i].Numeric() && start < running {
			c.markStale(hour{id, start}, true)
		}
	}
}

func (c *Cache) add(id model.ItemID, at int64, vt model.ValueType, bits uint64, late bool) {
	start := storage.HourOf(at)
	e := c.entries.Get(id)
	if e == nil {
		// What came before in this hour, and the value before that, only history knows.
		e = &entry{trend: model.Trend{At: start}, valueType: vt, incomplete: true}
		c.entries.Set(id, e)
		c.ids = append(c.ids, id)
	}
	switch {
	case start < e.trend.At, start == e.trend.At && e.closed:
		c.late.Inc()
		c.markStale(hour{id, start}, true)
		if !late && at >= e.last && vt == e.valueType && (vt == model.Uint || !math.IsNaN(math.Float64frombits(bits))) {
			e.last, e.previous, e.hasPrevious = at, bits, true // in order, but behind the turn of the hour
		}
		return
	case start > e.trend.At:
		c.finish(id, e)
		*e = entry{
			trend: model.Trend{At: start}, valueType: e.valueType, last: e.last, previous: e.previous, hasPrevious: e.hasPrevious,
			incomplete: !e.hasPrevious, // since the start there was only NaN: the number before is in history
		}
	}
	if vt != e.valueType {
		// An hour with two types has two summaries; history tells them apart.
		e.valueType, e.hasPrevious, e.incomplete = vt, false, true
	}
	if late || at < e.last {
		c.late.Inc()
		e.incomplete = true
		return
	}
	e.last = at
	if storage.AddToTrend(&e.trend, vt, bits, e.previous, e.hasPrevious) {
		e.previous, e.hasPrevious = bits, true
	}
}

// markStale has an hour summed up from history, whatever is known of it.
func (c *Cache) markStale(h hour, late bool) {
	delete(c.ready, h)
	c.stale[h] = c.stale[h] || late
}

// finish hands the hour of an entry over, once.
func (c *Cache) finish(id model.ItemID, e *entry) {
	switch {
	case e.closed:
	case e.incomplete:
		c.markStale(hour{id, e.trend.At}, false)
	case e.trend.Count > 0:
		c.ready[hour{id, e.trend.At}] = finished{id, e.valueType, e.trend}
	}
	e.closed = true
	if len(c.ready)+len(c.stale) > c.o.MaxWaiting {
		c.o.Logger.Warn("too many hours wait to be written; they will be made from history", "hours", len(c.ready)+len(c.stale))
		clear(c.ready)
		clear(c.stale)
		c.unsaved = true
	}
}

// sweep hands over the hours of items that got no value since.
func (c *Cache) sweep(now int64) {
	current := storage.HourOf(now - int64(c.o.Grace))
	c.mu.Lock()
	defer c.mu.Unlock()
	if current <= c.swept {
		return
	}
	c.swept = current
	if c.again && current > c.started {
		c.again, c.unsaved = false, true
	}
	for _, id := range c.ids {
		if e := c.entries.Get(id); e.trend.At < current {
			c.finish(id, e)
		}
	}
}
