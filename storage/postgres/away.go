package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// awayError says that the database cannot be asked now.
type awayError struct{ cause error }

func (e *awayError) Error() string {
	// The whole cause of a refused connection names user and database, which is not for everybody who asks for values.
	if refused := (*pgconn.PgError)(nil); errors.As(e.cause, &refused) {
		return "the database of values cannot be asked now; try again: " + refused.Error()
	}
	return "the database of values cannot be asked now; try again: " + e.cause.Error()
}

func (e *awayError) Unwrap() error { return e.cause }

// Unavailable tells the API that the same request may succeed later.
func (e *awayError) Unavailable() bool { return true }

// asAway makes an awayError of the error of a read that the database could not answer now: it is not reached, ends, starts, has no place for another
// connection, or something that is read is locked for too long.
func asAway(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || !isAway(err) {
		return err
	}
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return err // known already as what cannot be reached, without user and database
	}
	return &awayError{err}
}

func isAway(err error) bool {
	if connect := (*pgconn.ConnectError)(nil); errors.As(err, &connect) { // also when the password is not taken any more
		return true
	}
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) {
		switch refused.Code {
		case "53300", "55P03", "57P01", "57P02", "57P03": // too many clients, lock timeout, shutdown, crash, starting up
			return true
		}
		return refused.Code[:min(2, len(refused.Code))] == "08"
	}
	var network net.Error
	return errors.As(err, &network) || pgconn.SafeToRetry(err) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF)
}
