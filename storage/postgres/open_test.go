package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/storagetest"
)

// TestOpen_errors says what is wrong and where.
func TestOpen_errors(t *testing.T) {
	dsn := shared.database(t)
	newer := shared.database(t)
	db := open(t, newer, testOptions(t, Plain, t.TempDir()))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := pgtest.Exec(newer, "INSERT INTO tidemark_schema (version_id, is_applied) VALUES (9999, true)"); err != nil {
		t.Fatal(err)
	}
	refusing := func(statement string) string {
		t.Helper()
		dsn := shared.database(t)
		if _, err := pgtest.Exec(dsn, statement); err != nil {
			t.Fatal(err)
		}
		return dsn
	}
	latin := refusing("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	defer pgtest.Exec(latin, "DROP DATABASE latin WITH (FORCE)") //nolint:errcheck // the cluster goes, too
	poor := refusing("CREATE ROLE poor LOGIN")
	defer pgtest.Exec(poor, "DROP ROLE poor") //nolint:errcheck // the cluster goes, too
	for _, test := range []struct {
		name, dsn, want string
		change          func(*Options)
	}{
		{"another encoding", shared.DSN("latin"), "the database latin is encoded in LATIN1", nil},
		{"only to be read", refusing("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$"), "can only be read there: it is a replica", nil},
		{"no rights", poor + " user=poor", "GRANT CREATE ON SCHEMA public TO poor", nil},
		{"no schema", dsn + " search_path=none", "no schema of the search path exists in the database t", nil},
		{"no folder", dsn, "no folder for the spool", func(o *Options) { o.SpoolDir = "" }},
		{"small spool", dsn, "spool: 5 bytes, expected at least 1048576", func(o *Options) { o.SpoolBytes = 5 }},
		{"mode", dsn, `mode: "odd", expected plain, partitions or timescale`, func(o *Options) { o.Mode = "odd" }},
		{"class", dsn, "retention class 0: history -1ns", func(o *Options) { o.Classes = []Class{{History: -1}} }},
		{"no extension", dsn, "the extension timescaledb is not created in this database", func(o *Options) { o.Mode = Timescale }},
		{"newer schema", newer, "its schema is version 9999 and this program knows up to 4; use a newer program", nil},
		{"no database", shared.DSN("missing"), `database "missing" does not exist`, nil},
		{"bad dsn", "host=:::port=x", "", nil},
		{"nobody there", "host=127.0.0.1 port=1 user=x dbname=x", "connect", func(o *Options) { o.ConnectTimeout = time.Millisecond }},
	} {
		o := testOptions(t, Plain, t.TempDir())
		o.Logger = nil
		o.ConnectTimeout = time.Second
		if test.change != nil {
			test.change(&o)
		}
		db, err := Open(context.Background(), test.dsn, o)
		if err == nil {
			_ = db.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, expected %q", test.name, err, test.want)
		}
	}
}

// TestOpen_spoolOfAnother writes a spool into a database that does not know it, such as one restored from nothing.
func TestOpen_spoolOfAnother(t *testing.T) {
	first, second := shared.database(t), shared.database(t)
	o := testOptions(t, Partitions, t.TempDir())
	db := open(t, first, o)
	storagetest.Append(t, settled{db}, numbered(1))
	last := storagetest.Append(t, settled{db}, numbered(2))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, second, o)
	if err := db.flushed(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := storagetest.Collect(t, db, storagetest.All(7)); len(got) != 2 {
		t.Errorf("%v, expected two values", got)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	// A new spool for a database that was written to: positions go on.
	o.SpoolDir = t.TempDir()
	db = open(t, first, o)
	if db.LastLSN() < last {
		t.Errorf("the new spool begins at %d, expected at least %d", db.LastLSN(), last)
	}
	if lsn := storagetest.Append(t, settled{db}, numbered(3)); lsn <= last {
		t.Errorf("LSN %d, expected more than %d", lsn, last)
	}
	s := db.Stats()
	if s.Items != killItems || s.From == 0 || s.To < s.From || s.Durable == 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestDB_misuse refuses what makes no sense.
func TestDB_misuse(t *testing.T) {
	db := open(t, shared.database(t), testOptions(t, Plain, t.TempDir()))
	ctx := context.Background()
	if err := db.Define(ctx, []storage.ItemDefinition{{ID: 1, Class: 1}}); err == nil || !strings.Contains(err.Error(), "retention class 1, expected below 1") {
		t.Errorf("Define: %v", err)
	}
	if err := db.AppendTrends(ctx, []storage.TrendColumns{{Item: 1, Type: model.Text}}); err == nil || !strings.Contains(err.Error(), "expected numbers") {
		t.Errorf("AppendTrends: %v", err)
	}
	b := &model.Batch{}
	for range 5 {
		b.AppendBytes(1, storagetest.Base, model.Text, make([]byte, 60_000))
	}
	b.At[1], b.At[2], b.At[3], b.At[4] = b.At[0]+1, b.At[0]+2, b.At[0]+3, b.At[0]+4
	b.AppendUint(2, storagetest.Base, 1)
	b.At[5] = 1 << 62 // after 2038
	storagetest.Append(t, settled{db}, b)
	if b.Flags[5]&model.Expired == 0 {
		t.Error("a time that clock cannot hold was taken")
	}
	q := storagetest.All(1)
	q.MaxBytes = 100_000
	if err := db.Read(ctx, q, func(*model.Columns) error { return nil }); !errors.Is(err, storage.ErrTooMuch) {
		t.Errorf("Read beyond its bytes: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		db.Read(ctx, q, nil), db.Trends(ctx, q, nil), db.AppendTrends(ctx, nil),
	} {
		if !errors.Is(err, storage.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	if _, err := db.Prune(ctx, 0); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("Prune after Close: %v", err)
	}
}
