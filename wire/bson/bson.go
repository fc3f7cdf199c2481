// Package bson walks BSON documents without allocating and without reading values that nobody asked for.
//
// It is made for documents seen on a wire: they may be cut off, hostile, or both. Every length is checked before it is used.
// Source: bsonspec.org, version 1.1.
package bson

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

// Kind is the type byte of an element.
type Kind byte

// The kinds of BSON 1.1.
const (
	Double        Kind = 0x01
	String        Kind = 0x02
	Document      Kind = 0x03
	Array         Kind = 0x04
	Binary        Kind = 0x05
	Undefined     Kind = 0x06
	ObjectID      Kind = 0x07
	Boolean       Kind = 0x08
	DateTime      Kind = 0x09
	Null          Kind = 0x0A
	Regex         Kind = 0x0B
	DBPointer     Kind = 0x0C
	JavaScript    Kind = 0x0D
	Symbol        Kind = 0x0E
	CodeWithScope Kind = 0x0F
	Int32         Kind = 0x10
	Timestamp     Kind = 0x11
	Int64         Kind = 0x12
	Decimal128    Kind = 0x13
	MaxKey        Kind = 0x7F
	MinKey        Kind = 0xFF
)

// MaxDocumentBytes is the largest document that a server takes, with the room that commands may add.
const MaxDocumentBytes = 16<<20 + 16<<10

// ErrShort says that the bytes end before the element does: the document was cut off.
var ErrShort = errors.New("bson: the document is cut off")

// ErrMalformed says that a length or a kind cannot be.
var ErrMalformed = errors.New("bson: malformed document")

// Element is one element of a document. Key and Value alias the document.
type Element struct {
	Kind Kind
	// Key is the field name without its zero byte.
	Key []byte
	// Value is the value's bytes as they stand behind the key; of a string with its length and zero byte.
	Value []byte
}

// Reader walks the elements of one document.
type Reader struct {
	rest []byte
	// cut is set when the document is longer than the bytes at hand.
	cut bool
}

// Length returns the length that a document's first four bytes declare, or an error if it cannot be.
func Length(b []byte) (int, error) {
	if len(b) < 4 {
		return 0, ErrShort
	}
	n := binary.LittleEndian.Uint32(b)
	if n < 5 || n > MaxDocumentBytes {
		return 0, ErrMalformed
	}
	return int(n), nil
}

// NewReader returns a reader of the document at the start of b, which may be cut off.
func NewReader(b []byte) (Reader, error) {
	n, err := Length(b)
	if err != nil {
		return Reader{}, err
	}
	if n > len(b) {
		return Reader{rest: b[4:], cut: true}, nil
	}
	if b[n-1] != 0 {
		return Reader{}, ErrMalformed
	}
	return Reader{rest: b[4 : n-1]}, nil
}

// Rest returns a reader of what is at hand of a document whose start is not: b begins with an element, or with the document's end.
func Rest(b []byte) Reader { return Reader{rest: b, cut: true} }

// Next reads the next element into e. It returns false and nil at the end; ErrShort where a cut document stops. If it stops within a
// nested document, e is that, with what is there of its value; otherwise e.Value is nil.
func (r *Reader) Next(e *Element) (bool, error) {
	b := r.rest
	if len(b) >= 9 {
		// The usual element: a key of up to seven bytes and a value whose length is fixed or in its first four bytes.
		word := binary.LittleEndian.Uint64(b[1:])
		if zero := (word - 0x0101010101010101) &^ word & 0x8080808080808080; zero != 0 {
			end := 1 + bits.TrailingZeros64(zero)>>3
			if size := quickBytes(b, end+1); size >= 0 && size <= len(b)-end-1 {
				e.Kind, e.Key = Kind(b[0]), b[1:end]
				e.Value = b[end+1 : end+1+size : end+1+size]
				r.rest = b[end+1+size:]
				return true, nil
			}
		}
	}
	return r.next(b, e)
}

// quickBytes returns the length of a value of the kind b[0] that begins at v, or -1 when that takes a closer look.
func quickBytes(b []byte, v int) int {
	switch Kind(b[0]) {
	case Double, DateTime, Timestamp, Int64:
		return 8
	case Int32:
		return 4
	case Boolean:
		return 1
	case Null:
		return 0
	case ObjectID:
		return 12
	case String, Document, Array:
		if v+4 > len(b) {
			return -1
		}
		size := int(binary.LittleEndian.Uint32(b[v:]))
		if Kind(b[0]) == String {
			size += 4
		}
		if size < 5 {
			return -1
		}
		return size
	}
	return -1
}

// next is Next for every element.
func (r *Reader) next(b []byte, e *Element) (bool, error) {
	if len(b) == 0 {
		e.Value = nil
		if r.cut {
			return false, ErrShort
		}
		return false, nil
	}
	kind := Kind(b[0])
	if kind == 0 && r.cut {
		return false, nil
	}
	end := bytes.IndexByte(b[1:], 0)
	if end < 0 {
		e.Value = nil
		return false, r.short()
	}
	e.Kind, e.Key = kind, b[1:1+end]
	value := b[2+end:]
	size, err := ValueBytes(kind, value)
	if err == nil && size > len(value) {
		err = ErrShort
	}
	if err != nil {
		e.Value = nil
		if errors.Is(err, ErrShort) {
			err = r.short()
			if errors.Is(err, ErrShort) && (kind == Document || kind == Array) && len(value) >= 4 {
				// Nested documents can be walked up to the cut; of other values a part is worse than nothing.
				e.Value = value
			}
		}
		r.rest = nil
		return false, err
	}
	e.Value = value[:size:size]
	r.rest = value[size:]
	return true, nil
}

// short is the error for bytes that end too early: expected in a cut document, malformed in a whole one.
func (r *Reader) short() error {
	if r.cut {
		return ErrShort
	}
	return ErrMalformed
}

// ValueBytes returns the length of a value of a kind at the start of b; it may be more than len(b). ErrShort means that b ends before
// the length can be told.
func ValueBytes(kind Kind, b []byte) (int, error) {
	switch kind {
	case Double, DateTime, Timestamp, Int64:
		return 8, nil
	case Int32:
		return 4, nil
	case Boolean:
		return 1, nil
	case ObjectID:
		return 12, nil
	case Decimal128:
		return 16, nil
	case Null, Undefined, MinKey, MaxKey:
		return 0, nil
	case String, JavaScript, Symbol:
		return prefixed(b, 4, 1)
	case Binary:
		return prefixed(b, 5, 0)
	case DBPointer:
		return prefixed(b, 16, 1)
	case Document, Array, CodeWithScope:
		n, err := prefixed(b, 0, 5)
		return n, err
	case Regex:
		return regexBytes(b)
	}
	return 0, ErrMalformed
}

// prefixed returns the length of a value with an int32 length in front, which counts the bytes behind the extra ones; the
// declared length must be at least atLeast.
func prefixed(b []byte, extra, atLeast int) (int, error) {
	if len(b) < 4 {
		return 0, ErrShort
	}
	n := binary.LittleEndian.Uint32(b)
	if n > MaxDocumentBytes || int(n) < atLeast {
		return 0, ErrMalformed
	}
	return int(n) + extra, nil
}

// regexBytes returns the length of a regular expression: two strings that end in zero bytes.
func regexBytes(b []byte) (int, error) {
	first := bytes.IndexByte(b, 0)
	if first < 0 {
		return 0, ErrShort
	}
	second := bytes.IndexByte(b[first+1:], 0)
	if second < 0 {
		return 0, ErrShort
	}
	return first + second + 2, nil
}

// Text returns the bytes of a String value without length and zero byte, or nil for other kinds.
func (e *Element) Text() []byte {
	if e.Kind != String && e.Kind != Symbol || len(e.Value) < 5 {
		return nil
	}
	return e.Value[4 : len(e.Value)-1]
}

// Number returns a numeric or boolean value as a float; false for other kinds.
func (e *Element) Number() (float64, bool) {
	switch e.Kind {
	case Double:
		if len(e.Value) == 8 {
			return math.Float64frombits(binary.LittleEndian.Uint64(e.Value)), true
		}
	case Int32, Int64:
		n, ok := e.Integer()
		return float64(n), ok
	case Boolean:
		if len(e.Value) == 1 {
			return float64(e.Value[0]), true
		}
	}
	return 0, false
}

// Integer returns an integer value, or a float that is one; false for other kinds.
func (e *Element) Integer() (int64, bool) {
	switch {
	case e.Kind == Int32 && len(e.Value) == 4:
		return int64(int32(binary.LittleEndian.Uint32(e.Value))), true
	case e.Kind == Int64 && len(e.Value) == 8:
		return int64(binary.LittleEndian.Uint64(e.Value)), true
	case e.Kind == Double && len(e.Value) == 8:
		f := math.Float64frombits(binary.LittleEndian.Uint64(e.Value))
		if f == math.Trunc(f) && math.Abs(f) < 1<<62 {
			return int64(f), true
		}
	}
	return 0, false
}

// Truthy reports whether a value counts as true: a number other than 0, or true.
func (e *Element) Truthy() bool {
	switch {
	case e.Kind == Boolean && len(e.Value) == 1:
		return e.Value[0] != 0
	case e.Kind == Int32 && len(e.Value) == 4:
		return binary.LittleEndian.Uint32(e.Value) != 0
	case e.Kind == Int64 && len(e.Value) == 8:
		return binary.LittleEndian.Uint64(e.Value) != 0
	}
	n, ok := e.Number()
	return ok && n != 0
}

// Lookup finds the first element with the given key in the document at the start of b. It returns false when there is none before the
// end or the cut.
func Lookup(b []byte, key string, e *Element) bool {
	r, err := NewReader(b)
	if err != nil {
		return false
	}
	for {
		ok, err := r.Next(e)
		if !ok || err != nil {
			return false
		}
		if string(e.Key) == key {
			return true
		}
	}
}
