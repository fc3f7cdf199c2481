package dbengine

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"tidemark/internal/vfs"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/journal"
)

const (
	// passingBytes is the memory for reading a pair that is summed up.
	passingBytes = 8 << 20
	// passingParts is into how many reads that memory is divided: so many stretches of a file can be followed at once.
	passingParts = 64
	// pieceCharge is what a piece takes besides its extents: parts of blocks at both ends, and directories.
	pieceCharge = 4 * vfs.DirectBytes
	// passingAhead is how many reads may be under way before anybody waits for them.
	passingAhead = 4
)

// extentReader reads a closed pair from one end to the other item by item, and its file in large pieces: an item's pages stand in as many places as
// the pair was flushed, each of which is followed on its own, the next piece being read while the one before is used. Nothing goes
// through the page cache, nor through the system's if the file system takes direct I/O. One goroutine uses it.
type extentReader struct {
	pair   *pair
	file   io.ReaderAt
	done   func()
	places []journal.Extent // in the order of the file
	// held are the pieces by extent, limit what they may take in bytes, piece what one read takes.
	held         map[int]*extentPiece
	pieces       []*extentPiece
	bytes, limit int64
	piece        int64
	clock        uint64
	flying       chan struct{}
}

// extentPiece are neighbouring extents that are read at once.
type extentPiece struct {
	first, end int
	from       int64
	buf        []byte
	heads      []*extent.Directory
	bytes      int64
	used       uint64
	// counted means that it was used.
	counted bool
	ready   chan struct{}
	err     error
}

// newExtentReader returns a reader of a pair that is in use until close, nil if its extents cannot be held as long as they are needed: those of a pair that was flushed in many small
// parts are better read page by page. places are all its extents, in any order; limit is the memory for it in bytes.
func (db *DB) newExtentReader(p *pair, limit int64) (*extentReader, error) {
	x := p.index.Load()
	if x == nil || x.parts.Footer().Blocks == 0 {
		return nil, nil
	}
	var places []journal.Extent
	scattered := false
	err := db.withIndex(p, x, func(in io.ReaderAt) error {
		t, err := x.parts.Table(in)
		if err == nil {
			places, err = x.parts.Extents(in, t)
		}
		if err == nil {
			scattered, err = isScattered(in, x.parts, t, places, limit)
		}
		return err
	})
	if err != nil || scattered {
		return nil, err
	}
	slices.SortFunc(places, func(a, b journal.Extent) int { return cmp.Compare(a.Offset, b.Offset) })
	file, done, err := db.openPassing(p)
	if err != nil {
		return nil, err
	}
	return &extentReader{
		pair: p, file: file, done: done, places: places, held: map[int]*extentPiece{}, limit: limit, piece: limit / passingParts,
		flying: make(chan struct{}, passingAhead),
	}, nil
}

// isScattered reports whether the pages of a block of the index, which are those of neighbouring items, stand in more extents than can be held.
func isScattered(in io.ReaderAt, parts *journal.Parts, t *journal.Table, places []journal.Extent, limit int64) (bool, error) {
	seen := make([]int, len(places))
	for i := range parts.Footer().Blocks {
		b, err := parts.Block(in, t, i)
		if err != nil {
			return false, err
		}
		size := int64(0)
		for _, place := range b.Extents {
			if place < uint64(len(seen)) && seen[place] <= i {
				seen[place] = i + 1
				size += int64(places[place].Length) + pieceCharge
			}
		}
		if size > limit/2 { // the other half is for what is read ahead
			return true, nil
		}
	}
	return false, nil
}

// close waits for what is being read and lets the file go.
func (r *extentReader) close() {
	if r == nil {
		return
	}
	for _, p := range r.pieces {
		<-p.ready
	}
	r.pieces, r.held = nil, nil
	r.done()
}

// page returns the page in a slot of the extent at an offset. read is told of what was fetched from the file for it.
func (r *extentReader) page(offset int64, slot int, read func(int) error) (extent.Page, error) {
	i, known := slices.BinarySearchFunc(r.places, offset, func(e journal.Extent, at int64) int { return cmp.Compare(e.Offset, at) })
	if !known {
		return extent.Page{}, fmt.Errorf("%w: no extent at byte %d", journal.ErrJournal, offset)
	}
	p, err := r.get(i, read)
	if err != nil {
		return extent.Page{}, err
	}
	e := &r.places[i]
	d := p.heads[i-p.first]
	if d == nil {
		at := e.Offset - p.from
		if d, err = extent.Parse(p.buf[at:at+int64(e.Length)], r.pair.id.Extent(e.Sequence)); err != nil {
			return extent.Page{}, err
		}
		p.heads[i-p.first] = d
		if d.Codec() != extent.None {
			plain, _ := d.PayloadBytes()
			p.bytes += int64(plain)
			r.bytes += int64(plain)
		}
	}
	if slot >= d.Len() {
		return extent.Page{}, fmt.Errorf("%w: %d pages, expected one in slot %d", extent.ErrExtent, d.Len(), slot)
	}
	q, err := d.Page(slot)
	if err == nil { // a page that is kept shall not keep the piece
		b := append(append(make([]byte, 0, len(q.Times)+len(q.Values)), q.Times...), q.Values...)
		q.Times, q.Values = b[:len(q.Times):len(q.Times)], b[len(q.Times):]
	}
	return q, err
}

// get returns the piece that has an extent. When the last extent of a piece is asked for the piece behind it is needed soon.
func (r *extentReader) get(i int, read func(int) error) (*extentPiece, error) {
	p := r.held[i]
	if p == nil {
		p = r.start(i, r.piece)
	}
	if <-p.ready; p.err != nil && p.end-p.first > 1 { // what is wrong with its neighbours is not wrong with it
		r.drop(p)
		p = r.start(i, 0)
		<-p.ready
	}
	if p.err != nil {
		r.drop(p)
		return nil, p.err
	}
	if !p.counted {
		p.counted = true
		if err := read(len(p.buf)); err != nil {
			return nil, err
		}
	}
	r.clock++
	p.used = r.clock
	if i == p.end-1 && p.end < len(r.places) && r.held[p.end] == nil && len(r.flying) < passingAhead {
		r.start(p.end, r.piece)
	}
	for r.bytes > r.limit && r.dropOldest(p) {
	}
	return p, nil
}

// start begins to read extents from one on, at least that one and what follows it up to size bytes.
func (r *extentReader) start(i int, size int64) *extentPiece {
	from := r.places[i].Offset
	end, to := i+1, from+int64(r.places[i].Length)
	for end < len(r.places) && r.held[end] == nil && r.places[end].Offset+int64(r.places[end].Length)-from <= size {
		to = r.places[end].Offset + int64(r.places[end].Length)
		end++
	}
	p := &extentPiece{first: i, end: end, used: r.clock, heads: make([]*extent.Directory, end-i), ready: make(chan struct{})}
	p.bytes = to - from + pieceCharge
	for k := i; k < end; k++ {
		r.held[k] = p
	}
	r.pieces = append(r.pieces, p)
	r.bytes += p.bytes
	r.flying <- struct{}{}
	go func() { // close waits for it
		p.from, p.buf, p.err = vfs.ReadBlocks(r.file, from, to)
		<-r.flying
		close(p.ready)
	}()
	return p
}

func (r *extentReader) drop(p *extentPiece) {
	<-p.ready
	for k := p.first; k < p.end; k++ {
		if r.held[k] == p {
			delete(r.held, k)
		}
	}
	r.pieces = slices.DeleteFunc(r.pieces, func(o *extentPiece) bool { return o == p })
	r.bytes -= p.bytes
}

// dropOldest forgets the piece that was used, or read ahead, longest ago, but not kept. It reports whether there was one.
func (r *extentReader) dropOldest(kept *extentPiece) bool {
	var oldest *extentPiece
	for _, p := range r.pieces {
		if p != kept && (oldest == nil || p.used < oldest.used) {
			oldest = p
		}
	}
	if oldest == nil {
		return false
	}
	r.drop(oldest)
	return true
}

// passingPage reads a page of a reader's pair and locates what is wrong with it.
func (r *extentReader) passingPage(ref *pageRef, count func(int)) (extent.Page, error) {
	q, err := r.page(ref.offset(), int(ref.slot), func(n int) error {
		count(n)
		return nil
	})
	if errors.Is(err, journal.ErrJournal) {
		err = fmt.Errorf("%w: %w", extent.ErrExtent, err)
	}
	return q, ref.locate(err)
}
