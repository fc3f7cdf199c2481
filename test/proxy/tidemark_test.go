package proxy

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// tidemarkProxy is the proxy under test.
type tidemarkProxy struct {
	t             *testing.T
	dir           string
	address, http string
	kill          func()
}

// startTidemarkProxy starts a proxy with an empty data folder; config is more of its section proxy, in YAML with two spaces before each line.
func startTidemarkProxy(t *testing.T, server, config string) *tidemarkProxy {
	t.Helper()
	p := &tidemarkProxy{t: t, dir: t.TempDir(), address: freeport.Address(t), http: freeport.Address(t)}
	config, port, _ := strings.Cut(config, portMark)
	write(t, p.dir, "proxy.yaml", fmt.Sprintf("data: %s/data\nhttp: {listen: %q}\ntrapper: {listen: %q%s}\nproxy:\n  server: %q\n  name: branch\n  refresh: 1s\n",
		p.dir, p.http, p.address, port, server)+config)
	p.start()
	return p
}

// portMark begins what more is said of a proxy's port, at the end of its settings.
const portMark = "PORT"

// portCertificate has the port of a proxy speak with the certificate of the branch.
func portCertificate(a *authority) string {
	return portMark + fmt.Sprintf(", tls: {ca_file: %[1]s/ca.pem, certificate_file: %[1]s/branch.pem, key_file: %[1]s/branch.key}", a.dir)
}

func (p *tidemarkProxy) start() {
	p.t.Helper()
	p.kill = launch.Run(p.t, filepath.Join(p.dir, "proxy.log"), binary, "proxy", "--config", filepath.Join(p.dir, "proxy.yaml"))
	until(p.t, "the proxy listens", func() bool {
		c, err := net.Dial("tcp", p.address)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
}

// restart kills the proxy as a power cut would and starts it again.
func (p *tidemarkProxy) restart() {
	p.t.Helper()
	p.kill()
	p.start()
}

// state is what the proxy says of itself.
func (p *tidemarkProxy) state() (s struct {
	Connected bool
	Hosts     int
	Waiting   int `json:"waiting_values"`
	Dropped   int `json:"dropped_values"`
	Problems  []string
},
) {
	p.t.Helper()
	resp, err := http.Get("http://" + p.http + "/api/state")
	if err != nil {
		return s
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		p.t.Error(err)
	}
	return s
}

// agent is Debian's zabbix_agentd, which follows a log.
type agent struct {
	t    *testing.T
	dir  string
	log  string
	port int
	kill func()
}

func newAgent(t *testing.T, p *tidemarkProxy) *agent {
	t.Helper()
	a := &agent{t: t, dir: t.TempDir(), port: freeport.Port(t)}
	a.log = filepath.Join(a.dir, "app.log")
	_, port, _ := net.SplitHostPort(p.address)
	write(t, a.dir, "psk", pskText+"\n")
	write(t, a.dir, "agent.conf", fmt.Sprintf("PidFile=%[1]s/pid\nLogType=console\nServer=127.0.0.1\nListenIP=127.0.0.1\nListenPort=%[2]d\nServerActive=127.0.0.1:%[3]s\n"+
		"Hostname=db1\nBufferSend=1\nStartAgents=1\nAllowRoot=1\nTLSConnect=psk\nTLSAccept=unencrypted\nTLSPSKIdentity=agent key\nTLSPSKFile=%[1]s/psk\n", a.dir, a.port, port))
	return a
}

func (a *agent) start() {
	a.t.Helper()
	a.kill = launch.Run(a.t, filepath.Join(a.dir, "agent.log"), unpacked+"/usr/sbin/zabbix_agentd", "-f", "-c", filepath.Join(a.dir, "agent.conf"))
}

// lines appends numbered lines to the log.
func (a *agent) lines(from, to int) {
	a.t.Helper()
	f, err := os.OpenFile(a.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		a.t.Fatal(err)
	}
	defer f.Close()
	for n := from; n < to; n++ {
		fmt.Fprintf(f, "line %d\n", n)
	}
}

// secretLog is the key of a log whose name is in a secret macro: the agent gets it expanded, people see it as it is.
const secretLog = "log[{$LOG},,,1000]"

// branchHost is the host that the tests with our proxy use.
func branchHost(agentPort int, ready, log string) object {
	return object{
		"host": "db1", "proxy": object{"name": "branch"},
		"interfaces": []object{{"ip": "127.0.0.1", "port": strconv.Itoa(agentPort), "interface_ref": "if1"}},
		"macros":     []object{{"macro": "{$TEN}", "value": "10"}, {"macro": "{$LOG}", "type": "SECRET_TEXT", "value": log}},
		"items": []object{
			{"name": "probe", "type": "TRAP", "key": "probe", "delay": "0", "value_type": "UNSIGNED"},
			{
				"name": "numbers", "type": "TRAP", "key": "numbers", "delay": "0", "value_type": "UNSIGNED",
				"preprocessing": []object{{"type": "MULTIPLIER", "parameters": []string{"{$TEN}"}}},
			},
			{
				"name": "dependent", "type": "DEPENDENT", "key": "dependent", "delay": "0", "value_type": "TEXT", "master_item": object{"key": "numbers"},
				"preprocessing": []object{{"type": "REGEX", "parameters": []string{"^(.*)$", "<\\1>"}}},
			},
			{"name": "ready", "type": "HTTP_AGENT", "key": "ready", "delay": "1s", "value_type": "TEXT", "url": ready, "interface_ref": "if1"},
			{"name": "ping", "type": "ZABBIX_PASSIVE", "key": "agent.ping", "delay": "1s", "value_type": "UNSIGNED", "interface_ref": "if1"},
			{"name": "log", "type": "ZABBIX_ACTIVE", "key": secretLog, "delay": "1s", "value_type": "LOG"},
		},
		"discovery_rules": []object{{
			"name": "found", "type": "TRAP", "key": "found", "delay": "0",
			"item_prototypes": []object{{"name": "of {#N}", "type": "TRAP", "key": "of[{#N}]", "delay": "0", "value_type": "UNSIGNED"}},
		}},
	}
}

// payload is what a discovery rule finds; it is larger than any text that is kept.
func payload() string {
	list := make([]map[string]string, 900)
	for i := range list {
		list[i] = map[string]string{"{#N}": strconv.Itoa(i), "{#PAD}": strings.Repeat("x", 80)}
	}
	text, _ := json.Marshal(list)
	return string(text)
}

// An agent and senders speak to our proxy, and that to our server, each with a pre-shared key. Every one of the three is killed in the middle,
// and the server is away for a while: nothing is lost, nothing is doubled.
func TestTidemarkProxy(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	psk := write(t, s.dir, "psk", pskText)
	s.tell("proxies", "add", "branch", "--accept", "psk", "--psk-identity", "branch key", "--psk-file", psk)
	page := &server{t: t, http: freeport.Address(t)}
	p := startTidemarkProxy(t, s.trapper, fmt.Sprintf("  keep: 1h\n  page: %q\n  tls: {connect: psk, psk_identity: branch key, psk_file: %s}\n", page.http, psk))
	a := newAgent(t, p)
	s.importHosts(branchHost(a.port, "http://"+s.http+"/-/ready", a.log))
	s.setTLS("db1", `{"connect":"unencrypted","accept":["unencrypted","psk"],"psk_identity":"agent key","psk":"`+pskText+`"}`)
	began := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	until(t, "the proxy has its configuration", func() bool { return sendTo(p.address, fmt.Sprintf("db1 probe %d 0 1\n", began.Unix())) })
	send := func(from, to int) {
		t.Helper()
		until(t, "the proxy takes all values", func() bool { return sendTo(p.address, numbered(began, from, to)) })
	}
	logged := func() int { return len(s.values("db1", secretLog)) }
	a.lines(0, 100)
	a.start()
	until(t, "lines of the log are at the server", func() bool { return logged() == 100 })
	send(0, 200)
	until(t, "a large discovery is taken", func() bool {
		return sendTo(p.address, "db1 found 0 0 "+quotedValue(payload())+"\n")
	})

	a.lines(100, 150)
	s.kill()
	send(200, 3200)
	a.lines(150, 200)
	p.restart()
	until(t, "the page of the proxy shows values while the server is away", func() bool { return len(page.values("db1", "numbers")) > 0 })
	until(t, "the page of the proxy shows the log under a key without the value of its secret macro", func() bool {
		i := page.items("db1")[secretLog]
		return i.Last != nil && i.Error == ""
	})
	if n := p.state().Waiting; n < 2*3000 {
		t.Errorf("after a kill %d values wait in the proxy, want at least %d", n, 2*3000)
	}
	resp, err := http.Post("http://"+page.http+"/api/import", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a change on the page of the proxy is answered %s", resp.Status)
	}
	a.kill()
	a.lines(200, 250)
	a.start()
	send(3200, 3300)
	s.start()
	until(t, "the proxy catches up", func() bool { return len(s.values("db1", "numbers")) > 1000 })
	p.restart()
	s.restart()
	a.kill()
	a.start()
	a.lines(250, 300)
	send(3300, 3400)
	until(t, "all values are at the server", func() bool {
		return len(s.values("db1", "numbers")) >= 3400 && len(s.values("db1", "dependent")) >= 3400 && logged() >= 300
	})
	var numbers, dependent, lines []string
	for n := range 3400 {
		numbers, dependent = append(numbers, strconv.Itoa(10*n)), append(dependent, fmt.Sprintf("<%d>", 10*n))
	}
	for n := range 300 {
		lines = append(lines, fmt.Sprintf("line %d", n))
	}
	same := func(key string, want []string) {
		t.Helper()
		if got := inOrder(s.values("db1", key), want[0]); !slices.Equal(got, want) {
			t.Errorf("%s: found %d values %.200v, want %d", key, len(got), got, len(want))
		}
	}
	same("numbers", numbers)
	same("dependent", dependent)
	same(secretLog, lines)
	checkProxied(t, s, p)
}

// quotedValue is a value as zabbix_sender reads it from a line.
func quotedValue(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// setTLS sets how the agent of a host may speak.
func (s *server) setTLS(host, body string) {
	s.t.Helper()
	var hosts struct{ Hosts []struct{ ID, Host string } }
	s.get("/api/hosts", url.Values{"search": {host}}, &hosts)
	for _, h := range hosts.Hosts {
		if h.Host != host {
			continue
		}
		r, err := http.NewRequest(http.MethodPut, "http://"+s.http+"/api/hosts/"+h.ID+"/tls", strings.NewReader(body))
		if err != nil {
			s.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			s.t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			s.t.Fatalf("set TLS: %s", resp.Status)
		}
		return
	}
	s.t.Fatalf("there is no host %s", host)
}

// checkProxied looks at what the proxy reports besides values.
func checkProxied(t *testing.T, s *server, p *tidemarkProxy) {
	t.Helper()
	until(t, "a check that the proxy makes has values", func() bool { return len(s.values("db1", "ready")) > 0 })
	until(t, "what a large discovery found is there", func() bool { _, ok := s.items("db1")["of[899]"]; return ok })
	checkReported(t, s, p.address, "available")
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
	until(t, "nothing waits in the proxy and nothing is wrong", func() bool {
		st := p.state()
		return st.Connected && st.Hosts == 2 && st.Waiting < 10 && st.Dropped == 0 && len(st.Problems) == 0
	})
}
