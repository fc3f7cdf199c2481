package postgres

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The object ids of PostgreSQL's built-in types, from its catalog pg_type.
const (
	oidBytea   = 17
	oidInt8    = 20
	oidInt4    = 23
	oidText    = 25
	oidFloat8  = 701
	oidNumeric = 1700

	oidByteaArray   = 1001
	oidInt4Array    = 1007
	oidTextArray    = 1009
	oidInt8Array    = 1016
	oidFloat8Array  = 1022
	oidNumericArray = 1231
)

// array is a parameter in PostgreSQL's binary form of a one-dimensional array: dimensions, a flag for nulls, element type,
// length, lower bound, and then each element behind its length; all big-endian int32.
type array struct {
	oid   uint32
	bytes []byte
	n     int
}

// elements gives the element type of an array type.
func (a *array) element() uint32 {
	switch a.oid {
	case oidByteaArray:
		return oidBytea
	case oidInt4Array:
		return oidInt4
	case oidTextArray:
		return oidText
	case oidFloat8Array:
		return oidFloat8
	case oidNumericArray:
		return oidNumeric
	}
	return oidInt8
}

func newArray(oid uint32) *array {
	a := &array{oid: oid}
	a.bytes = binary.BigEndian.AppendUint32(a.bytes, 1)
	a.bytes = binary.BigEndian.AppendUint32(a.bytes, 1) // there may be nulls
	a.bytes = binary.BigEndian.AppendUint32(a.bytes, a.element())
	a.bytes = binary.BigEndian.AppendUint32(a.bytes, 0)
	a.bytes = binary.BigEndian.AppendUint32(a.bytes, 1)
	return a
}

// encoded returns the parameter.
func (a *array) encoded() []byte {
	binary.BigEndian.PutUint32(a.bytes[12:], uint32(a.n))
	return a.bytes
}

func (a *array) int8(v int64) {
	a.n++
	a.bytes = binary.BigEndian.AppendUint32(a.bytes, 8)
	a.bytes = binary.BigEndian.AppendUint64(a.bytes, uint64(v))
}

func (a *array) int4(v int32) {
	a.n++
	a.bytes = binary.BigEndian.AppendUint32(a.bytes, 4)
	a.bytes = binary.BigEndian.AppendUint32(a.bytes, uint32(v))
}

// float8 adds a float by its bits, so that no NaN changes.
func (a *array) float8(bits uint64) { a.int8(int64(bits)) }

func (a *array) data(v []byte) {
	a.n++
	a.bytes = binary.BigEndian.AppendUint32(a.bytes, uint32(len(v)))
	a.bytes = append(a.bytes, v...)
}

func (a *array) text(v string) {
	a.n++
	a.bytes = binary.BigEndian.AppendUint32(a.bytes, uint32(len(v)))
	a.bytes = append(a.bytes, v...)
}

func (a *array) null() {
	a.n++
	a.bytes = binary.BigEndian.AppendUint32(a.bytes, math.MaxUint32)
}

// numeric adds an unsigned integer in the binary form of numeric: count of digits, weight of the first, sign, digits behind the
// point, and the digits, to the base 10,000; all int16.
func (a *array) numeric(v uint64) {
	var digits [5]uint16
	n := 0
	for ; v > 0; v /= 10_000 {
		digits[n] = uint16(v % 10_000)
		n++
	}
	first := 0 // digits of zero at the end are left out
	for first < n && digits[first] == 0 {
		first++
	}
	a.n++
	a.bytes = binary.BigEndian.AppendUint32(a.bytes, uint32(8+2*(n-first)))
	a.bytes = binary.BigEndian.AppendUint16(a.bytes, uint16(n-first))
	a.bytes = binary.BigEndian.AppendUint16(a.bytes, uint16(max(n-1, 0)))
	a.bytes = binary.BigEndian.AppendUint32(a.bytes, 0)
	for i := n - 1; i >= first; i-- {
		a.bytes = binary.BigEndian.AppendUint16(a.bytes, digits[i])
	}
}

// decodeNumeric reads a numeric that is an integer of 64 bits without a sign.
func decodeNumeric(p []byte) (uint64, error) {
	if len(p) < 8 {
		return 0, fmt.Errorf("a numeric of %d bytes, expected at least 8", len(p))
	}
	n, weight := int(binary.BigEndian.Uint16(p)), int(int16(binary.BigEndian.Uint16(p[2:])))
	if sign := binary.BigEndian.Uint16(p[4:]); sign != 0 || len(p) != 8+2*n || (n > 0 && (weight < n-1 || weight > 4)) {
		return 0, fmt.Errorf("numeric %x, expected an integer from 0 to 2^64-1", p)
	}
	v := uint64(0)
	for i := range n {
		v = v*10_000 + uint64(binary.BigEndian.Uint16(p[8+2*i:]))
	}
	if n > 0 {
		for range weight - (n - 1) {
			v *= 10_000
		}
	}
	return v, nil
}

func decodeInt4(p []byte) (int32, error) {
	if len(p) != 4 {
		return 0, fmt.Errorf("an integer of %d bytes, expected 4", len(p))
	}
	return int32(binary.BigEndian.Uint32(p)), nil
}

func decodeInt8(p []byte) (int64, error) {
	if len(p) != 8 {
		return 0, fmt.Errorf("a bigint of %d bytes, expected 8", len(p))
	}
	return int64(binary.BigEndian.Uint64(p)), nil
}

func int4Param(v int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }

func int8Param(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }
