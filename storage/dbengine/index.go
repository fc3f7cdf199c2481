package dbengine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync/atomic"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/journal"
	"tidemark/storage/dbengine/pagecache"
)

const (
	// slotBlock and slotExtents are the cache's slots for a block of a pair's index, whose number is the offset, and for the
	// places of the pair's extents.
	slotBlock   = -3
	slotExtents = -4
	// refCharge, itemCharge and placeCharge are what a page, an item and an extent of them are charged with.
	refCharge, itemCharge, placeCharge = 48, 24, 16
)

// pairIndex is the index of a closed pair. Only its footer and, from the first look-up on, the table of its blocks are in
// memory, 16 bytes for 1,024 pages; blocks are read when they are needed and kept in the page cache.
type pairIndex struct {
	// key names the index in the page cache.
	key   uint64
	parts *journal.Parts
	// image is the whole index if what is in the file is damaged.
	image []byte
	table atomic.Pointer[journal.Table]
}

// indexedPair is a closed pair in the list of a shard, with what tells whether an item can be in it.
type indexedPair struct {
	pair        *pair
	values      journal.Bounds
	rows        journal.Bounds
	first, last model.ItemID
}

func (e *indexedPair) mayHold(id model.ItemID) bool { return e.first <= id && id <= e.last }

// indexBlock is a block as it is kept in the cache.
type indexBlock struct {
	items []indexItem
	refs  []pageRef
}

// indexItem is an item of a block: its pages start at start and end where those of the next one start.
type indexItem struct {
	id    model.ItemID
	lsn   model.LSN
	start int
}

// pages returns an item's pages and the greatest of their LSNs.
func (b *indexBlock) pages(id model.ItemID) ([]pageRef, model.LSN) {
	low, high := 0, len(b.items)
	for low < high {
		if mid := int(uint(low+high) >> 1); b.items[mid].id < id {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == len(b.items) || b.items[low].id != id {
		return nil, 0
	}
	end := len(b.refs)
	if low+1 < len(b.items) {
		end = b.items[low+1].start
	}
	return b.refs[b.items[low].start:end], b.items[low].lsn
}

// setIndex makes an index that was read or written the pair's.
func (db *DB) setIndex(p *pair, parts *journal.Parts, image []byte) {
	db.pairs.mu.Lock()
	db.pairs.nextKey++
	x := &pairIndex{key: db.pairs.nextKey, parts: parts, image: image}
	db.pairs.mu.Unlock()
	p.index.Store(x)
}

// publish lets the shards find the pages of a closed pair in its index, and drops what was in memory of them.
func (db *DB) publish(p *pair) {
	s := &p.index.Load().parts.Footer().Summary
	e := indexedPair{pair: p, values: s.ValueTimes, rows: s.RowTimes, first: s.FirstItem, last: s.LastItem}
	if p.tier != header.Raw {
		e.values = journal.NoBounds
	}
	beside := p.tier == header.Hour && slices.ContainsFunc(db.pairs.all(), func(o *pair) bool { return o.tier == header.Raw && !o.lean && o.covers(p.source) })
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		switch {
		case p.tier == header.Minute:
			sh.minutes = insertPair(sh.minutes, e)
		case beside:
			sh.hours = insertPair(sh.hours, e)
		default:
			sh.indexed = insertPair(sh.indexed, e)
			for s := range sh.all() {
				s.forget(p)
			}
		}
		sh.mu.Unlock()
	}
}

// insertPair returns a list with another pair, in a new slice: readers may hold the old one.
func insertPair(list []indexedPair, e indexedPair) []indexedPair {
	at := len(list)
	for at > 0 && e.pair.order() < list[at-1].pair.order() {
		at--
	}
	return slices.Insert(slices.Clip(list), at, e)
}

// order is the number by which pairs are ordered in time: that of the pair with the values.
func (p *pair) order() uint32 {
	if p.tier != header.Raw {
		return p.source
	}
	return p.id.Number
}

// covers reports whether a pair of values with a number is the pair, or one of those that it stands for, or that it sums up.
func (p *pair) covers(number uint32) bool { return p.first <= number && number <= p.order() }

// promote lets the hours of a pair that is deleted, or that lacks them, be found in the tier.
func (sh *shard) promote(p *pair) {
	for _, e := range sh.hours {
		if p.covers(e.pair.source) {
			sh.hours = slices.DeleteFunc(slices.Clone(sh.hours), func(o indexedPair) bool { return o.pair == e.pair })
			sh.indexed = insertPair(sh.indexed, e)
		}
	}
}

// withdraw is the opposite of publish, for a pair that is deleted.
func (sh *shard) withdraw(p *pair) {
	has := func(e indexedPair) bool { return e.pair == p }
	for _, list := range []*[]indexedPair{&sh.indexed, &sh.minutes, &sh.hours} {
		if slices.ContainsFunc(*list, has) {
			*list = slices.DeleteFunc(slices.Clone(*list), has)
		}
	}
}

// indexedPages calls visit for each page of an item that the index of a closed pair names, in the order of kinds and then as they were
// written. It returns the greatest of their LSNs. A damaged index is made again from the datafile.
func (db *DB) indexedPages(p *pair, id model.ItemID, visit func(*pageRef)) (model.LSN, error) {
	var found []*indexBlock
	for attempt := 0; ; attempt++ {
		x := p.index.Load()
		var err error
		if found, err = db.itemBlocks(found[:0], p, x, id); err == nil {
			break
		}
		if !isDamage(err) || attempt > 0 {
			return 0, fmt.Errorf("read %s: %w", p.id.JournalName(), err)
		}
		if err := db.mendIndex(p, x, err); err != nil {
			return 0, err
		}
	}
	lsn := model.LSN(0)
	for _, b := range found {
		refs, l := b.pages(id)
		lsn = max(lsn, l)
		for i := range refs {
			visit(&refs[i])
		}
	}
	return lsn, nil
}

func isDamage(err error) bool {
	return errors.Is(err, journal.ErrJournal) || errors.Is(err, header.ErrHeader)
}

// itemBlocks appends the blocks that may name an item.
func (db *DB) itemBlocks(found []*indexBlock, p *pair, x *pairIndex, id model.ItemID) ([]*indexBlock, error) {
	if x.parts.Footer().Blocks == 0 {
		return found, nil
	}
	t, err := db.indexTable(p, x)
	if err != nil {
		return nil, err
	}
	from, to := t.Find(id)
	for i := from; i < to; i++ {
		b, err := db.readBlock(p, x, t, i)
		if err != nil {
			return nil, err
		}
		found = append(found, b)
	}
	return found, nil
}

// indexTable returns the table of blocks, which is kept from its first use on.
func (db *DB) indexTable(p *pair, x *pairIndex) (*journal.Table, error) {
	if t := x.table.Load(); t != nil {
		return t, nil
	}
	var t *journal.Table
	err := db.withIndex(p, x, func(r io.ReaderAt) (err error) {
		t, err = x.parts.Table(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	x.table.Store(t)
	return t, nil
}

// withIndex calls fn with the bytes of the index.
func (db *DB) withIndex(p *pair, x *pairIndex, fn func(io.ReaderAt) error) error {
	if x.image != nil {
		return fn(bytes.NewReader(x.image))
	}
	if !p.acquire() {
		return errGone
	}
	defer p.release()
	f, err := db.fs.Open(filepath.Join(db.dir, p.id.JournalName()))
	if isNotExist(err) {
		return fmt.Errorf("%w: %w", journal.ErrJournal, err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return fn(f)
}

// readBlock returns a block of an index, from the cache or the disk.
func (db *DB) readBlock(p *pair, x *pairIndex, t *journal.Table, i int) (*indexBlock, error) {
	key := pagecache.Key{File: x.key, Offset: int64(i), Slot: slotBlock}
	if v, ok := db.cache.Get(key); ok {
		return v.(*indexBlock), nil
	}
	placesKey := pagecache.Key{File: x.key, Slot: slotExtents}
	var places []place
	if v, ok := db.cache.Get(placesKey); ok {
		places = v.([]place)
	}
	var b *journal.Block
	err := db.withIndex(p, x, func(r io.ReaderAt) error {
		if places == nil {
			extents, err := x.parts.Extents(r, t)
			if err != nil {
				return err
			}
			places = makePlaces(extents)
			db.cache.Put(placesKey, places, len(places)*placeCharge)
		}
		var err error
		b, err = x.parts.Block(r, t, i)
		return err
	})
	if err != nil {
		return nil, err
	}
	made := makeBlock(p, b, places)
	db.m.indexBlocksRead.Inc()
	db.cache.Put(key, made, cap(made.refs)*refCharge+cap(made.items)*itemCharge)
	return made, nil
}

// place is where an extent is.
type place struct{ at, length, sequence uint32 }

func makePlaces(extents []journal.Extent) []place {
	places := make([]place, len(extents))
	for i := range extents {
		e := &extents[i]
		places[i] = place{at: uint32(e.Offset / datafile.Align), length: e.Length, sequence: uint32(e.Sequence)}
	}
	return places
}

func makeBlock(p *pair, b *journal.Block, places []place) *indexBlock {
	made := &indexBlock{refs: make([]pageRef, 0, len(b.Pages))}
	for i := range b.Pages {
		q := &b.Pages[i]
		if q.Kind == kindSeals {
			continue
		}
		e := places[b.Extents[i]]
		if n := len(made.items); n == 0 || made.items[n-1].id != q.Item {
			made.items = append(made.items, indexItem{id: q.Item, start: len(made.refs)})
		}
		item := &made.items[len(made.items)-1]
		item.lsn = max(item.lsn, q.LSN)
		made.refs = append(made.refs, pageRef{
			pair: p, at: e.at, length: e.length, sequence: e.sequence, slot: uint16(b.Slots[i]),
			from: q.From, to: q.To, count: q.Count, valueType: q.Type, kind: q.Kind,
		})
	}
	return made
}

// mendIndex makes the index of a closed pair again from the datafile, after a look-up in x found it damaged. It serves from memory at
// once; the flusher writes it.
func (db *DB) mendIndex(p *pair, x *pairIndex, reason error) error {
	p.mending.Lock()
	defer p.mending.Unlock()
	if p.index.Load() != x {
		return nil // another reader did it
	}
	if !p.acquire() {
		return errGone
	}
	defer p.release()
	f, err := p.files.use(p)
	if err != nil {
		return err
	}
	defer p.files.done(p)
	scanned := &pair{id: p.id, file: f, size: header.Bytes}
	adopted, err := db.scanTail(scanned, p.size)
	if err != nil {
		return err
	}
	db.o.Logger.Error("a journalfile is damaged; its index is made again from the datafile",
		"file", p.id.JournalName(), "adopted", adopted, "reason", reason)
	image := journal.AppendIndex(nil, p.id, scanned.extents)
	parts, err := journal.OpenParts(bytes.NewReader(image), p.id, int64(len(image)))
	if err != nil {
		return fmt.Errorf("make %s again: %w", p.id.JournalName(), err)
	}
	db.setIndex(p, parts, image)
	db.pairs.damaged.Store(true)
	return nil
}

// writeMended writes the indexes that were made again in memory. db.flushing is held.
func (db *DB) writeMended() {
	if !db.pairs.damaged.Swap(false) {
		return
	}
	for _, p := range db.pairs.all() {
		x := p.index.Load()
		if x == nil || x.image == nil || !p.acquire() {
			continue
		}
		err := db.replaceIndex(p, x.image)
		if err == nil {
			db.setIndex(p, x.parts, nil)
			db.cache.Forget(x.key)
		} else {
			db.pairs.damaged.Store(true)
			db.o.Logger.Warn("the index of a pair was not written; it serves from memory", "file", p.id.JournalName(), "error", err)
		}
		p.release()
	}
}

// loadIndex reads the footer of a journalfile. It reports false if that is no intact one of a closed pair, or names bytes that the datafile,
// which is dataBytes long, has not.
func (db *DB) loadIndex(p *pair, dataBytes int64) (bool, error) {
	name := p.id.JournalName()
	f, err := db.fs.Open(filepath.Join(db.dir, name))
	if err != nil {
		return false, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return false, err
	}
	parts, err := journal.OpenParts(f, p.id, size)
	if err == nil && parts == nil {
		return false, nil
	}
	end := int64(0)
	if err == nil {
		end, err = dataEnd(f, parts)
	}
	if err != nil {
		if isDamage(err) {
			err = nil
		}
		return false, err
	}
	if end > dataBytes {
		return false, nil
	}
	p.journalSize, p.size = size, max(end, header.Bytes)
	db.setIndex(p, parts, nil)
	s := &parts.Footer().Summary
	p.pageCount, p.values = int64(parts.Footer().Pages), s.Values
	if s.ValueTimes != journal.NoBounds {
		p.oldest, p.newestValue = s.ValueTimes.From, s.ValueTimes.To
	}
	if s.RowTimes != journal.NoBounds {
		p.newestHour = s.RowTimes.To
	}
	return true, nil
}

// dataEnd returns where the last extent ends.
func dataEnd(f vfs.File, parts *journal.Parts) (int64, error) {
	if end := parts.Footer().DataBytes; end > 0 || parts.Footer().Extents == 0 {
		return end, nil
	}
	t, err := parts.Table(f)
	if err != nil {
		return 0, err
	}
	extents, err := parts.Extents(f, t)
	if err != nil {
		return 0, err
	}
	end := int64(0)
	for i := range extents {
		end = max(end, extents[i].Offset+int64(extents[i].Length))
	}
	return end, nil
}

// learn finds out what the indexes of closed pairs know of a series that was not in memory; the shard is locked.
func (db *DB) learn(s *series) {
	s.known = true
	indexed := db.shardOf(s.id).indexed
	based, sealed := false, false
	for i := len(indexed) - 1; i >= 0 && !(based && sealed); i-- {
		e := &indexed[i]
		if !e.mayHold(s.id) {
			continue
		}
		lsn, err := db.indexedPages(e.pair, s.id, func(ref *pageRef) {
			if ref.kind <= extent.Late {
				s.newest = max(s.newest, ref.to)
				based = based || ref.kind == extent.Values
			}
		})
		if err != nil {
			db.damaged(err)
			if !errors.Is(err, errGone) && e.values != journal.NoBounds {
				s.newest = max(s.newest, e.values.To) // whatever it holds is older
			}
			continue
		}
		sealed = sealed || lsn > 0
		s.sealedLSN = max(s.sealedLSN, lsn)
	}
	s.floor = s.newest
}

// sortRefs brings references into the order in which their pages were written.
func sortRefs(refs []pageRef) {
	slices.SortStableFunc(refs, func(a, b pageRef) int {
		switch {
		case a.pair != b.pair && a.pair.order() < b.pair.order():
			return -1
		case a.pair != b.pair:
			return 1
		case a.at != b.at:
			return int(int64(a.at) - int64(b.at))
		}
		return int(a.slot) - int(b.slot)
	})
}
