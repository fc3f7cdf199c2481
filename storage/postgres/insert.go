package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/model"
)

// statement is rows of one table, sorted by item and time.
type statement struct {
	key  tableKey
	rows []row
}

// statements sorts rows into statements.
func statements(rows []row) []statement {
	byKey := map[tableKey][]row{}
	for _, r := range rows {
		k := tableKey{valueType: r.p.Batch.Types[r.row], class: r.p.Classes[r.row]}
		byKey[k] = append(byKey[k], r)
	}
	var all []statement
	for k, rows := range byKey {
		slices.SortStableFunc(rows, func(a, b row) int {
			switch {
			case a.item != b.item && a.item < b.item, a.item == b.item && a.at < b.at:
				return -1
			case a.item == b.item && a.at == b.at:
				return 0
			}
			return 1
		})
		for len(rows) > 0 {
			n, size := 0, 0
			for n < len(rows) && n < statementRows && (n == 0 || size < statementBytes) {
				size += rowSize(&rows[n])
				n++
			}
			all = append(all, statement{k, rows[:n]})
			rows = rows[n:]
		}
	}
	return all
}

func rowSize(r *row) int {
	const fixed = 40
	if r.p.Batch.Types[r.row].InArena() {
		return fixed + 2*len(r.p.Batch.Bytes(r.row))
	}
	return fixed
}

// touchedBy says which tables get rows of which item.
func touchedBy(rows []row) map[model.ItemID]touch {
	touched := map[model.ItemID]touch{}
	for i := range rows {
		r := &rows[i]
		t := touched[r.item]
		t.types |= 1 << r.p.Batch.Types[r.row]
		t.classes |= 1 << r.p.Classes[r.row]
		touched[r.item] = t
	}
	return touched
}

// copyAll stores rows that are new.
func (w *writer) copyAll(ctx context.Context, todo []statement) error {
	for _, s := range todo {
		if _, err := w.conn.PgConn().CopyFrom(ctx, bytes.NewReader(s.key.copyData(s.rows)), s.key.copySQL()); err != nil {
			return err
		}
	}
	return nil
}

// maxMoves bounds how far a value is moved that finds its instant taken.
const maxMoves = 10_000

// insertAll inserts rows, all statements on their way at once. Where fewer rows came new than were sent, the others are compared with what
// is there: the same value is one that was written before, another one moves to the next nanosecond.
func (w *writer) insertAll(ctx context.Context, todo []statement) error {
	for range maxMoves {
		if len(todo) == 0 {
			return nil
		}
		conflicting, err := w.insert(ctx, todo)
		if err != nil {
			return err
		}
		var moved []row
		for _, s := range conflicting {
			others, err := w.compare(ctx, s)
			if err != nil {
				return err
			}
			moved = append(moved, others...)
		}
		todo = statements(moved)
	}
	return fmt.Errorf("no free instant for %d values within %d ns", len(todo), maxMoves)
}

// insert runs statements in a pipeline and returns those that stored fewer rows than they have.
func (w *writer) insert(ctx context.Context, todo []statement) ([]statement, error) {
	var batch pgconn.Batch
	for _, s := range todo {
		arrays := s.key.arraysOf(s.rows)
		values, oids, formats := parameters(arrays)
		batch.ExecParams(s.key.insertSQL(), values, oids, formats, nil)
	}
	results := w.conn.PgConn().ExecBatch(ctx, &batch)
	var conflicting []statement
	for i := 0; results.NextResult(); i++ {
		tag, err := results.ResultReader().Close()
		if err == nil && tag.RowsAffected() < int64(len(todo[i].rows)) {
			conflicting = append(conflicting, todo[i])
		}
	}
	return conflicting, results.Close()
}

func parameters(arrays []*array) (values [][]byte, oids []uint32, formats []int16) {
	for _, a := range arrays {
		values = append(values, a.encoded())
		oids = append(oids, a.oid)
		formats = append(formats, 1)
	}
	return values, oids, formats
}

// compare returns the rows of a statement whose instants hold another value, moved by one nanosecond.
func (w *writer) compare(ctx context.Context, s statement) ([]row, error) {
	items, clocks, nanos := newArray(oidInt8Array), newArray(oidInt4Array), newArray(oidInt4Array)
	byInstant := make(map[instant][]int, len(s.rows))
	lowest, highest := s.rows[0].at, s.rows[0].at
	for i := range s.rows {
		r := &s.rows[i]
		clock, ns := split(r.at)
		items.int8(int64(r.item))
		clocks.int4(clock)
		nanos.int4(ns)
		byInstant[instant{r.item, r.at}] = append(byInstant[instant{r.item, r.at}], i)
		lowest, highest = min(lowest, r.at), max(highest, r.at)
	}
	sql := fmt.Sprintf(`SELECT DISTINCT h.itemid, h.clock, h.ns, %s FROM unnest($1::bigint[], $2::integer[], $3::integer[]) AS w(itemid, clock, ns)
		JOIN %s h ON h.itemid = w.itemid AND h.clock = w.clock AND h.ns = w.ns WHERE h.clock BETWEEN $4 AND $5`, qualified(s.key.shape().names), w.db.sourceOf(s.key))
	from, _ := split(lowest)
	to, _ := split(highest)
	values, oids, formats := parameters([]*array{items, clocks, nanos})
	rows := w.conn.PgConn().ExecParams(ctx, sql, append(values, int4Param(from), int4Param(to)),
		append(oids, oidInt4, oidInt4), append(formats, 1, 1), []int16{1})
	var moved []row
	for rows.NextRow() {
		id, at, bits, text, err := s.key.decodeRow(rows.Values())
		if err != nil {
			return nil, err
		}
		for _, i := range byInstant[instant{id, at}] {
			if r := s.rows[i]; !r.same(bits, text) {
				r.at++
				moved = append(moved, r)
			}
		}
	}
	_, err := rows.Close()
	return moved, err
}

// touch says which tables got rows of an item.
type touch struct {
	types   uint8
	classes uint16
}
