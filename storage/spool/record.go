package spool

import (
	"encoding/binary"
	"fmt"
	"math"

	"tidemark/model"
)

// Record is what one Append keeps: rows with the retention class of each, and marks. The completions of Batch are not kept.
type Record struct {
	Batch *model.Batch
	// Classes has one element for each row.
	Classes []uint8
}

const (
	// rowBytes is what a row takes besides its arena: item, time, type, flags, class, payload length or bits.
	rowBytes = 8 + 8 + 1 + 1 + 1 + 8
	// payloadHeaderBytes is rows, marks, arrival time.
	payloadHeaderBytes = 4 + 4 + 8
	// maxPayloadBytes bounds one record, and so what a reader allocates.
	maxPayloadBytes = 32 << 20
	// splitBytes is where Append starts another record.
	splitBytes = 8 << 20
	maxMark    = math.MaxUint8
)

// Encode calls fn for each piece of r as one record would hold it, none above 32 MiB; the marks are in the last one. A piece is valid during the call.
func Encode(r Record, fn func([]byte) error) error {
	var buffer []byte
	rows := r.Batch.Len()
	for from := 0; ; {
		to := pieceEnd(r.Batch, from)
		buffer = appendPayload(buffer[:0], r, from, to, to == rows)
		if len(buffer) > maxPayloadBytes {
			return fmt.Errorf("a record of %d bytes, expected at most %d", len(buffer), maxPayloadBytes)
		}
		if err := fn(buffer); err != nil {
			return err
		}
		if from = to; to == rows {
			return nil
		}
	}
}

// pieceEnd is the row behind the last one of a record that begins with row from.
func pieceEnd(b *model.Batch, from int) int {
	to, size := from, payloadHeaderBytes
	for to < b.Len() && (to == from || size < splitBytes) {
		size += rowSize(b, to)
		to++
	}
	return to
}

// Decode reads a piece that Encode made.
func Decode(p []byte) (Record, error) { return decodePayload(p) }

// appendPayload encodes rows [from,to) of r, and its marks if they are wanted.
//
// The form, little-endian: rows uint32, marks uint32, arrival int64; for each row item uint64, at int64, type, flags and class as one
// byte each, bits uint64 (for a payload in the arena its length); then the arena payloads one after the other; for each mark
// at int64, and key and value, each behind one byte of length.
func appendPayload(dst []byte, r Record, from, to int, marks bool) []byte {
	b := r.Batch
	count := 0
	if marks {
		count = len(b.Marks)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(to-from))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(count))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(b.ArrivedAt))
	for i := from; i < to; i++ {
		bits := b.Bits[i]
		if b.Types[i].InArena() {
			bits &= math.MaxUint32
		}
		dst = binary.LittleEndian.AppendUint64(dst, uint64(b.Items[i]))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(b.At[i]))
		dst = append(dst, byte(b.Types[i]), byte(b.Flags[i]), r.Classes[i])
		dst = binary.LittleEndian.AppendUint64(dst, bits)
	}
	for i := from; i < to; i++ {
		if b.Types[i].InArena() {
			dst = append(dst, b.Bytes(i)...)
		}
	}
	for _, m := range b.Marks[:count] {
		key, value := m.Key[:min(len(m.Key), maxMark)], m.Value[:min(len(m.Value), maxMark)]
		dst = binary.LittleEndian.AppendUint64(dst, uint64(m.At))
		dst = append(dst, byte(len(key)))
		dst = append(dst, key...)
		dst = append(dst, byte(len(value)))
		dst = append(dst, value...)
	}
	return dst
}

// rowSize is what row i adds to a payload.
func rowSize(b *model.Batch, i int) int {
	if b.Types[i].InArena() {
		return rowBytes + int(b.Bits[i]&math.MaxUint32)
	}
	return rowBytes
}

// decodePayload reads what appendPayload wrote.
func decodePayload(p []byte) (Record, error) {
	if len(p) < payloadHeaderBytes {
		return Record{}, fmt.Errorf("record of %d bytes, expected at least %d", len(p), payloadHeaderBytes)
	}
	rows, marks := int(binary.LittleEndian.Uint32(p)), int(binary.LittleEndian.Uint32(p[4:]))
	b := &model.Batch{ArrivedAt: int64(binary.LittleEndian.Uint64(p[8:]))}
	p = p[payloadHeaderBytes:]
	if rows > len(p)/rowBytes {
		return Record{}, fmt.Errorf("%d rows, expected at most the %d that fit", rows, len(p)/rowBytes)
	}
	r := Record{Batch: b, Classes: make([]uint8, rows)}
	arena := p[rows*rowBytes:]
	for i := range rows {
		row := p[i*rowBytes:]
		t, bits := model.ValueType(row[16]), binary.LittleEndian.Uint64(row[19:])
		if t > model.Binary {
			return Record{}, fmt.Errorf("row %d has type %d, expected at most %d", i, t, model.Binary)
		}
		item, at := model.ItemID(binary.LittleEndian.Uint64(row)), int64(binary.LittleEndian.Uint64(row[8:]))
		if t.InArena() {
			if bits > uint64(len(arena)) {
				return Record{}, fmt.Errorf("row %d has %d bytes, expected at most the %d that are left", i, bits, len(arena))
			}
			b.AppendBytes(item, at, t, arena[:bits])
			arena = arena[bits:]
		} else {
			b.Append(item, at, t, bits)
		}
		b.Flags[i] = model.Flag(row[17])
		r.Classes[i] = row[18]
	}
	return r, decodeMarks(b, arena, marks)
}

func decodeMarks(b *model.Batch, p []byte, count int) error {
	text := func() (string, bool) {
		if len(p) == 0 || len(p) < 1+int(p[0]) {
			return "", false
		}
		n := 1 + int(p[0])
		s := string(p[1:n])
		p = p[n:]
		return s, true
	}
	for i := range count {
		if len(p) < 8 {
			return fmt.Errorf("mark %d: %d bytes are left, expected more", i, len(p))
		}
		m := model.Mark{At: int64(binary.LittleEndian.Uint64(p))}
		p = p[8:]
		var ok, ok2 bool
		m.Key, ok = text()
		m.Value, ok2 = text()
		if !ok || !ok2 {
			return fmt.Errorf("mark %d: its key or value is cut", i)
		}
		b.Marks = append(b.Marks, m)
	}
	if len(p) != 0 {
		return fmt.Errorf("%d bytes behind the last mark, expected none", len(p))
	}
	return nil
}
