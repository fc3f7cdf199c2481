package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// movingTables reads the tables that move.
func (m *migration) movingTables(ctx context.Context) ([]*moving, error) {
	if err := m.db.loadTables(ctx, m.conn); err != nil {
		return nil, err
	}
	var tables []*moving
	for _, s := range m.db.sortedTables() {
		if s.old == "" {
			continue
		}
		t := &moving{key: s.key, step: s.step, old: s.old}
		if err := t.load(ctx, m.conn); err != nil {
			return nil, err
		}
		if m.skips(s.key) != t.skipped() {
			return nil, fmt.Errorf("%s began with other tables to skip; give the same ones as then", s.key)
		}
		tables = append(tables, t)
	}
	return tables, nil
}

func (t *moving) load(ctx context.Context, x executor) error {
	var sum string
	err := x.QueryRow(ctx, "SELECT since, boundary, until, low, high, total_rows, moved_rows, moved_sum::text, checked FROM tidemark_tables WHERE name = $1", t.key.String()).
		Scan(&t.since, &t.boundary, &t.until, &t.low, &t.high, &t.total, &t.moved, &sum, &t.checked)
	if err != nil {
		return err
	}
	var ok bool
	if t.sum, ok = new(big.Int).SetString(sum, 10); !ok {
		return fmt.Errorf("%s: checksum %q, expected an integer", t.key, sum)
	}
	return nil
}

// measure counts the rows of an old table and gives it an index by time, once.
func (m *migration) measure(ctx context.Context, t *moving) error {
	if t.low == nil {
		m.tell(t, "counting")
		var low, high *int32
		var total int64
		err := m.conn.QueryRow(ctx, fmt.Sprintf("SELECT min(clock), max(clock), count(*) FILTER (WHERE clock >= $1 AND clock < $2) FROM %s", t.old), t.since, t.until).
			Scan(&low, &high, &total)
		if err != nil {
			return err
		}
		if low == nil { // empty
			low, high = new(int32), new(int32)
		}
		if total > 0 {
			if err := m.index(ctx, t); err != nil {
				return err
			}
		}
		_, err = m.conn.Exec(ctx, "UPDATE tidemark_tables SET low = $2, high = $3::integer, total_rows = $4, boundary = least(until, $3::integer + 1) WHERE name = $1", t.key.String(), *low, *high, total)
		if err != nil {
			return err
		}
		if err := t.load(ctx, m.conn); err != nil {
			return err
		}
	}
	m.total += t.total
	m.done += t.moved
	return nil
}

// index makes rows of a time easy to find: with a small index where they lie in the order of time, as they do when they were written as they came.
func (m *migration) index(ctx context.Context, t *moving) error {
	if _, err := m.conn.Exec(ctx, fmt.Sprintf("ANALYZE %s (clock)", t.old)); err != nil {
		return err
	}
	correlation := 0.0
	err := m.conn.QueryRow(ctx, "SELECT coalesce(max(correlation), 0) FROM pg_stats WHERE schemaname = current_schema() AND tablename = $1 AND attname = 'clock'", t.old).Scan(&correlation)
	if err != nil {
		return err
	}
	sql := "CREATE INDEX IF NOT EXISTS %[1]s_clock ON %[1]s USING brin (clock) WITH (pages_per_range = 32)"
	if correlation < 0.95 {
		sql = "CREATE INDEX IF NOT EXISTS %[1]s_clock ON %[1]s (clock)"
	}
	_, err = m.conn.Exec(ctx, fmt.Sprintf(sql, t.old))
	return err
}

const (
	// firstWidth is the time that the first step of a table spans, maxWidth the longest: seconds.
	firstWidth = 3600
	maxWidth   = 30 * 86_400
)

// moveTable moves rows until all that are to move have.
func (m *migration) moveTable(ctx context.Context, t *moving) error {
	width := int64(firstWidth)
	end := max(t.since, *t.low)
	for t.boundary > end && t.moved < t.total {
		start := time.Now()
		from := int32(max(int64(t.boundary)-width, int64(end)))
		var n int64
		if err := m.conn.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM %s WHERE clock >= $1 AND clock < $2", t.old), from, t.boundary).Scan(&n); err != nil {
			return err
		}
		if n > 2*m.o.StepRows && int64(t.boundary)-int64(from) > 1 {
			width = max((int64(t.boundary)-int64(from))*m.o.StepRows/n, 1)
			continue
		}
		if err := m.step(ctx, t, from); err != nil {
			return err
		}
		m.done += n
		m.tell(t, "moving")
		switch {
		case n < m.o.StepRows/2:
			width = min(2*width, maxWidth)
		case n > m.o.StepRows:
			width = max(width*m.o.StepRows/n, 1)
		}
		if err := m.pace(ctx, n, start); err != nil {
			return err
		}
	}
	return nil
}

// pace waits as long as RowsPerSecond wants it.
func (m *migration) pace(ctx context.Context, n int64, start time.Time) error {
	if m.o.RowsPerSecond == 0 {
		return ctx.Err()
	}
	wait := time.Duration(float64(n)/float64(m.o.RowsPerSecond)*float64(time.Second)) - time.Since(start)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(max(wait, 0)):
		return nil
	}
}

// step moves the rows from a clock to the boundary, which falls to that clock, in one transaction. It is repeated when rows came there meanwhile.
func (m *migration) step(ctx context.Context, t *moving, from int32) error {
	if err := m.makeRoom(ctx, t, from); err != nil {
		return err
	}
	const tries = 20
	for try := 1; ; try++ {
		err := pgx.BeginTxFunc(ctx, m.conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error { return m.moveRows(ctx, tx, t, from) })
		var refused *pgconn.PgError
		again := errors.As(err, &refused) && (refused.Code == "40001" || refused.Code == "40P01" || refused.Code == "23505" || refused.Code == "55P03")
		if !again || try == tries {
			if err == nil {
				err = t.load(ctx, m.conn)
			}
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// makeRoom makes the partitions or chunks that the rows of a step need, and waits for those who read the table without knowing them: a statement finds
// its partitions when it is planned, and then takes the snapshot that it reads, which may know of a step that came in between.
func (m *migration) makeRoom(ctx context.Context, t *moving, from int32) error {
	rows, err := m.conn.Query(ctx, fmt.Sprintf("SELECT min(clock) FROM %s WHERE clock >= $1 AND clock < $2 GROUP BY clock / $3 ORDER BY 1", t.old), from, t.boundary, t.step)
	if err != nil {
		return err
	}
	clocks, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return err
	}
	for _, clock := range clocks {
		if m.o.To == Timescale {
			err = chunkAt(ctx, m.conn, t, clock)
		} else {
			err = m.db.partitionAt(ctx, m.conn, t.key, clock, t.step)
		}
		if err != nil {
			return err
		}
	}
	return outwait(ctx, m.conn, t.key.String())
}

// chunkAt makes the chunk for a clock: by a row of that time that never becomes visible.
func chunkAt(ctx context.Context, conn *pgx.Conn, t *moving, clock int32) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var there bool
		if err := tx.QueryRow(ctx, fmt.Sprintf("SELECT EXISTS (SELECT FROM %s WHERE clock = $1)", t.key), clock).Scan(&there); err != nil || there {
			return err
		}
		ns := "ns"
		if t.key.trends {
			ns = "0"
		}
		var item int64
		var nano int32
		sql := fmt.Sprintf("INSERT INTO %s SELECT * FROM %s WHERE clock = $1 LIMIT 1 RETURNING itemid, %s", t.key, t.old, ns)
		if err := tx.QueryRow(ctx, sql, clock).Scan(&item, &nano); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, fmt.Sprintf("DELETE FROM %s WHERE clock = $1 AND itemid = $2 AND %s = $3", t.key, ns), clock, item, nano)
		return err
	})
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "23505" { // a late value came with it
		return nil
	}
	return err
}

// outwaitMost bounds the wait for other people's transactions; ours are shorter.
const outwaitMost = 40 * time.Second

// outwait waits until the transactions that use a table now have ended.
func outwait(ctx context.Context, conn *pgx.Conn, table string) error {
	rows, err := conn.Query(ctx, "SELECT DISTINCT virtualtransaction FROM pg_locks WHERE relation = to_regclass($1) AND pid <> pg_backend_pid()", table)
	if err != nil {
		return err
	}
	users, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(users) == 0 {
		return err
	}
	for deadline := time.Now().Add(outwaitMost); time.Now().Before(deadline); {
		var some bool
		err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = to_regclass($1) AND virtualtransaction = ANY ($2::text[]))", table, users).Scan(&some)
		if err != nil || !some {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// digest is the count of rows and the sum of their checksums.
type digest struct {
	rows int64
	sum  *big.Int
}

// digestSQL is the digest of the rows of a table, by the name t, that a condition keeps. A checksum is one of the row as text, which shows every value
// exactly.
const digestSQL = "SELECT count(*), coalesce(sum(hashtextextended(t::text, 0)), 0)::text FROM %s AS t WHERE %s"

func digestOf(ctx context.Context, x executor, table, where string) (digest, error) {
	d := digest{sum: new(big.Int)}
	var sum string
	if err := x.QueryRow(ctx, fmt.Sprintf(digestSQL, table, where)).Scan(&d.rows, &sum); err != nil {
		return d, err
	}
	if _, ok := d.sum.SetString(sum, 10); !ok {
		return d, fmt.Errorf("checksum %q, expected an integer", sum)
	}
	return d, nil
}

// moveRows is the transaction of a step: it copies rows and compares what is there then with what was there before.
func (m *migration) moveRows(ctx context.Context, tx pgx.Tx, t *moving, from int32) error {
	if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '10s'"); err != nil {
		return err
	}
	var boundary int32
	if err := tx.QueryRow(ctx, "SELECT boundary FROM tidemark_tables WHERE name = $1 FOR UPDATE", t.key.String()).Scan(&boundary); err != nil {
		return err
	}
	if boundary != t.boundary {
		return fmt.Errorf("rows below clock %d are moved already, expected %d; another migration works here", boundary, t.boundary)
	}
	between := fmt.Sprintf("t.clock >= %d AND t.clock < %d", from, boundary)
	if err := t.giveWay(ctx, tx, from); err != nil {
		return err
	}
	there, err := digestOf(ctx, tx, t.key.String(), between)
	if err != nil {
		return err
	}
	whole, err := digestOf(ctx, tx, t.old, between)
	if err != nil {
		return err
	}
	wanted := between
	if t.key.trends {
		wanted += fmt.Sprintf(" AND NOT EXISTS (SELECT FROM %s n WHERE n.itemid = t.itemid AND n.clock = t.clock)", t.key)
	}
	came := whole
	if t.key.trends && there.rows > 0 {
		if came, err = digestOf(ctx, tx, t.old, wanted); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf("INSERT INTO %s SELECT * FROM %s AS t WHERE %s ORDER BY itemid, clock", t.key, t.old, wanted)); err != nil {
		return err
	}
	now, err := digestOf(ctx, tx, t.key.String(), between)
	if err != nil {
		return err
	}
	want := digest{rows: there.rows + came.rows, sum: new(big.Int).Add(there.sum, came.sum)}
	if now.rows != want.rows || now.sum.Cmp(want.sum) != 0 {
		return fmt.Errorf("clock %d to %d: %d rows with checksum %v arrived, expected %d with %v; nothing of this step was kept", from, boundary, now.rows, now.sum, want.rows, want.sum)
	}
	_, err = tx.Exec(ctx, "UPDATE tidemark_tables SET boundary = $2, moved_rows = moved_rows + $3, moved_sum = moved_sum + $4::numeric WHERE name = $1",
		t.key.String(), from, whole.rows, whole.sum.String())
	return err
}

// giveWay settles instants of history that both tables have, which happens only when values were written twice about the time of the switch: the same
// value is taken out of the new table, another one moves to the next free nanosecond, as everywhere.
func (t *moving) giveWay(ctx context.Context, tx pgx.Tx, from int32) error {
	if t.key.trends {
		return nil
	}
	sql := fmt.Sprintf(`SELECT n.itemid, n.clock, n.ns, n::text = o::text FROM %s n JOIN %s o ON o.itemid = n.itemid AND o.clock = n.clock AND o.ns = n.ns
		WHERE n.clock >= $1 AND n.clock < $2 AND o.clock >= $1 AND o.clock < $2`, t.key, t.old)
	rows, err := tx.Query(ctx, sql, from, t.boundary)
	if err != nil {
		return err
	}
	type taken struct {
		item      int64
		clock, ns int32
		same      bool
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (v taken, err error) {
		err = r.Scan(&v.item, &v.clock, &v.ns, &v.same)
		return v, err
	})
	if err != nil {
		return err
	}
	for _, v := range list {
		sql := fmt.Sprintf("DELETE FROM %s WHERE itemid = $1 AND clock = $2 AND ns = $3", t.key)
		if !v.same {
			sql = fmt.Sprintf(`UPDATE %[1]s SET ns = (SELECT min(g) FROM generate_series($3 + 1, least($3 + %[3]d, 999999999)) g
				WHERE NOT EXISTS (SELECT FROM %[1]s x WHERE x.itemid = $1 AND x.clock = $2 AND x.ns = g) AND NOT EXISTS (SELECT FROM %[2]s x WHERE x.itemid = $1 AND x.clock = $2 AND x.ns = g))
				WHERE itemid = $1 AND clock = $2 AND ns = $3`, t.key, t.old, maxMoves)
		}
		if _, err := tx.Exec(ctx, sql, v.item, v.clock, v.ns); err != nil {
			return fmt.Errorf("item %d at clock %d has two values: %w", v.item, v.clock, err)
		}
	}
	return nil
}

// compare proves that the steps moved all that there was, and says what became of a table.
func (m *migration) compare(ctx context.Context, t *moving) (MigratedTable, error) {
	row := MigratedTable{Name: t.key.String(), State: "switched"}
	if t.skipped() {
		return row, m.conn.QueryRow(ctx, "SELECT count(*) FROM "+t.old).Scan(&row.Behind)
	}
	row.Rows, row.Checksum, row.State = t.moved, t.sum.String(), "checked"
	m.tell(t, "comparing")
	d, err := digestOf(ctx, m.conn, t.old, fmt.Sprintf("t.clock >= %d AND t.clock < %d", t.since, t.until))
	if err != nil {
		return row, err
	}
	if d.rows != t.moved || d.sum.Cmp(t.sum) != 0 {
		return row, fmt.Errorf("%s has %d rows with checksum %v, but %d with %v were moved; nothing is dropped", t.old, d.rows, d.sum, t.moved, t.sum)
	}
	if t.since > 0 || t.until < math.MaxInt32 {
		err = m.conn.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM %s WHERE clock < $1 OR clock >= $2", t.old), t.since, t.until).Scan(&row.Behind)
		if err != nil {
			return row, err
		}
	}
	_, err = m.conn.Exec(ctx, "UPDATE tidemark_tables SET checked = true WHERE name = $1", t.key.String())
	return row, err
}
