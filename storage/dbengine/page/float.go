package page

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// maxExponent bounds decimal exponents: powers of ten up to here are exact as floats.
const maxExponent = 22

// powers are the powers of ten, exact.
var powers = [maxExponent + 1]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// splitBits are the sizes of the low part that are tried for floats that are no decimals: all of the mantissa, or what a few
// leading bits in common leave of it.
var splitBits = [...]int{52, 48, 44}

// encodeFloats appends the shortest column of floats given as bits.
func (c *coder) encodeFloats(dst []byte, v []uint64) []byte {
	mark := len(dst)
	if len(v) > 1 && constant(v) {
		// Two equal values have the same column as any number of them.
		dst = c.encodeDecimal(dst, v[:2], firstExponent(v[0]))
		at := len(dst)
		return keepShorter(c.encodeOrdered(dst, v[:2]), mark, at)
	}
	exponent, decimal := guessExponent(v)
	if decimal {
		dst = c.encodeDecimal(dst, v, exponent)
		if size := len(dst) - mark; size > 0 && size < 6*len(v) {
			return shorter(dst, mark, v)
		}
	}
	at := len(dst)
	dst = c.encodeOrdered(dst, v)
	dst = keepShorter(dst, mark, at)
	if low, size := guessSplit(v); size < len(dst)-mark {
		at = len(dst)
		dst = c.encodeSplit(dst, v, low)
		dst = keepShorter(dst, mark, at)
	}
	return shorter(dst, mark, v)
}

// guessSplit returns the best split for a sample of the values, and about the bytes that it would take.
func guessSplit(v []uint64) (low, size int) {
	size = math.MaxInt
	if len(v) < samples {
		return 0, size
	}
	step := len(v) / samples
	for _, bit := range splitBits {
		var seen [24]uint64
		var count [24]int
		k := 0
		for i := 0; i < samples; i++ {
			high := v[i*step] >> bit
			j := slices.Index(seen[:k], high)
			if j < 0 {
				if k == len(seen) {
					break
				}
				j = k
				seen[j] = high
				k++
			}
			count[j]++
		}
		entropy := 0.0
		total := 0
		for _, n := range count[:k] {
			entropy -= float64(n) * math.Log2(float64(n)/samples)
			total += n
		}
		if total < samples {
			continue
		}
		if s := (bit*samples + int(entropy)) * len(v) / samples / 8; s < size {
			low, size = bit, s
		}
	}
	return low, size
}

// firstExponent returns the smallest exponent that makes the value an integer, or 0.
func firstExponent(x uint64) int {
	for e := range maxExponent {
		if _, exact := toDecimal(math.Float64frombits(x), e); exact {
			return e
		}
	}
	return 0
}

// guessExponent returns the exponent that makes a sample of the values integers, and whether that is worth trying.
func guessExponent(v []uint64) (exponent int, ok bool) {
	const sample = 32
	step := max(1, len(v)/sample)
	seen, decimals := 0, 0
	for i := 0; i < len(v); i += step {
		x := math.Float64frombits(v[i])
		if math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		seen++
		for e := exponent; e <= maxExponent; e++ {
			if _, exact := toDecimal(x, e); exact {
				exponent = e
				decimals++
				break
			}
		}
	}
	return exponent, 4*decimals >= 3*seen
}

// maxMantissa bounds the integers of decimals with a fraction: every decimal of 15 digits survives a float. With 16 or 17
// digits nearly any float looks like a decimal, and is not shorter as one.
const maxMantissa = 1e15

// toDecimal returns the integer that divided by 10^e gives x again bit for bit, and whether there is one.
func toDecimal(x float64, e int) (int64, bool) {
	m := x * powers[e]
	if size := math.Abs(m); !(size < maxMantissa || e == 0 && size < 1<<62) {
		return 0, false
	}
	k := int64(m + math.Copysign(0.5, m)) // a wrong neighbour does not pass the comparison
	return k, scaled(uint64(k), powers[e]) == math.Float64bits(x)
}

// encodeDecimal appends floats as integers times a power of ten, or nothing if too few of them are.
func (c *coder) encodeDecimal(dst []byte, v []uint64, e int) []byte {
	l := &c.levels[rankFloat]
	c.bits = resize(c.bits, len(v))
	l.outer, l.inner = l.outer[:0], l.inner[:0]
	before := uint64(0)
	for i, x := range v {
		k, exact := toDecimal(math.Float64frombits(x), e)
		if exact {
			before = uint64(k)
		} else {
			l.outer = append(l.outer, uint64(i))
			l.inner = append(l.inner, x)
			if len(l.outer) > 16 && len(l.outer) > i/2 && i > 128 {
				return dst
			}
		}
		c.bits[i] = before
	}
	if len(l.outer) == 0 {
		dst = append(dst, schemeDecimal, byte(e))
		return c.encodeWhole(dst, c.bits)
	}
	if len(l.outer) == len(v) {
		return dst
	}
	if l.outer[0] == 0 {
		// The exceptions at the start take the first decimal, so that they cost no jump.
		i := 0
		for i < len(l.outer) && l.outer[i] == uint64(i) {
			i++
		}
		for j := range i {
			c.bits[j] = c.bits[i]
		}
	}
	dst = binary.AppendUvarint(append(dst, schemePatched, byte(e)), uint64(len(l.outer)))
	dst = c.encodeSized(dst, l.outer, rankSlopes)
	dst = c.encodeSized(dst, l.inner, rankSlopes)
	return c.encodeWhole(dst, c.bits)
}

// AppendDecimals appends the column of floats that are m, as signed numbers of at most 53 bits, divided by 10^decimals
// (0 to 22): DecodeFloats reads it. It is AppendFloats for a caller who knows the decimals, and takes half as long.
func AppendDecimals(dst []byte, m []uint64, decimals int) []byte {
	mustCount(len(m))
	if len(m) == 0 {
		return dst
	}
	c := coders.Get().(*coder)
	c.lines, c.dense = false, false
	mark := len(dst)
	dst = append(dst, schemeDecimal, byte(decimals))
	body := len(dst)
	dst = c.encode(dst, m, rankUnit)
	c.check = resize(c.check, len(m))
	good := len(dst)-mark < 6*len(m) && c.decode(c.check, dst[body:], rankUnit) == nil && slices.Equal(c.check, m)
	coders.Put(c)
	if good {
		return dst
	}
	bits := make([]uint64, len(m))
	for i, x := range m {
		bits[i] = math.Float64bits(float64(int64(x)) / powers[decimals])
	}
	return AppendFloats(dst[:mark], bits)
}

// encodeOrdered appends floats by the column of their bits, in a form that rises with the value.
func (c *coder) encodeOrdered(dst []byte, v []uint64) []byte {
	c.bits = resize(c.bits, len(v))
	for i, x := range v {
		c.bits[i] = x ^ uint64(int64(x)>>63)>>1
	}
	return c.encodeWhole(append(dst, schemeOrdered), c.bits)
}

// encodeSplit appends floats as a column of the bits above low, and a stream of those below.
func (c *coder) encodeSplit(dst []byte, v []uint64, low int) []byte {
	l := &c.levels[rankFloat]
	c.bits = resize(c.bits, len(v))
	l.work = resize(l.work, len(v))
	l.widths = resize(l.widths, blocksOf(len(v)))
	mask := uint64(1)<<low - 1
	for i, x := range v {
		c.bits[i] = x >> low
		l.work[i] = x & mask
	}
	dst = append(dst, schemeSplit, byte(low))
	dst = c.encodeSized(dst, c.bits, rankRuns)
	planStream(l.widths, l.work)
	return c.appendStream(dst, l.work, l.widths)
}

// decodeFloats fills dst, which is not empty, with the bits of floats.
func (c *coder) decodeFloats(dst []uint64, b []byte) error {
	if len(b) == 0 {
		return corrupt("no bytes for %d values", len(dst))
	}
	switch b[0] {
	case schemeDecimal:
		return c.decodeDecimal(dst, b[1:])
	case schemePatched:
		return c.decodePatched(dst, b[1:])
	case schemeOrdered:
		if err := c.decode(dst, b[1:], rankRepeat); err != nil {
			return err
		}
		for i, x := range dst {
			dst[i] = x ^ uint64(int64(x)>>63)>>1
		}
		return nil
	case schemeSplit:
		return c.decodeSplit(dst, b[1:])
	case schemeRaw:
		return decodeRaw(dst, b[1:])
	}
	return corrupt("scheme %d where a column of floats was expected", b[0])
}

func (c *coder) decodeDecimal(dst []uint64, b []byte) error {
	if len(b) == 0 || b[0] > maxExponent {
		return corrupt("a decimal exponent above %d", maxExponent)
	}
	return c.decodeScaled(dst, b[0], b[1:], rankRepeat)
}

// decodeScaled fills dst with the integers of column b, of rank r, divided by a power of ten.
func (c *coder) decodeScaled(dst []uint64, exponent byte, b []byte, r rank) error {
	power := powers[exponent]
	if len(b) > 0 && b[0] == schemeRepeat && r <= rankRepeat {
		again, err := readRepetition(b[1:], len(dst))
		if err != nil {
			return err
		}
		if again.step == 0 { // only one period needs to be divided
			err := c.decodeScaled(dst[:again.period], exponent, again.column, rankUnit)
			again.unroll(dst)
			return err
		}
	}
	if len(b) > 0 && (b[0]&^schemeCoded == schemeDelta || b[0]&^schemeCoded == schemeDeltaFOR) {
		// The divider works while the next deltas are added up.
		h, err := c.readPacked(dst, b[0], fields{rest: b[1:]})
		if err != nil {
			return err
		}
		if h.scheme == schemeDelta {
			sumZigzagScaled(dst, h.start, power)
		} else {
			sumScaled(dst, h.start, power)
		}
		return nil
	}
	if err := c.decode(dst, b, r); err != nil {
		return err
	}
	if b[0] == schemeConstant {
		fill(dst, scaled(dst[0], power))
		return nil
	}
	for len(dst) >= 4 {
		d := (*[4]uint64)(dst)
		d[0], d[1], d[2], d[3] = scaled(d[0], power), scaled(d[1], power), scaled(d[2], power), scaled(d[3], power)
		dst = dst[4:]
	}
	for i, x := range dst {
		dst[i] = scaled(x, power)
	}
	return nil
}

// sumScaled is sum, and divides.
func sumScaled(dst []uint64, x uint64, power float64) {
	for len(dst) >= 4 {
		d := (*[4]uint64)(dst)
		a := x + d[0]
		b := a + d[1]
		c := b + d[2]
		x = c + d[3]
		d[0], d[1], d[2], d[3] = scaled(a, power), scaled(b, power), scaled(c, power), scaled(x, power)
		dst = dst[4:]
	}
	for i, d := range dst {
		x += d
		dst[i] = scaled(x, power)
	}
}

// sumZigzagScaled is sumZigzag, and divides.
func sumZigzagScaled(dst []uint64, x uint64, power float64) {
	for len(dst) >= 4 {
		d := (*[4]uint64)(dst)
		a := x + unzigzag(d[0])
		b := a + unzigzag(d[1])
		c := b + unzigzag(d[2])
		x = c + unzigzag(d[3])
		d[0], d[1], d[2], d[3] = scaled(a, power), scaled(b, power), scaled(c, power), scaled(x, power)
		dst = dst[4:]
	}
	for i, d := range dst {
		x += unzigzag(d)
		dst[i] = scaled(x, power)
	}
}

// scaled returns the bits of the integer x divided by power.
func scaled(x uint64, power float64) uint64 { return math.Float64bits(float64(int64(x)) / power) }

func (c *coder) decodePatched(dst []uint64, b []byte) error {
	if len(b) == 0 || b[0] > maxExponent {
		return corrupt("a decimal exponent above %d", maxExponent)
	}
	exponent := b[0]
	count, k := binary.Uvarint(b[1:])
	if k <= 0 || count == 0 || count > uint64(len(dst)) {
		return corrupt("%d exceptions for %d values", count, len(dst))
	}
	first, rest, err := cut(b[1+k:])
	if err != nil {
		return err
	}
	second, rest, err := cut(rest)
	if err != nil {
		return err
	}
	l := &c.levels[rankFloat]
	l.outer, l.inner = resize(l.outer, int(count)), resize(l.inner, int(count))
	if err := c.decode(l.outer, first, rankSlopes); err != nil {
		return err
	}
	if err := c.decode(l.inner, second, rankSlopes); err != nil {
		return err
	}
	if err := c.decodeScaled(dst, exponent, rest, rankRepeat); err != nil {
		return err
	}
	for i, at := range l.outer {
		if at >= uint64(len(dst)) {
			return corrupt("an exception at %d of %d values", at, len(dst))
		}
		dst[at] = l.inner[i]
	}
	return nil
}

func (c *coder) decodeSplit(dst []uint64, b []byte) error {
	if len(b) == 0 || b[0] == 0 || b[0] > 63 {
		return corrupt("a split without 1 to 63 low bits")
	}
	low := int(b[0])
	first, rest, err := cut(b[1:])
	if err != nil {
		return err
	}
	c.bits = resize(c.bits, len(dst))
	if err := c.decode(c.bits, first, rankRuns); err != nil {
		return err
	}
	if rest, err = c.readStream(dst, blocksOf(len(dst)), rest, 0); err != nil {
		return err
	}
	if len(rest) > 0 {
		return corrupt("%d bytes after the end", len(rest))
	}
	lows, highs := uint64(0), uint64(0)
	high := c.bits[:len(dst)]
	for i, x := range dst {
		lows |= x
		highs |= high[i]
		dst[i] = x | high[i]<<(low&63)
	}
	if bits.Len64(lows) > low || bits.Len64(highs) > 64-low {
		return corrupt("a value wider than its part of a split at %d", low)
	}
	return nil
}
