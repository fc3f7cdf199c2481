package confdb

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
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
	"TestOnPostgres", "TestRebuild", "TestOpen_migrates", "TestOpen_noDatabase", "TestOpen_needsNoSharedMemoryFile", "TestPages", "TestPlan", "TestDB_WritePages_refuses", "TestDiskFull",
}

// TestOnPostgres runs all other tests of this package again, on PostgreSQL.
func TestOnPostgres(t *testing.T) {
	c, err := pgtest.Start("-cfsync=off", "-cautovacuum=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	args := []string{"-test.count=1", "-rapid.checks=20", "-test.skip=^(" + strings.Join(fileTests, "|") + ")"}
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
