package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/api"
)

// Who asks for values while the database is away is told to ask again, and not that the server has a mistake.
func TestAsAway(t *testing.T) {
	ctx := context.Background()
	_, refused := pgconn.Connect(ctx, "postgres://t:x@127.0.0.1:1/tm?sslmode=disable") // nothing listens there
	var connect *pgconn.ConnectError
	if !errors.As(refused, &connect) {
		t.Fatalf("a connection to nobody: %v", refused)
	}
	for _, err := range []error{refused, io.ErrUnexpectedEOF, &pgconn.PgError{Code: "55P03"}, &pgconn.PgError{Code: "57P03"}, &pgconn.PgError{Code: "08006"}} {
		e := api.AsError(asAway(ctx, fmt.Errorf("look: %w", err)))
		if e.Status != http.StatusServiceUnavailable || e.Code != "unavailable" {
			t.Errorf("%v is answered %d %s", err, e.Status, e.Code)
		}
	}
	for _, err := range []error{errors.New("x"), errReshaped, &pgconn.PgError{Code: "42P01"}, &pgconn.PgError{}} {
		if got := asAway(ctx, err); got != err { //nolint:errorlint // the same, not wrapped
			t.Errorf("%v became %v", err, got)
		}
	}
	ended, end := context.WithCancel(ctx)
	end()
	if got := asAway(ended, refused); got != refused { //nolint:errorlint // the same, not wrapped
		t.Errorf("of who went away: %v", got)
	}
	if asAway(ctx, nil) != nil {
		t.Error("no error became one")
	}
}
