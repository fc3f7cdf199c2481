package dbengine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/page"
)

// denseNanos is the distance below which values are dense.
const denseNanos = 1_000_000

// Fold sums up values where they are decoded. See storage.Folder.
//
// Values whose times are one step apart, as most are, are summed up by their column, which knows how to do that for runs and decimals without making
// them; of other pages the values are made, one page at a time.
func (db *DB) Fold(ctx context.Context, q storage.Query, step int64, fn func(*storage.FoldColumns) error) error {
	if step <= 0 {
		return fmt.Errorf("fold: a step of %d ns, expected at least 1", step)
	}
	budget := q.MaxBytes
	if budget <= 0 {
		budget = defaultReadBytes
	}
	defer db.readers.leave(db.readers.enter())
	r := readings.Get().(*reading)
	r.db, r.ctx, r.r, r.budget = db, ctx, q.Range, budget
	defer r.free()
	f := summing{reading: r, step: step, emit: fn}
	r.fn = func(c *model.Columns) error { return f.add(c.Type, c.At, c.Bits) }
	for _, id := range q.Items {
		if err := ctx.Err(); err != nil {
			return err
		}
		f.out = storage.FoldColumns{Item: id, Folds: f.out.Folds[:0]}
		if err := f.item(id); err != nil {
			return err
		}
		if err := f.deliver(); err != nil {
			return err
		}
	}
	return nil
}

// summing is one Fold.
type summing struct {
	*reading
	step int64
	out  storage.FoldColumns
	emit func(*storage.FoldColumns) error
	// ends, uints and floats are of one page.
	ends   []int
	uints  []page.UintFold
	floats []page.FloatFold
}

func (f *summing) item(id model.ItemID) error {
	if err := f.db.viewOf(&f.view, id, f.r, 0); err != nil {
		return err
	}
	if len(f.view.late) > 0 { // they are merged as for who reads
		return f.stream(id, &f.view)
	}
	for i := range f.view.base {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		err := f.piece(&f.view.base[i])
		if _, damaged := errors.AsType[*storage.CorruptionError](err); damaged || errors.Is(err, errGone) {
			f.db.damaged(err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *summing) piece(p *piece) error {
	if p.onDisk() {
		if !p.ref.valueType.Numeric() {
			return nil
		}
		q, err := f.db.readPage(&p.ref)
		if err != nil {
			return err
		}
		if step, low, high, linear := linearRange(&q, f.r); linear {
			if low >= high {
				return nil
			}
			return p.ref.locate(f.linear(&q, step, low, high))
		}
	}
	ok, err := f.load(p)
	if err != nil || !ok {
		return err
	}
	return f.add(f.page.valueType, f.page.at, f.page.bits)
}

// linear adds the values low ≤ i < high of a page whose times are distance apart.
func (f *summing) linear(p *extent.Page, distance int64, low, high int) error {
	f.ends = f.ends[:0]
	for at := low; at < high; {
		at = f.indexBehind(p.From, distance, p.From+int64(at)*distance, high)
		f.ends = append(f.ends, at)
	}
	numbers, err := f.foldPage(p, low)
	if err != nil {
		return err
	}
	if !numbers { // some are none, which only their values tell
		d := &f.page
		if d.bits, err = page.DecodeFloatsRange(d.bits[:0], p.Values, p.Count, low, high); err != nil {
			return err
		}
	}
	start := low
	for i, end := range f.ends {
		from := p.From + int64(start)*distance
		row, err := f.row(p.Type, from)
		if err != nil {
			return err
		}
		note(row, from, p.From+int64(end-1)*distance, distance < denseNanos && end > start+1)
		switch {
		case p.Type == model.Uint:
			x := &f.uints[i]
			merge(row, p.Type, &storage.Fold{
				Count: uint64(x.Count), SumHigh: x.SumHigh, SumLow: x.SumLow, Min: x.Min, Max: x.Max, First: x.First, Last: x.Last,
			})
		case numbers:
			x := &f.floats[i]
			merge(row, p.Type, &storage.Fold{
				Count: uint64(x.Count), Sum: x.Sum, Min: math.Float64bits(x.Min), Max: math.Float64bits(x.Max),
				First: math.Float64bits(x.First), Last: math.Float64bits(x.Last),
			})
		default:
			addFold(row, p.Type, f.page.bits[start-low:end-low])
		}
		start = end
	}
	return nil
}

// foldPage sums up the values of a page from an index on, up to each of f.ends. It reports false if there are floats that are no numbers.
func (f *summing) foldPage(p *extent.Page, from int) (numbers bool, err error) {
	if p.Type == model.Uint {
		f.uints, err = page.FoldUintRanges(f.uints[:0], p.Values, p.Count, from, f.ends)
		return true, err
	}
	f.floats, err = page.FoldFloatRanges(f.floats[:0], p.Values, p.Count, from, f.ends)
	for i := range f.floats {
		if math.IsNaN(f.floats[i].Sum) {
			return false, err
		}
	}
	return true, err
}

// indexBehind returns the first index whose time is not in the step of one at from, at most high.
func (f *summing) indexBehind(first, distance, from int64, high int) int {
	left := uint64(f.step) - 1 - uint64(from-f.r.From)%uint64(f.step) // of the step behind from
	return int(min(uint64(high), uint64(from-first)/uint64(distance)+left/uint64(distance)+1))
}

// add adds values in order of time.
func (f *summing) add(t model.ValueType, at []int64, values []uint64) error {
	if !t.Numeric() {
		return nil
	}
	for len(at) > 0 {
		row, err := f.row(t, at[0])
		if err != nil {
			return err
		}
		n := 1
		if end := row.At + f.step; end > row.At {
			n = searchTimes(at, end)
		} else {
			n = len(at)
		}
		dense := false
		for i := 1; i < n; i++ {
			dense = dense || at[i]-at[i-1] < denseNanos
		}
		note(row, at[0], at[n-1], dense)
		addFold(row, t, values[:n])
		at, values = at[n:], values[n:]
	}
	return nil
}

// stepOf returns where the step of an instant begins.
func (f *summing) stepOf(at int64) int64 {
	return at - int64(uint64(at-f.r.From)%uint64(f.step))
}

// row returns the fold that an instant belongs to, which is the last one or a new one.
func (f *summing) row(t model.ValueType, at int64) (*storage.Fold, error) {
	start, n := f.stepOf(at), len(f.out.Folds)
	if n > 0 && f.out.Type == t && f.out.Folds[n-1].At == start {
		return &f.out.Folds[n-1], nil
	}
	if n >= columnValues || n > 0 && f.out.Type != t {
		if err := f.deliver(); err != nil {
			return nil, err
		}
	}
	f.out.Type = t
	f.out.Folds = append(f.out.Folds, storage.Fold{At: start})
	return &f.out.Folds[len(f.out.Folds)-1], nil
}

func (f *summing) deliver() error {
	if len(f.out.Folds) == 0 {
		return nil
	}
	err := f.emit(&f.out)
	f.out.Folds = f.out.Folds[:0]
	return err
}

// note notes the times of values that are added next.
func note(f *storage.Fold, from, to int64, dense bool) {
	if f.Count+f.NaNs == 0 {
		f.FirstAt = from
	} else if from-f.LastAt < denseNanos {
		dense = true
	}
	f.LastAt, f.Dense = to, f.Dense || dense
}

// merge adds what later values come to, of which there is at least one.
func merge(f *storage.Fold, t model.ValueType, add *storage.Fold) {
	first := f.Count == 0
	f.Count += add.Count
	f.Last = add.Last
	if first {
		f.Min, f.Max, f.First = add.Min, add.Max, add.First
	}
	if t == model.Uint {
		f.Min, f.Max = min(f.Min, add.Min), max(f.Max, add.Max)
		var carry uint64
		f.SumLow, carry = bits.Add64(f.SumLow, add.SumLow, 0)
		f.SumHigh += add.SumHigh + carry
		return
	}
	f.Sum += add.Sum
	if math.Float64frombits(add.Min) < math.Float64frombits(f.Min) {
		f.Min = add.Min
	}
	if math.Float64frombits(add.Max) > math.Float64frombits(f.Max) {
		f.Max = add.Max
	}
}

// addFold adds values that are later than those before.
func addFold(f *storage.Fold, t model.ValueType, values []uint64) {
	if t == model.Uint {
		addUintFold(f, values)
		return
	}
	for f.Count == 0 && len(values) > 0 {
		if v := values[0]; math.IsNaN(math.Float64frombits(v)) {
			f.NaNs++
		} else {
			f.Count, f.Min, f.Max, f.First, f.Last, f.Sum = 1, v, v, v, v, math.Float64frombits(v)
		}
		values = values[1:]
	}
	low, high, last := math.Float64frombits(f.Min), math.Float64frombits(f.Max), f.Last
	sum, nans := f.Sum, uint64(0)
	for _, b := range values {
		v := math.Float64frombits(b)
		if v != v {
			nans++
			continue
		}
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
		sum += v
		last = b
	}
	f.Min, f.Max, f.Last, f.Sum = math.Float64bits(low), math.Float64bits(high), last, sum
	f.Count += uint64(len(values)) - nans
	f.NaNs += nans
}

func addUintFold(f *storage.Fold, values []uint64) {
	if len(values) == 0 {
		return
	}
	if f.Count == 0 {
		f.Min, f.Max, f.First = values[0], values[0], values[0]
	}
	low, high, sumLow, sumHigh := f.Min, f.Max, f.SumLow, f.SumHigh
	for _, v := range values {
		low, high = min(low, v), max(high, v)
		var carry uint64
		sumLow, carry = bits.Add64(sumLow, v, 0)
		sumHigh += carry
	}
	f.Min, f.Max, f.SumLow, f.SumHigh = low, high, sumLow, sumHigh
	f.Last = values[len(values)-1]
	f.Count += uint64(len(values))
}
