// Package lease lets one of several servers on one PostgreSQL database work, and the others wait.
//
//	waiting ── the row has expired ──▶ Acquire: old sessions ended, epoch + 1 ──▶ Term, renewed
//	   ▲                                                                            │
//	   └── lost: not renewed in time, or another epoch is in the row ◀──────────────┘
//
// The lease is a row with holder, epoch and expiry by the database's own clock. Whoever writes locks the row of its epoch within the very transaction
// (Fence), so that nothing of an earlier term is stored once there is a later one, however long a process was stopped. A holder that could not renew in
// time ends its term before another server may begin one. The reasons are in docs/design/0053-two-servers-on-postgresql.md.
package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sys/unix"
)

const (
	// DefaultTTL is how long a lease lasts after each renewal.
	DefaultTTL = 12 * time.Second
	// MinTTL leaves room for a slow commit between renewals.
	MinTTL = 2 * time.Second
	// sessionLock is the advisory lock that all sessions of a term hold shared, mixed with the schema: by it the next holder finds those that a dead
	// machine has left.
	sessionLock = 0x7469_6d6c
	// takeLock is held by who takes the lease, so that two do not end each other's sessions.
	takeLock = 0x7469_6d74
	// maxNameBytes bounds what a server says of itself.
	maxNameBytes = 255
)

// FenceSQL locks the row of an epoch until the end of the transaction. It gives no row when that epoch is over. A renewal is no obstacle to it, the begin of
// another term waits for it.
const FenceSQL = "SELECT epoch FROM tidemark_lease WHERE epoch = $1 FOR KEY SHARE"

// ErrSecret means that this server could not read what another one has encrypted in the database.
var ErrSecret = errors.New("the key for secrets is not that of the server which had the lease before")

// ErrLost means that the lease is another server's, or may be.
var ErrLost = errors.New("this server does not hold the lease of the database any more; another one works")

// Options configure a Lease. DSN and Holder are needed.
type Options struct {
	// DSN is the connection string of the database.
	DSN string
	// Holder names this server for people, Address is where its page is.
	Holder, Address string
	// Secret returns the print of the key for secrets that this server has, empty for none, and with create makes a key. Nil: there are no secrets.
	Secret func(create bool) (string, error)
	// TTL is how long a lease lasts after each renewal; zero means DefaultTTL. All servers should have the same.
	TTL time.Duration
	// Logger may be nil.
	Logger *slog.Logger
}

// Lease is one server's view of the row. It is used by one goroutine, and by nobody while a Term of it is not released.
type Lease struct {
	o      Options
	config *pgx.ConnConfig
	conn   *pgx.Conn
	// key is the second number of advisory locks, table the full name of the row's table. Both are known after the first connect.
	key   int32
	table string
	// placed says that connections know the schema of the tables.
	placed bool
}

// State is what the row says.
type State struct {
	Epoch   int64  `json:"epoch"`
	Holder  string `json:"holder"`
	Address string `json:"address"`
	// Secret is the print of the key for secrets of those who had the lease; empty for none.
	Secret string `json:"-"`
	// Since is when the term began, Unix nanoseconds by the database's clock; zero when nobody ever had one.
	Since int64 `json:"since,string"`
	// ExpiresIn is how long the lease lasts if it is not renewed; not above zero means that it is free.
	ExpiresIn time.Duration `json:"expires_in_ns"`
}

// Free reports whether nobody holds the lease.
func (s *State) Free() bool { return s.ExpiresIn <= 0 }

// New returns a lease; it does not connect.
func New(o Options) (*Lease, error) {
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.TTL < MinTTL:
		return nil, fmt.Errorf("lease: lasts %v, expected at least %v", o.TTL, MinTTL)
	case o.Holder == "" || len(o.Holder) > maxNameBytes || len(o.Address) > maxNameBytes:
		return nil, fmt.Errorf("lease: the holder's name has %d bytes and its address %d, expected a name and at most %d each", len(o.Holder), len(o.Address), maxNameBytes)
	}
	config, err := pgx.ParseConfig(o.DSN)
	if err != nil {
		return nil, fmt.Errorf("storage.dsn: %w", err)
	}
	Watchful(config)
	config.RuntimeParams["application_name"] = "tidemark lease"
	config.RuntimeParams["statement_timeout"] = milliseconds(o.step())
	config.RuntimeParams["lock_timeout"] = milliseconds(o.step())
	config.RuntimeParams["idle_in_transaction_session_timeout"] = milliseconds(o.TTL)
	return &Lease{o: o, config: config}, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// step bounds one statement of the lease, and is the pause between renewals.
func (o *Options) step() time.Duration { return o.TTL / 6 }

// connectTime bounds the making of a connection.
func (o *Options) connectTime() time.Duration { return max(2*o.step(), time.Second) }

// grace is the time between the moment when a holder stops and the one when its lease can be taken.
func (o *Options) grace() time.Duration { return o.TTL / 6 }

// The times after which a connection whose other side is silent counts as broken, on both sides.
const (
	keepaliveIdle     = 5 * time.Second
	keepaliveInterval = 3 * time.Second
	keepaliveCount    = 3
	userTimeout       = 10 * time.Second
)

// Watchful makes both sides of a connection notice within some ten seconds that the other machine is gone.
func Watchful(c *pgx.ConnConfig) {
	c.RuntimeParams["tcp_keepalives_idle"] = strconv.Itoa(int(keepaliveIdle.Seconds()))
	c.RuntimeParams["tcp_keepalives_interval"] = strconv.Itoa(int(keepaliveInterval.Seconds()))
	c.RuntimeParams["tcp_keepalives_count"] = strconv.Itoa(keepaliveCount)
	c.RuntimeParams["tcp_user_timeout"] = milliseconds(userTimeout)
	d := &net.Dialer{
		Timeout:         userTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepaliveIdle, Interval: keepaliveInterval, Count: keepaliveCount},
		Control: func(network, _ string, c syscall.RawConn) error {
			if network == "unix" {
				return nil
			}
			var failed error
			err := c.Control(func(fd uintptr) {
				failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
			})
			return errors.Join(err, failed)
		},
	}
	c.DialFunc = d.DialContext
}

// connect opens the connection of the lease if there is none, and makes the row on first use.
func (l *Lease) connect(ctx context.Context) error {
	if l.conn != nil && !l.conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.o.connectTime())
	defer cancel()
	conn, err := l.dial(ctx, nil)
	if err != nil {
		return err
	}
	if err = l.stay(ctx, conn); err == nil {
		err = create(ctx, conn)
	}
	if err == nil {
		err = conn.QueryRow(ctx, "SELECT hashtext(current_schema()), quote_ident(current_schema()) || '.tidemark_lease'").Scan(&l.key, &l.table)
	}
	if err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	l.conn = conn
	return nil
}

// stay makes this connection and all later ones find the tables in one place.
func (l *Lease) stay(ctx context.Context, conn *pgx.Conn) error {
	const setting = "search_path"
	if l.placed {
		return nil
	}
	path, err := SearchPath(ctx, conn)
	if err == nil {
		_, err = conn.Exec(ctx, "SELECT set_config($1, $2, false)", setting, path)
	}
	if err == nil {
		l.config.RuntimeParams[setting], l.placed = path, true
	}
	return err
}

// dial opens a connection for statements of the lease. noticed, which may be nil, gets what the database remarks on them, in the goroutine that waits for them.
func (l *Lease) dial(ctx context.Context, noticed func(*pgconn.Notice)) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, l.o.connectTime())
	defer cancel()
	config := l.config.Copy()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if noticed != nil {
			noticed(n)
		}
	}
	return pgx.ConnectConfig(ctx, config)
}

// asynchronously lets the commit of a transaction come back before the disk has it.
const asynchronously = "SET LOCAL synchronous_commit = off"

// create makes the tables if they are missing. That of the lease has one row; its key is the epoch, because only a change of a key waits for those who have locked
// the row. That of who waits is for people: nothing depends on it.
func create(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass(quote_ident(current_schema()) || '.tidemark_lease') IS NOT NULL AND to_regclass(quote_ident(current_schema()) || '.tidemark_waiting') IS NOT NULL").Scan(&there); err != nil || there {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, hashtext(current_schema()))", int32(takeLock)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS tidemark_lease (
			epoch bigint NOT NULL PRIMARY KEY,
			one boolean NOT NULL DEFAULT true UNIQUE CHECK (one),
			holder text NOT NULL,
			address text NOT NULL,
			secret text NOT NULL DEFAULT '',
			since timestamptz NOT NULL,
			expires timestamptz NOT NULL
		)`)
		if err == nil {
			_, err = tx.Exec(ctx, "INSERT INTO tidemark_lease (epoch, holder, address, since, expires) VALUES (0, '', '', 'epoch', 'epoch') ON CONFLICT DO NOTHING")
		}
		if err == nil {
			_, err = tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS tidemark_waiting (
				holder text NOT NULL, address text NOT NULL, since timestamptz NOT NULL, seen timestamptz NOT NULL, PRIMARY KEY (holder, address))`)
		}
		return err
	})
}

// close ends the connection.
func (l *Lease) close() {
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.conn.Close(ctx) // whatever it says, the connection is gone
	l.conn = nil
}

// Close ends the connection. The lease can be used again.
func (l *Lease) Close() { l.close() }

const stateSQL = `SELECT epoch, holder, address, secret, (extract(epoch FROM since) * 1000000)::bigint, (extract(epoch FROM expires - clock_timestamp()) * 1000000)::bigint FROM tidemark_lease`

// Look reads the row.
func (l *Lease) Look(ctx context.Context) (State, error) {
	var s State
	if err := l.connect(ctx); err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.o.step())
	defer cancel()
	var since, left int64
	err := l.conn.QueryRow(ctx, stateSQL).Scan(&s.Epoch, &s.Holder, &s.Address, &s.Secret, &since, &left)
	s.Since, s.ExpiresIn = since*1000, time.Duration(left)*time.Microsecond
	if err != nil {
		l.close()
	}
	return s, err
}

// checkSecret fails with ErrSecret if another server had another key.
func (l *Lease) checkSecret(s *State) error {
	if l.o.Secret == nil || s.Secret == "" {
		return nil
	}
	own, err := l.o.Secret(false)
	if err == nil && own != s.Secret {
		err = fmt.Errorf("%w (%s, %s)", ErrSecret, s.Holder, s.Address)
	}
	return err
}

// Wait looks again and again until this server has the lease. seen gets every look; it may be nil. Without the key of the server before, ErrSecret, it ends.
func (l *Lease) Wait(ctx context.Context, seen func(State, error)) (*Term, error) {
	pause := max(l.o.TTL/12, 100*time.Millisecond)
	var said time.Time
	for {
		s, err := l.Look(ctx)
		if err == nil {
			if err := l.checkSecret(&s); err != nil {
				return nil, err
			}
		}
		if err == nil && s.Free() {
			var t *Term
			if t, err = l.take(ctx, s.Epoch); t != nil {
				if err = l.secure(ctx, t); err == nil {
					return t, nil
				}
				l.giveUp(t)
			}
		}
		if err == nil && time.Since(said) >= sayEvery {
			said = time.Now()
			if err = l.sayWaiting(ctx); err != nil {
				l.close()
			}
		}
		if seen != nil && ctx.Err() == nil {
			seen(s, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}
