package journal

import (
	"errors"
	"fmt"
	"io"

	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/header"
)

// Parts reads single parts of a closed journalfile, each with its own checksum, so that a start needs the footer only and
// a query the blocks that name its item. It has no state but the footer and may be used by several goroutines.
type Parts struct {
	id     datafile.ID
	footer *Footer
	size   int64
}

// Table is the block index: the first item of each block, and where the blocks are.
type Table struct {
	firsts  []model.ItemID
	offsets []int64
}

// Block describes up to 1,024 pages in the order of their items, kinds, and then as they were written. Page i is in slot
// Slots[i] of extent Extents[i].
type Block struct {
	Pages          []Page
	Extents, Slots []uint64
}

// OpenParts reads header and footer of a journalfile of sizeBytes. It returns nil without an error if the journalfile is intact so far and
// not closed. Damage is told by an error that wraps ErrJournal or header.ErrHeader.
func OpenParts(r io.ReaderAt, id datafile.ID, sizeBytes int64) (*Parts, error) {
	if sizeBytes > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, expected at most %d", header.ErrHeader, sizeBytes, MaxBytes)
	}
	b := make([]byte, header.Bytes)
	if err := readFull(r, b[:min(sizeBytes, header.Bytes)], 0); err != nil {
		return nil, err
	}
	h, err := header.Decode(b[:min(sizeBytes, header.Bytes)], header.Journalfile)
	if err != nil {
		return nil, err
	}
	if h.Generation != id.Generation || h.Number != id.Number {
		return nil, fmt.Errorf("%w: it belongs to generation %d, number %d", header.ErrHeader, h.Generation, h.Number)
	}
	if h.Compatible&header.Closed == 0 {
		return nil, nil
	}
	if sizeBytes < header.Bytes+FooterBytes {
		return nil, fmt.Errorf("%w: %d bytes, too short for a closed journalfile", ErrJournal, sizeBytes)
	}
	b = make([]byte, FooterBytes)
	if err := readFull(r, b, sizeBytes-FooterBytes); err != nil {
		return nil, err
	}
	f, err := readFooter(b, id, sizeBytes)
	if err != nil {
		return nil, err
	}
	return &Parts{id: id, footer: f, size: sizeBytes}, nil
}

// Footer returns what the footer says. It must not be changed.
func (p *Parts) Footer() *Footer { return p.footer }

// Table reads the block index.
func (p *Parts) Table(r io.ReaderAt) (*Table, error) {
	t := &Table{}
	payload, err := p.read(r, p.footer.BlockIndex, p.size-FooterBytes)
	if err != nil || p.footer.Blocks == 0 {
		return t, err
	}
	firsts, payload, err := column(payload, "first items", p.footer.Blocks)
	if err != nil {
		return nil, err
	}
	offsets, payload, err := column(payload, "offsets", p.footer.Blocks)
	if err != nil {
		return nil, err
	}
	if len(payload) != 0 {
		return nil, fmt.Errorf("%w: %d bytes behind the block index", ErrJournal, len(payload))
	}
	last := uint64(header.Bytes)
	for i, at := range offsets {
		if at <= last || at >= uint64(p.footer.BlockIndex) || i > 0 && firsts[i] < firsts[i-1] {
			return nil, fmt.Errorf("%w: block %d is said to be at byte %d, and to start with item %d", ErrJournal, i, at, firsts[i])
		}
		last = at
		t.firsts, t.offsets = append(t.firsts, model.ItemID(firsts[i])), append(t.offsets, int64(at))
	}
	return t, nil
}

// Find returns the half-open range of blocks that may name an item.
func (t *Table) Find(id model.ItemID) (from, to int) {
	low, high := 0, len(t.firsts)
	for low < high {
		if mid := int(uint(low+high) >> 1); t.firsts[mid] < id {
			low = mid + 1
		} else {
			high = mid
		}
	}
	from, to = max(low-1, 0), low
	for to < len(t.firsts) && t.firsts[to] == id {
		to++
	}
	return from, to
}

// Extents reads where the extents are; they come without their pages.
func (p *Parts) Extents(r io.ReaderAt, t *Table) ([]Extent, error) {
	end := p.footer.BlockIndex
	if len(t.offsets) > 0 {
		end = t.offsets[0]
	}
	payload, err := p.read(r, header.Bytes, end)
	if err != nil {
		return nil, err
	}
	extents, _, err := readExtentColumns(payload, p.footer)
	return extents, err
}

// Block reads one block and checks that its extents are among those of the datafile.
func (p *Parts) Block(r io.ReaderAt, t *Table, i int) (*Block, error) {
	end := p.footer.BlockIndex
	if i+1 < len(t.offsets) {
		end = t.offsets[i+1]
	}
	payload, err := p.read(r, t.offsets[i], end)
	if err != nil {
		return nil, err
	}
	b, err := decodeBlock(payload)
	if err != nil {
		return nil, err
	}
	for k := range b.Pages {
		if b.Extents[k] >= uint64(p.footer.Extents) || b.Slots[k] >= MaxPages || k > 0 && b.Pages[k].Item < b.Pages[k-1].Item {
			return nil, fmt.Errorf("%w: page %d of block %d is in slot %d of extent %d", ErrJournal, k, i, b.Slots[k], b.Extents[k])
		}
	}
	return b, nil
}

// read returns the content of the sealed block that takes the bytes from one offset to another.
func (p *Parts) read(r io.ReaderAt, from, to int64) ([]byte, error) {
	if to <= from {
		return nil, fmt.Errorf("%w: no bytes for a block at byte %d", ErrJournal, from)
	}
	b := make([]byte, to-from)
	if err := readFull(r, b, from); err != nil {
		return nil, err
	}
	payload, n, err := unseal(b, seed(p.id, from))
	if err != nil {
		return nil, err
	}
	if n != len(b) {
		return nil, fmt.Errorf("%w: %d bytes behind the block at byte %d", ErrJournal, len(b)-n, from)
	}
	return payload, nil
}

// readFull fills b; a file that ends before is damage.
func readFull(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it ends at byte %d", ErrJournal, at+int64(n))
	}
	return err
}
