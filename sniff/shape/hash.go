package shape

import (
	"encoding/binary"
	"math/bits"

	"tidemark/wire/bson"
)

// The quick hash stands for a command's structure while the same statement is met again and again. It is finer than the normal form
// (it sees the order of keys), so that it needs no sorting; several hashes may lead to one shape. It is private to the process and
// seeded; the fingerprint that people see is made from the printed form.

const (
	mixA = 0x9E3779B97F4A7C15
	mixB = 0xD6E8FEB86659FD93
)

// fold adds 64 bits to a hash: a multiplication whose two halves are joined, as in wyhash.
func fold(h, v uint64) uint64 {
	high, low := bits.Mul64(h^v^mixA, mixB^bits.RotateLeft64(v, 32))
	return high ^ low
}

// The marks of what a value is. They stand in the top byte of a key's last word, which is free.
const (
	markScalar = uint64(1+iota) << 56
	markDocument
	markArray
	markEnd
	markCut
	markText
	markDirection
)

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
	// plainLow is the lowest byte of letters: below it are digits, dots and what may make a key data.
	plainLow = 'A'
)

// zeroAt returns the offset of the first zero byte of b at or behind i, or -1.
func zeroAt(b []byte, i int) int {
	for i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:])
		if z := (x - lowBits) &^ x & highBits; z != 0 {
			return i + bits.TrailingZeros64(z)>>3
		}
		i += 8
	}
	for ; i < len(b); i++ {
		if b[i] == 0 {
			return i
		}
	}
	return -1
}

// foldBytes adds a byte string with a mark. No two strings without zero bytes look alike.
func foldBytes(h uint64, b []byte, mark uint64) uint64 {
	for len(b) >= 8 {
		h = fold(h, binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	var tail uint64
	switch {
	case len(b) >= 4:
		// The two halves overlap, or together are shorter than eight bytes.
		low, high := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
		tail = low | high<<(8*(len(b)-4))
	case len(b) > 0:
		tail = uint64(b[0]) | uint64(b[len(b)>>1])<<(8*(len(b)>>1)) | uint64(b[len(b)-1])<<(8*(len(b)-1))
	}
	return fold(h, tail|mark)
}

// foldText adds a short string.
func foldText(h uint64, s string) uint64 {
	var room [64]byte
	return foldBytes(h, room[:copy(room[:], s)], markText)
}

// foldKey adds the field name b[start:end] in its normal form, with the mark of its value. The usual key of letters, perhaps behind a
// "$", is taken word by word; any other is looked at more closely.
func foldKey(h uint64, b []byte, start, end int, mark uint64) uint64 {
	if end-start >= objectIDDigits || start+8 > len(b) || end == start {
		return foldOddKey(h, b[start:end], mark)
	}
	first, at := uint64(0), start
	if b[start] == '$' {
		first = 0xff
	}
	sum := h
	for ; end-at >= 8; at += 8 {
		word := binary.LittleEndian.Uint64(b[at:])
		if filled := word | first; (filled-lowBits*plainLow)&^filled&highBits != 0 {
			return foldOddKey(h, b[start:end], mark)
		}
		sum, first = fold(sum, word), 0
	}
	if at+8 > len(b) {
		return foldOddKey(h, b[start:end], mark)
	}
	// Of the last word, the bytes behind the key are cleared; they are filled for the test.
	shift := uint(64 - 8*(end-at))
	word := binary.LittleEndian.Uint64(b[at:]) << shift >> shift
	if filled := word | first | ^uint64(0)<<(64-shift); (filled-lowBits*plainLow)&^filled&highBits != 0 {
		return foldOddKey(h, b[start:end], mark)
	}
	return fold(sum, word|mark)
}

func foldOddKey(h uint64, key []byte, mark uint64) uint64 {
	if mayBeData(key) {
		var room [maxKeyBytes + 16]byte
		key = appendKey(room[:0], key)
	}
	return foldBytes(h, key, mark)
}

// sizes are the lengths of values by kind, -1 where the value tells it. Where it does so in its first four bytes, extras is what comes on
// top; -1 for the rest, and for what is no kind.
var sizes, extras = func() (fixed, extra [256]int8) {
	for k := range 256 {
		extra[k] = -1
		n, err := bson.ValueBytes(bson.Kind(k), nil)
		if fixed[k] = int8(n); err != nil {
			fixed[k] = -1
		}
		if n, err := bson.ValueBytes(bson.Kind(k), []byte{16, 0, 0, 0}); fixed[k] < 0 && err == nil {
			extra[k] = int8(n - 16)
		}
	}
	return fixed, extra
}()

// variableEnd returns where a value that tells its length, and begins at v, ends; -1 when it cannot be told or is behind the end of doc.
func variableEnd(doc []byte, kind bson.Kind, v int) int {
	if v+4 > len(doc) {
		return -1
	}
	size := 0
	if extra := int(extras[kind]); extra >= 0 {
		size = int(binary.LittleEndian.Uint32(doc[v:])) + extra
		if size < 5 {
			return -1
		}
	} else {
		n, err := bson.ValueBytes(kind, doc[v:])
		if err != nil {
			return -1
		}
		size = n
	}
	if size > len(doc)-v {
		return -1
	}
	return v + size
}

// valueEnd is variableEnd for values of every kind.
func valueEnd(doc []byte, kind bson.Kind, v int) int {
	if size := int(sizes[kind]); size >= 0 {
		if size > len(doc)-v {
			return -1
		}
		return v + size
	}
	return variableEnd(doc, kind, v)
}

// maxFoldDepth is deeper than what is printed, so that the hash stays finer.
const maxFoldDepth = maxDepth + 2

// foldDocument adds the structure of the document or list at the start of doc.
func foldDocument(h uint64, doc []byte, isArray bool, depth int, in mode) uint64 {
	if len(doc) < 5 || depth > maxFoldDepth {
		return fold(h, markCut)
	}
	end := int(binary.LittleEndian.Uint32(doc)) - 1
	if end < 4 || end >= len(doc) || doc[end] != 0 {
		// Cut off: what is there still counts.
		end = len(doc)
		h = fold(h, markCut)
	}
	ordered, masked := in == inPipeline || in == keepPaths, false
	for at := 4; at < end; {
		switch {
		case in == maskAll && isArray:
			// The usual cases, without a detour.
			at = skipValues(doc[:end], at, masked)
		case in == maskAll:
			h, at = foldPlain(h, doc[:end], at, depth)
		case in == keepDirections && !isArray:
			h, at = foldDirections(h, doc[:end], at)
		}
		if at >= end {
			break
		}
		kind := bson.Kind(doc[at])
		start := at + 1
		zero := zeroAt(doc[:end], start)
		if zero < 0 {
			return fold(h, markCut)
		}
		v := zero + 1
		next := valueEnd(doc[:end], kind, v)
		if next < 0 {
			return fold(h, markCut)
		}
		at = next
		nested := kind == bson.Document || kind == bson.Array
		if isArray {
			if !nested {
				// As printed: a run of values is one "?", or all of them are.
				if in == keepPaths {
					if p := fieldPath(&bson.Element{Kind: kind, Value: doc[v:next]}); p != nil {
						h, masked = foldBytes(h, p, markText), false
						continue
					}
				}
				if !masked {
					h, masked = fold(h, markScalar), true
				}
				continue
			}
			masked = masked && !ordered
			h = fold(h, nestedMark(kind))
			h = foldDocument(h, doc[v:next], kind == bson.Array, depth+1, in)
			continue
		}
		child := in
		if in != maskAll || doc[start] == '$' {
			child = childMode(in, doc[start:zero])
		}
		switch {
		case nested:
			h = foldKey(h, doc, start, zero, nestedMark(kind))
			h = foldDocument(h, doc[v:next], kind == bson.Array, depth+1, child)
		case child == maskAll:
			h = foldKey(h, doc, start, zero, markScalar)
		default:
			h = foldKey(h, doc, start, zero, markScalar)
			h = foldScalar(h, &bson.Element{Kind: kind, Value: doc[v:next]}, child)
		}
	}
	return fold(h, markEnd)
}

// The names under which values are kept, as words.
const (
	wordExpr = '$' | 'e'<<8 | 'x'<<16 | 'p'<<24 | 'r'<<32
	wordSort = '$' | 's'<<8 | 'o'<<16 | 'r'<<24 | 't'<<32
)

// foldPlain adds masked elements with names of up to seven letters, perhaps behind a "$", from at on. It returns where it stopped: at
// the first element that is anything else.
func foldPlain(h uint64, doc []byte, at, depth int) (uint64, int) {
	for at+9 <= len(doc) {
		kind := bson.Kind(doc[at])
		word := binary.LittleEndian.Uint64(doc[at+1:])
		zero := (word - lowBits) &^ word & highBits
		if zero == 0 {
			return h, at
		}
		behind := ^uint64(0) << (bits.TrailingZeros64(zero) - 7) // the zero byte and what follows
		word &^= behind
		filled := word | behind
		if byte(word) == '$' {
			if word == wordExpr || word == wordSort {
				return h, at // what stands there is not masked
			}
			filled |= 0xff
		}
		if (filled-lowBits*plainLow)&^filled&highBits != 0 {
			return h, at
		}
		v := at + 2 + bits.TrailingZeros64(zero)>>3
		size := int(sizes[kind])
		if size >= 0 {
			if size > len(doc)-v {
				return h, at
			}
			at = v + size
			h = fold(h, word|markScalar)
			continue
		}
		next := variableEnd(doc, kind, v)
		switch {
		case next < 0:
			return h, at
		case kind == bson.Document || kind == bson.Array:
			h = foldDocument(fold(h, word|nestedMark(kind)), doc[v:next], kind == bson.Array, depth+1, maskAll)
		default:
			h = fold(h, word|markScalar)
		}
		at = next
	}
	return h, at
}

// foldDirections adds elements with names of up to seven letters and numbers that are directions, from at on. It returns where it stopped:
// at the first element that is anything else.
func foldDirections(h uint64, doc []byte, at int) (uint64, int) {
	for at+9 <= len(doc) {
		word := binary.LittleEndian.Uint64(doc[at+1:])
		zero := (word - lowBits) &^ word & highBits
		if zero == 0 {
			return h, at
		}
		behind := ^uint64(0) << ((bits.TrailingZeros64(zero) - 7) & 63)
		word &^= behind
		if filled := word | behind; (filled-lowBits*plainLow)&^filled&highBits != 0 {
			return h, at
		}
		v := at + 2 + bits.TrailingZeros64(zero)>>3
		var way int64
		switch kind := bson.Kind(doc[at]); {
		case kind == bson.Int32 && v+4 <= len(doc):
			way = int64(int32(binary.LittleEndian.Uint32(doc[v:])))
			at = v + 4
		case kind == bson.Int64 && v+8 <= len(doc):
			way = int64(binary.LittleEndian.Uint64(doc[v:]))
			at = v + 8
		default:
			return h, at
		}
		h = fold(h, word|markScalar)
		if way == 1 || way == -1 {
			h = fold(h, uint64(way)&^markAll|markDirection)
		} else {
			h = fold(h, markScalar)
		}
	}
	return h, at
}

// skipValues passes over the values of a masked list from at on, once one of them was added. It returns where it stopped.
func skipValues(doc []byte, at int, masked bool) int {
	for masked && at+9 <= len(doc) {
		kind := bson.Kind(doc[at])
		word := binary.LittleEndian.Uint64(doc[at+1:])
		zero := (word - lowBits) &^ word & highBits
		if zero == 0 || kind == bson.Document || kind == bson.Array {
			return at
		}
		v := at + 2 + bits.TrailingZeros64(zero)>>3
		next := v + int(sizes[kind])
		if next < v {
			if next = variableEnd(doc, kind, v); next < 0 {
				return at
			}
		}
		if next > len(doc) {
			return at
		}
		at = next
	}
	return at
}

func nestedMark(kind bson.Kind) uint64 {
	if kind == bson.Array {
		return markArray
	}
	return markDocument
}

// foldScalar adds what a mode keeps of a scalar.
func foldScalar(h uint64, e *bson.Element, in mode) uint64 {
	switch in {
	case keepDirections:
		if d, ok := direction(e); ok {
			return fold(h, uint64(d)&^markAll|markDirection)
		}
	case keepPaths:
		if p := fieldPath(e); p != nil {
			return foldBytes(h, p, markText)
		}
	}
	return fold(h, markScalar)
}

const markAll = uint64(0xff) << 56

// foldPart adds the value of a part, whose mode may be one of the two that only parts have.
func foldPart(h uint64, kind bson.Kind, value []byte, in mode) uint64 {
	switch in {
	case keepName:
		e := bson.Element{Kind: kind, Value: value}
		name := e.Text()
		return foldKey(h, name, 0, len(name), markText)
	case inUpdate:
		in = maskAll
		if kind == bson.Array {
			in = inPipeline
		}
	}
	if kind == bson.Document || kind == bson.Array {
		return foldDocument(fold(h, nestedMark(kind)), value, kind == bson.Array, 1, in)
	}
	return foldScalar(h, &bson.Element{Kind: kind, Value: value}, in)
}

// foldParts adds the parts of a command or statement, in the order in which the document has them, and hands the fields that mark it to
// fields, if not nil. It returns false when the document cannot be read to its end.
func foldParts(h uint64, doc []byte, l *layout, fields *marks) (uint64, bool) {
	if len(doc) < 5 {
		return h, false
	}
	end := int(binary.LittleEndian.Uint32(doc)) - 1
	if end < 4 || end >= len(doc) || doc[end] != 0 {
		return h, false
	}
	doc = doc[:end+1]
	for at := 4; at < end; {
		kind := bson.Kind(doc[at])
		start := at + 1
		var word uint64
		zero := start
		if start+8 <= len(doc) {
			word = binary.LittleEndian.Uint64(doc[start:])
			if z := (word - lowBits) &^ word & highBits; z != 0 {
				word &^= ^uint64(0) << ((bits.TrailingZeros64(z) - 7) & 63)
				zero += bits.TrailingZeros64(z) >> 3
			} else {
				zero = zeroAt(doc, start+8)
			}
		} else {
			zero = zeroAt(doc, start)
			word = firstWord(string(doc[start:max(zero, start)]))
		}
		if zero < 0 {
			return h, false
		}
		v := zero + 1
		next := v + int(sizes[kind])
		if next < v {
			next = variableEnd(doc, kind, v)
		}
		if next < v || next > end {
			return h, false
		}
		at = next
		s := l.slot(word)
		if s.word != word || s.index == noField || zero-start > 7 && s.name != string(doc[start:zero]) {
			continue
		}
		if s.index == markField {
			if fields != nil {
				fields.field(doc[start:zero], doc[v:next], kind)
			}
			continue
		}
		h = fold(h, uint64(s.index)|markText)
		p := &l.parts[s.index]
		if !p.present {
			h = foldPart(h, kind, doc[v:next], p.mode)
			continue
		}
		if e := (bson.Element{Kind: kind, Value: doc[v:next]}); e.Truthy() {
			h = fold(h, markScalar)
		}
	}
	return h, true
}
