package page

import (
	"encoding/binary"
	"slices"
)

const (
	// maxDict bounds the distinct values of a dictionary.
	maxDict = 256
	// dictSlots is the size of the hash table that finds them; a quarter full at most.
	dictSlots = 1024
)

// dict finds the distinct values of a column.
type dict struct {
	keys  [dictSlots]uint64
	index [dictSlots]uint16 // one more than the place in values; 0 is free
}

func slotOf(x uint64) uint64 { return x * 0x9E3779B97F4A7C15 >> (64 - 10) }

// find returns the slot of x: its own, or the free one where it belongs.
func (d *dict) find(x uint64) uint64 {
	s := slotOf(x)
	for d.index[s] != 0 && d.keys[s] != x {
		s = (s + 1) % dictSlots
	}
	return s
}

// fewDistinct reports whether a dictionary may pay, from a sample.
func fewDistinct(v []uint64) bool {
	var seen [24]uint64
	count := 0
	for i := 0; i < len(v); i += max(1, len(v)/samples) {
		if slices.Contains(seen[:count], v[i]) {
			continue
		}
		if count == len(seen) {
			return false
		}
		seen[count] = v[i]
		count++
	}
	return true
}

// encodeDict appends v as indices into its sorted distinct values, or nothing if there are too many of them.
func (c *coder) encodeDict(dst []byte, v []uint64, l *level) []byte {
	d := &c.dict
	clear(d.index[:])
	l.outer = l.outer[:0]
	limit := min(maxDict, len(v)/4)
	for _, x := range v {
		if s := d.find(x); d.index[s] == 0 {
			if len(l.outer) == limit {
				return dst
			}
			l.outer = append(l.outer, x)
			d.keys[s], d.index[s] = x, uint16(len(l.outer))
		}
	}
	slices.Sort(l.outer)
	for i, x := range l.outer {
		d.index[d.find(x)] = uint16(i + 1)
	}
	l.inner = resize(l.inner, len(v))
	for i, x := range v {
		l.inner[i] = uint64(d.index[d.find(x)] - 1)
	}
	dst = append(dst, schemeDict, byte(len(l.outer)-1))
	dst = c.encodeSized(dst, l.outer, rankPlain)
	return c.encode(dst, l.inner, rankPlain)
}

// decodeDict is encodeDict's inverse.
func (c *coder) decodeDict(dst []uint64, b []byte) error {
	if len(b) == 0 {
		return corrupt("a dictionary cut off")
	}
	count := int(b[0]) + 1
	inner, rest, err := cut(b[1:])
	if err != nil {
		return err
	}
	var table [maxDict]uint64
	if err := c.decode(table[:count], inner, rankPlain); err != nil {
		return err
	}
	if err := c.decode(dst, rest, rankPlain); err != nil {
		return err
	}
	most := uint64(0)
	for i, x := range dst {
		most = max(most, x)
		dst[i] = table[x%maxDict]
	}
	if most >= uint64(count) {
		return corrupt("index %d in a dictionary of %d values", most, count)
	}
	return nil
}

// cut splits a column that stands behind its length from what follows it.
func cut(b []byte) (inner, rest []byte, err error) {
	size, k := binary.Uvarint(b)
	if k <= 0 || size > uint64(len(b)-k) {
		return nil, nil, corrupt("an inner column of %d bytes in %d", size, len(b))
	}
	return b[k : k+int(size)], b[k+int(size):], nil
}
