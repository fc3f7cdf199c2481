package dbengine

import (
	"fmt"
	"math"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/page"
)

// trend is the hourly tier of a series in memory: the hour that is running, and rows not yet in a page.
type trend struct {
	current   model.Trend
	valueType model.ValueType
	// stale means that a late value fell into the current hour, so that the row must be made again from the values.
	stale       bool
	hasPrevious bool
	// previous is the last value counted.
	previous uint64
	done     []hourRow
}

// hourRow is one row of the hourly tier.
type hourRow struct {
	model.Trend
	valueType model.ValueType
	// stale rows must be made again from the values.
	stale bool
}

// add counts a value that is the newest of its series.
func (t *trend) add(at int64, vt model.ValueType, bits uint64) {
	if uint64(at-t.current.At) >= uint64(storage.Hour) || vt != t.valueType {
		t.finish()
		if vt != t.valueType {
			t.valueType, t.hasPrevious = vt, false
		}
		t.current = model.Trend{At: storage.HourOf(at)}
	}
	if storage.AddToTrend(&t.current, vt, bits, t.previous, t.hasPrevious) {
		t.previous, t.hasPrevious = bits, true
	}
}

// finish moves the current hour to the rows that wait for a page.
func (t *trend) finish() {
	if t.current.Count > 0 || t.stale {
		t.done = append(t.done, hourRow{Trend: t.current, valueType: t.valueType, stale: t.stale})
	}
	t.current, t.stale = model.Trend{}, false
}

// correct notes that a late value fell into its hour. The row after that counts its increase from a value that may now
// be another, so it is made again too; if it is only on disk the flusher sees to it.
func (t *trend) correct(at int64, vt model.ValueType) {
	hour := storage.HourOf(at)
	if hour == t.current.At && vt == t.valueType {
		t.stale = true
		return
	}
	var own, after *hourRow
	for i := range t.done {
		row := &t.done[i]
		switch {
		case row.valueType != vt:
		case row.At == hour:
			own = row
		case row.At > hour && row.Count > 0 && (after == nil || row.At < after.At):
			after = row // without a count it may have no number at all, and the one after it matters
		}
	}
	if after != nil {
		after.stale = true
	} else if t.current.Count > 0 {
		t.stale = true
	}
	if own != nil {
		own.stale = true
		return
	}
	t.done = append(t.done, hourRow{Trend: model.Trend{At: hour}, valueType: vt, stale: true})
}

// detach returns the rows that must be on disk before the log is recycled: those that are done, and behind them the
// current hour as it is now, from which recovery goes on. It also returns the current hour.
func (t *trend) detach() (rows []hourRow, current int64) {
	rows = t.done
	t.done = nil
	if t.current.Count > 0 || t.stale {
		rows = append(rows, hourRow{Trend: t.current, valueType: t.valueType, stale: t.stale})
	}
	return rows, t.current.At
}

// rowFields is the number of columns of a page of rows, besides the hours.
const rowFields = 9

// appendRows encodes rows, which have one type and rise in time, as a page's values: field after field.
func appendRows(dst []byte, rows []hourRow) []byte {
	v := make([]uint64, 0, rowFields*len(rows))
	for _, field := range []func(*hourRow) uint64{
		func(r *hourRow) uint64 { return r.Count },
		func(r *hourRow) uint64 { return r.Min },
		func(r *hourRow) uint64 { return r.Max },
		func(r *hourRow) uint64 { return r.First },
		func(r *hourRow) uint64 { return r.Last },
		func(r *hourRow) uint64 {
			if r.valueType == model.Uint {
				return r.SumLow
			}
			return math.Float64bits(r.Sum)
		},
		func(r *hourRow) uint64 { return r.SumHigh },
		func(r *hourRow) uint64 { return math.Float64bits(r.Increase) },
		func(r *hourRow) uint64 {
			if r.stale {
				return 1
			}
			return 0
		},
	} {
		for i := range rows {
			v = append(v, field(&rows[i]))
		}
	}
	return page.AppendUints(dst, v)
}

// decodeRows reads a page of rows.
func decodeRows(p *extent.Page) ([]hourRow, error) {
	times, err := page.DecodeTimes(nil, p.Times, p.Count)
	if err != nil {
		return nil, err
	}
	v, err := page.DecodeUints(nil, p.Values, rowFields*p.Count)
	if err != nil {
		return nil, fmt.Errorf("hourly rows: %w", err)
	}
	rows := make([]hourRow, p.Count)
	for i := range rows {
		f := func(k int) uint64 { return v[k*p.Count+i] }
		r := &rows[i]
		r.At, r.valueType = times[i], p.Type
		r.Count, r.Min, r.Max, r.First, r.Last = f(0), f(1), f(2), f(3), f(4)
		if p.Type == model.Uint {
			r.SumLow, r.SumHigh = f(5), f(6)
		} else {
			r.Sum = math.Float64frombits(f(5))
		}
		r.Increase = math.Float64frombits(f(7))
		r.stale = f(8) != 0
	}
	return rows, nil
}

// trendOf returns the trend state of a series, which it loads from disk the first time; the shard is locked.
func (db *DB) trendOf(s *series) *trend {
	if s.trend != nil {
		return s.trend
	}
	t := &trend{}
	s.trend = t
	if len(s.hours) > 0 {
		last := s.hours[len(s.hours)-1]
		for i := range s.hours {
			if s.hours[i].to >= last.to {
				last = s.hours[i]
			}
		}
		p, err := db.readPage(&last)
		if err == nil {
			var rows []hourRow
			if rows, err = decodeRows(&p); err == nil {
				r := rows[len(rows)-1]
				t.current, t.valueType, t.stale = r.Trend, r.valueType, r.stale
				t.previous, t.hasPrevious = r.Last, r.Count > 0
			}
		}
		if err != nil {
			db.damaged(err)
		}
	}
	// Values without their row: it was damaged, or deleted with its pair. Make it again when it is asked for.
	if n := len(s.pages); n > 0 && s.pages[n-1].valueType.Numeric() && storage.HourOf(s.pages[n-1].to) > t.current.At {
		ref := &s.pages[n-1]
		t.finish()
		t.current, t.valueType, t.stale = model.Trend{At: storage.HourOf(ref.to)}, ref.valueType, true
		if d, err := db.decode(ref); err == nil {
			t.previous, t.hasPrevious = d.bits[len(d.bits)-1], true
		}
	}
	return t
}
