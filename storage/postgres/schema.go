package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"tidemark/model"
	"tidemark/storage/lease"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// schemaLock is the advisory lock of who changes tables, so that two servers do not at once.
const schemaLock = 0x7469_6465

// connect reaches the database, trying again for a while.
func (db *DB) connect(ctx context.Context) error {
	config, err := pgxpool.ParseConfig(db.dsn)
	if err != nil {
		return fmt.Errorf("storage.dsn: %w", err)
	}
	setTimeouts(config.ConnConfig.RuntimeParams, db.o.QueryTimeout, "tidemark reader")
	db.watch(config.ConnConfig)
	config.BeforeConnect, config.AfterConnect = db.pinned, db.pin
	config.MaxConns = int32(db.o.Connections)
	// A database that was restarted a moment ago leaves dead connections behind, however short they were idle: a read must not
	// find that out. The round trip is small beside a read of many items.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true }
	if db.pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
		return err
	}
	deadline, backoff := time.Now().Add(db.o.ConnectTimeout), minBackoff
	for {
		err := db.pool.Ping(ctx)
		var refused *pgconn.PgError
		starting := errors.As(err, &refused) && (refused.Code == "57P03" || refused.Code == "53300") // starting up; too many clients
		if err == nil {
			return refuseDatabase(ctx, db.pool)
		}
		if ctx.Err() != nil || (refused != nil && !starting) || time.Now().After(deadline) {
			return err
		}
		db.o.Logger.Warn("the database cannot be reached yet", "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(backoff/2 + rand.N(backoff/2)):
		}
		backoff = min(2*backoff, 2*time.Second)
	}
}

// pinned makes a connection find the tables where the first one has found them.
func (db *DB) pinned(_ context.Context, config *pgx.ConnConfig) error {
	if db.searchPath != "" {
		config.RuntimeParams["search_path"] = db.searchPath
	}
	return nil
}

// pin tags a connection; the first one, before which there is no other, looks where the tables are.
func (db *DB) pin(ctx context.Context, conn *pgx.Conn) error {
	if db.searchPath == "" {
		path, err := lease.SearchPath(ctx, conn)
		if err == nil {
			_, err = conn.Exec(ctx, "SELECT set_config('search_path', $1, false)", path)
		}
		if err != nil {
			return err
		}
		db.searchPath = path
	}
	return db.tag(ctx, conn)
}

// query runs fn with a connection for reading. The error is an awayError while the database cannot be asked.
func (db *DB) query(ctx context.Context, fn func(*pgconn.PgConn) error) error {
	c, err := db.pool.Acquire(ctx)
	if err != nil {
		return asAway(ctx, err)
	}
	defer c.Release() // one whose results were not all read is closed by this
	return asAway(ctx, fn(c.Conn().PgConn()))
}

// prepareSchema migrates the fixed tables, finds out what the database can do, and reads which tables of values there are.
func (db *DB) prepareSchema(ctx context.Context) error {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", schemaLock); err != nil {
		return err
	}
	defer conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", schemaLock) //nolint:errcheck // a lost connection unlocks too
	if err := db.migrate(ctx); err != nil {
		return err
	}
	if db.caps, err = probe(ctx, conn.Conn()); err != nil {
		return err
	}
	if err := db.loadTables(ctx, conn.Conn()); err != nil {
		return err
	}
	if err := db.chooseMode(); err != nil {
		return err
	}
	return db.prepareViews(ctx, conn.Conn())
}

func (db *DB) migrate(ctx context.Context) error {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	s := stdlib.OpenDBFromPool(db.pool)
	defer s.Close() //nolint:errcheck // the pool stays open
	p, err := goose.NewProvider(goose.DialectPostgres, s, files, goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()),
		goose.WithTableName("tidemark_schema"))
	if err != nil {
		return err
	}
	if err := refuseNewer(ctx, s, p); err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// refuseNewer keeps an older program from a newer program's tables.
func refuseNewer(ctx context.Context, s *sql.DB, p *goose.Provider) error {
	sources := p.ListSources()
	last := sources[len(sources)-1].Version
	found, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	if found > last {
		return fmt.Errorf("its schema is version %d and this program knows up to %d; use a newer program", found, last)
	}
	return s.PingContext(ctx)
}

// chooseMode settles how further tables are kept.
func (db *DB) chooseMode() error {
	was := db.mode
	db.mode = db.o.Mode
	if db.mode == Timescale {
		return db.caps.checkTimescale()
	}
	if db.mode != Auto {
		return nil
	}
	if db.mode = was; db.mode == Auto {
		for _, t := range db.tables {
			db.mode = t.mode
		}
	}
	switch {
	case db.mode != Auto:
	case db.caps.checkTimescale() == nil:
		db.mode = Timescale
	default:
		db.mode = Partitions
	}
	return nil
}

// tableState is what is known of a table.
type tableState struct {
	mode Mode
	// step is the length of the partitions that are made next, seconds.
	step int32
	// old is the table that has rows which have not moved yet, or empty.
	old string
}

// forgetTables makes ensureTables look again.
func (db *DB) forgetTables() {
	db.mu.Lock()
	defer db.mu.Unlock()
	clear(db.tables)
	db.shape = -1 // readers look again, too
}

// ensureTables makes the tables that are missing.
func (db *DB) ensureTables(ctx context.Context, conn *pgx.Conn, keys []tableKey) error {
	db.mu.RLock()
	missing := slices.DeleteFunc(slices.Clone(keys), func(k tableKey) bool { return db.tables[k] != nil })
	db.mu.RUnlock()
	if len(missing) == 0 {
		return nil
	}
	db.shaping.Lock()
	defer db.shaping.Unlock()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // after Commit it does nothing
	if err := db.fence(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", schemaLock); err != nil {
		return err
	}
	for _, k := range missing {
		if err := db.createTable(ctx, tx, k); err != nil {
			return fmt.Errorf("create table %s: %w", k, err)
		}
	}
	// As the last, because of its timeout.
	if err := db.tryViews(ctx, tx, missing); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	return db.loadTables(ctx, conn)
}

// executor is a connection or a transaction.
type executor interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func (db *DB) createTable(ctx context.Context, x executor, k tableKey) error {
	step := db.o.partitionStep
	if k.trends {
		step = trendStep
	}
	suffix := ""
	mode := db.modeNow()
	if mode == Partitions {
		suffix = " PARTITION BY RANGE (clock)"
	}
	if _, err := x.Exec(ctx, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s)%s", k, k.ddl(), suffix)); err != nil {
		return err
	}
	switch mode {
	case Partitions:
		if _, err := x.Exec(ctx, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s_default PARTITION OF %s DEFAULT", k, k)); err != nil {
			return err
		}
		if err := db.makeAhead(ctx, x, k, step, nil); err != nil {
			return err
		}
	case Timescale:
		if err := db.makeHypertable(ctx, x, k, step); err != nil {
			return err
		}
	}
	_, err := x.Exec(ctx, `INSERT INTO tidemark_tables (name, parent, class, mode, step) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
		k.String(), k.view(), int32(k.class), string(mode), step)
	return err
}

// definedClass returns the class of an item.
func (db *DB) definedClass(id model.ItemID) uint8 {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if it := db.items.Get(id); it != nil {
		return it.class
	}
	return 0
}
