package dbengine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/page"
)

// trend is the hourly tier of a series in memory: the hour that is running, and rows not yet in a page. Each active series has one, so it is
// packed into 96 bytes.
type trend struct {
	// at to increase are the hour that is running. sumLow has the bits of the sum of floats, and the last value of an hour that has any
	// is previous.
	at                     int64
	count, sumLow, sumHigh uint64
	min, max, first        uint64
	increase               float64
	// previous is the last value counted, previousAt its time or one before.
	previous   uint64
	previousAt int64
	// done are the rows that wait for a page, nil for none.
	done        *[]hourRow
	valueType   model.ValueType
	hasPrevious bool
	// stale means that a late value fell into the current hour, so that the row must be made again from the values.
	stale bool
	// doubt means that a late value may stand behind previous, since what came later was NaN: the next hour is stale.
	doubt bool
}

// current returns the hour that is running.
func (t *trend) current() model.Trend {
	c := model.Trend{At: t.at, Count: t.count, Min: t.min, Max: t.max, First: t.first, Increase: t.increase}
	if t.valueType == model.Uint {
		c.SumLow, c.SumHigh = t.sumLow, t.sumHigh
	} else {
		c.Sum = math.Float64frombits(t.sumLow)
	}
	if t.count > 0 {
		c.Last = t.previous
	}
	return c
}

// setCurrent sets the hour that is running, of the trend's type. Its last value is set as previous by the caller.
func (t *trend) setCurrent(c *model.Trend) {
	t.at, t.count, t.min, t.max, t.first, t.increase = c.At, c.Count, c.Min, c.Max, c.First, c.Increase
	t.sumLow, t.sumHigh = c.SumLow, c.SumHigh
	if t.valueType != model.Uint {
		t.sumLow, t.sumHigh = math.Float64bits(c.Sum), 0
	}
}

// running returns the row of the hour that is running, if it has anything.
func (t *trend) running() (row hourRow, ok bool) {
	return hourRow{Trend: t.current(), valueType: t.valueType, stale: t.stale}, t.count > 0 || t.stale
}

// rows returns the rows that wait for a page.
func (t *trend) rows() []hourRow {
	if t.done == nil {
		return nil
	}
	return *t.done
}

func (t *trend) addRow(r hourRow) {
	if t.done == nil {
		t.done = new([]hourRow)
	}
	*t.done = append(*t.done, r)
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
	if uint64(at-t.at) >= uint64(storage.Hour) || vt != t.valueType {
		t.finish()
		if vt != t.valueType {
			t.valueType, t.hasPrevious = vt, false
		}
		t.at = storage.HourOf(at)
	}
	c := t.current()
	if storage.AddToTrend(&c, vt, bits, t.previous, t.hasPrevious) {
		t.previous, t.previousAt, t.hasPrevious = bits, at, true
		t.setCurrent(&c)
	}
}

// finish moves the current hour to the rows that wait for a page.
func (t *trend) finish() {
	if row, ok := t.running(); ok {
		t.addRow(row)
	}
	t.setCurrent(&model.Trend{})
	t.stale, t.doubt = t.doubt, false
}

// correct notes that a late value fell into its hour. The row after that counts its increase from a value that may now
// be another, so it is made again too; if it is only on disk the flusher sees to it.
func (t *trend) correct(at int64, vt model.ValueType) {
	hour := storage.HourOf(at)
	if vt == t.valueType && at > t.previousAt && (t.hasPrevious || t.at != 0) {
		t.stale, t.doubt = true, true
	}
	if hour == t.at && vt == t.valueType {
		t.stale = true
		return
	}
	var own, after *hourRow
	done := t.rows()
	for i := range done {
		row := &done[i]
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
	} else if t.count > 0 {
		t.stale = true
	}
	if own != nil {
		own.stale = true
		return
	}
	t.addRow(hourRow{Trend: model.Trend{At: hour}, valueType: vt, stale: true})
}

// detach returns the rows that must be on disk before the log is recycled: those that are done, and behind them the
// current hour as it is now, from which recovery goes on. It also returns the current hour.
func (t *trend) detach() (rows []hourRow, current int64) {
	rows = t.rows()
	t.done = nil
	if row, ok := t.running(); ok {
		rows = append(rows, row)
	}
	return rows, t.at
}

// appendRows encodes rows as a page's values, row after row: a page often has only one, for which a column is a detour.
// Each is a byte that is 1 for a stale row, then uvarints: count, first, and by xor with first the last, minimum and
// maximum; both halves of the sum, or its bits and zero for floats; the increase. Floats have their bytes reversed, since their
// last ones are the ones that are often zero.
func appendRows(dst []byte, rows []hourRow) []byte {
	for i := range rows {
		r := &rows[i]
		stale := byte(0)
		if r.stale {
			stale = 1
		}
		dst = binary.AppendUvarint(append(dst, stale), r.Count)
		low, high, order := r.SumLow, r.SumHigh, func(x uint64) uint64 { return x }
		if r.valueType != model.Uint {
			low, high, order = math.Float64bits(r.Sum), 0, bits.ReverseBytes64
		}
		for _, x := range [...]uint64{r.First, r.First ^ r.Last, r.First ^ r.Min, r.First ^ r.Max, low} {
			dst = binary.AppendUvarint(dst, order(x))
		}
		dst = binary.AppendUvarint(dst, high)
		dst = binary.AppendUvarint(dst, bits.ReverseBytes64(math.Float64bits(r.Increase)))
	}
	return dst
}

// decodeRows reads a page of rows.
func decodeRows(p *extent.Page) ([]hourRow, error) {
	times, err := page.DecodeTimes(nil, p.Times, p.Count)
	if err != nil {
		return nil, err
	}
	rows := make([]hourRow, p.Count)
	rest := p.Values
	for i := range rows {
		var f [8]uint64
		if len(rest) == 0 || rest[0] > 1 {
			return nil, fmt.Errorf("%w: row %d of %d hourly rows", page.ErrColumn, i, p.Count)
		}
		stale := rest[0] == 1
		rest = rest[1:]
		for j := range f {
			x, k := binary.Uvarint(rest)
			if k <= 0 {
				return nil, fmt.Errorf("%w: row %d of %d hourly rows is cut off", page.ErrColumn, i, p.Count)
			}
			f[j], rest = x, rest[k:]
		}
		r := &rows[i]
		r.At, r.valueType, r.stale, r.Count = times[i], p.Type, stale, f[0]
		if p.Type == model.Uint {
			r.SumLow, r.SumHigh = f[5], f[6]
		} else {
			for j := 1; j < 5; j++ {
				f[j] = bits.ReverseBytes64(f[j])
			}
			r.Sum = math.Float64frombits(bits.ReverseBytes64(f[5]))
		}
		r.First, r.Last, r.Min, r.Max = f[1], f[1]^f[2], f[1]^f[3], f[1]^f[4]
		r.Increase = math.Float64frombits(bits.ReverseBytes64(f[7]))
	}
	if len(rest) != 0 {
		return nil, fmt.Errorf("%w: %d bytes behind %d hourly rows", page.ErrColumn, len(rest), p.Count)
	}
	return rows, nil
}

// trendOf returns the trend state of a series with all its values, after loading it from disk the first time; the shard is locked.
func (db *DB) trendOf(s *series) *trend {
	if s.trend == nil {
		s.trend = db.loadTrend(s)
	}
	s.fold()
	return s.trend
}

// fold adds the values of the hot page to the trend that are not in it yet.
func (s *series) fold() {
	if s.folded == s.page.count {
		return
	}
	var room [1024]uint64
	n := s.page.freeze()
	values := n.decodeFrom(room[:0], int(s.folded), int(s.page.count))
	s.trend.addRun(n.times[s.folded:], s.valueType, values)
	s.folded = s.page.count
}

// addRun adds values that are the newest of their series, in order of time.
func (t *trend) addRun(times []int64, vt model.ValueType, values []uint64) {
	for len(times) > 0 {
		t.add(times[0], vt, values[0])
		end := searchTimes(times, t.at+storage.Hour)
		c := t.current()
		t.previous, t.hasPrevious = storage.AddRunToTrend(&c, vt, values[1:end], t.previous, t.hasPrevious)
		t.setCurrent(&c)
		last := end - 1
		for last > 0 && vt == model.Float && math.IsNaN(math.Float64frombits(values[last])) {
			last--
		}
		if last > 0 {
			t.previousAt = times[last]
		}
		times, values = times[end:], values[end:]
	}
}

// loadTrend returns the trend state of a series as it is on disk.
func (db *DB) loadTrend(s *series) *trend {
	t := &trend{previousAt: minTime}
	hour, values := db.lastPages(s)
	if hour.pair != nil {
		p, err := db.readPage(&hour)
		if err == nil {
			var rows []hourRow
			if rows, err = decodeRows(&p); err == nil {
				r := rows[len(rows)-1]
				t.valueType, t.stale = r.valueType, r.stale
				t.setCurrent(&r.Trend)
				t.previous, t.previousAt, t.hasPrevious, t.doubt = r.Last, r.At, r.Count > 0, r.stale
			}
		}
		if err != nil {
			db.damaged(err)
		}
	}
	// Values without their row: it was damaged, or deleted with its pair. Make it again when it is asked for.
	if values.pair != nil && values.valueType.Numeric() && storage.HourOf(values.to) > t.at {
		t.finish()
		t.valueType, t.stale, t.doubt = values.valueType, true, true
		t.setCurrent(&model.Trend{At: storage.HourOf(values.to)})
		if d, err := db.decode(&values); err == nil {
			t.previous, t.hasPrevious = d.bits[len(d.bits)-1], true
		}
	}
	return t
}

// lastPages returns the page of rows that reaches furthest and the last page of values, without a pair if there are none. The shard is locked.
func (db *DB) lastPages(s *series) (hour, values pageRef) {
	same := true // hours of pairs are compared with one another: those of a merged pair are in it and in several pairs of the tier
	look := func(ref *pageRef) {
		switch {
		case ref.kind == extent.Hourly && same && (hour.pair == nil || !ref.endsBefore(&hour)):
			hour = *ref
		case ref.kind == extent.Values && (values.pair == nil || values.pair == ref.pair && ref.to > values.to):
			values = *ref
		}
	}
	if d := s.disk; d != nil {
		for _, list := range [][]pageRef{d.hours, d.pages} {
			for i := range list {
				if n := len(list); list[i].pair == list[n-1].pair { // of the newest pair
					look(&list[i])
				}
			}
		}
	}
	sh := db.shardOf(s.id)
	indexed := sh.indexed
	lowest := uint32(math.MaxUint32) // from here on pairs belong to the run whose hours are looked at
	for i := len(indexed) - 1; i >= 0; i-- {
		p := indexed[i].pair
		if same = hour.pair == nil || p.order() >= lowest; !same && values.pair != nil {
			break
		}
		if !p.thinned() && !indexed[i].mayHold(s.id) {
			continue
		}
		if err := db.withHours(&indexed[i], sh.hours, s.id, look); err != nil {
			db.damaged(err)
		}
		if same && hour.pair != nil {
			lowest = min(lowest, p.first)
		}
	}
	return hour, values
}

// endsBefore reports whether the last row of a page of hours is of an earlier hour than that of another, or was written earlier: beside a merged pair
// the tier has what came later.
func (r *pageRef) endsBefore(o *pageRef) bool {
	return cmp.Or(cmp.Compare(r.to, o.to), cmp.Compare(r.pair.order(), o.pair.order()), cmp.Compare(r.pair.tier, o.pair.tier)) < 0
}
