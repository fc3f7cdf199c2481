package dbengine

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
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

// begin makes the datafile, with the old one's header but for the generation.
func (w *coldWriter) begin(old datafile.ID) error {
	h, err := datafile.ReadHeader(w.db.fs, w.db.dir, old)
	if err != nil {
		return err
	}
	h.Generation = w.id.Generation
	w.buf = h.Append(nil)
	name := w.path(w.id.Name()) + tempSuffix
	if err := w.db.fs.Remove(name); err != nil && !isNotExist(err) {
		return err
	}
	w.file, err = w.db.fs.Create(name)
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

// pair writes one pair anew and puts it in the place of the old one.
func (r *recompressing) pair(old *pair) error {
	db := r.db
	if !old.claim() {
		return errBusy
	}
	defer old.unclaim()
	if !old.acquire() {
		return errGone
	}
	defer old.release()
	if s := db.o.Snapshots; s != nil && s.Holds(old.id.Name()) {
		return errors.New("a kept snapshot has it, so that nothing would be freed")
	}
	old.mu.Lock()
	room := old.charged
	old.mu.Unlock()
	if err := r.reserve(room, old); err != nil {
		return err
	}
	w := &coldWriter{
		db: db, id: datafile.ID{Generation: coldGeneration(old.id.Generation), Number: old.id.Number}, o: &r.o, move: r.move, limit: room,
	}
	p, folded, err := r.rewrite(w, old)
	if err != nil {
		err = errors.Join(err, w.abort())
		db.space.release(room)
		return err
	}
	db.space.release(room - p.charged)
	if err := r.replace(old, p); err != nil {
		err = errors.Join(err, db.files.drop(p), w.abort())
		db.space.release(p.charged)
		return err
	}
	r.at.WrittenPairs++
	r.at.BeforeBytes += room
	r.at.AfterBytes += p.charged
	r.at.FoldedValues += folded
	return nil
}

// reserve takes room for a pair, of which older pairs may have to go, but not the one that is to be written anew.
func (r *recompressing) reserve(size int64, old *pair) error {
	if free, _, err := r.db.fs.Free(r.db.dir); err == nil && free < size+freeBytes {
		return fmt.Errorf("%d bytes are free on the disk, expected %d: %w", free, size+freeBytes, storage.ErrFull)
	}
	for !r.db.space.take(size) {
		if r.db.PinnedBytes() > 0 && r.db.oldestIsPinned() {
			return fmt.Errorf("snapshots hold the room that it takes: %w", storage.ErrFull)
		}
		r.db.pairs.mu.Lock()
		i := r.db.pairs.oldest()
		last := i < 0 || r.db.pairs.list[i] == old
		r.db.pairs.mu.Unlock()
		if last || !r.db.deleteOldest() {
			return fmt.Errorf("it takes %d bytes for a while, and it is the oldest that is left: %w", size, storage.ErrFull)
		}
	}
	return nil
}

// rewrite reads a pair and writes another of the same content.
func (r *recompressing) rewrite(w *coldWriter, old *pair) (*pair, uint64, error) {
	f, err := old.files.use(old)
	if err != nil {
		return nil, 0, err
	}
	defer old.files.done(old)
	if err := w.begin(old.id); err != nil {
		return nil, 0, err
	}
	in := &pairReader{db: r.db, pair: old, file: f, heads: map[uint64]*extent.Directory{}, whole: map[uint64]*extent.Directory{}}
	end := r.at.DoneBytes + old.size + old.journalSize
	in.read = func(n int) error {
		r.at.DoneBytes = min(r.at.DoneBytes+int64(n), end)
		return r.move(n)
	}
	var fold folding
	err = in.items(func(pages []coldPage) error {
		out, err := fold.item(pages)
		if err != nil {
			return err
		}
		return w.add(out)
	})
	if err != nil {
		return nil, 0, err
	}
	index, err := w.finish()
	if err != nil {
		return nil, 0, err
	}
	p, err := r.db.openCold(w, old, index)
	return p, fold.folded, err
}

// openCold opens what was written.
func (db *DB) openCold(w *coldWriter, old *pair, index []byte) (*pair, error) {
	file, err := datafile.Open(db.fs, db.dir, w.id, false)
	if err != nil {
		return nil, err
	}
	p := &pair{
		id: w.id, tier: old.tier, source: old.source, file: file, files: &db.files, users: 1, gone: db.pairGone, size: w.size,
		journalSize: int64(len(index)), charged: roundUp(w.size) + roundUp(int64(len(index))),
		oldest: minTime, newestValue: minTime, newestHour: minTime,
	}
	for i := range w.extents {
		p.note(&w.extents[i])
		p.sequence = w.extents[i].Sequence
	}
	parts, err := journal.OpenParts(bytes.NewReader(index), p.id, int64(len(index)))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	db.setIndex(p, parts, nil)
	db.files.finish(p)
	return p, nil
}

// replace puts a pair in the place of another, and removes that when nobody reads it any more.
func (r *recompressing) replace(old, p *pair) error {
	db := r.db
	if err := db.exchange(old, p); err != nil {
		return err
	}
	// From here on the old pair is out of sight. Should waiting be cut short, the next start removes its files.
	if err := db.readers.wait(db.ctx); err != nil {
		return nil //nolint:nilerr // the pair is replaced, and the engine is being closed
	}
	old.mu.Lock()
	old.deleted = true
	old.mu.Unlock()
	db.cache.Forget(old.key)
	db.cache.Forget(old.index.Load().key)
	return nil // its files go when r.pair lets go of it
}

// exchange swaps two pairs in the list and in the shards. No page is written meanwhile.
func (db *DB) exchange(old, p *pair) error {
	db.flushing.Lock()
	defer db.flushing.Unlock()
	db.pairs.mu.Lock()
	list := append([]*pair(nil), db.pairs.list...)
	found := false
	for i := range list {
		if list[i] == old {
			list[i], found = p, true
		}
	}
	if found {
		db.pairs.nextKey++
		p.key = db.pairs.nextKey
		db.pairs.list = list
	}
	db.pairs.mu.Unlock()
	if !found { // it was deleted for its room
		return errGone
	}
	s := &p.index.Load().parts.Footer().Summary
	e := indexedPair{pair: p, values: s.ValueTimes, rows: s.RowTimes, first: s.FirstItem, last: s.LastItem}
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		indexed := append([]indexedPair(nil), sh.indexed...) // a new slice: readers may hold the old one
		for k := range indexed {
			if indexed[k].pair == old {
				indexed[k] = e
			}
		}
		sh.indexed = indexed
		sh.mu.Unlock()
	}
	db.values.Add(int64(p.values) - int64(old.values))
	return nil
}

// dropReplaced removes pairs whose next generation is there, which a crash left, and returns the others. A datafile has its name only when it is
// whole.
func (db *DB) dropReplaced(ids []datafile.ID, has map[string]bool) []datafile.ID {
	kept := ids[:0]
	for i, id := range ids { // sorted by number, then generation
		if i+1 < len(ids) && ids[i+1].Number == id.Number && has[ids[i+1].Name()] {
			if _, err := datafile.ReadHeader(db.fs, db.dir, ids[i+1]); err == nil || !errors.Is(err, header.ErrHeader) {
				db.removeReplaced(id)
				continue
			}
		}
		kept = append(kept, id)
	}
	return kept
}

func (db *DB) removeReplaced(id datafile.ID) {
	for _, name := range []string{id.JournalName(), id.Name()} {
		path := filepath.Join(db.dir, name)
		info, err := db.fs.Stat(path)
		if err != nil {
			continue
		}
		if err := errors.Join(db.fs.Remove(path), db.fs.SyncDir(db.dir)); err != nil {
			db.o.Logger.Warn("remove a file that was replaced", "file", name, "error", err)
			continue
		}
		db.space.release(roundUp(info.Size()))
	}
}
