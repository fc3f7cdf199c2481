package promql

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"

	"tidemark/model"
	"tidemark/query"
)

// This file is all that touches Prometheus' storage and iterator interfaces, because they move with its versions.

// Queryable is Prometheus' storage.Queryable over a query.Querier.
//
// The engine that reads it must have the look-back MaxLookback: every series ends its own look-back with a stale marker.
type Queryable struct {
	querier *query.Querier
	// lookback, if not zero, is used for every series.
	lookback time.Duration
	// plain means that ranges begin at the steps of the query, so that the engine may sum up values between them.
	plain bool
}

var (
	_ storage.Queryable = (*Queryable)(nil)
	_ storage.Querier   = (*selector)(nil)
	_ storage.SeriesSet = (*seriesSet)(nil)
	_ storage.Series    = (*series)(nil)
	_ chunkenc.Iterator = (*iterator)(nil)
)

// Querier returns a reader of the range from mint to maxt, Unix milliseconds, both included. One query uses one, so
// its byte budget is the query's.
func (q *Queryable) Querier(mint, maxt int64) (storage.Querier, error) {
	return &selector{queryable: q, mint: mint, maxt: maxt, budget: q.querier.MaxBytes()}, nil
}

// selector serves the selectors of one query.
type selector struct {
	queryable  *Queryable
	mint, maxt int64
	// budget is how many bytes of samples may still be held.
	budget int64
}

// Select finds the series now and reads their samples when the first is asked for.
func (s *selector) Select(ctx context.Context, sortSeries bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	if hints == nil {
		hints = &storage.SelectHints{Start: s.mint, End: s.maxt, Range: s.maxt - s.mint}
	}
	matchers, counts := withoutCount(matchers)
	l := &loader{selector: s, hints: hints, counts: counts}
	ids := s.queryable.querier.Catalog().Match(matchers...)
	if limit := s.queryable.querier.MaxItems(); len(ids) > limit {
		return storage.ErrSeriesSet(&query.LimitError{What: "the query touches more series than allowed; narrow the matchers", Limit: int64(limit)})
	}
	slices.Sort(ids)
	l.find(ids)
	list := slices.Clone(l.series)
	if sortSeries {
		slices.SortFunc(list, func(a, b *series) int { return labels.Compare(a.labels, b.labels) })
	}
	if hints.Limit > 0 && len(list) > hints.Limit {
		list = list[:hints.Limit]
	}
	return &seriesSet{ctx: ctx, loader: l, list: list, next: -1}
}

// LabelValues returns the values of a label, sorted.
func (s *selector) LabelValues(_ context.Context, name string, hints *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	values, _ := hints.ApplyLimit(s.queryable.querier.Catalog().LabelValues(name, matchers...))
	return values, nil, nil
}

// LabelNames returns the names of labels, sorted.
func (s *selector) LabelNames(_ context.Context, hints *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	names, _ := hints.ApplyLimit(s.queryable.querier.Catalog().LabelNames(matchers...))
	return names, nil, nil
}

// Close does nothing: a selector holds no files.
func (s *selector) Close() error { return nil }

// seriesSet hands out the series of one Select.
type seriesSet struct {
	ctx    context.Context
	loader *loader
	list   []*series
	next   int
	err    error
}

// Next moves to the next series; the first call reads the samples of all.
func (s *seriesSet) Next() bool {
	if s.next < 0 && len(s.list) > 0 {
		s.err = s.loader.load(s.ctx)
	}
	s.next++
	return s.err == nil && s.next < len(s.list)
}

// At returns the current series.
func (s *seriesSet) At() storage.Series { return s.list[s.next] }

// Err returns why reading failed.
func (s *seriesSet) Err() error { return s.err }

// Warnings says where trends stand in for values.
func (s *seriesSet) Warnings() annotations.Annotations { return s.loader.warnings }

// series is one item and its samples.
type series struct {
	labels labels.Labels
	item   model.ItemID
	// lookbackMillis is how long a value counts as current.
	lookbackMillis int64
	at             []int64
	values         []float64
	// foldedFrom is the time of the first value where each sample stands for several, else nil.
	foldedFrom *int64
}

// Labels returns the item as PromQL sees it.
func (s *series) Labels() labels.Labels { return s.labels }

// Iterator returns an iterator over the samples, reusing it if it is one of ours.
func (s *series) Iterator(it chunkenc.Iterator) chunkenc.Iterator {
	own, ok := it.(*iterator)
	if !ok {
		own = new(iterator)
	}
	own.series, own.i = s, -1
	return own
}

// unixMillis is an int64 by another name: a method Seek(int64) would look like a wrong io.Seeker to go vet.
type unixMillis = int64

// iterator walks the samples of a series. It never gives histograms or start times.
type iterator struct {
	series *series
	i      int
}

// Next moves to the next sample.
func (it *iterator) Next() chunkenc.ValueType {
	if it.i < len(it.series.at) {
		it.i++
	}
	return it.kind()
}

// Seek moves to the first sample at or after t, never backwards.
func (it *iterator) Seek(t unixMillis) chunkenc.ValueType {
	it.i = max(it.i, 0)
	if it.i < len(it.series.at) && it.series.at[it.i] < t {
		n, _ := slices.BinarySearch(it.series.at[it.i:], t)
		it.i += n
	}
	return it.kind()
}

func (it *iterator) kind() chunkenc.ValueType {
	if it.i >= len(it.series.at) {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloat
}

// At returns the sample.
func (it *iterator) At() (int64, float64) { return it.series.at[it.i], it.series.values[it.i] }

// AtHistogram is never asked for, because Next and Seek never say that there is one.
func (it *iterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	return math.MinInt64, nil
}

// AtFloatHistogram is never asked for either.
func (it *iterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return math.MinInt64, nil
}

// AtT returns the sample's time, Unix milliseconds.
func (it *iterator) AtT() int64 { return it.series.at[it.i] }

// AtST returns zero: start times are not known.
func (it *iterator) AtST() int64 { return 0 }

// Err returns nil: everything was read before.
func (it *iterator) Err() error { return nil }
