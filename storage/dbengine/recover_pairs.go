package dbengine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/journal"
	"tidemark/storage/dbengine/page"
)

// loadPairs opens all pairs, registers their pages, and returns how far the log was when the last of them was sealed.
func (db *DB) loadPairs(ctx context.Context, names []string) (model.LSN, error) {
	var ids []datafile.ID
	has := map[string]bool{}
	for _, name := range names {
		if id, _, ok := datafile.ParseName(name); ok {
			has[name] = true
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
			db.pairs.next = max(db.pairs.next, id.Number)
		}
	}
	sortIDs(ids)
	heads := readHeads(db.fs, db.dir, ids)
	ids, replaced := heads.divide(ids)
	for _, id := range replaced {
		db.removeReplaced(id)
	}
	lsn := model.LSN(0)
	newest := heads.growing(ids)
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if !has[id.Name()] {
			db.quarantine(id.JournalName(), fmt.Errorf("its datafile %s is missing", id.Name()))
			continue
		}
		if i == newest && !has[id.JournalName()] && db.dropUnborn(id) {
			continue
		}
		p, err := db.loadPair(id, has[id.JournalName()], i == newest)
		if errors.Is(err, header.ErrHeader) {
			db.quarantine(id.Name(), err)
			if has[id.JournalName()] {
				db.quarantine(id.JournalName(), fmt.Errorf("its datafile %s is damaged", id.Name()))
			}
			continue
		}
		if err != nil {
			return 0, err
		}
		db.pairs.add(p)
		lsn = max(lsn, db.register(p))
		db.values.Add(int64(p.values))
		p.extents = nil
		if p.journal != nil {
			db.openOut(p)
			db.pairs.setOpen(p)
		} else {
			db.files.finish(p)
		}
		if p.index.Load() != nil {
			db.publish(p)
		}
	}
	return lsn, nil
}

// dropUnborn removes a datafile whose creation a power cut interrupted: it has no journalfile and no byte that is not zero. It
// reports whether it did.
func (db *DB) dropUnborn(id datafile.ID) bool {
	b, err := readAll(db, id.Name(), header.Bytes)
	if err != nil || slices.ContainsFunc(b, func(x byte) bool { return x != 0 }) {
		return false
	}
	if err := errors.Join(db.fs.Remove(filepath.Join(db.dir, id.Name())), db.fs.SyncDir(db.dir)); err != nil {
		db.o.Logger.Warn("remove a datafile that was not finished", "file", id.Name(), "error", err)
		return false
	}
	db.space.release(roundUp(int64(len(b))))
	return true
}

// register makes the pages of a pair known to their series, if it has no index to find them in.
func (db *DB) register(p *pair) model.LSN {
	lsn := model.LSN(0)
	x := p.index.Load()
	if x != nil {
		lsn = x.parts.Footer().Summary.LSN
	}
	for i := range p.extents {
		e := &p.extents[i]
		ref := place{at: uint32(e.Offset / datafile.Align), length: e.Length, sequence: uint32(e.Sequence)}
		p.note(e)
		p.sequence = max(p.sequence, e.Sequence)
		for slot := range e.Pages {
			q := &e.Pages[slot]
			if q.Kind == kindSeals || x != nil {
				continue
			}
			s := db.shardOf(q.Item).get(q.Item)
			s.adopt(pageRef{
				pair: p, at: ref.at, length: ref.length, sequence: ref.sequence, slot: uint16(slot), from: q.From, to: q.To,
				count: q.Count, valueType: q.Type, kind: q.Kind,
			})
			if q.Kind != extent.Hourly {
				s.newest = max(s.newest, q.To)
				s.floor = s.newest
			}
			s.sealedLSN = max(s.sealedLSN, q.LSN)
			lsn = max(lsn, q.LSN)
		}
	}
	return lsn
}

// loadPair opens a pair and finds its extents: from the journalfile as far as that is intact, from the datafile where not.
// The newest pair, if it was not closed, is opened for appending.
func (db *DB) loadPair(id datafile.ID, hasJournal, newest bool) (*pair, error) {
	file, err := datafile.Open(db.fs, db.dir, id, true)
	if err != nil {
		return nil, err
	}
	size, err := file.Size()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	p := &pair{id: id, file: file, files: &db.files, users: 1, gone: db.pairGone, oldest: minTime, newestValue: minTime, newestHour: minTime}
	p.charged = roundUp(size)
	h, err := datafile.ReadHeader(db.fs, db.dir, id)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	p.first, _, p.members = h.Run()
	p.lean = h.Tier == header.Raw && h.Incompatible&header.Lean != 0
	p.tier, p.source, p.merged = h.Tier, h.Source, h.Tier != header.Raw && h.Compatible&header.Merged != 0
	newest = newest && p.tier == header.Raw
	if hasJournal {
		indexed, err := db.loadIndex(p, size)
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if indexed {
			p.charged += roundUp(p.journalSize)
			return p, nil
		}
	}
	c, reason, err := db.loadJournal(id, hasJournal)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	p.journalSize, p.size, p.charged = c.journalSize, header.Bytes, roundUp(size)+roundUp(c.journalSize)
	for _, e := range c.Extents {
		if e.Offset+int64(e.Length) > size {
			reason = errors.Join(reason, fmt.Errorf("extent %d reaches to byte %d of a datafile of %d", e.Sequence, e.Offset+int64(e.Length), size))
			continue
		}
		p.extents = append(p.extents, e)
		p.size = max(p.size, e.Offset+int64(e.Length))
	}
	whole := c.Closed && c.Damage == nil
	adopted := 0
	if !whole {
		if adopted, err = db.scanTail(p, size); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	if reason != nil {
		db.o.Logger.Error("a journalfile is damaged; its index is made again from the datafile",
			"file", id.JournalName(), "adopted", adopted, "reason", reason)
	}
	if whole && reason == nil {
		return p, nil
	}
	if err := db.mendPair(p, newest && !c.Closed, adopted > 0 || reason != nil, size); err != nil {
		return nil, errors.Join(err, db.files.drop(p))
	}
	return p, nil
}

// loaded is a journalfile as it was found.
type loaded struct {
	journal.Contents
	journalSize int64
}

// loadJournal reads a journalfile; reason says what is wrong with it.
func (db *DB) loadJournal(id datafile.ID, exists bool) (c loaded, reason, err error) {
	if !exists {
		return c, fmt.Errorf("%s is missing", id.JournalName()), nil
	}
	b, err := readAll(db, id.JournalName(), journal.MaxBytes)
	if err != nil {
		return c, nil, err
	}
	c.journalSize = int64(len(b))
	contents, err := journal.Read(b, id)
	if err != nil {
		if !errors.Is(err, header.ErrHeader) {
			return c, nil, err
		}
		return c, err, nil
	}
	c.Contents = *contents
	return c, contents.Damage, nil
}

func readAll(db *DB, name string, limit int64) ([]byte, error) {
	f, err := db.fs.Open(filepath.Join(db.dir, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("%s: %w: %d bytes, expected at most %d", name, header.ErrHeader, size, limit)
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); n < len(b) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

// scanTail adopts the intact extents behind those that the journalfile names. Behind a hole nothing is known of how far
// the log was: those pages do not count for skipping log records, so that a value of the hole is taken from the log.
func (db *DB) scanTail(p *pair, size int64) (int, error) {
	next := uint64(1)
	for i := range p.extents {
		next = max(next, p.extents[i].Sequence+1)
	}
	adopted, trusted := 0, true
	_, damage, err := p.file.Scan(p.size, func(offset int64, sequence uint64, b []byte) error {
		if sequence < next || extent.Verify(b, p.id.Extent(sequence)) != nil {
			trusted = false
			return nil
		}
		e, err := readSeals(b, p.id.Extent(sequence))
		if err != nil {
			trusted = false
			return nil
		}
		trusted = trusted && sequence == next
		next = sequence + 1
		if !trusted {
			for i := range e.Pages {
				e.Pages[i].LSN = 0
			}
		}
		e.Offset, e.Length, e.Sequence = offset, uint32(len(b)), sequence
		p.extents = append(p.extents, e)
		p.size = offset + int64(len(b))
		adopted++
		return nil
	})
	if len(damage) > 0 && adopted > 0 {
		db.o.Logger.Warn("a datafile has bytes that are no extents", "file", p.id.Name(), "stretches", len(damage), "first", damage[0].From)
	}
	return adopted, err
}

// readSeals reads what an extent's directory and last page say, as the journal has it.
func readSeals(b []byte, id extent.Identity) (journal.Extent, error) {
	var e journal.Extent
	d, err := extent.Parse(b, id)
	if err != nil {
		return e, err
	}
	n := d.Len() - 1
	last, err := d.Page(n)
	if err != nil {
		return e, err
	}
	if last.Kind != kindSeals || last.Count != n {
		return e, fmt.Errorf("%v: %w: no page of seals at its end", id, extent.ErrExtent)
	}
	lsns, err := page.DecodeUints(nil, last.Values, n)
	if err != nil {
		return e, err
	}
	for i := range n {
		r := d.Row(i)
		e.Pages = append(e.Pages, journal.Page{
			Item: r.Item, Type: r.Type, Kind: r.Kind, From: r.From, To: r.To, Count: uint32(r.Count), LSN: model.LSN(lsns[i]),
		})
	}
	return e, nil
}

// mendPair makes a pair that was open, or whose journalfile was damaged, whole: open for appending if grow, closed with an
// index otherwise.
func (db *DB) mendPair(p *pair, grow, changed bool, size int64) error {
	if !grow {
		if err := db.writeIndex(p, p.extents); err != nil {
			db.o.Logger.Warn("the index of a pair was not written", "file", p.id.JournalName(), "error", err)
		}
		return nil
	}
	if p.size < size { // the rest is what a power cut left of a write
		if err := p.file.Truncate(p.size); err != nil {
			return fmt.Errorf("cut %s: %w", p.id.Name(), err)
		}
		p.charged += roundUp(p.size) - roundUp(size)
		db.space.release(roundUp(size) - roundUp(p.size))
	}
	if changed {
		if err := db.rewriteJournal(p); err != nil {
			db.o.Logger.Warn("the journalfile was not written anew", "file", p.id.JournalName(), "error", err)
			return nil // it is closed and stays as it is
		}
	}
	f, err := db.fs.OpenReadWrite(filepath.Join(db.dir, p.id.JournalName()))
	if err != nil {
		return err
	}
	p.journal = f
	return nil
}

// rewriteJournal replaces the journalfile of a pair that grows.
func (db *DB) rewriteJournal(p *pair) error {
	b := journal.Header(p.id, false)
	for i := range p.extents {
		b = journal.AppendRecord(b, p.id, int64(len(b)), &p.extents[i])
	}
	size, old := roundUp(int64(len(b))), roundUp(p.journalSize)
	if err := db.reserve(size); err != nil {
		return err
	}
	if err := db.replaceFile(p.id.JournalName(), b); err != nil {
		db.space.release(size)
		return err
	}
	db.space.release(old)
	p.charged += size - old
	p.journalSize = int64(len(b))
	return nil
}
