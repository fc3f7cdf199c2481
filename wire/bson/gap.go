package bson

import "encoding/binary"

// Gap says how a document that is cut off goes on without the bytes that nobody needs: the rest of a long value or list. What lies
// from Keep to Resume is left out, and every enclosing length gets shorter by that.
type Gap struct {
	// Keep is how much of the bytes at hand stays; Resume the offset in the document from which more is needed, at least their number.
	Keep, Resume int
	// Lengths are the offsets of the lengths of the documents that enclose the gap, outermost first; Depth of them are filled.
	Lengths [maxGapDepth]int
	Depth   int
}

// maxGapDepth bounds how deep a gap may lie.
const maxGapDepth = 24

// shortRest is how much of a cut value may be missing for it to be read on rather than left out: names are as short as that.
const shortRest = 4096

// FindGap finds where the document at the start of b, which is longer than b, can go on. A cut value is left out; a cut list loses
// its further elements, and with coarse set that is the outermost list around the cut. It returns false when
// the document is malformed or nested too deeply.
func FindGap(b []byte, coarse bool, g *Gap) bool {
	g.Depth = 0
	start, isArray := 0, false
	for g.Depth < maxGapDepth {
		size, err := Length(b[start:])
		if err != nil {
			return false
		}
		g.Lengths[g.Depth] = start
		g.Depth++
		at, nested, kind := lastElement(b, start)
		if at < 0 {
			return false
		}
		scalar := kind != Document && kind != Array
		if isArray && (coarse || nested == 0 || scalar) {
			g.Keep, g.Resume = at, start+size-1
			return g.Resume >= len(b)
		}
		if nested == 0 {
			// The element's start is cut, or nothing is: go on right there.
			g.Keep, g.Resume = len(b), len(b)
			return true
		}
		if scalar {
			end, err := ValueBytes(kind, b[nested:])
			if end > 0 && nested+end-len(b) <= shortRest {
				g.Keep, g.Resume = len(b), len(b)
				return true
			}
			g.Keep, g.Resume = at, nested+end
			return err == nil && g.Resume < start+size && g.Resume >= len(b)
		}
		start, isArray = nested, kind == Array
	}
	return false
}

// lastElement walks the document at start to the element that is cut. It returns where the element begins, or where one would begin; where
// its value begins, 0 when its kind, key or length are not all there; and its kind. at is -1 when the document is malformed.
func lastElement(b []byte, start int) (at, value int, kind Kind) {
	at = start + 4
	for at < len(b) {
		kind = Kind(b[at])
		end := at + 1
		for end < len(b) && b[end] != 0 {
			end++
		}
		if end >= len(b) {
			return at, 0, kind
		}
		size, err := ValueBytes(kind, b[end+1:])
		if err == ErrShort {
			return at, 0, kind
		}
		if err != nil {
			return -1, 0, kind
		}
		if end+1+size > len(b) {
			return at, end + 1, kind
		}
		at = end + 1 + size
	}
	return at, 0, 0
}

// Shorten takes the bytes that a gap leaves out from the lengths in b, where the document begins at offset.
func (g *Gap) Shorten(b []byte, offset int) {
	for _, at := range g.Lengths[:g.Depth] {
		n := b[offset+at:]
		binary.LittleEndian.PutUint32(n, binary.LittleEndian.Uint32(n)-uint32(g.Resume-g.Keep))
	}
}
