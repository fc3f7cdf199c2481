package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/pgtest"
	"tidemark/model"
	"tidemark/storage/lease"
	"tidemark/storage/storagetest"
)

// stallable is a cluster whose commits can be held up, with a database.
func stallable(t *testing.T) (*cluster, string) {
	t.Helper()
	c, err := startCluster("-cfsync=off", "-cautovacuum=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	dsn := c.database(t)
	if err := takeTerm(t, dsn, "first", time.Minute).Release(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c, dsn
}

// taken is what waiting for a term gives.
type taken struct {
	*lease.Term
	error
}

// waitForTerm waits for a term in the background.
func waitForTerm(ctx context.Context, l *lease.Lease) <-chan taken {
	got := make(chan taken, 1)
	go func() {
		term, err := l.Wait(ctx, nil)
		got <- taken{term, err}
	}()
	return got
}

// TestLease_slowDisk begins a term while commits take longer than a lease lasts: it is renewed meanwhile, and is handed out when its begin is on disk.
func TestLease_slowDisk(t *testing.T) {
	c, dsn := stallable(t)
	resume := c.stall(t, dsn)
	l, err := lease.New(lease.Options{DSN: dsn, Holder: "second", TTL: 8 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	got := waitForTerm(ctx, l)
	for lasted := "f\n"; lasted != "t\n"; {
		if lasted, err = pgtest.Exec(dsn, "SELECT holder = 'second' AND clock_timestamp() > since + interval '9 s' AND clock_timestamp() < expires FROM tidemark_lease"); err != nil || ctx.Err() != nil {
			t.Fatal("the lease is not renewed while its begin waits for the disk: ", errors.Join(err, ctx.Err()))
		}
		select {
		case g := <-got:
			t.Fatalf("a term that is not on disk was handed out: %v", g.error)
		case <-time.After(50 * time.Millisecond):
		}
	}
	resume()
	g := <-got
	if g.error != nil {
		t.Fatal(g.error)
	}
	if err := errors.Join(g.Err(), g.Release(ctx)); err != nil {
		t.Error(err)
	}
}

// TestShared_openOnSlowDisk opens an engine that takes over while no commit comes back from the disk: nothing of the start waits for one.
func TestShared_openOnSlowDisk(t *testing.T) {
	c, dsn := stallable(t)
	o := killOptions(t, t.TempDir())
	o.Term = takeTerm(t, dsn, "second", 10*time.Minute)
	db := open(t, dsn, o)
	storagetest.Append(t, db, numbered(1))
	if err := errors.Join(db.Close(), o.Term.Release(context.Background())); err != nil {
		t.Fatal(err)
	}
	o.Term, o.SpoolDir = takeTerm(t, dsn, "third", 10*time.Minute), t.TempDir()
	resume := c.stall(t, dsn)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := Open(ctx, dsn, o)
	resume()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	storagetest.Append(t, db, numbered(2))
	if values := storagetest.Collect(t, db, storagetest.All(1)); len(values) != 2 {
		t.Errorf("%d values, expected 2", len(values))
	}
}

// TestDB_openBesideReport opens an engine, and stores values of a class that is new, while somebody reads a view and does not end.
func TestDB_openBesideReport(t *testing.T) {
	dsn, ctx := shared.database(t), context.Background()
	o := killOptions(t, t.TempDir())
	o.Logger = nil // it says that the view is changed later
	db := open(t, dsn, o)
	storagetest.Append(t, settled{db}, numbered(1))
	report, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer report.Close(ctx)
	tx, err := report.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "SELECT count(*) FROM history_uint, history_text"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dsn, o)
	b := numbered(2)
	b.AppendBytes(killItems+1, b.At[0], model.Text, []byte("new"))
	storagetest.Append(t, settled{db}, b)
	// The keeper may be at it just now, in vain.
	eventually(t, "a view that is read is left for later", db.viewsDue.Load)
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the view is changed", func() bool {
		if err := db.keep(ctx); err != nil {
			t.Fatal(err)
		}
		text, err := pgtest.Exec(dsn, "SELECT value FROM history_text")
		if err != nil {
			t.Fatal(err)
		}
		return text == "new\n"
	})
}

// eventually waits for something that must come.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}
