package proxy

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// zabbixFolder is where install.sh unpacks Debian's server.
const zabbixFolder = "/var/cache/tidemark-test/zabbix"

// database is a private PostgreSQL cluster with the tables of Zabbix.
type database struct {
	t *testing.T
	*pgtest.Cluster
}

func startDatabase(t *testing.T) *database {
	t.Helper()
	d := &database{t, launch.Postgres(t, "-cfsync=off")}
	d.run("postgres", "create database zabbix")
	// Of the data only what the server does not start without; its templates would take minutes on a busy machine.
	load := exec.Command("bash", "-c", `set -o pipefail; cd "$1" && { zcat schema.sql.gz && zcat data.sql.gz | grep -E "^INSERT INTO (role|usrgrp|users|users_groups|hstgrp|config|config_autoreg_tls|globalmacro) "; } |
		"$2" -h "$3" -U postgres -d zabbix -q -v ON_ERROR_STOP=1 --single-transaction`, "load", filepath.Join(zabbixFolder, "usr/share/zabbix-server-pgsql"), pgtest.Binaries+"/psql", d.Dir())
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("load the tables of Zabbix: %v: %.1000s", err, out)
	}
	return d
}

// run runs SQL that must work.
func (d *database) run(name, sql string) string {
	d.t.Helper()
	out, err := d.SQL(name, sql)
	if err != nil {
		d.t.Fatalf("SQL in database %s: %v: %.1000s", name, err, out)
	}
	return out
}

// values are those of an item in a table of history, in order of time.
func (d *database) values(table string, item int) []string {
	d.t.Helper()
	out := d.run("zabbix", fmt.Sprintf("select value from %s where itemid=%d order by clock, ns", table, item))
	if out == "" {
		return nil
	}
	return strings.Split(out, "\n")
}

// zabbixServer is Debian's server.
type zabbixServer struct {
	t       *testing.T
	dir     string
	address string
	// more are further settings.
	more   string
	starts int
	stop   func()
}

func (z *zabbixServer) start(d *database) {
	z.t.Helper()
	_, port, _ := net.SplitHostPort(z.address)
	// Each start has a folder of its own for sockets: the processes of the one before may still be dying.
	z.starts++
	dir := filepath.Join(z.dir, strconv.Itoa(z.starts))
	if err := os.Mkdir(dir, 0o700); err != nil {
		z.t.Fatal(err)
	}
	config := write(z.t, dir, "zabbix_server.conf", fmt.Sprintf("ListenIP=127.0.0.1\nListenPort=%s\nLogFile=%[2]s/log\nPidFile=%[2]s/pid\nSocketDir=%[2]s\nDBHost=%[3]s\nDBName=zabbix\n"+
		"DBUser=postgres\nStartDBSyncers=1\nStartTrappers=2\nStartPollers=1\nStartPingers=0\nStartDiscoverers=0\nStartHTTPPollers=0\nStartPreprocessors=1\nCacheUpdateFrequency=1\nAllowRoot=1\n",
		port, dir, d.Dir())+z.more)
	process := exec.Command(zabbixFolder+"/usr/sbin/zabbix_server", "-f", "-c", config)
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := process.Start(); err != nil {
		z.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = process.Wait(); close(ended) }()
	// Zabbix acknowledges values that are in its memory only, so it is stopped, not killed.
	z.stop = func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(patience):
			z.t.Error("Zabbix does not end")
			_ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL)
			<-ended
		}
	}
	z.t.Cleanup(func() {
		z.stop()
		if z.t.Failed() {
			text, _ := os.ReadFile(dir + "/log")
			z.t.Logf("%s:\n%s", dir, text[max(0, len(text)-4000):])
		}
	})
	until(z.t, "Zabbix listens", func() bool {
		c, err := net.Dial("tcp", z.address)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
}

// The items of the test.
const (
	zabbixProbe = 50001 + iota
	zabbixNumbers
	zabbixDependent
	zabbixLog
	zabbixPing
	zabbixRule
	zabbixPrototype
	zabbixStatus
)

// zabbixShop are the rows of a web scenario on a site, whose address comes from a macro.
func zabbixShop(site *shop) string {
	return "insert into hostmacro (hostmacroid,hostid,macro,value) values (90002,40002,'{$SITE}','" + site.URL + "');\n" +
		"insert into httptest (httptestid,hostid,name,delay) values (90000,40002,'Shop','1s');\n" +
		"insert into httpstep (httpstepid,httptestid,name,no,url) values (90001,90000,'basket',2,'{$SITE}/{basket}'), (90002,90000,'open',1,'{$SITE}/');\n" +
		"insert into httptest_field (httptest_fieldid,httptestid,type,name,value) values (90000,90000,0,'X-From','branch');\n" +
		"insert into httpstep_field (httpstep_fieldid,httpstepid,type,name,value) values (90000,90002,1,'{basket}','regex:basket=([a-z0-9]+)');\n" +
		fmt.Sprintf("insert into httpstepitem (httpstepitemid,httpstepid,itemid,type) values (90000,90001,%d,0);\n", zabbixStatus)
}

// checkZabbixShop looks at the values of a web scenario: none is there twice. One run may be lost with a kill of the proxy, while it is under way.
func checkZabbixShop(t *testing.T, d *database, site *shop) {
	t.Helper()
	runs := int(site.runs.Load())
	until(t, "Zabbix has the runs of the web scenario", func() bool { return len(d.values("history_uint", zabbixStatus)) >= runs-2 })
	statuses := d.values("history_uint", zabbixStatus)
	for n := 1; n < len(statuses); n++ {
		if statuses[n] <= statuses[n-1] {
			t.Fatalf("the runs of the web scenario have the statuses %q", statuses)
		}
	}
}

// zabbixObjects are a proxy with a key and a host of it, whose macros come from itself, from a template and from all hosts.
func zabbixObjects(a *agent, site *shop) string {
	item := func(id, kind, valueType, flags int, key, more string) string {
		return fmt.Sprintf("insert into items (itemid,type,hostid,name,key_,value_type,flags,interfaceid) values (%d,%d,40002,'%s','%s',%d,%d,null); insert into item_rtdata (itemid) values (%d); %s\n",
			id, kind, key, key, valueType, flags, id, more)
	}
	with := func(id int, set string) string { return fmt.Sprintf("update items set %s where itemid=%d;", set, id) }
	step := func(id, item, place, kind int, params string) string {
		return fmt.Sprintf("insert into item_preproc (item_preprocid,itemid,step,type,params) values (%d,%d,%d,%d,'%s');", id, item, place, kind, params)
	}
	return "begin; update hosts set status=1 where status=0;\n" +
		"insert into hosts (hostid,host,name,status,tls_accept,tls_psk_identity,tls_psk) values (40001,'branch','branch',5,2,'branch key','" + pskText + "');\n" +
		"insert into hosts (hostid,host,name,status) values (40003,'T','T',3);\n" +
		"insert into hosts (hostid,host,name,status,proxy_hostid,tls_accept,tls_psk_identity,tls_psk) values (40002,'db1','db1',0,40001,3,'agent key','" + pskText + "');\n" +
		"insert into hosts_groups (hostgroupid,hostid,groupid) select 90000,40002,min(groupid) from hstgrp;\n" +
		"insert into hosts_templates (hosttemplateid,hostid,templateid) values (90000,40002,40003);\n" +
		"insert into hostmacro (hostmacroid,hostid,macro,value) values (90000,40003,'{$TEN}','10'), (90001,40002,'{$LOG}','" + a.log + "');\n" +
		"insert into globalmacro (globalmacroid,macro,value) values (90000,'{$AGENT.PORT}','" + strconv.Itoa(a.port) + "');\n" +
		"insert into interface (interfaceid,hostid,main,type,useip,ip,port) values (40001,40002,1,1,1,'127.0.0.1','{$AGENT.PORT}');\n" +
		item(zabbixProbe, 2, 3, 0, "probe", "") +
		item(zabbixNumbers, 2, 3, 0, "numbers", step(1, zabbixNumbers, 1, 1, "{$TEN}")) +
		item(zabbixDependent, 18, 4, 0, "dependent", with(zabbixDependent, fmt.Sprint("master_itemid=", zabbixNumbers))+
			step(2, zabbixDependent, 2, 5, "^(.*)$\n<\\1>")+step(3, zabbixDependent, 1, 21, "return value +\n\"!\";")) +
		item(zabbixLog, 7, 2, 0, "log[{$LOG},,,1000]", with(zabbixLog, "delay='1s'")) +
		item(zabbixPing, 0, 3, 0, "agent.ping", with(zabbixPing, "delay='1s', interfaceid=40001")) +
		item(zabbixRule, 2, 4, 1, "found", "") +
		item(zabbixPrototype, 2, 3, 2, "of[{#N}]", fmt.Sprintf("insert into item_discovery (itemdiscoveryid,itemid,parent_itemid) values (90000,%d,%d);", zabbixPrototype, zabbixRule)) +
		item(zabbixStatus, 9, 3, 0, shopStatus, zabbixShop(site)) +
		"commit;"
}

// Our proxy works for Zabbix's own server 6.0 as for ours: over an outage of the server and kills of agent and proxy nothing is lost or doubled.
func TestTidemarkProxy_zabbixServer(t *testing.T) {
	t.Parallel()
	d := startDatabase(t)
	z := &zabbixServer{t: t, dir: t.TempDir(), address: freeport.Address(t)}
	psk := write(t, z.dir, "psk", pskText)
	p := startTidemarkProxy(t, z.address, "  tls: {connect: psk, psk_identity: branch key, psk_file: "+psk+"}\n")
	a := newAgent(t, p)
	site := startShop(t)
	d.run("zabbix", zabbixObjects(a, site))
	z.start(d)
	began := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	until(t, "the proxy has its configuration", func() bool { return sendTo(p.address, fmt.Sprintf("db1 probe %d 0 1\n", began.Unix())) })
	send := func(from, to int) {
		t.Helper()
		until(t, "the proxy takes all values", func() bool { return sendTo(p.address, numbered(began, from, to)) })
	}
	a.lines(0, 100)
	a.start()
	send(0, 200)
	until(t, "a large discovery is taken", func() bool { return sendTo(p.address, "db1 found 0 0 "+quotedValue(payload())+"\n") })
	until(t, "the first values are at Zabbix", func() bool {
		return len(d.values("history_uint", zabbixNumbers)) == 200 && len(d.values("history_log", zabbixLog)) == 100
	})
	// What is found waits in the memory of Zabbix's server after it was acknowledged, and goes with its process.
	until(t, "Zabbix knows what a large discovery found", func() bool { return d.run("zabbix", "select count(*) from items where key_='of[899]'") == "1" })
	z.stop()
	send(200, 3200)
	a.kill()
	a.lines(100, 200)
	p.restart()
	a.start()
	send(3200, 3300)
	z.start(d)
	until(t, "the proxy catches up", func() bool { return len(d.values("history_uint", zabbixNumbers)) > 200 })
	p.restart()
	a.lines(200, 250)
	send(3300, 3400)
	until(t, "all values are at Zabbix", func() bool {
		return len(d.values("history_uint", zabbixNumbers)) >= 3400 && len(d.values("history_text", zabbixDependent)) >= 3400 && len(d.values("history_log", zabbixLog)) >= 250
	})
	var numbers, dependent, lines []string
	for n := range 3400 {
		numbers, dependent = append(numbers, strconv.Itoa(10*n)), append(dependent, fmt.Sprintf("<%d!>", 10*n))
	}
	for n := range 250 {
		lines = append(lines, fmt.Sprintf("line %d", n))
	}
	same := func(table string, item int, want []string) {
		t.Helper()
		if got := d.values(table, item); !slices.Equal(got, want) {
			t.Errorf("item %d: found %d values %.200v, want %d", item, len(got), got, len(want))
		}
	}
	same("history_uint", zabbixNumbers, numbers)
	same("history_text", zabbixDependent, dependent)
	same("history_log", zabbixLog, lines)
	checkZabbixShop(t, d, site)
	until(t, "Zabbix knows that the agent answers", func() bool { return d.run("zabbix", "select available from interface where interfaceid=40001") == "1" })
	until(t, "Zabbix knows how far the log was read", func() bool {
		size, err := os.Stat(a.log)
		return err == nil && d.run("zabbix", fmt.Sprintf("select lastlogsize from item_rtdata where itemid=%d", zabbixLog)) == strconv.FormatInt(size.Size(), 10)
	})
	until(t, "nothing waits in the proxy and nothing is wrong", func() bool {
		st := p.state()
		return st.Connected && st.Hosts == 1 && st.Waiting < 10 && st.Dropped == 0 && len(st.Problems) == 0
	})
}
