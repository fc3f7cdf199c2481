// Package pgdriver lets statements that were written for SQLite run on PostgreSQL: a driver for database/sql over pgx that rewrites the few words
// in which the two differ, gives every parameter the type of its value, and holds an advisory lock in its session, so that there is one user of the
// tables as there is of a file. See docs/design/0052-configuration-in-postgres.md.
package pgdriver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// lockClass is the advisory lock of the session that uses the tables, mixed with the name of their schema.
const lockClass = 0x7469_6d63

// ErrLocked says that another session uses the tables.
var ErrLocked = errors.New("another server uses this configuration")

const (
	// connectTimeout bounds one attempt to connect where the connection string does not.
	connectTimeout = 5 * time.Second
	// lockWait is how long the database may take to end our own earlier session.
	lockWait = 2 * time.Second
)

// Connector makes connections; database/sql takes it. No more than one connection can be open at a time.
type Connector struct {
	// Session, if not nil, is called with each new connection before it is used.
	Session func(context.Context, *pgx.Conn) error

	config *pgx.ConnConfig
	schema string
	driver driver.Driver
	// Connected, if not nil, is called after each connection that was made.
	Connected func()
	// Unreplicated, if not nil, is called when somebody ended the wait of a commit for the replica, which then is waited for once more.
	Unreplicated func()
}

// New reads a connection string. Tables are looked for in the schema only.
func New(dsn, schema string) (*Connector, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err // pgx leaves the password out
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	for name, value := range map[string]string{
		"search_path": pgx.Identifier{schema}.Sanitize(),
		// The name tells our own earlier sessions from those of others.
		"application_name":                    fmt.Sprintf("tidemark configuration %08x", rand.Uint32()),
		"standard_conforming_strings":         "on",
		"statement_timeout":                   "120000", // milliseconds; the longest statement deletes a template from all hosts
		"lock_timeout":                        "20000",
		"idle_in_transaction_session_timeout": "300000",
		// A session whose server is gone from the network must give its lock back soon.
		"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "2", "tcp_user_timeout": "15000",
	} {
		config.RuntimeParams[name] = value
	}
	return &Connector{config: config, schema: schema, driver: stdlib.GetDefaultDriver()}, nil
}

// Config returns a copy of the settings of connections, for one without the lock.
func (c *Connector) Config() *pgx.ConnConfig { return c.config.Copy() }

// Driver is there for database/sql.
func (c *Connector) Driver() driver.Driver { return c.driver }

// Connect makes a connection that holds the lock.
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, config := &Conn{unreplicated: c.Unreplicated}, c.config.Copy()
	config.OnNotice = conn.noticed
	inner, err := stdlib.GetConnector(*config, stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool {
		// A database that was restarted a moment ago leaves a dead connection behind, however short it was idle.
		return true
	})).Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn.inner = inner.(*stdlib.Conn)
	if c.Session != nil {
		if err := c.Session(ctx, conn.inner.Conn()); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	if err := c.lock(ctx, conn.inner.Conn()); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if c.Connected != nil {
		c.Connected()
	}
	return conn, nil
}

// lock takes the lock, or fails with ErrLocked. A session of our own that the database still holds for alive is ended.
func (c *Connector) lock(ctx context.Context, conn *pgx.Conn) error {
	for deadline := time.Now().Add(lockWait); ; {
		var ok bool
		err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1::int, $2::int)", int32(lockClass), c.LockKey()).Scan(&ok)
		if err != nil || ok {
			return err
		}
		_, err = conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND pid <> pg_backend_pid()",
			c.config.RuntimeParams["application_name"])
		if err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return ErrLocked
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// LockKey is the second number of the advisory lock.
func (c *Connector) LockKey() int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.schema))
	return int32(h.Sum32())
}

// Conn is a connection.
type Conn struct {
	inner *stdlib.Conn
	// open are the rows that are being read.
	open *rows
	// queue are the statements of the transaction that wait; see Later.
	queue pgx.Batch
	inTx  bool
	// ended says that the wait of the last commit for the replica was ended by somebody; unreplicated, which may be nil, is told.
	ended        bool
	unreplicated func()
}

// Close is there for database/sql.
func (c *Conn) Close() error { return c.inner.Close() }

// Ping is there for database/sql.
func (c *Conn) Ping(ctx context.Context) error { return c.inner.Ping(ctx) }

// ResetSession is there for database/sql.
func (c *Conn) ResetSession(ctx context.Context) error { return c.inner.ResetSession(ctx) }

// Prepare is there for database/sql.
func (c *Conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext only reads the statement: pgx prepares each text once, when the types of its values are known.
func (c *Conn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return &stmt{conn: c, text: Parse(query)}, nil
}

// Begin is there for database/sql.
func (c *Conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx begins a transaction. As the session has the tables to itself, the isolation does not matter.
func (c *Conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	inner, err := c.inner.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	c.inTx, c.queue = true, pgx.Batch{}
	return &tx{c, inner}, nil
}

// ExecContext is there for database/sql.
func (c *Conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.exec(ctx, Parse(query), args)
}

func (c *Conn) exec(ctx context.Context, t *Text, args []driver.NamedValue) (driver.Result, error) {
	query, args, err := t.Typed(args)
	if err != nil {
		return nil, err
	}
	if c.put(ctx, query, args) {
		if len(c.queue.QueuedQueries) >= maxLater {
			err = c.ready(ctx)
		}
		return driver.ResultNoRows, err
	}
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	c.ended = false
	result, err := c.inner.ExecContext(ctx, query, args)
	if err != nil || c.inTx {
		return result, err
	}
	return result, c.outwait(ctx) // it was a transaction of its own
}

// QueryContext is there for database/sql.
func (c *Conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.query(ctx, Parse(query), args)
}

func (c *Conn) query(ctx context.Context, t *Text, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	query, args, err := t.Typed(args)
	if err != nil {
		return nil, err
	}
	inner, err := c.inner.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	c.open = &rows{inner: inner, conn: c}
	return c.open, nil
}

// ready sends what waits and makes the connection free for the next statement: SQLite has several at once, PostgreSQL one, so what is left of its rows goes to memory.
func (c *Conn) ready(ctx context.Context) error {
	if err := c.keepOpen(); err != nil {
		return err
	}
	return c.flush(ctx)
}

func (c *Conn) keepOpen() error {
	if c.open == nil {
		return nil
	}
	return c.open.keep()
}

// CopyFrom writes rows into a table, the fastest way that there is.
func (c *Conn) CopyFrom(ctx context.Context, table string, columns []string, source pgx.CopyFromSource) error {
	if err := c.ready(ctx); err != nil {
		return err
	}
	_, err := c.inner.Conn().CopyFrom(ctx, pgx.Identifier{table}, columns, source)
	return err
}

// CheckNamedValue turns a value into what a column can hold, as SQLite's driver does: truth values are numbers there. PostgreSQL refuses
// texts with a zero byte or that are no UTF-8; such bytes become U+FFFD.
func (c *Conn) CheckNamedValue(v *driver.NamedValue) error {
	value, err := driver.DefaultParameterConverter.ConvertValue(v.Value)
	if err != nil {
		return err
	}
	switch of := value.(type) {
	case bool:
		value = int64(0)
		if of {
			value = int64(1)
		}
	case string:
		value = Clean(of)
	case []byte:
		if of == nil {
			value = []byte{}
		}
	}
	v.Value = value
	return nil
}

// stmt is a statement that was read.
type stmt struct {
	conn *Conn
	text *Text
}

func (s *stmt) Close() error  { return nil }
func (s *stmt) NumInput() int { return s.text.inputs }

func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (s *stmt) Query([]driver.Value) (driver.Rows, error)  { return nil, driver.ErrSkip }

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.exec(ctx, s.text, args)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.query(ctx, s.text, args)
}

func (s *stmt) CheckNamedValue(v *driver.NamedValue) error { return s.conn.CheckNamedValue(v) }
