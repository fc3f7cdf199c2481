package postgres

import (
	"context"
	"fmt"
	"time"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/spool"
)

// instant is a place for a value.
type instant struct {
	item model.ItemID
	at   int64
}

// Append stores the values of b. See storage.Engine. Values at or before the newest of their item are looked up in the database to
// find duplicates; while it is away that is left to the writer, and such values are only flagged Late.
func (db *DB) Append(ctx context.Context, b *model.Batch) (model.LSN, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	db.appending.Lock()
	defer db.appending.Unlock()
	if db.closed.Load() {
		return 0, storage.ErrClosed
	}
	if err := db.admit(ctx, int64(b.SizeBytes()+len(b.Arena))); err != nil {
		return 0, err
	}
	a := db.resolve(ctx, b)
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	lsn := db.spool.End()
	if a.p.Batch.Len() > 0 || len(a.p.Batch.Marks) > 0 {
		var err error
		if lsn, err = db.spool.Append(a.p.Record); err != nil {
			db.m.refused.Inc()
			return 0, fmt.Errorf("the spool cannot be written (%w): %w", err, storage.ErrFull)
		}
		db.queueUp(a, lsn)
	}
	for i := range b.Items {
		b.Flags[i] |= a.flags[i]
		b.At[i] = a.at[i]
	}
	db.wait(b, lsn)
	return lsn, nil
}

// appended is what Append found out about a batch.
type appended struct {
	p     *pending
	at    []int64
	flags []model.Flag
}

// resolve finds flags and places of the rows.
func (db *DB) resolve(ctx context.Context, b *model.Batch) appended {
	a := appended{
		p:  &pending{Record: spool.Record{Batch: &model.Batch{ArrivedAt: b.ArrivedAt}}, bytes: b.SizeBytes()},
		at: append([]int64(nil), b.At...), flags: make([]model.Flag, b.Len()),
	}
	a.p.Batch.Marks = append(a.p.Batch.Marks, b.Marks...)
	// Pending rows are looked at before the database: whatever is written meanwhile is found in one or the other.
	stored := map[instant]storedValue{}
	items, needed := db.findSlow(b, &a, stored)
	if len(needed) > 0 {
		a.p.unsure = !db.lookUp(ctx, needed, stored)
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	taken := map[instant]int{} // rows of slow items in this batch
	for i, it := range items {
		if it == nil {
			continue
		}
		if it.slow {
			db.place(b, &a, i, it, taken, stored)
		}
		if a.flags[i]&model.Duplicate == 0 {
			a.keep(b, i, it.class)
		}
	}
	return a
}

// findSlow returns the item of each row that can be stored, and of the rows that are not behind all values of their item, and may be
// in the database, the place. Pending values at such places go into stored.
func (db *DB) findSlow(b *model.Batch, a *appended, stored map[instant]storedValue) ([]*item, []instant) {
	now := db.o.Now()
	items := make([]*item, b.Len())
	var needed []instant
	classes := *db.kept.Load()
	db.mu.Lock()
	defer db.mu.Unlock()
	db.generation++
	for i, id := range b.Items {
		if b.Types[i] > model.Binary {
			continue
		}
		it := db.get(id)
		at := b.At[i]
		if keep := int64(classes[it.class].History); (keep > 0 && at < now-keep) || !storable(at) {
			a.flags[i] |= model.Expired
			continue
		}
		items[i] = it
		if it.generation != db.generation {
			it.generation, it.slow, it.top = db.generation, false, it.bound(db.high)
		}
		if at > it.top {
			it.top = at
			continue
		}
		it.slow = true
		it.pendingFrom(id, at, stored)
		if it.types != 0 {
			needed = append(needed, instant{id, at})
		}
	}
	for _, it := range items {
		if it != nil {
			it.top = it.newest // from here on the newest of the rows that are placed
		}
	}
	return items, needed
}

// pendingFrom puts the pending values from an instant to the first free one into stored.
func (it *item) pendingFrom(id model.ItemID, at int64, stored map[instant]storedValue) {
	for k := it.find(at); k < len(it.waiting) && it.waiting[k].at == at; k, at = k+1, at+1 {
		if _, ok := stored[instant{id, at}]; ok {
			return // and those behind it
		}
		w := it.waiting[k]
		b := w.p.Batch
		stored[instant{id, at}] = storedValue{valueType: b.Types[w.row], bits: b.Bits[w.row], text: payloadOf(b, w.row)}
	}
}

// place finds where row i of a slow item goes.
func (db *DB) place(b *model.Batch, a *appended, i int, it *item, taken map[instant]int, stored map[instant]storedValue) {
	at, id := b.At[i], b.Items[i]
	if it.top < it.newest { // a look-up may have found the newest
		it.top = it.newest
	}
	for ; ; at++ {
		if k, ok := taken[instant{id, at}]; ok {
			if b.Types[k] == b.Types[i] && sameRow(b, k, i) {
				a.flags[i] = model.Duplicate
				return
			}
			continue
		}
		s, ok := stored[instant{id, at}]
		if !ok {
			k := it.find(at) // pending, behind one that the database has
			if k == len(it.waiting) || it.waiting[k].at != at {
				break
			}
			w := it.waiting[k]
			s = storedValue{valueType: w.p.Batch.Types[w.row], bits: w.p.Batch.Bits[w.row], text: payloadOf(w.p.Batch, w.row)}
		}
		if s.valueType == b.Types[i] && s.same(b, i) {
			a.flags[i] = model.Duplicate
			return
		}
	}
	taken[instant{id, at}] = i
	if at != b.At[i] {
		a.flags[i] |= model.Moved
	}
	if at < it.top || (!it.known && it.types != 0 && at < db.high) {
		a.flags[i] |= model.Late
	}
	it.top = max(it.top, at)
	a.at[i] = at
}

func payloadOf(b *model.Batch, i int) []byte {
	if b.Types[i].InArena() {
		return b.Bytes(i)
	}
	return nil
}

func sameRow(b *model.Batch, i, k int) bool {
	if b.Types[i].InArena() {
		return string(b.Bytes(i)) == string(b.Bytes(k))
	}
	return b.Bits[i] == b.Bits[k]
}

// keep adds row i to what is stored.
func (a *appended) keep(b *model.Batch, i int, class uint8) {
	kept := a.p.Batch
	if b.Types[i].InArena() {
		kept.AppendBytes(b.Items[i], a.at[i], b.Types[i], b.Bytes(i))
	} else {
		kept.Append(b.Items[i], a.at[i], b.Types[i], b.Bits[i])
	}
	kept.Flags[kept.Len()-1] = b.Flags[i] | a.flags[i]
	a.p.Classes = append(a.p.Classes, class)
}

// queueUp makes the rows visible and hands them to the writer, or leaves them in the spool while memory has no room for more. The writer may have found
// them in the spool by then.
func (db *DB) queueUp(a appended, lsn model.LSN) {
	db.mu.Lock()
	defer db.mu.Unlock()
	a.p.lsn = lsn
	kept := a.p.Batch
	db.keepMarks(kept.Marks)
	refilled := lsn <= db.pushed
	room := !refilled && (db.journal != nil || !db.spilled && (db.pendingBytes+int64(a.p.bytes) <= db.o.PendingBytes || len(db.queue) == 0))
	for i, id := range kept.Items {
		it := db.items.Get(id)
		it.newest = max(it.newest, kept.At[i])
		if kept.At[i] > db.high {
			it.known = true
		}
		if room {
			it.add(ref{at: kept.At[i], p: a.p, row: i})
		}
	}
	for _, at := range kept.At {
		db.high, db.low = max(db.high, at), min(db.low, at)
	}
	switch {
	case room:
		db.push(a.p)
	case !refilled:
		db.spilled = true
	}
	poke(db.wake)
}

// push queues a batch. The caller holds db.mu.
func (db *DB) push(p *pending) {
	db.queue = append(db.queue, p)
	db.pendingBytes += int64(p.bytes)
	db.queued, db.pushed = p.lsn, p.lsn
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// admit waits until there is room for a batch. While the database is slow it holds the caller back; while it is away the spool takes
// values until its bound, and then it fails with ErrFull.
func (db *DB) admit(ctx context.Context, need int64) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if db.closed.Load() {
			return storage.ErrClosed
		}
		wait := db.progress.Next()
		db.mu.RLock()
		live := int64(db.spool.End() - db.applied)
		memory := db.pendingBytes > db.o.PendingBytes || db.spilled
		db.mu.RUnlock()
		away := db.away.Load()
		if db.journal != nil {
			if err := db.refused(away); err != nil {
				db.m.refused.Inc()
				return err
			}
			away = nil
		}
		switch {
		case live == 0:
			return nil
		case live+need > db.o.SpoolBytes && away != nil:
			db.m.refused.Inc()
			db.full.Store(true)
			return fmt.Errorf("the spool is at its limit and the database cannot be written (%w): %w", *away, storage.ErrFull)
		case live+need <= db.o.SpoolBytes && (away != nil || !memory):
			return nil
		}
		poke(db.wake)
		select {
		case <-wait:
		case <-ctx.Done():
		case <-db.ctx.Done():
		}
	}
}

// waiter are the completions of a batch that ends at lsn.
type waiter struct {
	lsn  model.LSN
	done []*model.Completion
}

// wait takes the completions over.
func (db *DB) wait(b *model.Batch, lsn model.LSN) {
	if db.o.Durability == Relaxed && db.journal == nil {
		b.Finish(nil)
		return
	}
	if len(b.Done) == 0 {
		return
	}
	w := waiter{lsn: lsn, done: append([]*model.Completion(nil), b.Done...)}
	clear(b.Done)
	b.Done = b.Done[:0]
	db.waitMu.Lock()
	db.waiting = append(db.waiting, w)
	db.waitMu.Unlock()
	poke(db.wakeSync)
}

// runSyncer syncs the spool for all who wait.
func (db *DB) runSyncer() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-db.ctx.Done():
			return
		case <-db.wakeSync:
		case <-tick.C:
		}
		if db.journal != nil {
			db.finishCommitted(db.o.Term.Err())
			continue
		}
		db.finishWaiting()
	}
}

func (db *DB) finishWaiting() {
	db.waitMu.Lock()
	waiting := db.waiting
	db.waiting = nil
	db.waitMu.Unlock()
	durable, err := db.spool.Sync()
	if err != nil {
		db.o.Logger.Error("the spool could not be synced", "error", err)
	}
	for _, w := range waiting {
		failed := err
		if db.spool.Lost(w.lsn) {
			failed = fmt.Errorf("the value is not durable: %w", storage.ErrFull)
		} else if w.lsn <= durable {
			failed = nil
		}
		for _, c := range w.done {
			c.Finish(failed)
		}
	}
}
