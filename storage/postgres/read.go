package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/model"
	"tidemark/storage"
)

const (
	// pipelined is how many items are asked for in one round trip.
	pipelined = 256
	// defaultReadBytes is Query.MaxBytes if that is zero.
	defaultReadBytes = 256 << 20
)

// value is one value of an item while it is merged.
type value struct {
	at        int64
	bits      uint64 // a span in the arena of values for types that have one
	valueType model.ValueType
}

// values are those of one item.
type values struct {
	list  []value
	arena []byte
}

func (v *values) add(at int64, t model.ValueType, bits uint64, text []byte) {
	if t.InArena() {
		bits = model.Span(len(v.arena), len(text))
		v.arena = append(v.arena, text...)
	}
	v.list = append(v.list, value{at, bits, t})
}

func (v *values) sizeBytes() int64 { return int64(24*len(v.list) + len(v.arena)) }

// reading is what must be asked for one item.
type reading struct {
	item    model.ItemID
	tables  []tableKey
	waiting values
}

// Read streams the values of the database and the pending ones. See storage.Engine.
func (db *DB) Read(ctx context.Context, q storage.Query, fn func(*model.Columns) error) error {
	return db.read(ctx, q, allTypes, func(id model.ItemID, v *values) error { return deliver(id, v, fn) })
}

// allTypes and numbersOnly are sets of value types, one bit each.
const (
	allTypes    = 1<<valueTypes - 1
	numbersOnly = 1<<model.Float | 1<<model.Uint
)

// read gives fn the values of each item, merged.
func (db *DB) read(ctx context.Context, q storage.Query, types uint8, fn func(model.ItemID, *values) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if db.closed.Load() {
		return storage.ErrClosed
	}
	limit := q.MaxBytes
	if limit == 0 {
		limit = defaultReadBytes
	}
	for ids := range slices.Chunk(q.Items, pipelined) {
		// The pending rows are taken first: what is not among them was committed before, and the database will show it.
		asked := make([]reading, len(ids))
		for i, id := range ids {
			asked[i] = db.pendingOf(id, q.Range, types)
		}
		if err := db.readItems(ctx, asked, q, limit, fn); err != nil {
			return err
		}
	}
	return nil
}

// pendingOf takes a copy of the pending rows of an item, and says which tables to ask.
func (db *DB) pendingOf(id model.ItemID, r model.TimeRange, types uint8) reading {
	read := reading{item: id}
	db.mu.RLock()
	defer db.mu.RUnlock()
	it := db.items.Get(id)
	if it == nil || r.From >= r.To {
		return read
	}
	for _, k := range it.tables() {
		if types>>k.valueType&1 != 0 {
			read.tables = append(read.tables, k)
		}
	}
	for _, w := range it.waiting[it.find(r.From):] {
		if w.at >= r.To {
			break
		}
		b := w.p.Batch
		if t := b.Types[w.row]; types>>t&1 != 0 {
			read.waiting.add(w.at, t, b.Bits[w.row], payloadOf(b, w.row))
		}
	}
	return read
}

// readItems asks for several items in one round trip and hands them over one by one.
func (db *DB) readItems(ctx context.Context, asked []reading, q storage.Query, limit int64, fn func(model.ItemID, *values) error) error {
	if !slices.ContainsFunc(asked, func(r reading) bool { return len(r.tables) > 0 }) {
		for i := range asked {
			if err := finish(&asked[i], values{}, q, fn); err != nil {
				return err
			}
		}
		return nil
	}
	return db.steady(ctx, func(c *pgconn.PgConn, known int64) error {
		var batch pgconn.Batch
		addShape(&batch)
		for _, r := range asked {
			for _, k := range r.tables {
				k.addSelect(&batch, db.sourceOf(k), r.item, q)
			}
		}
		results := c.ExecBatch(ctx, &batch)
		if err := checkShape(results, known); err != nil {
			return err
		}
		for i := range asked {
			var stored values
			for _, k := range asked[i].tables {
				if !results.NextResult() {
					return results.Close()
				}
				if err := k.collect(results.ResultReader(), &stored, limit); err != nil {
					return err
				}
			}
			if err := finish(&asked[i], stored, q, fn); err != nil {
				return err
			}
		}
		return results.Close()
	})
}

// selectSQL reads one item's values between two instants, both inclusive; newest reads the last ones, in falling order.
func (k tableKey) selectSQL(source string, newest bool) string {
	sql := fmt.Sprintf(`SELECT clock, ns, %s FROM %s AS t WHERE itemid = $1 AND clock BETWEEN $2 AND $4
		AND (clock > $2 OR ns >= $3) AND (clock < $4 OR ns <= $5) ORDER BY clock`, k.shape().names, source)
	if newest {
		return sql + " DESC, ns DESC LIMIT $6"
	}
	return sql + ", ns"
}

func (k tableKey) addSelect(batch *pgconn.Batch, source string, id model.ItemID, q storage.Query) {
	from, to := clampRange(q.Range)
	fromClock, fromNS := split(from)
	toClock, toNS := split(to)
	params := [][]byte{int8Param(int64(id)), int4Param(fromClock), int4Param(fromNS), int4Param(toClock), int4Param(toNS)}
	oids := []uint32{oidInt8, oidInt4, oidInt4, oidInt4, oidInt4}
	formats := []int16{1, 1, 1, 1, 1}
	if q.Newest > 0 {
		params, oids, formats = append(params, int8Param(int64(q.Newest))), append(oids, oidInt8), append(formats, 1)
	}
	batch.ExecParams(k.selectSQL(source, q.Newest > 0), params, oids, formats, []int16{1})
}

// clampRange makes a half-open range one of instants that a table can hold, both inclusive.
func clampRange(r model.TimeRange) (from, to int64) {
	last := int64(math.MaxInt32)*int64(time.Second) - 1
	from, to = min(max(r.From, 0), last), r.To
	if to > math.MinInt64 {
		to--
	}
	return from, min(max(to, 0), last)
}

// collect reads one table's rows.
func (k tableKey) collect(rows *pgconn.ResultReader, into *values, limit int64) error {
	for rows.NextRow() {
		cells := rows.Values()
		at, err := decodeTime(cells)
		if err != nil {
			return err
		}
		bits, text, err := k.payload(cells[2:])
		if err != nil {
			return err
		}
		into.add(at, k.valueType, bits, text)
		if into.sizeBytes() > limit {
			return storage.ErrTooMuch
		}
	}
	_, err := rows.Close()
	return err
}

// finish merges stored and pending values.
func finish(r *reading, stored values, q storage.Query, fn func(model.ItemID, *values) error) error {
	base := uint64(len(stored.arena)) << 32
	first := len(stored.list)
	stored.list = append(stored.list, r.waiting.list...)
	stored.arena = append(stored.arena, r.waiting.arena...)
	for i := first; i < len(stored.list); i++ {
		if stored.list[i].valueType.InArena() {
			stored.list[i].bits += base
		}
	}
	byTime := func(a, b value) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	}
	if !slices.IsSortedFunc(stored.list, byTime) {
		slices.SortStableFunc(stored.list, byTime)
	}
	// A row may be in both: it was committed after the pending ones were taken.
	stored.list = slices.CompactFunc(stored.list, func(a, b value) bool { return a.at == b.at })
	if q.Newest > 0 && len(stored.list) > q.Newest {
		stored.list = stored.list[len(stored.list)-q.Newest:]
	}
	return fn(r.item, &stored)
}

// deliver hands values to fn, one call for each run of one type.
func deliver(id model.ItemID, v *values, fn func(*model.Columns) error) error {
	for list := v.list; len(list) > 0; {
		n := 1
		for n < len(list) && list[n].valueType == list[0].valueType {
			n++
		}
		c := model.Columns{Item: id, Type: list[0].valueType, Arena: v.arena, At: make([]int64, n), Bits: make([]uint64, n)}
		for i := range n {
			c.At[i], c.Bits[i] = list[i].at, list[i].bits
		}
		if err := fn(&c); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}
