package dbengine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
)

const (
	// thinPart is which part of a pair, as one in so many, must become free for it to be written anew: so at most three bytes are written
	// for one that becomes free.
	thinPart = 4
	// maxThinned is how many pairs are written anew before another begins.
	maxThinned = 8
	// retireWait is how long reads of the old pair are waited for before the next thing is done.
	retireWait = 50 * time.Millisecond
)

// errBusy means that somebody else writes the pair anew.
var errBusy = errors.New("it is being written anew")

// errEmpty means that nothing stays of a pair.
var errEmpty = errors.New("nothing of it stays")

// claim reserves a pair for being written anew, since two who did that would write the same files.
func (p *pair) claim() bool { return p.claimed.CompareAndSwap(false, true) }

func (p *pair) unclaim() { p.claimed.Store(false) }

// roomLeft is what may be written before the oldest pair must go, when what is on its way out is gone.
func (db *DB) roomLeft() int64 {
	used := db.space.usedBytes()
	left := db.space.limit() - used + db.retiring.Load()
	if ceiling, held := db.ceilingNow(); held {
		left = min(left, ceiling-used)
	}
	return left
}

// balance makes room in time, before the oldest pair would have to go: as long as there is less than for one and a half datafiles it leaves the values of
// shares that have too much out of the oldest pairs. db.flushing is held. At most limit pairs are written anew.
func (db *DB) balance(ctx context.Context, limit int) {
	for range limit {
		if db.o.ShareFactor <= 0 || ctx.Err() != nil || db.ctx.Err() != nil || db.roomLeft() >= db.o.limits.datafileBytes*3/2 {
			return
		}
		db.pairs.mu.Lock()
		made := db.pairs.nextKey
		db.pairs.mu.Unlock()
		if made == db.balanced {
			return
		}
		if !db.thinOne(ctx, header.Raw, func(swap func()) { swap() }) {
			db.balanced = made
			return
		}
	}
}

// thinOne leaves the values of shares that have too much out of the oldest pair of a tier for which that pays, and reports whether there was one.
// flushing calls its argument with db.flushing held.
func (db *DB) thinOne(ctx context.Context, tier header.Tier, flushing func(func())) bool {
	if db.shareChanges.Load() == 0 {
		return false // there are no shares
	}
	u := db.sharesOf(tier)
	over := u.over(db.o.ShareFactor)
	if tier == header.Raw {
		db.sharesSeen.Store(int64(len(u.shares)))
		db.sharesOver.Store(int64(len(over)))
	}
	if over == nil {
		return false
	}
	for i, p := range u.pairs {
		a := u.accounts[i]
		p.mu.Lock()
		size := p.charged
		p.mu.Unlock()
		free := a.freeable(over)
		if a.tried || free*thinPart < size || tier == header.Raw && !db.settled(p) {
			continue
		}
		if s := db.o.Snapshots; s != nil && s.Holds(p.id.Name()) {
			continue // nothing would become free
		}
		err := db.thin(ctx, p, size-free, over, flushing)
		if err == nil {
			return true
		}
		if ctx.Err() != nil || db.ctx.Err() != nil {
			return false
		}
		if !errors.Is(err, errGone) && !errors.Is(err, errBusy) {
			if errors.Is(err, storage.ErrFull) {
				return false // the oldest pair goes then
			}
			a.tried = true
			db.o.Logger.Warn("the values of hosts that have too much of the disk could not be left out of a file pair; it stays as it is",
				"file", p.id.Name(), "error", err)
		}
	}
	return false
}

// settled reports whether a pair of values is summed up, and the log holds nothing of it, which would come back with the next start.
func (db *DB) settled(p *pair) bool {
	x := p.index.Load()
	return x != nil && x.image == nil && x.parts.Footer().Summary.LSN <= db.log.First() && db.summedUp(p)
}

// thin writes a pair anew without the values of some shares. keep is about what stays of it, in bytes.
func (db *DB) thin(ctx context.Context, old *pair, keep int64, over map[uint64]bool, flushing func(func())) error {
	if !old.claim() {
		return errBusy
	}
	defer old.unclaim()
	if !old.acquire() {
		return errGone
	}
	defer old.release()
	old.mu.Lock()
	size := old.charged
	old.mu.Unlock()
	room := min(size, roundUp(keep+keep/4+(64<<10))) // pages in an extent are not equal
	if free, _, err := db.fs.Free(db.dir); err == nil && free < room+freeBytes {
		return fmt.Errorf("%d bytes are free on the disk, expected %d: %w", free, room+freeBytes, storage.ErrFull)
	}
	if !db.space.take(room) {
		return fmt.Errorf("it takes %d bytes for a while: %w", room, storage.ErrFull)
	}
	db.borrowed.Add(room)
	defer db.borrowed.Add(-room)
	t := &thinning{db: db, ctx: ctx, over: over}
	p, err := t.rewrite(old, room)
	if errors.Is(err, errEmpty) && db.removePair(old) {
		db.space.release(room)
		db.o.Logger.Info("the oldest file pair has only values of hosts that have much more of the disk than others", "file", old.id.Name())
		db.deletePair(old)
		return nil
	}
	if err != nil {
		db.space.release(room)
		return err
	}
	db.space.release(room - p.charged)
	found := false
	flushing(func() { found = db.swapPair(old, p) })
	if !found {
		err := errors.Join(errGone, db.files.drop(p), t.w.abort())
		db.space.release(p.charged)
		return err
	}
	db.m.thinnedPairs.Inc()
	db.m.thinnedValues.AddInt64(int64(t.values))
	db.m.thinWritten.AddInt64(p.charged)
	db.o.Logger.Info("the oldest values of hosts that have much more of the disk than others were deleted to make room",
		"file", old.id.Name(), "tier", old.tier.String(), "hosts", firstShares(over), "values", t.values, "bytes", size-p.charged)
	db.retire(old)
	return nil
}

// firstShares are the numbers of some shares, for the log.
func firstShares(over map[uint64]bool) []uint64 {
	list := slices.Sorted(maps.Keys(over))
	return list[:min(len(list), 10)]
}

// thinning writes one pair anew.
type thinning struct {
	db     *DB
	ctx    context.Context
	over   map[uint64]bool
	w      *coldWriter
	values uint64
}

func (t *thinning) rewrite(old *pair, room int64) (*pair, error) {
	db := t.db
	f, err := old.files.use(old)
	if err != nil {
		return nil, err
	}
	defer old.files.done(old)
	moved := func(int) error { return t.ctx.Err() }
	in := newPairReader(db, old, f, keptExtentBytes)
	in.read = moved
	if in.extents, err = db.newExtentReader(old, keptExtentBytes); err != nil {
		return nil, err
	}
	defer in.extents.close()
	keepsHours := old.lean && db.o.tierShares[header.Hour] == 0 // they follow from the values, and from nothing else
	in.skip = func(id model.ItemID, kind uint8) bool {
		return !keepsHours && db.leavable(old.tier, kind) && t.over[db.shareOf(id)]
	}
	in.skipped = func(count uint32, kind uint8) {
		if kind <= extent.Late {
			t.values += uint64(count)
		}
	}
	codec, err := in.codec()
	if err != nil {
		return nil, err
	}
	t.w = &coldWriter{
		db: db, id: datafile.ID{Generation: old.id.Generation + 2, Number: old.id.Number},
		o: &Recompress{Codec: codec, ExtentBytes: extentBytes}, move: moved, limit: room, lean: old.lean,
	}
	add := t.w.add
	if keepsHours {
		add = func(pages []coldPage) error { return t.addHours(old, pages) }
	}
	index, err := t.write(in, old, add)
	if err != nil {
		return nil, errors.Join(err, t.w.abort())
	}
	p, err := db.openCold(t.w, []*pair{old}, index)
	if err != nil {
		return nil, errors.Join(err, t.w.abort())
	}
	p.merged = old.merged
	return p, nil
}

// addHours adds the pages of an item; if its share has too much it adds the hours of its values in their place.
func (t *thinning) addHours(old *pair, pages []coldPage) error {
	id := pages[0].Item
	if !t.over[t.db.shareOf(id)] {
		return t.w.add(pages)
	}
	lsn := model.LSN(0)
	for i := range pages {
		lsn = max(lsn, pages[i].lsn)
		if pages[i].Kind <= extent.Late {
			t.values += uint64(pages[i].Count)
		}
	}
	var refs []pageRef
	if _, err := t.db.indexedPages(old, id, func(ref *pageRef) { refs = append(refs, *ref) }); err != nil {
		return err
	}
	rows, err := t.db.hoursOf(t.ctx, nil, old, id, refs)
	if err != nil {
		return err
	}
	var out []coldPage
	for n := 0; len(rows) > 0; rows = rows[n:] {
		n = rowsOfPage(rows)
		out = append(out, coldPage{Page: hoursPage(id, rows[:n]), lsn: lsn})
	}
	return t.w.add(out)
}

func (t *thinning) write(in *pairReader, old *pair, add func([]coldPage) error) ([]byte, error) {
	if err := t.w.begin([]*pair{old}); err != nil {
		return nil, err
	}
	if err := in.items(add); err != nil {
		return nil, err
	}
	if len(t.w.extents)+len(t.w.open[0].pages)+len(t.w.open[1].pages) == 0 {
		return nil, errEmpty
	}
	return t.w.finish()
}

// codec returns how extents of numbers of a pair are compressed: as the first one is.
func (r *pairReader) codec() (Codec, error) {
	if err := r.locate(); err != nil {
		return Codec{}, err
	}
	for i := range r.places {
		d, err := r.directory(&r.places[i])
		if err != nil {
			return Codec{}, err
		}
		switch {
		case d.Len() > 0 && d.Row(0).Type.InArena():
			continue
		case d.Codec() == extent.Zstd:
			return Codec{Codec: extent.Zstd, Level: textLevel}, nil
		}
		return Codec{Codec: d.Codec()}, nil
	}
	return Codec{}, nil // there are texts only
}

// swapPair puts a pair that was written anew in the place of the old one, and reports false if that was deleted meanwhile. db.flushing is held. Bounds of
// items and times stay those of the old one.
func (db *DB) swapPair(old, p *pair) bool {
	if db.ctx.Err() != nil {
		return false
	}
	db.pairs.mu.Lock()
	i := slices.Index(db.pairs.list, old)
	if i >= 0 {
		db.pairs.nextKey++
		p.key = db.pairs.nextKey
		db.pairs.list = slices.Clone(db.pairs.list)
		db.pairs.list[i] = p
	}
	db.pairs.mu.Unlock()
	if i < 0 {
		return false
	}
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		for _, list := range []*[]indexedPair{&sh.indexed, &sh.minutes, &sh.hours} {
			if k := slices.IndexFunc(*list, func(e indexedPair) bool { return e.pair == old }); k >= 0 {
				*list = slices.Clone(*list) // readers may hold the old one
				(*list)[k].pair = p
			}
		}
		sh.mu.Unlock()
	}
	db.values.Add(int64(p.values) - int64(old.values))
	old.mu.Lock()
	db.retiring.Add(old.charged)
	old.mu.Unlock()
	db.retires.Add(1)
	return true
}

// retire removes a pair that was replaced when nobody reads it any more. If that takes longer it goes on beside. The pair is acquired by the caller.
func (db *DB) retire(old *pair) {
	old.acquire()
	end := func() {
		defer db.retires.Done()
		old.mu.Lock()
		old.deleted = true
		db.retiring.Add(-old.charged)
		old.mu.Unlock()
		db.cache.Forget(old.key)
		db.cache.Forget(old.index.Load().key)
		old.release()
	}
	soon, cancel := context.WithTimeout(db.ctx, retireWait)
	defer cancel()
	if db.readers.wait(soon) == nil {
		end()
		return
	}
	go func() { // Close waits for it
		if db.readers.wait(db.ctx) != nil {
			db.retires.Done() // the next start removes its files
			return
		}
		end()
	}()
}

// thinned reports whether pages may have been left out of a pair.
func (p *pair) thinned() bool { return p.id.Generation > coldGeneration(generation) }

// thinnedAway reports whether a pair from which pages were left out has none of an item: values, or summaries if it is one of a tier.
func (db *DB) thinnedAway(e *indexedPair, id model.ItemID) bool {
	if !e.pair.thinned() {
		return false
	}
	if !e.mayHold(id) {
		return true
	}
	there := false
	_, err := db.indexedPages(e.pair, id, func(ref *pageRef) { there = there || e.pair.tier != header.Raw || ref.kind <= extent.Late })
	return err == nil && !there
}

// withHours visits the pages that a closed pair of values has of an item, and, if its hours were left out of it, those of their tier.
func (db *DB) withHours(e *indexedPair, hours []indexedPair, id model.ItemID, visit func(*pageRef)) error {
	seen := false
	if e.mayHold(id) {
		_, err := db.indexedPages(e.pair, id, func(ref *pageRef) {
			seen = seen || ref.kind == extent.Hourly
			visit(ref)
		})
		if err != nil {
			return err
		}
	}
	if seen && e.pair.members == 1 || !e.pair.thinned() || e.pair.tier != header.Raw {
		return nil // of a run that was joined the hours of some may be in the pair, and those of others be left out
	}
	for i := range hours {
		if e.pair.covers(hours[i].pair.source) && hours[i].mayHold(id) {
			if _, err := db.indexedPages(hours[i].pair, id, visit); err != nil {
				return err
			}
		}
	}
	return nil
}
