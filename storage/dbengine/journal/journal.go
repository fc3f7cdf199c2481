// Package journal is the record of a datafile's extents: which pages of which items they hold.
//
//	journalfile-1-0000000001.njf, open:    header 64 B | record | record | …     one record an extent
//	                              closed:  header 64 B | extents | block | … | block index | footer 256 B
//
// While the datafile grows, a record is added for each extent. When the pair is closed the journalfile is written anew as an
// index sorted by item. Either form can be made again from the datafile. format/journalfile.md documents every byte.
package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/page"
)

const (
	// MaxPages bounds the pages of one extent in a journal.
	MaxPages = 1 << 12
	// MaxBytes bounds a journalfile.
	MaxBytes = 1 << 30

	recordHeaderBytes = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrJournal is wrapped by all errors about damaged bytes.
var ErrJournal = errors.New("damaged journal")

// Page is one page in the journal; its slot in the extent is its place in Extent.Pages.
type Page struct {
	Item     model.ItemID
	Type     model.ValueType
	Kind     uint8
	From, To int64
	Count    uint32
	// LSN is how far the log was when the page was sealed: it holds all of the item's values up to there that no
	// other page holds.
	LSN model.LSN
}

// Extent is one extent of the datafile.
type Extent struct {
	Offset   int64
	Length   uint32
	Sequence uint64
	Pages    []Page
}

// Contents are what a journalfile says.
type Contents struct {
	Closed  bool
	Extents []Extent
	// Valid is the length of the part that could be read; a shorter one than the file's is not yet an error for an open
	// journalfile, whose last record a power cut may have torn.
	Valid int64
	// Damage says what could not be read; nil if everything was.
	Damage error
}

// Header returns the first bytes of a journalfile.
func Header(id datafile.ID, closed bool) []byte {
	h := header.Header{Magic: header.Journalfile, Generation: id.Generation, Number: id.Number}
	if closed {
		h.Compatible = header.Closed
	}
	return h.Append(nil)
}

// seed is the start of every checksum: the file's identity and the place in it.
func seed(id datafile.ID, offset int64) uint32 {
	var b [16]byte
	binary.LittleEndian.PutUint32(b[0:], id.Generation)
	binary.LittleEndian.PutUint32(b[4:], id.Number)
	binary.LittleEndian.PutUint64(b[8:], uint64(offset))
	return crc32.Update(0, castagnoli, b[:])
}

// AppendRecord appends the record of an extent, which will stand at offset in the journalfile.
func AppendRecord(dst []byte, id datafile.ID, offset int64, e *Extent) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, recordHeaderBytes)...)
	dst = binary.AppendUvarint(dst, uint64(e.Offset))
	dst = binary.AppendUvarint(dst, uint64(e.Length))
	dst = binary.AppendUvarint(dst, e.Sequence)
	dst = binary.AppendUvarint(dst, uint64(len(e.Pages)))
	dst = appendPages(dst, e.Pages)
	return seal(dst, start, seed(id, offset))
}

// seal fills in the checksum and length of what starts at start with room for them.
func seal(dst []byte, start int, sum uint32) []byte {
	binary.LittleEndian.PutUint32(dst[start+4:], uint32(len(dst)-start-recordHeaderBytes))
	binary.LittleEndian.PutUint32(dst[start:], crc32.Update(sum, castagnoli, dst[start+4:]))
	return dst
}

// unseal returns the sealed bytes at the start of b, and their length with the header.
func unseal(b []byte, sum uint32) ([]byte, int, error) {
	if len(b) < recordHeaderBytes {
		return nil, 0, fmt.Errorf("%w: %d bytes, expected a record", ErrJournal, len(b))
	}
	size := int64(binary.LittleEndian.Uint32(b[4:]))
	if size > int64(len(b)-recordHeaderBytes) {
		return nil, 0, fmt.Errorf("%w: a record of %d bytes in %d", ErrJournal, size, len(b))
	}
	whole := b[:recordHeaderBytes+size]
	if crc32.Update(sum, castagnoli, whole[4:]) != binary.LittleEndian.Uint32(whole) {
		return nil, 0, fmt.Errorf("%w: a record's checksum does not match", ErrJournal)
	}
	return whole[recordHeaderBytes:], len(whole), nil
}

// columns of a list of pages, in the order in which they are stored.
var columns = []struct {
	name string
	get  func(*Page) uint64
	set  func(*Page, uint64)
}{
	{"items", func(p *Page) uint64 { return uint64(p.Item) }, func(p *Page, v uint64) { p.Item = model.ItemID(v) }},
	{"types", func(p *Page) uint64 { return uint64(p.Type) }, func(p *Page, v uint64) { p.Type = model.ValueType(v) }},
	{"kinds", func(p *Page) uint64 { return uint64(p.Kind) }, func(p *Page, v uint64) { p.Kind = uint8(v) }},
	{"from", func(p *Page) uint64 { return uint64(p.From) }, func(p *Page, v uint64) { p.From = int64(v) }},
	{
		"durations",
		func(p *Page) uint64 { return uint64(p.To) - uint64(p.From) },
		func(p *Page, v uint64) { p.To = p.From + int64(v) },
	},
	{"counts", func(p *Page) uint64 { return uint64(p.Count) }, func(p *Page, v uint64) { p.Count = uint32(v) }},
	{"lsn", func(p *Page) uint64 { return uint64(p.LSN) }, func(p *Page, v uint64) { p.LSN = model.LSN(v) }},
}

func appendPages(dst []byte, pages []Page) []byte {
	v := make([]uint64, len(pages))
	for _, c := range columns {
		for i := range pages {
			v[i] = c.get(&pages[i])
		}
		dst = appendColumn(dst, v)
	}
	return dst
}

// appendColumn appends a column behind its length.
func appendColumn(dst []byte, v []uint64) []byte {
	b := page.AppendUints(nil, v)
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// column reads a column of n numbers and returns the rest.
func column(b []byte, name string, n int) ([]uint64, []byte, error) {
	size, k := binary.Uvarint(b)
	if k <= 0 || size > uint64(len(b)-k) {
		return nil, nil, fmt.Errorf("%w: %s: the column is longer than its record", ErrJournal, name)
	}
	v, err := page.DecodeUints(make([]uint64, 0, n), b[k:k+int(size)], n)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %s: %w", ErrJournal, name, err)
	}
	return v, b[k+int(size):], nil
}

// readPages reads n pages from the start of b and returns the rest.
func readPages(b []byte, n int) ([]Page, []byte, error) {
	pages := make([]Page, n)
	for _, c := range columns {
		v, rest, err := column(b, c.name, n)
		if err != nil {
			return nil, nil, err
		}
		for i := range pages {
			c.set(&pages[i], v[i])
		}
		b = rest
	}
	for i := range pages {
		if pages[i].To < pages[i].From || pages[i].Count == 0 {
			return nil, nil, fmt.Errorf("%w: page %d is from %d to %d with %d values", ErrJournal, i, pages[i].From, pages[i].To, pages[i].Count)
		}
	}
	return pages, b, nil
}

// readRecord reads the payload of an extent's record.
func readRecord(b []byte) (Extent, error) {
	var e Extent
	var v [4]uint64
	for i := range v {
		x, k := binary.Uvarint(b)
		if k <= 0 {
			return e, fmt.Errorf("%w: an extent's record is cut off", ErrJournal)
		}
		v[i], b = x, b[k:]
	}
	if v[0] > datafile.MaxBytes || v[1] > datafile.MaxBytes || v[3] > MaxPages {
		return e, fmt.Errorf("%w: extent of %d bytes at %d with %d pages", ErrJournal, v[1], v[0], v[3])
	}
	e.Offset, e.Length, e.Sequence = int64(v[0]), uint32(v[1]), v[2]
	pages, rest, err := readPages(b, int(v[3]))
	if err != nil {
		return e, err
	}
	if len(rest) != 0 {
		return e, fmt.Errorf("%w: %d bytes behind an extent's pages", ErrJournal, len(rest))
	}
	e.Pages = pages
	return e, nil
}

// Read reads a journalfile. An error means that the file as a whole is none of this program's; damage inside is told in Contents.
func Read(b []byte, id datafile.ID) (*Contents, error) {
	h, err := header.Decode(b, header.Journalfile)
	if err != nil {
		return nil, err
	}
	if h.Generation != id.Generation || h.Number != id.Number {
		return nil, fmt.Errorf("%w: it belongs to generation %d, number %d", header.ErrHeader, h.Generation, h.Number)
	}
	if h.Compatible&header.Closed != 0 {
		return readClosed(b, id), nil
	}
	c := &Contents{Valid: header.Bytes}
	for c.Valid < int64(len(b)) {
		payload, n, err := unseal(b[c.Valid:], seed(id, c.Valid))
		if err != nil {
			c.Damage = err
			break
		}
		e, err := readRecord(payload)
		if err != nil {
			c.Damage = err
			break
		}
		c.Extents = append(c.Extents, e)
		c.Valid += int64(n)
	}
	return c, nil
}

func checksum(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }
