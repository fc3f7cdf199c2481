package page

import "slices"

// DecodeUintsRange appends the values with indices from ≤ i < to of the column b of n values to dst. Of columns over one stream, which most
// that vary are, nothing behind the range is looked at, but for the rest of its last block. On an error dst is returned as it was.
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
			if f.rest, err = c.readStream(c.check, blocksOf(n), f.rest, h.base); err == nil && len(c.check) == n {
				err = f.end()
			}
			if err != nil {
				return nil, err
			}
			h.finish(c.check)
			return c.check[from:to], nil
		case schemeFOR | schemeCoded, schemeDeltaFOR | schemeCoded, schemeDelta | schemeCoded, schemeDouble | schemeCoded, schemeLine | schemeCoded:
			f := fields{rest: b[1:]}
			h, err := f.packed(b[0])
			if err != nil {
				return nil, err
			}
			c.check = resize(c.check, to)
			if err := c.readCoded(c.check, f.rest, h.base, to == n); err != nil {
				return nil, err
			}
			h.finish(c.check)
			return c.check[from:to], nil
		case schemeUnit:
			return c.spanOfUnit(b, n, from, to)
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

// spanOfUnit is decodeSpan for a column of multiples.
func (c *coder) spanOfUnit(b []byte, n, from, to int) ([]uint64, error) {
	f := fields{rest: b[1:]}
	unit, start := f.unsigned(), f.signed()
	if f.bad {
		return nil, f.end()
	}
	if len(f.rest) > 0 && (f.rest[0] == schemeUnit || f.rest[0] == schemeRepeat) {
		return nil, corrupt("scheme %d in a column of multiples", f.rest[0])
	}
	v, err := c.decodeSpan(f.rest, n, from, to)
	if err != nil {
		return nil, err
	}
	for i, x := range v {
		v[i] = start + x*unit
	}
	return v, nil
}
