package requests

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/wire/sketch"
)

const hour = int64(time.Hour)

const (
	// trendsFrom is the length of the shortest range whose whole hours are read from trends.
	trendsFrom = 6 * time.Hour
	// readers is into how many reads at the same time a sum is parted.
	readers = 4
)

// span is what has to be read for a range: the values of times, and the trends of whole hours between them.
type span struct {
	values []model.TimeRange
	// hours is empty when no trends are read.
	hours model.TimeRange
}

// spanOf parts a range. Intervals are stored at their ends, so a range has the values behind its begin, up to and with its end. Hours
// count as finished for trends when another one has passed.
func spanOf(r model.TimeRange, now int64) span {
	r.From, r.To = r.From+1, r.To+1
	from, to := r.From+hour-1-mod(r.From+hour-1, hour), min(r.To, now-hour)
	to -= mod(to, hour)
	if r.To-r.From < int64(trendsFrom) || from >= to {
		return span{values: []model.TimeRange{r}}
	}
	s := span{hours: model.TimeRange{From: from, To: to}}
	if r.From < from {
		s.values = append(s.values, model.TimeRange{From: r.From, To: from})
	}
	if to < r.To {
		s.values = append(s.values, model.TimeRange{From: to, To: r.To})
	}
	return s
}

// mod is a % b for positive b, never negative.
func mod(a, b int64) int64 { return ((a % b) + b) % b }

// slot is where the values of an item go.
type slot struct {
	thing   *thing
	measure measure
}

// sum adds the amounts of measures over a range to things. Seconds also go to the slices of thing.loads, where there are any.
func (r *Reader) sum(ctx context.Context, things []*thing, measures []measure, over model.TimeRange) error {
	s := spanOf(over, r.querier.Now().UnixNano())
	return r.parts(ctx, things, func(ctx context.Context, part []*thing) error {
		slots, ids := slotsOf(part, measures)
		for _, span := range s.values {
			err := r.querier.Read(ctx, ids, span, 0, func(c *model.Columns) error {
				slots[c.Item].take(c, over)
				return nil
			})
			if err != nil {
				return fmt.Errorf("sum up requests: %w", err)
			}
		}
		if s.hours.From == s.hours.To {
			return nil
		}
		err := r.querier.Trends(ctx, ids, s.hours, func(c *storage.TrendColumns) error {
			slots[c.Item].takeTrends(c, over)
			return nil
		})
		if err != nil {
			return fmt.Errorf("sum up requests: %w", err)
		}
		return nil
	})
}

// parts calls fn for parts of things at the same time.
func (r *Reader) parts(ctx context.Context, things []*thing, fn func(ctx context.Context, part []*thing) error) error {
	if len(things) < 2*readers {
		return fn(ctx, things)
	}
	group, ctx := errgroup.WithContext(ctx)
	for n := range readers {
		part := things[n*len(things)/readers : (n+1)*len(things)/readers]
		group.Go(func() error { return fn(ctx, part) })
	}
	return group.Wait()
}

// slotsOf lists the items of measures, those of one measure together, as they lie in the store.
func slotsOf(things []*thing, measures []measure) (map[model.ItemID]slot, []model.ItemID) {
	slots := make(map[model.ItemID]slot, len(things)*len(measures))
	ids := make([]model.ItemID, 0, len(things)*len(measures))
	for _, m := range measures {
		for _, t := range things {
			if id := t.items[m]; id != 0 {
				slots[id] = slot{t, m}
				ids = append(ids, id)
			}
		}
	}
	return slots, ids
}

// take adds values.
func (s slot) take(c *model.Columns, over model.TimeRange) {
	if s.thing == nil || !c.Type.Numeric() {
		return
	}
	s.thing.seen = s.thing.seen || len(c.At) > 0
	if s.measure == requestMeasure {
		s.thing.intervals += int64(len(c.At))
	}
	if s.measure != timeMeasure {
		total := s.thing.sums.amount(s.measure)
		for i := range c.Bits {
			if c.Type == model.Uint {
				*total += c.Bits[i]
			} else {
				*total += uint64(max(c.Float(i), 0))
			}
		}
		return
	}
	for i := range c.Bits {
		v := c.Float(i)
		s.thing.sums.Seconds += v
		if n := int64(len(s.thing.loads)); n > 0 {
			s.thing.loads[columnOf(c.At[i], over, n)] += v
		}
	}
}

// columnOf says in which of n equal slices of a range an interval ends.
func columnOf(at int64, over model.TimeRange, n int64) int64 {
	high, low := bits.Mul64(uint64(max(at-1-over.From, 0)), uint64(n))
	column, _ := bits.Div64(high, low, uint64(over.To-over.From))
	return min(int64(column), n-1)
}

// takeTrends adds the sums of hours.
func (s slot) takeTrends(c *storage.TrendColumns, over model.TimeRange) {
	if s.thing == nil || !c.Type.Numeric() {
		return
	}
	s.thing.seen = s.thing.seen || len(c.Trends) > 0
	for i := range c.Trends {
		t := &c.Trends[i]
		if s.measure == requestMeasure {
			s.thing.intervals += int64(t.Count)
		}
		if s.measure != timeMeasure {
			if c.Type == model.Uint {
				*s.thing.sums.amount(s.measure) += t.SumLow
			} else {
				*s.thing.sums.amount(s.measure) += uint64(max(t.Sum, 0))
			}
			continue
		}
		v := t.Average(c.Type) * float64(t.Count)
		s.thing.sums.Seconds += v
		spread(s.thing.loads, v, model.TimeRange{From: t.At, To: t.At + hour}, over)
	}
}

// spread shares an amount of a time among the slices of a range that the time touches.
func spread(slices []float64, amount float64, when, over model.TimeRange) {
	n := int64(len(slices))
	if n == 0 {
		return
	}
	first, last := columnOf(when.From+1, over, n), columnOf(min(when.To, over.To), over, n)
	for i := first; i <= last; i++ {
		slices[i] += amount / float64(last-first+1)
	}
}

// amount returns where a measure that is a whole number is summed up.
func (s *Sums) amount(m measure) *uint64 {
	switch m {
	case requestMeasure:
		return &s.Requests
	case errorMeasure:
		return &s.Errors
	case inMeasure:
		return &s.BytesIn
	case outMeasure:
		return &s.BytesOut
	}
	return &s.Documents
}

// latencies merges the sketches of a range into things.
func (r *Reader) latencies(ctx context.Context, things []*thing, over model.TimeRange) error {
	return r.parts(ctx, things, func(ctx context.Context, part []*thing) error {
		var merger sketch.Merger
		slots, ids := slotsOf(part, []measure{latencyMeasure})
		return r.sketches(ctx, ids, over, nil, func(c *model.Columns) {
			t := slots[c.Item].thing
			if t == nil {
				return
			}
			if t.sums.Latency == nil {
				t.sums.Latency = new(sketch.Sketch)
			}
			for i := range c.At {
				// A sketch that cannot be read is left out: its requests are still counted.
				_ = merger.Merge(t.sums.Latency, c.Bytes(i))
			}
		})
	})
}

// sketches streams encoded sketches, in no order, those of the minutes and hours that lie in one cell as one; see storage.Merger.
func (r *Reader) sketches(ctx context.Context, ids []model.ItemID, over model.TimeRange, cell func(at int64) int, fn func(*model.Columns)) error {
	err := r.querier.Merged(ctx, ids, model.TimeRange{From: over.From + 1, To: over.To + 1}, cell, func(c *model.Columns) error {
		fn(c)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read latencies: %w", err)
	}
	return nil
}
