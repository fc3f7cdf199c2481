package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// sessionsSQL finds the sessions that an earlier term has left, which may be those of a machine that does not answer.
const sessionsSQL = ` FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND pid <> pg_backend_pid()
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND classid = $1::bigint::oid AND objid = ($2::bigint & 4294967295)::oid`

// endTime bounds one wait for ended sessions. One that stands in a commit ends only when the disk has answered, so that it may take several.
const endTime = 5 * time.Second

const takeSQL = `UPDATE tidemark_lease SET epoch = epoch + 1, holder = $2, address = $3, secret = CASE WHEN secret = '' THEN $5 ELSE secret END, since = clock_timestamp(), expires = clock_timestamp() + $4 * interval '1 microsecond'
	WHERE epoch = $1 AND expires <= clock_timestamp() RETURNING (extract(epoch FROM since) * 1000000)::bigint`

// take begins a term after that of an epoch, if it is still free. Without a term and an error somebody else was faster.
func (l *Lease) take(ctx context.Context, epoch int64) (*Term, error) {
	secret := ""
	if l.o.Secret != nil {
		var err error
		if secret, err = l.o.Secret(true); err != nil {
			return nil, err
		}
	}
	began, since := time.Now(), int64(0)
	err := pgx.BeginFunc(ctx, l.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, asynchronously); err != nil { // secure waits for the disk, with the term renewed meanwhile
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, hashtext(current_schema()))", int32(takeLock)); err != nil {
			return err
		}
		var s State
		if err := tx.QueryRow(ctx, "SELECT epoch, (extract(epoch FROM expires - clock_timestamp()) * 1000000)::bigint FROM tidemark_lease").Scan(&s.Epoch, (*int64)(&s.ExpiresIn)); err != nil {
			return err
		}
		if s.Epoch != epoch || !s.Free() {
			return errTaken
		}
		if err := l.endSessions(ctx, tx); err != nil {
			return err
		}
		began = time.Now()
		err := tx.QueryRow(ctx, takeSQL, epoch, l.o.Holder, l.o.Address, l.o.TTL.Microseconds(), secret).Scan(&since)
		if errors.Is(err, pgx.ErrNoRows) {
			err = errTaken
		}
		if err != nil {
			return err
		}
		// Those that came since the first look; later ones wait for this transaction and find their epoch gone.
		return l.endSessions(ctx, tx)
	})
	if errors.Is(err, errTaken) {
		return nil, nil
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l.begin(epoch+1, since*1000, began), nil
}

// endSessions ends the sessions of the last holder, all at once, and waits until they are gone. One that does not end is an error: it might still commit.
func (l *Lease) endSessions(ctx context.Context, tx pgx.Tx) error {
	for deadline := time.Now().Add(endTime); ; {
		var left int
		err := tx.QueryRow(ctx, "SELECT count(pg_terminate_backend(pid))"+sessionsSQL, int64(sessionLock), int64(l.key)).Scan(&left)
		if err == nil && left > 0 && time.Now().After(deadline) {
			err = fmt.Errorf("%d do not end", left)
		}
		if err != nil {
			return fmt.Errorf("end the sessions of the last holder: %w", err)
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// secure waits until the begin of a term is on disk, which may take longer than a lease lasts; the term is renewed meanwhile. Before that nothing may be done with
// it: after a crash of the database another server could begin a term of the same epoch.
func (l *Lease) secure(ctx context.Context, t *Term) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-t.lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		err := l.store(ctx, t)
		if err == nil {
			return t.Err()
		}
		if errors.Is(err, pgx.ErrNoRows) {
			t.End(fmt.Errorf("%w: the database has crashed before its begin was stored", ErrLost))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("store that this server has the lease: %w", errors.Join(t.Err(), err))
		case <-time.After(l.o.step() / 4):
		}
	}
}

// store comes back when the begin of a term is on disk, and on that of the replicas that commits wait for. Without its row, pgx.ErrNoRows, it never will be.
// statement_timeout does not cut its commit: PostgreSQL ends that clock before it commits.
func (l *Lease) store(ctx context.Context, t *Term) error {
	var unreplicated error
	conn, err := l.dial(ctx, func(n *pgconn.Notice) {
		if Unreplicated(n) {
			unreplicated = ErrUnreplicated
		}
	})
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // whatever it says, the connection is gone
	}()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var epoch int64
		err := tx.QueryRow(ctx, "SELECT epoch FROM tidemark_lease WHERE epoch = $1 AND (extract(epoch FROM since) * 1000000)::bigint = $2 FOR KEY SHARE", t.epoch, t.since/1000).Scan(&epoch)
		if err == nil { // the commit waits for the disk if something was written
			_, err = tx.Exec(ctx, sayWaitingSQL, l.o.Holder, l.o.Address, waitingFor.Microseconds())
		}
		return err
	})
	if err == nil {
		err = unreplicated
	}
	return err
}

// giveUp ends a term that never began for anybody.
func (l *Lease) giveUp(t *Term) {
	ctx, cancel := context.WithTimeout(context.Background(), l.o.step())
	defer cancel()
	if err := t.Release(ctx); err != nil {
		l.o.Logger.Warn("the lease was not given back", "error", err)
	}
}

var errTaken = errors.New("taken")
