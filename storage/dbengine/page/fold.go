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

// FoldUints summarises the values with indices from ≤ i < to of the column b of n values, without making them where
// the column is constant or runs: those are nine of ten columns, and take as long as their bytes. An empty range gives
// the zero fold, and nothing of the column is looked at.
func FoldUints(b []byte, n, from, to int) (UintFold, error) {
	var f UintFold
	if err := checkRange(b, n, from, to); err != nil || from == to {
		return f, err
	}
	c := coders.Get().(*coder)
	defer coders.Put(c)
	v, lengths, err := c.foldable(b, n, from, to)
	if err != nil {
		return f, err
	}
	if lengths == nil {
		f.addAll(v)
		return f, nil
	}
	eachRun(v, lengths, from, to, f.Add)
	return f, nil
}

// FoldFloats is FoldUints for a column of floats.
func FoldFloats(b []byte, n, from, to int) (FloatFold, error) {
	var f FloatFold
	if err := checkRange(b, n, from, to); err != nil || from == to {
		return f, err
	}
	c := coders.Get().(*coder)
	defer coders.Put(c)
	add := func(x uint64, count int) { f.add(math.Float64frombits(x), count) }
	if len(b) < 3 || b[0] != schemeDecimal || b[1] > maxExponent || b[2] != schemeConstant && b[2] != schemeRuns {
		c.check = resize(c.check, n)
		if err := c.decodeFloats(c.check, b); err != nil {
			return f, err
		}
		for _, x := range c.check[from:to] {
			add(x, 1)
		}
		return f, nil
	}
	v, lengths, err := c.foldable(b[2:], n, from, to)
	if err != nil {
		return f, err
	}
	power := powers[b[1]]
	eachRun(v, lengths, from, to, func(x uint64, count int) { add(scaled(x, power), count) })
	return f, nil
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
	c.check = resize(c.check, n)
	if err := c.decode(c.check, b, rankUnit); err != nil {
		return nil, nil, err
	}
	return c.check[from:to], nil, nil
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

// eachRun calls fn for each run that reaches into from ≤ i < to, with how many of its values do. The lengths are one less.
func eachRun(v, lengths []uint64, from, to int, fn func(x uint64, count int)) {
	at := 0
	for k, x := range v {
		end := at + int(lengths[k]) + 1
		if count := min(end, to) - max(at, from); count > 0 {
			fn(x, count)
		}
		if at = end; at >= to {
			return
		}
	}
}
