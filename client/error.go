package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Error is an answer that says why the server did not do what it was asked for.
type Error struct {
	// Status is the HTTP status, 300 to 599.
	Status int
	// Code is a stable word for programs, such as not_found, denied or limit; docs/user/api.md lists them; of /api/v1 it is
	// Prometheus' errorType, such as bad_data. It is empty for answers that are not of the
	// API, those of a proxy on the way for example.
	Code string
	// Message says what was wrong and what is expected, for people.
	Message string
	// RequestID is the word under which the server's log has the whole cause; empty but for internal errors.
	RequestID string
	// TokenSent says whether the call had a token: an answer of 401 means a wrong one then, and a missing one otherwise.
	TokenSent bool
}

// Error returns the message, or the status when there is none.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the server answered %d %s", e.Status, http.StatusText(e.Status))
	}
	return e.Message
}

// Temporary reports whether the same call may succeed later: the server is busy, a standby, or takes too long.
func (e *Error) Temporary() bool {
	return e.Status == http.StatusServiceUnavailable || e.Status == http.StatusTooManyRequests || e.Status == http.StatusGatewayTimeout || e.Status == http.StatusBadGateway
}

// IsNotFound reports whether an error says that there is no such object, or none that the caller may see.
func IsNotFound(err error) bool { return hasStatus(err, http.StatusNotFound) }

// IsUnauthorized reports whether an error says that a token is missing, wrong or expired.
func IsUnauthorized(err error) bool { return hasStatus(err, http.StatusUnauthorized) }

// IsDenied reports whether an error says that the caller's role is too small.
func IsDenied(err error) bool { return hasStatus(err, http.StatusForbidden) }

func hasStatus(err error, status int) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status == status
}

// ReadError reads an answer that is no success, for callers that have it by other ways than a Client. sent is TokenSent.
func ReadError(status int, text []byte, sent bool) *Error {
	var body struct {
		Error struct {
			Code, Message string
			RequestID     string `json:"request_id"`
		}
	}
	e := &Error{Status: status, TokenSent: sent}
	if json.Unmarshal(text, &body) == nil {
		e.Code, e.Message, e.RequestID = body.Error.Code, body.Error.Message, body.Error.RequestID
		return e
	}
	var prometheus struct{ ErrorType, Error string }
	if json.Unmarshal(text, &prometheus) == nil {
		e.Code, e.Message = prometheus.ErrorType, prometheus.Error
	}
	return e
}
