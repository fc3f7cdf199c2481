package dbengine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
)

var errStop = errors.New("stop")

// Trends streams hourly summaries. The hour that is running is among them as it is now. See storage.Engine.
func (db *DB) Trends(ctx context.Context, q storage.Query, fn func(*storage.TrendColumns) error) error {
	return streamRows(ctx, db, q, fn, func(id model.ItemID) ([]hourRow, error) { return db.rowsOf(ctx, id, q.Range) },
		func(r *hourRow) (model.ValueType, *model.Trend) { return r.valueType, &r.Trend })
}

// rowsOf returns the rows of an item in a range, in order of time, stale ones made again.
func (db *DB) rowsOf(ctx context.Context, id model.ItemID, r model.TimeRange) ([]hourRow, error) {
	rows, err := db.storedRows(id, r)
	if err != nil {
		return nil, err
	}
	remade := rows[:0]
	stale := false
	for _, row := range rows {
		// The row behind a stale one counts its increase from a value that may have changed.
		if row.stale || stale {
			changed := row.stale
			if row, err = db.remake(ctx, id, row); err != nil {
				return nil, err
			}
			stale = changed || row.Count == 0
		}
		if row.Count > 0 && r.Contains(row.At) {
			remade = append(remade, row)
		}
	}
	return remade, nil
}

// storedRows gathers the newest row of each hour in a range and just before it. A stale row has the count of the fullest
// row of its hour.
func (db *DB) storedRows(id model.ItemID, r model.TimeRange) ([]hourRow, error) {
	from := r.From
	if from > math.MinInt64+storage.Hour {
		from -= storage.Hour
	}
	refs, missing, memory, err := db.hourPages(id, model.TimeRange{From: from, To: r.To})
	if err != nil {
		return nil, err
	}
	read := make([][]hourRow, len(refs))
	for i := range refs {
		p, err := db.readPage(&refs[i])
		if err == nil {
			read[i], err = decodeRows(&p)
		}
		if err != nil {
			db.damaged(err)
			made, err := db.unreadHours(refs[i].pair, id, model.TimeRange{From: from, To: r.To})
			if err != nil && !errors.Is(err, errGone) {
				return nil, err
			}
			missing = append(missing, made...)
		}
	}
	var rows []hourRow
	var tier []bool
	for i := range refs {
		for k := range read[i] {
			if row := &read[i][k]; !outdone(refs, read, refs[i].pair, row) {
				rows, tier = append(rows, *row), append(tier, refs[i].pair.tier == header.Hour)
			}
		}
	}
	if len(missing) > 0 {
		rows = addMissing(rows, tier, missing)
	}
	rows = append(rows, memory...)
	return newestRows(slices.DeleteFunc(rows, func(h hourRow) bool { return h.At >= r.To || h.At < from })), nil
}

// outdone reports whether a row of a pair that stands for a run has fewer values than the tier has for its hour: pages were left out of a pair of the run
// that was written later than the one from which the row comes.
func outdone(refs []pageRef, read [][]hourRow, p *pair, row *hourRow) bool {
	if p.tier != header.Raw || p.members == 1 || !p.thinned() {
		return false
	}
	for i := range refs {
		if o := refs[i].pair; o.tier != header.Hour || !p.covers(o.source) {
			continue
		}
		for k := range read[i] {
			if h := &read[i][k]; h.At == row.At && h.valueType == row.valueType && h.Count > row.Count {
				return true
			}
		}
	}
	return false
}

// hourPages returns the pages that hold rows of an item in a range, in the order in which they were written, rows that are missing on disk, and all rows
// that are in memory.
func (db *DB) hourPages(id model.ItemID, r model.TimeRange) (pages []pageRef, missing, memory []hourRow, err error) {
	add := func(ref *pageRef) {
		if ref.kind == extent.Hourly && ref.from < r.To && ref.to >= r.From {
			pages = append(pages, *ref)
		}
	}
	sh := db.shardOf(id)
	sh.lockBriefly()
	if sh.closed {
		sh.mu.Unlock()
		return nil, nil, nil, storage.ErrClosed
	}
	indexed, hours := sh.indexed, sh.hours
	if s := sh.find(id); s != nil {
		if s.disk != nil {
			for i := range s.disk.hours {
				add(&s.disk.hours[i])
			}
		}
		for d := s.dirty; d != nil; d = d.next {
			memory = append(memory, d.rows...)
		}
		if t := s.trend; t != nil {
			s.fold()
			memory = append(memory, t.rows()...)
			if row, ok := t.running(); ok {
				memory = append(memory, row)
			}
		}
	}
	sh.mu.Unlock()
	for i := range indexed {
		e := &indexed[i]
		rows, err := db.missingHours(indexed, e, id, r)
		if err != nil && !errors.Is(err, errGone) {
			return nil, nil, nil, err
		}
		missing = append(missing, rows...)
		if !e.pair.thinned() && (!e.mayHold(id) || !e.rows.Reaches(r.From, r.To)) {
			continue
		}
		if err := db.withHours(e, hours, id, add); err != nil && !errors.Is(err, errGone) {
			return nil, nil, nil, err
		}
	}
	sortRefs(pages)
	return pages, missing, memory, nil
}

// newestRows keeps the last row of each hour and type, in order of time.
func newestRows(rows []hourRow) []hourRow {
	slices.SortStableFunc(rows, func(a, b hourRow) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.valueType, b.valueType))
	})
	kept := rows[:0]
	for _, row := range rows {
		if n := len(kept); n > 0 && kept[n-1].At == row.At && kept[n-1].valueType == row.valueType {
			if row.stale && kept[n-1].Count > row.Count {
				stale := kept[n-1]
				stale.stale = true
				row = stale
			}
			kept[n-1] = row
			continue
		}
		kept = append(kept, row)
	}
	return kept
}

// remake makes a row again from the values of its hour. If fewer values are left than the row counted, because the
// oldest pair was deleted in between, the row keeps its sums and only widens its bounds.
func (db *DB) remake(ctx context.Context, id model.ItemID, row hourRow) (hourRow, error) {
	previous, hasPrevious, err := db.before(ctx, id, row.At, row.valueType)
	if err != nil {
		return row, err
	}
	made := hourRow{Trend: model.Trend{At: row.At}, valueType: row.valueType}
	q := storage.Query{Items: []model.ItemID{id}, Range: model.TimeRange{From: row.At, To: row.At + storage.Hour}}
	err = db.Read(ctx, q, func(c *model.Columns) error {
		if c.Type != row.valueType {
			hasPrevious = false
			return nil
		}
		for _, bits := range c.Bits {
			if storage.AddToTrend(&made.Trend, c.Type, bits, previous, hasPrevious) {
				previous, hasPrevious = bits, true
			}
		}
		return nil
	})
	if err != nil || made.Count >= row.Count {
		return made, err
	}
	row.stale = false
	if made.Count > 0 {
		var bounds model.Trend
		for _, bits := range []uint64{row.Min, row.Max, made.Min, made.Max} {
			storage.AddToTrend(&bounds, row.valueType, bits, 0, false)
		}
		row.Min, row.Max = bounds.Min, bounds.Max
	}
	return row, nil
}

// settleRows makes the stale rows of what was detached again, all but the hour that is still running, and returns the
// rows by type in order of time.
func (db *DB) settleRows(ctx context.Context, d *sealed) [][]hourRow {
	if len(d.rows) == 0 {
		return nil
	}
	rows := newestRows(slices.Clone(d.rows))
	for i := 0; i < len(rows); i++ {
		row := rows[i]
		if !row.stale || row.At >= d.hour {
			continue
		}
		made, err := db.settle(ctx, d.series.id, row, d.hour)
		if err != nil {
			continue // it stays stale and is made again when it is asked for
		}
		rows[i] = made[0]
		rows = append(rows, made[1:]...)
	}
	rows = slices.DeleteFunc(newestRows(rows), func(h hourRow) bool { return h.Count == 0 && !h.stale })
	slices.SortStableFunc(rows, func(a, b hourRow) int { return cmp.Compare(a.valueType, b.valueType) })
	var byType [][]hourRow
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].valueType == rows[0].valueType {
			n++
		}
		byType = append(byType, rows[:n:n])
		rows = rows[n:]
	}
	return byType
}

// settle makes a stale row again, and the one after it, whose increase counts from this one's last value. If that one is
// stored as stale, the one behind it has waited for it and is made too, and so on up to the hour until.
func (db *DB) settle(ctx context.Context, id model.ItemID, row hourRow, until int64) ([]hourRow, error) {
	stored, err := db.storedRow(id, row)
	if err != nil {
		return nil, err
	}
	if stored.Count > row.Count {
		row = stored
	}
	made, err := db.remake(ctx, id, row)
	if err != nil {
		return nil, err
	}
	rows := []hourRow{made}
	for hour := row.At; ; {
		if hour, err = db.hourAfter(ctx, id, hour, row.valueType); err != nil {
			return nil, err
		}
		if hour == minTime || hour >= until {
			return rows, nil
		}
		next := hourRow{Trend: model.Trend{At: hour}, valueType: row.valueType}
		if stored, err = db.storedRow(id, next); err != nil {
			return nil, err
		}
		if next, err = db.remake(ctx, id, next); err != nil {
			return nil, err
		}
		rows = append(rows, next)
		if !stored.stale {
			return rows, nil
		}
	}
}

// storedRow returns the row that is stored for the hour and type of another; an empty one if there is none.
func (db *DB) storedRow(id model.ItemID, row hourRow) (hourRow, error) {
	stored, err := db.storedRows(id, model.TimeRange{From: row.At, To: row.At + 1})
	for _, s := range stored {
		if s.At == row.At && s.valueType == row.valueType {
			return s, err
		}
	}
	return hourRow{}, err
}

// hourAfter returns the first hour behind another that has a number of a type, minTime if another type or nothing follows.
func (db *DB) hourAfter(ctx context.Context, id model.ItemID, hour int64, t model.ValueType) (int64, error) {
	after := storage.Query{Items: []model.ItemID{id}, Range: model.TimeRange{From: hour + storage.Hour, To: math.MaxInt64}}
	next := int64(minTime)
	err := db.Read(ctx, after, func(c *model.Columns) error {
		if c.Type != t {
			return errStop
		}
		for i, at := range c.At {
			if c.Type == model.Uint || !math.IsNaN(c.Float(i)) {
				next = storage.HourOf(at)
				return errStop
			}
		}
		return nil
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return next, err
}
