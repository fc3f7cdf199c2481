package dbengine

import (
	"errors"
	"path/filepath"

	"tidemark/internal/vfs"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/journal"
	"tidemark/storage/dbengine/page"
)

// tierWriteBytes is how much of a pair of a tier is collected between two writes.
const tierWriteBytes = 1 << 20

// tierWriter writes the datafile of a pair of a tier beside its place.
type tierWriter struct {
	db   *DB
	pair *pair
	name string
	file vfs.File
	buf  []byte
	// past reads the pair that is summed up, nil where that is better done page by page.
	past *extentReader
	// rows are numbers, which their columns made small; merged values are worth compressing.
	rows, merged tierPages
	extents      []journal.Extent
}

// tierPages are the pages of an extent to be.
type tierPages struct {
	pages []extent.Page
	size  int
	codec extent.Codec
}

func (db *DB) newTierWriter(id datafile.ID, tier header.Tier, source *pair) (*tierWriter, error) {
	w := &tierWriter{db: db, name: filepath.Join(db.dir, id.Name()) + tempSuffix, merged: tierPages{codec: extent.Zstd}}
	w.pair = &pair{
		id: id, tier: tier, source: source.id.Number, first: source.first, members: source.members, files: &db.files, gone: db.pairGone,
		oldest: minTime, newestValue: minTime, newestHour: minTime, merged: db.o.Merge != nil,
	}
	h := header.Header{Magic: header.Datafile, Generation: id.Generation, Number: id.Number, Tier: tier, Source: source.id.Number}
	h.Join(source.first, source.members)
	if w.pair.merged {
		h.Compatible = header.Merged
	}
	w.buf = h.Append(nil)
	var err error
	w.file, err = db.create(w.name)
	return w, err
}

// add adds a page; the pages of an item and kind come one after the other.
func (w *tierWriter) add(p extent.Page) error {
	to := &w.rows
	if p.Kind == extent.Merged {
		to = &w.merged
	}
	to.pages = append(to.pages, p)
	if to.size += len(p.Times) + len(p.Values); len(to.pages) < extentPages && to.size < extentBytes {
		return nil
	}
	return w.emit(to)
}

// emit builds an extent.
func (w *tierWriter) emit(from *tierPages) error {
	n := len(from.pages)
	if n == 0 {
		return nil
	}
	p := w.pair
	w.buf = append(w.buf, make([]byte, (datafile.Align-len(w.buf)%datafile.Align)%datafile.Align)...)
	e := journal.Extent{Offset: p.size + int64(len(w.buf)), Sequence: uint64(len(w.extents) + 1)}
	for i := range from.pages {
		q := &from.pages[i]
		e.Pages = append(e.Pages, journal.Page{Item: q.Item, Type: q.Type, Kind: q.Kind, From: q.From, To: q.To, Count: uint32(q.Count)})
	}
	start := len(w.buf)
	pages := append(from.pages, extent.Page{Kind: kindSeals, Count: n, Values: page.AppendUints(nil, make([]uint64, n))})
	var err error
	if w.buf, err = extent.Build(w.buf, p.id.Extent(e.Sequence), from.codec, textLevel, pages); err != nil {
		return err
	}
	e.Length = uint32(len(w.buf) - start)
	w.extents = append(w.extents, e)
	from.pages, from.size = from.pages[:0], 0
	if len(w.buf) < tierWriteBytes {
		return nil
	}
	w.buf = append(w.buf, make([]byte, (datafile.Align-len(w.buf)%datafile.Align)%datafile.Align)...)
	return w.write()
}

// write writes what was built so far.
func (w *tierWriter) write() error {
	p := w.pair
	end := p.size + int64(len(w.buf))
	more := roundUp(end) - roundUp(p.size)
	if err := w.db.reserve(more); err != nil {
		return err
	}
	p.charged += more
	if _, err := w.file.WriteAt(w.buf, p.size); err != nil {
		return err
	}
	w.db.m.writtenBytes.Add(len(w.buf))
	w.db.m.tierBytes.Add(len(w.buf))
	p.size, w.buf = end, w.buf[:0]
	return nil
}

// finish writes the rest and puts the file in its place.
func (w *tierWriter) finish() error {
	err := w.emit(&w.rows)
	if err == nil {
		err = w.emit(&w.merged)
	}
	if err == nil {
		err = w.write()
	}
	if err == nil {
		err = w.file.Sync()
	}
	if err = errors.Join(err, w.file.Close()); err != nil {
		w.file = nil
		return err
	}
	w.file = nil
	name := filepath.Join(w.db.dir, w.pair.id.Name())
	if err := w.db.fs.Rename(w.name, name); err != nil {
		return err
	}
	w.name = name
	return w.db.fs.SyncDir(w.db.dir)
}

// abort removes what was written.
func (w *tierWriter) abort() error {
	var errs []error
	if w.file != nil {
		errs = append(errs, w.file.Close())
	}
	if err := w.db.fs.Remove(w.name); err != nil && !isNotExist(err) {
		errs = append(errs, err)
	} else {
		w.db.space.release(w.pair.charged)
	}
	return errors.Join(errs...)
}
