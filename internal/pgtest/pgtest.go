// Package pgtest starts private PostgreSQL servers for tests.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Binaries is where Debian's package postgresql-15 puts the server.
const Binaries = "/usr/lib/postgresql/15/bin"

// Cluster is a private server on a socket in a folder of its own.
type Cluster struct {
	bin, dir string
	// port names the socket too; host is where the server listens besides, if anywhere.
	host, port string
	settings   []string
	cmd        *exec.Cmd
	exited     chan struct{}
	log        *os.File
	account    *syscall.Credential
}

// Start makes a cluster and starts its server with options such as -cfsync=off.
func Start(settings ...string) (*Cluster, error) {
	return StartOf(Binaries, settings...)
}

// StartOn does the same with a server that listens on an address of TCP too.
func StartOn(address string, settings ...string) (*Cluster, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return start(&Cluster{bin: Binaries, host: host, port: port, settings: settings})
}

// StartOf does the same as Start with the programs in a folder.
func StartOf(bin string, settings ...string) (*Cluster, error) {
	return start(&Cluster{bin: bin, port: "5432", settings: settings})
}

func start(c *Cluster) (*Cluster, error) {
	if _, err := os.Stat(filepath.Join(c.bin, "postgres")); err != nil {
		return nil, fmt.Errorf("%w; run storage/postgres/install-postgresql.sh", err)
	}
	dir, err := os.MkdirTemp("/tmp", "tmpg") // sockets need a short path
	if err != nil {
		return nil, err
	}
	c.dir = dir
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
	// A usual installation has a locale that folds more letters than ASCII.
	out, err := c.command("initdb", "-D", c.data(), "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--auth=trust", "-N").CombinedOutput()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w\n%s", err, out), os.RemoveAll(dir))
	}
	if c.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return nil, err
	}
	return c, c.Restart()
}

// Dir is the folder of the server's socket.
func (c *Cluster) Dir() string { return c.dir }

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.account, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Restart starts the server after Kill and waits until it answers.
func (c *Cluster) Restart() error {
	args := append([]string{"-D", c.data(), "-k", c.dir, "-p", c.port, "-clisten_addresses=" + c.host, "-cmax_connections=60"}, c.settings...)
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
		conn, err := pgx.Connect(ctx, c.DSN("postgres"))
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

// Kill ends the server and all that it started at once, as a power cut of that machine would, and waits until they are gone.
func (c *Cluster) Kill() error {
	err := c.cmd.Process.Kill()
	<-c.exited
	KillLeft(c.data())
	return err
}

// KillLeft kills the processes that a killed server left, which have its data folder as theirs, and waits until they are gone, for at most 20 s.
// A backend whose postmaster is gone ends by itself, at its next look; the segment of shared memory is free only then.
func KillLeft(data string) {
	for deadline := time.Now().Add(20 * time.Second); ; {
		left := processes(data)
		if len(left) == 0 || time.Now().After(deadline) {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// processes returns those that have a data folder as theirs.
func processes(data string) (left []int) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		if folder, _ := os.Readlink(name + "/cwd"); folder != data {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil {
			left = append(left, pid)
		}
	}
	return left
}

// Remove stops the server and deletes its folder.
func (c *Cluster) Remove() {
	_ = c.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-c.exited:
	case <-time.After(20 * time.Second):
		_ = c.Kill()
	}
	_ = c.log.Close()
	_ = os.RemoveAll(c.dir)
}

// DSN is the connection string of a database.
func (c *Cluster) DSN(database string) string {
	return fmt.Sprintf("host=%s port=%s user=postgres dbname=%s", c.dir, c.port, database)
}

// SQL runs statements in a database and returns their rows, columns apart by |.
func (c *Cluster) SQL(database, sql string) (string, error) {
	rows, err := Exec(c.DSN(database), sql)
	return strings.TrimSpace(rows), err
}

// Exec runs statements on a connection of its own and returns their rows, each with a line break behind it and its columns apart by |.
func Exec(dsn, sql string) (string, error) {
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

// CreateDatabase makes an empty database and returns its connection string.
func (c *Cluster) CreateDatabase(name string) (string, error) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.DSN("postgres"))
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	return c.DSN(name), err
}

// Versions are those beside Debian's that storage/postgres/install-versions.sh installs.
var Versions = []int{14, 16, 17, 18}

// Programs gives the programs of one of Versions, in a folder that the server's account reaches, which it may not where the source is. repository is the
// path of the repository. remove deletes what was made.
func Programs(repository string, version int) (bin string, remove func(), err error) {
	from := filepath.Join(repository, "storage/postgres/testdata/versions/node_modules", fmt.Sprintf("pg%d", version), "native")
	if _, err := os.Stat(filepath.Join(from, "bin", "postgres")); err != nil {
		return "", nil, fmt.Errorf("%w; run storage/postgres/install-versions.sh", err)
	}
	if os.Getuid() != 0 {
		bin, err := filepath.Abs(filepath.Join(from, "bin"))
		return bin, func() {}, err
	}
	dir, err := os.MkdirTemp("/tmp", "tmpgbin")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	out, err := exec.Command("cp", "-a", from, dir).CombinedOutput()
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("copy %s: %w\n%s", from, err, out)
	}
	return filepath.Join(dir, "native", "bin"), remove, nil
}
