package conformance

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/test/freeport"
)

// database is a private PostgreSQL cluster.
type database struct {
	t *testing.T
	*pgtest.Cluster
}

// rows runs SQL and returns its rows.
func (d *database) rows(name, sql string) [][]string {
	d.t.Helper()
	out, err := d.SQL(name, sql)
	if err != nil {
		d.t.Fatalf("SQL in database %s: %v: %.1000s", name, err, out)
	}
	var rows [][]string
	for line := range strings.Lines(out) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "|"))
	}
	return rows
}

// zabbix is Debian's server.
type zabbix struct {
	t       *testing.T
	db      *database
	process *exec.Cmd
	address string
}

// quoted is a text as SQL takes it.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// startZabbix makes Zabbix's database with the host, the items and the triggers, and starts the server.
func startZabbix(t *testing.T, folder string, db *database) *zabbix {
	t.Helper()
	z := &zabbix{t: t, db: db, address: freeport.Address(t)}
	share := filepath.Join(folder, "usr/share/zabbix-server-pgsql")
	db.rows("postgres", "create database zabbix")
	for _, file := range []string{"schema.sql.gz", "images.sql.gz", "data.sql.gz"} {
		load := exec.Command("bash", "-c", `set -o pipefail; zcat "$1" | "$2" -h "$3" -U postgres -d zabbix -q -v ON_ERROR_STOP=1`,
			"load", filepath.Join(share, file), filepath.Join(pgtest.Binaries, "psql"), db.Dir())
		if out, err := load.CombinedOutput(); err != nil {
			t.Fatalf("load %s: %v: %.1000s", file, err, out)
		}
	}
	db.rows("zabbix", objects())
	_, port, _ := net.SplitHostPort(z.address)
	dir := t.TempDir()
	config := filepath.Join(dir, "zabbix_server.conf")
	settings := fmt.Sprintf("ListenIP=127.0.0.1\nListenPort=%s\nLogFile=%s/log\nPidFile=%s/pid\nSocketDir=%s\nDBHost=%s\nDBName=zabbix\nDBUser=postgres\n"+
		"StartDBSyncers=1\nStartTrappers=2\nStartPollers=1\nStartPingers=0\nStartDiscoverers=0\nStartHTTPPollers=0\nStartPreprocessors=1\nAllowRoot=1\n", port, dir, dir, dir, db.Dir())
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	showLog(t, filepath.Join(dir, "log"))
	z.process = exec.Command(filepath.Join(folder, "usr/sbin/zabbix_server"), "-f", "-c", config)
	z.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := z.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(z.stop)
	until(t, "Zabbix listens", func() bool {
		c, err := net.Dial("tcp", z.address)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	return z
}

// stop ends the server, which writes its trends then.
func (z *zabbix) stop() {
	if z.process == nil {
		return
	}
	_ = z.process.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { _ = z.process.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		z.t.Error("Zabbix does not end")
		_ = syscall.Kill(-z.process.Process.Pid, syscall.SIGKILL)
		<-done
	}
	z.process = nil
}

// Where the ids of the run's objects begin.
const firstItem, firstTrigger, firstFunction, confHost = 900_000, 950_000, 970_000, 90_000

// objects is SQL that makes the host with its items and triggers.
func objects() string {
	var b strings.Builder
	b.WriteString("begin; update hosts set status=1;\n")
	fmt.Fprintf(&b, "insert into hosts (hostid,host,name,status) values (%d,'conf','conf',0);\n", confHost)
	fmt.Fprintf(&b, "insert into hosts_groups (hostgroupid,hostid,groupid) select 90000,%d,min(groupid) from hstgrp;\n", confHost)
	ids := make(map[string]int)
	steps := 0
	for n, i := range append(items(), item{key: "nothing", valueType: float}) {
		id := firstItem + n
		ids[i.key] = id
		fmt.Fprintf(&b, "insert into items (itemid,type,hostid,name,key_,value_type) values (%d,2,%d,%s,%s,%d);\n", id, confHost, quoted(i.key), quoted(i.key), i.valueType)
		fmt.Fprintf(&b, "insert into item_rtdata (itemid) values (%d);\n", id)
		for at, s := range i.steps {
			steps++
			fmt.Fprintf(&b, "insert into item_preproc (item_preprocid,itemid,step,type,params) values (%d,%d,%d,%d,%s);\n",
				firstItem+steps, id, at+1, s.kind, quoted(strings.Join(s.parameters, "\n")))
		}
	}
	function := firstFunction
	for n, t := range triggers() {
		id := firstTrigger + n
		var functions strings.Builder
		translate := func(expression string) string {
			return replaceFunctions(expression, func(name, key, parameters string) string {
				function++
				fmt.Fprintf(&functions, "insert into functions (functionid,itemid,triggerid,name,parameter) values (%d,%d,%d,%s,%s);\n",
					function, ids[key], id, quoted(name), quoted("$"+parameters))
				return "{" + strconv.Itoa(function) + "}"
			})
		}
		problem, recovery := translate(t.expression), translate(t.recovery)
		kind := 0
		if t.multiple {
			kind = 1
		}
		fmt.Fprintf(&b, "insert into triggers (triggerid,expression,description,type,recovery_mode,recovery_expression) values (%d,%s,%s,%d,%d,%s);\n",
			id, quoted(problem), quoted(t.name), kind, t.mode, quoted(recovery))
		b.WriteString(functions.String())
	}
	b.WriteString("commit;\n")
	return b.String()
}

// replaceFunctions replaces name(/conf/key…) in an expression; parameters begin with their comma, if there are any.
func replaceFunctions(expression string, with func(name, key, parameters string) string) string {
	const host = "(/conf/"
	var b strings.Builder
	for {
		at := strings.Index(expression, host)
		if at < 0 {
			b.WriteString(expression)
			return b.String()
		}
		begin := at
		for begin > 0 && (expression[begin-1] >= 'a' && expression[begin-1] <= 'z') {
			begin--
		}
		rest := expression[at+len(host):]
		end, inText := 0, false
		for ; inText || rest[end] != ')'; end++ {
			if rest[end] == '"' {
				inText = !inText
			}
		}
		key, parameters := rest[:end], ""
		if comma := strings.IndexByte(key, ','); comma >= 0 {
			key, parameters = key[:comma], key[comma:]
		}
		b.WriteString(expression[:begin] + with(expression[begin:at], key, parameters))
		expression = rest[end+1:]
	}
}
