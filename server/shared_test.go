package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/storage/lease"
)

// TestFinish_hangs gives the lease up when a server that shall stop does not: another one gets it, and this one goes on to begin anew.
func TestFinish_hangs(t *testing.T) {
	c, err := pgtest.Start("-cfsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	take := func(holder string) *lease.Term {
		l, err := lease.New(lease.Options{DSN: c.DSN("postgres"), Holder: holder, TTL: lease.MinTTL})
		if err != nil {
			t.Fatal(err)
		}
		term, err := l.Wait(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = term.Release(context.Background()) })
		return term
	}
	first := take("first")
	running, stop := context.WithCancel(ctx)
	hanging := make(chan struct{})
	defer close(hanging)
	finished := make(chan error, 1)
	go func() {
		finished <- finish(first, running, 300*time.Millisecond, func() error { <-hanging; return nil })
	}()
	select {
	case err := <-finished:
		t.Fatalf("it ended while the server runs: %v", err)
	case <-time.After(2 * lease.MinTTL):
	}
	if err := first.Err(); err != nil {
		t.Fatalf("the term ended while the server runs: %v", err)
	}
	stop()
	if err := <-finished; !errors.Is(err, errNotClosed) {
		t.Errorf("it ended with %v, expected errNotClosed", err)
	}
	if err := first.Err(); !errors.Is(err, lease.ErrLost) {
		t.Errorf("the term: %v, expected ErrLost", err)
	}
	if err := first.Release(ctx); err != nil {
		t.Error(err)
	}
	if second := take("second"); second.Epoch() != first.Epoch()+1 {
		t.Errorf("epoch %d after %d", second.Epoch(), first.Epoch())
	}
}

// TestFinish_ends waits for a server that ends by itself.
func TestFinish_ends(t *testing.T) {
	own := errors.New("own")
	if err := finish(nil, t.Context(), time.Minute, func() error { return own }); !errors.Is(err, own) {
		t.Error(err)
	}
}
