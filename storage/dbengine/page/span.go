package page

import "slices"

// DecodeUintsRange appends the values with indices from ≤ i < to of the column b of n values to dst. Of columns over one stream, which most
// that vary are, nothing behind the last block of the range is looked at. On an error dst is returned as it was.
func DecodeUintsRange(dst []uint64, b []byte, n, from, to int) ([]uint64, error) {
	if from == 0 && to == n {
		return DecodeUints(dst, b, n)
	}
	if err := checkRange(b, n, from, to); err != nil || from == to {
		return dst, err
	}
	c := coders.Get().(*coder)
	defer coders.Put(c)
	v, err := c.decodeSpan(b, n, from, to)
	if err != nil {
		return dst, err
	}
	return append(dst, v...), nil
}

// DecodeFloatsRange is DecodeUintsRange for a column of floats.
func DecodeFloatsRange(dst []uint64, b []byte, n, from, to int) ([]uint64, error) {
	if from == 0 && to == n {
		return DecodeFloats(dst, b, n)
	}
	if err := checkRange(b, n, from, to); err != nil || from == to {
		return dst, err
	}
	c := coders.Get().(*coder)
	defer coders.Put(c)
	if len(b) < 2 || b[0] != schemeDecimal || b[1] > maxExponent {
		c.check = resize(c.check, n)
		if err := c.decodeFloats(c.check, b); err != nil {
			return dst, err
		}
		return append(dst, c.check[from:to]...), nil
	}
	v, err := c.decodeSpan(b[2:], n, from, to)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	dst = slices.Grow(dst, len(v))[:start+len(v)]
	power, out := powers[b[1]], dst[start:]
	for len(v) >= 4 {
		x, d := (*[4]uint64)(v), (*[4]uint64)(out)
		d[0], d[1], d[2], d[3] = scaled(x[0], power), scaled(x[1], power), scaled(x[2], power), scaled(x[3], power)
		v, out = v[4:], out[4:]
	}
	for i, x := range v {
		out[i] = scaled(x, power)
	}
	return dst, nil
}

// decodeSpan returns the values from ≤ i < to of an integer column, in c.check.
func (c *coder) decodeSpan(b []byte, n, from, to int) ([]uint64, error) {
	if len(b) > 0 {
		switch b[0] {
		case schemeFOR, schemeDeltaFOR, schemeDelta, schemeDouble, schemeLine:
			f := fields{rest: b[1:]}
			h, err := f.packed(b[0])
			if err != nil {
				return nil, err
			}
			c.check = resize(c.check, min(n, blocksOf(to)*blockValues))
			if _, err := c.readStream(c.check, blocksOf(n), f.rest, h.base); err != nil {
				return nil, err
			}
			h.finish(c.check)
			return c.check[from:to], nil
		case schemeRepeat:
			return c.decodePart(b[1:], n, from, to)
		}
	}
	c.check = resize(c.check, n)
	if err := c.decode(c.check, b, rankRepeat); err != nil {
		return nil, err
	}
	return c.check[from:to], nil
}
