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

// AppendIndex appends a whole closed journalfile. Extents are in the order of their offsets.
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
	f := Footer{Extents: len(extents), Pages: len(pages), Blocks: len(firsts), BlockIndex: blocks, Summary: Summarize(extents)}
	for i := range pages {
		if i == 0 || pages[i].Item != pages[i-1].Item {
			f.Items++
		}
	}
	if n := len(extents); n > 0 {
		f.DataBytes = extents[n-1].Offset + int64(extents[n-1].Length)
	}
	return appendFooter(dst, base, id, f)
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
	// From and To bound the times of all pages; both zero without any.
	From, To int64
	// ValueTimes bound the times of values, Rows those of summaries.
	ValueTimes, RowTimes Bounds
	// FirstItem and LastItem bound the ids.
	FirstItem, LastItem model.ItemID
	// Values counts values, not summaries.
	Values uint64
	LSN    model.LSN
}

// Bounds are the first and the last of some times, Unix nanoseconds. From is greater than To if there are none.
type Bounds struct{ From, To int64 }

// NoBounds are those of nothing.
var NoBounds = Bounds{From: math.MaxInt64, To: math.MinInt64}

// Add widens b so that it holds from and to.
func (b *Bounds) Add(from, to int64) { b.From, b.To = min(b.From, from), max(b.To, to) }

// Reaches reports whether b has a time in a half-open range.
func (b *Bounds) Reaches(from, to int64) bool { return b.From < to && b.To >= from }

// Summarize goes through all pages.
func Summarize(extents []Extent) Summary {
	s := Summary{From: math.MaxInt64, To: math.MinInt64, FirstItem: math.MaxUint64, ValueTimes: NoBounds, RowTimes: NoBounds}
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
				s.ValueTimes.Add(p.From, p.To)
			} else {
				s.RowTimes.Add(p.From, p.To)
			}
		}
	}
	if pages == 0 {
		return Summary{ValueTimes: NoBounds, RowTimes: NoBounds}
	}
	return s
}

// Footer is the end of a closed journalfile: how much it describes and where its parts are.
type Footer struct {
	Extents, Pages, Blocks int
	// BlockIndex is where the block index starts, in bytes.
	BlockIndex int64
	Summary    Summary
	// Items counts the items; zero if the footer is of the first kind, which does not say.
	Items int
	// DataBytes is where the last extent of the datafile ends; zero if the footer does not say.
	DataBytes int64
}

// hasDetails marks a footer that has the fields behind byte 72.
const hasDetails = 1

func appendFooter(dst []byte, base int, id datafile.ID, f Footer) []byte {
	start := len(dst)
	dst = append(dst, footerMagic[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(f.Extents))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(f.Pages))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(f.Blocks))
	s := &f.Summary
	for _, v := range []uint64{
		uint64(f.BlockIndex), uint64(s.From), uint64(s.To), uint64(s.FirstItem), uint64(s.LastItem), s.Values, uint64(s.LSN),
		hasDetails | uint64(f.Items)<<32, uint64(s.ValueTimes.From), uint64(s.ValueTimes.To), uint64(s.RowTimes.From), uint64(s.RowTimes.To),
		uint64(f.DataBytes),
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
	f, err := readFooter(b[max(len(b)-FooterBytes, 0):], id, int64(len(b)))
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

// readFooter reads the footer e of a journalfile of so many bytes.
func readFooter(e []byte, id datafile.ID, sizeBytes int64) (*Footer, error) {
	at := sizeBytes - FooterBytes
	if at < header.Bytes || len(e) != FooterBytes {
		return nil, fmt.Errorf("%w: %d bytes, too short for a closed journalfile", ErrJournal, sizeBytes)
	}
	if [4]byte(e[:4]) != footerMagic || checksum(seed(id, at), e[:FooterBytes-4]) != binary.LittleEndian.Uint32(e[FooterBytes-4:]) {
		return nil, fmt.Errorf("%w: no intact footer at its end", ErrJournal)
	}
	var v [13]uint64
	for i := range v {
		v[i] = binary.LittleEndian.Uint64(e[16+8*i:])
	}
	f := &Footer{
		Extents: int(binary.LittleEndian.Uint32(e[4:])), Pages: int(binary.LittleEndian.Uint32(e[8:])), Blocks: int(binary.LittleEndian.Uint32(e[12:])),
		BlockIndex: int64(v[0]),
		Summary: Summary{
			From: int64(v[1]), To: int64(v[2]), FirstItem: model.ItemID(v[3]), LastItem: model.ItemID(v[4]), Values: v[5], LSN: model.LSN(v[6]),
			ValueTimes: Bounds{From: int64(v[1]), To: int64(v[2])}, RowTimes: Bounds{From: int64(v[1]), To: int64(v[2])},
		},
	}
	if v[7]&hasDetails != 0 {
		f.Items = int(v[7] >> 32)
		f.Summary.ValueTimes, f.Summary.RowTimes = Bounds{From: int64(v[8]), To: int64(v[9])}, Bounds{From: int64(v[10]), To: int64(v[11])}
		f.DataBytes = int64(v[12])
	} else if f.Pages == 0 {
		f.Summary.ValueTimes, f.Summary.RowTimes = NoBounds, NoBounds
	}
	if int64(f.Extents) > sizeBytes || f.Pages > MaxBytes || f.Blocks > f.Pages || f.BlockIndex < header.Bytes || f.BlockIndex > at {
		return nil, fmt.Errorf("%w: the footer's numbers do not fit the file", ErrJournal)
	}
	return f, nil
}

// readExtents reads the extents and fills them from the blocks.
func readExtents(b []byte, id datafile.ID, f *Footer) ([]Extent, error) {
	at := int64(header.Bytes)
	payload, n, err := unseal(b[at:], seed(id, at))
	if err != nil {
		return nil, err
	}
	extents, counts, err := readExtentColumns(payload, f)
	if err != nil {
		return nil, err
	}
	for i := range extents {
		extents[i].Pages = make([]Page, counts[i])
	}
	at += int64(n)
	total := 0
	for at < f.BlockIndex {
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
	if total != f.Pages {
		return nil, fmt.Errorf("%w: %d pages in the blocks, expected %d", ErrJournal, total, f.Pages)
	}
	if _, n, err = unseal(b[f.BlockIndex:], seed(id, f.BlockIndex)); err != nil {
		return nil, err
	}
	if f.BlockIndex+int64(n)+FooterBytes != int64(len(b)) {
		return nil, fmt.Errorf("%w: bytes between the block index and the footer", ErrJournal)
	}
	return extents, nil
}

// readExtentColumns returns the extents without their pages, and how many each has.
func readExtentColumns(payload []byte, f *Footer) ([]Extent, []uint64, error) {
	extents := make([]Extent, f.Extents)
	if f.Extents == 0 {
		return extents, nil, nil
	}
	var v [4][]uint64
	for i := range v {
		var err error
		if v[i], payload, err = column(payload, "extents", f.Extents); err != nil {
			return nil, nil, err
		}
	}
	pages := uint64(0)
	for i := range extents {
		if v[0][i] > datafile.MaxBytes || v[1][i] > datafile.MaxBytes || v[3][i] > MaxPages {
			return nil, nil, fmt.Errorf("%w: extent %d of %d bytes at %d with %d pages", ErrJournal, i, v[1][i], v[0][i], v[3][i])
		}
		if pages += v[3][i]; pages > uint64(f.Pages) {
			return nil, nil, fmt.Errorf("%w: more pages in the extents than the footer's %d", ErrJournal, f.Pages)
		}
		extents[i] = Extent{Offset: int64(v[0][i]), Length: uint32(v[1][i]), Sequence: v[2][i]}
	}
	if pages != uint64(f.Pages) || len(payload) != 0 {
		return nil, nil, fmt.Errorf("%w: %d pages in the extents, expected %d", ErrJournal, pages, f.Pages)
	}
	return extents, v[3], nil
}

// readBlock puts the pages of a block into their extents and returns their number.
func readBlock(payload []byte, extents []Extent) (int, error) {
	b, err := decodeBlock(payload)
	if err != nil {
		return 0, err
	}
	for i := range b.Pages {
		if b.Extents[i] >= uint64(len(extents)) || b.Slots[i] >= uint64(len(extents[b.Extents[i]].Pages)) {
			return 0, fmt.Errorf("%w: a page in slot %d of extent %d", ErrJournal, b.Slots[i], b.Extents[i])
		}
		extents[b.Extents[i]].Pages[b.Slots[i]] = b.Pages[i]
	}
	return len(b.Pages), nil
}

// decodeBlock reads a block.
func decodeBlock(payload []byte) (*Block, error) {
	count, k := binary.Uvarint(payload)
	if k <= 0 || count > blockPages {
		return nil, fmt.Errorf("%w: a block of %d pages", ErrJournal, count)
	}
	n := int(count)
	b := &Block{}
	rest := payload[k:]
	var err error
	if b.Pages, rest, err = readPages(rest, n); err != nil {
		return nil, err
	}
	if b.Extents, rest, err = column(rest, "extent", n); err != nil {
		return nil, err
	}
	if b.Slots, rest, err = column(rest, "slot", n); err != nil {
		return nil, err
	}
	if len(rest) != 0 {
		return nil, fmt.Errorf("%w: %d bytes behind a block", ErrJournal, len(rest))
	}
	return b, nil
}
