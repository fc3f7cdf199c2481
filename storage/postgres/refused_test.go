package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/pgtest"
	"tidemark/model"
	"tidemark/storage/lease"
	"tidemark/storage/storagetest"
)

// hundred is a batch of a hundred numbers of one item, from a time on.
func hundred(from int64) *model.Batch {
	b := &model.Batch{}
	for i := range uint64(100) {
		b.AppendUint(1, from+int64(i)*int64(time.Millisecond), i)
	}
	return b
}

// TestDB_refusedValues leaves out what the database refuses, wherever it is in a batch, and nothing else; values that are to be compared with the database's too.
func TestDB_refusedValues(t *testing.T) {
	dsn := shared.database(t)
	o := testOptions(t, Plain, t.TempDir())
	o.Logger = nil
	db := open(t, dsn, o)
	number(t, db, 1, storagetest.Base-int64(time.Hour), 1000) // makes the table
	if _, err := pgtest.Exec(dsn, "ALTER TABLE history_uint_c0 ADD CHECK (value NOT IN (0, 41, 42, 99))"); err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{storagetest.Base, storagetest.Base - int64(time.Minute)} {
		storagetest.Append(t, settled{db}, hundred(from))
	}
	if text, err := pgtest.Exec(dsn, "SELECT count(*), count(DISTINCT value) FROM history_uint"); err != nil || text != "193|97\n" {
		t.Errorf("rows and different ones: %q, %v, expected 193 and 97", text, err)
	}
	if n := db.m.dropped.Get(); n != 8 {
		t.Errorf("%d values are counted as dropped, expected 8", n)
	}
}

// TestShared_refusedValues stores no row of a batch without its record in the journal, also when the database refuses some of the rows.
func TestShared_refusedValues(t *testing.T) {
	dsn, ctx := shared.database(t), context.Background()
	o := killOptions(t, t.TempDir())
	o.Term = takeTerm(t, dsn, "only", 10*time.Minute)
	db := open(t, dsn, o)
	storagetest.Append(t, db, numbered(1))
	if _, err := pgtest.Exec(dsn, `ALTER TABLE history_uint_c0 ADD CHECK (value <> 42);
		CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'stop' USING ERRCODE = '57014'; END $$;
		CREATE TRIGGER stop BEFORE INSERT ON tidemark_journal FOR EACH ROW EXECUTE FUNCTION stop()`); err != nil {
		t.Fatal(err)
	}
	b, c := hundred(storagetest.Base+int64(time.Minute)), model.NewCompletion()
	b.Done = append(b.Done, c)
	lsn, err := db.Append(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	// The journal cannot be written, so the transaction does not come to its end; a crash now must not leave rows that nobody evaluates.
	for deadline := time.Now().Add(time.Minute); db.away.Load() == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the batch was stored without its record")
		}
	}
	if text, err := pgtest.Exec(dsn, "SELECT count(*) FROM history_uint WHERE itemid = 1"); err != nil || text != "1\n" {
		t.Errorf("%q rows, %v, expected the one from before", text, err)
	}
	if _, err := pgtest.Exec(dsn, "DROP TRIGGER stop ON tidemark_journal"); err != nil {
		t.Fatal(err)
	}
	if err := db.flushed(ctx); err != nil {
		t.Fatal(err)
	}
	if text, err := pgtest.Exec(dsn, "SELECT count(*) FROM history_uint WHERE itemid = 1"); err != nil || text != "100\n" {
		t.Errorf("%q rows, %v, expected one and 99 of 100", text, err)
	}
	seen := 0
	if err := db.Replay(ctx, lsn-1, func(at model.LSN, b *model.Batch) error { seen += b.Len(); return nil }); err != nil || seen != 100 {
		t.Errorf("replayed %d values, %v, expected the batch", seen, err)
	}
}

// TestShared_keepingIsFenced lets housekeeping of a server whose term is over change nothing, even if its sessions live on.
func TestShared_keepingIsFenced(t *testing.T) {
	dsn, ctx := shared.database(t), context.Background()
	for _, mode := range []Mode{Partitions, Plain} {
		t.Run(string(mode), func(t *testing.T) {
			now := storagetest.Base
			dsn := dsn + " search_path=" + string(mode)
			if _, err := pgtest.Exec(dsn, "CREATE SCHEMA "+string(mode)); err != nil {
				t.Fatal(err)
			}
			term := takeTerm(t, dsn, "first", 10*time.Minute)
			db := clocked(t, dsn, mode, &now, func(o *Options) { o.Term, o.Logger = term, nil })
			for d := range int64(3) {
				number(t, db, 1, now+d*day, uint64(d))
			}
			before, err := tablesOf(dsn)
			if err != nil {
				t.Fatal(err)
			}
			// The next term has begun, and by whatever delay the sessions of this one are still there.
			if _, err := pgtest.Exec(dsn, "UPDATE tidemark_lease SET epoch = epoch + 1"); err != nil {
				t.Fatal(err)
			}
			now += 30 * day
			if _, err := db.Prune(ctx, now); !errors.Is(err, lease.ErrLost) {
				t.Errorf("pruned: %v, expected ErrLost", err)
			}
			if err := db.keep(ctx); mode == Partitions && !errors.Is(err, lease.ErrLost) {
				t.Errorf("kept: %v, expected ErrLost", err)
			}
			if after, err := tablesOf(dsn); err != nil || after != before {
				t.Errorf("tables and rows are\n%s, %v, expected\n%s", after, err, before)
			}
		})
	}
}

// tablesOf lists tables with the number of their rows.
func tablesOf(dsn string) (string, error) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relname LIKE 'history%' ORDER BY 1")
	if err != nil {
		return "", err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range names {
		var n int
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM "+name).Scan(&n); err != nil {
			return "", err
		}
		fmt.Fprintln(&b, name, n)
	}
	return b.String(), nil
}
