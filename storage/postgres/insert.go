package postgres

import (
	"bytes"
	"cmp"
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

// place is where a row belongs within its table. It has no pointers, of which the garbage collector would want to know with each move.
type place struct {
	item model.ItemID
	at   int64
	row  int
}

func (a place) compare(b place) int {
	switch {
	case a.item != b.item:
		return cmp.Compare(a.item, b.item)
	case a.at != b.at:
		return cmp.Compare(a.at, b.at)
	}
	return cmp.Compare(a.row, b.row)
}

// tablePlaces are the rows of one table.
type tablePlaces struct {
	key    tableKey
	places []place
}

// byTable parts rows by their table. Tables are few, and rows of one come one after the other.
func byTable(rows []row) []tablePlaces {
	var tables []tablePlaces
	last := -1
	for i := range rows {
		r := &rows[i]
		k := tableKey{valueType: r.p.Batch.Types[r.row], class: r.p.Classes[r.row]}
		if last < 0 || tables[last].key != k {
			last = slices.IndexFunc(tables, func(t tablePlaces) bool { return t.key == k })
		}
		if last < 0 {
			last = len(tables)
			tables = append(tables, tablePlaces{k, make([]place, 0, (len(rows)-i)/(last+1))})
		}
		tables[last].places = append(tables[last].places, place{r.item, r.at, i})
	}
	return tables
}

// statements sorts rows into statements.
func statements(rows []row) []statement {
	var all []statement
	for _, t := range byTable(rows) {
		slices.SortFunc(t.places, place.compare)
		sorted := make([]row, len(t.places))
		for i, p := range t.places {
			sorted[i] = rows[p.row]
		}
		for len(sorted) > 0 {
			n, size := 0, 0
			for n < len(sorted) && n < statementRows && (n == 0 || size < statementBytes) {
				size += rowSize(&sorted[n])
				n++
			}
			all = append(all, statement{t.key, sorted[:n]})
			sorted = sorted[n:]
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

// touchedBy says which tables get rows of which item for the first time.
func (db *DB) touchedBy(rows []row) map[model.ItemID]touch {
	touched := map[model.ItemID]touch{}
	db.mu.RLock()
	defer db.mu.RUnlock()
	for i := range rows {
		r := &rows[i]
		add := touch{types: 1 << r.p.Batch.Types[r.row], classes: 1 << r.p.Classes[r.row]}
		if it := db.items.Get(r.item); it.types&add.types != 0 && it.classes&add.classes != 0 {
			continue
		}
		t := touched[r.item]
		t.types |= add.types
		t.classes |= add.classes
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
