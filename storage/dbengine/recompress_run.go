package dbengine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"tidemark/storage"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/journal"
)

// run writes neighbouring pairs anew, as one, and puts it in their place.
func (r *recompressing) run(run []*pair) error {
	db, borrowed := r.db, int64(0)
	defer func() { db.borrowed.Add(-borrowed) }() // after the old pairs were let go of
	for _, old := range run {
		if !old.claim() {
			return errBusy
		}
		defer old.unclaim()
		if !old.acquire() {
			return errGone
		}
		defer old.release()
	}
	if s := db.o.Snapshots; s != nil {
		for _, old := range run {
			if s.Holds(old.id.Name()) {
				return fmt.Errorf("a kept snapshot has %s, so that nothing would be freed", old.id.Name())
			}
		}
	}
	room := chargedBytes(run)
	if err := r.reserve(room, run); err != nil {
		return err
	}
	borrowed = room
	db.borrowed.Add(room)
	w := &coldWriter{db: db, id: nextGeneration(run), o: &r.o, move: r.move, limit: room, lean: db.mayBeLean(run)}
	p, folded, err := r.rewrite(w, run)
	if err != nil {
		err = errors.Join(err, w.abort())
		db.space.release(room)
		return err
	}
	db.space.release(room - p.charged)
	before := pageCount(run)
	if err := r.replace(run, p); err != nil {
		err = errors.Join(err, db.files.drop(p), w.abort())
		db.space.release(p.charged)
		return err
	}
	r.at.WrittenPairs += len(run)
	if len(run) > 1 {
		r.at.MergedPairs += len(run)
		r.at.JoinedPairs++
		if err := db.joinEmptyTiers(r.ctx, p); err != nil && r.ctx.Err() == nil {
			db.o.Logger.Warn("empty pairs of a tier could not be made one; they stay as they are", "file", p.id.Name(), "error", err)
		}
	}
	r.at.BeforeBytes += room
	r.at.AfterBytes += p.charged
	r.at.BeforePages += before
	r.at.AfterPages += p.pageCount
	r.at.FoldedValues += folded
	return nil
}

// mayBeLean reports whether the rows of hours of a run are in the tier, or left out already.
func (db *DB) mayBeLean(run []*pair) bool {
	members := uint32(0)
	for _, p := range db.pairs.all() {
		if p.tier == header.Hour && slices.ContainsFunc(run, func(o *pair) bool { return o.covers(p.source) }) {
			members += p.members
		}
	}
	return members >= membersOf(run) || slices.ContainsFunc(run, func(p *pair) bool { return p.lean })
}

// nextGeneration is the identity of what takes the place of a run: the last number, and a generation above all of theirs.
func nextGeneration(run []*pair) datafile.ID {
	id := run[len(run)-1].id
	for _, p := range run {
		id.Generation = max(id.Generation, p.id.Generation)
	}
	id.Generation = coldGeneration(id.Generation)
	return id
}

// membersOf counts the pairs, as they were first written, that a run stands for.
func membersOf(run []*pair) (members uint32) {
	for _, p := range run {
		members += p.members
	}
	return members
}

// chargedBytes is what a run takes of the disk space.
func chargedBytes(run []*pair) (size int64) {
	for _, p := range run {
		p.mu.Lock()
		size += p.charged
		p.mu.Unlock()
	}
	return size
}

func pageCount(run []*pair) (count int64) {
	for _, p := range run {
		p.mu.Lock()
		count += p.pageCount
		p.mu.Unlock()
	}
	return count
}

// reserve takes room for a run, of which older pairs may have to go, but none that is to be written anew, and none that is younger than the minimum age.
func (r *recompressing) reserve(size int64, run []*pair) error {
	db := r.db
	if free, _, err := db.fs.Free(db.dir); err == nil && free < size+freeBytes {
		return fmt.Errorf("%d bytes are free on the disk, expected %d: %w", free, size+freeBytes, storage.ErrFull)
	}
	for !db.space.take(size) {
		if db.PinnedBytes() > 0 && db.oldestIsPinned() {
			return fmt.Errorf("snapshots hold the room that it takes: %w", storage.ErrFull)
		}
		db.pairs.mu.Lock()
		i := db.pairs.oldest()
		last := i < 0 || slices.Contains(run, db.pairs.list[i])
		db.pairs.mu.Unlock()
		if !last {
			if p := db.nextToGo(); p != nil {
				if y, short := db.tooYoung(p); short {
					return fmt.Errorf("it takes %d bytes for a while, and %s, which would have to go, has values that are %v old where the minimum age is %v: %w",
						size, p.id.Name(), y.age.Round(time.Second), y.minimum, storage.ErrFull)
				}
			}
		}
		if last || !db.deleteOldest() {
			return fmt.Errorf("it takes %d bytes for a while, and it is the oldest that is left: %w", size, storage.ErrFull)
		}
	}
	return nil
}

// rewrite reads a run and writes one pair of the same content.
func (r *recompressing) rewrite(w *coldWriter, run []*pair) (*pair, uint64, error) {
	if err := w.begin(run); err != nil {
		return nil, 0, err
	}
	end := r.at.DoneBytes
	for _, p := range run {
		end += p.size + p.journalSize
	}
	read := func(n int) error {
		r.at.DoneBytes = min(r.at.DoneBytes+int64(n), end)
		return r.move(n)
	}
	fold := folding{lean: w.lean}
	err := r.db.joinItems(run, read, func(pages []coldPage) error {
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
	p, err := r.db.openCold(w, run, index)
	return p, fold.folded, err
}

// openCold opens what was written.
func (db *DB) openCold(w *coldWriter, run []*pair, index []byte) (*pair, error) {
	file, err := datafile.Open(db.fs, db.dir, w.id, false)
	if err != nil {
		return nil, err
	}
	p := &pair{
		id: w.id, tier: run[0].tier, source: run[len(run)-1].source, lean: w.lean, first: run[0].first, members: membersOf(run), file: file, files: &db.files, users: 1, gone: db.pairGone, size: w.size,
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

// replace puts a pair in the place of a run, whose files are removed when nobody reads them any more.
func (r *recompressing) replace(run []*pair, p *pair) error {
	db := r.db
	if err := db.exchange(run, p); err != nil {
		return err
	}
	// From here on the old pairs are out of sight. Should waiting be cut short, the next start removes their files.
	if err := db.readers.wait(db.ctx); err != nil {
		return nil //nolint:nilerr // the run is replaced, and the engine is being closed
	}
	for _, old := range run {
		old.mu.Lock()
		old.deleted = true
		old.mu.Unlock()
		db.cache.Forget(old.key)
		db.cache.Forget(old.index.Load().key)
	}
	return nil // their files go when r.run lets go of them
}

// joinEmptyTiers makes one pair of those of a tier that sum up parts of a merged pair, if all of them are empty: there are texts only.
func (db *DB) joinEmptyTiers(ctx context.Context, merged *pair) error {
	db.tiering.Lock()
	defer db.tiering.Unlock()
	var errs []error
	for _, tier := range []header.Tier{header.Minute, header.Hour} {
		parts, members := 0, uint32(0)
		for _, p := range db.pairs.all() {
			if p.tier == tier && merged.covers(p.source) && p.pagesNow() == 0 {
				parts, members = parts+1, members+p.members
			}
		}
		if parts > 1 && members == merged.members {
			errs = append(errs, db.buildTier(ctx, tier, merged))
		}
	}
	return errors.Join(errs...)
}

func (p *pair) pagesNow() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pageCount
}

// exchange swaps a run and a pair in the list and in the shards. No page is written meanwhile.
func (db *DB) exchange(run []*pair, p *pair) error {
	db.flushing.Lock()
	defer db.flushing.Unlock()
	if !db.pairs.exchange(run, p) { // one of them was deleted for its room
		return errGone
	}
	s := &p.index.Load().parts.Footer().Summary
	e := indexedPair{pair: p, values: s.ValueTimes, rows: s.RowTimes, first: s.FirstItem, last: s.LastItem}
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		// New slices: readers may hold the old one.
		rest := slices.DeleteFunc(slices.Clone(sh.indexed), func(o indexedPair) bool { return slices.Contains(run, o.pair) })
		sh.indexed = insertPair(rest, e)
		if p.lean {
			sh.promote(p)
		}
		sh.mu.Unlock()
	}
	db.values.Add(int64(p.values))
	for _, old := range run {
		db.values.Add(-int64(old.values))
	}
	return nil
}

// exchange puts a pair in the place of the last of a run, if all of it is still there.
func (ps *pairs) exchange(run []*pair, p *pair) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var list []*pair
	found := 0
	for _, other := range ps.list {
		switch {
		case other == run[len(run)-1]:
			found++
			list = append(list, p)
		case slices.Contains(run, other):
			found++
		default:
			list = append(list, other)
		}
	}
	if found < len(run) {
		return false
	}
	ps.nextKey++
	p.key = ps.nextKey
	ps.list = list
	return true
}

// removeReplaced removes what a crash left of a pair that was written anew.
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
