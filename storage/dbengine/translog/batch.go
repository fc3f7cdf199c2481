package translog

import (
	"encoding/binary"
	"errors"
	"fmt"
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
	packedZeros byte = iota // every number is zero
	packedEqual             // every number is the one that follows, a uvarint
	packedSized             // a nibble per number with its size in bytes, then the numbers
)

// Encoder makes batch records. Its zero value is ready; it keeps room between uses.
type Encoder struct{ column []uint64 }

// AppendBatch appends the record of the given rows of b and of marks to dst: at most MaxRows, MaxMarks and MaxArenaBytes.
func (e *Encoder) AppendBatch(dst []byte, b *model.Batch, rows []int32, marks []model.Mark) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(rows)))
	dst = binary.AppendUvarint(dst, uint64(len(marks)))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(b.ArrivedAt))
	if len(rows) > 0 {
		dst = e.appendRows(dst, b, rows)
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

func (e *Encoder) appendRows(dst []byte, b *model.Batch, rows []int32) []byte {
	dst = appendRuns(dst, rows, b.Types)
	dst = appendRuns(dst, rows, b.Flags)
	e.column = slices.Grow(e.column[:0], len(rows))[:len(rows)]
	column := e.column
	last := uint64(0)
	for k, i := range rows {
		item := uint64(b.Items[i])
		column[k] = zigzag(item - last)
		last = item
	}
	dst = appendPacked(dst, column)
	last = uint64(b.ArrivedAt)
	for k, i := range rows {
		at := uint64(b.At[i])
		column[k] = zigzag(at - last)
		last = at
	}
	dst = appendPacked(dst, column)
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
	dst = appendPacked(dst, column)
	if texts {
		for _, i := range rows {
			if b.Types[i].InArena() {
				dst = append(dst, b.Bytes(int(i))...)
			}
		}
	}
	return dst
}

func zigzag(d uint64) uint64   { return d<<1 ^ uint64(int64(d)>>63) }
func unzigzag(z uint64) uint64 { return z>>1 ^ -(z & 1) }

// appendRuns appends a column of bytes as runs: their number, then value and length of each.
func appendRuns[T ~uint8](dst []byte, rows []int32, column []T) []byte {
	mark := len(dst)
	dst = append(dst, 0, 0)
	runs, start := 0, 0
	for k := 1; k <= len(rows); k++ {
		if k < len(rows) && column[rows[k]] == column[rows[start]] {
			continue
		}
		dst = append(dst, byte(column[rows[start]]))
		dst = binary.AppendUvarint(dst, uint64(k-start))
		runs++
		start = k
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
	n := len(v)
	dst = append(dst, packedSized)
	sizes := len(dst)
	dst = slices.Grow(dst, (n+1)/2+8*n+8)
	room := dst[:cap(dst)]
	at := sizes + (n+1)/2
	for i, x := range v {
		size := (bits.Len64(x) + 7) >> 3
		if i&1 == 0 {
			room[sizes+i>>1] = byte(size)
		} else {
			room[sizes+i>>1] |= byte(size << 4)
		}
		binary.LittleEndian.PutUint64(room[at:], x)
		at += size
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
		return r.sized(what, dst, n)
	}
	r.fail("%s: unknown form %d", what, form[0])
	return dst
}

func (r *reader) sized(what string, dst []uint64, n int) []uint64 {
	sizes := r.take(what, (n+1)/2)
	if sizes == nil {
		return dst
	}
	b := r.b
	for i := range n {
		size := int(sizes[i>>1]>>(4*(i&1))) & 15
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
	b.Bits = r.packed("values", b.Bits, n)
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
