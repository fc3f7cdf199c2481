package page

import (
	"math"
	"math/bits"
)

// UintFold summarises integers.
type UintFold struct {
	Count                 int
	Min, Max, First, Last uint64
	// SumHigh:SumLow is the exact sum.
	SumHigh, SumLow uint64
}

// Add adds count times x.
func (f *UintFold) Add(x uint64, count int) {
	if f.Count == 0 {
		f.First, f.Min, f.Max = x, x, x
	}
	f.Count += count
	f.Last = x
	f.Min, f.Max = min(f.Min, x), max(f.Max, x)
	high, low := bits.Mul64(x, uint64(count))
	var carry uint64
	f.SumLow, carry = bits.Add64(f.SumLow, low, 0)
	f.SumHigh, _ = bits.Add64(f.SumHigh, high, carry)
}

// addAll adds the values of v to an empty fold.
func (f *UintFold) addAll(v []uint64) {
	low, high := uint64(0), uint64(0)
	least, most := v[0], v[0]
	for _, x := range v {
		var carry uint64
		low, carry = bits.Add64(low, x, 0)
		high += carry
		least, most = min(least, x), max(most, x)
	}
	*f = UintFold{Count: len(v), Min: least, Max: most, First: v[0], Last: v[len(v)-1], SumHigh: high, SumLow: low}
}

// FloatFold summarises floats. A NaN makes Sum NaN and counts for neither Min nor Max, which are NaN if there is nothing else.
type FloatFold struct {
	Count                 int
	Min, Max, First, Last float64
	Sum                   float64
}

// add adds count times x.
func (f *FloatFold) add(x float64, count int) {
	if f.Count == 0 {
		f.First, f.Min, f.Max = x, x, x
	}
	f.Count += count
	f.Last = x
	if x < f.Min || math.IsNaN(f.Min) {
		f.Min = x
	}
	if x > f.Max || math.IsNaN(f.Max) {
		f.Max = x
	}
	f.Sum += x * float64(count)
}

// addAll adds floats to an empty fold.
func (f *FloatFold) addAll(v []uint64) {
	first := math.Float64frombits(v[0])
	least, most, sum := first, first, 0.0
	for _, bits := range v {
		x := math.Float64frombits(bits)
		if x < least || least != least {
			least = x
		}
		if x > most || most != most {
			most = x
		}
		sum += x
	}
	*f = FloatFold{Count: len(v), Min: least, Max: most, First: first, Last: math.Float64frombits(v[len(v)-1]), Sum: sum}
}

const (
	// maxExact bounds integers of which exactRun ones have a sum below 2^63.
	maxExact = 1 << 50
	exactRun = 1 << 12
)

// addDecimals adds integers that stand for floats to an empty fold. They are summed up before they are divided: once, and exactly.
func (f *FloatFold) addDecimals(v []uint64, power float64) {
	least, most, sum := int64(v[0]), int64(v[0]), 0.0
	for rest := v; len(rest) > 0; {
		run := rest[:min(len(rest), exactRun)]
		total := int64(0)
		for _, x := range run {
			total += int64(x)
			least, most = min(least, int64(x)), max(most, int64(x))
		}
		sum += float64(total)
		rest = rest[len(run):]
	}
	if least < -maxExact || most > maxExact {
		sum = 0
		for _, x := range v {
			sum += float64(int64(x))
		}
	}
	*f = FloatFold{
		Count: len(v), Min: float64(least) / power, Max: float64(most) / power,
		First: float64(int64(v[0])) / power, Last: float64(int64(v[len(v)-1])) / power, Sum: sum / power,
	}
}

// FoldUints summarises the values with indices from ≤ i < to of the column b of n values, without making them where
// the column is constant or runs: those are nine of ten columns, and take as long as their bytes. An empty range gives
// the zero fold, and nothing of the column is looked at.
func FoldUints(b []byte, n, from, to int) (UintFold, error) {
	if err := checkRange(b, n, from, to); err != nil || from == to {
		return UintFold{}, err
	}
	var room [1]UintFold
	folds, err := FoldUintRanges(room[:0], b, n, from, []int{to})
	if err != nil {
		return UintFold{}, err
	}
	return folds[0], nil
}

// FoldFloats is FoldUints for a column of floats.
func FoldFloats(b []byte, n, from, to int) (FloatFold, error) {
	if err := checkRange(b, n, from, to); err != nil || from == to {
		return FloatFold{}, err
	}
	var room [1]FloatFold
	folds, err := FoldFloatRanges(room[:0], b, n, from, []int{to})
	if err != nil {
		return FloatFold{}, err
	}
	return folds[0], nil
}

// FoldUintRanges appends the folds of ranges that follow one another to dst: of the values from index from up to the first of ends, from there to the
// second, and so on. Ends rise. The column is read once. On an error dst is returned as it was.
func FoldUintRanges(dst []UintFold, b []byte, n, from int, ends []int) ([]UintFold, error) {
	to, err := checkRanges(b, n, from, ends)
	if err != nil {
		return dst, err
	}
	c := coders.Get().(*coder)
	defer coders.Put(c)
	once, err := c.cycle(b, n, to-from)
	if err != nil {
		return dst, err
	}
	if once != nil {
		return foldUintTurns(dst, once, from, ends), nil
	}
	v, lengths, err := c.foldable(b, n, from, to)
	if err != nil {
		return dst, err
	}
	start := from
	var r runs
	for _, end := range ends {
		var f UintFold
		if lengths == nil {
			f.addAll(v[start-from : end-from])
		} else {
			r.each(v, lengths, start, end, f.Add)
		}
		dst, start = append(dst, f), end
	}
	return dst, nil
}

// FoldFloatRanges is FoldUintRanges for a column of floats.
func FoldFloatRanges(dst []FloatFold, b []byte, n, from int, ends []int) ([]FloatFold, error) {
	to, err := checkRanges(b, n, from, ends)
	if err != nil {
		return dst, err
	}
	c := coders.Get().(*coder)
	defer coders.Put(c)
	start := from
	if len(b) < 2 || b[0] != schemeDecimal || b[1] > maxExponent {
		c.check = resize(c.check, n)
		if err := c.decodeFloats(c.check, b); err != nil {
			return dst, err
		}
		for _, end := range ends {
			var f FloatFold
			f.addAll(c.check[start:end])
			dst, start = append(dst, f), end
		}
		return dst, nil
	}
	power := powers[b[1]]
	once, err := c.cycle(b[2:], n, to-from)
	if err != nil {
		return dst, err
	}
	if exactTurns(once, to-from) {
		return foldFloatTurns(dst, once, power, from, ends), nil
	}
	v, lengths, err := c.foldable(b[2:], n, from, to)
	if err != nil {
		return dst, err
	}
	var r runs
	for _, end := range ends {
		var f FloatFold
		if lengths == nil {
			f.addDecimals(v[start-from:end-from], power)
		} else {
			r.each(v, lengths, start, end, func(x uint64, count int) { f.add(float64(int64(x))/power, count) })
		}
		dst, start = append(dst, f), end
	}
	return dst, nil
}

// foldable returns the values from ≤ i < to of an integer column; or, with their lengths, all the runs of one that is constant or runs.
func (c *coder) foldable(b []byte, n, from, to int) (v, lengths []uint64, err error) {
	if len(b) > 0 && b[0] == schemeConstant {
		f := fields{rest: b[1:]}
		l := &c.levels[rankRuns]
		l.outer, l.inner = append(l.outer[:0], f.signed()), append(l.inner[:0], uint64(n)-1)
		return l.outer, l.inner, f.end()
	}
	if len(b) > 0 && b[0] == schemeRuns {
		l, err := c.readRuns(n, fields{rest: b[1:]})
		if err != nil {
			return nil, nil, err
		}
		return l.outer, l.inner, nil
	}
	v, err = c.decodeSpan(b, n, from, to)
	return v, nil, err
}

// checkRanges refuses ranges that are not within n values or do not rise, and returns where the last one ends.
func checkRanges(b []byte, n, from int, ends []int) (to int, err error) {
	to = from
	for _, end := range ends {
		if end <= to {
			return 0, corrupt("a range that ends at value %d behind %d", end, to)
		}
		to = end
	}
	return to, checkRange(b, n, from, to)
}

// checkRange refuses ranges that are not within n values.
func checkRange(b []byte, n, from, to int) error {
	if err := checkCount(b, n); err != nil {
		return err
	}
	if from < 0 || from > to || to > n {
		return corrupt("values %d to %d of %d", from, to, n)
	}
	return nil
}

// runs are a place in a column of runs.
type runs struct{ k, at int }

// each calls fn for each run that reaches into from ≤ i < to, with how many of its values do. The lengths are one less. Ranges rise from call to call.
func (r *runs) each(v, lengths []uint64, from, to int, fn func(x uint64, count int)) {
	for r.k < len(v) {
		end := r.at + int(lengths[r.k]) + 1
		if count := min(end, to) - max(r.at, from); count > 0 {
			fn(v[r.k], count)
		}
		if end > to {
			return
		}
		r.at = end
		r.k++
		if end == to {
			return
		}
	}
}
