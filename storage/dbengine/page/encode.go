package page

import (
	"encoding/binary"
	"math/bits"
)

// shape is what one pass over a column finds.
type shape struct {
	// changes counts the values that differ from the one before, bends the deltas that do so.
	changes, bends int
	// low and high are the ends of the range that holds all values on the circle of 2^64.
	low, high uint64
	// least and most are the smallest and largest delta.
	least, most int64
	// unit divides all deltas.
	unit uint64
}

// measure fills delta (delta[0] is unused and zero) and returns the shape of v.
func measure(delta, v []uint64) shape {
	first := v[0]
	s := shape{least: 1<<63 - 1, most: -1 << 63}
	minU, maxU, minS, maxS := first, first, int64(first), int64(first)
	before, slope := first, uint64(0)
	delta[0] = 0
	for i := 1; i < len(v); i++ {
		x := v[i]
		d := x - before
		delta[i] = d
		if d != 0 {
			s.changes++
		}
		if d != slope {
			s.bends++
		}
		before, slope = x, d
		minU, maxU = min(minU, x), max(maxU, x)
		minS, maxS = min(minS, int64(x)), max(maxS, int64(x))
		s.least, s.most = min(s.least, int64(d)), max(s.most, int64(d))
	}
	if len(v) > 1 && delta[1] != 0 {
		s.bends-- // the first delta is a start, not a bend
	}
	s.low, s.high = minU, maxU
	if uint64(maxS-minS) < maxU-minU {
		s.low, s.high = uint64(minS), uint64(maxS)
	}
	s.unit = commonUnit(delta)
	return s
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
	l := &c.levels[r]
	l.delta = resize(l.delta, n)
	s := measure(l.delta, v)
	if n == 1 || s.changes == 0 {
		return shorter(appendConstant(dst, v[0]), len(dst), v)
	}
	if s.bends == 0 {
		return shorter(appendLinear(dst, v[0], l.delta[1]), len(dst), v)
	}
	mark := len(dst)
	if r <= rankUnit && s.unit > 1 {
		dst = c.encodeUnit(dst, v, s.unit)
		if s.changes*bits.Len64(s.unit) >= 128 {
			return shorter(dst, mark, v)
		}
	}
	unit := len(dst)
	dst = c.encodePacked(dst, v, s, l)
	dst = keepShorter(dst, mark, unit)
	if r < rankRuns && s.changes < n/2 {
		at := len(dst)
		dst = c.encodeRuns(dst, v, s.changes+1, l)
		dst = keepShorter(dst, mark, at)
	}
	if r < rankSlopes && s.bends < n/3 && s.bends < s.changes {
		at := len(dst)
		dst = c.encodeSlopes(dst, v, l)
		dst = keepShorter(dst, mark, at)
	}
	if r < rankDict && len(dst)-mark > n/4 {
		at := len(dst)
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

// candidate is a packed scheme with its header; its stream waits in the level's buffers.
type candidate struct {
	scheme byte
	header [3]uint64
	fields int
	size   int
}

// encodePacked appends the shortest of the packed schemes.
func (c *coder) encodePacked(dst []byte, v []uint64, s shape, l *level) []byte {
	n := len(v)
	l.work, l.best = resize(l.work, n), resize(l.best, n)
	l.widths, l.kept = resize(l.widths, blocksOf(n)), resize(l.kept, blocksOf(n))
	best := candidate{size: 1<<63 - 1}
	consider := func(scheme byte, fields int, header [3]uint64) {
		size := 1 + planStream(l.widths, l.work)
		for _, x := range header[:fields] {
			size += varintSize(x)
		}
		if size < best.size {
			best = candidate{scheme, header, fields, size}
			l.work, l.best = l.best, l.work
			l.widths, l.kept = l.kept, l.widths
		}
	}
	for _, base := range bases(v, s.low, s.high) {
		residualFrom(l.work, v, base)
		consider(schemeFOR, 1, [3]uint64{base})
	}
	if c.lines {
		base, step := fitLine(l.work, v)
		consider(schemeLine, 3, [3]uint64{v[0], step, base})
	}
	for _, least := range bases(l.delta[1:], uint64(s.least), uint64(s.most)) {
		residualFrom(l.work, l.delta, least)
		l.work[0] = 0
		consider(schemeDeltaFOR, 2, [3]uint64{v[0] - least, least})
	}
	for i, d := range l.delta {
		l.work[i] = zigzag(d)
	}
	consider(schemeDelta, 1, [3]uint64{v[0]})
	before := l.delta[1]
	for i, d := range l.delta {
		l.work[i] = zigzag(d - before)
		before = d
	}
	l.work[0], l.work[1] = 0, 0
	consider(schemeDouble, 2, [3]uint64{v[0] - l.delta[1], l.delta[1]})

	dst = append(dst, best.scheme)
	for _, x := range best.header[:best.fields] {
		dst = binary.AppendVarint(dst, int64(x))
	}
	return appendStream(dst, l.best, l.kept)
}

// bases returns what values between low and high may be stored relative to: the low end and, if a sample says that few values
// are far below the rest, the sample's low end. Those few become exceptions.
func bases(v []uint64, low, high uint64) []uint64 {
	const sample = 32
	if len(v) < 2*sample {
		return []uint64{low}
	}
	least, most := high-low, uint64(0)
	for i := range sample {
		x := v[i*(len(v)-1)/(sample-1)] - low
		least, most = min(least, x), max(most, x)
	}
	if bits.Len64(most-least)+2 > bits.Len64(high-low) || least == 0 {
		return []uint64{low}
	}
	return []uint64{low, low + least}
}

func residualFrom(dst, v []uint64, base uint64) {
	dst = dst[:len(v)]
	for i, x := range v {
		dst[i] = x - base
	}
}

// fitLine fills dst with the distances of v above the lowest line through its first and last value, and returns the
// line's offset and step.
func fitLine(dst, v []uint64) (base, step uint64) {
	n := len(v)
	step = uint64(int64(v[n-1]-v[0]) / int64(n-1))
	lowest := int64(0)
	line := v[0]
	for i, x := range v {
		d := x - line
		lowest = min(lowest, int64(d))
		dst[i] = d
		line += step
	}
	for i := range dst[:n] {
		dst[i] -= uint64(lowest)
	}
	return uint64(lowest), step
}

func zigzag(x uint64) uint64 { return x<<1 ^ uint64(int64(x)>>63) }

func unzigzag(x uint64) uint64 { return x>>1 ^ -(x & 1) }

// varintSize returns the bytes that binary.AppendVarint takes for x.
func varintSize(x uint64) int { return (bits.Len64(zigzag(x)|1) + 6) / 7 }

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
