package lease

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Waiting is a server that waits for the lease. Times are Unix nanoseconds by the database's clock.
type Waiting struct {
	Holder  string `json:"holder"`
	Address string `json:"address"`
	Since   int64  `json:"since,string"`
	Seen    int64  `json:"seen,string"`
}

const (
	// sayEvery is how often a server that waits says so, and waitingFor how long it then counts as waiting.
	sayEvery   = 5 * time.Second
	waitingFor = 20 * time.Second
	// maxWaiting bounds those that are listed.
	maxWaiting = 16
)

const sayWaitingSQL = `INSERT INTO tidemark_waiting AS w (holder, address, since, seen) VALUES ($1, $2, clock_timestamp(), clock_timestamp())
	ON CONFLICT (holder, address) DO UPDATE SET seen = excluded.seen, since = CASE WHEN w.seen < excluded.seen - $3 * interval '1 microsecond' THEN excluded.since ELSE w.since END`

// sayWaiting tells the one who works that this server waits.
func (l *Lease) sayWaiting(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.o.step())
	defer cancel()
	return pgx.BeginFunc(ctx, l.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, asynchronously); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sayWaitingSQL, l.o.Holder, l.o.Address, waitingFor.Microseconds())
		return err
	})
}

// waiting lists the servers that wait.
func (l *Lease) waiting(ctx context.Context) ([]Waiting, error) {
	ctx, cancel := context.WithTimeout(ctx, l.o.step())
	defer cancel()
	rows, err := l.conn.Query(ctx, `SELECT holder, address, (extract(epoch FROM since) * 1000000)::bigint * 1000, (extract(epoch FROM seen) * 1000000)::bigint * 1000
		FROM tidemark_waiting WHERE seen > clock_timestamp() - $1 * interval '1 microsecond' AND (holder, address) <> ($2, $3) ORDER BY since LIMIT $4`,
		waitingFor.Microseconds(), l.o.Holder, l.o.Address, maxWaiting)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Waiting])
}
