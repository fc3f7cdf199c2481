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

// Minutes streams summaries of one minute: what closed pairs say that were summed up, and the sums of the values that are in no such
// pair yet. See storage.Summarizer.
func (db *DB) Minutes(ctx context.Context, q storage.Query, fn func(*storage.TrendColumns) error) error {
	return streamRows(ctx, db, q, fn, func(id model.ItemID) ([]minuteRow, error) { return db.minutesOf(ctx, id, q) },
		func(r *minuteRow) (model.ValueType, *model.Trend) { return r.valueType, &r.Trend })
}

// streamRows streams the rows that rowsOf gives for the items of a query, in order of time. parts are the type and the summary of a row.
func streamRows[R any](ctx context.Context, db *DB, q storage.Query, fn func(*storage.TrendColumns) error, rowsOf func(model.ItemID) ([]R, error), parts func(*R) (model.ValueType, *model.Trend)) error {
	defer db.readers.leave(db.readers.enter())
	for _, id := range q.Items {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows, err := rowsOf(id)
		if err != nil {
			return err
		}
		if q.Newest > 0 && len(rows) > q.Newest {
			rows = rows[len(rows)-q.Newest:]
		}
		for len(rows) > 0 {
			first, _ := parts(&rows[0])
			c := storage.TrendColumns{Item: id, Type: first, Trends: make([]model.Trend, 0, min(len(rows), columnValues))}
			for len(c.Trends) < min(len(rows), columnValues) {
				valueType, trend := parts(&rows[len(c.Trends)])
				if valueType != first {
					break
				}
				c.Trends = append(c.Trends, *trend)
			}
			rows = rows[len(c.Trends):]
			if err := fn(&c); err != nil {
				return err
			}
		}
	}
	return nil
}

// minutesOf returns the rows of an item that start in the query's range, in order of time.
func (db *DB) minutesOf(ctx context.Context, id model.ItemID, q storage.Query) ([]minuteRow, error) {
	budget := q.MaxBytes
	if budget <= 0 {
		budget = defaultReadBytes
	}
	// The hour before has the value from which the first increase counts.
	lead := model.TimeRange{From: q.Range.From, To: q.Range.To}
	if lead.From > math.MinInt64+2*storage.Hour {
		lead.From = minuteOf(lead.From) - storage.Hour
	}
	if lead.To < math.MaxInt64-minute { // the values of the last minute that starts in the range
		lead.To = minuteOf(lead.To-1) + minute
	}
	rows, err := db.partialMinutes(ctx, id, lead, budget)
	if err != nil {
		return nil, err
	}
	if rows, err = db.mergeMinutes(ctx, id, rows); err != nil {
		return nil, err
	}
	kept := rows[:0]
	var last minuteRow
	for _, row := range rows {
		if row.Count == 0 {
			continue
		}
		own := row
		inside := q.Range.Contains(row.At)
		switch {
		case last.Count > 0 && last.valueType == row.valueType:
			row.Increase += increase(row.valueType, last.Last, row.First)
		case last.Count == 0 && inside:
			bits, found, err := db.before(ctx, id, row.At, row.valueType)
			if err != nil {
				return nil, err
			}
			if found {
				row.Increase += increase(row.valueType, bits, row.First)
			}
		}
		if last = own; inside {
			kept = append(kept, row)
		}
	}
	return kept, nil
}

// increase is what a counter grew by from one value to the next, which starts anew when it is smaller.
func increase(t model.ValueType, previous, value uint64) float64 {
	var trend model.Trend
	storage.AddToTrend(&trend, t, value, previous, true)
	return trend.Increase
}

// partialMinutes returns the rows of all pairs and of the values that are in none, in the order of their minutes and of the pairs.
func (db *DB) partialMinutes(ctx context.Context, id model.ItemID, r model.TimeRange, budget int64) ([]minuteRow, error) {
	reading := readings.Get().(*reading)
	reading.db, reading.ctx, reading.r, reading.budget = db, ctx, r, budget
	defer reading.free()
	sh := db.shardOf(id)
	v := &reading.view
	v.base, v.late, v.recent = v.base[:0], v.late[:0], v.recent[:0]
	sh.lockBriefly()
	if sh.closed {
		sh.mu.Unlock()
		return nil, storage.ErrClosed
	}
	indexed, minutes := sh.indexed, sh.minutes
	if s := sh.find(id); s != nil {
		v.memory(s, r)
	}
	sh.mu.Unlock()
	values, minutes := db.summedUpOf(id, indexed, minutes)
	if err := db.viewIndexed(v, values, id, r, 0); err != nil {
		return nil, err
	}
	v.base = append(v.base, v.recent...)
	v.order()
	rows, err := db.storedMinutes(id, minutes, r, budget)
	if err != nil {
		return nil, err
	}
	more, err := reading.minutes(id, v)
	if err != nil {
		return nil, err
	}
	if int64(len(rows)+len(more))*128 > budget {
		return nil, storage.ErrTooMuch
	}
	rows = append(rows, more...)
	slices.SortStableFunc(rows, func(a, b minuteRow) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.valueType, b.valueType))
	})
	return rows, nil
}

// summedUpOf divides pairs of values and the pairs of a tier, both in order: into the values that the tier does not sum up in full, and what of the
// tier is used. Values that stand for several pairs are read instead of the tier unless all of its parts are there.
// From where the pages of the item were left out, that is as if it were gone.
func (db *DB) summedUpOf(id model.ItemID, indexed, tier []indexedPair) (values, used []indexedPair) {
	at := 0
	for i := range indexed {
		p := indexed[i].pair
		if p.tier != header.Raw || db.thinnedAway(&indexed[i], id) {
			continue
		}
		start := at
		for at < len(tier) && tier[at].pair.source < p.first {
			at++
		}
		used = append(used, tier[start:at]...)
		start, members := at, uint32(0)
		for at < len(tier) && tier[at].pair.source <= p.id.Number {
			if !db.thinnedAway(&tier[at], id) {
				members += tier[at].pair.members
			}
			at++
		}
		if members >= p.members {
			used = append(used, tier[start:at]...)
		} else {
			values = append(values, indexed[i])
		}
	}
	return values, append(used, tier[at:]...)
}

// minutes sums up the values of a view.
func (r *reading) minutes(id model.ItemID, v *view) ([]minuteRow, error) {
	base, late := int64(math.MaxInt64), int64(math.MaxInt64)
	for i := range v.base {
		from, _, _ := v.base[i].bounds()
		base = min(base, from)
	}
	for i := range v.late {
		from, _, _ := v.late[i].bounds()
		late = min(late, from)
	}
	var m minuteRows
	r.fn = func(c *model.Columns) error {
		if c.Type.Numeric() {
			m.take(c)
		}
		if int64(len(m.rows))*128 > r.budget {
			return storage.ErrTooMuch
		}
		return nil
	}
	if err := r.stream(id, v); err != nil {
		return nil, err
	}
	m.mark(base, late)
	m.round()
	return m.rows, nil
}

// storedMinutes returns the rows that pairs of the tier hold.
func (db *DB) storedMinutes(id model.ItemID, minutes []indexedPair, r model.TimeRange, budget int64) ([]minuteRow, error) {
	from := r.From
	if from > math.MinInt64+minute {
		from = minuteOf(from)
	}
	var pages []pageRef
	for i := range minutes {
		e := &minutes[i]
		if !e.mayHold(id) || !e.rows.Reaches(from, r.To) {
			continue
		}
		_, err := db.indexedPages(e.pair, id, func(ref *pageRef) {
			if ref.kind == extent.Minute && ref.from < r.To && ref.to >= from {
				pages = append(pages, *ref)
			}
		})
		if err != nil && !errors.Is(err, errGone) {
			return nil, err
		}
	}
	var rows []minuteRow
	for i := range pages {
		p, err := db.readPage(&pages[i])
		if err == nil {
			rows, err = decodeMinutes(rows, &p)
			err = pages[i].locate(err)
		}
		if err != nil {
			if _, damaged := errors.AsType[*storage.CorruptionError](err); !damaged && !errors.Is(err, errGone) {
				return nil, err
			}
			db.damaged(err)
		}
		if int64(len(rows))*128 > budget {
			return nil, storage.ErrTooMuch
		}
	}
	return slices.DeleteFunc(rows, func(m minuteRow) bool { return m.At < from || m.At >= r.To }), nil
}

// mergeMinutes makes one row of those of the same minute and type.
func (db *DB) mergeMinutes(ctx context.Context, id model.ItemID, rows []minuteRow) ([]minuteRow, error) {
	merged := rows[:0]
	for len(rows) > 0 {
		n, late := 1, rows[0].late
		for n < len(rows) && rows[n].At == rows[0].At && rows[n].valueType == rows[0].valueType {
			late = late || rows[n].late
			n++
		}
		row := rows[0]
		for i := 1; i < n; i++ {
			row.add(&rows[i])
		}
		if n > 1 && late {
			// Their values stand between one another. The sums are right; the rest is made again as long as the values are there.
			again, err := db.remakeMinute(ctx, id, row)
			if err != nil {
				return nil, err
			}
			row = again
		}
		merged = append(merged, row)
		rows = rows[n:]
	}
	return merged, nil
}

// add adds a row of later values of the same minute.
func (r *minuteRow) add(o *minuteRow) {
	switch {
	case o.Count == 0:
		return
	case r.Count == 0:
		*r = *o
		return
	}
	r.Increase += o.Increase
	if !o.late && !r.late {
		r.Increase += increase(r.valueType, r.Last, o.First)
	}
	if !o.late {
		r.Last = o.Last
	}
	var bounds model.Trend
	for _, bits := range [...]uint64{r.Min, r.Max, o.Min, o.Max} {
		storage.AddToTrend(&bounds, r.valueType, bits, 0, false)
	}
	r.Min, r.Max = bounds.Min, bounds.Max
	r.Count, r.Sum = r.Count+o.Count, r.Sum+o.Sum
	low := r.SumLow + o.SumLow
	if low < r.SumLow {
		r.SumHigh++
	}
	r.SumLow, r.SumHigh = low, r.SumHigh+o.SumHigh
}

// remakeMinute makes a row from the values of its minute if they are all there.
func (db *DB) remakeMinute(ctx context.Context, id model.ItemID, row minuteRow) (minuteRow, error) {
	var m minuteRows
	q := storage.Query{Items: []model.ItemID{id}, Range: model.TimeRange{From: row.At, To: row.At + minute}}
	err := db.Read(ctx, q, func(c *model.Columns) error {
		if c.Type == row.valueType {
			m.take(c)
		}
		return nil
	})
	if err != nil || len(m.rows) != 1 || m.rows[0].Count < row.Count {
		return row, err
	}
	m.round()
	return m.rows[0], nil
}
