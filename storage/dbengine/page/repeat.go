package page

import "encoding/binary"

// A column repeats if each value from some place on is the one a period before, or that and a step which is always the same: a sawtooth, a
// wheel of states, a counter that grows in a rhythm. Pages at rest are long enough for that to pay.

const (
	// minRepeat is the least count of values for which a period is looked for.
	minRepeat = 32
	// minRepeatBytes is the size of a column below which there is nothing to gain.
	minRepeatBytes = 12
)

// encodeWhole appends the shortest column of v, as encode does; at rest it may be a repetition.
func (c *coder) encodeWhole(dst []byte, v []uint64) []byte {
	mark := len(dst)
	dst = c.encode(dst, v, rankUnit)
	at := len(dst)
	if !c.dense || len(v) < minRepeat || at-mark < minRepeatBytes {
		return dst
	}
	// A column that takes so many bytes was measured: the deltas are there.
	period := c.findPeriod(c.levels[rankUnit].delta[1:len(v)])
	if period == 0 {
		return dst
	}
	dst = binary.AppendUvarint(append(dst, schemeRepeat), uint64(period))
	dst = binary.AppendVarint(dst, int64(v[period]-v[0]))
	dst = c.encode(dst, v[:period], rankUnit)
	return keepShorter(dst, mark, at)
}

// findPeriod returns the smallest period of the deltas of a column that has room for two of it, or zero. It is the prefix function of Knuth,
// Morris and Pratt, given up as soon as what was seen has no period so short: where nothing repeats after half of the deltas, each compared once.
func (c *coder) findPeriod(delta []uint64) int {
	limit := (len(delta) + 1) / 2
	c.borders = resize(c.borders, len(delta))
	borders, k := c.borders, 0
	borders[0] = 0
	for i := 1; i < len(delta); i++ {
		x := delta[i]
		for k > 0 && delta[k] != x {
			k = int(borders[k-1])
		}
		if delta[k] == x {
			k++
		}
		borders[i] = uint32(k)
		if i+1-k > limit {
			return 0
		}
	}
	return len(delta) - k
}

// repetition is the header of a column that repeats.
type repetition struct {
	period int
	step   uint64
	// column holds the first period.
	column []byte
}

// readRepetition reads the header of a column of n values, which stands behind the scheme.
func readRepetition(b []byte, n int) (repetition, error) {
	f := fields{rest: b}
	period, step := f.unsigned(), f.signed()
	if f.bad || period == 0 || period >= uint64(n) {
		return repetition{}, corrupt("a period of %d values in %d", period, n)
	}
	return repetition{period: int(period), step: step, column: f.rest}, nil
}

// decodeRepeat fills dst from a column that repeats.
func (c *coder) decodeRepeat(dst []uint64, b []byte) error {
	r, err := readRepetition(b, len(dst))
	if err != nil {
		return err
	}
	if err := c.decode(dst[:r.period], r.column, rankUnit); err != nil {
		return err
	}
	r.unroll(dst)
	return nil
}

// unroll makes all values of the first period.
func (r *repetition) unroll(dst []uint64) {
	if r.step == 0 {
		for done := r.period; done < len(dst); done *= 2 {
			copy(dst[done:], dst[:done])
		}
		return
	}
	before := dst[:len(dst)-r.period]
	for i, x := range before {
		dst[r.period+i] = x + r.step
	}
}

// decodePart returns the values from ≤ i < to of a column of n values that repeats, in c.check.
func (c *coder) decodePart(b []byte, n, from, to int) ([]uint64, error) {
	r, err := readRepetition(b, n)
	if err != nil {
		return nil, err
	}
	p := r.period
	c.check = resize(c.check, p+to-from)
	once, out := c.check[:p], c.check[p:]
	if err := c.decode(once, r.column, rankUnit); err != nil {
		return nil, err
	}
	more := uint64(from/p) * r.step
	for i := from % p; len(out) > 0; i = 0 {
		k := copy(out, once[i:])
		if more != 0 {
			for j := range out[:k] {
				out[j] += more
			}
		}
		out, more = out[k:], more+r.step
	}
	return c.check[p:], nil
}

// cycle returns the first period of an integer column of n values, of which the others are copies; none if the column is another one, or
// a range of so many values has no whole period.
func (c *coder) cycle(b []byte, n, count int) ([]uint64, error) {
	if len(b) == 0 || b[0] != schemeRepeat {
		return nil, nil
	}
	r, err := readRepetition(b[1:], n)
	if err != nil || r.step != 0 || r.period > count {
		return nil, err
	}
	c.check = resize(c.check, r.period)
	return c.check, c.decode(c.check, r.column, rankUnit)
}

// turns cuts the values start ≤ i < end of a column with the period v into the rest of a period, whole ones and the start of one.
func turns(v []uint64, start, end int) (head []uint64, whole int, tail []uint64) {
	p := len(v)
	i, n := start%p, end-start
	if n <= p-i {
		return v[i : i+n], 0, nil
	}
	if i > 0 {
		head = v[i:]
		n -= len(head)
	}
	return head, n / p, v[:n%p]
}

// Repeats reports whether a column of numbers or times uses the scheme for repetitions, which readers had not at first: a file with such a
// column says so in its header.
func Repeats(b []byte) bool {
	if len(b) < 3 {
		return false
	}
	switch b[0] {
	case schemeRepeat:
		return true
	case schemeOrdered:
		return b[1] == schemeRepeat
	case schemeDecimal:
		return b[2] == schemeRepeat
	case schemePatched:
		_, k := binary.Uvarint(b[2:])
		if k <= 0 {
			return false
		}
		_, rest, err := cut(b[2+k:])
		if err == nil {
			_, rest, err = cut(rest)
		}
		return err == nil && len(rest) > 0 && rest[0] == schemeRepeat
	}
	return false
}
