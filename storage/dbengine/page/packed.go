package page

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// candidate is a packed scheme with its header; its stream waits in the level's buffers.
type candidate struct {
	scheme byte
	header [3]uint64
	fields int
	size   int
	// coded is how the stream would be coded; its size is the greatest number if it would not be.
	coded codedPlan
}

// bytes is the size of the shorter form.
func (p *candidate) bytes() int { return min(p.size, p.coded.size) }

const (
	// samples is the number of values that estimate looks at.
	samples = 64
	// margin is how many bits a sampled value may be longer under one scheme than under the best one, on average, so
	// that the scheme's exact size is still computed: schemes of equal averages differ by less once they are packed.
	margin = 1
)

// sample is what a few values of a column say about it.
type sample struct {
	// bits is, for FOR, delta-FOR, delta and delta-of-delta, the sum of the lengths of what each would pack.
	bits [4]int
	// low and least are the smallest sampled value and delta, seen from the column's true ones.
	low, least uint64
	// high and most are the largest, likewise.
	high, most uint64
}

// take looks at every step-th value of v.
func take(v, delta []uint64, s *shape) sample {
	step := max(1, len(v)/samples)
	bottom, floor := s.low, uint64(s.least)
	low, least, high, most := ^uint64(0), ^uint64(0), uint64(0), uint64(0)
	for i := step; i < len(v); i += step {
		x, d := v[i]-bottom, delta[i]-floor
		low, high = min(low, x), max(high, x)
		least, most = min(least, d), max(most, d)
	}
	bottom += low
	floor += least
	var plain, above, zigzags, doubles int
	for i := step; i < len(v); i += step {
		d := delta[i]
		plain += bits.Len64(v[i] - bottom)
		above += bits.Len64(d - floor)
		zigzags += bits.Len64(zigzag(d))
		doubles += bits.Len64(zigzag(d - delta[i-1]))
	}
	return sample{bits: [4]int{plain, above, zigzags, doubles}, low: low, least: least, high: high, most: most}
}

// runBytes returns about the least that runs can take for n values with that many changes: the bits of the deltas and,
// for each, of the distance to the next one.
func (t *sample) runBytes(n, changes int) int {
	return (t.bits[2]*n/samples + changes*(bits.Len(uint(n/(changes+1)))+1)) / 8
}

// skewed reports whether numbers up to range that are mostly between low and high had better be stored relative to low:
// the few below it become exceptions.
func skewed(low, high, whole uint64) bool { return bits.Len64(high-low)+2 <= bits.Len64(whole) }

// packing chooses the shortest of the packed schemes for one column.
type packing struct {
	l *level
	// table is not nil if coded streams are wanted.
	table *table
	best  candidate
}

// consider compares the scheme whose numbers are in l.work with the best one so far.
func (p *packing) consider(scheme byte, fields int, header [3]uint64) {
	l := p.l
	size := 1
	for _, x := range header[:fields] {
		size += varintSize(x)
	}
	now := candidate{scheme: scheme, header: header, fields: fields, coded: codedPlan{size: math.MaxInt}}
	now.size = size + planStream(l.widths, l.work)
	if p.table != nil {
		now.coded = planCoded(&p.table.count, l.work)
		if now.coded.size != math.MaxInt {
			now.coded.size += size
		}
	}
	if now.bytes() < p.best.bytes() {
		p.best = now
		l.work, l.best = l.best, l.work
		l.widths, l.kept = l.kept, l.widths
	}
}

// encodePacked appends the shortest of the packed schemes.
func (c *coder) encodePacked(dst []byte, v []uint64, s *shape, t *sample, l *level) []byte {
	n := len(v)
	l.work, l.best = resize(l.work, n), resize(l.best, n)
	l.widths, l.kept = resize(l.widths, blocksOf(n)), resize(l.kept, blocksOf(n))
	p := packing{l: l, best: candidate{size: math.MaxInt, coded: codedPlan{size: math.MaxInt}}}
	if c.dense {
		p.table = c.coding()
	}
	sum := t.bits
	best := min(sum[0], sum[1], sum[2], sum[3])
	limit := best + margin*samples
	if sum[0] <= limit {
		p.considerFOR(v, s, t)
	}
	if c.lines {
		p.considerLine(v)
	}
	if sum[1] <= limit {
		p.considerDeltaFOR(v, s, t)
	}
	if sum[2] <= limit {
		for i, d := range l.delta {
			l.work[i] = zigzag(d)
		}
		p.consider(schemeDelta, 1, [3]uint64{v[0]})
	}
	if sum[3] <= best+samples/4 { // rarely wins against delta unless by far
		p.considerDouble(v)
	}
	mark := len(dst)
	dst = append(dst, p.best.scheme)
	for _, x := range p.best.header[:p.best.fields] {
		dst = binary.AppendVarint(dst, int64(x))
	}
	head := len(dst)
	if p.best.coded.size < p.best.size {
		dst = c.appendCoded(dst, l.best, p.best.coded)
		if len(dst)-mark < p.best.size {
			dst[mark] |= schemeCoded
			return dst
		}
		dst = dst[:head]
	}
	return c.appendStream(dst, l.best, l.kept)
}

func (p *packing) considerFOR(v []uint64, s *shape, t *sample) {
	residualFrom(p.l.work, v, s.low)
	p.consider(schemeFOR, 1, [3]uint64{s.low})
	if skewed(t.low, t.high, s.high-s.low) && t.low > 0 {
		base := s.low + t.low
		residualFrom(p.l.work, v, base)
		p.consider(schemeFOR, 1, [3]uint64{base})
	}
}

func (p *packing) considerDeltaFOR(v []uint64, s *shape, t *sample) {
	least := uint64(s.least)
	p.deltaFOR(v, least)
	if skewed(t.least, t.most, uint64(s.most)-least) && t.least > 0 {
		p.deltaFOR(v, least+t.least)
	}
}

func (p *packing) deltaFOR(v []uint64, least uint64) {
	residualFrom(p.l.work, p.l.delta, least)
	p.l.work[0] = 0
	p.consider(schemeDeltaFOR, 2, [3]uint64{v[0] - least, least})
}

func (p *packing) considerDouble(v []uint64) {
	delta := p.l.delta
	before := delta[1]
	for i, d := range delta {
		p.l.work[i] = zigzag(d - before)
		before = d
	}
	p.l.work[0], p.l.work[1] = 0, 0
	p.consider(schemeDouble, 2, [3]uint64{v[0] - delta[1], delta[1]})
}

func residualFrom(dst, v []uint64, base uint64) {
	dst = dst[:len(v)]
	for i, x := range v {
		dst[i] = x - base
	}
}

// considerLine tries the line through the first and the last value, and the one whose step is that step rounded: whoever
// collects every second is late by a few milliseconds now and then, but does not drift.
func (p *packing) considerLine(v []uint64) {
	n := int64(len(v) - 1)
	span := int64(v[n] - v[0])
	step := span / n
	if 2*(span%n) >= n {
		step++
	}
	round := int64(1)
	for round <= step/1000 {
		round *= 10
	}
	rounded := (step + round/2) / round * round
	base := distances(p.l.work, v, uint64(step))
	p.consider(schemeLine, 3, [3]uint64{v[0], uint64(step), base})
	if rounded != step {
		base = distances(p.l.work, v, uint64(rounded))
		p.consider(schemeLine, 3, [3]uint64{v[0], uint64(rounded), base})
	}
}

// distances fills dst with how far each value of v is above the lowest parallel of the line from v[0] on, and returns
// that parallel's distance from the line.
func distances(dst, v []uint64, step uint64) (base uint64) {
	dst = dst[:len(v)]
	lowest := int64(0)
	line := v[0]
	for i, x := range v {
		d := x - line
		lowest = min(lowest, int64(d))
		dst[i] = d
		line += step
	}
	for i := range dst {
		dst[i] -= uint64(lowest)
	}
	return uint64(lowest)
}

func zigzag(x uint64) uint64 { return x<<1 ^ uint64(int64(x)>>63) }

func unzigzag(x uint64) uint64 { return x>>1 ^ -(x & 1) }

// varintSize returns the bytes that binary.AppendVarint takes for x.
func varintSize(x uint64) int { return (bits.Len64(zigzag(x)|1) + 6) / 7 }
