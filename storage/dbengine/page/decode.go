package page

import "encoding/binary"

// fields reads the varints of a scheme's header.
type fields struct {
	rest []byte
	bad  bool
}

// signed returns the next zigzag varint, as the 64 bits it stands for.
func (f *fields) signed() uint64 {
	x, k := binary.Varint(f.rest)
	return uint64(x) &^ f.take(k)
}

// unsigned returns the next uvarint.
func (f *fields) unsigned() uint64 {
	x, k := binary.Uvarint(f.rest)
	return x &^ f.take(k)
}

// take moves past k bytes and returns zero; or all ones if there was no varint.
func (f *fields) take(k int) uint64 {
	if k <= 0 {
		f.bad = true
		return ^uint64(0)
	}
	f.rest = f.rest[k:]
	return 0
}

// end says whether the header was whole and nothing follows it.
func (f *fields) end() error {
	if f.bad {
		return corrupt("a header cut off")
	}
	if len(f.rest) > 0 {
		return corrupt("%d bytes after the end", len(f.rest))
	}
	return nil
}

func (c *coder) decodeUints(dst []uint64, b []byte) error { return c.decode(dst, b, rankRepeat) }

// decode fills dst, which is not empty, from the integer column b. Schemes below rank r are refused.
func (c *coder) decode(dst []uint64, b []byte, r rank) error {
	if len(b) == 0 {
		return corrupt("no bytes for %d values", len(dst))
	}
	f := fields{rest: b[1:]}
	switch scheme := b[0]; scheme {
	case schemeRaw:
		return decodeRaw(dst, b[1:])
	case schemeConstant:
		fill(dst, f.signed())
		return f.end()
	case schemeLinear:
		x, step := f.signed(), f.signed()
		for i := range dst {
			dst[i] = x
			x += step
		}
		return f.end()
	case schemeFOR, schemeDeltaFOR, schemeDelta, schemeDouble, schemeLine:
		return c.decodePacked(dst, scheme, f)
	case schemeFOR | schemeCoded, schemeDeltaFOR | schemeCoded, schemeDelta | schemeCoded, schemeDouble | schemeCoded,
		schemeLine | schemeCoded:
		if r < rankCoded {
			return c.decodePacked(dst, scheme, f)
		}
	case schemeDict:
		if r <= rankDict {
			return c.decodeDict(dst, b[1:])
		}
	case schemeRuns:
		if r <= rankRuns {
			return c.decodeRuns(dst, f)
		}
	case schemeSlopes:
		if r <= rankSlopes {
			return c.decodeSlopes(dst, f)
		}
	case schemeRepeat:
		if r <= rankRepeat {
			return c.decodeRepeat(dst, b[1:])
		}
	case schemeUnit:
		if r <= rankUnit {
			return c.decodeUnit(dst, f)
		}
	}
	return corrupt("scheme %d where an integer column of rank %d was expected", b[0], r)
}

func decodeRaw(dst []uint64, b []byte) error {
	if len(b) != 8*len(dst) {
		return corrupt("%d bytes for %d raw values", len(b), len(dst))
	}
	for i := range dst {
		dst[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return nil
}

// packedHead is the header of a scheme over one stream.
type packedHead struct {
	scheme            byte
	start, step, base uint64
}

// packed reads the header of a scheme over one stream.
func (f *fields) packed(scheme byte) (packedHead, error) {
	h := packedHead{scheme: scheme &^ schemeCoded, start: f.signed()}
	switch h.scheme {
	case schemeFOR:
		h.base = h.start
	case schemeDeltaFOR:
		h.base = f.signed()
	case schemeDouble:
		h.step = f.signed()
	case schemeLine:
		h.step, h.base = f.signed(), f.signed()
	}
	if f.bad {
		return h, f.end()
	}
	return h, nil
}

// readPacked reads a column of a scheme over one stream as far as the stream's numbers, with the base added.
func (c *coder) readPacked(dst []uint64, scheme byte, f fields) (packedHead, error) {
	h, err := f.packed(scheme)
	if err != nil {
		return h, err
	}
	if scheme&schemeCoded != 0 {
		return h, c.readCoded(dst, f.rest, h.base, true)
	}
	if f.rest, err = c.readStream(dst, blocksOf(len(dst)), f.rest, h.base); err != nil {
		return h, err
	}
	return h, f.end()
}

// decodePacked fills dst from a scheme over one stream.
func (c *coder) decodePacked(dst []uint64, scheme byte, f fields) error {
	h, err := c.readPacked(dst, scheme, f)
	if err != nil {
		return err
	}
	h.finish(dst)
	return nil
}

// finish makes the values of the stream's numbers.
func (h *packedHead) finish(dst []uint64) {
	switch h.scheme {
	case schemeDeltaFOR:
		sum(dst, h.start)
	case schemeDelta:
		sumZigzag(dst, h.start)
	case schemeDouble:
		x, step := h.start, h.step
		for i, d := range dst {
			step += unzigzag(d)
			x += step
			dst[i] = x
		}
	case schemeLine:
		x := h.start
		for i, d := range dst {
			dst[i] = d + x
			x += h.step
		}
	}
}

// fill sets all of dst to x.
func fill(dst []uint64, x uint64) {
	for len(dst) >= 8 {
		d := (*[8]uint64)(dst)
		d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7] = x, x, x, x, x, x, x, x
		dst = dst[8:]
	}
	for i := range dst {
		dst[i] = x
	}
}

// sum replaces each delta by the value that it leads to.
func sum(dst []uint64, x uint64) {
	for len(dst) >= 4 {
		d := (*[4]uint64)(dst)
		a := x + d[0]
		b := a + d[1]
		c := b + d[2]
		x = c + d[3]
		d[0], d[1], d[2], d[3] = a, b, c, x
		dst = dst[4:]
	}
	for i, d := range dst {
		x += d
		dst[i] = x
	}
}

// sumZigzag is sum for zigzag deltas.
func sumZigzag(dst []uint64, x uint64) {
	for len(dst) >= 4 {
		d := (*[4]uint64)(dst)
		a := x + unzigzag(d[0])
		b := a + unzigzag(d[1])
		c := b + unzigzag(d[2])
		x = c + unzigzag(d[3])
		d[0], d[1], d[2], d[3] = a, b, c, x
		dst = dst[4:]
	}
	for i, d := range dst {
		x += unzigzag(d)
		dst[i] = x
	}
}

// readRuns reads the runs of a column of n values: what they are to l.outer, their lengths less one to l.inner of the
// level that it returns. The lengths add up to n.
func (c *coder) readRuns(n int, f fields) (*level, error) {
	count := f.unsigned()
	if f.bad || count == 0 || count > uint64(n) {
		return nil, corrupt("%d runs for %d values", count, n)
	}
	first, second, err := cut(f.rest)
	if err != nil {
		return nil, err
	}
	l := &c.levels[rankRuns]
	l.outer, l.inner = resize(l.outer, int(count)), resize(l.inner, int(count))
	if err := c.decode(l.outer, first, rankDict); err != nil {
		return nil, err
	}
	if err := c.decode(l.inner, second, rankDict); err != nil {
		return nil, err
	}
	left := uint64(n)
	for k, length := range l.inner {
		if length >= left {
			return nil, corrupt("run %d of %d is longer than what is left, %d values", k, count, left)
		}
		left -= length + 1
	}
	if left > 0 {
		return nil, corrupt("the runs end %d values early", left)
	}
	return l, nil
}

// decodeRuns is encodeRuns' inverse.
func (c *coder) decodeRuns(dst []uint64, f fields) error {
	l, err := c.readRuns(len(dst), f)
	if err != nil {
		return err
	}
	lengths := l.inner[:len(l.outer)]
	for k, x := range l.outer {
		length := lengths[k]
		// Most runs are short: eight stores without a branch are quicker than a loop that the CPU cannot foresee.
		if len(dst) >= 8 {
			d := (*[8]uint64)(dst)
			d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7] = x, x, x, x, x, x, x, x
		}
		if length >= 8 || len(dst) < 8 {
			fill(dst[:length+1], x)
		}
		dst = dst[length+1:]
	}
	return nil
}

// decodeSlopes is encodeSlopes' inverse.
func (c *coder) decodeSlopes(dst []uint64, f fields) error {
	start := f.signed()
	if f.bad {
		return f.end()
	}
	if err := c.decode(dst, f.rest, rankRuns); err != nil {
		return err
	}
	sum(dst, start)
	return nil
}

// decodeUnit is encodeUnit's inverse.
func (c *coder) decodeUnit(dst []uint64, f fields) error {
	unit, start := f.unsigned(), f.signed()
	if f.bad {
		return f.end()
	}
	if err := c.decode(dst, f.rest, rankSlopes); err != nil {
		return err
	}
	for i, x := range dst {
		dst[i] = start + x*unit
	}
	return nil
}
