package translog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"tidemark/model"
)

const (
	// MaxRows bounds the values of one batch record.
	MaxRows = 8192
	// RowBytes is the most that a row takes in a record besides its arena bytes.
	RowBytes = 32
	// MaxMarks bounds the marks of one batch record.
	MaxMarks = 512
	// MarkBytes is the most that a mark takes.
	MarkBytes = 2 + 2*255 + 8
	// MaxArenaBytes bounds the arena bytes of one batch record.
	MaxArenaBytes = 384 << 10
)

// KindBatch is the kind of a record with values and marks.
const KindBatch byte = 1

// ErrBatch is wrapped by the errors of DecodeBatch.
var ErrBatch = errors.New("damaged batch record")

// The forms of a packed column.
const (
	packedZeros    byte = iota // every number is zero
	packedEqual                // every number is the one that follows, a uvarint
	packedSized                // a nibble per number with its size in bytes, then the numbers
	packedThen                 // the first number, then all others, which are equal: two uvarints
	packedDecimals             // as packedSized, but floats may be integers, for which 8 is added to the nibble
)

// maxDecimals bounds the decimals of floats that are logged as integers.
const maxDecimals = 15

var powers = [maxDecimals + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// Encoder makes batch records. Its zero value is ready; it keeps room between uses.
type Encoder struct{ column []uint64 }

// Decimals tell, for each row that is logged, how its float may be written shorter.
type Decimals struct {
	// Places is 0 for a float that is logged as its bits, else one more than its decimals (up to 15).
	Places []uint8
	// Integers are then the signed numbers that divided by 10^decimals give the same bits; below 2^54 in size.
	Integers []uint64
}

// AppendBatch appends the record of the given rows of b, in rising order, and of marks to dst: at most MaxRows, MaxMarks and
// MaxArenaBytes. d may be nil.
func (e *Encoder) AppendBatch(dst []byte, b *model.Batch, rows []int32, d *Decimals, marks []model.Mark) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(rows)))
	dst = binary.AppendUvarint(dst, uint64(len(marks)))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(b.ArrivedAt))
	if len(rows) > 0 {
		dst = e.appendRows(dst, b, rows, d)
	}
	for _, m := range marks {
		dst = appendShort(dst, m.Key)
		dst = appendShort(dst, m.Value)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(m.At))
	}
	return dst
}

func appendShort(dst []byte, s string) []byte {
	s = s[:min(len(s), 255)]
	return append(append(dst, byte(len(s))), s...)
}

func (e *Encoder) appendRows(dst []byte, b *model.Batch, rows []int32, d *Decimals) []byte {
	first, n := int(rows[0]), len(rows)
	if int(rows[n-1])-first+1 == n { // nearly always
		dst = appendRuns(dst, b.Types[first:first+n])
		dst = appendRuns(dst, b.Flags[first:first+n])
		dst = appendSteps(e, dst, b.Items[first:first+n], 0)
		dst = appendSteps(e, dst, b.At[first:first+n], uint64(b.ArrivedAt))
	} else {
		dst = appendRuns(dst, gather(b.Types, rows))
		dst = appendRuns(dst, gather(b.Flags, rows))
		dst = appendSteps(e, dst, gather(b.Items, rows), 0)
		dst = appendSteps(e, dst, gather(b.At, rows), uint64(b.ArrivedAt))
	}
	e.column = resize(e.column, n)
	column := e.column
	texts := false
	for k, i := range rows {
		switch b.Types[i] {
		case model.Float: // its last bytes are the ones that are often zero
			column[k] = bits.ReverseBytes64(b.Bits[i])
		case model.Uint:
			column[k] = b.Bits[i]
		default:
			column[k] = b.Bits[i] & 0xFFFFFFFF
			texts = true
		}
	}
	dst = appendValues(dst, column, d)
	if texts {
		for _, i := range rows {
			if b.Types[i].InArena() {
				dst = append(dst, b.Bytes(int(i))...)
			}
		}
	}
	return dst
}

func gather[T any](column []T, rows []int32) []T {
	all := make([]T, len(rows))
	for k, i := range rows {
		all[k] = column[i]
	}
	return all
}

func resize(s []uint64, n int) []uint64 {
	if cap(s) < n {
		return make([]uint64, n)
	}
	return s[:n]
}

// appendSteps appends the differences of a column's numbers to the one before, the first to start.
func appendSteps[T ~int64 | ~uint64](e *Encoder, dst []byte, v []T, start uint64) []byte {
	first := zigzag(uint64(v[0]) - start)
	if len(v) > 1 {
		step, k := v[1]-v[0], 2
		for k < len(v) && v[k]-v[k-1] == step {
			k++
		}
		if k == len(v) && (first != 0 || step != 0) {
			dst = binary.AppendUvarint(append(dst, packedThen), first)
			return binary.AppendUvarint(dst, zigzag(uint64(step)))
		}
	}
	e.column = resize(e.column, len(v))
	last := T(start)
	for k, x := range v {
		e.column[k] = zigzag(uint64(x - last))
		last = x
	}
	return appendPacked(dst, e.column)
}

// appendValues appends the column of values.
func appendValues(dst []byte, column []uint64, d *Decimals) []byte {
	if d == nil || allZero(d.Places) {
		return appendPacked(dst, column)
	}
	dst = appendRuns(append(dst, packedDecimals), d.Places)
	for k, p := range d.Places {
		if p != 0 {
			column[k] = zigzag(d.Integers[k])
		}
	}
	sizes := len(dst)
	dst = appendSized(dst, column)
	for k, p := range d.Places {
		if p != 0 {
			dst[sizes+k>>1] |= 8 << (4 * (k & 1))
		}
	}
	return dst
}

func allZero(v []uint8) bool {
	for _, x := range v {
		if x != 0 {
			return false
		}
	}
	return true
}

func zigzag(d uint64) uint64   { return d<<1 ^ uint64(int64(d)>>63) }
func unzigzag(z uint64) uint64 { return z>>1 ^ -(z & 1) }

// appendRuns appends a column of bytes as runs: their number, then value and length of each.
func appendRuns[T ~uint8](dst []byte, column []T) []byte {
	mark := len(dst)
	dst = append(dst, 0, 0)
	runs := 0
	for len(column) > 0 {
		v, k := column[0], 1
		for k+4 <= len(column) && column[k] == v && column[k+1] == v && column[k+2] == v && column[k+3] == v {
			k += 4
		}
		for k < len(column) && column[k] == v {
			k++
		}
		dst = binary.AppendUvarint(append(dst, byte(v)), uint64(k))
		runs++
		column = column[k:]
	}
	binary.LittleEndian.PutUint16(dst[mark:], uint16(runs))
	return dst
}

// appendPacked appends a column of numbers, each in as few bytes as it needs.
func appendPacked(dst []byte, v []uint64) []byte {
	equal := true
	for _, x := range v {
		if x != v[0] {
			equal = false
			break
		}
	}
	if equal {
		if v[0] == 0 {
			return append(dst, packedZeros)
		}
		return binary.AppendUvarint(append(dst, packedEqual), v[0])
	}
	return appendSized(append(dst, packedSized), v)
}

// appendSized appends the nibbles with the numbers' sizes, and the numbers.
func appendSized(dst []byte, v []uint64) []byte {
	n := len(v)
	sizes := len(dst)
	dst = slices.Grow(dst, (n+1)/2+8*n+8)
	room := dst[:cap(dst)]
	at := sizes + (n+1)/2
	k := sizes
	for ; len(v) >= 2; v = v[2:] {
		low, high := (bits.Len64(v[0])+7)>>3, (bits.Len64(v[1])+7)>>3
		room[k] = byte(low | high<<4)
		k++
		binary.LittleEndian.PutUint64(room[at:], v[0])
		at += low
		binary.LittleEndian.PutUint64(room[at:], v[1])
		at += high
	}
	if len(v) > 0 {
		low := (bits.Len64(v[0]) + 7) >> 3
		room[k] = byte(low)
		binary.LittleEndian.PutUint64(room[at:], v[0])
		at += low
	}
	return room[:at]
}

// reader reads a payload; the first error stays.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %w", ErrBatch, fmt.Errorf(format, args...))
	}
	r.b = nil
}

func (r *reader) uvarint(what string, limit uint64) int {
	v, k := binary.Uvarint(r.b)
	if k <= 0 || v > limit {
		r.fail("%s: %d, expected at most %d", what, v, limit)
		return 0
	}
	r.b = r.b[k:]
	return int(v)
}

func (r *reader) take(what string, n int) []byte {
	if n > len(r.b) {
		r.fail("%s: %d bytes, expected %d", what, len(r.b), n)
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) uint64(what string) uint64 {
	p := r.take(what, 8)
	if p == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(p)
}

// runs reads a column of bytes of n rows.
func (r *reader) runs(what string, n int, put func(v byte)) {
	p := r.take(what, 2)
	if p == nil {
		return
	}
	rows := 0
	for range binary.LittleEndian.Uint16(p) {
		v := r.take(what, 1)
		size := r.uvarint(what, uint64(n-rows))
		if r.err != nil {
			return
		}
		for range size {
			put(v[0])
		}
		rows += size
	}
	if rows != n {
		r.fail("%s: %d rows, expected %d", what, rows, n)
	}
}

// packed appends the n numbers of a packed column to dst.
func (r *reader) packed(what string, dst []uint64, n int) []uint64 {
	form := r.take(what, 1)
	if form == nil {
		return dst
	}
	switch form[0] {
	case packedZeros:
		return append(dst, make([]uint64, n)...)
	case packedEqual:
		v, k := binary.Uvarint(r.b)
		if k <= 0 {
			r.fail("%s: no number", what)
			return dst
		}
		r.b = r.b[k:]
		for range n {
			dst = append(dst, v)
		}
		return dst
	case packedSized:
		return r.sized(what, dst, n, nil)
	case packedThen:
		first, k := binary.Uvarint(r.b)
		then, l := uint64(0), 0
		if k > 0 {
			then, l = binary.Uvarint(r.b[k:])
		}
		if l <= 0 {
			r.fail("%s: no two numbers", what)
			return dst
		}
		r.b = r.b[k+l:]
		dst = append(dst, first)
		for range n - 1 {
			dst = append(dst, then)
		}
		return dst
	}
	r.fail("%s: unknown form %d", what, form[0])
	return dst
}

// values is packed for the column of values; rows whose float was an integer are set right, and noted in whole.
func (r *reader) values(b *model.Batch, n int) (whole []uint8) {
	if len(r.b) == 0 || r.b[0] != packedDecimals {
		b.Bits = r.packed("values", b.Bits, n)
		return nil
	}
	r.b = r.b[1:]
	whole = make([]uint8, 0, n)
	r.runs("decimals", n, func(v byte) { whole = append(whole, v) })
	if r.err != nil {
		return nil
	}
	b.Bits = r.sized("values", b.Bits, n, whole)
	if r.err != nil {
		return nil
	}
	for i, p := range whole {
		if p == 0 {
			continue
		}
		if p > maxDecimals+1 || b.Types[i] != model.Float {
			r.fail("value %d has %d decimals and type %d", i, p-1, b.Types[i])
			return nil
		}
		b.Bits[i] = math.Float64bits(float64(int64(unzigzag(b.Bits[i]))) / powers[p-1])
	}
	return whole
}

// sized reads numbers behind the nibbles with their sizes. Where whole is not zero, 8 is added to the nibble.
func (r *reader) sized(what string, dst []uint64, n int, whole []uint8) []uint64 {
	sizes := r.take(what, (n+1)/2)
	if sizes == nil {
		return dst
	}
	b := r.b
	for i := range n {
		size := int(sizes[i>>1]>>(4*(i&1))) & 15
		if whole != nil && whole[i] != 0 {
			if size -= 8; size < 0 {
				r.fail("%s: number %d is no integer", what, i)
				return dst
			}
		}
		if size > 8 || size > len(b) {
			r.fail("%s: number %d of %d bytes in %d", what, i, size, len(b))
			return dst
		}
		var x uint64
		if len(b) >= 8 {
			x = binary.LittleEndian.Uint64(b) & (1<<(8*size) - 1)
		} else {
			for k := size - 1; k >= 0; k-- {
				x = x<<8 | uint64(b[k])
			}
		}
		dst = append(dst, x)
		b = b[size:]
	}
	r.b = b
	return dst
}

// DecodeBatch reads a batch record into b, which it resets first. Texts of b are copies.
func DecodeBatch(b *model.Batch, payload []byte) error {
	b.Reset()
	r := reader{b: payload}
	rows := r.uvarint("rows", MaxRows)
	marks := r.uvarint("marks", MaxMarks)
	b.ArrivedAt = int64(r.uint64("arrival"))
	if rows > 0 && r.err == nil {
		r.rows(b, rows)
	}
	for range marks {
		key := r.take("mark key", r.byte())
		value := r.take("mark value", r.byte())
		at := r.uint64("mark time")
		if r.err != nil {
			break
		}
		b.Marks = append(b.Marks, model.Mark{Key: string(key), Value: string(value), At: int64(at)})
	}
	if r.err == nil && len(r.b) != 0 {
		r.fail("%d bytes behind the last mark", len(r.b))
	}
	if r.err != nil {
		b.Reset()
	}
	return r.err
}

func (r *reader) byte() int {
	p := r.take("length", 1)
	if p == nil {
		return 0
	}
	return int(p[0])
}

func (r *reader) rows(b *model.Batch, n int) {
	r.runs("types", n, func(v byte) { b.Types = append(b.Types, model.ValueType(v)) })
	r.runs("flags", n, func(v byte) { b.Flags = append(b.Flags, model.Flag(v)) })
	items := r.packed("items", nil, n)
	times := r.packed("times", nil, n)
	whole := r.values(b, n)
	if r.err != nil {
		return
	}
	item, at := uint64(0), uint64(b.ArrivedAt)
	for i := range n {
		item += unzigzag(items[i])
		at += unzigzag(times[i])
		b.Items = append(b.Items, model.ItemID(item))
		b.At = append(b.At, int64(at))
	}
	for i, t := range b.Types {
		switch {
		case t == model.Float && whole != nil && whole[i] != 0:
		case t == model.Float:
			b.Bits[i] = bits.ReverseBytes64(b.Bits[i])
		case t == model.Uint:
		case t <= model.Binary:
			if b.Bits[i] > uint64(len(r.b)) {
				r.fail("text %d: %d bytes, expected %d", i, len(r.b), b.Bits[i])
				return
			}
			b.Bits[i] = b.Store(r.take("text", int(b.Bits[i])))
		default:
			r.fail("row %d has type %d", i, t)
			return
		}
	}
}
