// Package query is the read side: it chooses between history and trends, keeps every read within limits, and gives
// pages and APIs what they draw. It knows engines only as readers and the catalog only as a lookup.
package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/prometheus/prometheus/model/labels"

	"tidemark/model"
	"tidemark/storage"
)

// Reader reads values and hourly trends; any storage.Engine is one.
type Reader interface {
	Read(ctx context.Context, q storage.Query, fn func(*model.Columns) error) error
	Trends(ctx context.Context, q storage.Query, fn func(*storage.TrendColumns) error) error
}

// Catalog knows which items exist. Match, LabelNames and LabelValues see numeric items only.
type Catalog interface {
	Item(id model.ItemID) (model.Entry, bool)
	// Labels returns the item as PromQL sees it, sorted by name; OwnLabels leaves out name, host and key.
	Labels(id model.ItemID) model.Labels
	OwnLabels(id model.ItemID) model.Labels
	Match(matchers ...*labels.Matcher) []model.ItemID
	LabelNames(matchers ...*labels.Matcher) []string
	LabelValues(name string, matchers ...*labels.Matcher) []string
}

// Options bound what one read may take.
type Options struct {
	// MaxItems is how many items one read may touch; zero means 50,000.
	MaxItems int
	// MaxBytes is the memory that the values of one read may hold at once; zero means 256 MiB.
	MaxBytes int64
	// Timeout ends a read; zero means 60 s.
	Timeout time.Duration
	// Concurrent is how many reads run at the same time, others wait; zero means 8.
	Concurrent int
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Metrics gets the counters of reads; nil keeps none.
	Metrics *metrics.Set
	// Log, if not nil, is told of each read of values. It keeps no reference to the items and does not wait.
	Log func(items []model.ItemID, r model.TimeRange, newest int)
}

// LimitError says which limit a read ran into. The caller can ask for less.
type LimitError struct {
	// What is the limit in words, with what to do about it.
	What string
	// Limit is the number that was exceeded.
	Limit int64
}

// Error names the limit and what to do.
func (e *LimitError) Error() string { return fmt.Sprintf("%s (limit %d)", e.What, e.Limit) }

// Querier reads within limits. It is safe for use by several goroutines.
type Querier struct {
	reader  Reader
	catalog Catalog
	options Options
	slots   chan struct{}

	reads, limited, failed, values *metrics.Counter
	seconds                        *metrics.Histogram
}

// New returns a querier over an engine and a catalog.
func New(reader Reader, catalog Catalog, options Options) *Querier {
	if options.MaxItems == 0 {
		options.MaxItems = 50_000
	}
	if options.MaxBytes == 0 {
		options.MaxBytes = 256 << 20
	}
	if options.Timeout == 0 {
		options.Timeout = time.Minute
	}
	if options.Concurrent == 0 {
		options.Concurrent = 8
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	set := options.Metrics
	if set == nil {
		set = metrics.NewSet()
	}
	q := &Querier{
		reader: reader, catalog: catalog, options: options, slots: make(chan struct{}, options.Concurrent),
		reads:   set.NewCounter("tidemark_query_reads_total"),
		limited: set.NewCounter("tidemark_query_limited_total"),
		failed:  set.NewCounter("tidemark_query_failed_total"),
		values:  set.NewCounter("tidemark_query_values_total"),
		seconds: set.NewHistogram("tidemark_query_duration_seconds"),
	}
	set.NewGauge("tidemark_query_running", func() float64 { return float64(len(q.slots)) })
	return q
}

// Catalog returns the catalog that the querier reads with.
func (q *Querier) Catalog() Catalog { return q.catalog }

// WithCatalog returns a querier that sees another catalog, such as one in which some items are left out, and shares the limits of this one.
func (q *Querier) WithCatalog(catalog Catalog) *Querier {
	other := *q
	other.catalog = catalog
	return &other
}

// Now returns the time by the querier's clock.
func (q *Querier) Now() time.Time { return q.options.Now() }

// MaxItems returns how many items one read may touch.
func (q *Querier) MaxItems() int { return q.options.MaxItems }

// MaxBytes returns how much memory the values of one read may hold.
func (q *Querier) MaxBytes() int64 { return q.options.MaxBytes }

// Begin waits for a free place among the running reads and bounds the read's time. The returned function gives the
// place back and must be called.
func (q *Querier) Begin(ctx context.Context) (context.Context, func(), error) {
	select {
	case q.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx, func() {}, fmt.Errorf("wait for one of %d running queries to end: %w", q.options.Concurrent, ctx.Err())
	}
	q.reads.Inc()
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, q.options.Timeout)
	return ctx, func() {
		cancel()
		<-q.slots
		q.seconds.UpdateDuration(started)
	}, nil
}

// Read streams values of items from the history; see storage.Engine. newest, if not zero, asks for the last values only.
// The caller is between Begin and its end.
func (q *Querier) Read(ctx context.Context, items []model.ItemID, r model.TimeRange, newest int, fn func(*model.Columns) error) error {
	if len(items) > q.options.MaxItems {
		return q.fail(&LimitError{"the query touches more items than allowed; narrow the matchers", int64(q.options.MaxItems)})
	}
	if len(items) == 0 || r.From >= r.To {
		return nil
	}
	if q.options.Log != nil {
		q.options.Log(items, r, newest)
	}
	n := 0
	err := q.reader.Read(ctx, storage.Query{Items: items, Range: r, Newest: newest, MaxBytes: q.options.MaxBytes}, func(c *model.Columns) error {
		n += len(c.At)
		if err := ctx.Err(); err != nil {
			return err
		}
		return fn(c)
	})
	q.values.Add(n)
	return q.fail(err)
}

// Trends streams hourly trends of items, as Read does values.
func (q *Querier) Trends(ctx context.Context, items []model.ItemID, r model.TimeRange, fn func(*storage.TrendColumns) error) error {
	return q.summaries(ctx, items, r, q.reader.Trends, fn)
}

// Minutes streams summaries of one minute, nothing if the engine keeps none.
func (q *Querier) Minutes(ctx context.Context, items []model.ItemID, r model.TimeRange, fn func(*storage.TrendColumns) error) error {
	s, ok := q.reader.(storage.Summarizer)
	if !ok {
		return nil
	}
	return q.summaries(ctx, items, r, s.Minutes, fn)
}

// HasMinutes reports whether the engine keeps summaries of minutes.
func (q *Querier) HasMinutes() bool {
	_, ok := q.reader.(storage.Summarizer)
	return ok
}

// Merged streams binary values that merge to the same as those of a range, from tiers where the engine has them; see storage.Merger. Values that
// are no binary ones are left out.
func (q *Querier) Merged(ctx context.Context, items []model.ItemID, r model.TimeRange, cell func(at int64) int, fn func(*model.Columns) error) error {
	m, ok := q.reader.(storage.Merger)
	if !ok {
		return q.Read(ctx, items, r, 0, func(c *model.Columns) error {
			if c.Type != model.Binary {
				return nil
			}
			return fn(c)
		})
	}
	if len(items) > q.options.MaxItems {
		return q.fail(&LimitError{"the query touches more items than allowed; narrow the matchers", int64(q.options.MaxItems)})
	}
	if len(items) == 0 || r.From >= r.To {
		return nil
	}
	if q.options.Log != nil {
		q.options.Log(items, r, 0)
	}
	n := 0
	err := m.Merged(ctx, storage.Query{Items: items, Range: r, MaxBytes: q.options.MaxBytes}, cell, func(c *model.Columns) error {
		n += len(c.At)
		if err := ctx.Err(); err != nil {
			return err
		}
		return fn(c)
	})
	q.values.Add(n)
	return q.fail(err)
}

// Fold streams what the values of each step come to, summed up by the engine where it decodes them; see storage.Folder. Only where CanFold.
func (q *Querier) Fold(ctx context.Context, items []model.ItemID, r model.TimeRange, step int64, fn func(*storage.FoldColumns) error) error {
	f, ok := q.reader.(storage.Folder)
	if !ok {
		return errors.New("this engine does not sum up values")
	}
	if len(items) > q.options.MaxItems {
		return q.fail(&LimitError{"the query touches more items than allowed; narrow the matchers", int64(q.options.MaxItems)})
	}
	if len(items) == 0 || r.From >= r.To {
		return nil
	}
	if q.options.Log != nil {
		q.options.Log(items, r, 0)
	}
	n := uint64(0)
	err := f.Fold(ctx, storage.Query{Items: items, Range: r, MaxBytes: q.options.MaxBytes}, step, func(c *storage.FoldColumns) error {
		for i := range c.Folds {
			n += c.Folds[i].Count
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return fn(c)
	})
	q.values.Add(int(n))
	return q.fail(err)
}

// CanFold reports whether the engine can sum up values.
func (q *Querier) CanFold() bool {
	_, ok := q.reader.(storage.Folder)
	return ok
}

type summaryReader func(context.Context, storage.Query, func(*storage.TrendColumns) error) error

func (q *Querier) summaries(ctx context.Context, items []model.ItemID, r model.TimeRange, read summaryReader, fn func(*storage.TrendColumns) error) error {
	if len(items) > q.options.MaxItems {
		return q.fail(&LimitError{"the query touches more items than allowed; narrow the matchers", int64(q.options.MaxItems)})
	}
	if len(items) == 0 || r.From >= r.To {
		return nil
	}
	return q.fail(read(ctx, storage.Query{Items: items, Range: r, MaxBytes: q.options.MaxBytes}, func(c *storage.TrendColumns) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return fn(c)
	}))
}

// fail counts an error and gives those of the engine's limits the form of a LimitError.
func (q *Querier) fail(err error) error {
	var limit *LimitError
	switch {
	case err == nil || errors.Is(err, errEnough):
		return err
	case errors.As(err, &limit):
		q.limited.Inc()
		return err
	case errors.Is(err, storage.ErrTooMuch):
		q.limited.Inc()
		return &LimitError{"the query needs more memory than allowed; ask for fewer items or a shorter range", q.options.MaxBytes}
	case errors.Is(err, context.Canceled):
		return err
	}
	q.failed.Inc()
	return err
}

// errEnough stops a read early.
var errEnough = errors.New("enough")

// Value is one stored value. Bits holds numbers, Bytes everything else (see model.ValueType).
type Value struct {
	At    int64
	Type  model.ValueType
	Bits  uint64
	Bytes []byte
}

// Float returns a number as a float, zero for text.
func (v *Value) Float() float64 {
	c := model.Columns{Type: v.Type, Bits: []uint64{v.Bits}}
	if !v.Type.Numeric() {
		return 0
	}
	return c.Float(0)
}

// copyValue takes value i out of columns.
func copyValue(c *model.Columns, i int) Value {
	v := Value{At: c.At[i], Type: c.Type, Bits: c.Bits[i]}
	if c.Type.InArena() {
		v.Bits = 0
		v.Bytes = append([]byte(nil), c.Bytes(i)...)
	}
	return v
}

// Values returns up to limit stored values of one item in a range, exactly as stored: the oldest first, or with
// descending the newest first.
func (q *Querier) Values(ctx context.Context, item model.ItemID, r model.TimeRange, limit int, descending bool) ([]Value, error) {
	ctx, end, err := q.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var values []Value
	var sizeBytes int64
	newest := 0
	if descending {
		newest = limit
	}
	err = q.Read(ctx, []model.ItemID{item}, r, newest, func(c *model.Columns) error {
		for i := range c.At {
			if !descending && len(values) == limit {
				return errEnough
			}
			v := copyValue(c, i)
			values = append(values, v)
			if sizeBytes += 48 + int64(len(v.Bytes)); sizeBytes > q.options.MaxBytes {
				return &LimitError{"the values need more memory than allowed; ask for fewer", q.options.MaxBytes}
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, fmt.Errorf("read values of item %d: %w", item, err)
	}
	if descending {
		if len(values) > limit {
			values = values[len(values)-limit:]
		}
		for i, j := 0, len(values)-1; i < j; i, j = i+1, j-1 {
			values[i], values[j] = values[j], values[i]
		}
	}
	return values, nil
}
