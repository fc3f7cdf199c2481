package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/model"
	"tidemark/storage/lease"
	"tidemark/storage/storagetest"
)

// ownSchema makes a role that owns a new database, and whose name the schema of the configuration has, which make gives the marks of one.
func ownSchema(t *testing.T, role string) (dsn string, configured func()) {
	t.Helper()
	admin := shared.database(t)
	run := func(sql string) {
		t.Helper()
		if _, err := pgtest.Exec(admin, sql); err != nil {
			t.Fatal(err)
		}
	}
	run(fmt.Sprintf("CREATE ROLE %[1]s LOGIN; GRANT CREATE ON SCHEMA public TO %[1]s; DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %%I TO %[1]s', current_database()); END $$", role))
	t.Cleanup(func() {
		run(fmt.Sprintf("DROP OWNED BY %[1]s CASCADE; DROP ROLE %[1]s", role))
	})
	return admin + " user=" + role, func() {
		t.Helper()
		run(fmt.Sprintf("CREATE SCHEMA %[1]s AUTHORIZATION %[1]s; CREATE TABLE %[1]s.goose_db_version (); CREATE TABLE %[1]s.trigger_states ()", role))
	}
}

// inSchema returns how many tables and views of values, and of the lease, a schema has.
func inSchema(t *testing.T, dsn, schema string) string {
	t.Helper()
	text, err := pgtest.Exec(dsn, "SELECT count(*) FROM pg_class WHERE relnamespace = '"+schema+"'::regnamespace AND relkind IN ('r', 'p', 'v') AND relname ~ '^(history|trends|tidemark)'")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestDB_oneSchema: the configuration makes the schema that is named like the role, which PostgreSQL then looks into first; the values stay where they are.
func TestDB_oneSchema(t *testing.T) {
	dsn, configured := ownSchema(t, "monitoring")
	o := testOptions(t, Partitions, t.TempDir())
	db := open(t, dsn, o)
	configured()
	db.pool.Reset() // connections that do not know the schema end
	b := &model.Batch{}
	b.AppendUint(1, storagetest.Base, 7)
	b.AppendString(2, storagetest.Base, model.Text, "text")
	storagetest.Append(t, settled{db}, b)
	second := testOptions(t, Partitions, t.TempDir())
	second.ConnectTimeout = time.Millisecond
	if other, err := Open(context.Background(), dsn, second); !errors.Is(err, ErrLeased) {
		t.Errorf("a second server: %v, %v, expected ErrLeased", other, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dsn, o)
	for id := range model.ItemID(2) {
		if got := storagetest.Collect(t, db, storagetest.All(id+1)); len(got) != 1 {
			t.Errorf("item %d has %v after the restart, expected one value", id+1, got)
		}
	}
	if n := inSchema(t, dsn, "monitoring"); n != "0\n" {
		t.Errorf("%s tables of values are in the schema of the configuration", n)
	}
	if text, err := pgtest.Exec(dsn, "SELECT value FROM history_uint"); err != nil || text != "7\n" {
		t.Errorf("the role reads %q, %v", text, err)
	}
}

// TestDB_besideConfiguration begins where the configuration is already: the values get the next schema of the search path.
func TestDB_besideConfiguration(t *testing.T) {
	dsn, configured := ownSchema(t, "watching")
	configured()
	db := open(t, dsn, testOptions(t, Partitions, t.TempDir()))
	number(t, db, 1, storagetest.Base, 7)
	if n := inSchema(t, dsn, "watching"); n != "0\n" {
		t.Errorf("%s tables of values are in the schema of the configuration", n)
	}
}

// TestLease_oneSchema: there is one lease, whatever schemas are made while it is held.
func TestLease_oneSchema(t *testing.T) {
	dsn, configured := ownSchema(t, "keeping")
	term := takeTerm(t, dsn, "first", time.Minute)
	configured()
	l, err := lease.New(lease.Options{DSN: dsn, Holder: "second"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := l.Look(context.Background())
	if err != nil || s.Free() || s.Holder != "first" {
		t.Errorf("the lease is %+v, %v, expected that first holds it", s, err)
	}
	o := testOptions(t, Partitions, t.TempDir())
	o.Term = term
	db := open(t, dsn, o)
	b := &model.Batch{}
	b.AppendUint(1, storagetest.Base, 7)
	storagetest.Append(t, db, b)
	if n := inSchema(t, dsn, "keeping"); n != "0\n" {
		t.Errorf("%s tables are in the schema of the configuration", n)
	}
}
