package postgres

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/pgtest"
)

// cluster is a private PostgreSQL server with empty databases for tests.
type cluster struct{ *pgtest.Cluster }

// shared is the cluster of the tests that do not kill it.
var shared *cluster

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Getenv(killDSN) != "" { // a child that a test started
		return m.Run()
	}
	var err error
	shared, err = startCluster("-cfsync=off", "-cautovacuum=off")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.Remove()
	defer timescale.stop()
	return m.Run()
}

func startCluster(settings ...string) (*cluster, error) {
	return startClusterOf(pgtest.Binaries, settings...)
}

// startClusterOf starts the server whose programs are in a folder.
func startClusterOf(bin string, settings ...string) (*cluster, error) {
	c, err := pgtest.StartOf(bin, settings...)
	if err != nil {
		return nil, err
	}
	return &cluster{c}, nil
}

var databases atomic.Int64

// database makes an empty database.
func (c *cluster) database(t testing.TB) string {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	name := fmt.Sprintf("t%d", databases.Add(1))
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn, err := pgx.Connect(ctx, c.DSN("postgres"))
		if err != nil {
			return // a killed cluster
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return c.DSN(name)
}

// stall lets no commit come back that waits for the disk, until resume: it waits for a replica that does not exist.
func (c *cluster) stall(t testing.TB, dsn string) (resume func()) {
	t.Helper()
	end, err := pgtest.Stall(dsn)
	if err != nil {
		t.Fatal(err)
	}
	resume = sync.OnceFunc(func() {
		t.Helper()
		if err := end(); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(resume) // what cleans up behind a test that failed commits, too
	return resume
}
