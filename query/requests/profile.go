package requests

import (
	"context"
	"fmt"
	"math"
	"time"

	"tidemark/model"
	"tidemark/query"
	"tidemark/storage"
	"tidemark/wire/sketch"
)

// WholeID asks Profile for the whole instance.
const WholeID = "all"

// MaxColumns is how many columns a profile has at most.
const MaxColumns = 500

// Profile is one shape, or a whole instance, over time. All columns are equally long but the first and last, which the range may cut.
type Profile struct {
	Names
	Sums
	Range   model.TimeRange
	Watched time.Duration
	// Step is the length of a column; Start is where the first begins, at or before the range does.
	Step    time.Duration
	Start   int64
	Columns []Column
	Heat    Heat
	// Plan is how the server answers the shape; nil where it was not asked.
	Plan *Plan
	// Codes are the errors by number, what came most first; none for the whole instance.
	Codes []ErrorCode
}

// Column is one step of a profile. Its Latency is nil; percentiles are in Quantiles.
type Column struct {
	Sums
	// Watched is for how long of the step there are statistics; zero is a gap.
	Watched time.Duration
	// Quantiles are p50, p95, p99 and the maximum in seconds; all zero when nothing was answered.
	Quantiles [4]float64
}

// Heat is how many requests had which latency in which column.
type Heat struct {
	// Bounds are the lower ends of the rows in seconds, rising, and the upper end of the last row; empty without latencies.
	Bounds []float64
	Cells  []Cell
}

// Cell is one filled field of a heat map.
type Cell struct {
	Column, Row int
	Count       uint64
}

// steps are the lengths that a column may have.
var steps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute,
	5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour,
	12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour, 91 * 24 * time.Hour, 364 * 24 * time.Hour,
}

// stepOf returns the shortest step that is no shorter than an interval and parts a range into at most columns columns.
func stepOf(over model.TimeRange, interval time.Duration, columns int) time.Duration {
	for _, s := range steps {
		if s >= interval && s%interval == 0 && (over.To-over.From)/int64(s)+2 <= int64(columns) {
			return s
		}
	}
	return max(interval, time.Duration((over.To-over.From)/int64(max(columns-2, 1))+1))
}

// Profile shows one shape over a range, or with WholeID all requests of the instance, in at most columns columns (3 to MaxColumns). An
// UnknownError says that the instance has no such shape.
func (r *Reader) Profile(ctx context.Context, i *Instance, id string, over model.TimeRange, columns int) (*Profile, error) {
	if columns < 3 || columns > MaxColumns {
		return nil, &query.LimitError{What: fmt.Sprintf("%d columns are asked for, expected at least 3", columns), Limit: MaxColumns}
	}
	if err := (&Question{Range: over, Limit: 1}).check(); err != nil {
		return nil, err
	}
	t, err := r.find(i, id)
	if err != nil {
		return nil, err
	}
	ctx, end, err := r.querier.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	p := &Profile{Names: t.names, Range: over, Step: stepOf(over, i.interval, columns)}
	p.Start = over.From - mod(over.From, int64(p.Step))
	p.Columns = make([]Column, (over.To-1-p.Start)/int64(p.Step)+1)
	watch := &thing{items: measureItems{requestMeasure: i.items[requestMeasure]}}
	err = r.fill(ctx, p, watch, func(c *Column, _ measure, _ uint64, _ float64, count int) {
		c.Watched += time.Duration(count) * i.interval
		p.Watched += time.Duration(count) * i.interval
	})
	if err != nil {
		return nil, err
	}
	err = r.fill(ctx, p, t, func(c *Column, m measure, n uint64, seconds float64, _ int) {
		if m == timeMeasure {
			c.Seconds += seconds
			p.Seconds += seconds
			return
		}
		*c.amount(m) += n
		*p.amount(m) += n
	})
	if err != nil {
		return nil, err
	}
	p.Watched = min(p.Watched, time.Duration(over.To-over.From))
	if id != WholeID && p.Errors > 0 {
		if p.Codes, err = r.codes(ctx, i, id, over); err != nil {
			return nil, err
		}
	}
	if p.Plan, err = r.plan(ctx, t.plan, over); err != nil {
		return nil, err
	}
	return p, r.heat(ctx, p, t.items[latencyMeasure])
}

// find returns a shape of an instance, or the instance as a thing.
func (r *Reader) find(i *Instance, id string) (*thing, error) {
	if id == WholeID {
		return &thing{names: Names{ID: WholeID}, items: i.items}, nil
	}
	for _, t := range r.things(i, ByShape) {
		if t.names.ID == id {
			return &t, nil
		}
	}
	return nil, &UnknownError{"shape at " + i.ID() + " with the fingerprint", id}
}

// column returns the column in which an interval ends.
func (p *Profile) column(at int64) *Column {
	n := (at - 1 - p.Start) / int64(p.Step)
	return &p.Columns[min(max(n, 0), int64(len(p.Columns)-1))]
}

// fill reads the amounts of a thing into columns: whole hours from trends where a column is at least as long. add gets a whole number or
// seconds, and how many intervals they are from.
func (r *Reader) fill(ctx context.Context, p *Profile, t *thing, add func(c *Column, m measure, n uint64, seconds float64, count int)) error {
	s := span{values: []model.TimeRange{{From: p.Range.From + 1, To: p.Range.To + 1}}}
	if p.Step >= time.Hour {
		s = spanOf(p.Range, r.querier.Now().UnixNano())
	}
	slots, ids := slotsOf([]*thing{t}, amounts)
	for _, when := range s.values {
		err := r.querier.Read(ctx, ids, when, 0, func(c *model.Columns) error {
			m := slots[c.Item].measure
			for i, at := range c.At {
				if c.Type == model.Uint {
					add(p.column(at), m, c.Bits[i], float64(c.Bits[i]), 1)
				} else if c.Type == model.Float {
					add(p.column(at), m, uint64(max(c.Float(i), 0)), c.Float(i), 1)
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("read requests over time: %w", err)
		}
	}
	err := r.querier.Trends(ctx, ids, s.hours, func(c *storage.TrendColumns) error {
		m := slots[c.Item].measure
		for i := range c.Trends {
			h := &c.Trends[i]
			sum := h.Average(c.Type) * float64(h.Count)
			whole := h.SumLow
			if c.Type != model.Uint {
				whole = uint64(max(sum, 0))
			}
			add(p.column(h.At+1), m, whole, sum, int(h.Count))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read requests over time: %w", err)
	}
	return nil
}

// heat reads the latencies of a profile: percentiles by column, the heat map, and the distribution of the whole range.
func (r *Reader) heat(ctx context.Context, p *Profile, id model.ItemID) error {
	if id == 0 {
		return nil
	}
	h := heater{profile: p, sums: make([]sketch.Sketch, len(p.Columns)), lowest: math.MaxInt}
	cell := func(at int64) int {
		return int(min(max((at-1-p.Start)/int64(p.Step), 0), int64(len(p.Columns)-1)))
	}
	err := r.sketches(ctx, []model.ItemID{id}, p.Range, cell, func(c *model.Columns) {
		for i, at := range c.At {
			_ = h.merger.Merge(&h.sums[cell(at)], c.Bytes(i)) // as in latencies
		}
	})
	if err != nil {
		return err
	}
	h.close()
	return nil
}

// heater makes the latencies of a profile.
type heater struct {
	profile *Profile
	merger  sketch.Merger
	// sums are those of the columns.
	sums        []sketch.Sketch
	whole       sketch.Sketch
	lowest, top int
}

// rowsPerOctave is how many rows of a heat map make a doubling of the latency.
const rowsPerOctave = 2

// finish takes a column into the profile.
func (h *heater) finish(column int) {
	sum := &h.sums[column]
	if sum.Count == 0 {
		return
	}
	c := &h.profile.Columns[column]
	for i, q := range []float64{0.5, 0.95, 0.99, 1} {
		c.Quantiles[i] = sum.Quantile(q) / 1e9
	}
	cells := &h.profile.Heat.Cells
	sum.Histogram(func(from, to float64, count uint32) {
		row := int(math.Floor(rowsPerOctave * math.Log2((from+to)/2)))
		h.lowest, h.top = min(h.lowest, row), max(h.top, row)
		if n := len(*cells); n > 0 && (*cells)[n-1].Column == column && (*cells)[n-1].Row == row {
			(*cells)[n-1].Count += uint64(count)
			return
		}
		*cells = append(*cells, Cell{column, row, uint64(count)})
	})
	h.whole.Merge(sum)
}

// close takes all columns into the profile and numbers the rows from the lowest that is filled.
func (h *heater) close() {
	for column := range h.sums {
		h.finish(column)
	}
	if h.whole.Count == 0 {
		return
	}
	h.profile.Latency = &h.whole
	heat := &h.profile.Heat
	for i := range heat.Cells {
		heat.Cells[i].Row -= h.lowest
	}
	for row := h.lowest; row <= h.top+1; row++ {
		heat.Bounds = append(heat.Bounds, math.Exp2(float64(row)/rowsPerOctave)/1e9)
	}
}
