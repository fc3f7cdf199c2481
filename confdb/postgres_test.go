package confdb

import (
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tidemark/internal/pgtest"
)

// onPostgres names the environment variable that has the connection string when the tests of this package run on PostgreSQL.
const onPostgres = "TIDEMARK_TEST_CONFDB_DSN"

// options returns those of a database that a folder stands for; on PostgreSQL each folder has a schema.
func options(dir string, o Options) Options {
	if o.DSN = os.Getenv(onPostgres); o.DSN != "" {
		h := fnv.New64a()
		_, _ = h.Write([]byte(dir))
		o.Schema = fmt.Sprintf("t%016x", h.Sum64())
	}
	return o
}

// opened are the folders whose database was open before, on PostgreSQL.
var opened sync.Map

func wasOpened(dir string) bool {
	if os.Getenv(onPostgres) != "" {
		_, before := opened.LoadOrStore(dir, true)
		return before
	}
	_, err := os.Stat(dir + "/" + FileName)
	return err == nil
}

// fileTests are about SQLite's file, or start PostgreSQL themselves.
var fileTests = []string{
	"TestOnPostgres", "TestRebuild", "TestOpen_migrates", "TestOpen_noDatabase", "TestOpen_needsNoSharedMemoryFile", "TestPages", "TestTakeOver", "TestMove", "TestDB_WritePages_refuses", "TestDiskFull", "TestReplica",
}

// longTests take most of the time and are about what files say, not about the database: once on PostgreSQL is enough.
var longTests = []string{"TestExport_roundTrip", "TestImport_property", "TestScenario_mistakes", "TestPlan_tooMany"}

// TestOnPostgres runs all other tests of this package again, on PostgreSQL 15, and but for the longest ones on each other version.
func TestOnPostgres(t *testing.T) {
	t.Run("15", func(t *testing.T) {
		t.Parallel()
		againOn(t, pgtest.Binaries, fileTests)
	})
	for _, version := range pgtest.Versions {
		t.Run(strconv.Itoa(version), func(t *testing.T) {
			t.Parallel()
			bin, remove, err := pgtest.Programs("..", version)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(remove)
			againOn(t, bin, slices.Concat(fileTests, longTests))
		})
	}
}

// againOn runs the tests but for some on a server whose programs are in a folder.
func againOn(t *testing.T, bin string, without []string) {
	t.Helper()
	c, err := pgtest.StartOf(bin, "-cfsync=off", "-cautovacuum=off", "-cshared_buffers=32MB")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	args := []string{"-test.count=1", "-rapid.checks=20", "-test.skip=^(" + strings.Join(without, "|") + ")"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), onPostgres+"="+c.DSN("postgres"))
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("on PostgreSQL: %v\n%s", err, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	if testing.Verbose() {
		t.Logf("%s", out)
	}
}

// columnsOf lists the columns of all tables.
func columnsOf(t *testing.T, d *DB, query string) string {
	t.Helper()
	list, err := texts(t.Context(), d.sql, query)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, "\n")
}

// TestMove_columns: both databases have the same tables with the same columns, however migrations were written.
func TestMove_columns(t *testing.T) {
	c, err := pgtest.Start("-cfsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	file := open(t, t.TempDir())
	tables, err := Open(t.Context(), t.TempDir(), Options{DSN: c.DSN("postgres")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tables.Close() })
	want := columnsOf(t, file, `SELECT m.name || '.' || c.name || ' ' || CASE c.type WHEN 'INTEGER' THEN 'bigint' WHEN 'BLOB' THEN 'bytea' ELSE lower(c.type) END
		FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE 'goose_%' ORDER BY 1`)
	got := columnsOf(t, tables, `SELECT (table_name || '.' || column_name || ' ' || data_type) COLLATE "C" FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name NOT LIKE 'goose_%' ORDER BY 1`)
	if got != want {
		t.Errorf("PostgreSQL has\n%s\nSQLite has\n%s", got, want)
	}
	if folded := columnsOf(t, tables, `SELECT table_name || '.' || column_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name NOT LIKE 'goose_%' AND data_type = 'text' AND coalesce(collation_name, '') <> 'C'`); folded != "" {
		t.Errorf("columns that are not compared byte by byte:\n%s", folded)
	}
}

func TestMove_refusesAnotherProgram(t *testing.T) {
	c, err := pgtest.Start("-cfsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	db, err := sql.Open("pgx", c.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE hosts (hostid bigint)"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := Open(t.Context(), dir, Options{DSN: c.DSN("postgres"), Schema: "public"}); err == nil || !strings.Contains(err.Error(), "it has tables of another program") {
		t.Errorf("Open over Zabbix's tables: %v", err)
	}
	if Exists(dir) {
		t.Error("the folder says that its configuration is there")
	}
	open(t, dir)
	if _, err := Open(t.Context(), dir, Options{DSN: c.DSN("postgres")}); err == nil || !strings.Contains(err.Error(), "tidemark config migrate") {
		t.Errorf("Open of an empty database beside config.db: %v", err)
	}
}

// TestMove_refusesDatabase says what is wrong with a database, and what to do.
func TestMove_refusesDatabase(t *testing.T) {
	c, err := pgtest.Start("-cfsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	for _, statement := range []string{
		"CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0", "CREATE ROLE poor LOGIN",
		"CREATE DATABASE owned", "CREATE DATABASE fixed", "ALTER DATABASE fixed SET default_transaction_read_only = on",
	} {
		if _, err := c.SQL("postgres", statement); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.SQL("owned", "CREATE SCHEMA tidemark"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ dsn, want string }{
		{c.DSN("latin"), "the database latin is encoded in LATIN1"},
		{c.DSN("fixed"), "the database fixed can only be read there"},
		{c.DSN("postgres") + " user=poor", "the role poor may not make it; GRANT CREATE ON DATABASE postgres TO poor"},
		{c.DSN("owned") + " user=poor", "the role poor may not use it"},
	} {
		if d, err := Open(t.Context(), t.TempDir(), Options{DSN: test.dsn}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, %v, expected %q", test.dsn, d, err, test.want)
		}
	}
}
