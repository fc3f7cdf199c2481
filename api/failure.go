package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
)

// failures writes down why a request could not be answered. Callers see a cause without folders of the server, and the id by which the log has all of it.
type failures struct {
	logger       *slog.Logger
	method, path string
	// id is made with the first failure; a request has one, whatever went wrong.
	id string
}

// explain logs the whole cause and returns the id of the request.
func (f *failures) explain(err error) string {
	if f.id == "" {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		f.id = hex.EncodeToString(b[:])
	}
	f.logger.Error("a request failed", "request", f.id, "method", f.method, "path", f.path, "error", err)
	return f.id
}

type failuresKey struct{}

// Explain logs the whole cause of an internal error and returns the id of its request, for answers that are not made by WriteError; empty for other
// errors, which callers can read themselves, and for requests that did not come through a handler of NewHandler.
func Explain(ctx context.Context, err error) string {
	f, _ := ctx.Value(failuresKey{}).(*failures)
	if f == nil || AsError(err).Status != http.StatusInternalServerError {
		return ""
	}
	return f.explain(err)
}

// ExplainTo is Explain for an error that is certainly internal and of which only the writer of its answer is at hand.
func ExplainTo(w http.ResponseWriter, err error) string {
	for w != nil {
		if s, ok := w.(*statusWriter); ok && s.failures != nil {
			return s.failures.explain(err)
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return ""
		}
		w = inner.Unwrap()
	}
	return ""
}

// Named adds the id of a request to the message of an internal error.
func Named(message, id string) string {
	if id == "" {
		return message
	}
	return message + " (request " + id + ": the server's log has the whole cause under this word)"
}
