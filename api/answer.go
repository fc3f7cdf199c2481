package api

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"regexp"
	"syscall"

	"tidemark/query"
)

// Error is an answer that says what went wrong.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code is a stable word for programs: not_found, bad_request, limit, timeout, …
	Code string
	// Message says what, where, and what was expected.
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// BadRequest returns a 400 with a message.
func BadRequest(message string) error { return &Error{http.StatusBadRequest, "bad_request", message} }

// NotFound returns a 404 with a message.
func NotFound(message string) error { return &Error{http.StatusNotFound, "not_found", message} }

// statusClientClosed is what logs call a request whose caller went away; nobody reads the answer.
const statusClientClosed = 499

// AsError gives any error the form of an answer.
func AsError(err error) *Error {
	var known *Error
	var limit *query.LimitError
	var away interface{ Unavailable() bool } // a database that cannot be reached now
	var dial *net.OpError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &limit):
		return &Error{http.StatusUnprocessableEntity, "limit", limit.Error()}
	case isUnavailable(err):
		return &Error{http.StatusServiceUnavailable, "standby", err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{http.StatusServiceUnavailable, "timeout", "the answer took longer than allowed; ask for less: " + Shown(err)}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &Error{http.StatusInsufficientStorage, "disk_full", "the server's disk is full, nothing was changed; make room there (tidemark store advise says what takes it) and try again: " + Shown(err)}
	case errors.As(err, &away) && away.Unavailable():
		return &Error{http.StatusServiceUnavailable, "unavailable", Shown(err)}
	case errors.As(err, &dial) && dial.Op == "dial":
		// The whole cause names user and database; who asks needs only what cannot be reached.
		return &Error{http.StatusServiceUnavailable, "unavailable", "what the server needs for this cannot be reached now: " + dial.Error()}
	case errors.Is(err, context.Canceled):
		return &Error{statusClientClosed, "canceled", "the caller went away"}
	}
	return &Error{http.StatusInternalServerError, "internal", Shown(err)}
}

// folders are those of an absolute path in a text, up to its last name.
var folders = regexp.MustCompile(`(^|[\s"'])/(?:[^\s/:"'()]+/)+([^\s/:"'()])`)

// Shown returns the text of an error for somebody who may not know where the server keeps its files: of absolute paths only the last name is left.
func Shown(err error) string { return folders.ReplaceAllString(err.Error(), "$1$2") }

// isUnavailable reports an error of a server that is a standby or fenced.
func isUnavailable(err error) bool {
	_, ok := errors.AsType[interface {
		error
		Unavailable()
	}](err)
	return ok
}

// WriteError answers with {"error":{"code":…,"message":…}}. The whole cause of an internal error is logged, and the answer has the id of its request.
func WriteError(w http.ResponseWriter, err error) {
	e, id := AsError(err), ""
	if e.Status == http.StatusInternalServerError {
		id = ExplainTo(w, err)
	}
	writeError(w, e, id)
}

// writeError writes an error whose cause is in the log under an id, if it has one.
func writeError(w http.ResponseWriter, e *Error, id string) {
	var body ErrorAnswer
	body.Error.Code, body.Error.Message, body.Error.RequestID = e.Code, Named(e.Message, id), id
	WriteJSON(w, e.Status, body)
}

// WriteJSON answers with a value in JSON. A value that cannot be encoded is a broken invariant and panics before
// anything is sent.
func WriteJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic("api: an answer cannot be encoded: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	// An error here means that the caller went away; there is nobody to tell.
	_, _ = w.Write(body)
}

// JSON makes a handler of a function that returns a value to encode or an error.
func JSON(fn func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		value, err := fn(r)
		if err != nil {
			WriteError(w, err)
			return
		}
		WriteJSON(w, http.StatusOK, value)
	})
}
