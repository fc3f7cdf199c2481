package dbengine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/journal"
	"tidemark/storage/dbengine/page"
)

const (
	// tierRows are the most rows of one page of a tier.
	tierRows = 1024
	// tierWriteBytes is how much of a pair of a tier is collected between two writes.
	tierWriteBytes = 1 << 20
)

// tierShares are the parts of the quota that the pairs of a tier may take, in percent.
type tierShares [header.TierCount]int

// runTiers sums up closed pairs one after the other until the engine is closed.
func (db *DB) runTiers() {
	ticker := time.NewTicker(db.o.limits.tierTick)
	defer ticker.Stop()
	for {
		select {
		case <-db.ctx.Done():
			return
		case <-ticker.C:
		}
		if err := db.buildTiers(db.ctx); err != nil && db.ctx.Err() == nil {
			db.m.writeErrors.Inc()
			db.o.Logger.Error("a closed pair could not be summed up; it is tried again", "error", err)
		}
	}
}

// buildTiers makes the pairs of the tiers for all closed pairs that have none yet, oldest first.
func (db *DB) buildTiers(ctx context.Context) error {
	db.tiering.Lock()
	defer db.tiering.Unlock()
	for _, tier := range []header.Tier{header.Minute, header.Hour} {
		for {
			p := db.pairs.nextFor(tier)
			if p == nil || db.o.tierShares[tier] == 0 {
				break
			}
			if err := db.buildTier(ctx, tier, p); err != nil && !errors.Is(err, errGone) {
				return fmt.Errorf("sum up %s: %w", p.id.Name(), err)
			}
			db.pairs.built(tier, p.id.Number)
		}
	}
	return nil
}

// nextFor returns the oldest closed pair behind the last one that a tier holds, nil if there is none.
func (ps *pairs) nextFor(tier header.Tier) *pair {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.list {
		if p.tier == header.Raw && p.id.Number > ps.builtTo[tier] {
			if p == ps.open || p.index.Load() == nil {
				return nil
			}
			return p
		}
	}
	return nil
}

func (ps *pairs) built(tier header.Tier, number uint32) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.builtTo[tier] = max(ps.builtTo[tier], number)
}

// buildTier makes the pair of a tier that sums up another. It is there as a whole or not at all, after a power cut too.
func (db *DB) buildTier(ctx context.Context, tier header.Tier, source *pair) error {
	if !source.acquire() {
		return errGone
	}
	defer source.release()
	db.pairs.mu.Lock()
	db.pairs.next++
	id := datafile.ID{Generation: generation, Number: db.pairs.next}
	db.pairs.mu.Unlock()
	db.dropParts(tier, source)
	w, err := db.newTierWriter(id, tier, source)
	if err != nil {
		return err
	}
	err = db.sumUp(ctx, w, source)
	if err == nil {
		err = w.finish()
	}
	p := w.pair
	if err == nil {
		err = db.writeIndex(p, w.extents)
	}
	if err != nil {
		return errors.Join(err, w.abort())
	}
	for i := range w.extents {
		p.note(&w.extents[i])
	}
	db.pairs.add(p)
	db.publish(p)
	db.keepShare(tier)
	db.m.tierPairs.Inc()
	return nil
}

// dropParts deletes what a tier has of the pairs that a pair of values stands for: some of it was deleted by hand, or there was no such tier, and
// the values are there to make it again as a whole.
func (db *DB) dropParts(tier header.Tier, source *pair) {
	for _, p := range db.pairs.takeParts(tier, source) {
		db.o.Logger.Info("delete a pair of a tier that is made again as a whole", "tier", tier.String(), "file", p.id.Name())
		db.deletePair(p)
	}
}

// takeParts takes the pairs of a tier that sum up parts of a pair of values out of the list.
func (ps *pairs) takeParts(tier header.Tier, source *pair) (parts []*pair) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var kept []*pair
	for _, p := range ps.list {
		if p.tier == tier && source.covers(p.source) {
			parts = append(parts, p)
		} else {
			kept = append(kept, p)
		}
	}
	if len(parts) > 0 {
		ps.list = kept
	}
	return parts
}

// sumUp writes the rows of all items of a pair.
func (db *DB) sumUp(ctx context.Context, w *tierWriter, source *pair) error {
	x := source.index.Load()
	s := &x.parts.Footer().Summary
	for id := s.FirstItem; id <= s.LastItem && x.parts.Footer().Blocks > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var refs []pageRef
		_, err := db.indexedPages(source, id, func(ref *pageRef) { refs = append(refs, *ref) })
		if err != nil {
			return err
		}
		if len(refs) == 0 {
			if id, err = db.nextItem(source, id); err != nil {
				return err
			}
			continue
		}
		if w.pair.tier == header.Minute {
			err = db.sumUpMinutes(ctx, w, id, refs)
		} else {
			err = db.copyHours(ctx, w, source, id, refs)
		}
		if err == nil && w.pair.merged {
			err = db.mergeBinary(ctx, w, id, refs)
		}
		if err != nil {
			return err
		}
		if id++; id == 0 {
			break
		}
	}
	return nil
}

// nextItem returns the least item behind another that a pair's index names, or one behind its last.
func (db *DB) nextItem(p *pair, id model.ItemID) (model.ItemID, error) {
	x := p.index.Load()
	last := x.parts.Footer().Summary.LastItem
	t, err := db.indexTable(p, x)
	if err != nil {
		return 0, err
	}
	from, _ := t.Find(id)
	for i := from; i < x.parts.Footer().Blocks; i++ {
		b, err := db.readBlock(p, x, t, i)
		if err != nil {
			return 0, err
		}
		for _, item := range b.items {
			if item.id > id {
				return item.id, nil
			}
		}
	}
	return last + 1, nil
}

// sumUpMinutes writes the minutes of an item.
func (db *DB) sumUpMinutes(ctx context.Context, w *tierWriter, id model.ItemID, refs []pageRef) error {
	r := db.passingRead(ctx, refs, model.ValueType.Numeric)
	defer r.free()
	rows, err := r.minutes(id, &r.view)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(m minuteRow) bool { return m.Count == 0 })
	for len(rows) > 0 {
		n := 1
		for n < min(len(rows), tierRows) && rows[n].valueType == rows[0].valueType {
			n++
		}
		times := make([]int64, n)
		for i := range times {
			times[i] = rows[i].At
		}
		err := w.add(extent.Page{
			Item: id, Type: rows[0].valueType, Kind: extent.Minute, From: times[0], To: times[n-1], Count: n,
			Times: page.AppendTimes(nil, times), Values: appendMinutes(nil, rows[:n]),
		})
		if err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// passingRead is a reading of those pages of values whose type is wanted; they are not kept in the cache.
func (db *DB) passingRead(ctx context.Context, refs []pageRef, want func(model.ValueType) bool) *reading {
	r := readings.Get().(*reading)
	r.db, r.ctx, r.r, r.budget, r.passing = db, ctx, model.TimeRange{From: math.MinInt64, To: math.MaxInt64}, math.MaxInt64, true
	v := &r.view
	v.base, v.late, v.recent = v.base[:0], v.late[:0], v.recent[:0]
	for _, ref := range refs {
		switch {
		case !want(ref.valueType):
		case ref.kind == extent.Values:
			v.base = append(v.base, piece{ref: ref})
		case ref.kind == extent.Late:
			v.late = append(v.late, piece{ref: ref})
		}
	}
	v.order()
	return r
}

// copyHours writes the hours of an item as they stand in the pair, or are made of its values if it lacks them.
func (db *DB) copyHours(ctx context.Context, w *tierWriter, source *pair, id model.ItemID, refs []pageRef) error {
	rows, err := db.hoursOf(ctx, source, id, refs)
	if err != nil {
		return err
	}
	for n := 0; len(rows) > 0; rows = rows[n:] {
		n = rowsOfPage(rows)
		if err := w.add(hoursPage(id, rows[:n])); err != nil {
			return err
		}
	}
	return nil
}

// hoursOf returns the hours of an item that has pages in a pair of values, type by type and in order of time: as they stand there, or made of its values if the
// pair lacks them.
func (db *DB) hoursOf(ctx context.Context, source *pair, id model.ItemID, refs []pageRef) ([]hourRow, error) {
	var rows []hourRow
	if source.lean {
		made, err := db.madeHours(ctx, id, refs)
		if err != nil {
			return nil, err
		}
		rows = made // those that stand in the pair count before them
	}
	for i := range refs {
		if refs[i].kind != extent.Hourly {
			continue
		}
		p, err := db.fetchPage(&refs[i], false)
		if err == nil {
			var read []hourRow
			read, err = decodeRows(&p)
			rows, err = append(rows, read...), refs[i].locate(err)
		}
		if err != nil {
			db.damaged(err)
		}
	}
	rows = newestRows(rows)
	slices.SortStableFunc(rows, func(a, b hourRow) int { return int(a.valueType) - int(b.valueType) })
	return rows, nil
}

// rowsOfPage is how many rows from the first on make a page: of one type, and not too many.
func rowsOfPage(rows []hourRow) int {
	n := 1
	for n < min(len(rows), tierRows) && rows[n].valueType == rows[0].valueType {
		n++
	}
	return n
}

// hoursPage makes a page of rows of one type in order of time.
func hoursPage(id model.ItemID, rows []hourRow) extent.Page {
	times := make([]int64, len(rows))
	for i := range times {
		times[i] = rows[i].At
	}
	return extent.Page{
		Item: id, Type: rows[0].valueType, Kind: extent.Hourly, From: times[0], To: times[len(times)-1], Count: len(rows),
		Times: page.AppendTimes(nil, times), Values: appendRows(nil, rows),
	}
}

// tierWriter writes the datafile of a pair of a tier beside its place.
type tierWriter struct {
	db   *DB
	pair *pair
	name string
	file vfs.File
	buf  []byte
	// rows are numbers, which their columns made small; merged values are worth compressing.
	rows, merged tierPages
	extents      []journal.Extent
}

// tierPages are the pages of an extent to be.
type tierPages struct {
	pages []extent.Page
	size  int
	codec extent.Codec
}

func (db *DB) newTierWriter(id datafile.ID, tier header.Tier, source *pair) (*tierWriter, error) {
	w := &tierWriter{db: db, name: filepath.Join(db.dir, id.Name()) + tempSuffix, merged: tierPages{codec: extent.Zstd}}
	w.pair = &pair{
		id: id, tier: tier, source: source.id.Number, first: source.first, members: source.members, files: &db.files, gone: db.pairGone,
		oldest: minTime, newestValue: minTime, newestHour: minTime, merged: db.o.Merge != nil,
	}
	h := header.Header{Magic: header.Datafile, Generation: id.Generation, Number: id.Number, Tier: tier, Source: source.id.Number}
	h.Join(source.first, source.members)
	if w.pair.merged {
		h.Compatible = header.Merged
	}
	w.buf = h.Append(nil)
	var err error
	w.file, err = db.fs.Create(w.name)
	return w, err
}

// add adds a page; the pages of an item and kind come one after the other.
func (w *tierWriter) add(p extent.Page) error {
	to := &w.rows
	if p.Kind == extent.Merged {
		to = &w.merged
	}
	to.pages = append(to.pages, p)
	if to.size += len(p.Times) + len(p.Values); len(to.pages) < extentPages && to.size < extentBytes {
		return nil
	}
	return w.emit(to)
}

// emit builds an extent.
func (w *tierWriter) emit(from *tierPages) error {
	n := len(from.pages)
	if n == 0 {
		return nil
	}
	p := w.pair
	w.buf = append(w.buf, make([]byte, (datafile.Align-len(w.buf)%datafile.Align)%datafile.Align)...)
	e := journal.Extent{Offset: p.size + int64(len(w.buf)), Sequence: uint64(len(w.extents) + 1)}
	for i := range from.pages {
		q := &from.pages[i]
		e.Pages = append(e.Pages, journal.Page{Item: q.Item, Type: q.Type, Kind: q.Kind, From: q.From, To: q.To, Count: uint32(q.Count)})
	}
	start := len(w.buf)
	pages := append(from.pages, extent.Page{Kind: kindSeals, Count: n, Values: page.AppendUints(nil, make([]uint64, n))})
	var err error
	if w.buf, err = extent.Build(w.buf, p.id.Extent(e.Sequence), from.codec, textLevel, pages); err != nil {
		return err
	}
	e.Length = uint32(len(w.buf) - start)
	w.extents = append(w.extents, e)
	from.pages, from.size = from.pages[:0], 0
	if len(w.buf) < tierWriteBytes {
		return nil
	}
	w.buf = append(w.buf, make([]byte, (datafile.Align-len(w.buf)%datafile.Align)%datafile.Align)...)
	return w.write()
}

// write writes what was built so far.
func (w *tierWriter) write() error {
	p := w.pair
	end := p.size + int64(len(w.buf))
	more := roundUp(end) - roundUp(p.size)
	if err := w.db.reserve(more); err != nil {
		return err
	}
	p.charged += more
	if _, err := w.file.WriteAt(w.buf, p.size); err != nil {
		return err
	}
	w.db.m.writtenBytes.Add(len(w.buf))
	w.db.m.tierBytes.Add(len(w.buf))
	p.size, w.buf = end, w.buf[:0]
	return nil
}

// finish writes the rest and puts the file in its place.
func (w *tierWriter) finish() error {
	err := w.emit(&w.rows)
	if err == nil {
		err = w.emit(&w.merged)
	}
	if err == nil {
		err = w.write()
	}
	if err == nil {
		err = w.file.Sync()
	}
	if err = errors.Join(err, w.file.Close()); err != nil {
		w.file = nil
		return err
	}
	w.file = nil
	name := filepath.Join(w.db.dir, w.pair.id.Name())
	if err := w.db.fs.Rename(w.name, name); err != nil {
		return err
	}
	w.name = name
	return w.db.fs.SyncDir(w.db.dir)
}

// abort removes what was written.
func (w *tierWriter) abort() error {
	var errs []error
	if w.file != nil {
		errs = append(errs, w.file.Close())
	}
	if err := w.db.fs.Remove(w.name); err != nil && !isNotExist(err) {
		errs = append(errs, err)
	} else {
		w.db.space.release(w.pair.charged)
	}
	return errors.Join(errs...)
}

// keepShare deletes the oldest pairs of a tier until it takes no more than its share.
func (db *DB) keepShare(tier header.Tier) {
	flushing := func(swap func()) {
		db.flushing.Lock()
		defer db.flushing.Unlock()
		swap()
	}
	limit := db.space.limit() / 100 * int64(db.o.tierShares[tier])
	for db.o.ShareFactor > 0 && db.pairs.tierBytes(tier) > limit && db.thinOne(db.ctx, tier, flushing) {
	}
	for {
		p := db.pairs.takeOver(tier, limit)
		if p == nil {
			return
		}
		db.o.Logger.Info("delete the oldest pair of a tier that takes more than its share", "tier", tier.String(), "file", p.id.Name())
		db.deletePair(p)
	}
}

// tierBytes is what the pairs of a tier take.
func (ps *pairs) tierBytes(tier header.Tier) int64 {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	total := int64(0)
	for _, p := range ps.list {
		if p.tier == tier {
			p.mu.Lock()
			total += p.charged
			p.mu.Unlock()
		}
	}
	return total
}

// takeOver takes the oldest pair of a tier out of the list if the tier has more bytes than allowed and more than one pair.
func (ps *pairs) takeOver(tier header.Tier, limitBytes int64) *pair {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	total, count, oldest := int64(0), 0, -1
	for i, p := range ps.list {
		if p.tier != tier {
			continue
		}
		if oldest < 0 || p.source < ps.list[oldest].source {
			oldest = i
		}
		p.mu.Lock()
		total += p.charged
		p.mu.Unlock()
		count++
	}
	if total <= limitBytes || count < 2 {
		return nil
	}
	p := ps.list[oldest]
	ps.list = slices.Delete(slices.Clone(ps.list), oldest, oldest+1)
	return p
}
