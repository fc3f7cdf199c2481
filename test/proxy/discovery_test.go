package proxy

import (
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// startNeighbour starts an agent for network discovery to find, and returns its port.
func startNeighbour(t *testing.T) int {
	t.Helper()
	dir, port := t.TempDir(), freeport.Port(t)
	config := write(t, dir, "agent.conf", fmt.Sprintf("PidFile=%[1]s/pid\nLogType=console\nServer=127.0.0.1\nListenIP=127.0.0.1\nListenPort=%[2]d\nHostname=neighbour\nStartAgents=2\nAllowRoot=1\n", dir, port))
	launch.Run(t, filepath.Join(dir, "agent.log"), unpacked+"/usr/sbin/zabbix_agentd", "-f", "-c", config)
	return port
}

// applyDiscovery has the proxy look for the agent and a port, and makes hosts of agents.
func (s *server) applyDiscovery(agent int, open string) {
	s.t.Helper()
	s.tell("discovery", "apply", write(s.t, s.dir, "discovery.yaml", fmt.Sprintf(`
rules:
  - name: Branch
    proxy: branch
    ranges: 127.0.0.1-2
    delay: 10s
    checks:
      - {type: agent, key: agent.hostname, name: agent, ports: '%d'}
      - {type: tcp, ports: '%s'}
    unique: agent
    host_name: agent
actions:
  - name: agents
    event: discovery
    conditions: [{field: check, value: agent}, {field: status, value: up}, {field: proxy, value: branch}]
    operations: [{type: add_group, group: Found}]
`, agent, open)))
}

// discovered checks what the proxy found, and which host was made of it.
func (s *server) discovered(agent int, open string) bool {
	var found struct {
		Hosts []struct {
			Ident, Host string
			Up          bool
			Services    []struct {
				Check string
				Port  int
				Up    bool
				Value string
			}
		}
	}
	s.get("/api/network-discovery/hosts", url.Values{"rule": {"Branch"}}, &found)
	seen := fmt.Sprintf("%+v", found.Hosts)
	ok := strings.Contains(seen, "{Ident:neighbour Host:neighbour Up:true") && strings.Contains(seen, fmt.Sprintf("{Check:agent Port:%d Up:true Value:neighbour}", agent)) &&
		strings.Contains(seen, "{Check:tcp Port:"+open+" Up:true")
	if !ok {
		return false
	}
	var hosts struct {
		Hosts []struct {
			Host, Proxy string
			Groups      []string
		}
	}
	s.get("/api/hosts", nil, &hosts)
	for _, h := range hosts.Hosts {
		if h.Host == "neighbour" {
			return fmt.Sprint(h.Groups) == "[Found]"
		}
	}
	return false
}

// checkDiscovery has a proxy of the server find an agent, over a kill of the server.
func checkDiscovery(t *testing.T, s *server, known func()) {
	t.Helper()
	agent := startNeighbour(t)
	_, open, _ := net.SplitHostPort(s.http)
	s.applyDiscovery(agent, open)
	known()
	until(t, "the proxy found the agent, and a host is made of it", func() bool { return s.discovered(agent, open) })
	s.restart()
	until(t, "the proxy brings more", func() bool {
		var status struct {
			Rules []struct {
				Up     int
				Proxy  string
				LastAt int64 `json:"last_at"`
				Error  string
			}
		}
		s.get("/api/network-discovery/status", nil, &status)
		return len(status.Rules) == 1 && status.Rules[0].Up >= 1 && status.Rules[0].Proxy == "branch" && status.Rules[0].Error == ""
	})
	if out := s.tell("proxies", "list"); !strings.Contains(out, "branch  1 ") {
		t.Errorf("the host that was found is not assigned to the proxy that found it:\n%s", out)
	}
	if !s.discovered(agent, open) {
		t.Error("what was found is lost, or there twice")
	}
}

func TestTidemarkProxy_discovery(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	s.tell("proxies", "add", "branch")
	startTidemarkProxy(t, s.trapper, "")
	checkDiscovery(t, s, func() {})
}

func TestZabbixProxy_discovery(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	s.tell("proxies", "add", "branch")
	p := startZabbixProxy(t, s, "StartDiscoverers=1\n")
	// A discoverer that finds no rule when it starts looks again after a minute only.
	checkDiscovery(t, s, func() {
		until(t, "the proxy knows the rule", func() bool {
			out, err := exec.Command("sqlite3", "-cmd", ".timeout 5000", p.dir+"/proxy.db", "select count(*) from dchecks").Output()
			return err == nil && strings.TrimSpace(string(out)) == "2"
		})
		p.kill()
		p.start()
	})
}

// Our proxy works off the rules of Zabbix's own server.
func TestTidemarkProxy_zabbixServerDiscovery(t *testing.T) {
	t.Parallel()
	d := startDatabase(t)
	z := &zabbixServer{t: t, dir: t.TempDir(), address: freeport.Address(t)}
	startTidemarkProxy(t, z.address, "")
	agent := startNeighbour(t)
	_, open, _ := net.SplitHostPort(z.address)
	d.run("zabbix", zabbixProxied(5, "", "tls_accept=1"))
	d.run("zabbix", zabbixDiscovery(agent, open))
	z.start(d)
	until(t, "Zabbix knows what the proxy found", func() bool {
		return d.run("zabbix", fmt.Sprintf("select count(*) from dservices s join dhosts h using (dhostid) where h.druleid=70000 and h.status=0 and s.ip='127.0.0.1' and s.status=0 and "+
			"(s.dcheckid=70001 and s.value='neighbour' and s.port=%d or s.dcheckid=70002 and s.port=%s)", agent, open)) == "2"
	})
	if n := d.run("zabbix", "select count(*) from dhosts"); n != "1" {
		t.Errorf("Zabbix knows %s hosts, want that which answered", n)
	}
}

// zabbixDiscovery are the rows of a rule of network discovery for proxy 40001.
func zabbixDiscovery(agent int, open string) string {
	return "insert into drules (druleid,proxy_hostid,name,iprange,delay,status) values (70000,40001,'Branch','127.0.0.1-2','{$EVERY}',0);\n" +
		"insert into globalmacro (globalmacroid,macro,value) values (90001,'{$EVERY}','10s');\n" +
		"insert into dchecks (dcheckid,druleid,type,key_,ports,uniq) values (70001,70000,9,'agent.hostname','" + strconv.Itoa(agent) + "',0), (70002,70000,8,'','" + open + "',0);\n"
}
