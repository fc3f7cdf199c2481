// Package sketch keeps the distribution of latencies so that it can be added up: sketches of seconds merge into the sketch of an
// hour, whose percentiles are as right as those of one second.
//
// A sketch counts values in buckets that are 1/32 of a power of two wide, so that a percentile is wrong by at most 1.6 %. Values are
// nanoseconds from 1 µs to 2^42 ns (73 minutes); what lies outside counts in the first or last bucket. Minimum, maximum and sum are
// exact. docs/protocol/latency-sketch.md describes the encoded form.
package sketch

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

const (
	subBits    = 5
	subBuckets = 1 << subBits
	lowest     = 10 // 2^10 ns
	highest    = 42
	// Buckets is how many buckets a sketch has.
	Buckets = (highest - lowest) * subBuckets
)

// Sketch is a distribution of latencies. The zero value is empty. A copy shares its counts with what it was copied from: copy with
// Merge.
type Sketch struct {
	Count uint64
	Sum   uint64 // nanoseconds; stops at the largest number
	Max   uint64
	Min   uint64
	// rows are the counts of each power of two, made when the first value falls there: latencies of one shape lie in few of them,
	// and there are sketches for thousands of shapes.
	rows [rows]*row
}

// rows is how many powers of two a sketch tells apart.
const rows = highest - lowest

type row [subBuckets]uint32

// add counts n values in bucket i.
func (s *Sketch) add(i int, n uint32) {
	r := s.rows[i/subBuckets]
	if r == nil {
		r = new(row)
		s.rows[i/subBuckets] = r
	}
	c := &r[i%subBuckets]
	*c = addCapped(*c, n)
}

// each calls fn for every bucket that counted something, until it returns false.
func (s *Sketch) each(fn func(i int, n uint32) bool) {
	for k, r := range s.rows {
		if r == nil {
			continue
		}
		for j, n := range r {
			if n != 0 && !fn(k*subBuckets+j, n) {
				return
			}
		}
	}
}

// bucket returns the bucket of a latency.
func bucket(nanos uint64) int {
	if nanos < 1<<lowest {
		return 0
	}
	exponent := bits.Len64(nanos) - 1
	if exponent >= highest {
		return Buckets - 1
	}
	return (exponent-lowest)*subBuckets + int(nanos>>(exponent-subBits))&(subBuckets-1)
}

// middle returns the latency that stands for a bucket: the middle of its range.
func middle(i int) float64 {
	exponent := lowest + i/subBuckets
	width := math.Ldexp(1, exponent-subBits)
	return math.Ldexp(1, exponent) + width*(float64(i%subBuckets)+0.5)
}

// Add counts one latency; a negative one counts as 0.
func (s *Sketch) Add(nanos int64) {
	s.AddN(nanos, 1)
}

// AddN counts a latency n times.
func (s *Sketch) AddN(nanos int64, n uint32) {
	v := uint64(max(nanos, 0))
	i := bucket(v)
	s.add(i, n)
	if s.Count == 0 || v < s.Min {
		s.Min = v
	}
	s.Max = max(s.Max, v)
	s.Count += uint64(n)
	high, low := bits.Mul64(v, uint64(n))
	sum, carry := bits.Add64(s.Sum, low, 0)
	if high != 0 || carry != 0 {
		sum = math.MaxUint64
	}
	s.Sum = sum
}

func addCapped(a, b uint32) uint32 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxUint32
}

// Merge adds what o counted.
func (s *Sketch) Merge(o *Sketch) {
	if o.Count == 0 {
		return
	}
	if s.Count == 0 || o.Min < s.Min {
		s.Min = o.Min
	}
	s.Max = max(s.Max, o.Max)
	s.Count += o.Count
	sum, carry := bits.Add64(s.Sum, o.Sum, 0)
	if carry != 0 {
		sum = math.MaxUint64
	}
	s.Sum = sum
	for k, from := range o.rows {
		if from == nil {
			continue
		}
		if s.rows[k] == nil {
			s.rows[k] = new(row)
		}
		to := s.rows[k]
		for j, n := range from {
			to[j] = addCapped(to[j], n)
		}
	}
}

// Reset empties the sketch and keeps its memory.
func (s *Sketch) Reset() {
	for _, r := range s.rows {
		if r != nil {
			*r = row{}
		}
	}
	s.Count, s.Sum, s.Max, s.Min = 0, 0, 0, 0
}

// Equal tells whether two sketches counted the same.
func (s *Sketch) Equal(o *Sketch) bool {
	if s.Count != o.Count || s.Sum != o.Sum || s.Min != o.Min || s.Max != o.Max {
		return false
	}
	for k := range rows {
		var x, y row
		if s.rows[k] != nil {
			x = *s.rows[k]
		}
		if o.rows[k] != nil {
			y = *o.rows[k]
		}
		if x != y {
			return false
		}
	}
	return true
}

// Quantile returns the latency in nanoseconds below which the fraction q (0 to 1) of the values lies; 0 for an empty sketch. It is
// never outside Min and Max.
func (s *Sketch) Quantile(q float64) float64 {
	if s.Count == 0 {
		return 0
	}
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(s.Count)))
	if rank <= 1 {
		return float64(s.Min)
	}
	if rank >= s.Count {
		return float64(s.Max)
	}
	var seen uint64
	value := float64(s.Max)
	s.each(func(i int, n uint32) bool {
		seen += uint64(n)
		if seen < rank {
			return true
		}
		value = min(max(middle(i), float64(s.Min)), float64(s.Max))
		return false
	})
	return value
}

// Histogram calls fn for every bucket that counted something: its bounds in nanoseconds and its count.
func (s *Sketch) Histogram(fn func(from, to float64, count uint32)) {
	s.each(func(i int, n uint32) bool {
		exponent := lowest + i/subBuckets
		width := math.Ldexp(1, exponent-subBits)
		from := math.Ldexp(1, exponent) + width*float64(i%subBuckets)
		fn(from, from+width, n)
		return true
	})
}

// version is the first byte of an encoded sketch.
const version = 1

// ErrMalformed says that bytes are no encoded sketch.
var ErrMalformed = errors.New("sketch: malformed")

// Append appends the encoded form: version, then as uvarints minimum, maximum − minimum, sum, number of buckets that are not empty, and
// for each the distance to the one before and its count.
func (s *Sketch) Append(dst []byte) []byte {
	filled := 0
	s.each(func(int, uint32) bool {
		filled++
		return true
	})
	dst = append(dst, version)
	dst = binary.AppendUvarint(dst, s.Min)
	dst = binary.AppendUvarint(dst, s.Max-s.Min)
	dst = binary.AppendUvarint(dst, s.Sum)
	dst = binary.AppendUvarint(dst, uint64(filled))
	last := 0
	s.each(func(i int, n uint32) bool {
		dst = binary.AppendUvarint(dst, uint64(i-last))
		dst = binary.AppendUvarint(dst, uint64(n))
		last = i
		return true
	})
	return dst
}

// Decode reads an encoded sketch into s, whose content is lost.
func (s *Sketch) Decode(b []byte) error {
	s.Reset()
	if len(b) == 0 || b[0] != version {
		return ErrMalformed
	}
	b = b[1:]
	var head [4]uint64
	for i := range head {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return ErrMalformed
		}
		head[i], b = v, b[n:]
	}
	s.Min, s.Max, s.Sum = head[0], head[0]+head[1], head[2]
	if s.Max < s.Min || head[3] > Buckets {
		return ErrMalformed
	}
	at := uint64(0)
	for nth := range head[3] {
		step, n := binary.Uvarint(b)
		if n <= 0 {
			return ErrMalformed
		}
		count, k := binary.Uvarint(b[n:])
		if k <= 0 || count == 0 || count > math.MaxUint32 || step >= Buckets || at+step >= Buckets || step == 0 && nth > 0 {
			return ErrMalformed
		}
		at += step
		s.add(int(at), uint32(count))
		s.Count += count
		b = b[n+k:]
	}
	if len(b) != 0 {
		return ErrMalformed
	}
	return nil
}
