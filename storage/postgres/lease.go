package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// leaseLock is the advisory lock that the session of a writer holds, mixed with the schema that its tables are in. Whoever writes holds it in the very
// session that writes, so a server whose lock another one has got cannot write any more.
const leaseLock = 0x7469_6d77

// ErrLeased means that another server writes to the database.
var ErrLeased = errors.New("another server writes to this database; stop it, or give this one a schema of its own with search_path in the dsn")

// ownSession is how long the database may take to notice that our own earlier session is gone.
const ownSession = 2 * time.Second

// takeLease takes the lock, or fails with ErrLeased.
func takeLease(ctx context.Context, conn *pgx.Conn) error {
	for deadline := time.Now().Add(ownSession); ; {
		var ok bool
		err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1, hashtext(current_schema()))", int32(leaseLock)).Scan(&ok)
		if err != nil || ok {
			return err
		}
		if time.Now().After(deadline) {
			return ErrLeased
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// waitForLease connects the writer, waiting as long as ConnectTimeout for another server to end.
func (w *writer) waitForLease(ctx context.Context) error {
	deadline, said := time.Now().Add(w.db.o.ConnectTimeout), false
	for {
		err := w.connect(ctx)
		if !errors.Is(err, ErrLeased) || time.Now().After(deadline) {
			return err
		}
		if !said {
			said = true
			w.db.o.Logger.Info("waiting for another server on this database to end")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200*time.Millisecond + rand.N(100*time.Millisecond)):
		}
	}
}
