package page

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The reference decoder reads the format as format/page.md has it: one bit at a time, no tables made by the encoder,
// no checks. The decoders must agree with it.

type reference struct{ b []byte }

func (r *reference) byte() byte {
	x := r.b[0]
	r.b = r.b[1:]
	return x
}

func (r *reference) uvarint() uint64 {
	x, k := binary.Uvarint(r.b)
	r.b = r.b[k:]
	return x
}

func (r *reference) varint() uint64 {
	x, k := binary.Varint(r.b)
	r.b = r.b[k:]
	return uint64(x)
}

func (r *reference) cut() []byte {
	n := r.uvarint()
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// bit returns count bits from bit at on, lowest first.
func bit(b []byte, at, count int) (x uint64) {
	for i := range count {
		x |= uint64(b[(at+i)/8]>>((at+i)%8)&1) << i
	}
	return x
}

func (r *reference) stream(n int) []uint64 {
	widths := r.b[:(n+63)/64]
	r.b = r.b[len(widths):]
	var v []uint64
	for _, wb := range widths {
		count, w := min(64, n-len(v)), int(wb&0x7F)
		block := make([]uint64, count)
		for i := range block {
			block[i] = bit(r.b, i*w, w)
		}
		r.b = r.b[(count*w+7)/8:]
		if wb&0x80 != 0 {
			positions := make([]byte, r.byte())
			for i := range positions {
				positions[i] = r.byte()
			}
			for _, p := range positions {
				block[p] |= r.uvarint() << w
			}
		}
		v = append(v, block...)
	}
	return v
}

func (r *reference) coded(n int) []uint64 {
	tableBits, fine := int(r.byte()), int(r.byte())
	least, tokens := r.uvarint(), r.uvarint()
	counts := referenceUints(r.cut(), int(tokens))
	size := 1 << tableBits
	token := make([]int, size)
	at := 0
	for t, k := range counts {
		for range k {
			token[at] = t
			at = (at + size/2 + size/8 + 3) % size
		}
	}
	x := make([]int, size) // for each state, the number that its token counts up from its count
	next := append([]uint64(nil), counts...)
	for s, t := range token {
		x[s] = int(next[t])
		next[t]++
	}
	pos := 0
	read := func(count int) uint64 {
		y := bit(r.b, pos, count)
		pos += count
		return y
	}
	var state [4]int
	for i := range state {
		state[i] = int(read(tableBits))
	}
	v := make([]uint64, n)
	for i := range v {
		s := state[i%4]
		t := int(least) + token[s]
		below := max(0, t>>fine-1)
		v[i] = uint64(t-below<<fine)<<below + read(below)
		more := tableBits + 1 - bits.Len(uint(x[s]))
		state[i%4] = x[s]<<more - size + int(read(more))
	}
	return v
}

func referenceUints(b []byte, n int) []uint64 {
	r := &reference{b}
	scheme := r.byte()
	v := make([]uint64, n)
	stream := r.stream
	if scheme&64 != 0 {
		stream = r.coded
		scheme &^= 64
	}
	switch scheme {
	case 0:
		for i := range v {
			v[i] = binary.LittleEndian.Uint64(b[1+8*i:])
		}
	case 1:
		x := r.varint()
		for i := range v {
			v[i] = x
		}
	case 2:
		x, step := r.varint(), r.varint()
		for i := range v {
			v[i] = x + uint64(i)*step
		}
	case 3:
		base := r.varint()
		for i, x := range stream(n) {
			v[i] = base + x
		}
	case 4:
		x, least := r.varint(), r.varint()
		for i, d := range stream(n) {
			x += least + d
			v[i] = x
		}
	case 5:
		x := r.varint()
		for i, d := range stream(n) {
			x += d/2 ^ -(d % 2)
			v[i] = x
		}
	case 6:
		x, delta := r.varint(), r.varint()
		for i, d := range stream(n) {
			delta += d/2 ^ -(d % 2)
			x += delta
			v[i] = x
		}
	case 7:
		start, step, base := r.varint(), r.varint(), r.varint()
		for i, d := range stream(n) {
			v[i] = start + uint64(i)*step + base + d
		}
	case 8:
		table := make([]uint64, int(r.byte())+1)
		copy(table, referenceUints(r.cut(), len(table)))
		for i, k := range referenceUints(r.b, n) {
			v[i] = table[k]
		}
	case 9:
		count := int(r.uvarint())
		values := referenceUints(r.cut(), count)
		i := 0
		for k, length := range referenceUints(r.b, count) {
			for range length + 1 {
				v[i] = values[k]
				i++
			}
		}
	case 10:
		x := r.varint()
		for i, d := range referenceUints(r.b, n) {
			x += d
			v[i] = x
		}
	case 12:
		period, step := int(r.uvarint()), r.varint()
		once := referenceUints(r.b, period)
		for i := range v {
			v[i] = once[i%period] + uint64(i/period)*step
		}
	case 11:
		unit, start := r.uvarint(), r.varint()
		for i, x := range referenceUints(r.b, n) {
			v[i] = start + x*unit
		}
	}
	return v
}

func referenceFloats(b []byte, n int) []uint64 {
	r := &reference{b}
	v := make([]uint64, n)
	switch r.byte() {
	case 0:
		return referenceUints(b, n)
	case 16:
		power := math.Pow10(int(r.byte()))
		for i, x := range referenceUints(r.b, n) {
			v[i] = math.Float64bits(float64(int64(x)) / power)
		}
	case 17:
		power := math.Pow10(int(r.byte()))
		count := int(r.uvarint())
		at, values := referenceUints(r.cut(), count), r.cut()
		for i, x := range referenceUints(r.b, n) {
			v[i] = math.Float64bits(float64(int64(x)) / power)
		}
		for k, x := range referenceUints(values, count) {
			v[at[k]] = x
		}
	case 18:
		for i, x := range referenceUints(r.b, n) {
			if v[i] = x; int64(x) < 0 {
				v[i] = x ^ math.MaxInt64
			}
		}
	case 19:
		low := r.byte()
		high := referenceUints(r.cut(), n)
		for i, x := range r.stream(n) {
			v[i] = high[i]<<low | x
		}
	}
	return v
}

func checkReference(t rapid.TB, c traceColumn) {
	t.Helper()
	b := c.append(nil)
	read := referenceUints
	if c.float {
		read = referenceFloats
	}
	if got := read(b, len(c.v)); !slices.Equal(got, c.v) {
		t.Fatalf("%s: the reference reads %x; want %x", describe(b), got, c.v)
	}
}

func TestReference(t *testing.T) {
	for k, kind := range kinds {
		for _, n := range []int{1, 70, 500, 3000} {
			v := drawKind(k, n)
			checkReference(t, traceColumn{float: kind.float, v: v})
			checkReference(t, traceColumn{float: kind.float, dense: true, v: v})
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := drawUints(t)
		checkReference(t, traceColumn{v: v})
		checkReference(t, traceColumn{v: v, dense: true})
		v = drawFloats(t)
		checkReference(t, traceColumn{float: true, v: v})
		checkReference(t, traceColumn{float: true, dense: true, v: v})
	})
}
