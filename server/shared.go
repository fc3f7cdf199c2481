package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/api"
	"tidemark/confdb"
	"tidemark/internal/vfs"
	"tidemark/storage/lease"
)

// SharedOptions say how this server shares a PostgreSQL database with others.
type SharedOptions struct {
	// Address is where others reach this server's page.
	Address string
	// TTL is how long the lease lasts after each renewal; zero means lease.DefaultTTL.
	TTL time.Duration
	// Opened, if not nil, is called with each server before it is served; an error ends Share.
	Opened func(*Server) error
}

// ErrSteppedDown says that this server worked and does not any more: another one has the lease, or may have it. It must begin anew in a fresh process, so that
// nothing of what it knew is left.
var ErrSteppedDown = errors.New("this server has given up its work to another one, and begins anew")

// sharing is a process that waits for the lease of a database and then works.
type sharing struct {
	o      Options
	so     SharedOptions
	logger *slog.Logger
	lease  *lease.Lease

	// handler is that of the server that works, seen what the lease said last while this one waits.
	handler atomic.Pointer[http.Handler]
	seen    atomic.Pointer[seenLease]
	trapper *refusingListener
	// handOver is told when the work is to be given to another server.
	handOver chan struct{}
}

// seenLease is what a waiting server knows of the lease.
type seenLease struct {
	state lease.State
	at    time.Time
	err   error
}

// closeTime bounds the end of a server that lost its lease. What it does not finish until then could not be stored anyway.
const closeTime = 10 * time.Second

// Share runs a server that shares its database with others: it waits for the lease, works as long as it has it, and returns ErrSteppedDown when it is over. It
// returns nil when ctx ended it.
func Share(ctx context.Context, o Options, so SharedOptions) error {
	n := &sharing{o: o, so: so, logger: o.Logger, handOver: make(chan struct{}, 1)}
	holder, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name this server: %w", err)
	}
	if n.lease, err = lease.New(lease.Options{DSN: o.DSN, Holder: holder, Address: so.Address, TTL: so.TTL, Logger: o.Logger, Secret: func(create bool) (string, error) { return confdb.SecretPrint(o.Data, create) }}); err != nil {
		return err
	}
	defer n.lease.Close()
	if err := (vfs.OS{}).MkdirAll(o.Data); err != nil {
		return fmt.Errorf("create the data folder: %w", err)
	}
	n.seen.Store(&seenLease{err: errors.New("the database was not asked yet")})
	n.trapper = refuseOn(o.Trapper, "this server waits: another one works on the same database; send to that one")
	defer n.trapper.Close()
	return serveWhile(ctx, o.HTTP, n, n.logger, n.run)
}

// run waits and works.
func (n *sharing) run(ctx context.Context) error {
	said := ""
	term, err := n.lease.Wait(ctx, func(s lease.State, err error) {
		n.seen.Store(&seenLease{state: s, at: time.Now(), err: err})
		text := fmt.Sprint(s.Epoch, s.Holder, s.Address)
		if err != nil {
			text = err.Error()
		}
		switch {
		case text == said:
		case err != nil:
			n.logger.Warn("waiting for the lease: the database cannot be asked", "error", err)
		default:
			n.logger.Info("waiting: another server works on this database", "holder", s.Holder, "address", s.Address, "epoch", s.Epoch)
		}
		said = text
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, lease.ErrSecret):
		return fmt.Errorf("%w: copy the file %s from that server's data folder into %s, readable by its owner only", err, confdb.SecretFileName, n.o.Data)
	case err != nil:
		return err
	}
	n.logger.Info("this server has the lease of the database", "epoch", term.Epoch())
	handing, err := n.work(ctx, term)
	if term.Err() == nil || handing { // one that was ended is not given back: what hangs may still hold sessions, which the next holder ends
		releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if releaseErr := term.Release(releasing); releaseErr != nil {
			n.logger.Warn("the lease was not given back", "error", releaseErr)
		}
	}
	switch {
	case handing:
		n.awaitSuccessor(ctx, term.Epoch())
		return ErrSteppedDown
	case ctx.Err() != nil:
		return err
	case err == nil || errors.Is(err, lease.ErrLost) || databaseAway(err):
		n.logger.Error("this server stops working: it has no lease any more", "epoch", term.Epoch(), "error", errors.Join(term.Err(), err))
		return ErrSteppedDown
	}
	return err
}

// work opens and runs the server until ctx ends, the lease is lost, or it is handed over.
func (n *sharing) work(ctx context.Context, term *lease.Term) (handing bool, err error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-term.Lost():
			stop()
		case <-working.Done():
		}
	}()
	o := n.o
	o.term, o.HTTP, o.Trapper, o.handOver = term, nil, n.trapper.Stop(), n.handOver
	began := time.Now()
	s, err := Open(working, o)
	if err != nil {
		return false, errors.Join(term.Err(), err)
	}
	h, err := s.handler()
	if err == nil && n.so.Opened != nil {
		err = n.so.Opened(s)
	}
	if err != nil {
		return false, errors.Join(err, s.Close())
	}
	n.handler.Store(&h)
	n.logger.Info("working", "epoch", term.Epoch(), "opened_in", time.Since(began).Round(time.Millisecond))
	running, end := context.WithCancel(working)
	defer end()
	asked := make(chan bool, 1)
	go func() {
		select {
		case <-n.handOver:
			n.logger.Info("the work is handed over")
			asked <- true
			end()
		case <-running.Done():
		}
	}()
	err = finish(term, running, stopBound, func() error {
		err := s.Run(running)
		end() // it may have ended by itself
		return errors.Join(err, s.Close())
	})
	select {
	case handing = <-asked:
	default:
	}
	return handing, errors.Join(term.Err(), err)
}

// stopBound is how long a server may take to stop and close when it is asked to, before the lease is given up with or without it.
const stopBound = 20 * time.Second

// errNotClosed says that a server did not stop in time. Nothing of it can be stored once another one has the lease.
var errNotClosed = errors.New("the server did not close in time")

// finish waits for a server that runs and then closes. From the end of running on that takes at most bound: then the term is ended, so that another server can
// take the lease when it expires, however this one hangs. After a term was lost it takes at most closeTime.
func finish(term *lease.Term, running context.Context, bound time.Duration, serve func() error) error {
	done := make(chan error, 1)
	go func() { done <- serve() }()
	select {
	case err := <-done:
		return err
	case <-running.Done():
	}
	late := time.NewTimer(bound)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-afterLost(term):
	case <-late.C:
		term.End(fmt.Errorf("%w: %w", lease.ErrLost, errNotClosed))
	}
	return errNotClosed
}

// afterLost is done some time after a term was lost, and never while it lasts.
func afterLost(term *lease.Term) <-chan time.Time {
	out := make(chan time.Time, 1)
	go func() {
		<-term.Lost()
		out <- <-time.After(closeTime)
	}()
	return out
}

// databaseAway reports whether something failed because the database did not answer.
func databaseAway(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refused.Code[:2] == "57" || refused.Code[:2] == "08") || pgconn.SafeToRetry(err)
}

// awaitSuccessor keeps this server from taking the lease again that it has just given away, unless nobody else wants it.
func (n *sharing) awaitSuccessor(ctx context.Context, epoch int64) {
	ctx, cancel := context.WithTimeout(ctx, lease.DefaultTTL)
	defer cancel()
	for ctx.Err() == nil {
		if s, err := n.lease.Look(ctx); err == nil && s.Epoch > epoch {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// leaseAnswer is the answer to GET /api/lease.
type leaseAnswer struct {
	// Shared says that servers share the database; without it nothing else counts.
	Shared bool `json:"shared"`
	// Role is working or waiting.
	Role  string `json:"role"`
	Epoch int64  `json:"epoch"`
	// Holder is the server that works, Address where its page is.
	Holder  string `json:"holder"`
	Address string `json:"address"`
	// Since is when the term began by the database's clock, Unix nanoseconds; zero before the first.
	Since int64 `json:"since,string"`
	// LeftSeconds is how long the lease lasts if it is not renewed.
	LeftSeconds float64 `json:"left_seconds"`
	// Waiting are the servers that wait; only the one that works knows of them.
	Waiting []lease.Waiting `json:"waiting"`
	// Problem says why a waiting server knows nothing of the lease.
	Problem string `json:"problem,omitempty"`
}

// The roles.
const (
	roleWorking = "working"
	roleWaiting = "waiting"
)

// ServeHTTP serves the server that works, or says that this one waits.
func (n *sharing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := n.handler.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	seen := n.seen.Load()
	switch {
	case r.URL.Path == "/-/healthy":
		_, _ = io.WriteString(w, "ok: "+seen.text()+"\n")
	case r.URL.Path == "/-/ready", r.URL.Path == "/-/primary":
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, seen.text()+"\n")
	case r.URL.Path == "/api/lease" && r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(seen.answer()) // the client is gone then
	case r.URL.Path == "/" || r.URL.Path == "/index.html":
		seen.page(w)
	default:
		w.Header().Set("Retry-After", "5")
		api.WriteError(w, &api.Error{Status: http.StatusServiceUnavailable, Code: "standby", Message: seen.text()})
	}
}

func (s *seenLease) answer() leaseAnswer {
	a := leaseAnswer{
		Shared: true, Role: roleWaiting, Waiting: []lease.Waiting{}, Epoch: s.state.Epoch, Holder: s.state.Holder, Address: s.state.Address, Since: s.state.Since,
		LeftSeconds: max(s.state.ExpiresIn-time.Since(s.at), 0).Seconds(),
	}
	if s.err != nil {
		a.Problem, a.LeftSeconds = s.err.Error(), 0
	}
	return a
}

// text says what a waiting server does.
func (s *seenLease) text() string {
	switch {
	case s.err != nil:
		return "this server waits: it cannot ask the database who works: " + s.err.Error()
	case s.state.Holder == "":
		return "this server waits for the lease of the database"
	}
	return fmt.Sprintf("this server waits: %s works on the same database, its page is %s", s.state.Holder, s.state.Address)
}

// page is what a browser sees of a waiting server.
func (s *seenLease) page(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.Header().Set("Refresh", "5")
	w.WriteHeader(http.StatusServiceUnavailable)
	link := ""
	if s.err == nil && s.state.Address != "" {
		address := html.EscapeString(s.state.Address)
		link = fmt.Sprintf(`<p><a href="%s">%s</a></p>`, address, address)
	}
	_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Tidemark waits</title><style>body{font:1rem sans-serif;margin:3rem;max-width:40rem}</style><h1>This server waits</h1><p>%s.</p>%s<p>It takes over by itself when the other one does not answer any more. This page looks again every 5 seconds.</p></html>`,
		html.EscapeString(s.text()), link)
}
