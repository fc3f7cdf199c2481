package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/pgtest"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/lease"
	"tidemark/storage/spool"
	"tidemark/storage/storagetest"
)

// takeTerm waits for the lease of a database.
func takeTerm(t testing.TB, dsn, holder string, ttl time.Duration) *lease.Term {
	t.Helper()
	l, err := lease.New(lease.Options{DSN: dsn, Holder: holder, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	term, err := l.Wait(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = term.Release(context.Background()) })
	return term
}

// TestShared_suite runs the suite on an engine that acknowledges with the commit.
func TestShared_suite(t *testing.T) {
	type place struct {
		dsn, dir string
		term     *lease.Term
	}
	places := map[storage.Engine]place{}
	openAt := func(t *testing.T, p place) storage.Engine {
		o := testOptions(t, Partitions, p.dir)
		p.term = takeTerm(t, p.dsn, "suite", time.Minute)
		o.Term = p.term
		e := settled{open(t, p.dsn, o)}
		places[e] = p
		return e
	}
	storagetest.Run(t, func(t *testing.T) storage.Engine { return openAt(t, place{dsn: shared.database(t), dir: t.TempDir()}) }, func(t *testing.T, e storage.Engine) storage.Engine {
		p := places[e]
		if err := errors.Join(e.Close(), p.term.Release(context.Background())); err != nil {
			t.Fatal(err)
		}
		p.dir = t.TempDir() // another machine
		return openAt(t, p)
	})
}

// TestShared_takeOver takes the lease from a server that stands still in the middle of a transaction, and lets that one go on.
func TestShared_takeOver(t *testing.T) {
	dsn := shared.database(t)
	o := killOptions(t, t.TempDir())
	o.Term = takeTerm(t, dsn, "first", 10*time.Minute)
	first := open(t, dsn, o)
	storagetest.Append(t, first, numbered(1))
	storagetest.Append(t, first, numbered(2))
	// Its writer stands in a transaction that holds the row of its epoch.
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	standing, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer standing.Close(ctx)
	if err := o.Term.Session(ctx, standing); err != nil {
		t.Fatal(err)
	}
	tx, err := standing.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Term.Fence(ctx, tx); err != nil {
		t.Fatal(err)
	}
	// By the database's clock its time is over; its own clock stands still with it.
	if _, err := pgtest.Exec(dsn, "UPDATE tidemark_lease SET expires = now()"); err != nil {
		t.Fatal(err)
	}
	second := takeTerm(t, dsn, "second", time.Minute)
	if second.Epoch() != o.Term.Epoch()+1 {
		t.Errorf("epoch %d after %d", second.Epoch(), o.Term.Epoch())
	}
	if err := tx.Commit(ctx); err == nil {
		t.Error("a transaction of the earlier term was committed")
	}
	// The first goes on as if no time had passed: its clock saves nobody, the row does.
	if _, err := first.Append(ctx, numbered(3)); err == nil {
		err = first.flushedOr(ctx, o.Term)
		if err == nil {
			t.Error("values of the earlier term were stored")
		}
	}
	if err := o.Term.Err(); !errors.Is(err, lease.ErrLost) {
		t.Errorf("the first holder's term: %v, expected ErrLost", err)
	}
	if _, err := first.Append(ctx, numbered(4)); !errors.Is(err, storage.ErrFull) || !errors.Is(err, lease.ErrLost) {
		t.Errorf("a value after the term: %v, expected ErrFull and ErrLost", err)
	}
	o.Term, o.SpoolDir = second, t.TempDir()
	other := open(t, dsn, o)
	checkNumbered(t, other, 2, dsn)
	var replayed []model.LSN
	if err := other.Replay(ctx, 0, func(lsn model.LSN, b *model.Batch) error {
		replayed = append(replayed, lsn)
		if n := b.Bits[0]; n != uint64(len(replayed)) || b.Len() != killItems || len(b.Marks) != 1 {
			t.Errorf("replayed %d values of number %d with %d marks", b.Len(), n, len(b.Marks))
		}
		return nil
	}); err != nil || len(replayed) != 2 {
		t.Errorf("replayed %d batches, %v, expected the two that were acknowledged", len(replayed), err)
	}
	if lsn := storagetest.Append(t, other, numbered(3)); lsn <= replayed[1] || other.LastLSN() != lsn {
		t.Errorf("LSN %d after %d", lsn, replayed[1])
	}
	// What was evaluated goes with a later transaction.
	other.Release(replayed[1])
	storagetest.Append(t, other, numbered(4))
	if text, err := pgtest.Exec(dsn, "SELECT count(*) FROM tidemark_journal"); err != nil || text != "2\n" {
		t.Errorf("the journal has %q records, %v, expected 2", text, err)
	}
}

// flushedOr waits until nothing is pending or the term is over.
func (db *DB) flushedOr(ctx context.Context, term *lease.Term) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-term.Lost():
			cancel()
		case <-ctx.Done():
		}
	}()
	return db.flushed(ctx)
}

// TestShared_away refuses values while the database is away, and acknowledges nothing that a crash of it loses.
func TestShared_away(t *testing.T) {
	c, err := startCluster("-cautovacuum=off", "-crestart_after_crash=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	dsn := c.database(t)
	o := killOptions(t, t.TempDir())
	o.Term = takeTerm(t, dsn, "only", 10*time.Minute)
	db := open(t, dsn, o)
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 3))
	n, acked := uint64(0), uint64(0)
	write := func() error {
		n++
		b, c := numbered(n), model.NewCompletion()
		b.Done = append(b.Done, c)
		if _, err := db.Append(context.Background(), b); err != nil {
			return err
		}
		<-c.Done()
		err := c.Err()
		if err == nil {
			acked = n
		}
		return err
	}
	for range count(t, "TIDEMARK_DATABASE_KILLS", 3) {
		for range 20 + r.IntN(100) {
			if err := write(); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Kill(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := write(); !errors.Is(err, storage.ErrFull) {
				t.Fatalf("a value while the database is away: %v, expected ErrFull", err)
			}
			n-- // its sender sends it again
		}
		if away, err := db.Taking(); !away || err == nil {
			t.Errorf("away %v, %v, while values are refused", away, err)
		}
		if err := c.Restart(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if err := write(); err == nil {
				break
			} else if time.Now().After(deadline) {
				t.Fatal(err)
			}
			n--
		}
	}
	text, err := pgtest.Exec(dsn, "SELECT count(*), count(DISTINCT (itemid, value)), max(value) FROM history_uint")
	if want := fmt.Sprintf("%d|%d|%d\n", acked*killItems, acked*killItems, acked); err != nil || text != want {
		t.Errorf("rows, distinct ones and the last: %q, %v, expected %q", text, err, want)
	}
}

// TestShared_killWriter kills a server that writes, again and again; the next one has another folder.
func TestShared_killWriter(t *testing.T) {
	if dsn := os.Getenv(killDSN); dsn != "" {
		o := killOptions(t, os.Getenv(killSpool))
		o.Term = takeTerm(t, dsn, "child", 10*time.Minute) // a busy machine must not end it
		db := open(t, dsn, o)
		n := lastNumber(t, db)
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
			n++
			storagetest.Append(t, db, numbered(n))
			fmt.Printf("acked %d\n", n)
		}
		return
	}
	dsn := shared.database(t)
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 4))
	for range count(t, "TIDEMARK_KILLS", 3) {
		w := storagetest.Writer{Test: "TestShared_killWriter", Env: []string{killDSN + "=" + dsn, killSpool + "=" + t.TempDir()}, Lines: 100}
		acked := storagetest.KillOnce(t, w, r)
		if _, err := pgtest.Exec(dsn, "UPDATE tidemark_lease SET expires = now()"); err != nil {
			t.Fatal(err)
		}
		o := killOptions(t, t.TempDir())
		o.Term = takeTerm(t, dsn, "checker", time.Minute)
		db := open(t, dsn, o)
		checkNumbered(t, db, acked, dsn)
		if err := errors.Join(db.Close(), o.Term.Release(context.Background())); err != nil {
			t.Fatal(err)
		}
	}
}

// TestShared_leftover refuses a folder whose spool holds values that the database does not have.
func TestShared_leftover(t *testing.T) {
	dsn, o := shared.database(t), killOptions(t, t.TempDir())
	o.FlushDelay = time.Hour
	alone := open(t, dsn, o)
	storagetest.Append(t, alone, numbered(1))
	alone.cancel() // it ends without writing what waits
	alone.loops.Wait()
	alone.writer.close()
	if err := alone.spool.(*spool.Log).Close(); err != nil {
		t.Fatal(err)
	}
	together := o
	together.Term = takeTerm(t, dsn, "only", time.Minute)
	if db, err := Open(context.Background(), dsn, together); err == nil {
		_ = db.Close()
		t.Fatal("a spool with values was passed over")
	}
	again := open(t, dsn, o)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	db := open(t, dsn, together)
	checkNumbered(t, db, 1, dsn)
}

// TestLease_one gives the lease to one server, to the next one at once when it is released, and to nobody else while it is renewed.
func TestLease_one(t *testing.T) {
	dsn, ctx := shared.database(t), context.Background()
	first := takeTerm(t, dsn, "first", lease.MinTTL)
	l, err := lease.New(lease.Options{DSN: dsn, Holder: "second", Address: "http://b", TTL: lease.MinTTL})
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	waiting, stop := context.WithCancel(ctx)
	if _, err := l.Wait(waiting, func(s lease.State, err error) {
		if err != nil || s.Free() || s.Holder != "first" || s.Epoch != first.Epoch() {
			t.Errorf("look %d: %+v, %v", looks, s, err)
		}
		if looks++; looks == 40 { // longer than the lease would last
			stop()
		}
	}); !errors.Is(err, context.Canceled) {
		t.Fatalf("a wait that was ended: %v", err)
	}
	if err := first.Err(); err != nil {
		t.Fatal(err)
	}
	if w := first.Waiting(); len(w) != 1 || w[0].Holder != "second" || w[0].Address != "http://b" || w[0].Since < first.Since() || w[0].Seen < w[0].Since {
		t.Errorf("%+v wait since %d, expected the second", w, first.Since())
	}
	if err := first.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(first.Err(), lease.ErrLost) {
		t.Error("a released term goes on")
	}
	second, err := l.Wait(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Release(ctx)
	if second.Epoch() != first.Epoch()+1 {
		t.Errorf("epoch %d after %d", second.Epoch(), first.Epoch())
	}
}

// TestLease_secret refuses a server that could not read what the one before has encrypted.
func TestLease_secret(t *testing.T) {
	dsn, ctx := shared.database(t), context.Background()
	wait := func(prints string) error {
		t.Helper()
		l, err := lease.New(lease.Options{DSN: dsn, Holder: "h", TTL: lease.MinTTL, Secret: func(bool) (string, error) { return prints, nil }})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		term, err := l.Wait(ctx, nil)
		if err == nil {
			err = term.Release(ctx)
		}
		return err
	}
	if err := wait("one"); err != nil {
		t.Fatal(err)
	}
	if err := wait("other"); !errors.Is(err, lease.ErrSecret) {
		t.Errorf("another key: %v, expected ErrSecret", err)
	}
	if err := wait("one"); err != nil {
		t.Error(err)
	}
}

// TestLease_expires ends a term that cannot be renewed before another one can begin.
func TestLease_expires(t *testing.T) {
	dsn, ctx := shared.database(t), context.Background()
	first := takeTerm(t, dsn, "first", 9*time.Second)
	blocker, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.Close(ctx)
	tx, err := blocker.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "SELECT FROM tidemark_lease FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	<-first.Lost()
	stopped := time.Now()
	var expires time.Time
	if err := tx.QueryRow(ctx, "SELECT expires FROM tidemark_lease").Scan(&expires); err != nil || !stopped.Before(expires) {
		t.Errorf("the holder stopped at %v, when the lease was free since %v; %v", stopped, expires, err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if second := takeTerm(t, dsn, "second", lease.MinTTL); second.Epoch() != first.Epoch()+1 {
		t.Errorf("epoch %d after %d", second.Epoch(), first.Epoch())
	}
}

// TestShared_catalog keeps the records of declared items, all or none of a call, and none of a term that is over.
func TestShared_catalog(t *testing.T) {
	dsn, ctx := shared.database(t), context.Background()
	o := killOptions(t, t.TempDir())
	o.Term = takeTerm(t, dsn, "first", 10*time.Minute)
	log := open(t, dsn, o).CatalogLog()
	read := func(l *CatalogLog) (all string) {
		t.Helper()
		if err := l.Load(ctx, func(b []byte) error { all += string(b) + " "; return nil }); err != nil {
			t.Fatal(err)
		}
		return all
	}
	many := make([][]byte, catalogPage+2)
	for i := range many {
		many[i] = []byte("x")
	}
	if err := errors.Join(log.Append([][]byte{[]byte("a"), []byte("b")}), log.Append(many)); err != nil {
		t.Fatal(err)
	}
	if all := read(log); len(all) != 2*(catalogPage+4) || all[:6] != "a b x " {
		t.Errorf("read %d bytes, %.10q", len(all), all)
	}
	wrong := errors.New("wrong")
	if err := log.Rewrite(func(emit func([]byte) error) error { return errors.Join(emit([]byte("lost")), wrong) }); !errors.Is(err, wrong) {
		t.Errorf("a rewrite that fails: %v", err)
	}
	if err := log.Rewrite(func(emit func([]byte) error) error {
		return errors.Join(emit([]byte("c")), emit(make([]byte, rewriteBytes)), emit([]byte("d")))
	}); err != nil {
		t.Fatal(err)
	}
	if all := read(log); len(all) != rewriteBytes+5 || all[:2] != "c " {
		t.Errorf("after the rewrite %d bytes, %.10q", len(all), all)
	}
	if _, err := pgtest.Exec(dsn, "UPDATE tidemark_lease SET expires = now()"); err != nil {
		t.Fatal(err)
	}
	o.Term, o.SpoolDir = takeTerm(t, dsn, "second", time.Minute), t.TempDir()
	other := open(t, dsn, o).CatalogLog()
	if err := log.Append([][]byte{[]byte("late")}); !errors.Is(err, lease.ErrLost) {
		t.Errorf("a record of the earlier term: %v, expected ErrLost", err)
	}
	if err := other.Append([][]byte{[]byte("e")}); err != nil {
		t.Fatal(err)
	}
	if all := read(other); len(all) != rewriteBytes+7 || all[len(all)-4:] != "d e " {
		t.Errorf("the second holder reads %d bytes, %q at the end", len(all), all[len(all)-4:])
	}
}

// TestJournal_committed notes transactions and forgets what they trimmed, without a copy of all that is kept.
func TestJournal_committed(t *testing.T) {
	j := &journal{kept: make([]journaled, 0, 8)}
	j.committed([]journaled{{1, 10}, {2, 20}, {3, 30}}, 0)
	first := &j.kept[0]
	j.committed([]journaled{{4, 40}}, 0)
	if len(j.kept) != 4 || &j.kept[0] != first {
		t.Errorf("%d records are kept, want 4 at the same place", len(j.kept))
	}
	j.committed([]journaled{{5, 50}}, 2)
	if len(j.kept) != 3 || j.kept[0].lsn != 3 || j.bytes != 120 || j.applied != 5 {
		t.Errorf("kept %v, %d bytes, applied %d", j.kept, j.bytes, j.applied)
	}
}
