package pgdriver

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/storage/lease"
)

// behindSQL writes an empty message into PostgreSQL's log, which nothing reads: a replica that has its commit has all commits before it.
const behindSQL = "SELECT pg_logical_emit_message(true, 'tidemark', '')"

// noticed takes what PostgreSQL remarks on a statement, in the goroutine that waits for it: a commit whose wait for the replica was ended (pg_cancel_backend) succeeds.
func (c *Conn) noticed(_ *pgconn.PgConn, n *pgconn.Notice) {
	c.ended = c.ended || lease.Unreplicated(n)
}

// outwait comes back when the replicas that commits wait for have the last one although its wait was ended: it waits for another commit behind it. When the connection breaks meanwhile,
// it is as open as after a commit without an answer whether the last one stays.
func (c *Conn) outwait(ctx context.Context) error {
	for c.ended {
		c.ended = false
		if c.unreplicated != nil {
			c.unreplicated()
		}
		if _, err := c.inner.ExecContext(ctx, behindSQL, nil); err != nil {
			return fmt.Errorf("wait for the replica of PostgreSQL once more: %w", err)
		}
	}
	return nil
}
