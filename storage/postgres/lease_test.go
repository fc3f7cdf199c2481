package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/storage/storagetest"
)

// TestLease lets one engine write, whoever comes second, and keeps one that lost its session away.
func TestLease(t *testing.T) {
	dsn := shared.database(t)
	now := storagetest.Base
	first := clocked(t, dsn, Partitions, &now, func(o *Options) { o.Logger = nil })
	number(t, first, 1, now, 1)
	o := testOptions(t, Partitions, t.TempDir())
	o.Logger, o.ConnectTimeout = nil, 300*time.Millisecond
	if _, err := Open(context.Background(), dsn, o); !errors.Is(err, ErrLeased) {
		t.Fatalf("a second engine: %v, expected ErrLeased", err)
	}
	// The second waits; the first loses its session and must not write when the second has got the lock.
	o.ConnectTimeout = time.Minute
	type opened struct {
		db  *DB
		err error
	}
	second := make(chan opened, 1)
	go func() {
		db, err := Open(context.Background(), dsn, o)
		second <- opened{db, err}
	}()
	// The first has nothing to write and does not notice.
	if _, err := pgtest.Exec(dsn, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"); err != nil {
		t.Fatal(err)
	}
	got := <-second
	if got.err != nil {
		t.Fatal(got.err)
	}
	other := got.db
	defer other.Close()
	storagetest.Append(t, first, numbered(1))
	number(t, other, 2, now, 2)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		away := first.away.Load()
		if away != nil && errors.Is(*away, ErrLeased) { // after the broken connection was noticed
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the first was not kept away")
		}
	}
	if text, err := pgtest.Exec(dsn, "SELECT count(*), max(itemid) FROM history_uint"); err != nil || text != "2|2\n" {
		t.Errorf("values %q, %v, expected one of each engine", text, err)
	}
	// The second ends, and the first writes what waited.
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := first.flushed(context.Background()); err != nil {
		t.Fatal(err)
	}
	if text, err := pgtest.Exec(dsn, "SELECT count(*) FROM history_uint"); err != nil || text != "42\n" {
		t.Errorf("values %q, %v, expected all", text, err)
	}
}
