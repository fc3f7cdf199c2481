package promql

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"tidemark/model"
	"tidemark/query"
)

// sampleBytes is what one sample takes in a series.
const sampleBytes = 16

var staleNaN = math.Float64frombits(value.StaleNaN)

// loader reads the samples of one selector.
type loader struct {
	selector *selector
	hints    *storage.SelectHints
	// counts means that samples are numbers of values.
	counts   bool
	series   []*series
	byItem   map[model.ItemID]*series
	warnings annotations.Annotations
}

// find makes the series, without samples.
func (l *loader) find(ids []model.ItemID) {
	catalog := l.selector.queryable.querier.Catalog()
	l.series = make([]*series, 0, len(ids))
	l.byItem = make(map[model.ItemID]*series, len(ids))
	builder := labels.NewScratchBuilder(16)
	for _, id := range ids {
		own := catalog.Labels(id)
		entry, ok := catalog.Item(id)
		if !ok || len(own) == 0 {
			continue // forgotten since Match
		}
		builder.Reset()
		for _, label := range own {
			builder.Add(label.Name, label.Value)
		}
		s := &series{item: id, labels: builder.Labels(), lookbackMillis: l.lookback(&entry).Milliseconds()}
		l.series = append(l.series, s)
		l.byItem[id] = s
	}
}

// lookback is the larger of five minutes and twice the time that a healthy item may be silent.
func (l *loader) lookback(entry *model.Entry) time.Duration {
	if own := l.selector.queryable.lookback; own > 0 {
		return own
	}
	return min(max(MinLookback, 2*entry.Silence), MaxLookback)
}

// instant reports whether the selector takes one value per step, with a look-back, and not a range of values.
func (l *loader) instant() bool { return l.hints.Range == 0 }

// from is the first millisecond that matters for a series. The engine asks for MaxLookback before the first step;
// a series needs only its own look-back.
func (l *loader) from(lookbackMillis int64) int64 {
	if !l.instant() {
		return l.hints.Start
	}
	return l.hints.Start + max(MaxLookback.Milliseconds()-lookbackMillis, 0)
}

// load reads all samples: history first, then trends where history does not reach back far enough.
func (l *loader) load(ctx context.Context) error {
	groups := make(map[int64][]model.ItemID)
	for _, s := range l.series {
		from := l.from(s.lookbackMillis)
		groups[from] = append(groups[from], s.item)
	}
	for from, ids := range groups {
		ids, err := l.fold(ctx, ids)
		if err != nil {
			return err
		}
		r := model.TimeRange{From: nanos(from), To: nanos(l.hints.End + 1)}
		if err := l.selector.queryable.querier.Read(ctx, ids, r, 0, l.take); err != nil {
			return err
		}
	}
	if err := l.loadTrends(ctx); err != nil {
		return err
	}
	if l.instant() {
		for _, s := range l.series {
			if err := l.endLookbacks(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// nanos converts milliseconds; times outside of what nanoseconds can hold are cut.
func nanos(millis int64) int64 {
	const limit = math.MaxInt64 / int64(time.Millisecond)
	return min(max(millis, -limit), limit) * int64(time.Millisecond)
}

// millis rounds down, also before 1970.
func millis(nanos int64) int64 {
	m := nanos / int64(time.Millisecond)
	if nanos < 0 && m*int64(time.Millisecond) != nanos {
		m--
	}
	return m
}

// take copies columns into their series. Of several values in one millisecond PromQL can see only one: the last.
func (l *loader) take(c *model.Columns) error {
	s := l.byItem[c.Item]
	if s == nil || !c.Type.Numeric() {
		return nil
	}
	if err := l.spend(len(c.At)); err != nil {
		return err
	}
	s.at = slices.Grow(s.at, len(c.At))
	s.values = slices.Grow(s.values, len(c.At))
	for i, at := range c.At {
		t, v := millis(at), c.Float(i)
		if l.counts && !value.IsStaleNaN(v) {
			v = 1
		}
		if n := len(s.at); n > 0 && s.at[n-1] >= t {
			if s.at[n-1] == t {
				s.values[n-1] = v
			}
			continue
		}
		s.at = append(s.at, t)
		s.values = append(s.values, v)
	}
	return nil
}

// spend takes the bytes of n samples from the query's budget.
func (l *loader) spend(n int) error {
	l.selector.budget -= int64(n) * sampleBytes
	if l.selector.budget >= 0 {
		return nil
	}
	limit := l.selector.queryable.querier.MaxBytes()
	return &query.LimitError{What: "the query reads more bytes of samples than allowed; ask for fewer series or a shorter range", Limit: limit}
}

// endLookbacks puts a stale marker where a value is older than the series' look-back before the next one comes.
func (l *loader) endLookbacks(s *series) error {
	end := l.hints.End
	gaps := 0
	for i, t := range s.at {
		if next := nextAt(s.at, i, end+1); next > t+s.lookbackMillis {
			gaps++
		}
	}
	if gaps == 0 {
		return nil
	}
	if err := l.spend(gaps); err != nil {
		return err
	}
	at, values := make([]int64, 0, len(s.at)+gaps), make([]float64, 0, len(s.at)+gaps)
	for i, t := range s.at {
		at, values = append(at, t), append(values, s.values[i])
		if next := nextAt(s.at, i, end+1); next > t+s.lookbackMillis {
			at, values = append(at, t+s.lookbackMillis), append(values, staleNaN)
		}
	}
	s.at, s.values = at, values
	return nil
}

// nextAt returns the time after at[i], or end behind the last.
func nextAt(at []int64, i int, end int64) int64 {
	if i+1 < len(at) {
		return at[i+1]
	}
	return end
}
