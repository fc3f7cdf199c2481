package dbengine

import (
	"time"

	"tidemark/model"
	"tidemark/storage/dbengine/extent"
)

// recentNanos is how far behind the newest value of all others are that are looked for in memory, if anywhere.
const recentNanos = int64(time.Minute)

// warm reads the pages in which late values of a batch will be looked for, so that they are in the cache once its shards are locked: other batches
// then do not wait for the disk. What it misses is read under the lock.
func (db *DB) warm(b *model.Batch) {
	defer db.readers.leave(db.readers.enter())
	w := warming{db: db}
	for _, i := range db.lookedUp(b) {
		if id, at := b.Items[i], b.At[i]; id != w.item || at < w.from || at > w.to {
			w.value(id, at)
		}
	}
}

// lookedUp returns the rows of a batch that will be looked for in pages. A shard is locked once for neighbours.
func (db *DB) lookedUp(b *model.Batch) (rows []int) {
	limit := db.newest.Load() - recentNanos
	var locked *shard
	for i, id := range b.Items {
		if b.At[i] >= limit || b.Types[i] > model.Binary {
			continue
		}
		sh := db.shardOf(id)
		if sh != locked {
			if locked != nil {
				locked.mu.Unlock()
			}
			sh.lockBriefly()
			locked = sh
		}
		if s := sh.find(id); s == nil || !s.known || b.At[i] <= s.floor {
			rows = append(rows, i)
		}
	}
	if locked != nil {
		locked.mu.Unlock()
	}
	return rows
}

// warming is one warm.
type warming struct {
	db *DB
	// item and from to to are of the page read last.
	item     model.ItemID
	from, to int64
	refs     []pageRef
}

// value reads what a value is looked for in.
func (w *warming) value(id model.ItemID, at int64) {
	sh := w.db.shardOf(id)
	w.refs = w.refs[:0]
	w.item = 0
	sh.lockBriefly()
	indexed := sh.indexed
	s := sh.find(id)
	known := s != nil && s.known
	if s != nil && s.disk != nil {
		w.refs = append(w.refs, s.disk.pages[firstPage(s.disk.pages, at):]...)
		w.refs = append(w.refs, s.disk.lates...)
	}
	sh.mu.Unlock()
	for i := range w.refs {
		w.read(id, &w.refs[i], at)
	}
	based := false
	for i := len(indexed) - 1; i >= 0; i-- {
		e := &indexed[i]
		reaches := e.values.Reaches(at, at+1)
		if !e.mayHold(id) || !reaches && (known || based) {
			continue
		}
		// An error is told when the value is looked for. A series that is not known asks for its newest page too.
		_, _ = w.db.indexedPages(e.pair, id, func(ref *pageRef) {
			based = based || ref.kind == extent.Values
			w.read(id, ref, at)
		})
	}
}

// read reads a page if it may hold a value.
func (w *warming) read(id model.ItemID, ref *pageRef, at int64) {
	if ref.kind > extent.Late || at < ref.from || at > ref.to {
		return
	}
	if _, err := w.db.readPage(ref); err == nil {
		w.item, w.from, w.to = id, ref.from, ref.to
	}
}
