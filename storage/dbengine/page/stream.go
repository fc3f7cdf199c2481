package page

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A stream is a run of numbers in blocks of 64, each block as wide as most of its numbers need:
//
//	width bytes, one a block │ block │ block │ …
//	block: numbers, width bits each, lowest bit first │ if bit 7 of the width byte is set: exceptions
//	exceptions: count │ positions, a byte each │ for each the bits above width, as a uvarint
//
// The last block may be short; it is padded to a whole byte.

const (
	blockValues = 64
	// maxExceptions bounds the patched values of a block, so that patching stays cheaper than unpacking.
	maxExceptions = 16
	// patched marks a width byte whose block has exceptions.
	patched = 0x80
)

// blocksOf returns the number of blocks of n values.
func blocksOf(n int) int { return (n + blockValues - 1) / blockValues }

// planStream sets widths to the cheapest width byte of each block of v, and returns the size of the stream.
func planStream(widths []byte, v []uint64) int {
	size := blocksOf(len(v))
	for k := range widths {
		block := v[k*blockValues:]
		if len(block) > blockValues {
			block = block[:blockValues]
		}
		w, cost := planBlock(block)
		widths[k] = w
		size += cost
	}
	return size
}

// maxQuick is the longest number whose length countLengths gets from a float's exponent.
const maxQuick = 50

// shorterBy holds, for each length of the longest number of a block and each place that countLengths looks at, what a number
// adds to the counts.
var shorterBy = shorterByTable()

func shorterByTable() (table [maxQuick + 1][blockValues]uint64) {
	for widest := range table {
		for length := range widest + 1 {
			table[widest][(length+63)%64] = 1 << (8 * min(widest-length, 7))
		}
	}
	return table
}

// countLengths counts the numbers of a block by how many bits they are shorter than the longest one, 0 to 6 or at least
// 7, in the bytes of its result. The length of x is the exponent of 2x+1 as a float, which many CPUs make in less time than they search
// for the highest bit; and counting in a register, no addition waits for a store.
func countLengths(block []uint64, widest int) uint64 {
	if len(block) != blockValues || widest > maxQuick {
		var counts uint64
		for _, x := range block {
			counts += 1 << (8 * min(uint(widest-bits.Len64(x)), 7) & 63)
		}
		return counts
	}
	b, add := (*[blockValues]uint64)(block), &shorterBy[widest]
	var even, odd uint64
	for i := 0; i < blockValues; i += 4 {
		even += add[math.Float64bits(float64(int64(b[i]<<1|1)))>>52&63]
		odd += add[math.Float64bits(float64(int64(b[i+1]<<1|1)))>>52&63]
		even += add[math.Float64bits(float64(int64(b[i+2]<<1|1)))>>52&63]
		odd += add[math.Float64bits(float64(int64(b[i+3]<<1|1)))>>52&63]
	}
	return even + odd
}

// orAll returns the bits that any number of the block has.
func orAll(block []uint64) uint64 {
	var a, b uint64
	for len(block) >= 4 {
		x := (*[4]uint64)(block)
		a |= x[0] | x[1]
		b |= x[2] | x[3]
		block = block[4:]
	}
	for _, x := range block {
		a |= x
	}
	return a | b
}

// planBlock returns the cheapest width byte for a block and the block's size. Only a block with a few numbers far longer than all
// others needs a full table of lengths.
func planBlock(block []uint64) (width byte, size int) {
	widest := bits.Len64(orAll(block))
	if widest == 0 {
		return 0, 0
	}
	counts := countLengths(block, widest)
	width, size = byte(widest), (len(block)*widest+7)/8
	exceptions := 0
	for w := widest - 1; w >= max(0, widest-7); w-- {
		if exceptions += int(counts & 0xFF); exceptions > maxExceptions {
			return width, size
		}
		counts >>= 8
		// The high bits of an exception are at most 7, one byte.
		if cost := (len(block)*w+7)/8 + 1 + 2*exceptions; cost < size {
			width, size = byte(w)|patched, cost
		}
	}
	if widest <= 7 {
		return width, size
	}
	return planUneven(block, widest)
}

// planUneven is planBlock for any block.
func planUneven(block []uint64, widest int) (width byte, size int) {
	var h [65]uint8
	for _, x := range block {
		h[bits.Len64(x)]++
	}
	width, size = byte(widest), (len(block)*widest+7)/8
	exceptions, tail := 0, 0 // tail is the size of the exceptions' high bits
	for w := widest - 1; w >= 0; w-- {
		if exceptions += int(h[w+1]); exceptions > maxExceptions {
			break
		}
		for wide := w + 1; wide <= widest; wide += 7 {
			tail += int(h[wide]) // one more byte at every seventh bit
		}
		if cost := (len(block)*w+7)/8 + 1 + exceptions + tail; cost < size {
			width, size = byte(w)|patched, cost
		}
	}
	return width, size
}

// appendStream appends the stream of v with the widths that planStream chose.
func (c *coder) appendStream(dst []byte, v []uint64, widths []byte) []byte {
	dst = append(dst, widths...)
	block := &c.block
	for k, wb := range widths {
		rest := v[k*blockValues:]
		count := min(len(rest), blockValues)
		w := int(wb &^ patched)
		at := len(dst)
		dst = grow(dst, 8*w+8)
		source := block
		if wb&patched == 0 && count == blockValues {
			source = (*[blockValues]uint64)(rest)
		} else {
			mask := uint64(1)<<w - 1
			if w == 64 {
				mask = ^uint64(0)
			}
			for i, x := range rest[:count] {
				block[i] = x & mask
			}
			clear(block[count:])
		}
		packers[w](dst[at:], source)
		dst = dst[:at+(count*w+7)/8]
		if wb&patched != 0 {
			dst = appendExceptions(dst, rest[:count], w)
		}
	}
	return dst
}

// appendExceptions appends the values of block that are wider than w.
func appendExceptions(dst []byte, block []uint64, w int) []byte {
	at := len(dst)
	dst = append(dst, 0)
	for i, x := range block {
		if x>>w != 0 {
			dst = append(dst, byte(i))
		}
	}
	count := len(dst) - at - 1
	dst[at] = byte(count)
	for i := range count {
		dst = binary.AppendUvarint(dst, block[dst[at+1+i]]>>w)
	}
	return dst
}

// grow makes dst longer by n bytes of any content.
func grow(dst []byte, n int) []byte {
	if cap(dst)-len(dst) < n {
		bigger := make([]byte, len(dst), 2*cap(dst)+n+64)
		copy(bigger, dst)
		dst = bigger
	}
	return dst[:len(dst)+n]
}

// readStream reads len(dst) numbers from the front of b, which are all of a stream of so many blocks or its first whole blocks, adds base to
// each, and returns what follows them.
func (c *coder) readStream(dst []uint64, blocks int, b []byte, base uint64) ([]byte, error) {
	if len(b) < blocks {
		return nil, corrupt("%d bytes of widths for %d blocks", len(b), blocks)
	}
	widths := b[:blocks]
	b = b[blocks:]
	for len(dst) >= blockValues {
		wb := widths[0]
		widths = widths[1:]
		w := int(wb &^ patched)
		if w > 64 {
			return nil, corrupt("a block %d bits wide, expected at most 64", w)
		}
		if len(b) < 8*w {
			return nil, corrupt("a block cut off at %d of %d bytes", len(b), 8*w)
		}
		block := (*[blockValues]uint64)(dst)
		unpackers[w](block, b, base)
		b = b[8*w:]
		if wb&patched != 0 {
			var err error
			if b, err = patch(block, blockValues, b, w); err != nil {
				return nil, err
			}
		}
		dst = dst[blockValues:]
	}
	if len(dst) == 0 {
		return b, nil
	}
	return c.readShort(dst, b, widths[0], base)
}

// readShort reads a last block of less than 64 values.
func (c *coder) readShort(dst []uint64, b []byte, wb byte, base uint64) ([]byte, error) {
	w := int(wb &^ patched)
	if w > 64 {
		return nil, corrupt("a block %d bits wide, expected at most 64", w)
	}
	size := (len(dst)*w + 7) / 8
	if len(b) < size {
		return nil, corrupt("a block cut off at %d of %d bytes", len(b), size)
	}
	block := &c.block
	if len(b) >= 8*w {
		unpackers[w](block, b, base)
	} else {
		copy(c.padded[:], b)
		unpackers[w](block, c.padded[:], base)
	}
	b = b[size:]
	if wb&patched != 0 {
		var err error
		if b, err = patch(block, len(dst), b, w); err != nil {
			return nil, err
		}
	}
	copy(dst, block[:])
	return b, nil
}

// patch adds the exceptions at the front of b to the first count values of a block, and returns what follows them.
func patch(block *[blockValues]uint64, count int, b []byte, w int) ([]byte, error) {
	if len(b) == 0 {
		return nil, corrupt("exceptions cut off")
	}
	exceptions := int(b[0])
	if exceptions == 0 || exceptions > count || len(b) <= exceptions || w == 64 {
		return nil, corrupt("%d exceptions in a block of %d values of %d bits", exceptions, count, w)
	}
	positions := b[1 : 1+exceptions]
	b = b[1+exceptions:]
	for _, p := range positions {
		if int(p) >= count {
			return nil, corrupt("an exception at %d of %d values", p, count)
		}
		var high uint64
		if len(b) > 0 && b[0] < 0x80 {
			high = uint64(b[0])
			b = b[1:]
		} else {
			var k int
			if high, k = binary.Uvarint(b); k <= 0 {
				return nil, corrupt("an exception cut off")
			}
			b = b[k:]
		}
		block[p&(blockValues-1)] += high << w
	}
	return b, nil
}
