package dbengine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/page"
)

// tierRows are the most rows of one page of a tier.
const tierRows = 1024

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
	if w.past, err = db.newExtentReader(source, passingBytes); err == nil {
		err = db.sumUp(ctx, w, source)
	}
	w.past.close()
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
	r := db.passingRead(ctx, w.past, refs, model.ValueType.Numeric)
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

// passingRead is a reading of those pages of values whose type is wanted; they are not kept in the cache. past, if not nil, is what pages are read from that are not
// in the cache.
func (db *DB) passingRead(ctx context.Context, past *extentReader, refs []pageRef, want func(model.ValueType) bool) *reading {
	r := readings.Get().(*reading)
	r.db, r.ctx, r.r, r.budget, r.passing, r.past = db, ctx, model.TimeRange{From: math.MinInt64, To: math.MaxInt64}, math.MaxInt64, true, past
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
	rows, err := db.hoursOf(ctx, w.past, source, id, refs)
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
// pair lacks them. past, if not nil, is what pages are read from that are not in the cache.
func (db *DB) hoursOf(ctx context.Context, past *extentReader, source *pair, id model.ItemID, refs []pageRef) ([]hourRow, error) {
	var rows []hourRow
	if source.lean {
		made, err := db.madeHours(ctx, past, id, refs)
		if err != nil {
			return nil, err
		}
		rows = made // those that stand in the pair count before them
	}
	for i := range refs {
		if refs[i].kind != extent.Hourly {
			continue
		}
		p, err := db.fetchPage(&refs[i], fetching{past: past})
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
