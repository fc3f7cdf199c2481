package journal

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/header"
)

const (
	// blockPages is how many pages a block of the index describes; about 16 KiB.
	blockPages = 1024
	// FooterBytes is the size of the fixed end of a closed journalfile.
	FooterBytes = 256
)

var footerMagic = [4]byte{'T', 'M', 'J', 'E'}

// located is a page with its place.
type located struct {
	Page
	extent, slot int
}

// AppendIndex appends a whole closed journalfile.
func AppendIndex(dst []byte, id datafile.ID, extents []Extent) []byte {
	base := len(dst)
	dst = append(dst, Header(id, true)...)
	pages := sorted(extents)
	at := func() int64 { return int64(len(dst) - base) }

	start := len(dst)
	dst = append(dst, make([]byte, recordHeaderBytes)...)
	dst = appendExtents(dst, extents)
	dst = seal(dst, start, seed(id, int64(start-base)))

	var firsts, offsets []uint64
	for i := 0; i < len(pages); i += blockPages {
		block := pages[i:min(i+blockPages, len(pages))]
		firsts = append(firsts, uint64(block[0].Item))
		offsets = append(offsets, uint64(at()))
		start := len(dst)
		dst = append(dst, make([]byte, recordHeaderBytes)...)
		dst = appendBlock(dst, block)
		dst = seal(dst, start, seed(id, int64(start-base)))
	}
	blocks := at()
	start = len(dst)
	dst = append(dst, make([]byte, recordHeaderBytes)...)
	if len(firsts) > 0 {
		dst = appendColumn(dst, firsts)
		dst = appendColumn(dst, offsets)
	}
	dst = seal(dst, start, seed(id, blocks))
	return appendFooter(dst, base, id, footer{
		extents: len(extents), pages: len(pages), blocks: len(firsts), blockIndex: blocks,
		summary: Summarize(extents),
	})
}

// sorted returns the pages by item, kind, and then in the order in which they were written.
func sorted(extents []Extent) []located {
	var pages []located
	for i := range extents {
		for slot, p := range extents[i].Pages {
			pages = append(pages, located{Page: p, extent: i, slot: slot})
		}
	}
	slices.SortStableFunc(pages, func(a, b located) int {
		return cmp.Or(cmp.Compare(a.Item, b.Item), cmp.Compare(a.Kind, b.Kind))
	})
	return pages
}

func appendExtents(dst []byte, extents []Extent) []byte {
	if len(extents) == 0 {
		return dst
	}
	v := make([]uint64, len(extents))
	for _, get := range []func(*Extent) uint64{
		func(e *Extent) uint64 { return uint64(e.Offset) },
		func(e *Extent) uint64 { return uint64(e.Length) },
		func(e *Extent) uint64 { return e.Sequence },
		func(e *Extent) uint64 { return uint64(len(e.Pages)) },
	} {
		for i := range extents {
			v[i] = get(&extents[i])
		}
		dst = appendColumn(dst, v)
	}
	return dst
}

func appendBlock(dst []byte, block []located) []byte {
	pages := make([]Page, len(block))
	v := make([]uint64, len(block))
	for i := range block {
		pages[i] = block[i].Page
		v[i] = uint64(block[i].extent)
	}
	dst = binary.AppendUvarint(dst, uint64(len(block)))
	dst = appendPages(dst, pages)
	dst = appendColumn(dst, v)
	for i := range block {
		v[i] = uint64(block[i].slot)
	}
	return appendColumn(dst, v)
}

// Summary bounds what a pair holds.
type Summary struct {
	// From and To bound the values' times; both zero without any.
	From, To int64
	// FirstItem and LastItem bound the ids.
	FirstItem, LastItem model.ItemID
	// Values counts values, not summaries.
	Values uint64
	LSN    model.LSN
}

// Summarize goes through all pages.
func Summarize(extents []Extent) Summary {
	s := Summary{From: math.MaxInt64, To: math.MinInt64, FirstItem: math.MaxUint64}
	pages := 0
	for i := range extents {
		for j := range extents[i].Pages {
			p := &extents[i].Pages[j]
			pages++
			s.FirstItem, s.LastItem = min(s.FirstItem, p.Item), max(s.LastItem, p.Item)
			s.LSN = max(s.LSN, p.LSN)
			s.From, s.To = min(s.From, p.From), max(s.To, p.To)
			if p.Kind <= 1 {
				s.Values += uint64(p.Count)
			}
		}
	}
	if pages == 0 {
		return Summary{}
	}
	return s
}

type footer struct {
	extents, pages, blocks int
	blockIndex             int64
	summary                Summary
}

func appendFooter(dst []byte, base int, id datafile.ID, f footer) []byte {
	start := len(dst)
	dst = append(dst, footerMagic[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(f.extents))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(f.pages))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(f.blocks))
	s := &f.summary
	for _, v := range []uint64{
		uint64(f.blockIndex), uint64(s.From), uint64(s.To), uint64(s.FirstItem), uint64(s.LastItem), s.Values, uint64(s.LSN),
	} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	dst = append(dst, make([]byte, start+FooterBytes-4-len(dst))...)
	sum := seed(id, int64(start-base))
	return binary.LittleEndian.AppendUint32(dst, checksum(sum, dst[start:]))
}

// readClosed reads a closed journalfile.
func readClosed(b []byte, id datafile.ID) *Contents {
	c := &Contents{Closed: true, Valid: header.Bytes}
	f, err := readFooter(b, id)
	if err != nil {
		c.Damage = err
		return c
	}
	if c.Extents, err = readExtents(b, id, f); err != nil {
		c.Damage, c.Extents = err, nil
		return c
	}
	c.Valid = int64(len(b))
	return c
}

func readFooter(b []byte, id datafile.ID) (footer, error) {
	var f footer
	at := len(b) - FooterBytes
	if at < header.Bytes {
		return f, fmt.Errorf("%w: %d bytes, too short for a closed journalfile", ErrJournal, len(b))
	}
	e := b[at:]
	if [4]byte(e[:4]) != footerMagic || checksum(seed(id, int64(at)), e[:FooterBytes-4]) != binary.LittleEndian.Uint32(e[FooterBytes-4:]) {
		return f, fmt.Errorf("%w: no intact footer at its end", ErrJournal)
	}
	f.extents = int(binary.LittleEndian.Uint32(e[4:]))
	f.pages = int(binary.LittleEndian.Uint32(e[8:]))
	f.blocks = int(binary.LittleEndian.Uint32(e[12:]))
	f.blockIndex = int64(binary.LittleEndian.Uint64(e[16:]))
	if f.extents > len(b) || f.pages > MaxBytes || f.blocks > f.pages || f.blockIndex < header.Bytes || f.blockIndex > int64(at) {
		return f, fmt.Errorf("%w: the footer's numbers do not fit the file", ErrJournal)
	}
	return f, nil
}

// readExtents reads the extents and fills them from the blocks.
func readExtents(b []byte, id datafile.ID, f footer) ([]Extent, error) {
	at := int64(header.Bytes)
	payload, n, err := unseal(b[at:], seed(id, at))
	if err != nil {
		return nil, err
	}
	extents, err := readExtentColumns(payload, f)
	if err != nil {
		return nil, err
	}
	at += int64(n)
	total := 0
	for at < f.blockIndex {
		payload, n, err := unseal(b[at:], seed(id, at))
		if err != nil {
			return nil, err
		}
		k, err := readBlock(payload, extents)
		if err != nil {
			return nil, err
		}
		total += k
		at += int64(n)
	}
	if total != f.pages {
		return nil, fmt.Errorf("%w: %d pages in the blocks, expected %d", ErrJournal, total, f.pages)
	}
	if _, n, err = unseal(b[f.blockIndex:], seed(id, f.blockIndex)); err != nil {
		return nil, err
	}
	if f.blockIndex+int64(n)+FooterBytes != int64(len(b)) {
		return nil, fmt.Errorf("%w: bytes between the block index and the footer", ErrJournal)
	}
	return extents, nil
}

func readExtentColumns(payload []byte, f footer) ([]Extent, error) {
	extents := make([]Extent, f.extents)
	if f.extents == 0 {
		return extents, nil
	}
	var v [4][]uint64
	for i := range v {
		var err error
		if v[i], payload, err = column(payload, "extents", f.extents); err != nil {
			return nil, err
		}
	}
	pages := uint64(0)
	for i := range extents {
		if v[0][i] > datafile.MaxBytes || v[1][i] > datafile.MaxBytes || v[3][i] > MaxPages {
			return nil, fmt.Errorf("%w: extent %d of %d bytes at %d with %d pages", ErrJournal, i, v[1][i], v[0][i], v[3][i])
		}
		if pages += v[3][i]; pages > uint64(f.pages) {
			return nil, fmt.Errorf("%w: more pages in the extents than the footer's %d", ErrJournal, f.pages)
		}
		extents[i] = Extent{
			Offset: int64(v[0][i]), Length: uint32(v[1][i]), Sequence: v[2][i], Pages: make([]Page, v[3][i]),
		}
	}
	if pages != uint64(f.pages) || len(payload) != 0 {
		return nil, fmt.Errorf("%w: %d pages in the extents, expected %d", ErrJournal, pages, f.pages)
	}
	return extents, nil
}

// readBlock puts the pages of a block into their extents and returns their number.
func readBlock(payload []byte, extents []Extent) (int, error) {
	count, k := binary.Uvarint(payload)
	if k <= 0 || count > blockPages {
		return 0, fmt.Errorf("%w: a block of %d pages", ErrJournal, count)
	}
	n := int(count)
	pages, rest, err := readPages(payload[k:], n)
	if err != nil {
		return 0, err
	}
	where, rest, err := column(rest, "extent", n)
	if err != nil {
		return 0, err
	}
	slots, rest, err := column(rest, "slot", n)
	if err != nil {
		return 0, err
	}
	if len(rest) != 0 {
		return 0, fmt.Errorf("%w: %d bytes behind a block", ErrJournal, len(rest))
	}
	for i := range pages {
		if where[i] >= uint64(len(extents)) || slots[i] >= uint64(len(extents[where[i]].Pages)) {
			return 0, fmt.Errorf("%w: a page in slot %d of extent %d", ErrJournal, slots[i], where[i])
		}
		extents[where[i]].Pages[slots[i]] = pages[i]
	}
	return n, nil
}
