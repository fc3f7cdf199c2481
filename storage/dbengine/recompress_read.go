package dbengine

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/journal"
)

const (
	// keptDirectories and keptExtentBytes bound what a pairReader remembers; then it forgets all.
	keptDirectories = 2048
	keptExtentBytes = 32 << 20
)

// pairReader reads a closed pair item by item, past the page cache.
type pairReader struct {
	db     *DB
	pair   *pair
	file   *datafile.File
	places []journal.Extent
	// heads are directories of extents that are not compressed, whole are extents that are.
	heads      map[uint64]*extent.Directory
	whole      map[uint64]*extent.Directory
	wholeBytes int
	// keptBytes bounds what whole holds.
	keptBytes int
	// extents, if not nil, is what pages are read from.
	extents *extentReader
	// read is told of bytes that were read.
	read func(int) error
	// skip, if not nil, says which pages are passed over, of which skipped is told.
	skip    func(id model.ItemID, kind uint8) bool
	skipped func(count uint32, kind uint8)
}

func newPairReader(db *DB, p *pair, f *datafile.File, keptBytes int) *pairReader {
	return &pairReader{db: db, pair: p, file: f, heads: map[uint64]*extent.Directory{}, whole: map[uint64]*extent.Directory{}, keptBytes: keptBytes}
}

// coldPage is a page with what the journal knows of it.
type coldPage struct {
	extent.Page
	lsn model.LSN
}

// joinItems calls fn for each item of a run of pairs in the order of ids, with its pages: kind by kind, each as they were written.
func (db *DB) joinItems(run []*pair, read func(int) error, fn func(pages []coldPage) error) error {
	inputs := make([]pairInput, len(run))
	for i, p := range run {
		in := &inputs[i]
		f, err := p.files.use(p)
		if err != nil {
			return err
		}
		defer p.files.done(p)
		reader := newPairReader(db, p, f, keptExtentBytes/len(run))
		reader.read = read
		if reader.extents, err = db.newExtentReader(p, int64(reader.keptBytes)); err != nil {
			return err
		}
		defer reader.extents.close()
		next, stop := iter.Pull(in.from(reader))
		defer stop()
		in.next = next
		in.step()
	}
	var joined []coldPage
	for {
		item, any := model.ItemID(0), false
		for i := range inputs {
			if err := inputs[i].err; err != nil {
				return err
			}
			if in := &inputs[i]; in.more && (!any || in.pages[0].Item < item) {
				item, any = in.pages[0].Item, true
			}
		}
		if !any {
			return nil
		}
		joined = joined[:0]
		for i := range inputs {
			if in := &inputs[i]; in.more && in.pages[0].Item == item {
				joined = append(joined, in.pages...)
				in.step()
			}
		}
		slices.SortStableFunc(joined, func(a, b coldPage) int { return int(a.Kind) - int(b.Kind) })
		if err := fn(joined); err != nil {
			return err
		}
	}
}

// pairInput is one pair of a run that is read item by item.
type pairInput struct {
	next  func() ([]coldPage, bool)
	pages []coldPage
	more  bool
	err   error
}

func (in *pairInput) step() { in.pages, in.more = in.next() }

func (in *pairInput) from(r *pairReader) iter.Seq[[]coldPage] {
	return func(yield func([]coldPage) bool) {
		err := r.items(func(pages []coldPage) error {
			if !yield(pages) {
				return errStop
			}
			return nil
		})
		if !errors.Is(err, errStop) {
			in.err = err
		}
	}
}

// locate finds the extents of the pair.
func (r *pairReader) locate() error {
	x := r.pair.index.Load()
	return r.db.withIndex(r.pair, x, func(in io.ReaderAt) error {
		t, err := x.parts.Table(in)
		if err == nil && x.parts.Footer().Blocks > 0 {
			r.places, err = x.parts.Extents(in, t)
		}
		return err
	})
}

// items calls fn for each item of the pair in the order of ids, with its pages: kind by kind, each as they were written.
func (r *pairReader) items(fn func(pages []coldPage) error) error {
	x := r.pair.index.Load()
	return r.db.withIndex(r.pair, x, func(in io.ReaderAt) error {
		t, err := x.parts.Table(in)
		if err != nil || x.parts.Footer().Blocks == 0 {
			return err
		}
		if r.places, err = x.parts.Extents(in, t); err != nil {
			return err
		}
		var pages []coldPage
		for i := range x.parts.Footer().Blocks {
			b, err := x.parts.Block(in, t, i)
			if err != nil {
				return err
			}
			for k := range b.Pages {
				if b.Pages[k].Kind == kindSeals {
					continue
				}
				if r.skip != nil && r.skip(b.Pages[k].Item, b.Pages[k].Kind) {
					r.skipped(b.Pages[k].Count, b.Pages[k].Kind)
					continue
				}
				if len(pages) > 0 && pages[0].Item != b.Pages[k].Item {
					if err := fn(pages); err != nil {
						return err
					}
					pages = pages[:0]
				}
				p, err := r.page(b.Extents[k], int(b.Slots[k]))
				if err != nil {
					return err
				}
				if p.Item != b.Pages[k].Item || p.Kind != b.Pages[k].Kind {
					return fmt.Errorf("%w: page %d of extent %d is not the one that the index names", extent.ErrExtent, b.Slots[k], b.Extents[k])
				}
				pages = append(pages, coldPage{Page: p, lsn: b.Pages[k].LSN})
			}
		}
		if len(pages) > 0 {
			return fn(pages)
		}
		return nil
	})
}

// page reads one page.
func (r *pairReader) page(place uint64, slot int) (extent.Page, error) {
	if place >= uint64(len(r.places)) {
		return extent.Page{}, fmt.Errorf("%w: extent %d of %d", journal.ErrJournal, place, len(r.places))
	}
	e := &r.places[place]
	if r.extents != nil {
		return r.extents.page(e.Offset, slot, r.read)
	}
	if d := r.whole[place]; d != nil {
		return d.Page(slot)
	}
	d := r.heads[place]
	if d == nil {
		var err error
		if d, err = r.directory(e); err != nil {
			return extent.Page{}, err
		}
		if d.Codec() != extent.None {
			if d, err = r.inflate(place, e); err != nil {
				return extent.Page{}, err
			}
			return d.Page(slot)
		}
		if len(r.heads) >= keptDirectories {
			clear(r.heads)
		}
		r.heads[place] = d
	}
	if slot >= d.Len() {
		return extent.Page{}, fmt.Errorf("%w: %d pages, expected one in slot %d", extent.ErrExtent, d.Len(), slot)
	}
	timesAt, timesSize, valuesAt, valuesSize := d.Span(slot)
	b := make([]byte, timesSize+valuesSize)
	err := errors.Join(r.file.ReadAt(b[:timesSize], e.Offset+int64(timesAt)), r.file.ReadAt(b[timesSize:], e.Offset+int64(valuesAt)), r.read(len(b)))
	if err != nil {
		return extent.Page{}, err
	}
	return d.PageFrom(slot, b[:timesSize:timesSize], b[timesSize:])
}

// directory reads the directory of an extent.
func (r *pairReader) directory(e *journal.Extent) (*extent.Directory, error) {
	b := make([]byte, min(int64(e.Length), headGuessBytes))
	if err := r.file.ReadAt(b, e.Offset); err != nil {
		return nil, err
	}
	n, err := extent.HeadBytes(b)
	if err != nil {
		return nil, err
	}
	if n > int(e.Length) {
		return nil, fmt.Errorf("%w: a directory of %d bytes in an extent of %d", extent.ErrExtent, n, e.Length)
	}
	if n > len(b) {
		have := len(b)
		b = slices.Grow(b, n-have)[:n]
		if err := r.file.ReadAt(b[have:], e.Offset+int64(have)); err != nil {
			return nil, err
		}
	}
	if err := r.read(n); err != nil {
		return nil, err
	}
	return extent.ParseHead(b, r.pair.id.Extent(e.Sequence))
}

// inflate reads and remembers a whole extent.
func (r *pairReader) inflate(place uint64, e *journal.Extent) (*extent.Directory, error) {
	b := make([]byte, e.Length)
	if err := errors.Join(r.file.ReadAt(b, e.Offset), r.read(len(b))); err != nil {
		return nil, err
	}
	d, err := extent.Parse(b, r.pair.id.Extent(e.Sequence))
	if err != nil {
		return nil, err
	}
	plain, stored := d.PayloadBytes()
	if r.wholeBytes += plain + stored; r.wholeBytes > r.keptBytes {
		clear(r.whole)
		r.wholeBytes = plain + stored
	}
	r.whole[place] = d
	return d, nil
}
