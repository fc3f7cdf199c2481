package confdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Rebuild sets a damaged database aside under another name and makes a new one from all rows of it that can be read. Call it
// after ErrDamaged, with the database closed. Rows whose owner is lost are lost too; what was kept is logged.
func Rebuild(ctx context.Context, dir string, o Options) (err error) {
	path := filepath.Join(dir, FileName)
	aside := fmt.Sprintf("%s.damaged-%d", path, time.Now().Unix())
	for _, suffix := range []string{"", "-wal"} {
		if err := os.Rename(path+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set the damaged configuration aside: %w", err)
		}
	}
	if err := os.Remove(path + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set the damaged configuration aside: %w", err)
	}
	d, err := Open(ctx, dir, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	old, err := sql.Open("sqlite", dataSource(aside))
	if err != nil {
		return fmt.Errorf("open %s: %w", aside, err)
	}
	old.SetMaxOpenConns(1)
	kept, lost, err := d.salvage(ctx, old)
	d.log.Error("the configuration database is damaged; a new one was made from what can be read",
		"file", path, "kept_as", aside, "rows_kept", kept, "rows_without_owner", lost)
	_ = old.Close() // damaged and set aside: nothing depends on how it closes
	return err
}

// salvage copies all rows that can be read, and drops those whose owner could not be.
func (d *DB) salvage(ctx context.Context, old *sql.DB) (kept, orphans int, err error) {
	tx, err := d.sql.BeginTx(ctx, nil)
	if err != nil {
		return 0, 0, d.wrap("rebuild", err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "PRAGMA defer_foreign_keys = ON"); err != nil {
		return 0, 0, d.wrap("rebuild", err)
	}
	tables, err := texts(ctx, tx, `SELECT name FROM sqlite_master
		WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'goose_%' ORDER BY rowid`)
	if err != nil {
		return 0, 0, d.wrap("rebuild", err)
	}
	for _, table := range tables {
		n, err := copyTable(ctx, tx, old, table)
		if err != nil {
			return kept, orphans, d.wrap("rebuild "+table, err)
		}
		kept += n
	}
	for dropped := 1; dropped > 0; orphans += dropped {
		if dropped, err = dropOrphans(ctx, tx, tables); err != nil {
			return kept, orphans, d.wrap("rebuild", err)
		}
	}
	return kept, orphans, d.wrap("rebuild", tx.Commit())
}

// copyTable copies the rows of a table that can be read: from its start to the first that cannot, and from its end to the
// last that cannot.
func copyTable(ctx context.Context, tx *sql.Tx, old *sql.DB, table string) (kept int, err error) {
	const columnsOf = "SELECT name FROM pragma_table_info('%s')"
	has, err := texts(ctx, old, fmt.Sprintf(columnsOf, table))
	if err != nil {
		return 0, ctx.Err() // the schema cannot be read, so nothing can
	}
	wanted, err := texts(ctx, tx, fmt.Sprintf(columnsOf, table))
	if err != nil {
		return 0, err
	}
	columns := slices.DeleteFunc(wanted, func(c string) bool { return !slices.Contains(has, c) })
	if len(columns) == 0 {
		return 0, nil
	}
	list := strings.Join(columns, ", ")
	insert, err := tx.PrepareContext(ctx, fmt.Sprintf("INSERT OR REPLACE INTO %s (%s) VALUES (?%s)", table, list, strings.Repeat(", ?", len(columns)-1)))
	if err != nil {
		return 0, err
	}
	defer insert.Close()
	key, err := texts(ctx, tx, fmt.Sprintf("SELECT name FROM pragma_table_info('%s') WHERE pk > 0 ORDER BY pk", table))
	if err != nil {
		return 0, err
	}
	for _, order := range []string{"", " DESC"} {
		by := ""
		if len(key) > 0 {
			by = " ORDER BY " + strings.Join(key, order+", ") + order
		}
		n, whole := copyRows(ctx, insert, old, fmt.Sprintf("SELECT %s FROM %s NOT INDEXED%s", list, table, by), len(columns))
		kept += n
		if whole {
			break
		}
	}
	return kept, ctx.Err()
}

// copyRows copies rows until one cannot be read, and reports whether all could. A row that the schema refuses is passed over.
func copyRows(ctx context.Context, insert *sql.Stmt, old *sql.DB, query string, columns int) (kept int, whole bool) {
	rows, err := old.QueryContext(ctx, query)
	if err != nil {
		return 0, false
	}
	defer rows.Close()
	row, into := make([]any, columns), make([]any, columns)
	for i := range row {
		into[i] = &row[i]
	}
	for rows.Next() {
		if rows.Scan(into...) != nil {
			return kept, false
		}
		if _, err := insert.ExecContext(ctx, row...); err == nil {
			kept++
		}
	}
	return kept, rows.Err() == nil
}

// dropOrphans deletes rows that refer to rows which are not there, and returns how many.
func dropOrphans(ctx context.Context, tx *sql.Tx, tables []string) (dropped int, err error) {
	for _, table := range tables {
		conditions, err := texts(ctx, tx, fmt.Sprintf(`SELECT "from" || ' IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ' || "table" || ' AS owner WHERE owner.' ||
			coalesce("to", 'id') || ' = %[1]s.' || "from" || ')' FROM pragma_foreign_key_list('%[1]s')`, table))
		if err != nil {
			return dropped, err
		}
		for _, condition := range conditions {
			r, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE "+condition)
			if err != nil {
				return dropped, err
			}
			n, err := r.RowsAffected()
			if err != nil {
				return dropped, err
			}
			dropped += int(n)
		}
	}
	return dropped, nil
}

// texts returns the first column of a query.
func texts(ctx context.Context, q interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, query string,
) ([]string, error) {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}
