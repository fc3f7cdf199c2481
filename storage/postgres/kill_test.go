package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/storagetest"
)

const (
	// killSpool is where the child of the kill test has its spool.
	killSpool = "TIDEMARK_KILL_SPOOL"
	// killItems is how many values of one number a batch has.
	killItems = 40
)

// count reads a number of repetitions from the environment.
func count(t testing.TB, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q, expected a number from 1 on", name, text)
	}
	return n
}

// killOptions keep an engine quiet about a database that is away.
func killOptions(t testing.TB, dir string) Options {
	o := testOptions(t, Partitions, dir)
	o.Logger = nil
	o.segmentBytes = 64 << 10
	o.Now = func() int64 { return storagetest.Base + int64(time.Hour) }
	o.Classes = nil
	return o
}

// numbered is the batch that says n in every item.
func numbered(n uint64) *model.Batch {
	b := &model.Batch{}
	for item := model.ItemID(1); item <= killItems; item++ {
		b.AppendUint(item, storagetest.Base+int64(n)*int64(time.Millisecond), n)
	}
	b.Marks = append(b.Marks, model.Mark{Key: "session/1/a", Value: strconv.FormatUint(n, 10), At: storagetest.Base})
	return b
}

// checkNumbered proves that each item has every number from 1 to at least acked, once, in the engine and then in the tables.
func checkNumbered(t *testing.T, db *DB, acked int, dsn string) {
	t.Helper()
	for _, settled := range []bool{false, true} {
		if settled {
			if err := db.flushed(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		for item := model.ItemID(1); item <= killItems; item++ {
			values := storagetest.Collect(t, db, storagetest.All(item))
			if len(values) < acked {
				t.Fatalf("item %d has %d values, and %d were acknowledged (settled: %v)", item, len(values), acked, settled)
			}
			for i, v := range values {
				if v.Bits != uint64(i+1) || v.At != storagetest.Base+int64(i+1)*int64(time.Millisecond) {
					t.Fatalf("value %d is %v", i, v)
				}
			}
		}
	}
	marks := ""
	db.Marks(func(m model.Mark) { marks = m.Value })
	if n, _ := strconv.Atoi(marks); n < acked {
		t.Errorf("the mark says %q, and %d were acknowledged", marks, acked)
	}
	text, err := pgtest.Exec(dsn, "SELECT count(*) - count(DISTINCT (itemid, value)) FROM history_uint")
	if err != nil || text != "0\n" {
		t.Errorf("doubled values: %q, %v", text, err)
	}
}

// TestDB_killWriter kills a process that writes, again and again, and looks for what it had acknowledged.
func TestDB_killWriter(t *testing.T) {
	if dsn := os.Getenv(killDSN); dsn != "" {
		writeUntilKilled(t, dsn)
		return
	}
	dsn, dir := shared.database(t), t.TempDir()
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for range count(t, "TIDEMARK_KILLS", 5) {
		acked := storagetest.KillOnce(t, storagetest.Writer{Test: "TestDB_killWriter", Env: []string{killDSN + "=" + dsn, killSpool + "=" + dir}, Lines: 300}, r)
		db := open(t, dsn, killOptions(t, dir))
		checkNumbered(t, db, acked, dsn)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// lastNumber is the highest number that is stored.
func lastNumber(t testing.TB, db *DB) uint64 {
	q := storagetest.All(killItems)
	q.Newest = 1
	if last := storagetest.Collect(t, db, q); len(last) > 0 {
		return last[0].Bits
	}
	return 0
}

func writeUntilKilled(t *testing.T, dsn string) {
	db := open(t, dsn, killOptions(t, os.Getenv(killSpool)))
	n := lastNumber(t, db)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		// Half of the last batch may have been stored: it comes again as a sender would send it.
		n++
		storagetest.Append(t, db, numbered(n))
		fmt.Printf("acked %d\n", n)
	}
}

// TestDB_killDatabase kills PostgreSQL while values come, again and again. Senders notice nothing.
func TestDB_killDatabase(t *testing.T) {
	c, err := startCluster("-cautovacuum=off", "-csynchronous_commit=on", "-crestart_after_crash=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	dsn := c.database(t)
	db := open(t, dsn, killOptions(t, t.TempDir()))
	n := uint64(0)
	write := func(batches int) {
		for range batches {
			n++
			storagetest.Append(t, db, numbered(n))
		}
	}
	for range count(t, "TIDEMARK_DATABASE_KILLS", 3) {
		write(20 + r.IntN(200))
		if err := c.Kill(); err != nil {
			t.Fatal(err)
		}
		write(20 + r.IntN(100)) // the spool takes them
		if _, err := db.Taking(); err != nil {
			t.Errorf("values are refused: %v", err)
		}
		if err := c.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	if err := db.flushed(context.Background()); err != nil {
		t.Fatal(err)
	}
	text, err := pgtest.Exec(dsn, "SELECT count(*), count(DISTINCT (itemid, value)), max(value) FROM history_uint")
	if want := fmt.Sprintf("%d|%d|%d\n", n*killItems, n*killItems, n); err != nil || text != want {
		t.Errorf("rows, distinct ones and the last: %q, %v, expected %q", text, err, want)
	}
	if last := lastNumber(t, db); last != n {
		t.Errorf("the newest is %d, expected %d", last, n)
	}
}

// TestDB_spoolFull fills the spool while the database is away.
func TestDB_spoolFull(t *testing.T) {
	c, err := startCluster("-cfsync=off", "-cautovacuum=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	o := killOptions(t, t.TempDir())
	o.SpoolBytes, o.PendingBytes = MinSpoolBytes, 64<<10
	dsn := c.database(t)
	db := open(t, dsn, o)
	storagetest.Append(t, db, numbered(1))
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	n := uint64(1)
	var refused error
	for refused == nil && n < 5000 {
		if _, refused = db.Append(context.Background(), numbered(n+1)); refused == nil {
			n++
		}
	}
	if refused == nil {
		t.Fatalf("a spool of %d bytes took %d batches", o.SpoolBytes, n)
	}
	t.Logf("refused after %d batches: %v", n, refused)
	if away, err := db.Taking(); !away || err == nil || !strings.Contains(err.Error(), "the spool is full") {
		t.Errorf("away %v, %v; expected it to say that the spool is full", away, err)
	}
	if err := c.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := db.flushed(context.Background()); err != nil {
		t.Fatal(err)
	}
	if away, err := db.Taking(); away || err != nil {
		t.Errorf("away %v, %v, with the database back", away, err)
	}
	if got := storagetest.Collect(t, db, storagetest.All(1)); len(got) != int(n) {
		t.Errorf("%d values, expected %d", len(got), n)
	}
	storagetest.Append(t, db, numbered(n+1))
	if size := db.spool.SizeBytes(); size > o.SpoolBytes {
		t.Errorf("the spool has %d bytes, expected at most %d", size, o.SpoolBytes)
	}
}

var _ storage.Engine = settled{}
