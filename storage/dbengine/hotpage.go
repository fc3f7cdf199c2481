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
	// blockRows values of a hot page have one width. A page has widthBlocks blocks; the last one takes all further values, of which there
	// are some when a batch has many of one series.
	blockRows   = 64
	widthBlocks = 16
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

// hotPage is the growing page of a series of numbers. Each value takes the width of its block, its difference to the one before:
// a block in which all are equal has no bytes. Floats with few decimals are kept as integers.
type hotPage struct {
	clock *clock
	buf   []byte
	// base and last are the first and the last number, scaled.
	base, last uint64
	// widths are those of the blocks, 4 bits each: 0, 1, 2, 4 or 8 bytes.
	widths uint64
	// first is the clock's row of the first value.
	first, count uint32
	// end is how much of buf is in use.
	end uint32
	// width is that of the block that grows.
	width uint8
	// scale is 0 for numbers kept as their bits, else the decimals and one.
	scale uint8
}

// numbers are the values of a hot page at one moment. They never change, and need no lock.
type numbers struct {
	times  []int64
	buf    []byte
	base   uint64
	widths uint64
	scale  uint8
}

// freeze returns the values that the page holds now.
func (p *hotPage) freeze() numbers {
	if p.count == 0 {
		return numbers{}
	}
	return numbers{
		times: p.clock.at[p.first : p.first+p.count : p.first+p.count], buf: p.buf[:p.end],
		base: p.base, widths: p.widths, scale: p.scale,
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
	if p.count%blockRows == 0 && p.count < blockRows*widthBlocks {
		if p.count == 0 {
			p.base, p.last, p.count = u, u, 1
			return
		}
		p.width = 0
	}
	d, end := u-p.last, int(p.end)
	switch p.width {
	case 0:
		if d == 0 {
			p.count++
			return
		}
		p.vary(t, bits, u)
		return
	case 1:
		if end < len(p.buf) && uint64(int64(int8(d))) == d {
			p.buf[end] = byte(d)
			p.last = u
			p.end++
			p.count++
			return
		}
	case 2:
		if end+2 <= len(p.buf) && uint64(int64(int16(d))) == d {
			binary.LittleEndian.PutUint16(p.buf[end:], uint16(d))
			p.last = u
			p.end += 2
			p.count++
			return
		}
	case 4:
		if end+4 <= len(p.buf) && uint64(int64(int32(d))) == d {
			binary.LittleEndian.PutUint32(p.buf[end:], uint32(d))
			p.last = u
			p.end += 4
			p.count++
			return
		}
	case 8:
		if end+8 <= len(p.buf) {
			binary.LittleEndian.PutUint64(p.buf[end:], d)
			p.last = u
			p.end += 8
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

// vary adds the first value of a block that differs from the one before. The first of all decides how floats are kept.
func (p *hotPage) vary(t model.ValueType, bits, u uint64) {
	if t == model.Float && p.buf == nil {
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
	width := widthOf(u - p.last)
	if block := p.block(); block > 1 { // most blocks need what those before them did
		width = max(width, min(blockWidth(p.widths, block-1), blockWidth(p.widths, block-2), 2))
	}
	p.widen(u, width)
}

// block returns the block of the next value.
func (p *hotPage) block() int { return min(int(p.count)/blockRows, widthBlocks-1) }

// blockWidth returns the width of a block.
func blockWidth(widths uint64, block int) uint8 { return uint8(widths >> (4 * block) & 15) }

// widen adds a scaled number after it gave the values of its block more room, or more bytes each. What readers hold does not change.
func (p *hotPage) widen(u uint64, width uint8) {
	block := p.block()
	held := int(p.count) - block*blockRows
	start := int(p.end) - held*int(p.width)
	if end := start + (held+1)*int(width); p.width == 0 && end <= len(p.buf) { // nobody reads what is behind the blocks before
		clear(p.buf[start : end-int(width)])
		p.widened(p.buf, u, start, held, width)
		return
	}
	room := start + max(blockRows*int(width), start/2) // so that what is left behind is at most twice what is held
	if left := widthBlocks*blockRows - block*blockRows; held >= left {
		room = start + 2*held*int(width)
	} else {
		room = min(room, start+left*int(width))
	}
	buf := slices.Grow([]byte(nil), room)
	buf = buf[:cap(buf)]
	if width == p.width {
		copy(buf, p.buf[:p.end])
	} else {
		copy(buf, p.buf[:start])
		for i := range held {
			put(buf[start:], i, width, delta(p.buf[start:], i, p.width))
		}
	}
	p.widened(buf, u, start, held, width)
}

// widened adds a scaled number to buf, which holds those before it.
func (p *hotPage) widened(buf []byte, u uint64, start, held int, width uint8) {
	block := p.block()
	put(buf[start:], held, width, u-p.last)
	p.buf, p.width, p.last = buf, width, u
	p.widths = p.widths&^(15<<(4*block)) | uint64(width)<<(4*block)
	p.end = uint32(start + (held+1)*int(width))
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

// delta returns what was stored for value i of a block.
func delta(buf []byte, i int, width uint8) uint64 {
	switch width {
	case 0:
		return 0
	case 1:
		return uint64(int64(int8(buf[i])))
	case 2:
		return uint64(int64(int16(binary.LittleEndian.Uint16(buf[2*i:]))))
	case 4:
		return uint64(int64(int32(binary.LittleEndian.Uint32(buf[4*i:]))))
	}
	return binary.LittleEndian.Uint64(buf[8*i:])
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
	*p = hotPage{clock: p.clock, first: p.first, scale: scale}
	for _, b := range all {
		p.push(model.Uint, b) // not as floats, so that the scale stays
	}
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
	u, buf := n.base, n.buf
	for block, row := 0, 0; row < to; block++ {
		rows := to - row
		if block < widthBlocks-1 {
			rows = min(rows, blockRows)
		}
		width := blockWidth(n.widths, block)
		b := buf[:rows*int(width)]
		skipped := min(max(from-row, 0), rows)
		for i := range skipped {
			u += delta(b, i, width)
		}
		u = addDeltas(out[:rows-skipped], b[skipped*int(width):], width, u)
		out, buf = out[rows-skipped:], buf[len(b):]
		row += rows
	}
	return dst[:len(dst)+to-from]
}

// addDeltas puts into out what comes from adding differences to u, one after the other, and returns the last.
func addDeltas(out []uint64, b []byte, width uint8, u uint64) uint64 {
	switch width {
	case 0:
		for i := range out {
			out[i] = u
		}
	case 1:
		b = b[:len(out)]
		for i := range out {
			u += uint64(int64(int8(b[i])))
			out[i] = u
		}
	case 2:
		for i := range out {
			u += uint64(int64(int16(binary.LittleEndian.Uint16(b[2*i:]))))
			out[i] = u
		}
	case 4:
		for i := range out {
			u += uint64(int64(int32(binary.LittleEndian.Uint32(b[4*i:]))))
			out[i] = u
		}
	default:
		for i := range out {
			u += binary.LittleEndian.Uint64(b[8*i:])
			out[i] = u
		}
	}
	return u
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
