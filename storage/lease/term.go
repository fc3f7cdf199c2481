package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Term is the time in which this server holds the lease. All methods may be called from several goroutines.
type Term struct {
	l     *Lease
	epoch int64
	// key and table are those of the lease, which reconnects meanwhile.
	key   int32
	table string
	since int64

	cancel context.CancelFunc
	loop   sync.WaitGroup
	lost   chan struct{}

	// mu guards what follows.
	mu sync.Mutex
	// until is when this server stops by its own clock if it does not renew; the time of its start is that before the last renewal was sent.
	until  time.Time
	ended  error
	timer  *time.Timer
	closed bool
	// waiting are the servers that waited at the last renewal.
	waiting []Waiting
}

// begin starts the renewals of a term that was taken at a time.
func (l *Lease) begin(epoch, since int64, at time.Time) *Term {
	ctx, cancel := context.WithCancel(context.Background())
	t := &Term{l: l, epoch: epoch, since: since, cancel: cancel, key: l.key, table: l.table, lost: make(chan struct{})}
	t.until = at.Add(l.o.TTL - l.o.grace())
	t.timer = time.AfterFunc(time.Until(t.until), t.expire)
	t.loop.Go(func() { t.renewAll(ctx) })
	return t
}

// Epoch is the number of the term; each is greater than all before it.
func (t *Term) Epoch() int64 { return t.epoch }

// Holder is the name of this server.
func (t *Term) Holder() string { return t.l.o.Holder }

// Address is where this server's page is.
func (t *Term) Address() string { return t.l.o.Address }

// Since is when the term began, Unix nanoseconds by the database's clock.
func (t *Term) Since() int64 { return t.since }

// Waiting are the servers that wait for the lease, as of the last renewal.
func (t *Term) Waiting() []Waiting {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.waiting)
}

// Lost is closed when the term is over without Release.
func (t *Term) Lost() <-chan struct{} { return t.lost }

// Err says why the term is over; nil while it lasts. It looks at the clock itself, so a process that was stopped learns it with its first question.
func (t *Term) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended == nil && !time.Now().Before(t.until) {
		t.endLocked(fmt.Errorf("%w: it could not be renewed in time", ErrLost))
	}
	return t.ended
}

// Left is how long the term lasts without a further renewal, by this server's clock.
func (t *Term) Left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(time.Until(t.until), 0)
}

func (t *Term) expire() { _ = t.Err() }

// End ends the term with a reason, such as that a fence refused a transaction.
func (t *Term) End(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLocked(why)
}

func (t *Term) endLocked(why error) {
	if t.ended != nil {
		return
	}
	t.ended = why
	t.timer.Stop()
	if !t.closed {
		close(t.lost)
	}
}

// Fence locks the row of the term within a transaction; after an error nothing of the transaction may be committed.
func (t *Term) Fence(ctx context.Context, tx interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) error {
	if err := t.Err(); err != nil {
		return err
	}
	var epoch int64
	err := tx.QueryRow(ctx, FenceSQL, t.epoch).Scan(&epoch)
	return t.Fenced(err)
}

// Session makes a session one of this term's, and fails if the term is over: the next holder finds it and ends it. To be called after each connect of
// whatever writes, before anything else.
func (t *Term) Session(ctx context.Context, conn *pgx.Conn) error {
	if err := t.Err(); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock_shared($1::int, $2::int)", int32(sessionLock), t.key); err != nil {
		return err
	}
	return t.Fenced(pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, asynchronously); err != nil { // a lock on a row is written, too, and nobody needs it after a crash
			return err
		}
		var epoch int64
		return tx.QueryRow(ctx, "SELECT epoch FROM "+t.table+" WHERE epoch = $1 FOR KEY SHARE", t.epoch).Scan(&epoch)
	}))
}

// Fenced judges the error of a statement with FenceSQL: without a row, and only then, the term is over.
func (t *Term) Fenced(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		t.End(fmt.Errorf("%w: a later term than %d has begun", ErrLost, t.epoch))
		return t.Err()
	}
	return err
}

// renewAll renews until the term is over.
func (t *Term) renewAll(ctx context.Context) {
	step := t.l.o.step()
	pause, said := step, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.lost:
			t.l.close()
			return
		case <-time.After(pause):
		}
		began := time.Now()
		err := t.renew(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrLost):
			t.End(err)
		case err != nil:
			if !said {
				t.l.o.Logger.Warn("the lease of the database could not be renewed; it is tried again until it ends", "error", err, "left", t.Left().Round(time.Millisecond))
				said = true
			}
			t.l.close()
			pause = step / 4
		default:
			t.extend(began)
			pause, said = step, false
			t.lookForWaiting(ctx)
		}
	}
}

// lookForWaiting notes who waits. What fails here fails the next renewal, too.
func (t *Term) lookForWaiting(ctx context.Context) {
	list, err := t.l.waiting(ctx)
	if err != nil {
		t.l.close()
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = list
}

// renew writes the next expiry. It need not be durable: after a crash of the database an earlier expiry counts, and the sessions of all are gone.
func (t *Term) renew(ctx context.Context) error {
	if t.l.conn == nil || t.l.conn.IsClosed() {
		if err := t.l.connect(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, t.l.o.step())
	defer cancel()
	return pgx.BeginFunc(ctx, t.l.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, asynchronously); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, "UPDATE tidemark_lease SET expires = clock_timestamp() + $2 * interval '1 microsecond' WHERE epoch = $1", t.epoch, t.l.o.TTL.Microseconds())
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("%w: a later term than %d has begun", ErrLost, t.epoch)
		}
		return err
	})
}

// extend takes note of a renewal that was sent at a time.
func (t *Term) extend(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return
	}
	t.until = sent.Add(t.l.o.TTL - t.l.o.grace())
	t.timer.Reset(time.Until(t.until))
}

// Release ends the term, so that another server can take the lease at once. Everything of this one must be closed. A second call does nothing.
func (t *Term) Release(ctx context.Context) error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	lost := t.ended != nil
	t.mu.Unlock()
	t.cancel()
	t.loop.Wait()
	t.End(fmt.Errorf("%w: it was released", ErrLost))
	defer t.l.close()
	if lost {
		return nil
	}
	if err := t.l.connect(ctx); err != nil {
		return fmt.Errorf("release the lease, which ends by itself in a moment: %w", err)
	}
	err := pgx.BeginFunc(ctx, t.l.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, asynchronously); err != nil { // after a crash the lease expires
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE tidemark_lease SET expires = clock_timestamp() WHERE epoch = $1", t.epoch)
		return err
	})
	if err != nil {
		return fmt.Errorf("release the lease, which ends by itself in a moment: %w", err)
	}
	return nil
}
