// Package page turns the columns of a page (times, numbers, texts) into self-contained bytes and back, bit for bit.
//
// A column is one scheme byte and what that scheme needs; some schemes hold other columns inside:
//
//	raw, constant, linear                              no packing
//	FOR, delta-FOR, delta, delta-of-delta, line-FOR     a stream of 64-value blocks, patched (stream.go)
//	dictionary, runs, slopes, unit, repeat              one or two integer columns
//	decimal, ordered, split                             floats over integer columns
//
// The encoder computes the exact size of the packed schemes from histograms of bit lengths, writes the nested ones where
// they can win, keeps the shortest, decodes it again and falls back to raw if a single bit differs. A column is never longer than
// its raw values and one byte. format/page.md documents every byte. The number of values is not stored; the caller keeps it.
package page

//go:generate go run ./gen

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"
)

// MaxValues bounds the values of one column.
const MaxValues = 1 << 20

// ErrColumn is wrapped by every error of a decoder.
var ErrColumn = errors.New("damaged column")

// corrupt is the error for bytes that no encoder produced.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrColumn, fmt.Sprintf(format, args...))
}

// The schemes. The numbers are stored.
const (
	schemeRaw      = 0  // the values, 8 bytes each
	schemeConstant = 1  // one value
	schemeLinear   = 2  // start and step
	schemeFOR      = 3  // base and a stream of value − base
	schemeDeltaFOR = 4  // start, least delta and a stream of delta − least
	schemeDelta    = 5  // start and a stream of zigzag deltas
	schemeDouble   = 6  // start, first delta and a stream of zigzag deltas of deltas
	schemeLine     = 7  // start, step, base and a stream of value − (start + i·step) − base
	schemeDict     = 8  // distinct values and a column of indices
	schemeRuns     = 9  // a column of values and one of lengths
	schemeSlopes   = 10 // start and a column of deltas
	schemeUnit     = 11 // unit, start and a column of (value − start) / unit
	schemeRepeat   = 12 // period, step and a column of the first period (repeat.go)

	// schemeCoded is added to a scheme from FOR to line whose stream is a coded one (coded.go).
	schemeCoded = 64

	schemeDecimal = 16 // floats: exponent and a column of value · 10^exponent
	schemePatched = 17 // decimal, with exceptions
	schemeOrdered = 18 // floats: a column of the bits in an order-preserving form
	schemeSplit   = 19 // floats: a column of the high bits and a stream of the low bits
)

// rank orders the schemes that hold other columns: a column inside another has a higher rank, so nesting is bounded.
type rank int

const (
	rankFloat rank = iota
	rankRepeat
	rankUnit
	rankSlopes
	rankRuns
	rankDict
	rankPlain
	rankCoded  // the counts of a coded stream are inside a packed column
	rankCounts // and are not coded themselves
	ranks
)

// coder is the memory of one encoder or decoder call.
type coder struct {
	// lines adds schemeLine to the candidates, which pays for times only.
	lines bool
	// dense takes coded streams where they are shorter.
	dense bool
	// levels are the buffers of each rank; a column and those inside it have different ranks.
	levels [ranks]level
	// bits is for the integer form of floats, check for the decoded form of what was encoded.
	bits, check []uint64
	// block and padded are a short block and its bytes.
	block  [blockValues]uint64
	padded [8 * blockValues]byte
	// borders is for finding periods.
	borders []uint32
	// dict finds distinct values.
	dict dict
	// table is for coded streams; nil until the first.
	table *table
}

// level is the memory of one rank.
type level struct {
	delta, work, best []uint64
	outer, inner      []uint64 // what the columns inside hold
	widths, kept      []byte
}

var coders = sync.Pool{New: func() any { return new(coder) }}

// resize returns s with length n and any content.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// words views times as the integers they are stored as; int64 and uint64 have one layout.
func words(at []int64) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(at))), len(at))
}

// AppendUints appends the column of v to dst: at most 8 bytes a value and one more. No values take no bytes. It
// panics if v has more than MaxValues values.
func AppendUints(dst []byte, v []uint64) []byte { return appendUints(dst, v, false, false) }

// AppendDenseUints is AppendUints for data at rest: it also tries entropy coding, which takes about a tenth fewer bytes,
// several times as long to encode and up to twice as long to decode, and looks for a period. DecodeUints reads both.
func AppendDenseUints(dst []byte, v []uint64) []byte { return appendUints(dst, v, false, true) }

// DecodeUints appends the n values of the column b to dst. On an error dst is returned as it was.
func DecodeUints(dst []uint64, b []byte, n int) ([]uint64, error) {
	if err := checkCount(b, n); err != nil || n == 0 {
		return dst, err
	}
	out := slices.Grow(dst, n)[:len(dst)+n]
	c := coders.Get().(*coder)
	defer coders.Put(c)
	if err := c.decode(out[len(dst):], b, rankRepeat); err != nil {
		return dst, err
	}
	return out, nil
}

// AppendTimes appends the column of times, Unix nanoseconds in any order, to dst: at most 8 bytes each and one more.
// It panics if there are more than MaxValues.
func AppendTimes(dst []byte, at []int64) []byte { return appendUints(dst, words(at), true, false) }

// AppendDenseTimes is AppendTimes for data at rest, as AppendDenseUints is AppendUints.
func AppendDenseTimes(dst []byte, at []int64) []byte { return appendUints(dst, words(at), true, true) }

// DecodeTimes appends the n times of the column b to dst. On an error dst is returned as it was.
func DecodeTimes(dst []int64, b []byte, n int) ([]int64, error) {
	if err := checkCount(b, n); err != nil || n == 0 {
		return dst, err
	}
	out := slices.Grow(dst, n)[:len(dst)+n]
	c := coders.Get().(*coder)
	defer coders.Put(c)
	if err := c.decode(words(out[len(dst):]), b, rankRepeat); err != nil {
		return dst, err
	}
	return out, nil
}

// LinearTimes returns the first time and the step of a column of times that are all one step apart; ok is false if
// they are not, or the column must be decoded to know.
func LinearTimes(b []byte) (first, step int64, ok bool) {
	if len(b) == 0 || b[0] != schemeLinear {
		return 0, 0, false
	}
	f := fields{rest: b[1:]}
	first, step = int64(f.signed()), int64(f.signed())
	return first, step, !f.bad && len(f.rest) == 0
}

// AppendFloats appends the column of floats, given as their bits, to dst: at most 8 bytes each and one more. It panics
// if there are more than MaxValues.
func AppendFloats(dst []byte, bits []uint64) []byte { return appendFloats(dst, bits, false) }

// AppendDenseFloats is AppendFloats for data at rest, as AppendDenseUints is AppendUints.
func AppendDenseFloats(dst []byte, bits []uint64) []byte { return appendFloats(dst, bits, true) }

func appendFloats(dst []byte, bits []uint64, dense bool) []byte {
	mustCount(len(bits))
	if len(bits) == 0 {
		return dst
	}
	c := coders.Get().(*coder)
	defer coders.Put(c)
	c.lines, c.dense = false, dense
	mark := len(dst)
	dst = c.encodeFloats(dst, bits)
	return c.verified(dst, mark, bits, (*coder).decodeFloats)
}

// DecodeFloats appends the bits of the n floats of the column b to dst. On an error dst is returned as it was.
func DecodeFloats(dst []uint64, b []byte, n int) ([]uint64, error) {
	if err := checkCount(b, n); err != nil || n == 0 {
		return dst, err
	}
	out := slices.Grow(dst, n)[:len(dst)+n]
	c := coders.Get().(*coder)
	defer coders.Put(c)
	if err := c.decodeFloats(out[len(dst):], b); err != nil {
		return dst, err
	}
	return out, nil
}

func appendUints(dst []byte, v []uint64, lines, dense bool) []byte {
	mustCount(len(v))
	if len(v) == 0 {
		return dst
	}
	c := coders.Get().(*coder)
	defer coders.Put(c)
	c.lines, c.dense = lines, dense
	mark := len(dst)
	dst = c.encodeWhole(dst, v)
	return c.verified(dst, mark, v, (*coder).decodeUints)
}

// verified returns dst if the column at mark decodes to v, and else the raw column in its place.
func (c *coder) verified(dst []byte, mark int, v []uint64, decode func(*coder, []uint64, []byte) error) []byte {
	c.check = resize(c.check, len(v))
	if err := decode(c, c.check, dst[mark:]); err == nil && slices.Equal(c.check, v) {
		return dst
	}
	return appendRaw(dst[:mark], v)
}

func mustCount(n int) {
	if n > MaxValues {
		panic(fmt.Sprintf("page: a column of %d values, and the limit is %d", n, MaxValues))
	}
}

func checkCount(b []byte, n int) error {
	if n < 0 || n > MaxValues {
		return corrupt("%d values, expected 0 to %d", n, MaxValues)
	}
	if n == 0 && len(b) > 0 {
		return corrupt("%d bytes for no values", len(b))
	}
	return nil
}
