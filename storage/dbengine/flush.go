package dbengine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/journal"
	"tidemark/storage/dbengine/page"
	"tidemark/storage/dbengine/translog"
)

const (
	// hotAge is how long a value may wait in a hot page.
	hotAge = 24 * time.Hour
	// extentPages and extentBytes end an extent.
	extentPages = 64
	extentBytes = 64 << 10
	// groupBytes is how much is written between two syncs of a datafile.
	groupBytes = 8 << 20
	// maxTextPageBytes is the most text in one page.
	maxTextPageBytes = 256 << 10
	// textLevel is Zstandard's level for extents of texts. Numbers are not compressed again: their columns leave little.
	textLevel = 3
	// kindSeals is the page at the end of each extent that says for each page how far the log was when it was sealed.
	kindSeals = 16
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
	db.recycle(ctx)
	db.progress.announce()
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
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		for s := range sh.all() {
			if s.unsealed() && (s.logFrom < cut || s.since < old) {
				db.detach(s, db.log.End(), now, false)
			}
		}
		sh.mu.Unlock()
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
				db.detach(s, db.log.End(), now, false)
			}
		}
		sh.mu.Unlock()
	}
	err := db.flush(ctx)
	db.noteFlush(err)
	if err == nil {
		db.recycle(ctx)
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
	for _, d := range list {
		b := built{sealed: d, text: d.valueType.InArena()}
		b.pages = db.buildPages(ctx, d)
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
	x := extents{db: db, pair: p}
	x.fill(group)
	if x.err != nil {
		return x.err
	}
	if err := db.writeExtents(p, &x); err != nil {
		p.failed = true
		db.closePair() // what failed is not tried again in the same place
		return err
	}
	db.install(group, x.refs)
	if p.size >= db.o.limits.datafileBytes {
		db.closePair()
	}
	return nil
}

// buildPages encodes what was detached from a series.
func (db *DB) buildPages(ctx context.Context, d *sealed) []extent.Page {
	var pages []extent.Page
	var v decoded
	for i := range d.chunks {
		var c decoded
		d.chunks[i].decode(&c)
		v.at, v.bits = append(v.at, c.at...), append(v.bits, c.bits...)
	}
	v.add(d.hot)
	pages = db.appendPages(pages, d, extent.Values, &v)
	v.at, v.bits = v.at[:0], v.bits[:0]
	v.add(d.late)
	pages = db.appendPages(pages, d, extent.Late, &v)
	for _, rows := range db.settleRows(ctx, d) {
		times := make([]int64, len(rows))
		for i := range rows {
			times[i] = rows[i].At
		}
		pages = append(pages, extent.Page{
			Item: d.series.id, Type: rows[0].valueType, Kind: extent.Hourly,
			From: times[0], To: times[len(times)-1], Count: len(rows),
			Times: page.AppendTimes(nil, times), Values: appendRows(nil, rows),
		})
	}
	return pages
}

// add appends samples.
func (d *decoded) add(samples []sample) {
	for _, p := range samples {
		d.at, d.bits = append(d.at, p.at), append(d.bits, p.bits)
	}
}

// appendPages encodes values as pages.
func (db *DB) appendPages(pages []extent.Page, d *sealed, kind uint8, v *decoded) []extent.Page {
	at, bits := v.at, v.bits
	for len(at) > 0 {
		n := db.pageLength(d, bits)
		p := extent.Page{
			Item: d.series.id, Type: d.valueType, Kind: kind, From: at[0], To: at[n-1], Count: n, Times: page.AppendTimes(nil, at[:n]),
		}
		switch d.valueType {
		case model.Float:
			p.Values = page.AppendFloats(nil, bits[:n])
		case model.Uint:
			p.Values = page.AppendUints(nil, bits[:n])
		default:
			p.Values = page.AppendBlobs(nil, d.arena, bits[:n])
		}
		pages = append(pages, p)
		at, bits = at[n:], bits[n:]
	}
	return pages
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

// extents collects pages into extents for one write. All pages of a sealed go to one extent, and those of a series
// to extents in the order in which they were sealed: what a power cut leaves is then complete up to some LSN.
type extents struct {
	db   *DB
	pair *pair
	err  error
	buf  []byte
	refs []*extentRef
	made []journal.Extent
	// open are the extents being filled: numbers and texts.
	open [2]openExtent
}

type openExtent struct {
	members []*built
	pages   []extent.Page
	lsns    []uint64
	size    int
}

func (x *extents) fill(group []built) {
	for i := range group {
		b := &group[i]
		kind := 0
		if b.text {
			kind = 1
		}
		if other := &x.open[1-kind]; len(other.members) > 0 && other.members[len(other.members)-1].series == b.series {
			x.emit(1 - kind)
		}
		o := &x.open[kind]
		o.members = append(o.members, b)
		for _, p := range b.pages {
			o.pages = append(o.pages, p)
			o.lsns = append(o.lsns, uint64(b.lsn))
			o.size += len(p.Times) + len(p.Values)
		}
		if len(o.pages) >= extentPages || o.size >= extentBytes {
			x.emit(kind)
		}
	}
	x.emit(0)
	x.emit(1)
}

// emit builds an extent from what was collected.
func (x *extents) emit(kind int) {
	o := &x.open[kind]
	if len(o.members) == 0 || x.err != nil {
		return
	}
	codec := extent.None
	if kind == 1 {
		codec = extent.Zstd
	}
	sequence := x.pair.sequence + uint64(len(x.refs)) + 1
	pages := append(slices.Clip(o.pages), extent.Page{Kind: kindSeals, Count: len(o.lsns), Values: page.AppendUints(nil, o.lsns)})
	start := len(x.buf)
	x.buf, x.err = extent.Build(x.buf, x.pair.id.Extent(sequence), codec, textLevel, pages)
	if x.err != nil {
		return
	}
	first := (x.pair.size + datafile.Align - 1) / datafile.Align * datafile.Align
	ref := &extentRef{pair: x.pair, offset: first + int64(start), length: uint32(len(x.buf) - start), sequence: sequence}
	made := journal.Extent{Offset: ref.offset, Length: ref.length, Sequence: sequence}
	for i, p := range o.pages {
		made.Pages = append(made.Pages, journal.Page{
			Item: p.Item, Type: p.Type, Kind: p.Kind, From: p.From, To: p.To, Count: uint32(p.Count), LSN: model.LSN(o.lsns[i]),
		})
	}
	slot := 0
	for _, b := range o.members {
		b.extent, b.slot = len(x.refs), slot
		slot += len(b.pages)
	}
	x.refs = append(x.refs, ref)
	x.made = append(x.made, made)
	x.buf = append(x.buf, make([]byte, (datafile.Align-len(x.buf)%datafile.Align)%datafile.Align)...)
	*o = openExtent{}
}

// writeExtents appends extents to a pair: first the datafile is synced, then the journal that names them.
func (db *DB) writeExtents(p *pair, x *extents) error {
	records := []byte(nil)
	for i := range x.made {
		records = journal.AppendRecord(records, p.id, p.journalSize+int64(len(records)), &x.made[i])
	}
	start := x.refs[0].offset
	size, journalSize := start+int64(len(x.buf)), p.journalSize+int64(len(records))
	more := roundUp(size) - roundUp(p.size) + roundUp(journalSize) - roundUp(p.journalSize)
	if err := db.reserve(more); err != nil {
		return err
	}
	p.mu.Lock()
	p.charged += more
	p.mu.Unlock()
	if err := p.file.WriteAt(x.buf, start); err != nil {
		return err
	}
	if err := p.file.Sync(); err != nil {
		return err
	}
	if _, err := p.journal.WriteAt(records, p.journalSize); err != nil {
		return err
	}
	if err := p.journal.SyncData(); err != nil {
		return err
	}
	p.size, p.journalSize = size, journalSize
	p.sequence += uint64(len(x.refs))
	p.extents = append(p.extents, x.made...)
	for i := range x.made {
		p.note(&x.made[i])
	}
	db.m.extentsWritten.Add(len(x.refs))
	db.m.writtenBytes.Add(len(x.buf) + len(records))
	return nil
}

// note counts what an extent adds to the pair.
func (p *pair) note(e *journal.Extent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range e.Pages {
		q := &e.Pages[i]
		p.pageCount++
		if p.oldest == minTime || q.From < p.oldest {
			p.oldest = q.From
		}
		if q.Kind <= extent.Late {
			p.values += uint64(q.Count)
		}
		if q.Kind == extent.Hourly {
			p.newestHour = max(p.newestHour, q.To)
		} else {
			p.newestValue = max(p.newestValue, q.To)
		}
	}
}

// install replaces detached pages by references to where they are on disk.
func (db *DB) install(group []built, refs []*extentRef) {
	for i := range group {
		b := &group[i]
		sh := db.shardOf(b.series.id)
		sh.mu.Lock()
		for k := range b.pages {
			p := &b.pages[k]
			b.series.adopt(pageRef{
				extent: refs[b.extent], slot: uint16(b.slot + k), from: p.From, to: p.To,
				count: uint32(p.Count), valueType: p.Type, kind: p.Kind,
			})
		}
		remove := func(list []*sealed) []*sealed {
			k := slices.Index(list, b.sealed)
			return append(slices.Clip(list[:k]), list[k+1:]...)
		}
		b.series.dirty = remove(b.series.dirty)
		sh.dirty = remove(sh.dirty)
		sh.mu.Unlock()
		db.dirtyBytes.Add(-b.size)
		db.hotBytes.Add(-b.size)
		db.m.pagesWritten.Add(len(b.pages))
	}
}

// adopt adds a reference to a page on disk; the shard is locked.
func (s *series) adopt(ref pageRef) {
	switch {
	case ref.kind == extent.Hourly:
		s.hours = append(s.hours, ref)
	case ref.kind == extent.Values && (len(s.pages) == 0 || s.pages[len(s.pages)-1].to < ref.from):
		s.pages = append(s.pages, ref)
	case ref.kind == extent.Values || ref.kind == extent.Late:
		s.lates = append(s.lates, ref)
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
