package dbengine

import (
	"encoding/binary"
	"math"
	"slices"

	"tidemark/model"
)

const (
	// maxScale is the most decimals with which floats are kept as integers.
	maxScale = 6
	// maxScaled bounds those integers, so that each is exact as a float and so is rounding to them.
	maxScaled = 1 << 51
	// rowsAtFirst is the room of a page's first buffer in values.
	rowsAtFirst = 32
	// maxClockStart is the last row of a clock with which a page may start, so that clocks end.
	maxClockStart = 2048
)

// powers are the divisors of scaled floats.
var powers = [maxScale + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6}

// clock holds the times of hot pages whose series get their values at the same instants. All of them are in one
// shard, whose lock it needs. What it holds never changes; it only grows.
type clock struct {
	at []int64
	// id names the clock in its shard. A clock that left another one has its id in parent, and held rows shift to fork
	// of it before it went its own way.
	id, parent  uint64
	shift, fork uint32
}

// hotPage is the growing page of a series of numbers. Each value takes width bytes, its difference to the one before;
// while all are equal there is no buffer. Floats with few decimals are kept as integers.
type hotPage struct {
	clock *clock
	buf   []byte
	// base and last are the first and the last number, scaled.
	base, last uint64
	// first is the clock's row of the first value.
	first, count uint32
	// width is 0, 1, 2, 4 or 8.
	width uint8
	// scale is 0 for numbers kept as their bits, else the decimals and one.
	scale uint8
}

// numbers are the values of a hot page at one moment. They never change, and need no lock.
type numbers struct {
	times []int64
	buf   []byte
	base  uint64
	width uint8
	scale uint8
}

// freeze returns the values that the page holds now.
func (p *hotPage) freeze() numbers {
	if p.count == 0 {
		return numbers{}
	}
	return numbers{
		times: p.clock.at[p.first : p.first+p.count : p.first+p.count], buf: p.buf[:int(p.width)*int(p.count)],
		base: p.base, width: p.width, scale: p.scale,
	}
}

// tick makes the clock's row for the page's next value, which comes at a time later than all others of the page. Series
// whose values came at the same instants so far share their clock; near is the one used last.
func (sh *shard) tick(p *hotPage, at int64) {
	near := sh.near
	if p.count == 0 {
		if near == nil || near.at[len(near.at)-1] != at || len(near.at) > maxClockStart {
			sh.clocks++
			near = &clock{at: []int64{at}, id: sh.clocks}
			sh.near = near
		}
		p.clock, p.first = near, uint32(len(near.at)-1)
		return
	}
	c, row := p.clock, int(p.first+p.count)
	switch {
	case row == len(c.at)-1 && c.at[row] == at:
	case near != nil && near.parent == c.id && int(near.fork) == row && near.shift <= p.first &&
		len(near.at) == int(near.fork-near.shift)+1 && near.at[len(near.at)-1] == at:
		p.clock, p.first = near, p.first-near.shift
		return
	case row == len(c.at):
		c.at = append(c.at, at)
	default:
		sh.clocks++
		own := &clock{at: make([]int64, p.count, 2*p.count+1), id: sh.clocks, parent: c.id, shift: p.first, fork: uint32(row)}
		copy(own.at, c.at[p.first:row])
		own.at = append(own.at, at)
		p.clock, p.first = own, 0
	}
	sh.near = p.clock
}

// scaled returns the integer that stands for a float with so many decimals, if it gives back the same bits.
func scaled(bits uint64, decimals uint8) (uint64, bool) {
	const round = 3 << 51 // adding it leaves no bits behind the point
	x := math.Float64frombits(bits) * powers[decimals]
	if !(x > -maxScaled && x < maxScaled) {
		return 0, false
	}
	m := int64(math.Float64bits(x+round)) - int64(math.Float64bits(round))
	return uint64(m), math.Float64bits(float64(m)/powers[decimals]) == bits
}

// push adds a value, whose row the clock has.
func (p *hotPage) push(t model.ValueType, bits uint64) {
	u := bits
	if p.scale != 0 {
		var ok bool
		if u, ok = scaled(bits, p.scale-1); !ok {
			p.rescale(bits)
			return
		}
	}
	n := int(p.count)
	d := u - p.last
	switch p.width {
	case 0:
		if n == 0 {
			p.base, p.last, p.count = bits, bits, 1
			return
		}
		if d == 0 {
			p.count++
			return
		}
		p.vary(t, bits)
		return
	case 1:
		if n < len(p.buf) && uint64(int64(int8(d))) == d {
			p.buf[n] = byte(d)
			p.last = u
			p.count++
			return
		}
	case 2:
		if 2*n+2 <= len(p.buf) && uint64(int64(int16(d))) == d {
			binary.LittleEndian.PutUint16(p.buf[2*n:], uint16(d))
			p.last = u
			p.count++
			return
		}
	case 4:
		if 4*n+4 <= len(p.buf) && uint64(int64(int32(d))) == d {
			binary.LittleEndian.PutUint32(p.buf[4*n:], uint32(d))
			p.last = u
			p.count++
			return
		}
	case 8:
		if 8*n+8 <= len(p.buf) {
			binary.LittleEndian.PutUint64(p.buf[8*n:], d)
			p.last = u
			p.count++
			return
		}
	}
	p.widen(u, max(p.width, widthOf(d)))
}

// widthOf returns the bytes that a difference needs.
func widthOf(d uint64) uint8 {
	switch {
	case uint64(int64(int8(d))) == d:
		return 1
	case uint64(int64(int16(d))) == d:
		return 2
	case uint64(int64(int32(d))) == d:
		return 4
	}
	return 8
}

// vary adds the first value that differs from those before.
func (p *hotPage) vary(t model.ValueType, bits uint64) {
	u := bits
	if t == model.Float {
		for e := range uint8(maxScale + 1) {
			m, ok := scaled(bits, e)
			if !ok {
				continue
			}
			if base, ok := scaled(p.base, e); ok {
				u, p.base, p.last, p.scale = m, base, base, e+1
				break
			}
		}
	}
	p.widen(u, widthOf(u-p.last))
}

// widen adds a scaled number after it gave the values more room, or more bytes each.
func (p *hotPage) widen(u uint64, width uint8) {
	n := int(p.count)
	rows := rowsAtFirst
	for rows <= n {
		rows += rows / 2 &^ 7
	}
	buf := make([]byte, rows*int(width))
	if width == p.width {
		copy(buf, p.buf)
	} else {
		for i := range n {
			put(buf, i, width, p.delta(i))
		}
	}
	put(buf, n, width, u-p.last)
	p.buf, p.width, p.last = buf, width, u
	p.count++
}

func put(buf []byte, i int, width uint8, d uint64) {
	switch width {
	case 1:
		buf[i] = byte(d)
	case 2:
		binary.LittleEndian.PutUint16(buf[2*i:], uint16(d))
	case 4:
		binary.LittleEndian.PutUint32(buf[4*i:], uint32(d))
	default:
		binary.LittleEndian.PutUint64(buf[8*i:], d)
	}
}

// delta returns what was stored for value i.
func (p *hotPage) delta(i int) uint64 {
	switch p.width {
	case 0:
		return 0
	case 1:
		return uint64(int64(int8(p.buf[i])))
	case 2:
		return uint64(int64(int16(binary.LittleEndian.Uint16(p.buf[2*i:]))))
	case 4:
		return uint64(int64(int32(binary.LittleEndian.Uint32(p.buf[4*i:]))))
	}
	return binary.LittleEndian.Uint64(p.buf[8*i:])
}

// rescale adds a float that has not the decimals of those before: all get more, or are kept as their bits from now on.
func (p *hotPage) rescale(bits uint64) {
	held := p.freeze()
	all := append(held.decode(nil), bits)
	scale := uint8(0)
	for e := p.scale; e <= maxScale && scale == 0; e++ {
		if scaledAll(all, e) {
			scale = e + 1
		}
	}
	count := p.count + 1
	width := uint8(1)
	p.scale, p.width, p.buf = scale, 0, nil
	var last uint64
	for i, b := range all {
		u := b
		if scale != 0 {
			u, _ = scaled(b, scale-1)
		}
		all[i] = u
		if i > 0 {
			width = max(width, widthOf(u-last))
		}
		last = u
	}
	rows := rowsAtFirst
	for rows < len(all) {
		rows += rows / 2 &^ 7
	}
	p.buf = make([]byte, rows*int(width))
	last = all[0]
	for i, u := range all {
		put(p.buf, i, width, u-last)
		last = u
	}
	p.base, p.last, p.width, p.count = all[0], last, width, count
}

func scaledAll(bits []uint64, decimals uint8) bool {
	for _, b := range bits {
		if _, ok := scaled(b, decimals); !ok {
			return false
		}
	}
	return true
}

// decode appends the bits of all values to dst.
func (n *numbers) decode(dst []uint64) []uint64 { return n.decodeFrom(dst, 0, len(n.times)) }

// decodeFrom appends the bits of the values from one index up to another to dst.
func (n *numbers) decodeFrom(dst []uint64, from, to int) []uint64 {
	start := len(dst)
	dst = n.scaled(dst, from, to)
	if n.scale != 0 {
		divisor := powers[n.scale-1]
		for i, m := range dst[start:] {
			dst[start+i] = math.Float64bits(float64(int64(m)) / divisor)
		}
	}
	return dst
}

// scaled appends the numbers that are kept, for floats with few decimals the integers that stand for them.
func (n *numbers) scaled(dst []uint64, from, to int) []uint64 {
	dst = slices.Grow(dst, to-from)
	out := dst[len(dst) : len(dst)+to-from]
	u := n.base
	for i := range from {
		u += n.delta(i)
	}
	switch n.width {
	case 0:
		for i := range out {
			out[i] = u
		}
	case 1:
		for i, d := range n.buf[from:to] {
			u += uint64(int64(int8(d)))
			out[i] = u
		}
	case 2:
		b := n.buf[2*from : 2*to]
		for i := range out {
			u += uint64(int64(int16(binary.LittleEndian.Uint16(b[2*i:]))))
			out[i] = u
		}
	case 4:
		b := n.buf[4*from : 4*to]
		for i := range out {
			u += uint64(int64(int32(binary.LittleEndian.Uint32(b[4*i:]))))
			out[i] = u
		}
	default:
		b := n.buf[8*from : 8*to]
		for i := range out {
			u += binary.LittleEndian.Uint64(b[8*i:])
			out[i] = u
		}
	}
	return dst[:len(dst)+to-from]
}

func (n *numbers) delta(i int) uint64 {
	p := hotPage{buf: n.buf, width: n.width}
	return p.delta(i)
}

// at returns the bits of the value at an instant.
func (n *numbers) at(at int64) (bits uint64, found bool) {
	i := searchTimes(n.times, at)
	if i == len(n.times) || n.times[i] != at {
		return 0, false
	}
	var room [1]uint64
	return n.decodeFrom(room[:0], i, i+1)[0], true
}
