package postgres

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/model"
	"tidemark/storage"
)

// typedTrend is an hour of one item.
type typedTrend struct {
	model.Trend
	valueType model.ValueType
}

// Trends streams hourly summaries: the stored ones, and behind an item's last stored hour those that its values make. See storage.Engine.
func (db *DB) Trends(ctx context.Context, q storage.Query, fn func(*storage.TrendColumns) error) error {
	for _, id := range q.Items {
		if err := ctx.Err(); err != nil {
			return err
		}
		if db.closed.Load() {
			return storage.ErrClosed
		}
		if !db.hasNumbers(id) {
			continue
		}
		hours, last, err := db.storedTrends(ctx, id, q)
		if err != nil {
			return err
		}
		fresh, err := db.freshTrends(ctx, id, last, q)
		if err != nil {
			return err
		}
		hours = append(hours, fresh...)
		if q.Newest > 0 && len(hours) > q.Newest {
			hours = hours[len(hours)-q.Newest:]
		}
		if err := deliverTrends(id, hours, fn); err != nil {
			return err
		}
	}
	return nil
}

// hasNumbers reports whether an item has values with trends.
func (db *DB) hasNumbers(id model.ItemID) bool {
	db.mu.RLock()
	defer db.mu.RUnlock()
	it := db.items.Get(id)
	if it == nil {
		return false
	}
	return it.types&numbersOnly != 0 || slices.ContainsFunc(it.waiting, func(r ref) bool { return r.p.Batch.Types[r.row].Numeric() })
}

// deliverTrends hands hours to fn, one call for each run of one type.
func deliverTrends(id model.ItemID, hours []typedTrend, fn func(*storage.TrendColumns) error) error {
	for len(hours) > 0 {
		c := storage.TrendColumns{Item: id, Type: hours[0].valueType}
		n := 0
		for ; n < len(hours) && hours[n].valueType == c.Type; n++ {
			c.Trends = append(c.Trends, hours[n].Trend)
		}
		if err := fn(&c); err != nil {
			return err
		}
		hours = hours[n:]
	}
	return nil
}

// trendTables returns the trend tables that an item may be in.
func (db *DB) trendTables(id model.ItemID) []tableKey {
	db.mu.RLock()
	defer db.mu.RUnlock()
	it := db.items.Get(id)
	if it == nil {
		return nil
	}
	var keys []tableKey
	for class := range uint8(MaxClasses) {
		for _, t := range numericTypes {
			k := tableKey{valueType: t, class: class, trends: true}
			if db.tables[k] != nil && it.types>>t&1 != 0 {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

const trendColumns = "clock, num, value_min, value_max, value_first, value_last, value_sum::text, increase"

// storedTrends returns the stored hours of a range, by time, and the last stored hour of all, or never.
func (db *DB) storedTrends(ctx context.Context, id model.ItemID, q storage.Query) (hours []typedTrend, last int64, err error) {
	last = never
	tables := db.trendTables(id)
	if len(tables) == 0 {
		return nil, last, nil
	}
	from, to := clampRange(q.Range)
	fromClock, toClock := int32((from+int64(time.Second)-1)/int64(time.Second)), int32(to/int64(time.Second))
	err = db.steady(ctx, func(c *pgconn.PgConn, known int64) error {
		var batch pgconn.Batch
		addShape(&batch)
		for _, k := range tables {
			addTrendSelects(&batch, db.sourceOf(k), id, [2]int32{fromClock, toClock}, q.Newest)
		}
		results := c.ExecBatch(ctx, &batch)
		if err := checkShape(results, known); err != nil {
			return err
		}
		for _, k := range tables {
			if !results.NextResult() {
				break
			}
			rows := results.ResultReader()
			for rows.NextRow() {
				clock, err := decodeInt4(rows.Values()[0])
				if err != nil {
					return err
				}
				last = max(last, join(clock, 0))
			}
			if !results.NextResult() {
				break
			}
			for rows = results.ResultReader(); rows.NextRow(); {
				t, err := k.decodeTrend(rows.Values())
				if err != nil {
					return err
				}
				hours = append(hours, t)
			}
		}
		return results.Close()
	})
	slices.SortStableFunc(hours, func(a, b typedTrend) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	return hours, last, err
}

// addTrendSelects asks for the last stored hour of an item, and for the hours of a range of clock, both ends inclusive.
func addTrendSelects(batch *pgconn.Batch, source string, id model.ItemID, clocks [2]int32, newest int) {
	batch.ExecParams(fmt.Sprintf("SELECT clock FROM %s AS t WHERE itemid = $1 ORDER BY clock DESC LIMIT 1", source),
		[][]byte{int8Param(int64(id))}, []uint32{oidInt8}, []int16{1}, []int16{1})
	params := [][]byte{int8Param(int64(id)), int4Param(clocks[0]), int4Param(clocks[1])}
	oids, formats := []uint32{oidInt8, oidInt4, oidInt4}, []int16{1, 1, 1}
	sql := fmt.Sprintf("SELECT %s FROM %s AS t WHERE itemid = $1 AND clock BETWEEN $2 AND $3 ORDER BY clock", trendColumns, source)
	if newest > 0 {
		sql += " DESC LIMIT $4"
		params, oids, formats = append(params, int8Param(int64(newest))), append(oids, oidInt8), append(formats, 1)
	}
	batch.ExecParams(sql, params, oids, formats, []int16{1})
}

func (k tableKey) decodeTrend(cells [][]byte) (typedTrend, error) {
	t := typedTrend{valueType: k.valueType}
	clock, err := decodeInt4(cells[0])
	if err != nil {
		return t, err
	}
	t.At = join(clock, 0)
	num, err := decodeInt8(cells[1])
	if err != nil {
		return t, err
	}
	t.Count = uint64(num)
	for i, into := range []*uint64{&t.Min, &t.Max, &t.First, &t.Last} {
		if k.valueType == model.Uint {
			*into, err = decodeNumeric(cells[2+i])
		} else {
			var bits int64
			bits, err = decodeInt8(cells[2+i])
			*into = uint64(bits)
		}
		if err != nil {
			return t, err
		}
	}
	increase, err := decodeInt8(cells[7])
	if err != nil {
		return t, err
	}
	t.Increase = math.Float64frombits(uint64(increase))
	return t, t.setSum(string(cells[6]))
}

// setSum reads value_sum as text.
func (t *typedTrend) setSum(s string) error {
	if t.valueType == model.Float {
		var err error
		t.Sum, err = strconv.ParseFloat(s, 64)
		return err
	}
	sum, ok := new(big.Int).SetString(s, 10)
	if !ok || sum.Sign() < 0 || sum.BitLen() > 128 {
		return fmt.Errorf("value_sum %q, expected an integer below 2^128", s)
	}
	t.SumLow = new(big.Int).And(sum, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	t.SumHigh = new(big.Int).Rsh(sum, 64).Uint64()
	return nil
}

// sum is the exact sum of integers.
func sumOf(t *model.Trend) *big.Int {
	sum := new(big.Int).SetUint64(t.SumHigh)
	return sum.Lsh(sum, 64).Add(sum, new(big.Int).SetUint64(t.SumLow))
}

// freshTrends summarises the values behind the hour last that lie in the range.
func (db *DB) freshTrends(ctx context.Context, id model.ItemID, last int64, q storage.Query) ([]typedTrend, error) {
	from := max(q.Range.From, 0)
	if last != never {
		from = max(from, last+storage.Hour)
	}
	if h := storage.HourOf(from); h < from { // hours that begin in the range
		from = h + storage.Hour
	}
	to := q.Range.To
	if to < math.MaxInt64-storage.Hour {
		if h := storage.HourOf(to); h < to { // the last hour that begins in the range is whole
			to = h + storage.Hour
		}
	}
	if from >= to {
		return nil, nil
	}
	previous, has, err := db.valueBefore(ctx, id, from)
	if err != nil {
		return nil, err
	}
	var hours []typedTrend
	err = db.read(ctx, storage.Query{Items: []model.ItemID{id}, Range: model.TimeRange{From: from, To: to}, MaxBytes: q.MaxBytes}, allTypes,
		func(_ model.ItemID, v *values) error {
			hours = summarize(v.list, previous, has)
			return nil
		})
	return hours, err
}

// valueBefore returns the last number before a time, if the item's type did not change after it.
func (db *DB) valueBefore(ctx context.Context, id model.ItemID, at int64) (value, bool, error) {
	q := storage.Query{Items: []model.ItemID{id}, Range: model.TimeRange{From: math.MinInt64, To: at}, Newest: 1}
	const furthest = 1024 // so many NaN are stepped over
	for {
		var list []value
		if err := db.read(ctx, q, allTypes, func(_ model.ItemID, v *values) error { list = v.list; return nil }); err != nil {
			return value{}, false, err
		}
		for i := len(list) - 1; i >= 0; i-- {
			v := list[i]
			if !v.valueType.Numeric() || v.valueType != list[len(list)-1].valueType {
				return value{}, false, nil
			}
			if v.valueType == model.Uint || !math.IsNaN(math.Float64frombits(v.bits)) {
				return v, true, nil
			}
		}
		if len(list) < q.Newest || q.Newest >= furthest {
			return value{}, false, nil
		}
		q.Newest *= 32
	}
}

// summarize makes hours of values in time order.
func summarize(list []value, previous value, hasPrevious bool) []typedTrend {
	var hours []typedTrend
	for _, v := range list {
		hasPrevious = hasPrevious && previous.valueType == v.valueType
		if !v.valueType.Numeric() {
			continue
		}
		hour := storage.HourOf(v.at)
		n := len(hours)
		if n == 0 || hours[n-1].At != hour || hours[n-1].valueType != v.valueType {
			hours = append(hours, typedTrend{Trend: model.Trend{At: hour}, valueType: v.valueType})
			n++
		}
		if storage.AddToTrend(&hours[n-1].Trend, v.valueType, v.bits, previous.bits, hasPrevious) {
			previous, hasPrevious = v, true
		}
		if hours[n-1].Count == 0 {
			hours = hours[:n-1]
		}
	}
	return hours
}

// UnsavedTrends calls fn for the hours before before that values make and that are not stored yet, of all items with numbers. It is how a
// trends cache finds what a crash kept it from writing.
func (db *DB) UnsavedTrends(ctx context.Context, before int64, fn func(*storage.TrendColumns) error) error {
	db.mu.RLock()
	var ids []model.ItemID
	for _, id := range db.ids {
		if db.items.Get(id).types&numbersOnly != 0 {
			ids = append(ids, id)
		}
	}
	db.mu.RUnlock()
	q := storage.Query{Range: model.TimeRange{From: 0, To: before}, Newest: 1}
	for _, id := range ids {
		_, last, err := db.storedTrends(ctx, id, q)
		if err != nil {
			return err
		}
		hours, err := db.freshTrends(ctx, id, last, storage.Query{Range: q.Range})
		if err != nil {
			return err
		}
		if err := deliverTrends(id, hours, fn); err != nil {
			return err
		}
	}
	return nil
}
