package confdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"tidemark/confdb/pgdriver"
)

// DefaultSchema is where the tables are in PostgreSQL: others in the same database, such as Zabbix's, have the same names.
const DefaultSchema = "tidemark"

const (
	// openWait is how long Open tries to reach PostgreSQL, which may be started at the same time.
	openWait = 30 * time.Second
	// Error codes of PostgreSQL.
	uniqueViolation = "23505"
	diskFullCode    = "53100"
	tooManyClients  = "53300"
	startingUp      = "57P03"
)

func (d *DB) connectPostgres(o Options) error {
	c, err := pgdriver.New(o.DSN, o.Schema)
	if err != nil {
		return fmt.Errorf("connection string of the configuration: %w", err)
	}
	c.Session = o.Session
	config := c.Config()
	d.path = fmt.Sprintf("the configuration in PostgreSQL (%s, database %s, schema %s)", config.Host, config.Database, o.Schema)
	c.Connected, c.Unreplicated = d.connected, d.unreplicated
	d.postgres, d.sql = c, sql.OpenDB(c)
	return nil
}

// preparePostgres takes the lock, which the one connection then holds, and brings the tables up to date over a second connection.
func (d *DB) preparePostgres(ctx context.Context) error {
	if err := d.reach(ctx); err != nil {
		return err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*d.postgres.Config())
	db.SetMaxOpenConns(1)
	schema, err := d.createSchema(ctx, db)
	if err == nil {
		err = d.migrate(ctx, goose.DialectPostgres, db, pgdriver.Migrations{FS: files})
	}
	if err != nil {
		err = fmt.Errorf("tables in the schema %s: %w", schema, err)
	}
	return errors.Join(err, db.Close())
}

// reach waits until the database answers and its tables are free.
func (d *DB) reach(ctx context.Context) error {
	for deadline, backoff := time.Now().Add(openWait), 100*time.Millisecond; ; backoff = min(2*backoff, 2*time.Second) {
		err := d.sql.PingContext(ctx)
		if err == nil || ctx.Err() != nil || !away(err) || time.Now().After(deadline) {
			return err
		}
		d.log.Warn("the configuration database cannot be reached yet", "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(backoff):
		}
	}
}

// createSchema makes the schema when it is missing. One that has tables of others is refused, and a database that cannot hold the tables.
func (d *DB) createSchema(ctx context.Context, db *sql.DB) (string, error) {
	var schema, encoding, role, database string
	var found, ours, others, readOnly, may, use bool
	err := db.QueryRowContext(ctx, `WITH s(name) AS (SELECT trim('"' FROM current_setting('search_path')))
		SELECT s.name, EXISTS (SELECT FROM pg_namespace WHERE nspname = s.name),
		EXISTS (SELECT FROM pg_tables WHERE schemaname = s.name AND tablename = 'goose_db_version'),
		EXISTS (SELECT FROM pg_tables WHERE schemaname = s.name AND tablename IN ('hosts', 'items', 'triggers')),
		current_setting('server_encoding'), current_user::text, current_database()::text, pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean,
		has_database_privilege(current_database(), 'CREATE'),
		coalesce((SELECT has_schema_privilege(n.oid, 'USAGE') AND has_schema_privilege(n.oid, 'CREATE') FROM pg_namespace n WHERE n.nspname = s.name), false) FROM s`).
		Scan(&schema, &found, &ours, &others, &encoding, &role, &database, &readOnly, &may, &use)
	switch {
	case err != nil:
		return schema, err
	case others && !ours:
		return schema, errors.New("it has tables of another program; choose another schema")
	case encoding != "UTF8":
		return schema, fmt.Errorf("the database %s is encoded in %s, which cannot hold every text; make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", database, encoding)
	case readOnly:
		return schema, fmt.Errorf("the database %s can only be read there: it is a replica, or default_transaction_read_only is on; name the server that can be written", database)
	case found && !use:
		return schema, fmt.Errorf("the role %s may not use it; give the role that owns the tables, or another schema", role)
	case found:
		return schema, nil
	case !may:
		return schema, fmt.Errorf("the role %s may not make it; GRANT CREATE ON DATABASE %s TO %[1]s, or CREATE SCHEMA … AUTHORIZATION %[1]s", role, database)
	}
	_, err = db.ExecContext(ctx, "CREATE SCHEMA "+pgx.Identifier{schema}.Sanitize())
	return schema, err
}

// away reports whether the database could not be reached, or not now.
func away(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		class := refused.Code[:min(2, len(refused.Code))]
		return class == "08" || refused.Code == startingUp || refused.Code == tooManyClients || refused.Code == "57P01" || refused.Code == "57P02"
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn)
}

// awayError is ErrAway with what was tried.
type awayError struct {
	text  string
	cause error
}

func (e *awayError) Error() string   { return e.text + ": " + e.cause.Error() }
func (e *awayError) Unwrap() []error { return []error{ErrAway, e.cause} }

// Unavailable tells the API that the same request may succeed later.
func (e *awayError) Unavailable() bool { return true }

// busyError says that the database refuses for now what was tried.
type busyError struct {
	text  string
	cause error
}

func (e *busyError) Error() string { return e.text + ": " + e.cause.Error() }
func (e *busyError) Unwrap() error { return e.cause }

// Unavailable tells the API that the same request may succeed later.
func (e *busyError) Unavailable() bool { return true }

// busy reports whether the database refuses for now what was tried: it can only be read, something was locked for too long, or its users or rights are being changed.
func busy(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code {
	case "25006", "28000", "28P01", "42501", "55P03", "57014": // read only, role, password, rights, lock timeout, statement timeout
		return true
	}
	return false
}

// connected notes a new connection.
func (d *DB) connected() {
	if d.away.CompareAndSwap(true, false) {
		d.log.Info("the configuration database is reached again", "database", d.path)
	}
}

// unreplicated notes that a change waits for the replica once more.
func (d *DB) unreplicated() {
	d.log.Warn("the wait of a change for the replica of PostgreSQL was ended by somebody (pg_cancel_backend); it is waited for once more, because the change would be lost with this server of PostgreSQL", "database", d.path)
}

func (d *DB) wrapPostgres(what string, err error) error {
	var refused *pgconn.PgError
	switch {
	case errors.Is(err, pgdriver.ErrLocked):
		return fmt.Errorf("%s is %w", d.path, ErrInUse)
	case away(err):
		if d.away.CompareAndSwap(false, true) {
			d.log.Error("the configuration database cannot be reached; what has to be written waits, and it is tried again", "database", d.path, "error", err)
		}
		return &awayError{fmt.Sprintf("%s %v; it is tried again: %s", d.path, ErrAway, what), err}
	case busy(err):
		return &busyError{fmt.Sprintf("%s cannot be used now; look at its state and try again: %s", d.path, what), err}
	case errors.As(err, &refused) && refused.Code == diskFullCode:
		err = fmt.Errorf("%w: %w", err, syscall.ENOSPC)
	}
	return fmt.Errorf("%s: %s: %w", d.path, what, err)
}
