package dbengine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"tidemark/model"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/page"
	"tidemark/storage/dbengine/pagecache"
	"tidemark/storage/dbengine/translog"
)

const (
	// hotAge is how long a value may wait in a hot page.
	hotAge = 24 * time.Hour
	// groupBytes is how much is written between two syncs of a datafile.
	groupBytes = 8 << 20
	// maxTextPageBytes is the most text in one page.
	maxTextPageBytes = 256 << 10
)

// poke wakes the flusher.
func (db *DB) poke() {
	select {
	case db.wake <- struct{}{}:
	default:
	}
}

// runFlusher writes dirty pages, recycles the log and keeps the quota until the engine is closed.
func (db *DB) runFlusher() {
	ticker := time.NewTicker(db.o.limits.tick)
	defer ticker.Stop()
	for {
		select {
		case <-db.ctx.Done():
			return
		case <-ticker.C:
		case <-db.wake:
		}
		db.work(db.ctx)
	}
}

// work does one round of the flusher.
func (db *DB) work(ctx context.Context) {
	db.flushing.Lock()
	defer db.flushing.Unlock()
	pressed := db.sealOld()
	if pressed || db.dirtyBytes.Load() >= db.o.limits.dirtyBytes || db.dirtyIsOld() {
		db.noteFlush(db.flush(ctx))
	}
	db.balance(ctx, 1)
	db.writeMended()
	db.watchAge()
	db.recycle(ctx)
	db.progress.Announce()
	if err := db.log.Reserve(); err != nil && !translog.IsFull(err) {
		db.o.Logger.Warn("allocate a spare log file", "error", err)
	}
}

// noteFlush remembers whether pages can be written, and says so when that changes.
func (db *DB) noteFlush(err error) {
	if err != nil && (errors.Is(err, context.Canceled) || db.ctx.Err() != nil) {
		return
	}
	old := db.flushError.Load()
	if err == nil {
		if old != nil {
			db.flushError.Store(nil)
			db.o.Logger.Info("pages can be written again")
		}
		return
	}
	if !translog.IsFull(err) {
		db.m.writeErrors.Inc()
	}
	db.flushError.Store(&err)
	if old == nil {
		db.o.Logger.Error("pages cannot be written; their values stay in the log", "error", err)
	}
}

// logBudget is how large the log may become.
func (db *DB) logBudget() int64 {
	l := db.o.limits
	return min(l.logBytes, max(l.logFloorBytes, 2*db.hotBytes.Load()))
}

// sealOld detaches what keeps the log too long or has waited too long, and reports whether the log is too long.
func (db *DB) sealOld() bool {
	cut := model.LSN(0)
	if budget := db.logBudget(); db.log.LiveBytes() > budget/2 {
		cut = db.log.KeepFrom(budget / 4)
	}
	now := db.o.Now()
	old := now - int64(hotAge)
	held := 0
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		for s := range sh.all() {
			if s.unsealed() && (s.logFrom < cut || s.since < old) {
				db.detach(s, db.log.End(), now)
			} else if since := s.since; s.unsealed() && s.silent(now, int64(db.o.limits.silentAge)) {
				db.detach(s, db.log.End(), now)
				s.since = since // it has been idle since then
			}
		}
		held += sh.dropIdle(now - int64(db.o.limits.idleAge))
		sh.mu.Unlock()
	}
	if n, p := db.o.limits.heldSeries, db.pairs.open; n > 0 && held >= n && p != nil && p.pageCount >= int64(n/2) {
		db.closePair()
	}
	return cut > 0
}

// dirtyIsOld reports whether a dirty page waits for longer than the limit.
func (db *DB) dirtyIsOld() bool {
	old := db.o.Now() - int64(db.o.limits.dirtyAge)
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		waits := len(sh.dirty) > 0 && sh.dirty[0].at < old
		sh.mu.Unlock()
		if waits {
			return true
		}
	}
	return false
}

// Flush seals every hot page and writes all dirty ones, so that the log holds nothing that is not in a datafile too.
func (db *DB) Flush(ctx context.Context) error {
	db.flushing.Lock()
	defer db.flushing.Unlock()
	now := db.o.Now()
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		for s := range sh.all() {
			if s.unsealed() {
				db.detach(s, db.log.End(), now)
			}
		}
		sh.mu.Unlock()
	}
	err := db.flush(ctx)
	db.noteFlush(err)
	if err == nil {
		db.recycle(ctx)
	}
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		sh.dropIdle(now - int64(db.o.limits.idleAge))
		sh.mu.Unlock()
	}
	return err
}

// flush writes all dirty pages. db.flushing is held.
func (db *DB) flush(ctx context.Context) error {
	var list []*sealed
	lsn := model.LSN(0)
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		list = append(list, sh.dirty...)
		sh.mu.Unlock()
	}
	if len(list) == 0 {
		return nil
	}
	for _, d := range list {
		lsn = max(lsn, d.lsn)
	}
	// A page must not be on disk before its values are in the log: after a power cut they would be there without
	// having been evaluated.
	if db.log != nil { // else this is recovery, and everything is
		if err := db.log.Wait(ctx, lsn); err != nil {
			return err
		}
	}
	slices.SortStableFunc(list, func(a, b *sealed) int { return cmp.Compare(a.series.id, b.series.id) })
	for len(list) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, size := 0, int64(0)
		for n < len(list) && size < groupBytes {
			size += list[n].size
			n++
		}
		if err := db.writeGroup(ctx, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// built is a sealed with its pages.
type built struct {
	*sealed
	pages []extent.Page
	text  bool
	// extent and slot say where the first page went.
	extent, slot int
}

// writeGroup writes the pages of several sealed and makes them clean.
func (db *DB) writeGroup(ctx context.Context, list []*sealed) error {
	group := make([]built, 0, len(list))
	e := encoding{db: db}
	for _, d := range list {
		b := built{sealed: d, text: d.valueType.InArena()}
		b.pages = e.buildPages(ctx, d)
		group = append(group, b)
	}
	// Rows that were made again count values that came after their page was sealed; those must be in the log too.
	if db.log != nil {
		if err := db.log.Wait(ctx, db.log.End()); err != nil {
			return err
		}
	}
	p, err := db.openPair()
	if err != nil {
		return err
	}
	x := extents{db: db, pair: p, buf: db.extentBytes[:0]}
	x.fill(group)
	db.extentBytes = x.buf
	if x.err != nil {
		return x.err
	}
	if err := db.writeExtents(p, &x); err != nil {
		p.failed = true
		db.closePair() // what failed is not tried again in the same place
		if p.size == header.Bytes && db.removePair(p) {
			db.deletePair(p) // nothing is in it, and while the disk is full each try would leave one more
		}
		return err
	}
	db.install(group, p, x.refs)
	if p.size >= db.o.limits.datafileBytes {
		db.closePair()
	}
	return nil
}

// buildPages encodes what was detached from a series.
func (x *encoding) buildPages(ctx context.Context, d *sealed) []extent.Page {
	var pages []extent.Page
	var v decoded
	if n := &d.numbers; len(n.times) > 0 {
		x.numbers = n.scaled(x.numbers[:0], 0, len(n.times))
		pages = x.appendPages(pages, d, extent.Values, n.times, x.numbers, n.scale)
	}
	v.add(d.texts)
	pages = x.appendPages(pages, d, extent.Values, v.at, v.bits, 0)
	v.at, v.bits = nil, nil
	v.add(d.late)
	pages = x.appendPages(pages, d, extent.Late, v.at, v.bits, 0)
	for _, rows := range x.db.settleRows(ctx, d) {
		for part := range slices.Chunk(rows, tierRows) {
			times := make([]int64, len(part))
			for i := range part {
				times[i] = part[i].At
			}
			pages = append(pages, extent.Page{
				Item: d.series.id, Type: part[0].valueType, Kind: extent.Hourly,
				From: times[0], To: times[len(times)-1], Count: len(part),
				Times: page.AppendTimes(nil, times), Values: appendRows(nil, part),
			})
		}
	}
	return pages
}

// add appends samples.
func (d *decoded) add(samples []sample) {
	for _, p := range samples {
		d.at, d.bits = append(d.at, p.at), append(d.bits, p.bits)
	}
}

// encoding is the room for encoding the pages of one write, and what it remembers of the page before.
type encoding struct {
	db      *DB
	numbers []uint64
	room    []byte
	// times were encoded as column: the series of a group have the same.
	times  []int64
	column []byte
}

// appendPages encodes values as pages. scale is 0 if bits are what they are called, else numbers of a hot page of that scale.
func (x *encoding) appendPages(pages []extent.Page, d *sealed, kind uint8, at []int64, bits []uint64, scale uint8) []extent.Page {
	for len(at) > 0 {
		n := x.db.pageLength(d, bits)
		p := extent.Page{
			Item: d.series.id, Type: d.valueType, Kind: kind, From: at[0], To: at[n-1], Count: n, Times: x.appendTimes(at[:n]),
		}
		room := x.room[:0]
		switch {
		case scale != 0:
			room = page.AppendDecimals(room, bits[:n], int(scale-1))
		case d.valueType == model.Float:
			room = page.AppendFloats(room, bits[:n])
		case d.valueType == model.Uint:
			room = page.AppendUints(room, bits[:n])
		default:
			room = page.AppendBlobs(room, d.arena, bits[:n])
		}
		p.Values, x.room = append([]byte(nil), room...), room // it goes to the cache, where slack would count
		pages = append(pages, p)
		at, bits = at[n:], bits[n:]
	}
	return pages
}

// appendTimes encodes times, or gives the column of the ones before if those were the same memory.
func (x *encoding) appendTimes(at []int64) []byte {
	if len(x.times) != len(at) || &x.times[0] != &at[0] {
		x.times, x.column = at, page.AppendTimes(nil, at)
	}
	return x.column
}

// pageLength returns how many of the values go to one page.
func (db *DB) pageLength(d *sealed, bits []uint64) int {
	n := min(len(bits), db.o.limits.pageValues)
	if !d.valueType.InArena() {
		return n
	}
	size := 0
	for i := range n {
		if size += int(bits[i] & 0xFFFFFFFF); size > maxTextPageBytes && i > 0 {
			return i
		}
	}
	return n
}

// install replaces detached pages by references to where they are on disk.
func (db *DB) install(group []built, p *pair, refs []extentPlace) {
	for i := range group {
		b := &group[i]
		sh := db.shardOf(b.series.id)
		sh.mu.Lock()
		for k := range b.pages {
			q, e := &b.pages[k], &refs[b.extent]
			if !b.text && q.Kind != extent.Hourly { // it was hot, and may be asked for soon; texts are kept compressed
				key := pagecache.Key{File: p.key, Offset: e.offset, Slot: int32(b.slot + k)}
				db.cache.Put(key, *q, cap(q.Times)+cap(q.Values)+pageCharge)
			}
			b.series.adopt(pageRef{
				pair: p, at: e.at, length: e.length, sequence: e.sequence, slot: uint16(b.slot + k), from: q.From, to: q.To,
				count: uint32(q.Count), valueType: q.Type, kind: q.Kind,
			})
		}
		b.series.unchain(b.sealed)
		b.clean = true
		sh.mu.Unlock()
		db.dirtyBytes.Add(-b.size)
		db.hotBytes.Add(-b.size)
		db.m.pagesWritten.Add(len(b.pages))
		db.m.plainBytes.Add(int(b.size))
	}
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		sh.dirty = slices.DeleteFunc(sh.dirty, func(d *sealed) bool { return d.clean })
		sh.mu.Unlock()
	}
}

// adopt adds a reference to a page on disk; the shard is locked.
func (s *series) adopt(ref pageRef) {
	if s.disk == nil {
		s.disk = &refs{}
	}
	switch ref.kind {
	case extent.Hourly:
		s.disk.hours = append(s.disk.hours, ref)
	case extent.Values, extent.Late:
		if n := len(s.disk.pages); ref.kind == extent.Values && (n == 0 || s.disk.pages[n-1].to < ref.from) {
			s.disk.pages = append(s.disk.pages, ref)
		} else {
			s.disk.lates = append(s.disk.lates, ref)
		}
	}
}

// recycle lets the log go of what is in datafiles.
func (db *DB) recycle(ctx context.Context) {
	needed := db.log.End()
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		for s := range sh.all() {
			if s.unsealed() {
				needed = min(needed, s.logFrom)
			}
		}
		for _, d := range sh.dirty {
			needed = min(needed, d.logFrom)
		}
		sh.mu.Unlock()
	}
	// Replay may keep more, as long as the budget allows.
	if replay := model.LSN(db.released.Load()); replay < needed {
		needed = min(needed, max(replay, db.log.KeepFrom(db.logBudget()/2)))
	}
	if needed <= db.lastRecycled || needed <= db.log.First() {
		return
	}
	if err := db.saveMarks(ctx); err != nil {
		db.noteFlush(err)
		return
	}
	db.lastRecycled = needed
	db.log.Recycle(needed)
}
