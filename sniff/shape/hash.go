package shape

import (
	"encoding/binary"
	"math/bits"

	"tidemark/wire/bson"
)

// The quick hash stands for a command's structure while the same statement is met again and again. It is finer than the normal form
// (it sees the order of keys), so that it needs no sorting; several hashes may lead to one shape. It is private to the process and
// seeded; the fingerprint that people see is made from the printed form.

// mixer is the state of a quick hash.
type mixer struct {
	h     uint64
	nodes int
}

const (
	mixA = 0x9E3779B97F4A7C15
	mixB = 0xD6E8FEB86659FD93
)

// add folds 64 bits into the hash (a multiplication whose two halves are joined, as in wyhash).
func (m *mixer) add(v uint64) {
	high, low := bits.Mul64(m.h^v^mixA, mixB^bits.RotateLeft64(v, 32))
	m.h = high ^ low
}

// bytes folds a byte string with its length.
func (m *mixer) bytes(b []byte) {
	n := len(b)
	for len(b) >= 8 {
		m.add(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	var tail uint64
	switch {
	case len(b) >= 4:
		tail = uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))<<32
	case len(b) > 0:
		tail = uint64(b[0]) | uint64(b[len(b)>>1])<<8 | uint64(b[len(b)-1])<<16
	}
	m.add(tail ^ uint64(n)<<56)
}

// key folds a field name in its normal form.
func (m *mixer) key(k []byte) {
	if mayBeData(k) {
		var room [maxKeyBytes + 16]byte
		k = appendKey(room[:0], k)
	}
	m.bytes(k)
}

// The marks of what a value is, so that a scalar and an empty document differ.
const (
	markScalar = 1 + iota
	markDocument
	markArray
	markEnd
	markCut
)

// value folds a value's structure. literal keeps scalars (sort directions, index specifications); paths keeps "$field" strings.
func (m *mixer) value(e *bson.Element, depth int, mode mode) {
	m.nodes++
	switch e.Kind {
	case bson.Document, bson.Array:
		if depth >= maxDepth || m.nodes > maxNodes {
			m.add(markCut)
			return
		}
		m.nested(e, depth+1, mode)
		return
	}
	m.scalar(e, mode)
}

func (m *mixer) scalar(e *bson.Element, mode mode) {
	switch mode {
	case keepDirections:
		if d, ok := direction(e); ok {
			m.add(uint64(d)<<8 | 7)
			return
		}
	case keepPaths:
		if p := fieldPath(e); p != nil {
			m.bytes(p)
			return
		}
	}
	m.add(markScalar)
}

func (m *mixer) nested(e *bson.Element, depth int, in mode) {
	r, err := bson.NewReader(e.Value)
	if err != nil {
		m.add(markCut)
		return
	}
	isArray := e.Kind == bson.Array
	if isArray {
		m.add(markArray)
	} else {
		m.add(markDocument)
	}
	ordered, masked := in == inPipeline || in == keepPaths, false
	var c bson.Element
	for {
		ok, err := r.Next(&c)
		if err != nil {
			m.add(markCut)
		}
		if !ok {
			break
		}
		if isArray && c.Kind != bson.Document && c.Kind != bson.Array && (in != keepPaths || fieldPath(&c) == nil) {
			// As printed: a run of values is one "?", or all of them are.
			if !masked {
				m.add(markScalar)
			}
			masked = true
			continue
		}
		masked = masked && !ordered
		next := in
		if !isArray {
			m.key(c.Key)
			next = childMode(in, c.Key)
		}
		m.value(&c, depth, next)
	}
	m.add(markEnd)
}
