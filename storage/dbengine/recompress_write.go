package dbengine

import (
	"errors"
	"path/filepath"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/journal"
	"tidemark/storage/dbengine/page"
)

// coldWriter writes a pair anew, in files beside those of the engine.
type coldWriter struct {
	db   *DB
	id   datafile.ID
	o    *Recompress
	file vfs.File
	move func(int) error
	// lean leaves out rows of hours that follow from the values.
	lean bool
	// header is that of the datafile; it says that columns repeat when one that does was added.
	header header.Header
	// size is what was written, limit what the pair must stay below.
	size, limit int64
	buf         []byte
	extents     []journal.Extent
	// open are the extents that are filled: numbers and texts.
	open [2]coldExtent
}

type coldExtent struct {
	pages []extent.Page
	lsns  []uint64
	size  int
}

func (w *coldWriter) path(name string) string { return filepath.Join(w.db.dir, name) }

// begin makes the datafile, with the header of the newest of the old ones but for the generation and the run that it stands for.
func (w *coldWriter) begin(run []*pair) error {
	h, err := datafile.ReadHeader(w.db.fs, w.db.dir, run[len(run)-1].id)
	if err != nil {
		return err
	}
	h.Generation = w.id.Generation
	h.Incompatible &^= header.Repeats
	h.Join(run[0].first, membersOf(run))
	if w.lean {
		h.Incompatible |= header.Lean
	}
	w.header = h
	w.buf = h.Append(nil)
	name := w.path(w.id.Name()) + tempSuffix
	if err := w.db.fs.Remove(name); err != nil && !isNotExist(err) {
		return err
	}
	w.file, err = w.db.create(name)
	return err
}

// add adds the pages of one item.
func (w *coldWriter) add(pages []coldPage) error {
	for i := range pages {
		p := &pages[i]
		kind := 0
		if p.Type.InArena() {
			kind = 1
		}
		if page.Repeats(p.Times) || p.Kind <= extent.Late && kind == 0 && page.Repeats(p.Values) {
			w.header.Incompatible |= header.Repeats
		}
		x := &w.open[kind]
		x.pages, x.lsns = append(x.pages, p.Page), append(x.lsns, uint64(p.lsn))
		if x.size += len(p.Times) + len(p.Values); x.size >= w.o.ExtentBytes || len(x.pages) >= coldExtentPages {
			if err := w.emit(kind); err != nil {
				return err
			}
		}
	}
	return nil
}

// emit builds an extent and writes it.
func (w *coldWriter) emit(kind int) error {
	x := &w.open[kind]
	if len(x.pages) == 0 {
		return nil
	}
	codec := w.o.Codec
	if kind == 1 && codec.Codec != extent.Zstd {
		codec = Codec{Codec: extent.Zstd, Level: textLevel}
	}
	w.pad()
	e := journal.Extent{Offset: w.size + int64(len(w.buf)), Sequence: uint64(len(w.extents) + 1)}
	for i := range x.pages {
		q := &x.pages[i]
		e.Pages = append(e.Pages, journal.Page{
			Item: q.Item, Type: q.Type, Kind: q.Kind, From: q.From, To: q.To, Count: uint32(q.Count), LSN: model.LSN(x.lsns[i]),
		})
	}
	pages := append(x.pages, extent.Page{Kind: kindSeals, Count: len(x.lsns), Values: page.AppendUints(nil, x.lsns)})
	start := len(w.buf)
	var err error
	if w.buf, err = extent.Build(w.buf, w.id.Extent(e.Sequence), codec.Codec, codec.Level, pages); err != nil {
		return err
	}
	e.Length = uint32(len(w.buf) - start)
	w.extents = append(w.extents, e)
	clear(x.pages)
	*x = coldExtent{pages: x.pages[:0], lsns: x.lsns[:0]}
	if w.size+int64(len(w.buf)) >= w.limit {
		return errKept
	}
	if len(w.buf) < tierWriteBytes {
		return nil
	}
	w.pad()
	return w.write()
}

func (w *coldWriter) pad() {
	w.buf = append(w.buf, make([]byte, (datafile.Align-len(w.buf)%datafile.Align)%datafile.Align)...)
}

func (w *coldWriter) write() error {
	if _, err := w.file.WriteAt(w.buf, w.size); err != nil {
		return err
	}
	n := len(w.buf)
	w.size, w.buf = w.size+int64(n), w.buf[:0]
	w.db.m.writtenBytes.Add(n)
	return w.move(n)
}

// finish writes the rest and the index, and puts both in their places: first the datafile, which is whole without the index. It returns the
// index.
func (w *coldWriter) finish() ([]byte, error) {
	err := errors.Join(w.emit(0), w.emit(1))
	if err == nil {
		err = w.write()
	}
	if err == nil {
		err = w.file.Sync()
	}
	err = errors.Join(err, w.file.Close())
	w.file = nil
	if err == nil && w.header.Incompatible&header.Repeats != 0 {
		err = w.writeHeader()
	}
	if err != nil {
		return nil, err
	}
	index := journal.AppendIndex(nil, w.id, w.extents)
	if roundUp(w.size)+roundUp(int64(len(index))) >= w.limit {
		return nil, errKept
	}
	name := w.path(w.id.JournalName())
	if err := writeFile(w.db.fs, name+tempSuffix, index); err != nil {
		return nil, err
	}
	data := w.path(w.id.Name())
	if err := errors.Join(w.db.fs.Rename(data+tempSuffix, data), w.db.fs.SyncDir(w.db.dir)); err != nil {
		return nil, err
	}
	return index, errors.Join(w.db.fs.Rename(name+tempSuffix, name), w.db.fs.SyncDir(w.db.dir))
}

// writeHeader writes the header again, now that all pages are known. The file has no name yet that a start would look at.
func (w *coldWriter) writeHeader() error {
	f, err := w.db.fs.OpenReadWrite(w.path(w.id.Name()) + tempSuffix)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(w.header.Append(nil), 0)
	if err == nil {
		err = f.SyncData()
	}
	return errors.Join(err, f.Close())
}

// abort removes what was written: the journalfile first, since a datafile without one is whole and would be taken for the pair.
func (w *coldWriter) abort() error {
	var errs []error
	if w.file != nil {
		errs = append(errs, w.file.Close())
	}
	for _, name := range []string{w.id.JournalName() + tempSuffix, w.id.Name() + tempSuffix, w.id.JournalName(), w.id.Name()} {
		if err := w.db.fs.Remove(w.path(name)); err != nil && !isNotExist(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, w.db.fs.SyncDir(w.db.dir))...)
}
