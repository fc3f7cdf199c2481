package confdb

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/jackc/pgx/v5/stdlib"

	"tidemark/confdb/pgdriver"
)

// CopiedTable is a table that was copied from one database to another and compared.
type CopiedTable struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	// Sum is that of the hashes of all rows, in any order.
	Sum uint64 `json:"sum"`
}

// beginCopy begins a transaction that sees all tables as they are at one moment. PostgreSQL gives it a connection of its own, so that changes
// go on meanwhile.
func (d *DB) beginCopy(ctx context.Context) (_ *sql.Tx, end func() error, err error) {
	if d.postgres == nil {
		tx, err := d.sql.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return nil, nil, err
		}
		return tx, tx.Rollback, nil
	}
	config := d.postgres.Config()
	config.RuntimeParams["statement_timeout"], config.RuntimeParams["idle_in_transaction_session_timeout"] = "0", "0"
	db := stdlib.OpenDB(*config)
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return tx, func() error { return errors.Join(tx.Rollback(), db.Close()) }, nil
}

// copyInto puts all rows of this database but those of some tables in the place of what the other, of the same version, has. Each table
// is read again there and compared. One of the two is SQLite.
func (d *DB) copyInto(ctx context.Context, to *DB, without map[string]bool) (tables []CopiedTable, err error) {
	from, end, err := d.beginCopy(ctx)
	if err != nil {
		return nil, d.wrap("copy", err)
	}
	defer func() { err = errors.Join(err, end()) }()
	conn, err := to.sql.Conn(ctx)
	if err != nil {
		return nil, to.wrap("copy", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return nil, to.wrap("copy", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreDone(tx.Rollback()))
		}
	}()
	c := copier{from: from, to: tx, conn: conn, toPostgres: to.postgres != nil, fromPostgres: d.postgres != nil}
	if tables, err = c.run(ctx, without); err != nil {
		return nil, to.wrap("copy", err)
	}
	if err := tx.Commit(); err != nil {
		return nil, to.wrap("copy", err)
	}
	to.forgetCached()
	return tables, nil
}

// copier copies tables in one transaction of each database.
type copier struct {
	from, to                 *sql.Tx
	conn                     *sql.Conn
	fromPostgres, toPostgres bool
}

func (c *copier) run(ctx context.Context, without map[string]bool) ([]CopiedTable, error) {
	lite, relaxed := c.to, "PRAGMA defer_foreign_keys = ON"
	if c.toPostgres {
		lite, relaxed = c.from, "SET LOCAL statement_timeout = 0"
	}
	if _, err := c.to.ExecContext(ctx, relaxed); err != nil {
		return nil, err
	}
	tables, err := ownersFirst(ctx, lite)
	if err != nil {
		return nil, err
	}
	tables = slices.DeleteFunc(tables, func(t string) bool { return without[t] })
	for _, table := range slices.Backward(tables) {
		if _, err := c.to.ExecContext(ctx, fmt.Sprintf("DELETE FROM %q", table)); err != nil {
			return nil, fmt.Errorf("empty table %s: %w", table, err)
		}
	}
	var copied []CopiedTable
	for _, table := range tables {
		sum, err := c.table(ctx, lite, table)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", table, err)
		}
		copied = append(copied, sum)
	}
	return copied, nil
}

// ownersFirst returns the tables so that each comes after those that its rows refer to.
func ownersFirst(ctx context.Context, lite *sql.Tx) ([]string, error) {
	tables, err := texts(ctx, lite, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'goose_%' ORDER BY rowid`)
	if err != nil {
		return nil, err
	}
	var sorted []string
	for len(sorted) < len(tables) {
		before := len(sorted)
		for _, table := range tables {
			if slices.Contains(sorted, table) {
				continue
			}
			owners, err := texts(ctx, lite, fmt.Sprintf(`SELECT "table" FROM pragma_foreign_key_list('%s')`, table))
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(owners, func(o string) bool { return o != table && !slices.Contains(sorted, o) }) {
				sorted = append(sorted, table)
			}
		}
		if len(sorted) == before {
			return nil, fmt.Errorf("tables refer to each other in a circle: %v", tables)
		}
	}
	return sorted, nil
}

func (c *copier) table(ctx context.Context, lite *sql.Tx, table string) (sum CopiedTable, err error) {
	columns, err := texts(ctx, lite, fmt.Sprintf("SELECT name FROM pragma_table_info('%s') ORDER BY cid", table))
	if err != nil {
		return sum, err
	}
	query := fmt.Sprintf(`SELECT "%s" FROM %q`, strings.Join(columns, `", "`), table)
	rows, err := c.from.QueryContext(ctx, query)
	if err != nil {
		return sum, err
	}
	source := newCopiedRows(rows, len(columns))
	if c.toPostgres {
		err = c.conn.Raw(func(conn any) error { return conn.(*pgdriver.Conn).CopyFrom(ctx, table, columns, source) })
	} else {
		err = c.insert(ctx, table, columns, source)
	}
	if err := errors.Join(err, rows.Close()); err != nil {
		return sum, err
	}
	there, err := c.to.QueryContext(ctx, query)
	if err != nil {
		return sum, err
	}
	again := newCopiedRows(there, len(columns))
	for again.Next() {
	}
	if err := errors.Join(again.Err(), there.Close()); err != nil {
		return sum, err
	}
	if source.count != again.count || source.sum != again.sum {
		return sum, fmt.Errorf("%d rows with sum %016x are there, expected %d with sum %016x; nothing was changed", again.count, again.sum, source.count, source.sum)
	}
	sum = CopiedTable{Table: table, Rows: source.count, Sum: source.sum}
	if !slices.Contains(columns, "id") {
		return sum, nil
	}
	return sum, c.lastID(ctx, lite, table)
}

func (c *copier) insert(ctx context.Context, table string, columns []string, source *copiedRows) error {
	put, err := c.to.PrepareContext(ctx, fmt.Sprintf(`INSERT INTO %q ("%s") VALUES (?%s)`, table, strings.Join(columns, `", "`), strings.Repeat(", ?", len(columns)-1)))
	if err != nil {
		return err
	}
	defer put.Close()
	for source.Next() {
		if _, err := put.ExecContext(ctx, source.row...); err != nil {
			return err
		}
	}
	return source.Err()
}

// lastID carries over which id was given last: events outlive the objects whose ids they have, so no id is given again.
func (c *copier) lastID(ctx context.Context, lite *sql.Tx, table string) error {
	const (
		kept     = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?"
		sequence = "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, 'id')::regclass), 0)"
	)
	last, largest := int64(0), int64(0)
	query := kept
	if c.fromPostgres {
		query = sequence
	}
	err := c.from.QueryRowContext(ctx, query, table).Scan(&last)
	if err == nil {
		err = c.from.QueryRowContext(ctx, fmt.Sprintf("SELECT coalesce(max(id), 0) FROM %q", table)).Scan(&largest)
	}
	if last = max(last, largest); err != nil || last == 0 {
		return err
	}
	if c.toPostgres {
		_, err := c.to.ExecContext(ctx, "SELECT setval(pg_get_serial_sequence(?, 'id'), ?)", table, last)
		return err
	}
	var counts bool
	err = lite.QueryRowContext(ctx, "SELECT sql LIKE '%AUTOINCREMENT%' FROM sqlite_master WHERE name = ?", table).Scan(&counts)
	if err != nil || !counts {
		return err
	}
	if _, err := c.to.ExecContext(ctx, "DELETE FROM sqlite_sequence WHERE name = ?", table); err != nil {
		return err
	}
	_, err = c.to.ExecContext(ctx, "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", table, last)
	return err
}

// copiedRows are rows that are summed up as they pass. pgx takes them as a source.
type copiedRows struct {
	rows      *sql.Rows
	row, into []any
	encoded   []byte
	count     int64
	sum       uint64
	err       error
}

func newCopiedRows(rows *sql.Rows, columns int) *copiedRows {
	c := &copiedRows{rows: rows, row: make([]any, columns), into: make([]any, columns)}
	for i := range c.row {
		c.into[i] = &c.row[i]
	}
	return c
}

// Next reads a row.
func (c *copiedRows) Next() bool {
	if c.err != nil || !c.rows.Next() {
		return false
	}
	if c.err = c.rows.Scan(c.into...); c.err != nil {
		return false
	}
	c.encoded = c.encoded[:0]
	for i, v := range c.row {
		switch of := v.(type) {
		case nil:
			c.encoded = append(c.encoded, 'n')
		case int64:
			c.encoded = binary.LittleEndian.AppendUint64(append(c.encoded, 'i'), uint64(of))
		case string:
			text := pgdriver.Clean(of) // PostgreSQL has it so
			c.row[i] = text
			c.encoded = append(binary.LittleEndian.AppendUint64(append(c.encoded, 't'), uint64(len(text))), text...)
		case []byte:
			c.encoded = append(binary.LittleEndian.AppendUint64(append(c.encoded, 'b'), uint64(len(of))), of...)
		default:
			c.err = fmt.Errorf("a value of type %T", v)
			return false
		}
	}
	c.count++
	c.sum += xxhash.Sum64(c.encoded)
	return true
}

// Values returns the row.
func (c *copiedRows) Values() ([]any, error) { return c.row, nil }

// Err says why there are no more rows.
func (c *copiedRows) Err() error { return errors.Join(c.err, c.rows.Err()) }

// copyToFile makes config.db in a folder and copies into it.
func (d *DB) copyToFile(ctx context.Context, dir string, without map[string]bool) (tables []CopiedTable, err error) {
	to, err := openAt(ctx, dir, Options{Now: d.now})
	if err != nil {
		return nil, err
	}
	tables, err = d.copyInto(ctx, to, without)
	return tables, errors.Join(err, to.Close())
}

// backupPostgres writes the tables into a file as SQLite has them.
func (d *DB) backupPostgres(ctx context.Context, to string) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(to), "config-copy-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := d.copyToFile(ctx, dir, nil); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dir, FileName), to)
}

// MoveOptions of Move. DSN and Schema are as in Options.
type MoveOptions struct {
	DSN, Schema string
	// ToPostgres says where to; the other side is the data folder's file.
	ToPostgres bool
	// Replace permits to put the configuration in the place of another one.
	Replace bool
	Options Options
}

// Moved is what Move did.
type Moved struct {
	Tables []CopiedTable `json:"tables"`
	// Aside is the file that has what was in its place before; empty for none.
	Aside string `json:"aside,omitempty"`
}

// Move copies the configuration of a stopped server between the file of its data folder and PostgreSQL, compares both, and then has the
// folder say where it is. The tables in PostgreSQL stay when it leaves them, the file under another name.
func Move(ctx context.Context, dir string, o MoveOptions) (m Moved, err error) {
	if o.Schema == "" {
		o.Schema = DefaultSchema
	}
	there := place{o.DSN, o.Schema}
	remote := o.Options
	remote.DSN, remote.Schema = o.DSN, o.Schema
	file := filepath.Join(dir, FileName)
	_, noFile := os.Stat(file)
	if o.ToPostgres {
		if noFile != nil {
			return m, fmt.Errorf("the data folder has no configuration to move: %w", noFile)
		}
		if is, err := readPlace(dir); err != nil || is.DSN != "" {
			return m, errors.Join(err, fmt.Errorf("%s says that the configuration is in PostgreSQL already", filepath.Join(dir, PlaceFileName)))
		}
		if m.Tables, err = moveToPostgres(ctx, dir, o, remote); err != nil {
			return m, err
		}
		if err := writePlace(dir, there); err != nil {
			return m, err
		}
		m.Aside = fmt.Sprintf("%s.moved-%d", file, time.Now().Unix())
		return m, os.Rename(file, m.Aside)
	}
	if is, err := readPlace(dir); noFile == nil && is.DSN == "" && !o.Replace {
		return m, errors.Join(err, fmt.Errorf("%s: the data folder has a configuration of its own; --replace sets it aside", file))
	}
	return moveToFile(ctx, dir, remote)
}

func moveToPostgres(ctx context.Context, dir string, o MoveOptions, remote Options) (tables []CopiedTable, err error) {
	from, err := openAt(ctx, dir, o.Options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := openAt(ctx, dir, remote)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	var objects int
	err = to.sql.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM hosts) + (SELECT count(*) FROM templates) + (SELECT count(*) FROM users)").Scan(&objects)
	if err != nil {
		return nil, to.wrap("count objects", err)
	}
	if objects > 0 && !o.Replace {
		return nil, fmt.Errorf("%s has %d hosts, templates and users; --replace puts this configuration in their place", to.path, objects)
	}
	return from.copyInto(ctx, to, nil)
}

func moveToFile(ctx context.Context, dir string, remote Options) (m Moved, err error) {
	from, err := openAt(ctx, dir, remote)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	made, err := os.MkdirTemp(dir, planPattern) // what a crash leaves of it, the next Open removes
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(made)) }()
	if m.Tables, err = from.copyToFile(ctx, made, nil); err != nil {
		return m, err
	}
	file := filepath.Join(dir, FileName)
	if _, err := os.Stat(file); err == nil {
		m.Aside = fmt.Sprintf("%s.before-%d", file, time.Now().Unix())
		if err := os.Rename(file, m.Aside); err != nil {
			return m, err
		}
	}
	if err := os.Rename(filepath.Join(made, FileName), file); err != nil {
		return m, err
	}
	if err := os.Remove(filepath.Join(dir, PlaceFileName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return m, err
	}
	return m, nil
}
