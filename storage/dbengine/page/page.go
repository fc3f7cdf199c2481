// Package page turns the columns of a page (times, numbers, texts) into self-contained bytes and back, bit for bit.
package page

import (
	"encoding/binary"
	"errors"
	"fmt"

	"tidemark/model"
)

// MaxValues bounds the values of one page.
const MaxValues = 1 << 20

// ErrColumn is wrapped by every error of a decoder.
var ErrColumn = errors.New("page column")

// AppendUints appends the encoded form of v to dst. An empty column takes no bytes.
func AppendUints(dst []byte, v []uint64) []byte {
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint64(dst, x)
	}
	return dst
}

// DecodeUints appends the n values that b holds to dst.
func DecodeUints(dst []uint64, b []byte, n int) ([]uint64, error) {
	if n < 0 || n > MaxValues || len(b) != 8*n {
		return dst, fmt.Errorf("%w: %d bytes for %d values", ErrColumn, len(b), n)
	}
	for i := range n {
		dst = append(dst, binary.LittleEndian.Uint64(b[8*i:]))
	}
	return dst, nil
}

// AppendFloats appends the encoded form of floats, given as their bits, to dst.
func AppendFloats(dst []byte, bits []uint64) []byte { return AppendUints(dst, bits) }

// DecodeFloats appends the bits of the n floats that b holds to dst.
func DecodeFloats(dst []uint64, b []byte, n int) ([]uint64, error) { return DecodeUints(dst, b, n) }

// AppendTimes appends the encoded form of times, Unix nanoseconds, to dst.
func AppendTimes(dst []byte, at []int64) []byte {
	for _, x := range at {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(x))
	}
	return dst
}

// DecodeTimes appends the n times that b holds to dst.
func DecodeTimes(dst []int64, b []byte, n int) ([]int64, error) {
	if n < 0 || n > MaxValues || len(b) != 8*n {
		return dst, fmt.Errorf("%w: %d bytes for %d times", ErrColumn, len(b), n)
	}
	for i := range n {
		dst = append(dst, int64(binary.LittleEndian.Uint64(b[8*i:])))
	}
	return dst, nil
}

// AppendBlobs appends the encoded form of the texts that spans (model.Span) name in arena to dst.
func AppendBlobs(dst []byte, arena []byte, spans []uint64) []byte {
	for _, s := range spans {
		p := model.SpanBytes(arena, s)
		dst = binary.AppendUvarint(dst, uint64(len(p)))
		dst = append(dst, p...)
	}
	return dst
}

// DecodeBlobs appends the n texts that b holds to arena, and the spans that name them there to spans.
func DecodeBlobs(spans []uint64, arena []byte, b []byte, n int) ([]uint64, []byte, error) {
	for i := range n {
		size, k := binary.Uvarint(b)
		if k <= 0 || size > uint64(len(b)-k) {
			return spans, arena, fmt.Errorf("%w: text %d of %d is cut off", ErrColumn, i, n)
		}
		spans = append(spans, model.Span(len(arena), int(size)))
		arena = append(arena, b[k:k+int(size)]...)
		b = b[k+int(size):]
	}
	return spans, arena, nil
}
