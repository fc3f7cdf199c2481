package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/pgtest"
)

// binaries is where Debian's package postgresql-15 puts the server.
const binaries = "/usr/lib/postgresql/15/bin"

// cluster is a private PostgreSQL server on a socket in a folder of its own.
type cluster struct {
	// bin holds the programs.
	bin     string
	dir     string
	cmd     *exec.Cmd
	exited  chan struct{}
	log     *os.File
	account *syscall.Credential
	// settings are options of the server.
	settings []string
}

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
	defer shared.remove()
	defer timescale.stop()
	return m.Run()
}

func startCluster(settings ...string) (*cluster, error) {
	if _, err := os.Stat(binaries + "/postgres"); err != nil {
		return nil, fmt.Errorf("%w; run storage/postgres/install-postgresql.sh", err)
	}
	return startClusterOf(binaries, settings...)
}

// startClusterOf starts the server whose programs are in a folder.
func startClusterOf(bin string, settings ...string) (*cluster, error) {
	dir, err := os.MkdirTemp("/tmp", "tmpg") // sockets need a short path
	if err != nil {
		return nil, err
	}
	c := &cluster{bin: bin, dir: dir, settings: settings}
	if os.Getuid() == 0 { // the server refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		c.account = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, err
		}
	}
	out, err := c.command("initdb", "-D", c.data(), "-U", "postgres", "-E", "UTF8", "--locale=C", "--auth=trust", "-N").CombinedOutput()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w\n%s", err, out), os.RemoveAll(dir))
	}
	if c.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return nil, err
	}
	return c, c.start()
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.account, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// start starts the server and waits until it answers.
func (c *cluster) start() error {
	args := append([]string{"-D", c.data(), "-k", c.dir, "-p", "5432", "-clisten_addresses=", "-cmax_connections=60"}, c.settings...)
	c.cmd = c.command("postgres", args...)
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		_ = cmd.Wait() // killed or stopped
		close(exited)
	}(c.cmd, c.exited)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, c.dsn("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-c.exited:
			text, _ := os.ReadFile(c.log.Name())
			return fmt.Errorf("the server ended: %s", bytes.TrimSpace(text))
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// kill ends the server and all that it started at once, as a power cut of that machine would, and waits until they are gone.
func (c *cluster) kill() error {
	err := c.cmd.Process.Kill()
	<-c.exited
	pgtest.KillLeft(c.data())
	return err
}

func (c *cluster) remove() {
	_ = c.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-c.exited:
	case <-time.After(20 * time.Second):
		_ = c.kill()
	}
	_ = c.log.Close()
	_ = os.RemoveAll(c.dir)
}

func (c *cluster) dsn(database string) string {
	return fmt.Sprintf("host=%s port=5432 user=postgres dbname=%s", c.dir, database)
}

var databases atomic.Int64

// database makes an empty database.
func (c *cluster) database(t testing.TB) string {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	name := fmt.Sprintf("t%d", databases.Add(1))
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn, err := pgx.Connect(ctx, c.dsn("postgres"))
		if err != nil {
			return // a killed cluster
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return c.dsn(name)
}

// exec runs statements on a connection of its own.
func (c *cluster) exec(dsn, sql string) (string, error) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	var text []byte
	for _, r := range results {
		for _, row := range r.Rows {
			text = append(append(text, bytes.Join(row, []byte("|"))...), '\n')
		}
	}
	return string(text), err
}

// stall lets no commit come back that waits for the disk, until resume: it waits for a replica that does not exist.
func (c *cluster) stall(t testing.TB, dsn string) (resume func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	configure := func(sql string) {
		t.Helper()
		for _, sql := range []string{sql, "SELECT pg_reload_conf()"} {
			if _, err := c.exec(dsn, sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := c.exec(dsn, "CREATE TABLE IF NOT EXISTS stalled ()"); err != nil {
		t.Fatal(err)
	}
	configure("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	probe, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	probing, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for probing.Err() == nil {
			_, _ = probe.Exec(probing, "INSERT INTO stalled DEFAULT VALUES")
		}
	}()
	for waits := "0\n"; waits == "0\n"; {
		if waits, err = c.exec(dsn, fmt.Sprintf("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid = %d", probe.PgConn().PID())); err != nil || ctx.Err() != nil {
			t.Fatal("commits do not wait: ", errors.Join(err, ctx.Err()))
		}
	}
	stop()
	<-ended
	_ = probe.Close(ctx) // it is broken
	return func() { configure("ALTER SYSTEM RESET synchronous_standby_names") }
}
