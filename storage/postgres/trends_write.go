package postgres

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/model"
	"tidemark/storage"
)

// AppendTrends stores hours; an hour that is stored already is replaced. The item need not have values.
func (db *DB) AppendTrends(ctx context.Context, columns []storage.TrendColumns) error {
	if db.closed.Load() {
		return storage.ErrClosed
	}
	byTable := map[tableKey][]storage.TrendColumns{}
	var keys []tableKey
	for _, c := range columns {
		if !c.Type.Numeric() {
			return fmt.Errorf("item %d: trends of type %v, expected numbers", c.Item, c.Type)
		}
		k := tableKey{valueType: c.Type, class: db.definedClass(c.Item), trends: true}
		if byTable[k] == nil {
			keys = append(keys, k)
		}
		byTable[k] = append(byTable[k], c)
	}
	ctx, cancel := context.WithTimeout(ctx, db.o.WriteTimeout)
	defer cancel()
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := db.ensureTables(ctx, conn.Conn(), keys); err != nil {
		return err
	}
	touched := db.touchedByTrends(byTable)
	err = pgx.BeginFunc(ctx, conn.Conn(), func(tx pgx.Tx) error {
		if err := db.fence(ctx, tx); err != nil {
			return err
		}
		if err := db.permitUnpacking(ctx, tx, oldestOf(columns)); err != nil {
			return err
		}
		for _, k := range keys {
			if err := k.storeTrends(ctx, tx.Conn().PgConn(), byTable[k]); err != nil {
				return err
			}
		}
		var batch pgconn.Batch
		db.addItems(&batch, touched)
		_, err := tx.Conn().PgConn().ExecBatch(ctx, &batch).ReadAll()
		return err
	})
	if err == nil {
		db.noteTables(touched)
	}
	return err
}

// oldestOf is the time of the oldest hour.
func oldestOf(columns []storage.TrendColumns) int64 {
	oldest := int64(math.MaxInt64)
	for i := range columns {
		for j := range columns[i].Trends {
			oldest = min(oldest, columns[i].Trends[j].At)
		}
	}
	return oldest
}

// touchedByTrends says which items are to be known by which types: those whose values are not in the database yet, or never were.
func (db *DB) touchedByTrends(byTable map[tableKey][]storage.TrendColumns) map[model.ItemID]touch {
	touched := make(map[model.ItemID]touch)
	db.mu.Lock()
	defer db.mu.Unlock()
	for k, columns := range byTable {
		for i := range columns {
			id := columns[i].Item
			it := db.get(id)
			if it.types>>k.valueType&1 != 0 {
				continue
			}
			t := touched[id]
			t.types |= 1 << k.valueType
			t.classes |= 1 << k.class
			touched[id] = t
		}
	}
	return touched
}

// storeTrends writes the hours of one table.
func (k tableKey) storeTrends(ctx context.Context, c *pgconn.PgConn, columns []storage.TrendColumns) error {
	number := uint32(oidFloat8Array)
	if k.valueType == model.Uint {
		number = oidNumericArray
	}
	items, clocks, counts := newArray(oidInt8Array), newArray(oidInt4Array), newArray(oidInt8Array)
	var numbers [4]*array
	for i := range numbers {
		numbers[i] = newArray(number)
	}
	averages, sums, increases := newArray(oidTextArray), newArray(oidTextArray), newArray(oidFloat8Array)
	for i := range columns {
		for j := range columns[i].Trends {
			t := &columns[i].Trends[j]
			items.int8(int64(columns[i].Item))
			clocks.int4(int32(t.At / int64(time.Second)))
			counts.int8(int64(t.Count))
			for n, v := range []uint64{t.Min, t.Max, t.First, t.Last} {
				if k.valueType == model.Uint {
					numbers[n].numeric(v)
				} else {
					numbers[n].float8(v)
				}
			}
			average, sum := textsOf(t, k.valueType)
			averages.text(average)
			sums.text(sum)
			increases.float8(math.Float64bits(t.Increase))
		}
	}
	kind, cast := "double precision", "double precision"
	if k.valueType == model.Uint {
		kind, cast = "numeric", "numeric"
	}
	sql := fmt.Sprintf(`INSERT INTO %[1]s (itemid, clock, num, value_min, value_max, value_first, value_last, value_avg, value_sum, increase)
		SELECT i, c, n, a, b, f, l, v::%[3]s, s::%[3]s, g FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::%[2]s[], $5::%[2]s[], $6::%[2]s[], $7::%[2]s[],
			$8::text[], $9::text[], $10::double precision[]) AS u(i, c, n, a, b, f, l, v, s, g)
		ON CONFLICT (itemid, clock) DO UPDATE SET num = excluded.num, value_min = excluded.value_min, value_avg = excluded.value_avg, value_max = excluded.value_max,
			value_first = excluded.value_first, value_last = excluded.value_last, value_sum = excluded.value_sum, increase = excluded.increase`, k, kind, cast)
	values, oids, formats := parameters([]*array{items, clocks, counts, numbers[0], numbers[1], numbers[2], numbers[3], averages, sums, increases})
	return c.ExecParams(ctx, sql, values, oids, formats, nil).Read().Err
}

// textsOf returns average and sum as PostgreSQL reads them. The average of integers is rounded down, as Zabbix does it.
func textsOf(t *model.Trend, vt model.ValueType) (average, sum string) {
	if vt == model.Uint {
		s := sumOf(t)
		return new(big.Int).Div(s, new(big.Int).SetUint64(max(t.Count, 1))).String(), s.String()
	}
	return formatFloat(t.Average(vt)), formatFloat(t.Sum)
}
