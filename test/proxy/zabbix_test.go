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
	"testing"
	"time"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

const (
	// unpacked is where install.sh puts the peer.
	unpacked = "/var/cache/tidemark-test/zabbix-proxy"
	pskText  = "8f1c2b7a9d3e4f5061728394a5b6c7d88f1c2b7a9d3e4f5061728394a5b6c7d8"
)

// zabbixProxy is a zabbix_proxy 6.0.
type zabbixProxy struct {
	t       *testing.T
	dir     string
	address string
	config  string
	starts  int
	kill    func()
}

// withPSK is how a proxy connects with a pre-shared key.
const withPSK = "TLSConnect=psk\nTLSPSKIdentity=branch key\nTLSPSKFile=%s/psk\n"

// startZabbixProxy starts a proxy; secured are the settings of its connections, with the proxy's folder in place of %s.
func startZabbixProxy(t *testing.T, s *server, secured string) *zabbixProxy {
	t.Helper()
	p := &zabbixProxy{t: t, dir: t.TempDir(), address: freeport.Address(t)}
	schema := exec.Command("sh", "-c", "zcat "+unpacked+"/usr/share/zabbix-proxy-sqlite3/schema.sql.gz | sqlite3 "+p.dir+"/proxy.db")
	if out, err := schema.CombinedOutput(); err != nil {
		t.Fatalf("make the database of zabbix_proxy: %v\n%s", err, out)
	}
	ip, port, _ := net.SplitHostPort(p.address)
	_, serverPort, _ := net.SplitHostPort(s.trapper)
	config := fmt.Sprintf(`ProxyMode=0
Server=127.0.0.1
ServerPort=%s
Hostname=branch
ListenIP=%s
ListenPort=%s
LogType=console
DBName=%[4]s/proxy.db
ConfigFrequency=1
HeartbeatFrequency=1
AllowRoot=1
StartPollers=1
StartHTTPPollers=1
StartPingers=0
StartDiscoverers=0
StartTrappers=2
StartPreprocessors=1
StartPollersUnreachable=1
StartDBSyncers=1
HousekeepingFrequency=0
UnreachableDelay=1
UnreachablePeriod=1
UnavailableDelay=1
`, serverPort, ip, port, p.dir) + strings.ReplaceAll(secured, "%s", p.dir)
	p.config = config
	p.write("psk", pskText+"\n")
	p.start()
	return p
}

func (p *zabbixProxy) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// start starts the proxy. Each start has a folder of its own for sockets: the processes of a killed one may still be dying.
func (p *zabbixProxy) start() {
	p.t.Helper()
	p.starts++
	dir := filepath.Join(p.dir, strconv.Itoa(p.starts))
	if err := os.Mkdir(dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	p.write("proxy.conf", p.config+fmt.Sprintf("PidFile=%[1]s/pid\nSocketDir=%[1]s\n", dir))
	p.kill = launch.Run(p.t, filepath.Join(p.dir, "proxy.log"), unpacked+"/usr/sbin/zabbix_proxy", "-f", "-c", filepath.Join(p.dir, "proxy.conf"))
}

// send sends values to the proxy as lines of zabbix_sender, and reports whether it took all of them.
func (p *zabbixProxy) send(lines string) bool { return sendTo(p.address, lines) }

// kept is how many values of what the test sends the proxy has in its database, sent or not; those of checks come by themselves.
func (p *zabbixProxy) kept() int {
	out, err := exec.Command("sqlite3", "-cmd", ".timeout 5000", p.dir+"/proxy.db",
		"select count(*) from proxy_history h join items i on i.itemid=h.itemid where i.key_ in ('numbers','dependent')").Output()
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	return n
}

// numbered are the lines of values from to below to, each a millisecond behind the one before.
func numbered(began time.Time, from, to int) string {
	var b strings.Builder
	for n := from; n < to; n++ {
		at := began.Add(time.Duration(n) * time.Millisecond)
		fmt.Fprintf(&b, "db1 numbers %d %d %d\n", at.Unix(), at.Nanosecond(), n)
	}
	return b.String()
}

// A zabbix_proxy gets its configuration and brings values, agents that register themselves and the state of interfaces. Neither an outage nor
// a kill of either loses or doubles a value, and what the proxy preprocessed is not preprocessed again.
func TestZabbixProxy(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	psk := filepath.Join(s.dir, "psk")
	if err := os.WriteFile(psk, []byte(pskText), 0o600); err != nil {
		t.Fatal(err)
	}
	s.tell("proxies", "add", "branch", "--accept", "psk", "--psk-identity", "branch key", "--psk-file", psk)
	silent := freeport.Port(t)
	_, open, _ := net.SplitHostPort(s.http)
	s.importHosts(object{
		"host": "db1", "proxy": object{"name": "branch"},
		"interfaces": []object{{"ip": "127.0.0.1", "port": strconv.Itoa(silent), "interface_ref": "if1"}},
		"macros":     []object{{"macro": "{$PORT}", "type": "SECRET_TEXT", "value": open}},
		"items": []object{
			{"name": "probe", "type": "TRAP", "key": "probe", "delay": "0", "value_type": "UNSIGNED"},
			{
				"name": "numbers", "type": "TRAP", "key": "numbers", "delay": "0", "value_type": "UNSIGNED",
				"preprocessing": []object{{"type": "MULTIPLIER", "parameters": []string{"10"}}},
			},
			{
				"name": "dependent", "type": "DEPENDENT", "key": "dependent", "delay": "0", "value_type": "TEXT", "master_item": object{"key": "numbers"},
				"preprocessing": []object{{"type": "REGEX", "parameters": []string{"^(.*)$", "<\\1>"}}},
			},
			{"name": "ready", "type": "HTTP_AGENT", "key": "ready", "delay": "1s", "value_type": "TEXT", "url": "http://" + s.http + "/-/ready", "interface_ref": "if1"},
			{"name": "ping", "type": "ZABBIX_PASSIVE", "key": "agent.ping", "delay": "1s", "value_type": "UNSIGNED", "interface_ref": "if1"},
			{"name": "open", "type": "SIMPLE", "key": "net.tcp.service[tcp,{HOST.CONN},{$PORT}]", "delay": "1s", "value_type": "UNSIGNED", "interface_ref": "if1"},
		},
	})
	p := startZabbixProxy(t, s, withPSK)
	began := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	until(t, "the proxy takes values", func() bool { return p.send(fmt.Sprintf("db1 probe %d 0 1\n", began.Unix())) })
	until(t, "values of a check that the proxy makes arrive", func() bool { return len(s.values("db1", "ready")) > 0 })
	until(t, "a check with a secret macro in its key is made with its value", func() bool {
		return slices.Contains(s.values("db1", "net.tcp.service[tcp,{HOST.CONN},{$PORT}]"), "1")
	})

	send := func(from, to int) {
		t.Helper()
		until(t, "the proxy takes all values", func() bool { return p.send(numbered(began, from, to)) })
	}
	send(0, 200)
	until(t, "the first values are at the server", func() bool { return len(s.values("db1", "numbers")) == 200 })
	s.kill()
	before := p.kept()
	send(200, 3200)
	// zabbix_proxy takes values before they are in its database; a kill would lose those.
	until(t, "the proxy keeps the values", func() bool { return p.kept() >= before+2*3000 })
	p.kill()
	p.start()
	s.start()
	until(t, "the proxy catches up", func() bool { return len(s.values("db1", "numbers")) > 200 })
	s.restart()
	send(3200, 3300)
	until(t, "all values are at the server", func() bool {
		return len(s.values("db1", "numbers")) >= 3300 && len(s.values("db1", "dependent")) >= 3300
	})
	var want, dependent []string
	for n := range 3300 {
		want, dependent = append(want, strconv.Itoa(10*n)), append(dependent, fmt.Sprintf("<%d>", 10*n))
	}
	same := func(key string, want []string) {
		t.Helper()
		got := s.values("db1", key)
		if slices.Reverse(got); len(got) > 1 && got[0] != want[0] {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: found %d values %.200v, want %d", key, len(got), got, len(want))
		}
	}
	same("numbers", want)
	same("dependent", dependent)
	checkProxyState(t, s, p)
}

// checkProxyState looks at what the proxy reports besides values.
func checkProxyState(t *testing.T, s *server, p *zabbixProxy) {
	t.Helper()
	checkReported(t, s, p.address, "unavailable")
	var list struct {
		Proxies []struct {
			Name, Version string
			Hosts         int
			Backlog       bool
		}
	}
	s.get("/api/proxies", nil, &list)
	if len(list.Proxies) != 1 || list.Proxies[0].Hosts != 2 || !strings.HasPrefix(list.Proxies[0].Version, "6.0") || list.Proxies[0].Backlog {
		t.Errorf("proxies: %+v", list.Proxies)
	}
}

// checkReported looks at the registration of an agent and the state of an interface that a proxy reports.
func checkReported(t *testing.T, s *server, address, state string) {
	t.Helper()
	ask := `{"request":"active checks","host":"new one","host_metadata":"Linux","ip":"127.0.0.1"}`
	until(t, "an agent that registered at the proxy is a host of it", func() bool {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		defer c.Close()
		fmt.Fprintf(c, "ZBXD\x01%s%s", []byte{byte(len(ask)), 0, 0, 0, 0, 0, 0, 0}, ask)
		_, _ = c.Read(make([]byte, 1024))
		return len(s.items("new one")) > 0
	})
	var hosts struct{ Hosts []struct{ ID, Host string } }
	s.get("/api/hosts", nil, &hosts)
	until(t, "the proxy says that the agent is "+state, func() bool {
		for _, h := range hosts.Hosts {
			var faces struct{ Interfaces []struct{ State string } }
			if s.get("/api/hosts/"+h.ID+"/interfaces", nil, &faces); h.Host == "db1" && len(faces.Interfaces) == 1 {
				return faces.Interfaces[0].State == state
			}
		}
		return false
	})
}
