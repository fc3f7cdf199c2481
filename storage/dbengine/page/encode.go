package page

import (
	"encoding/binary"
	"math/bits"
)

// shape is what one pass over a column finds.
type shape struct {
	// changes counts the values that differ from the one before, bends the deltas that do so.
	changes, bends int
	// low and high are the ends of the range that holds all values, on the circle of 2^64 seen from the first.
	low, high uint64
	// least and most are the smallest and largest delta.
	least, most int64
}

// measure fills delta (delta[0] is zero) and returns the shape of v, which has at least two values. Its counters are plain
// variables so that they stay in registers, and are added to without branches.
func measure(delta, v []uint64) shape {
	first := v[0]
	before, slope := first, v[1]-first
	low, high := int64(0), int64(0) // relative to the first value
	least, most := int64(slope), int64(slope)
	changes, bends := uint64(0), uint64(0)
	delta = delta[:len(v)]
	delta[0] = 0
	for i := 1; i < len(v); i++ {
		x := v[i]
		d := x - before
		delta[i] = d
		bend := d - slope
		changes += (d | -d) >> 63
		bends += (bend | -bend) >> 63
		before, slope = x, d
		low, high = min(low, int64(x-first)), max(high, int64(x-first))
		least, most = min(least, int64(d)), max(most, int64(d))
	}
	return shape{
		changes: int(changes), bends: int(bends), low: first + uint64(low), high: first + uint64(high), least: least, most: most,
	}
}

// constant reports whether all values are the same, as in most columns.
func constant(v []uint64) bool {
	x := v[0]
	for len(v) >= 8 {
		b := (*[8]uint64)(v)
		if (b[0]^x)|(b[1]^x)|(b[2]^x)|(b[3]^x)|(b[4]^x)|(b[5]^x)|(b[6]^x)|(b[7]^x) != 0 {
			return false
		}
		v = v[8:]
	}
	for _, y := range v {
		if y != x {
			return false
		}
	}
	return true
}

// commonUnit returns the greatest common divisor of all deltas as signed numbers; most columns give 1 after few steps.
func commonUnit(delta []uint64) uint64 {
	var g uint64
	for _, d := range delta {
		if int64(d) < 0 {
			d = -d
		}
		if g != 0 && d%g == 0 || d == 0 {
			continue
		}
		for d != 0 {
			g, d = d, g%d
		}
		if g == 1 {
			return 1
		}
	}
	return g
}

// encode appends the shortest column of v that rank allows.
func (c *coder) encode(dst []byte, v []uint64, r rank) []byte {
	n := len(v)
	if n == 0 {
		return dst
	}
	if constant(v) {
		return shorter(appendConstant(dst, v[0]), len(dst), v)
	}
	l := &c.levels[r]
	l.delta = resize(l.delta, n)
	s := measure(l.delta, v)
	if s.bends == 0 {
		return shorter(appendLinear(dst, v[0], l.delta[1]), len(dst), v)
	}
	mark := len(dst)
	if r <= rankUnit {
		if unit := commonUnit(l.delta); unit > 1 {
			dst = c.encodeUnit(dst, v, unit)
			if s.changes*bits.Len64(unit) >= 128 {
				return shorter(dst, mark, v)
			}
		}
	}
	unit := len(dst)
	t := take(v, l.delta, &s)
	runs := r <= rankRuns && s.changes < n/2
	if runs && s.changes <= n/16 {
		dst = c.encodeRuns(dst, v, s.changes+1, l)
		dst = keepShorter(dst, mark, unit)
	} else {
		dst = c.encodePacked(dst, v, &s, &t, l)
		dst = keepShorter(dst, mark, unit)
		if at := len(dst); runs && t.runBytes(n, s.changes) < at-mark {
			dst = c.encodeRuns(dst, v, s.changes+1, l)
			dst = keepShorter(dst, mark, at)
		}
	}
	if at := len(dst); r <= rankSlopes && s.bends < n/3 && s.bends < s.changes {
		dst = c.encodeSlopes(dst, v, l)
		dst = keepShorter(dst, mark, at)
	}
	if at := len(dst); r <= rankDict && at-mark > n/4 && fewDistinct(v) {
		dst = c.encodeDict(dst, v, l)
		dst = keepShorter(dst, mark, at)
	}
	return shorter(dst, mark, v)
}

// keepShorter leaves at mark the shorter of the columns dst[mark:at] and dst[at:]; the first one on a tie. An empty
// one is none.
func keepShorter(dst []byte, mark, at int) []byte {
	if old, now := at-mark, len(dst)-at; now == 0 || old > 0 && old <= now {
		return dst[:at]
	}
	return append(dst[:mark], dst[at:]...)
}

// shorter returns dst with the column at mark replaced by the raw one if that is shorter.
func shorter(dst []byte, mark int, v []uint64) []byte {
	if len(dst)-mark <= 8*len(v) {
		return dst
	}
	return appendRaw(dst[:mark], v)
}

func appendRaw(dst []byte, v []uint64) []byte {
	dst = append(dst, schemeRaw)
	at := len(dst)
	dst = grow(dst, 8*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint64(dst[at+8*i:], x)
	}
	return dst
}

func appendConstant(dst []byte, v uint64) []byte {
	return binary.AppendVarint(append(dst, schemeConstant), int64(v))
}

func appendLinear(dst []byte, start, step uint64) []byte {
	dst = binary.AppendVarint(append(dst, schemeLinear), int64(start))
	return binary.AppendVarint(dst, int64(step))
}

// encodeUnit appends v as multiples of unit.
func (c *coder) encodeUnit(dst []byte, v []uint64, unit uint64) []byte {
	l := &c.levels[rankUnit]
	l.outer = resize(l.outer, len(v))
	sum := uint64(0)
	for i, d := range l.delta {
		if d != 0 {
			sum += uint64(int64(d) / int64(unit))
		}
		l.outer[i] = sum
	}
	dst = binary.AppendUvarint(append(dst, schemeUnit), unit)
	dst = binary.AppendVarint(dst, int64(v[0]))
	return c.encode(dst, l.outer, rankSlopes)
}

// encodeRuns appends v as count runs of equal values.
func (c *coder) encodeRuns(dst []byte, v []uint64, count int, l *level) []byte {
	l.outer, l.inner = resize(l.outer, count), resize(l.inner, count)
	k, start := 0, 0
	for i := 1; i < len(v); i++ {
		if v[i] != v[i-1] {
			l.outer[k], l.inner[k] = v[start], uint64(i-start)-1
			k++
			start = i
		}
	}
	l.outer[k], l.inner[k] = v[start], uint64(len(v)-start)-1
	dst = binary.AppendUvarint(append(dst, schemeRuns), uint64(count))
	dst = c.encodeSized(dst, l.outer, rankDict)
	return c.encode(dst, l.inner, rankDict)
}

// encodeSlopes appends v as a column of deltas.
func (c *coder) encodeSlopes(dst []byte, v []uint64, l *level) []byte {
	l.outer = append(l.outer[:0], l.delta...)
	l.outer[0] = l.delta[1]
	dst = binary.AppendVarint(append(dst, schemeSlopes), int64(v[0]-l.delta[1]))
	return c.encode(dst, l.outer, rankRuns)
}

// encodeSized appends a column behind its length as a uvarint.
func (c *coder) encodeSized(dst []byte, v []uint64, r rank) []byte {
	mark := len(dst)
	dst = c.encode(dst, v, r)
	return prefixSize(dst, mark)
}

// prefixSize puts the length of dst[mark:] as a uvarint before it.
func prefixSize(dst []byte, mark int) []byte {
	size := len(dst) - mark
	var b [binary.MaxVarintLen64]byte
	k := binary.PutUvarint(b[:], uint64(size))
	dst = append(dst, b[:k]...)
	copy(dst[mark+k:], dst[mark:mark+size])
	copy(dst[mark:], b[:k])
	return dst
}
