package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errReshaped says that tables changed their places since they were looked up; who gets it looks again and repeats.
var errReshaped = errors.New("tables were moved meanwhile")

// reshapes bounds how often something is repeated because of errReshaped.
const reshapes = 20

const shapeSQL = "SELECT generation FROM tidemark_shape"

// source is what a query reads the table's rows from: while its rows move, they are in two places, each row in exactly one.
func (k tableKey) source(old string) string {
	if old == "" {
		return k.String()
	}
	counts := fmt.Sprintf("(o.clock < (SELECT boundary FROM tidemark_tables WHERE name = '%[1]s') OR o.clock >= (SELECT until FROM tidemark_tables WHERE name = '%[1]s'))", k)
	if k.trends { // an hour that was written anew replaces the old one
		counts += fmt.Sprintf(" AND NOT EXISTS (SELECT FROM %s n WHERE n.itemid = o.itemid AND n.clock = o.clock)", k)
	}
	return fmt.Sprintf("(SELECT * FROM %s UNION ALL SELECT o.* FROM %s o WHERE %s)", k, old, counts)
}

// sourceOf is the source of a table as it is known now.
func (db *DB) sourceOf(k tableKey) string {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if t := db.tables[k]; t != nil {
		return k.source(t.old)
	}
	return k.String()
}

// knownShape is the generation of what db.tables says.
func (db *DB) knownShape() int64 {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.shape
}

// addShape asks for the generation, as the first statement of a batch.
func addShape(batch *pgconn.Batch) { batch.ExecParams(shapeSQL, nil, nil, nil, []int16{1}) }

// checkShape reads what addShape asked for.
func checkShape(results *pgconn.MultiResultReader, known int64) error {
	if !results.NextResult() {
		return results.Close()
	}
	rows := results.ResultReader()
	found := int64(0)
	for rows.NextRow() {
		var err error
		if found, err = decodeInt8(rows.Values()[0]); err != nil {
			return err
		}
	}
	if _, err := rows.Close(); err != nil {
		return err
	}
	if found != known {
		return errReshaped
	}
	return nil
}

// steady runs fn with a connection for reading, again if tables were moved meanwhile. fn builds its statements from what is known when it is
// called, with the generation known, and hands nothing over before it has compared it.
func (db *DB) steady(ctx context.Context, fn func(c *pgconn.PgConn, known int64) error) error {
	for range reshapes {
		known := db.knownShape()
		err := db.query(ctx, func(c *pgconn.PgConn) error { return fn(c, known) })
		if !errors.Is(err, errReshaped) {
			return err
		}
		if err := db.reload(ctx); err != nil {
			return err
		}
	}
	return errReshaped
}

// reload reads again which tables there are.
func (db *DB) reload(ctx context.Context) error {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return db.loadTables(ctx, conn.Conn())
}

// loadTables reads which tables there are and how each is kept, and which way further ones are.
func (db *DB) loadTables(ctx context.Context, conn *pgx.Conn) error {
	var shape int64
	var mode string
	found := map[tableKey]*tableState{}
	// Both are read while nobody can change them.
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT generation, mode FROM tidemark_shape").Scan(&shape, &mode); err != nil {
			return err
		}
		return readTables(ctx, tx, found)
	})
	if err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.tables, db.shape = found, shape
	if db.o.Mode == Auto && mode != "" {
		db.mode = Mode(mode)
	}
	return nil
}

func readTables(ctx context.Context, x executor, found map[tableKey]*tableState) error {
	rows, err := x.Query(ctx, "SELECT name, parent, class, mode, step, coalesce(old, '') FROM tidemark_tables")
	if err != nil {
		return err
	}
	views := map[string]tableKey{}
	for _, k := range allViews() {
		views[k.view()] = k
	}
	var name, parent, mode, old string
	var class, step int32
	_, err = pgx.ForEachRow(rows, []any{&name, &parent, &class, &mode, &step, &old}, func() error {
		k, ok := views[parent]
		if k.class = uint8(class); !ok || k.String() != name {
			return fmt.Errorf("tidemark_tables: %q is no table of %q", name, parent)
		}
		found[k] = &tableState{mode: Mode(mode), step: step, old: old}
		return nil
	})
	return err
}

// modeNow is how further tables are kept.
func (db *DB) modeNow() Mode {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.mode
}
