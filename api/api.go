// Package api is what all HTTP interfaces share: the route table, the guard in front of it, limits, security headers,
// compression, and the form of errors.
//
// rest is the product's own interface, prom is Prometheus'. The server mounts the routes of both with NewHandler.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/access"
)

// Permission is what a caller needs for a route.
type Permission string

// The permissions, each with what it allows.
const (
	// Public routes answer anybody: health, login, static files.
	Public Permission = "public"
	// View reads values, problems and definitions.
	View Permission = "view"
	// Operate acknowledges and closes problems.
	Operate Permission = "operate"
	// Edit changes the configuration.
	Edit Permission = "edit"
	// Administer sees and changes the server itself.
	Administer Permission = "administer"
)

// Route is one line of the route table. The table is all that is served, so that what a route needs is declared in
// one place and can be tested for every route.
type Route struct {
	Method string
	// Pattern is a path in the form of http.ServeMux, without method: "/api/hosts/{id}".
	Pattern    string
	Permission Permission
	// PerHost says that the handler shows and changes only what belongs to hosts that its caller may see. Without it the route answers only
	// callers who see all hosts, so that a forgotten line closes a door and opens none.
	PerHost bool
	Handler http.Handler
	// Streaming routes send as long as the caller listens: no time limit, no compression, not counted as in flight.
	Streaming bool
	// MaxBodyBytes bounds the request body; zero means 1 MiB.
	MaxBodyBytes int64
	// Timeout bounds the handler's context; zero means Options.Timeout.
	Timeout time.Duration
	// Unaudited says that the route takes values and changes no configuration, so that the audit log does not list each request.
	Unaudited bool
	// Doc describes the route in the OpenAPI document; nil leaves it out.
	Doc *Doc
}

// Options adjust a handler.
type Options struct {
	// Guard decides which requests are let in by their Host and Origin.
	Guard Guard
	// Authorize, if not nil, is asked for every route that is not Public. It answers a context that carries who sent the request
	// (access.From), or an *Error. Nil lets everything in that the guard let in, as somebody who may do everything.
	Authorize func(*http.Request, Route) (context.Context, error)
	// Audit, if not nil, is told of every change that succeeded: requests of routes that need more than View, but with GET and HEAD. The
	// context carries who it was.
	Audit func(r *http.Request, route Route, changes *access.Changes)
	// Timeout bounds a handler's context; zero means 60 s.
	Timeout time.Duration
	// InFlight is how many requests are served at the same time, others get 503; zero means 256.
	InFlight int
	// Logger gets panics and internal errors; nil discards.
	Logger *slog.Logger
	// Metrics gets counts and durations per route; nil keeps none.
	Metrics *metrics.Set
}

const (
	defaultTimeout  = time.Minute
	defaultInFlight = 256
	defaultMaxBody  = 1 << 20
	// writeGrace is how long a slow reader may take for an answer once the handler's time is over.
	writeGrace = 30 * time.Second
)

// handler serves a route table.
type handler struct {
	options  Options
	logger   *slog.Logger
	mux      *http.ServeMux
	inFlight chan struct{}
	refused  *metrics.Counter
	panics   *metrics.Counter
}

// NewHandler serves routes behind the guard. rest, if not nil, serves every path that no route has (the page); it
// stands behind the same guard and gets the same headers. Two routes with the same method and pattern are a mistake in
// the program and panic.
func NewHandler(routes []Route, rest http.Handler, options Options) http.Handler {
	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}
	if options.InFlight == 0 {
		options.InFlight = defaultInFlight
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Metrics == nil {
		options.Metrics = metrics.NewSet()
	}
	h := &handler{
		options: options, logger: options.Logger, mux: http.NewServeMux(), inFlight: make(chan struct{}, options.InFlight),
		refused: options.Metrics.NewCounter("tidemark_api_refused_requests_total"),
		panics:  options.Metrics.NewCounter("tidemark_api_panics_total"),
	}
	options.Metrics.NewGauge("tidemark_api_requests_in_flight", func() float64 { return float64(len(h.inFlight)) })
	methods := make(map[string][]string)
	for _, r := range routes {
		h.mux.Handle(r.Method+" "+r.Pattern, h.serve(r))
		methods[r.Pattern] = append(methods[r.Pattern], r.Method)
	}
	for pattern, allowed := range methods {
		h.mux.Handle(pattern, methodNotAllowed(allowed))
	}
	h.mux.Handle("/api/", http.HandlerFunc(notFound))
	if rest != nil {
		h.mux.Handle("/", rest)
	}
	return h
}

// ServeHTTP guards, protects and serves one request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	watched := &statusWriter{ResponseWriter: w, failures: &failures{logger: h.logger, method: r.Method, path: r.URL.Path}}
	defer h.recover(watched, r)
	r = r.WithContext(context.WithValue(r.Context(), failuresKey{}, watched.failures))
	setHeaders(w.Header())
	// A deadline stays on a connection that is used again, so every request sets its own.
	setDeadlines(w, h.options.Timeout+writeGrace)
	if err := h.options.Guard.Check(r); err != nil {
		h.refused.Inc()
		WriteError(watched, err)
		return
	}
	h.mux.ServeHTTP(watched, r)
}

// setDeadlines bounds reading a request and writing its answer; zero lifts the bounds. Writers in tests have no
// deadlines; then only contexts bound a request.
func setDeadlines(w http.ResponseWriter, timeout time.Duration) {
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	controller := http.NewResponseController(w)
	_ = controller.SetWriteDeadline(deadline)
	_ = controller.SetReadDeadline(deadline)
}

// recover turns a panic of a handler into a 500; if the answer has begun, the connection is cut so that nobody takes
// half an answer for a whole one.
func (h *handler) recover(w *statusWriter, r *http.Request) {
	reason := recover()
	if reason == nil {
		return
	}
	if reason == http.ErrAbortHandler { //nolint:errorlint // the value that net/http compares with ==
		panic(reason)
	}
	h.panics.Inc()
	id := w.failures.explain(fmt.Errorf("the handler panicked: %v\n%s", reason, debug.Stack()))
	if w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	writeError(w, &Error{http.StatusInternalServerError, "internal", "the server made a mistake while it answered this request"}, id)
}

// setHeaders sets what every answer carries. The policy allows nothing but the server's own files.
func setHeaders(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// serve wraps a route's handler in its limits.
func (h *handler) serve(r Route) http.Handler {
	if r.MaxBodyBytes == 0 {
		r.MaxBodyBytes = defaultMaxBody
	}
	if r.Timeout == 0 {
		r.Timeout = h.options.Timeout
	}
	label := fmt.Sprintf(`{method=%q,route=%q}`, r.Method, r.Pattern)
	requests := h.options.Metrics.NewCounter("tidemark_api_requests_total" + label)
	failures := h.options.Metrics.NewCounter("tidemark_api_failed_requests_total" + label)
	seconds := h.options.Metrics.NewHistogram("tidemark_api_request_duration_seconds" + label)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		requests.Inc()
		req, err := h.authorize(req, r)
		if err != nil {
			failures.Inc()
			WriteError(w, err)
			return
		}
		req.Body = http.MaxBytesReader(w, req.Body, r.MaxBodyBytes)
		w.Header().Set("Cache-Control", "no-store")
		if r.Streaming {
			setDeadlines(w, 0)
			r.Handler.ServeHTTP(w, req)
			return
		}
		started := time.Now()
		watched := &statusWriter{ResponseWriter: w}
		if !h.limited(watched, req, r) {
			h.refused.Inc()
			WriteError(watched, &Error{http.StatusServiceUnavailable, "busy", fmt.Sprintf("the server answers %d requests at this moment, its limit; try again", h.options.InFlight)})
		}
		if watched.status >= http.StatusInternalServerError {
			failures.Inc()
		}
		seconds.UpdateDuration(started)
	})
}

// authorize returns the request with who sent it.
func (h *handler) authorize(req *http.Request, r Route) (*http.Request, error) {
	switch {
	case r.Permission == Public:
		return req, nil
	case h.options.Authorize == nil:
		return req.WithContext(access.With(req.Context(), access.Everything(access.ViaLoopback))), nil
	}
	ctx, err := h.options.Authorize(req, r)
	if err != nil {
		return nil, err
	}
	return req.WithContext(ctx), nil
}

// audited serves a request and tells of the change that it made, before its answer goes out.
func (h *handler) audited(r Route) http.Handler {
	if h.options.Audit == nil || r.Unaudited || safe(r.Method) || r.Permission == Public || r.Permission == View {
		return r.Handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx, changes := access.WithChanges(req.Context())
		watched := &statusWriter{ResponseWriter: w}
		req = req.WithContext(ctx)
		r.Handler.ServeHTTP(watched, req)
		if watched.status < http.StatusBadRequest {
			h.options.Audit(req, r, changes)
		}
	})
}

// limited serves a request if there is a place among those in flight.
func (h *handler) limited(w http.ResponseWriter, req *http.Request, r Route) bool {
	select {
	case h.inFlight <- struct{}{}:
	default:
		return false
	}
	defer func() { <-h.inFlight }()
	ctx, cancel := context.WithTimeout(req.Context(), r.Timeout)
	defer cancel()
	setDeadlines(w, r.Timeout+writeGrace)
	compressed(h.audited(r)).ServeHTTP(w, req.WithContext(ctx))
	return true
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
	// failures is set in the outermost writer of a request.
	failures *failures
}

// WriteHeader remembers the status and passes it on.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write remembers the status that it implies.
func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController the writer below.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func notFound(w http.ResponseWriter, r *http.Request) {
	WriteError(w, &Error{http.StatusNotFound, "not_found", fmt.Sprintf("there is no %.200q here; /api/openapi.json lists what there is", r.URL.Path)})
}

func methodNotAllowed(allowed []string) http.Handler {
	slices.Sort(allowed)
	list := strings.Join(allowed, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", list)
		WriteError(w, &Error{http.StatusMethodNotAllowed, "method_not_allowed", fmt.Sprintf("%.200q takes %s, not %.20q", r.URL.Path, list, r.Method)})
	})
}

// BodyError gives an error of reading a request's body the form of an *Error.
func BodyError(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return &Error{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit)}
	}
	return &Error{http.StatusBadRequest, "bad_request", fmt.Sprintf("the body could not be read: %v", err)}
}
