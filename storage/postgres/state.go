package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/model"
)

// keepState writes, in the transaction of the rows, what must be true together with them.
func (w *writer) keepState(ctx context.Context, batches []*pending, touched map[model.ItemID]touch, rows []row) (added []journaled, trim model.LSN, err error) {
	var batch pgconn.Batch
	w.db.addItems(&batch, touched)
	low, high := int64(math.MaxInt64), int64(never)
	for i := range rows {
		low, high = min(low, rows[i].at), max(high, rows[i].at)
	}
	if len(rows) > 0 {
		batch.ExecParams("UPDATE tidemark_bounds SET low = least(low, $1), high = greatest(high, $2) WHERE low > $1 OR high < $2",
			[][]byte{int8Param(low), int8Param(high)}, []uint32{oidInt8, oidInt8}, []int16{1, 1}, nil)
	}
	addMarks(&batch, batches)
	if w.db.journal != nil {
		if added, trim, err = w.db.journal.store(&batch, batches); err != nil {
			return nil, 0, err
		}
	} else {
		lsn := batches[len(batches)-1].lsn
		batch.ExecParams(`INSERT INTO tidemark_state (spool, applied) VALUES ($1, $2)
			ON CONFLICT (spool) DO UPDATE SET applied = excluded.applied, at = now()`,
			[][]byte{[]byte(strconv.FormatUint(w.db.spool.ID(), 10)), []byte(strconv.FormatUint(uint64(lsn), 10))},
			[]uint32{oidNumeric, oidNumeric}, []int16{0, 0}, nil)
	}
	_, err = w.conn.PgConn().ExecBatch(ctx, &batch).ReadAll()
	return added, trim, err
}

// addItems registers tables that an item had no values in before.
func (db *DB) addItems(batch *pgconn.Batch, touched map[model.ItemID]touch) {
	ids, types, classes := newArray(oidInt8Array), newArray(oidInt4Array), newArray(oidInt4Array)
	db.mu.RLock()
	for id, t := range touched {
		it := db.items.Get(id)
		if it.types|t.types == it.types && it.classes|t.classes == it.classes {
			continue
		}
		ids.int8(int64(id))
		types.int4(int32(t.types))
		classes.int4(int32(t.classes))
	}
	db.mu.RUnlock()
	if ids.n == 0 {
		return
	}
	values, oids, formats := parameters([]*array{ids, types, classes})
	batch.ExecParams(`INSERT INTO tidemark_items AS i (itemid, types, classes) SELECT * FROM unnest($1::bigint[], $2::integer[], $3::integer[])
		ON CONFLICT (itemid) DO UPDATE SET types = i.types | excluded.types, classes = i.classes | excluded.classes`, values, oids, formats, nil)
}

// noteTables takes note of what addItems wrote, after the commit.
func (db *DB) noteTables(touched map[model.ItemID]touch) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for id, t := range touched {
		it := db.items.Get(id)
		if it.types == 0 {
			db.ids = append(db.ids, id)
		}
		it.types |= t.types
		it.classes |= t.classes
	}
}

// addMarks writes the newest mark of each key.
func addMarks(batch *pgconn.Batch, batches []*pending) {
	newest := map[string]model.Mark{}
	for _, p := range batches {
		for _, m := range p.Batch.Marks {
			newest[m.Key] = m
		}
	}
	if len(newest) == 0 {
		return
	}
	keys, texts, times := newArray(oidTextArray), newArray(oidTextArray), newArray(oidInt8Array)
	for _, m := range newest {
		keys.text(escapeMark(m.Key))
		texts.text(escapeMark(m.Value))
		times.int8(m.At)
	}
	values, oids, formats := parameters([]*array{keys, texts, times})
	batch.ExecParams(`INSERT INTO tidemark_marks (key, value, at) SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])
		ON CONFLICT (key) DO UPDATE SET value = excluded.value, at = excluded.at`, values, oids, formats, nil)
}

// escapeMark makes a mark's text, which may be any bytes, into one that PostgreSQL takes.
func escapeMark(s string) string {
	if readable([]byte(s)) && !strings.HasPrefix(s, `"`) {
		return s
	}
	return strconv.QuoteToASCII(s)
}

func unescapeMark(s string) string {
	if strings.HasPrefix(s, `"`) {
		if t, err := strconv.Unquote(s); err == nil {
			return t
		}
	}
	return s
}

// maxMarks bounds the marks that are kept; when an eighth more have come, the oldest are forgotten down to it.
const maxMarks = 100_000

// keepMarks takes marks over. The caller holds db.mu for writing, or nobody else has the engine yet.
func (db *DB) keepMarks(marks []model.Mark) {
	for _, m := range marks {
		db.marks[m.Key] = m
	}
	if len(db.marks) <= maxMarks+maxMarks/8 {
		return
	}
	all := make([]model.Mark, 0, len(db.marks))
	for _, m := range db.marks {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b model.Mark) int { return cmp.Compare(a.At, b.At) })
	for _, m := range all[:len(all)-maxMarks] {
		delete(db.marks, m.Key)
	}
}

// pruneMarks deletes from the database what keepMarks would forget.
func (db *DB) pruneMarks(ctx context.Context, conn *pgx.Conn) error {
	_, err := db.execFenced(ctx, conn, "DELETE FROM tidemark_marks WHERE at < (SELECT at FROM tidemark_marks ORDER BY at DESC OFFSET $1 LIMIT 1)", maxMarks)
	return err
}

// Marks calls fn for every mark, in no order.
func (db *DB) Marks(fn func(model.Mark)) {
	db.mu.RLock()
	marks := make([]model.Mark, 0, len(db.marks))
	for _, m := range db.marks {
		marks = append(marks, m)
	}
	db.mu.RUnlock()
	for _, m := range marks {
		fn(m)
	}
}

// load reads what the database knows: items, marks, bounds, and how far the spool is in it.
func (db *DB) load(ctx context.Context) error {
	rows, err := db.pool.Query(ctx, "SELECT itemid, types, classes FROM tidemark_items")
	if err != nil {
		return err
	}
	var id int64
	var types, classes int32
	if _, err := pgx.ForEachRow(rows, []any{&id, &types, &classes}, func() error {
		db.items.Set(model.ItemID(id), &item{newest: never, types: uint8(types), classes: uint16(classes)})
		db.ids = append(db.ids, model.ItemID(id))
		return nil
	}); err != nil {
		return fmt.Errorf("read the items: %w", err)
	}
	if rows, err = db.pool.Query(ctx, "SELECT key, value, at FROM tidemark_marks"); err != nil {
		return err
	}
	var m model.Mark
	if _, err := pgx.ForEachRow(rows, []any{&m.Key, &m.Value, &m.At}, func() error {
		m.Key, m.Value = unescapeMark(m.Key), unescapeMark(m.Value)
		db.marks[m.Key] = m
		return nil
	}); err != nil {
		return fmt.Errorf("read the marks: %w", err)
	}
	if err := db.pool.QueryRow(ctx, "SELECT low, high FROM tidemark_bounds").Scan(&db.low, &db.high); err != nil {
		return fmt.Errorf("read the bounds: %w", err)
	}
	if db.journal != nil {
		return errors.Join(db.journal.load(ctx), db.checkLeftover(ctx))
	}
	return db.loadApplied(ctx)
}

// loadApplied finds where writing goes on. A spool that this database does not know, such as a new one, is written as a whole; an empty
// one begins behind all that were before it, because positions must not fall.
func (db *DB) loadApplied(ctx context.Context) error {
	rows, err := db.pool.Query(ctx, "SELECT spool::text, applied::text FROM tidemark_state")
	if err != nil {
		return err
	}
	var name, text string
	highest, known := model.LSN(0), false
	_, err = pgx.ForEachRow(rows, []any{&name, &text}, func() error {
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return err
		}
		highest = max(highest, model.LSN(v))
		if name == strconv.FormatUint(db.spool.ID(), 10) {
			db.applied, known = model.LSN(v), true
		}
		return nil
	})
	if err == nil && !known && db.spool.End() == 0 {
		db.applied = highest
	}
	if err != nil {
		return fmt.Errorf("read the positions: %w", err)
	}
	return nil
}
