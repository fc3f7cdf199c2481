package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/model"
)

// MigrateOptions say how tables are to be kept from now on, and what of them moves.
type MigrateOptions struct {
	// From is how the tables are kept, Plain; To is Partitions or Timescale.
	From, To Mode
	// Skip are tables whose old rows do not move, by the name of the view or the table. They stay readable until their retention ends.
	Skip []string
	// Since and Until bound the clock of the rows that move, half-open; zero is no bound. The rest stays readable until DropOld.
	Since, Until time.Time
	// RowsPerSecond bounds the speed; zero does not. StepRows is about how many rows one transaction moves; zero means 50,000.
	RowsPerSecond, StepRows int64
	// DropOld drops the old tables at the end, once all that moved was compared.
	DropOld bool
	// Progress, if not nil, is told after each step.
	Progress func(MigrateProgress)
}

// MigrateProgress is how far a migration is.
type MigrateProgress struct {
	Table string `json:"table"`
	// Doing is what happens now: waiting, switching, counting, moving, comparing, dropping.
	Doing string `json:"doing"`
	// DoneRows of TotalRows are moved, in all tables that were counted.
	DoneRows  int64 `json:"done_rows"`
	TotalRows int64 `json:"total_rows"`
	// Left is an estimate; zero while there is none.
	Left time.Duration `json:"left_ns"`
}

// MigratedTable is what became of a table.
type MigratedTable struct {
	Name string `json:"name"`
	// Rows moved, with the sum of their checksums; Behind were left.
	Rows     int64  `json:"rows"`
	Checksum string `json:"checksum"`
	Behind   int64  `json:"left_behind_rows"`
	// State is switched (nothing moves), checked, or dropped when the old table is gone.
	State string `json:"state"`
	// FreedBytes is what the old table took.
	FreedBytes int64 `json:"freed_bytes"`
}

// migrateLock is the session's advisory lock of who migrates.
const migrateLock = 0x7469_6d76

func (o *MigrateOptions) check() error {
	switch {
	case o.From != Plain:
		return fmt.Errorf("from %q, expected %s", o.From, Plain)
	case o.To != Partitions && o.To != Timescale:
		return fmt.Errorf("to %q, expected %s or %s", o.To, Partitions, Timescale)
	case o.RowsPerSecond < 0 || o.StepRows < 0:
		return errors.New("rows a second and rows of a step: expected none below zero")
	case !o.Until.IsZero() && !o.Since.Before(o.Until):
		return fmt.Errorf("since %s is not before until %s", o.Since.Format(time.RFC3339), o.Until.Format(time.RFC3339))
	}
	if o.StepRows == 0 {
		o.StepRows = 50_000
	}
	if o.Progress == nil {
		o.Progress = func(MigrateProgress) {}
	}
	names := map[string]bool{}
	for _, k := range allViews() {
		names[k.view()] = true
		for class := range uint8(MaxClasses) {
			k.class = class
			names[k.String()] = true
		}
	}
	for _, name := range o.Skip {
		if !names[name] {
			return fmt.Errorf("no table %q to skip, expected one such as history_text or history_text_c5", name)
		}
	}
	return nil
}

// migration is a running migration.
type migration struct {
	o    MigrateOptions
	db   *DB // without spool, writer and keeper
	conn *pgx.Conn

	done, total int64
	started     time.Time
	startedAt   int64 // done rows when it began
}

// Migrate changes how the tables of a database are kept, while a server uses it: first all new values go to new tables, then old rows follow in
// steps, newest first, each compared by count and checksum in its own transaction. It goes on where one that ended early was.
func Migrate(ctx context.Context, dsn string, o MigrateOptions) (_ []MigratedTable, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("migrate the tables: %w", err)
		}
	}()
	if err := o.check(); err != nil {
		return nil, err
	}
	db, err := openShaper(ctx, dsn, o.To)
	if err != nil {
		return nil, err
	}
	defer db.pool.Close()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["application_name"] = "tidemark migrate"
	config.RuntimeParams["search_path"] = db.searchPath
	config.RuntimeParams["idle_in_transaction_session_timeout"] = "60000"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is open on it
	m := &migration{o: o, db: db, conn: conn, started: time.Now()}
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	return m.run(ctx)
}

// openShaper reaches a database to change its tables, without taking values.
func openShaper(ctx context.Context, dsn string, mode Mode) (*DB, error) {
	o := Options{SpoolDir: "-", Mode: mode, Connections: 2}
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	db := &DB{o: o, dsn: dsn, tables: map[tableKey]*tableState{}}
	db.kept.Store(&o.Classes)
	err := db.connect(ctx)
	if err == nil {
		err = db.prepareSchema(ctx)
	}
	if err != nil && db.pool != nil {
		db.pool.Close()
	}
	return db, err
}

// lock keeps a second migration away. One that was killed holds it until the database notices.
func (m *migration) lock(ctx context.Context) error {
	deadline := time.Now().Add(time.Minute)
	for {
		var ok bool
		if err := m.conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", int64(migrateLock)).Scan(&ok); err != nil || ok {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("another migration works on this database; wait for it")
		}
		m.o.Progress(MigrateProgress{Doing: "waiting"})
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// moving is a table that moves.
type moving struct {
	key                    tableKey
	step                   int32
	old                    string
	since, boundary, until int32
	low, high              *int32
	total, moved           int64
	sum                    *big.Int
	checked                bool
}

// skipped says that only new rows go to the new table.
func (t *moving) skipped() bool { return t.since == math.MaxInt32 }

func (m *migration) run(ctx context.Context) ([]MigratedTable, error) {
	for _, t := range m.db.sortedTables() {
		if t.mode == Plain && t.old == "" {
			m.o.Progress(MigrateProgress{Table: t.key.String(), Doing: "switching"})
			if err := m.switchTable(ctx, t.key); err != nil {
				return nil, fmt.Errorf("switch %s: %w", t.key, err)
			}
		}
	}
	if _, err := m.conn.Exec(ctx, "UPDATE tidemark_shape SET mode = $1 WHERE mode <> $1", string(m.o.To)); err != nil {
		return nil, err
	}
	tables, err := m.movingTables(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if err := m.measure(ctx, t); err != nil {
			return nil, fmt.Errorf("count %s: %w", t.old, err)
		}
	}
	m.startedAt = m.done
	var report []MigratedTable
	for _, t := range tables {
		if err := m.moveTable(ctx, t); err != nil {
			return report, fmt.Errorf("move %s: %w", t.key, err)
		}
		row, err := m.compare(ctx, t)
		if err != nil {
			return report, fmt.Errorf("compare %s: %w", t.key, err)
		}
		report = append(report, row)
	}
	if !m.o.DropOld {
		return report, nil
	}
	for i, t := range tables {
		if t.skipped() {
			continue
		}
		m.tell(t, "dropping")
		if report[i].FreedBytes, err = m.db.dropOld(ctx, m.conn, t.key, t.old); err != nil {
			return report, fmt.Errorf("drop %s: %w", t.old, err)
		}
		report[i].State = "dropped"
	}
	return report, nil
}

// sortedTables are all tables, numbers first and texts last, so that charts are whole soonest.
func (db *DB) sortedTables() []keyed {
	all := db.allTables()
	order := func(k tableKey) int {
		rank := int(k.class)
		if k.valueType != model.Float && k.valueType != model.Uint {
			rank += 1000
		}
		return rank*16 + int(k.valueType)
	}
	slices.SortFunc(all, func(a, b keyed) int { return order(a.key) - order(b.key) })
	return all
}

func (m *migration) tell(t *moving, doing string) {
	p := MigrateProgress{Table: t.key.String(), Doing: doing, DoneRows: m.done, TotalRows: m.total}
	if n, took := m.done-m.startedAt, time.Since(m.started); n > 0 && took > 0 {
		p.Left = time.Duration(float64(took) / float64(n) * float64(max(m.total-m.done, 0)))
	}
	m.o.Progress(p)
}

func (m *migration) skips(k tableKey) bool {
	return slices.Contains(m.o.Skip, k.String()) || slices.Contains(m.o.Skip, k.view())
}

// switchTable puts a new table in the place of a plain one, in a moment: from then on all new rows go there.
func (m *migration) switchTable(ctx context.Context, k tableKey) error {
	old := k.String() + "_plain"
	since, until := int32(0), int32(math.MaxInt32)
	if !m.o.Since.IsZero() {
		since = clampClock(m.o.Since.Unix())
	}
	if !m.o.Until.IsZero() {
		until = clampClock(m.o.Until.Unix())
	}
	if m.skips(k) {
		since = math.MaxInt32
	}
	return m.db.reshape(ctx, m.conn, func(tx pgx.Tx) error {
		var mode string
		var size int32
		if err := tx.QueryRow(ctx, "SELECT mode, step FROM tidemark_tables WHERE name = $1", k.String()).Scan(&mode, &size); err != nil {
			return err
		}
		if Mode(mode) != Plain {
			return fmt.Errorf("it is kept as %s by now", mode)
		}
		for _, sql := range []string{"ALTER TABLE %[1]s RENAME TO %[2]s", "DELETE FROM tidemark_tables WHERE name = '%[1]s'"} {
			if _, err := tx.Exec(ctx, fmt.Sprintf(sql, k, old)); err != nil {
				return err
			}
		}
		if err := m.db.createTable(ctx, tx, k); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE tidemark_tables SET old = $2, since = $3, boundary = $4, until = $4 WHERE name = $1", k.String(), old, since, until)
		if err != nil {
			return err
		}
		return m.db.makeViews(ctx, tx, []tableKey{k})
	})
}

func clampClock(unix int64) int32 { return int32(min(max(unix, 0), math.MaxInt32)) }

// reshape changes the places of tables. Everybody who reads or writes waits for it, for a moment, and looks again afterwards.
func (db *DB) reshape(ctx context.Context, conn *pgx.Conn, fn func(pgx.Tx) error) error {
	return db.attempt(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "LOCK TABLE tidemark_shape IN ACCESS EXCLUSIVE MODE"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(schemaLock)); err != nil {
			return err
		}
		if err := fn(tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE tidemark_shape SET generation = generation + 1")
		return err
	})
}

// dropOld drops the table that a table's rows came from.
func (db *DB) dropOld(ctx context.Context, conn *pgx.Conn, k tableKey, old string) (int64, error) {
	var size int64
	err := db.reshape(ctx, conn, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT coalesce(pg_total_relation_size(to_regclass($1)), 0)", old).Scan(&size); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "UPDATE tidemark_tables SET old = NULL WHERE name = $1", k.String()); err != nil {
			return err
		}
		if err := db.makeViews(ctx, tx, []tableKey{k}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DROP TABLE "+old)
		return err
	})
	return size, err
}
