package pgdriver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// maxLater bounds the statements that are sent together.
const maxLater = 256

type later struct{}

// Later says that nobody looks at what the statement of this context gives. In a transaction it may then wait and be sent together with others, in one
// round trip, before the next statement that somebody looks at, or before the commit; an error of it is that statement's or the commit's.
func Later(ctx context.Context) context.Context { return context.WithValue(ctx, later{}, true) }

// put queues a statement if it may wait.
func (c *Conn) put(ctx context.Context, query string, args []driver.NamedValue) bool {
	if !c.inTx || ctx.Value(later{}) == nil {
		return false
	}
	values := make([]any, len(args))
	for i := range args {
		values[i] = args[i].Value
	}
	c.queue.Queue(query, values...)
	return true
}

// flush sends what waits.
func (c *Conn) flush(ctx context.Context) (err error) {
	waiting := c.queue.QueuedQueries
	if len(waiting) == 0 {
		return nil
	}
	results := c.inner.Conn().SendBatch(ctx, &c.queue)
	for _, q := range waiting {
		if _, err = results.Exec(); err != nil {
			err = fmt.Errorf("%.200q: %w", q.SQL, err)
			break
		}
	}
	c.queue = pgx.Batch{}
	if closed := results.Close(); err == nil {
		err = closed
	}
	return err
}

// tx is a transaction whose statements may wait.
type tx struct {
	conn  *Conn
	inner driver.Tx
}

func (t *tx) Commit() error {
	err := errors.Join(t.conn.keepOpen(), t.conn.flush(context.Background())) // database/sql gives no context; the statement timeout bounds it
	t.conn.inTx = false
	if err != nil {
		return errors.Join(err, t.inner.Rollback())
	}
	t.conn.ended = false
	if err := t.inner.Commit(); err != nil {
		return err
	}
	return t.conn.outwait(context.Background()) // as long as the replica takes, like the commit
}

func (t *tx) Rollback() error {
	t.conn.inTx, t.conn.queue = false, pgx.Batch{}
	return t.inner.Rollback()
}
