package page

import (
	"encoding/binary"
	"slices"

	"tidemark/model"
	"tidemark/storage/dbengine/page/zframe"
)

// The flags in the first byte of a column of texts.
const (
	blobZstd   = 1 << 0 // the texts are one Zstandard frame
	blobUnique = 1 << 1 // no text is repeated, so there is no index

	// minFrame is the size below which a frame's own header eats what it saves.
	minFrame = 128
	// frameLevel is the Zstandard level for texts.
	frameLevel = 3
)

// AppendBlobs appends the column of the texts that spans (model.Span) name in arena to dst. Equal texts are stored
// once. It panics if there are more than MaxValues, or a span reaches past the arena.
func AppendBlobs(dst, arena []byte, spans []uint64) []byte {
	mustCount(len(spans))
	if len(spans) == 0 {
		return dst
	}
	c := coders.Get().(*coder)
	defer coders.Put(c)
	c.lines, c.dense = false, false
	index, lengths := make([]uint64, len(spans)), make([]uint64, 0, len(spans))
	seen := make(map[string]uint64, len(spans))
	var texts []byte
	for i, span := range spans {
		p := model.SpanBytes(arena, span)
		if i > 0 && span == spans[i-1] {
			index[i] = index[i-1]
			continue
		}
		k, ok := seen[string(p)]
		if !ok {
			k = uint64(len(lengths))
			seen[string(p)] = k
			lengths = append(lengths, uint64(len(p)))
			texts = append(texts, p...)
		}
		index[i] = k
	}
	at := len(dst)
	dst = append(dst, 0)
	if len(lengths) == len(spans) {
		dst[at] |= blobUnique
	} else {
		dst = binary.AppendUvarint(dst, uint64(len(lengths)))
		dst = c.encodeSized(dst, index, rankUnit)
	}
	dst = c.encodeSized(dst, lengths, rankUnit)
	if len(texts) >= minFrame {
		mark := len(dst)
		framed, err := zframe.Append(dst, texts, frameLevel)
		if err == nil && len(framed)-mark <= len(texts)-len(texts)/16 {
			framed[at] |= blobZstd
			return framed
		}
		dst = dst[:mark]
	}
	return append(dst, texts...)
}

// DecodeBlobs appends the texts of the column b to arena, each distinct one once, and the n spans that name them to
// spans. What it allocates is bounded by n and the size that b declares, which is checked against the real one. On an error both
// are returned as they were.
func DecodeBlobs(spans []uint64, arena, b []byte, n int) ([]uint64, []byte, error) {
	if err := checkCount(b, n); err != nil || n == 0 {
		return spans, arena, err
	}
	if len(b) == 0 || b[0]&^(blobZstd|blobUnique) != 0 {
		return spans, arena, corrupt("no column of texts")
	}
	c := coders.Get().(*coder)
	defer coders.Put(c)
	out := slices.Grow(spans, n)[:len(spans)+n]
	index := out[len(spans):]
	flags, rest := b[0], b[1:]
	distinct := n
	var inner []byte
	var err error
	if flags&blobUnique == 0 {
		count, k := binary.Uvarint(rest)
		if k <= 0 || count == 0 || count > uint64(n) {
			return spans, arena, corrupt("%d different texts among %d", count, n)
		}
		distinct = int(count)
		if inner, rest, err = cut(rest[k:]); err != nil {
			return spans, arena, err
		}
		if err := c.decode(index, inner, rankUnit); err != nil {
			return spans, arena, err
		}
	} else {
		for i := range index {
			index[i] = uint64(i)
		}
	}
	if inner, rest, err = cut(rest); err != nil {
		return spans, arena, err
	}
	c.bits = resize(c.bits, distinct)
	if err := c.decode(c.bits, inner, rankUnit); err != nil {
		return spans, arena, err
	}
	texts, err := c.readTexts(arena, rest, flags)
	if err != nil {
		return spans, arena, err
	}
	for i, k := range index {
		if k >= uint64(distinct) {
			return spans, arena, corrupt("text %d of %d different ones", k, distinct)
		}
		index[i] = c.bits[k]
	}
	return out, texts, nil
}

// readTexts appends the texts, whose lengths are in c.bits, to arena and turns the lengths into spans.
func (c *coder) readTexts(arena, rest []byte, flags byte) ([]byte, error) {
	total := uint64(len(arena))
	for i, length := range c.bits {
		if length > model.MaxArenaBytes || total+length > model.MaxArenaBytes {
			return arena, corrupt("texts of more than %d bytes", model.MaxArenaBytes)
		}
		c.bits[i] = model.Span(int(total), int(length))
		total += length
	}
	size := int(total) - len(arena)
	if flags&blobZstd != 0 {
		texts, err := zframe.Read(arena, rest, size)
		if err != nil {
			return arena, corrupt("texts: %v", err)
		}
		return texts, nil
	}
	if len(rest) != size {
		return arena, corrupt("%d bytes of texts, expected %d", len(rest), size)
	}
	return append(arena, rest...), nil
}
