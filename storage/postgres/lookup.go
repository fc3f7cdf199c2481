package postgres

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/model"
)

// storedValue is a value that the database has.
type storedValue struct {
	valueType model.ValueType
	bits      uint64
	text      []byte
}

func (s *storedValue) same(b *model.Batch, i int) bool {
	if s.valueType.InArena() {
		return bytes.Equal(s.text, b.Bytes(i))
	}
	return s.bits == b.Bits[i]
}

// walkNanos is how near to the end of a second a value must be for the next second to be looked up too: as far as values that share
// an instant are expected to be moved. The writer finds what goes farther.
const walkNanos = 100_000

// lookUp adds to stored what the database has in the seconds of the instants, and learns the newest values of their items. It reports
// whether it could: not while the database is away.
func (db *DB) lookUp(ctx context.Context, needed []instant, stored map[instant]storedValue) bool {
	if db.away.Load() != nil {
		db.m.unchecked.Add(len(needed))
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, db.o.QueryTimeout)
	defer cancel()
	seconds := map[tableKey]map[instant]bool{}
	unknown := map[model.ItemID]int64{}
	db.mu.RLock()
	for _, n := range needed {
		it := db.items.Get(n.item)
		clock := n.at / int64(time.Second)
		for _, k := range it.tables() {
			if seconds[k] == nil {
				seconds[k] = map[instant]bool{}
			}
			seconds[k][instant{n.item, clock}] = true
			if n.at%int64(time.Second) >= int64(time.Second)-walkNanos {
				seconds[k][instant{n.item, clock + 1}] = true
			}
		}
		if !it.known {
			unknown[n.item] = never
		}
	}
	db.mu.RUnlock()
	err := db.steady(ctx, func(c *pgconn.PgConn, known int64) error {
		if err := db.lookUpAll(ctx, c, seconds, unknown, stored); err != nil {
			return err
		}
		var batch pgconn.Batch // nothing has been used yet, so that tables may be compared afterwards
		addShape(&batch)
		results := c.ExecBatch(ctx, &batch)
		if err := checkShape(results, known); err != nil {
			return err
		}
		return results.Close()
	})
	if err != nil {
		db.o.Logger.Warn("late values could not be compared with the database", "error", err)
		db.m.unchecked.Add(len(needed))
		return false
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	for id, at := range unknown {
		it := db.items.Get(id)
		it.newest, it.known = max(it.newest, at), true
	}
	return true
}

func (db *DB) lookUpAll(ctx context.Context, c *pgconn.PgConn, seconds map[tableKey]map[instant]bool, unknown map[model.ItemID]int64, stored map[instant]storedValue) error {
	for k, wanted := range seconds {
		items, clocks := newArray(oidInt8Array), newArray(oidInt4Array)
		newest := newArray(oidInt8Array)
		lowest, highest := int32(math.MaxInt32), int32(0)
		asked := map[model.ItemID]bool{}
		for n := range wanted {
			items.int8(int64(n.item))
			clocks.int4(int32(n.at))
			lowest, highest = min(lowest, int32(n.at)), max(highest, int32(n.at))
			if _, ok := unknown[n.item]; ok && !asked[n.item] {
				asked[n.item] = true
				newest.int8(int64(n.item))
			}
		}
		sql := fmt.Sprintf(`SELECT w.itemid, h.clock, h.ns, %s FROM unnest($1::bigint[], $2::integer[]) AS w(itemid, clock)
			JOIN LATERAL (SELECT * FROM %s t WHERE t.itemid = w.itemid AND t.clock = w.clock AND t.clock BETWEEN $3 AND $4) h ON true`, k.shape().names, db.sourceOf(k))
		rows := c.ExecParams(ctx, sql, [][]byte{items.encoded(), clocks.encoded(), int4Param(lowest), int4Param(highest)},
			[]uint32{oidInt8Array, oidInt4Array, oidInt4, oidInt4}, []int16{1, 1, 1, 1}, []int16{1})
		for rows.NextRow() {
			id, at, bits, text, err := k.decodeRow(rows.Values())
			if err != nil {
				return err
			}
			stored[instant{id, at}] = storedValue{valueType: k.valueType, bits: bits, text: bytes.Clone(text)}
		}
		if _, err := rows.Close(); err != nil {
			return err
		}
		if err := lookUpNewest(ctx, c, db.sourceOf(k), newest, unknown); err != nil {
			return err
		}
	}
	return nil
}

// lookUpNewest raises the newest times of items by those of one table.
func lookUpNewest(ctx context.Context, c *pgconn.PgConn, source string, items *array, newest map[model.ItemID]int64) error {
	if items.n == 0 {
		return nil
	}
	sql := fmt.Sprintf(`SELECT w.itemid, h.clock, h.ns FROM unnest($1::bigint[]) AS w(itemid)
		JOIN LATERAL (SELECT clock, ns FROM %s t WHERE t.itemid = w.itemid ORDER BY clock DESC, ns DESC LIMIT 1) h ON true`, source)
	rows := c.ExecParams(ctx, sql, [][]byte{items.encoded()}, []uint32{oidInt8Array}, []int16{1}, []int16{1})
	for rows.NextRow() {
		id, at, err := decodeInstant(rows.Values())
		if err != nil {
			return err
		}
		newest[id] = max(newest[id], at)
	}
	_, err := rows.Close()
	return err
}

func decodeInstant(cells [][]byte) (model.ItemID, int64, error) {
	id, err := decodeInt8(cells[0])
	if err != nil {
		return 0, 0, err
	}
	at, err := decodeTime(cells[1:])
	return model.ItemID(id), at, err
}

func decodeTime(cells [][]byte) (int64, error) {
	clock, err := decodeInt4(cells[0])
	if err != nil {
		return 0, err
	}
	ns, err := decodeInt4(cells[1])
	return join(clock, ns), err
}

// decodeRow reads item, clock, ns and the shape's columns.
func (k tableKey) decodeRow(cells [][]byte) (id model.ItemID, at int64, bits uint64, text []byte, err error) {
	if id, at, err = decodeInstant(cells); err != nil {
		return 0, 0, 0, nil, err
	}
	bits, text, err = k.payload(cells[3:])
	return id, at, bits, text, err
}

// tables are the tables of the database that have values of the item.
func (it *item) tables() []tableKey {
	var keys []tableKey
	for class := range uint8(MaxClasses) {
		if it.classes>>class&1 == 0 {
			continue
		}
		for t := range uint8(valueTypes) {
			if it.types>>t&1 != 0 {
				keys = append(keys, tableKey{valueType: model.ValueType(t), class: class})
			}
		}
	}
	return keys
}
