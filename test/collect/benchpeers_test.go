package collect

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect/httpagent"
	"tidemark/collect/poller"
	"tidemark/collect/snmp"
	"tidemark/collect/zbxagent"
	"tidemark/model"
	"tidemark/test/freeport"
	"tidemark/test/launch"
)

const (
	// warm is how long each poller runs before it is measured: Zabbix finds out by trying how many variables a device answers at once.
	warm = 10 * time.Second
	// zabbixProxy is where test/proxy/install.sh unpacks the peer: its pollers are those of the server.
	zabbixProxy = "/var/cache/tidemark-test/zabbix-proxy"
	tick        = 10 * time.Millisecond // of the times in /proc
)

// load is what both pollers are given: hosts of one interface each, whose items are due every second.
type load struct {
	name, address string
	hosts, items  int
	kind          poller.Kind
	// iface is the type of the interface in Zabbix's tables, 0 for none.
	iface int
	item  func(n int) model.Item
}

func loads(b *testing.B) []load {
	b.Helper()
	devices, web := snmp.New(snmp.Options{}), httpagent.New(httpagent.Options{})
	b.Cleanup(func() { _, _ = devices.Close(), web.Close() })
	agent, device, site := startAgent(b), startSNMP(b, b.TempDir()), startWeb(b)
	return []load{
		{"agent", agent, 1000, 1, zbxagent.New(zbxagent.Options{}).Kind(), 1, func(int) model.Item {
			return model.Item{Type: model.PassiveAgent, Key: "agent.ping"}
		}},
		{"snmp", device, 50, 100, devices.Kind(), 2, func(n int) model.Item {
			return model.Item{Type: model.SNMPAgent, Key: "v" + strconv.Itoa(n), Collect: &model.Collect{SNMPOID: fmt.Sprintf("1.3.6.1.2.1.1.%d.0", 4+n%3)}}
		}},
		{"http", site, 1000, 1, web.Kind(), 0, func(int) model.Item {
			return model.Item{Type: model.HTTPAgent, Key: "page", Collect: &model.Collect{HTTP: &model.HTTPRequest{URL: "http://" + site, Method: "GET", StatusCodes: "200", Retrieve: "BODY"}}}
		}},
	}
}

// BenchmarkPeers gives the same hosts to our poller and to those of Zabbix 6.0, one after the other.
func BenchmarkPeers(b *testing.B) {
	for _, l := range loads(b) {
		b.Run("tidemark-"+l.name, func(b *testing.B) { ourPoller(b, l) })
		b.Run("zabbix-"+l.name, func(b *testing.B) { zabbixPoller(b, l) })
	}
}

// span is how long a poller is measured, 15 s unless BENCHTIME says something else.
func span() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("BENCHTIME")); err == nil && d >= time.Second {
		return d
	}
	return 15 * time.Second
}

// counter is a sink that counts values.
type counter struct{ values atomic.Int64 }

func (c *counter) Put(_ context.Context, batch *model.Batch) error {
	c.values.Add(int64(batch.Len()))
	batch.Free()
	return nil
}

// ourPoller measures this process, which does nothing else meanwhile.
func ourPoller(b *testing.B, l load) {
	set, sink := metrics.NewSet(), &counter{}
	p := poller.New(poller.Options{Sink: sink, Kinds: []poller.Kind{l.kind}, Metrics: set, Ticks: poller.SystemTicks})
	for h := range l.hosts {
		access := &model.Interface{Type: model.SNMPInterface, SNMP: &model.SNMPAccess{Version: "SNMPV2", Community: "public"}}
		tasks := make([]poller.Task, l.items)
		for n := range tasks {
			item := l.item(n)
			item.ID, item.Delay = model.ItemID(h*l.items+n+1), "1s"
			tasks[n] = poller.Task{Item: &item, Address: l.address, Interface: access}
			if l.iface == 0 {
				tasks[n].Address, tasks[n].Interface = "", nil
			}
		}
		if err := p.Apply(model.HostID(h+1), tasks); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	time.Sleep(warm) //nolint:forbidigo // the poller runs meanwhile
	before, values := cpu(b), sink.values.Load()
	time.Sleep(span()) //nolint:forbidigo // the poller runs meanwhile
	spent, got := cpu(b)-before, sink.values.Load()-values
	cancel()
	<-done
	report(b, float64(got), spent)
}

// report says how many checks a core made in a second; a poller that made a small part of them has measured something else.
func report(b *testing.B, checks float64, spent time.Duration) {
	b.Helper()
	if checks == 0 || spent == 0 {
		b.Fatalf("%g checks in %s of the processor's time", checks, spent)
	}
	b.ReportMetric(checks/spent.Seconds(), "checks/core-s")
	b.ReportMetric(checks/span().Seconds(), "checks/s")
}

// zabbixPoller measures a zabbix_proxy whose configuration is in its database already, as if a server had sent it.
func zabbixPoller(b *testing.B, l load) {
	dir, address := b.TempDir(), freeport.Address(b)
	database := filepath.Join(dir, "proxy.db")
	fill := exec.Command("sh", "-c", "(zcat "+zabbixProxy+"/usr/share/zabbix-proxy-sqlite3/schema.sql.gz; cat) | sqlite3 "+database)
	fill.Stdin = strings.NewReader(zabbixTables(l))
	if out, err := fill.CombinedOutput(); err != nil {
		b.Fatalf("make the database of zabbix_proxy: %v\n%s", err, out)
	}
	ip, port, _ := net.SplitHostPort(address)
	config := fmt.Sprintf("ProxyMode=1\nServer=127.0.0.1\nHostname=bench\nListenIP=%s\nListenPort=%s\nLogType=console\nDBName=%s\nAllowRoot=1\nStartPollers=8\nStartPingers=0\nStartDiscoverers=0\nStartTrappers=1\nCacheSize=64M\nPidFile=%[4]s/pid\nSocketDir=%[4]s\n", ip, port, database, dir)
	pid, kill := launch.Group(b, filepath.Join(dir, "log"), zabbixProxy+"/usr/sbin/zabbix_proxy", "-f", "-c", write(b, dir, "conf", config))
	defer kill()
	time.Sleep(warm) //nolint:forbidigo // the poller runs meanwhile
	pollers, all := groupTime(b, pid, "poller #")
	values := zabbixValues(b, database)
	time.Sleep(span()) //nolint:forbidigo // the poller runs meanwhile
	pollersAfter, allAfter := groupTime(b, pid, "poller #")
	got := zabbixValues(b, database) - values
	report(b, got, pollersAfter-pollers)
	b.ReportMetric(got/(allAfter-all).Seconds(), "all/core-s")
}

// zabbixTables is the configuration of a load as rows of Zabbix's tables.
func zabbixTables(l load) string {
	var t strings.Builder
	t.WriteString("begin;\n")
	ip, port, _ := net.SplitHostPort(l.address)
	for h := 1; h <= l.hosts; h++ {
		fmt.Fprintf(&t, "insert into hosts (hostid, host, name) values (%[1]d, 'h%[1]d', 'h%[1]d');\n", h)
		iface := "null"
		if l.iface != 0 {
			iface = strconv.Itoa(h)
			fmt.Fprintf(&t, "insert into interface (interfaceid, hostid, main, type, ip, port) values (%[1]d, %[1]d, 1, %[2]d, '%[3]s', '%[4]s');\n", h, l.iface, ip, port)
		}
		if l.iface == 2 {
			fmt.Fprintf(&t, "insert into interface_snmp (interfaceid, version, bulk, community) values (%d, 2, 1, 'public');\n", h)
		}
		for n := range l.items {
			item, id, oid, url := l.item(n), (h-1)*l.items+n+1, "", ""
			if c := item.Collect; c != nil {
				oid = c.SNMPOID
				if c.HTTP != nil {
					url = c.HTTP.URL
				}
			}
			fmt.Fprintf(&t, "insert into items (itemid, type, snmp_oid, hostid, name, key_, delay, value_type, interfaceid, url) values (%d, %d, '%s', %d, 'n', '%s', '1s', 1, %s, '%s');\ninsert into item_rtdata (itemid) values (%[1]d);\n",
				id, item.Type, oid, h, item.Key, iface, url)
		}
	}
	return t.String() + "commit;\n"
}

// zabbixValues is how many values a proxy has made, none of which may be an error.
func zabbixValues(b *testing.B, database string) float64 {
	b.Helper()
	out, err := exec.Command("sqlite3", "-cmd", ".timeout 20000", database, "select count(*), sum(state) from proxy_history").Output()
	if err != nil {
		b.Fatal(err)
	}
	var n, bad float64
	if _, err := fmt.Sscanf(string(out), "%g|%g", &n, &bad); err != nil || bad > 0 {
		b.Fatalf("values of zabbix_proxy: %s: %v", out, err)
	}
	return n
}

// groupTime is the time of the processor that the processes of a group have used: of those whose command line has a part, and of all.
func groupTime(b *testing.B, group int, part string) (some, all time.Duration) {
	b.Helper()
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, f := range folders {
		stat, err := os.ReadFile(filepath.Join(f, "stat"))
		if err != nil {
			continue
		}
		// The name, in parentheses, may have spaces; fields 5, 14 and 15 of the manual are the group and the times.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if fields[2] != strconv.Itoa(group) {
			continue
		}
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		spent := time.Duration(user+system) * tick
		all += spent
		if command, err := os.ReadFile(filepath.Join(f, "cmdline")); err == nil && strings.Contains(string(command), part) {
			some += spent
		}
	}
	return some, all
}
