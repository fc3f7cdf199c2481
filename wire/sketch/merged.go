package sketch

import (
	"encoding/binary"
	"math"
)

// AppendMerged appends the encoded form of what two encoded sketches counted together; it is the same as decoding, merging and encoding them, and
// makes no sketch for it. An empty a is no sketch: then it is b. If one of them is malformed dst is returned as it was.
func AppendMerged(dst, a, b []byte) ([]byte, error) {
	y, filled, ok := parse(b)
	if !ok {
		return dst, ErrMalformed
	}
	if len(a) == 0 {
		return append(dst, b...), nil
	}
	x, _, ok := parse(a)
	if !ok {
		return dst, ErrMalformed
	}
	if filled == 0 {
		return append(dst, a...), nil
	}
	if len(x.rest) == 0 {
		return append(dst, b...), nil
	}
	least, greatest, sum := min(x.least, y.least), max(x.greatest, y.greatest), x.sum+y.sum
	if sum < x.sum {
		sum = math.MaxUint64
	}
	dst = append(dst, version)
	dst = binary.AppendUvarint(dst, least)
	dst = binary.AppendUvarint(dst, greatest-least)
	dst = binary.AppendUvarint(dst, sum)
	dst = binary.AppendUvarint(dst, union(x, y))
	last := 0
	both(x, y, func(at int, count uint32) {
		dst = binary.AppendUvarint(dst, uint64(at-last))
		dst = binary.AppendUvarint(dst, uint64(count))
		last = at
	})
	return dst, nil
}

// cursor goes through the buckets of an encoded sketch that is intact.
type cursor struct {
	least, greatest, sum uint64
	rest                 []byte
	at                   int
	count                uint32
	done                 bool
}

// parse reads the head of an encoded sketch and checks all of it.
func parse(b []byte) (c cursor, filled uint64, ok bool) {
	if len(b) == 0 || b[0] != version {
		return c, 0, false
	}
	b = b[1:]
	var head [4]uint64
	for i := range head {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return c, 0, false
		}
		head[i], b = v, b[n:]
	}
	c = cursor{least: head[0], greatest: head[0] + head[1], sum: head[2], rest: b}
	if c.greatest < c.least || head[3] > Buckets {
		return c, 0, false
	}
	at := uint64(0)
	for i := range head[3] {
		step, n := binary.Uvarint(b)
		if n <= 0 {
			return c, 0, false
		}
		count, k := binary.Uvarint(b[n:])
		if k <= 0 || count == 0 || count > math.MaxUint32 || step >= Buckets || at+step >= Buckets || step == 0 && i > 0 {
			return c, 0, false
		}
		at, b = at+step, b[n+k:]
	}
	return c, head[3], len(b) == 0
}

// next goes to the next bucket.
func (c *cursor) next() {
	if len(c.rest) == 0 {
		c.done = true
		return
	}
	step, n := binary.Uvarint(c.rest)
	count, k := binary.Uvarint(c.rest[n:])
	c.at, c.count, c.rest = c.at+int(step), uint32(count), c.rest[n+k:]
}

// union counts the buckets that one of two sketches fills.
func union(x, y cursor) uint64 {
	n := uint64(0)
	both(x, y, func(int, uint32) { n++ })
	return n
}

// both calls fn for each bucket that one of two sketches fills, in rising order.
func both(x, y cursor, fn func(at int, count uint32)) {
	x.next()
	y.next()
	for !x.done || !y.done {
		switch {
		case y.done || !x.done && x.at < y.at:
			fn(x.at, x.count)
			x.next()
		case x.done || y.at < x.at:
			fn(y.at, y.count)
			y.next()
		default:
			fn(x.at, addCapped(x.count, y.count))
			x.next()
			y.next()
		}
	}
}
