package page

import "math/bits"

// Whole periods of a column that repeats are summed up once and taken as often as they are there.

// join adds the values of g, times over, behind those of f.
func (f *UintFold) join(g *UintFold, times int) {
	if f.Count == 0 {
		f.First, f.Min, f.Max = g.First, g.Min, g.Max
	}
	f.Count += g.Count * times
	f.Last = g.Last
	f.Min, f.Max = min(f.Min, g.Min), max(f.Max, g.Max)
	high, low := bits.Mul64(g.SumLow, uint64(times))
	var carry uint64
	f.SumLow, carry = bits.Add64(f.SumLow, low, 0)
	f.SumHigh += high + g.SumHigh*uint64(times) + carry
}

// foldUintTurns is FoldUintRanges for a column with the period v.
func foldUintTurns(dst []UintFold, v []uint64, start int, ends []int) []UintFold {
	var whole UintFold
	for _, end := range ends {
		var f, part UintFold
		head, times, tail := turns(v, start, end)
		if len(head) > 0 {
			part.addAll(head)
			f.join(&part, 1)
		}
		if times > 0 {
			if whole.Count == 0 {
				whole.addAll(v)
			}
			f.join(&whole, times)
		}
		if len(tail) > 0 {
			part.addAll(tail)
			f.join(&part, 1)
		}
		dst, start = append(dst, f), end
	}
	return dst
}

// decimalFold summarises integers that stand for floats, whose sum is exact.
type decimalFold struct {
	count                           int
	least, most, first, last, total int64
}

func (f *decimalFold) join(g *decimalFold, times int) {
	if f.count == 0 {
		f.first, f.least, f.most = g.first, g.least, g.most
	}
	f.count += g.count * times
	f.last = g.last
	f.least, f.most = min(f.least, g.least), max(f.most, g.most)
	f.total += g.total * int64(times)
}

func foldDecimals(v []uint64) decimalFold {
	f := decimalFold{count: len(v), least: int64(v[0]), most: int64(v[0]), first: int64(v[0]), last: int64(v[len(v)-1])}
	for _, x := range v {
		f.total += int64(x)
		f.least, f.most = min(f.least, int64(x)), max(f.most, int64(x))
	}
	return f
}

// exactTurns reports whether count integers with the period v, if there is one, have sums that a float holds exactly: then it makes no difference
// in which order they are added.
func exactTurns(v []uint64, count int) bool {
	const exact = 1 << 53
	for _, x := range v {
		if limit := int64(exact / count); int64(x) > limit || int64(x) < -limit {
			return false
		}
	}
	return len(v) > 0
}

// foldFloatTurns is FoldFloatRanges for a column of decimals with the period v, for which exactTurns holds.
func foldFloatTurns(dst []FloatFold, v []uint64, power float64, start int, ends []int) []FloatFold {
	var whole decimalFold
	for _, end := range ends {
		var f decimalFold
		head, times, tail := turns(v, start, end)
		if len(head) > 0 {
			part := foldDecimals(head)
			f.join(&part, 1)
		}
		if times > 0 {
			if whole.count == 0 {
				whole = foldDecimals(v)
			}
			f.join(&whole, times)
		}
		if len(tail) > 0 {
			part := foldDecimals(tail)
			f.join(&part, 1)
		}
		dst = append(dst, FloatFold{
			Count: f.count, Min: float64(f.least) / power, Max: float64(f.most) / power,
			First: float64(f.first) / power, Last: float64(f.last) / power, Sum: float64(f.total) / power,
		})
		start = end
	}
	return dst
}
