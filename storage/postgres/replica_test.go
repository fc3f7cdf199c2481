package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/model"
	"tidemark/storage/lease"
	"tidemark/storage/storagetest"
)

// waiting returns the process of a session that waits for a replica and is not the one before.
func (c *cluster) waiting(t *testing.T, dsn, application, before string) (pid string) {
	t.Helper()
	eventually(t, "a session of "+application+" waits for the replica", func() bool {
		text, err := pgtest.Exec(dsn, fmt.Sprintf("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = '%s' AND pid <> %s", application, before))
		if err != nil {
			t.Fatal(err)
		}
		pid, _, _ = strings.Cut(text, "\n")
		return pid != ""
	})
	return pid
}

// endWait ends the wait of a session for the replica, as an administrator does whom it keeps too long.
func (c *cluster) endWait(t *testing.T, dsn, pid string) {
	t.Helper()
	if _, err := pgtest.Exec(dsn, "SELECT pg_cancel_backend("+pid+")"); err != nil {
		t.Fatal(err)
	}
}

// TestLease_endedWait begins a term while the replica does not answer, and somebody ends the wait for it: the term is not handed out before the replica has it.
func TestLease_endedWait(t *testing.T) {
	c, dsn := stallable(t)
	resume := c.stall(t, dsn)
	l, err := lease.New(lease.Options{DSN: dsn, Holder: "second", TTL: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	got := waitForTerm(ctx, l)
	pid := c.waiting(t, dsn, "tidemark lease", "0")
	c.endWait(t, dsn, pid)
	c.waiting(t, dsn, "tidemark lease", pid)
	select {
	case g := <-got:
		t.Fatalf("a term that is not on the replica was handed out: %v", g.error)
	default:
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

// TestShared_endedWait ends the wait of a commit for the replica: its values are acknowledged when the replica has them, and are stored once.
func TestShared_endedWait(t *testing.T) {
	c, dsn := stallable(t)
	o := killOptions(t, t.TempDir())
	o.Term = takeTerm(t, dsn, "second", 10*time.Minute)
	db := open(t, dsn, o)
	storagetest.Append(t, db, numbered(1))
	resume := c.stall(t, dsn)
	b, stored := numbered(2), model.NewCompletion()
	b.Done = append(b.Done, stored)
	if _, err := db.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	pid := c.waiting(t, dsn, "tidemark writer", "0")
	c.endWait(t, dsn, pid)
	c.waiting(t, dsn, "tidemark writer", pid)
	select {
	case <-stored.Done():
		t.Fatalf("acknowledged before the replica has it: %v", stored.Err())
	default:
	}
	if away := db.away.Load(); away == nil || !errors.Is(*away, lease.ErrUnreplicated) {
		t.Errorf("trouble %v, expected ErrUnreplicated", away)
	}
	resume()
	select {
	case <-stored.Done():
	case <-time.After(time.Minute):
		t.Fatal("not acknowledged although the replica answers")
	}
	if err := stored.Err(); err != nil {
		t.Fatal(err)
	}
	checkNumbered(t, db, 2, dsn)
	if text, err := pgtest.Exec(dsn, "SELECT count(*) FROM tidemark_journal"); err != nil || text != "2\n" {
		t.Errorf("the journal has %q records, %v, expected 2", text, err)
	}
}
