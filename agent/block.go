package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"tidemark/agent/key"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// A segment file holds rows that the server has not taken, as blocks one after another:
//
//	file    "TIDEROW1"  8 bytes
//	block   payload bytes  uint32   little-endian, as all below
//	        row count      uint32
//	        first id       uint64   the ids of a block are consecutive
//	        checksum       uint32   CRC-32C of the 16 bytes above and the payload
//	        payload
//	payload item count     uvarint  items that are new in this file; they get the next numbers, from zero
//	        items          key, server's id (uvarint), 0 or 1 for a declaration; then type (1 byte), units, name,
//	                       interval in ms (uvarint), label count (uvarint), names and values
//	        rows           item number (uvarint), time minus the row's before (varint, ns), kind (1 byte), value
//
// A text is its length (uvarint) and its bytes. The kind is 0 for a float (8 bytes), 1 for an unsigned integer
// (uvarint), 2 for text; 0x80 is added for an unsupported item.
const (
	segmentMagic     = "TIDEROW1"
	blockHeaderBytes = 20
	// maxPayloadBytes bounds a block on reading; one is written with at most maxBlockRows rows and, beyond the first
	// row, half of this.
	maxPayloadBytes = 16 << 20
	maxBlockRows    = 4096
)

// The kinds of values in a row.
const (
	kindFloat       = 0
	kindUint        = 1
	kindText        = 2
	kindUnsupported = 0x80
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errBlock is the kind of all errors of blocks.
var errBlock = errors.New("damaged block")

// blockWriter encodes blocks of one segment; it knows which items the segment has.
type blockWriter struct {
	numbers map[*item]uint64
	rows    []byte
	items   []byte
}

// encode appends a block with as many of rows as fit to dst, and returns how many those are.
func (w *blockWriter) encode(dst []byte, rows []row) ([]byte, int) {
	w.items, w.rows = w.items[:0], w.rows[:0]
	newItems, count := 0, 0
	last := int64(0)
	for i := range rows {
		r := &rows[i]
		if count == maxBlockRows || count > 0 && len(w.items)+len(w.rows)+len(r.value.Text) > maxPayloadBytes/2 {
			break
		}
		number, ok := w.numbers[r.item]
		if !ok {
			number = uint64(len(w.numbers))
			w.numbers[r.item] = number
			w.items = appendItem(w.items, r.item)
			newItems++
		}
		w.rows = binary.AppendUvarint(w.rows, number)
		w.rows = binary.AppendVarint(w.rows, r.at-last)
		w.rows = appendValue(w.rows, r)
		last = r.at
		count++
	}
	start := len(dst)
	dst = append(dst, make([]byte, blockHeaderBytes)...)
	dst = binary.AppendUvarint(dst, uint64(newItems))
	dst = append(dst, w.items...)
	dst = append(dst, w.rows...)
	head := dst[start : start+blockHeaderBytes]
	binary.LittleEndian.PutUint32(head, uint32(len(dst)-start-blockHeaderBytes))
	binary.LittleEndian.PutUint32(head[4:], uint32(count))
	binary.LittleEndian.PutUint64(head[8:], rows[0].id)
	sum := crc32.Update(crc32.Checksum(head[:16], castagnoli), castagnoli, dst[start+blockHeaderBytes:])
	binary.LittleEndian.PutUint32(head[16:], sum)
	return dst, count
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendItem(dst []byte, it *item) []byte {
	dst = appendText(dst, it.key)
	dst = binary.AppendUvarint(dst, it.id)
	d := it.declaration
	if d == nil {
		return append(dst, 0)
	}
	dst = append(dst, 1, byte(d.Type))
	dst = appendText(dst, d.Units)
	dst = appendText(dst, d.Name)
	dst = binary.AppendUvarint(dst, uint64(d.Interval.Milliseconds()))
	dst = binary.AppendUvarint(dst, uint64(len(d.Labels)))
	for _, l := range d.Labels {
		dst = appendText(appendText(dst, l.Name), l.Value)
	}
	return dst
}

func appendValue(dst []byte, r *row) []byte {
	kind := byte(0)
	if r.unsupported {
		kind = kindUnsupported
	}
	switch r.value.Type {
	case model.Float:
		return binary.LittleEndian.AppendUint64(append(dst, kind|kindFloat), r.value.Bits)
	case model.Uint:
		return binary.AppendUvarint(append(dst, kind|kindUint), r.value.Bits)
	}
	return appendText(append(dst, kind|kindText), r.value.Text)
}

// blockHead is the decoded head of a block.
type blockHead struct {
	payloadBytes, count int
	firstID             uint64
	sum                 uint32
}

func decodeBlockHead(b []byte) (h blockHead, err error) {
	if len(b) < blockHeaderBytes {
		return h, fmt.Errorf("%w: the head has %d bytes of %d", errBlock, len(b), blockHeaderBytes)
	}
	payload, count := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if payload > maxPayloadBytes || count > maxBlockRows || count == 0 {
		return h, fmt.Errorf("%w: %d bytes, %d rows; at most %d and from 1 to %d are possible",
			errBlock, payload, count, maxPayloadBytes, maxBlockRows)
	}
	h = blockHead{int(payload), int(count), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint32(b[16:])}
	if h.firstID == 0 || h.firstID > math.MaxInt64 {
		return h, fmt.Errorf("%w: first id %d; expected 1 or more", errBlock, h.firstID)
	}
	return h, nil
}

// check compares the checksum; b is the head and the payload.
func (h blockHead) check(b []byte) error {
	sum := crc32.Update(crc32.Checksum(b[:16], castagnoli), castagnoli, b[blockHeaderBytes:])
	if sum != h.sum {
		return fmt.Errorf("%w: checksum %08x; expected %08x", errBlock, sum, h.sum)
	}
	return nil
}

// blockReader decodes blocks of one segment in their order.
type blockReader struct {
	items []*item
}

// decode appends the rows of a payload to dst. Texts are copied.
func (r *blockReader) decode(dst []row, h blockHead, payload []byte) ([]row, error) {
	p := payloadParser{b: payload}
	for range p.count(len(payload)) {
		it := p.item()
		if p.failed {
			break
		}
		r.items = append(r.items, it)
	}
	last := int64(0)
	for i := range h.count {
		number, delta := p.uvarint(), p.varint()
		if p.failed || number >= uint64(len(r.items)) {
			return dst, fmt.Errorf("%w: row %d of %d cannot be read", errBlock, i, h.count)
		}
		last += delta
		next := row{id: h.firstID + uint64(i), at: last, item: r.items[number]}
		next.value, next.unsupported = p.value()
		if p.failed {
			return dst, fmt.Errorf("%w: value %d of %d cannot be read", errBlock, i, h.count)
		}
		dst = append(dst, next)
	}
	return dst, nil
}

// payloadParser reads the parts of a payload. After the first part that is not there failed is set and all else is
// zero.
type payloadParser struct {
	b      []byte
	failed bool
}

func (p *payloadParser) uvarint() uint64 {
	v, n := binary.Uvarint(p.b)
	if n <= 0 {
		p.failed, p.b = true, nil
		return 0
	}
	p.b = p.b[n:]
	return v
}

func (p *payloadParser) varint() int64 {
	v, n := binary.Varint(p.b)
	if n <= 0 {
		p.failed, p.b = true, nil
		return 0
	}
	p.b = p.b[n:]
	return v
}

// count reads a number of parts, each of which takes a byte at least.
func (p *payloadParser) count(limit int) int {
	v := p.uvarint()
	if v > uint64(min(limit, len(p.b))) {
		p.failed, p.b = true, nil
		return 0
	}
	return int(v)
}

func (p *payloadParser) bytes(n uint64) []byte {
	if n > uint64(len(p.b)) {
		p.failed, p.b = true, nil
		return nil
	}
	v := p.b[:n]
	p.b = p.b[n:]
	return v
}

func (p *payloadParser) byte() byte {
	if b := p.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (p *payloadParser) text() string { return string(p.bytes(p.uvarint())) }

func (p *payloadParser) item() *item {
	it := &item{key: p.text(), id: p.uvarint()}
	switch p.byte() {
	case 0:
		return it
	case 1:
	default:
		p.failed = true
		return it
	}
	d := &zbx.Declaration{Key: it.key, Type: model.ValueType(p.byte()), Units: p.text(), Name: p.text()}
	d.Interval = time.Duration(min(p.uvarint(), 1<<40)) * time.Millisecond
	for range p.count(zbx.MaxLabels) {
		d.Labels = append(d.Labels, model.Label{Name: p.text(), Value: p.text()})
	}
	it.declaration = d
	return it
}

func (p *payloadParser) value() (v key.Value, unsupported bool) {
	kind := p.byte()
	unsupported = kind&kindUnsupported != 0
	switch kind &^ kindUnsupported {
	case kindFloat:
		if b := p.bytes(8); len(b) == 8 {
			v = key.Value{Type: model.Float, Bits: binary.LittleEndian.Uint64(b)}
		}
	case kindUint:
		v = key.Uint(p.uvarint())
	case kindText:
		v = key.Text(p.text())
	default:
		p.failed = true
	}
	return v, unsupported
}
