package dbengine

import (
	"context"
	"math"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/page"
)

// hourRows sums up the hours of one series from its values in order of time.
type hourRows struct {
	rows        []hourRow
	previous    uint64
	hasPrevious bool
}

// take adds values.
func (h *hourRows) take(c *model.Columns) {
	at, values := c.At, c.Bits
	for len(at) > 0 {
		start := storage.HourOf(at[0])
		n := searchTimes(at, start+storage.Hour)
		if k := len(h.rows); k == 0 || h.rows[k-1].At != start || h.rows[k-1].valueType != c.Type {
			if k > 0 && h.rows[k-1].valueType != c.Type {
				h.hasPrevious = false
			}
			h.rows = append(h.rows, hourRow{Trend: model.Trend{At: start}, valueType: c.Type})
		}
		h.previous, h.hasPrevious = storage.AddRunToTrend(&h.rows[len(h.rows)-1].Trend, c.Type, values[:n], h.previous, h.hasPrevious)
		at, values = at[n:], values[n:]
	}
}

// equal reports whether two rows are the same to the last bit.
func (r *hourRow) equal(o *hourRow) bool {
	a, b := *r, *o
	same := math.Float64bits(a.Sum) == math.Float64bits(b.Sum) && math.Float64bits(a.Increase) == math.Float64bits(b.Increase)
	a.Sum, b.Sum, a.Increase, b.Increase = 0, 0, 0, 0
	return same && a == b
}

// madeHours makes the rows of an item from the values of a pair that lacks them.
func (db *DB) madeHours(ctx context.Context, past *extentReader, id model.ItemID, refs []pageRef) ([]hourRow, error) {
	r := db.passingRead(ctx, past, refs, model.ValueType.Numeric)
	defer r.free()
	var made hourRows
	r.fn = func(c *model.Columns) error {
		if c.Type.Numeric() {
			made.take(c)
		} else {
			made.hasPrevious = false
		}
		return nil
	}
	err := r.stream(id, &r.view)
	return made.rows, err
}

// missingHours returns stale rows for the hours of an item in a range that a pair may lack and the tier too: they are made again from the values, which
// they count. indexed is the list that holds the pair.
func (db *DB) missingHours(indexed []indexedPair, e *indexedPair, id model.ItemID, r model.TimeRange) ([]hourRow, error) {
	p := e.pair
	r = lastHour(r)
	if !p.lean || !e.mayHold(id) || !e.values.Reaches(r.From, r.To) {
		return nil, nil
	}
	members := uint32(0)
	for i := range indexed {
		if tier := indexed[i].pair; tier.tier == header.Hour && p.covers(tier.source) && !db.thinnedAway(&indexed[i], id) {
			members += tier.members
		}
	}
	if members >= p.members {
		return nil, nil
	}
	return db.valueHours(p, id, r)
}

// lastHour lengthens a range by the values of the last hour that starts in it.
func lastHour(r model.TimeRange) model.TimeRange {
	if r.To < math.MaxInt64-storage.Hour {
		r.To = storage.HourOf(r.To-1) + storage.Hour
	}
	return r
}

// unreadHours returns what missingHours does for the pairs that lack hours which a page of the tier has that cannot be read.
func (db *DB) unreadHours(tier *pair, id model.ItemID, r model.TimeRange) ([]hourRow, error) {
	if tier.tier != header.Hour {
		return nil, nil
	}
	sh := db.shardOf(id)
	sh.lockBriefly()
	indexed := sh.indexed
	sh.mu.Unlock()
	for i := range indexed {
		if p := indexed[i].pair; p.lean && p.covers(tier.source) {
			return db.valueHours(p, id, lastHour(r))
		}
	}
	return nil, nil
}

// valueHours returns a stale row for each hour that a pair has values for.
func (db *DB) valueHours(p *pair, id model.ItemID, r model.TimeRange) ([]hourRow, error) {
	var refs []pageRef
	_, err := db.indexedPages(p, id, func(ref *pageRef) {
		if ref.kind <= extent.Late && ref.valueType.Numeric() && ref.from < r.To && ref.to >= r.From {
			refs = append(refs, *ref)
		}
	})
	if err != nil {
		return nil, err
	}
	var rows []hourRow
	for i := range refs {
		q, err := db.readPage(&refs[i])
		var times []int64
		if err == nil {
			times, err = page.DecodeTimes(nil, q.Times, q.Count)
		}
		if err != nil {
			db.damaged(err)
			continue
		}
		for _, at := range times {
			hour := storage.HourOf(at)
			if !r.Contains(at) {
				continue
			}
			if n := len(rows); n == 0 || rows[n-1].At != hour || rows[n-1].valueType != q.Type {
				rows = append(rows, hourRow{Trend: model.Trend{At: hour}, valueType: q.Type, stale: true})
			}
			rows[len(rows)-1].Count++
		}
	}
	return rows, nil
}

// addMissing adds to rows the hours that pairs lack, and marks those rows of the tier as stale that have fewer values than such a pair: the tier lacks a
// part that was written later. tier tells, for each row, whether it is of the tier.
func addMissing(rows []hourRow, tier []bool, missing []hourRow) []hourRow {
	type hour struct {
		at        int64
		valueType model.ValueType
	}
	last, counts := map[hour]int{}, map[hour]uint64{}
	for i := range rows {
		last[hour{rows[i].At, rows[i].valueType}] = i
	}
	for i := range missing {
		counts[hour{missing[i].At, missing[i].valueType}] += missing[i].Count
	}
	for h, n := range counts {
		i, there := last[h]
		switch {
		case !there:
			rows = append(rows, hourRow{Trend: model.Trend{At: h.at}, valueType: h.valueType, stale: true})
		case tier[i] && rows[i].Count < n:
			rows[i].stale = true
		}
	}
	return rows
}
