package extent

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"
	"unsafe"

	"tidemark/model"
	"tidemark/storage/dbengine/page"
)

// Directory is the parsed directory of one extent, with or without its payload. It may be used by several goroutines.
type Directory struct {
	id   Identity
	head header
	seed uint32
	rows []row
	// timesAt and timesSize locate the distinct time columns in the payload.
	timesAt, timesSize []uint64
	sums               []byte // 4 bytes a page

	// stored is the payload as it stands in the extent; nil if only the head was parsed.
	stored []byte
	// inflate guards payload, which is made at the first use.
	inflate sync.Once
	payload []byte
	err     error
}

// row is one page in the directory.
type row struct {
	item     model.ItemID
	from, to int64
	// at is where the values start in the payload.
	at, size, count, times uint32
	valueType              model.ValueType
	kind                   uint8
}

// Parse reads the extent that b holds in full, and checks its header and directory. The pages' bytes are checked by
// Page. b must not change as long as the directory or a page of it is in use.
func Parse(b []byte, id Identity) (*Directory, error) {
	d, err := ParseHead(b, id)
	if err != nil {
		return nil, err
	}
	if len(b) != d.head.total() {
		return nil, fmt.Errorf("%v: %w: %d bytes, expected %d", id, ErrExtent, len(b), d.head.total())
	}
	body := HeaderBytes + int(d.head.directory)
	d.stored = b[body : body+int(d.head.stored)]
	return d, nil
}

// ParseHead is Parse for a reader that has only the first HeadBytes of the extent (b may be longer). Page fails on such
// a directory; PageFrom takes the bytes that Span names.
func ParseHead(b []byte, id Identity) (*Directory, error) {
	d := &Directory{id: id, seed: id.seed()}
	if err := d.head.get(b); err != nil {
		return nil, fmt.Errorf("%v: %w", id, err)
	}
	if d.head.id != id {
		return nil, fmt.Errorf("%v: %w: found %v in its place", id, ErrExtent, d.head.id)
	}
	end := HeaderBytes + int(d.head.directory)
	if len(b) < end {
		return nil, fmt.Errorf("%v: %w: %d bytes, expected a directory up to %d", id, ErrExtent, len(b), end)
	}
	sum := crc32.Update(d.seed, castagnoli, b[:44])
	if crc32.Update(sum, castagnoli, b[HeaderBytes:end]) != d.head.sum {
		return nil, fmt.Errorf("%v: %w: the directory's checksum does not match", id, ErrExtent)
	}
	if err := d.readRows(b[HeaderBytes:end]); err != nil {
		return nil, fmt.Errorf("%v: %w: directory: %w", id, ErrExtent, err)
	}
	return d, nil
}

// Verify reads the extent that b holds in full and checks every byte of it: header, directory, every page, trailer.
func Verify(b []byte, id Identity) error {
	d, err := Parse(b, id)
	if err != nil {
		return err
	}
	body := len(b) - TrailerBytes
	if crc32.Update(d.seed, castagnoli, b[:body]) != binary.LittleEndian.Uint32(b[body:]) {
		return fmt.Errorf("%v: %w: the checksum at its end does not match", id, ErrExtent)
	}
	for i := range d.rows {
		if _, err := d.Page(i); err != nil {
			return err
		}
	}
	return nil
}

// columns reads the directory's columns one after the other.
type columns struct {
	rest []byte
	v    []uint64
	err  error
}

// next returns the next column of n values, valid until the following call.
func (c *columns) next(name string, n int) []uint64 {
	if c.err != nil {
		return make([]uint64, n)
	}
	size, k := binary.Uvarint(c.rest)
	if k <= 0 || size > uint64(len(c.rest)-k) {
		c.err = fmt.Errorf("%s: the column is longer than the directory", name)
		return make([]uint64, n)
	}
	b := c.rest[k : k+int(size)]
	c.rest = c.rest[k+int(size):]
	if c.v, c.err = page.DecodeUints(c.v[:0], b, n); c.err != nil {
		c.err = fmt.Errorf("%s: %w", name, c.err)
		return make([]uint64, n)
	}
	return c.v
}

// readRows reads the directory and checks that its sizes add up to the payload.
func (d *Directory) readRows(b []byte) error {
	n := int(d.head.pages)
	distinct, k := binary.Uvarint(b)
	if k <= 0 || distinct == 0 || distinct > uint64(n) {
		return fmt.Errorf("%d time columns for %d pages", distinct, n)
	}
	c := columns{rest: b[k:]}
	d.rows = make([]row, n)
	for i, v := range c.next("items", n) {
		d.rows[i].item = model.ItemID(v)
	}
	for i, v := range c.next("types", n) {
		d.rows[i].valueType = model.ValueType(v)
		if v > 0xFF {
			return fmt.Errorf("page %d has type %d", i, v)
		}
	}
	for i, v := range c.next("kinds", n) {
		d.rows[i].kind = uint8(v)
		if v > 0xFF {
			return fmt.Errorf("page %d has kind %d", i, v)
		}
	}
	for i, v := range c.next("from", n) {
		d.rows[i].from = int64(v)
	}
	for i, v := range c.next("durations", n) {
		d.rows[i].to = d.rows[i].from + int64(v)
		if d.rows[i].to < d.rows[i].from {
			return fmt.Errorf("page %d ends before it starts", i)
		}
	}
	for i, v := range c.next("counts", n) {
		d.rows[i].count = uint32(v)
		if c.err == nil && (v == 0 || v > page.MaxValues) {
			return fmt.Errorf("page %d has %d values, expected 1 to %d", i, v, page.MaxValues)
		}
	}
	return d.readSizes(&c, int(distinct))
}

// readSizes reads the columns that locate the pages in the payload.
func (d *Directory) readSizes(c *columns, distinct int) error {
	n := len(d.rows)
	sizes := append([]uint64(nil), c.next("value sizes", n)...)
	for i, v := range c.next("time columns", n) {
		if v >= uint64(distinct) {
			return fmt.Errorf("page %d uses time column %d of %d", i, v, distinct)
		}
		d.rows[i].times = uint32(v)
	}
	d.timesSize = append([]uint64(nil), c.next("time sizes", distinct)...)
	if c.err != nil {
		return c.err
	}
	d.timesAt = make([]uint64, distinct)
	at, limit := uint64(0), uint64(d.head.payload)
	for i, size := range d.timesSize {
		if size > limit-at {
			return fmt.Errorf("time column %d reaches past the payload", i)
		}
		d.timesAt[i] = at
		at += size
	}
	for i, size := range sizes {
		if size > limit-at {
			return fmt.Errorf("page %d reaches past the payload", i)
		}
		d.rows[i].at, d.rows[i].size = uint32(at), uint32(size)
		at += size
	}
	if at != limit {
		return fmt.Errorf("the pages take %d bytes of a payload of %d", at, limit)
	}
	if len(c.rest) != 4*n {
		return fmt.Errorf("%d bytes of checksums for %d pages", len(c.rest), n)
	}
	d.sums = append([]byte(nil), c.rest...)
	return nil
}

// Identity returns the extent's identity.
func (d *Directory) Identity() Identity { return d.id }

// Codec returns how the payload is stored.
func (d *Directory) Codec() Codec { return d.head.codec }

// PayloadBytes returns the size of the payload before compression, and as stored.
func (d *Directory) PayloadBytes() (plain, stored int) {
	return int(d.head.payload), int(d.head.stored)
}

// Len returns the number of pages.
func (d *Directory) Len() int { return len(d.rows) }

// Row returns what the directory says of page i, without its columns and without looking at the payload.
func (d *Directory) Row(i int) Page {
	r := &d.rows[i]
	return Page{Item: r.item, Type: r.valueType, From: r.from, To: r.to, Count: int(r.count), Kind: r.kind}
}

// HeldBytes is what the directory takes in memory, and the extent if it was read as a whole and a page of it was asked for.
func (d *Directory) HeldBytes() int {
	size := 256 + cap(d.rows)*int(unsafe.Sizeof(row{})) + 8*(cap(d.timesAt)+cap(d.timesSize)) + cap(d.sums)
	if d.stored != nil {
		size += held(d.head.total())
		if d.head.codec != None {
			size += held(cap(d.payload))
		}
	}
	return size
}

// held is what bytes take of the heap: large ones whole pages of it, others up to an eighth more.
func held(n int) int {
	const heapPage = 8 << 10
	if n > 32<<10 {
		return (n + heapPage - 1) / heapPage * heapPage
	}
	return n + n/16
}

// Page returns page i after checking its checksum. Its columns alias the bytes given to Parse when the codec is None.
func (d *Directory) Page(i int) (Page, error) {
	d.inflate.Do(func() {
		if d.stored == nil && d.head.stored > 0 {
			d.err = fmt.Errorf("%v: only its directory was read", d.id)
			return
		}
		if d.payload, d.err = inflate(d.head.codec, d.stored, int(d.head.payload)); d.err != nil {
			d.err = fmt.Errorf("%v: %w: payload: %w", d.id, ErrExtent, d.err)
		}
	})
	if d.err != nil {
		return Page{}, d.err
	}
	r := &d.rows[i]
	at, size := d.timesAt[r.times], d.timesSize[r.times]
	return d.PageFrom(i, d.payload[at:at+size:at+size], d.payload[r.at:r.at+r.size:r.at+r.size])
}

// Span says where the two columns of page i stand, as offsets from the start of the extent, when the codec is None.
func (d *Directory) Span(i int) (timesAt, timesSize, valuesAt, valuesSize int) {
	r := &d.rows[i]
	body := HeaderBytes + int(d.head.directory)
	return body + int(d.timesAt[r.times]), int(d.timesSize[r.times]), body + int(r.at), int(r.size)
}

// PageFrom is Page for a reader that fetched the columns of page i itself. It checks their checksum.
func (d *Directory) PageFrom(i int, times, values []byte) (Page, error) {
	p := d.Row(i)
	p.Times, p.Values = times, values
	if pageSum(d.seed, &p) != binary.LittleEndian.Uint32(d.sums[4*i:]) {
		return Page{}, fmt.Errorf("%v: %w: page %d (item %d): its checksum does not match", d.id, ErrExtent, i, p.Item)
	}
	return p, nil
}
