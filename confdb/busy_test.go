package confdb

import (
	"errors"
	"net/http"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/api"
)

// What PostgreSQL refuses for now is no mistake of the server, nor of the file that is imported.
func TestWrapPostgres_busy(t *testing.T) {
	d := &DB{path: "the configuration"}
	for code, status := range map[string]int{
		"25006": http.StatusServiceUnavailable, "28P01": http.StatusServiceUnavailable, "42501": http.StatusServiceUnavailable,
		"55P03": http.StatusServiceUnavailable, "57014": http.StatusServiceUnavailable, diskFullCode: http.StatusInsufficientStorage, "42P01": http.StatusInternalServerError,
	} {
		cause := &pgconn.PgError{Code: code}
		err := d.wrapPostgres("find hosts", cause)
		if e := api.AsError(err); e.Status != status || !errors.Is(err, cause) {
			t.Errorf("%s is answered %d, want %d: %v", code, e.Status, status, err)
		}
		if errors.Is(err, ErrAway) {
			t.Errorf("%s means that the database is away", code)
		}
	}
	if err := d.wrapPostgres("find hosts", &pgconn.PgError{Code: diskFullCode}); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
}
