package zabbixdb

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/test/freeport"
	"tidemark/test/launch"
)

const (
	// schemas is where install.sh unpacks Debian's packages of Zabbix.
	schemas  = "/var/cache/tidemark-test/zabbix/usr/share/zabbix-server-"
	patience = 2 * time.Minute
)

// database is a private database with Zabbix's tables: its address, and its command line client.
type database struct {
	dsn    string
	client []string
	// serverConfig is how a Zabbix server connects.
	serverConfig string
}

// exec runs statements in the client.
func (d *database) exec(t *testing.T, sql io.Reader) {
	t.Helper()
	c := exec.Command(d.client[0], d.client[1:]...)
	c.Stdin = sql
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%.4000s", d.client[0], err, out)
	}
}

// load makes Zabbix's tables from scripts of its package.
func (d *database) load(t *testing.T, kind string, scripts ...string) {
	t.Helper()
	var all bytes.Buffer
	for _, name := range scripts {
		f, err := os.Open(schemas + kind + "/" + name + ".sql.gz")
		if err != nil {
			t.Fatalf("%v; run test/zabbixdb/install.sh", err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&all, z); err != nil { //nolint:gosec // Debian's package
			t.Fatal(err)
		}
		_ = f.Close()
	}
	text := all.Bytes()
	if kind == "pgsql" { // Hundreds of rows in one message: with an answer to each of 130,000 it takes most of a minute.
		text = inBatches(text, 300)
	}
	d.exec(t, bytes.NewReader(text))
}

// inBatches lets psql send up to n INSERTs that follow each other in one message: it takes "\;" for a semicolon that does not send yet.
func inBatches(sql []byte, n int) []byte {
	parts := bytes.SplitAfter(sql, []byte(");\nINSERT INTO "))
	for i, part := range parts[:len(parts)-1] {
		if i%n != 0 {
			parts[i] = bytes.Replace(part, []byte(");\nINSERT INTO "), []byte(")\\;\nINSERT INTO "), 1)
		}
	}
	return bytes.Join(parts, nil)
}

// until polls a client until it is let in.
func (d *database) until(t *testing.T, log string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		c := exec.Command(d.client[0], d.client[1:]...)
		c.Stdin = bytes.NewReader([]byte("SELECT 1;"))
		out, err := c.CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(log)
			t.Fatalf("no answer: %v: %s\n%s", err, out, text)
		}
	}
}

// postgres starts a private PostgreSQL with the tables as a new Zabbix has them, with all its templates.
func postgres(t *testing.T) *database {
	t.Helper()
	return startPostgres(t, "schema", "images", "data")
}

// emptyPostgres has no rows in the tables.
func emptyPostgres(t *testing.T) *database {
	t.Helper()
	return startPostgres(t, "schema")
}

func startPostgres(t *testing.T, scripts ...string) *database {
	t.Helper()
	address := freeport.Address(t)
	host, port, _ := net.SplitHostPort(address)
	launch.PostgresOn(t, address, "-cfsync=off")
	d := &database{
		dsn:    "postgres://postgres@" + address + "/postgres",
		client: []string{pgtest.Binaries + "/psql", "-h", host, "-p", port, "-U", "postgres", "-q", "-v", "ON_ERROR_STOP=1", "postgres"},

		serverConfig: "DBHost=" + host + "\nDBPort=" + port + "\nDBName=postgres\nDBUser=postgres\n",
	}
	d.load(t, "pgsql", scripts...)
	return d
}

// mariadb starts a private MariaDB.
func mariadb(t *testing.T) *database {
	t.Helper()
	dir := t.TempDir()
	data, log, socket := filepath.Join(dir, "data"), filepath.Join(dir, "log"), filepath.Join(dir, "s")
	install := exec.Command("mariadb-install-db", "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db", "--user=root",
		"--innodb-flush-method=nosync")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v\n%s", err, out)
	}
	host, port, _ := net.SplitHostPort(freeport.Address(t))
	first := filepath.Join(dir, "first.sql")
	text := "CREATE DATABASE zabbix CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;\nCREATE USER reader@'%' IDENTIFIED BY 'se:cret';\nGRANT SELECT ON zabbix.* TO reader@'%';\n"
	if err := os.WriteFile(first, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	launch.Run(t, log, "/usr/sbin/mariadbd", "--no-defaults", "--user=root", "--datadir="+data, "--socket="+socket, "--port="+port, "--bind-address="+host,
		"--init-file="+first, "--pid-file="+filepath.Join(dir, "pid"), "--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--skip-name-resolve")
	d := &database{
		// The user may only read.
		dsn:    "mysql://reader:se%3Acret@" + net.JoinHostPort(host, port) + "/zabbix",
		client: []string{"mariadb", "--no-defaults", "--socket=" + socket, "--user=root", "--default-character-set=utf8mb4", "zabbix"},

		serverConfig: "DBHost=localhost\nDBSocket=" + socket + "\nDBName=zabbix\nDBUser=root\n",
	}
	d.until(t, log)
	d.load(t, "mysql", "schema")
	return d
}
