package proxy

import (
	"fmt"
	"net/url"
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

// startCommandAgent starts Debian's zabbix_agentd, which may run commands, and returns its port.
func startCommandAgent(t *testing.T) int {
	t.Helper()
	dir, port := t.TempDir(), freeport.Port(t)
	config := write(t, dir, "agent.conf", fmt.Sprintf("PidFile=%[1]s/pid\nLogType=console\nServer=127.0.0.1\nListenIP=127.0.0.1\nListenPort=%[2]d\nHostname=db1\nStartAgents=2\nAllowRoot=1\nAllowKey=system.run[*]\n", dir, port))
	launch.Run(t, filepath.Join(dir, "agent.log"), unpacked+"/usr/sbin/zabbix_agentd", "-f", "-c", config)
	return port
}

// try runs a command that speaks to the server and returns what it prints, whether it works or not.
func (s *server) try(args ...string) (string, error) {
	out, err := exec.Command(binary, append(args, "--http", s.http)...).CombinedOutput()
	return string(out), err
}

// throughTasks has a proxy ask for an item at once, and has commands run by an agent behind it and by itself.
func throughTasks(t *testing.T, s *server) {
	t.Helper()
	port := startCommandAgent(t)
	s.importHosts(object{
		"host": "db1", "proxy": object{"name": "branch"},
		"interfaces": []object{{"ip": "127.0.0.1", "port": strconv.Itoa(port), "interface_ref": "if1"}},
		"items": []object{
			{"name": "ping", "type": "ZABBIX_PASSIVE", "key": "agent.ping", "delay": "1h", "value_type": "UNSIGNED", "interface_ref": "if1"},
			{
				"name": "of ping", "type": "DEPENDENT", "key": "of.ping", "delay": "0", "value_type": "TEXT", "master_item": object{"key": "agent.ping"},
				"preprocessing": []object{{"type": "REGEX", "parameters": []string{"^(.*)$", "<\\1>"}}},
			},
		},
	})
	until(t, "the agent runs a command behind the proxy", func() bool {
		out, err := s.try("host", "run", "db1", `echo "agent of $PPID" | cut -c1-5`)
		return err == nil && out == "agent\n"
	})
	until(t, "the proxy is heard of", func() bool {
		_, err := s.try("check", "now", "db1", "agent.ping")
		return err == nil
	})
	// The interval brings one value at most.
	until(t, "a value comes at once", func() bool { return len(s.values("db1", "agent.ping")) >= 1 })
	for n := 2; n <= 3; n++ {
		before := len(s.values("db1", "of.ping"))
		if out := s.tell("check", "now", "db1", "of.ping"); out != "asked for 1 item by proxy branch within seconds\n" {
			t.Errorf("check now: %s", out)
		}
		until(t, "another one comes at once", func() bool { return len(s.values("db1", "of.ping")) > before })
	}
	mark := filepath.Join(s.dir, "mark")
	if out, err := s.try("host", "run", "db1", "echo there > "+mark+" && echo proxy", "--on", "proxy"); err != nil || out != "proxy\n" {
		t.Errorf("a command on the proxy: %v, %s", err, out)
	}
	if text, err := os.ReadFile(mark); err != nil || string(text) != "there\n" {
		t.Errorf("what the command did: %q, %v", text, err)
	}
	if out, err := s.try("host", "run", "db1", "echo wrong >&2; exit 3", "--on", "proxy"); err == nil || !strings.Contains(out, "wrong") {
		t.Errorf("a command that fails: %v, %s", err, out)
	}
}

func TestTasks_zabbixProxy(t *testing.T) {
	t.Parallel()
	t.Run("active", func(t *testing.T) {
		t.Parallel()
		s := startServer(t, "")
		s.tell("proxies", "add", "branch")
		startZabbixProxy(t, s, "EnableRemoteCommands=1\n")
		throughTasks(t, s)
	})
	t.Run("passive", func(t *testing.T) {
		t.Parallel()
		s := startServer(t, "")
		p := passiveZabbix(t, s, "EnableRemoteCommands=1\n")
		s.tell("proxies", "add", "branch", "--address", p.address)
		throughTasks(t, s)
	})
}

func TestTasks_tidemarkProxy(t *testing.T) {
	t.Parallel()
	t.Run("active", func(t *testing.T) {
		t.Parallel()
		s := startServer(t, "")
		s.tell("proxies", "add", "branch")
		startTidemarkProxy(t, s.trapper, "  remote_commands: true\n")
		throughTasks(t, s)
	})
	t.Run("passive", func(t *testing.T) {
		t.Parallel()
		s := startServer(t, "")
		p := passiveTidemark(t, "  remote_commands: true\n")
		s.tell("proxies", "add", "branch", "--address", p.address)
		throughTasks(t, s)
	})
}

// Without a proxy the server has the agent run a command; a proxy that must not, and one that is not there, say so.
func TestTasks_refused(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	port := strconv.Itoa(startCommandAgent(t))
	host := func(name, proxy string) object {
		h := object{"host": name, "interfaces": []object{{"ip": "127.0.0.1", "port": port, "interface_ref": "if1"}}, "items": []object{
			{"name": "ping", "type": "ZABBIX_PASSIVE", "key": "agent.ping", "delay": "1h", "value_type": "UNSIGNED", "interface_ref": "if1"},
		}}
		if proxy != "" {
			h["proxy"] = object{"name": proxy}
		}
		return h
	}
	s.tell("proxies", "add", "branch")
	startTidemarkProxy(t, s.trapper, "")
	s.importHosts(host("near", ""), host("far", "branch"), host("gone", "nobody"))
	until(t, "the agent runs a command", func() bool { out, err := s.try("host", "run", "near", "echo 1 2"); return err == nil && out == "1 2\n" })
	until(t, "the proxy refuses to run a command", func() bool {
		out, err := s.try("host", "run", "far", "echo", "--on", "proxy")
		return err != nil && strings.Contains(out, "proxy.remote_commands")
	})
	for want, args := range map[string][]string{
		"runs no commands itself":          {"host", "run", "near", "echo", "--on", "proxy"},
		"expected agent or proxy":          {"host", "run", "near", "echo", "--on", "server"},
		"the command is empty":             {"host", "run", "near", " "},
		"no host has the name":             {"host", "run", "nobody", "echo"},
		"nothing is heard of proxy nobody": {"host", "run", "gone", "echo"},
		"nothing is heard of":              {"check", "now", "gone"},
	} {
		if out, err := s.try(args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v, %s, want %s", args, err, out, want)
		}
	}
}

// remedies is the alerting configuration of TestTasks_action.
const remedies = `media: [{name: remedy, command: {line: "echo {ALERT.KIND} {EVENT.VALUE} of {HOST.ID} >> %s"}}]
receivers: [{name: machine, media: [{media: remedy, to: host}]}]
actions: [{name: repair, operations: [{receivers: [machine]}]}]
`

// An action has agents run a command, directly and behind a proxy, once for each problem and not at its end; the audit log has it.
func TestTasks_action(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	port := strconv.Itoa(startCommandAgent(t))
	host := func(name, proxy string) object {
		h := object{
			"host": name, "interfaces": []object{{"ip": "127.0.0.1", "port": port, "interface_ref": "if1"}},
			"items": []object{{
				"name": "state", "type": "TRAP", "key": "state", "delay": "0", "value_type": "UNSIGNED",
				"triggers": []object{{"name": "down", "expression": "last(/" + name + "/state)=0", "priority": "HIGH"}},
			}},
		}
		if proxy != "" {
			h["proxy"] = object{"name": proxy}
		}
		return h
	}
	s.tell("proxies", "add", "branch")
	p := startTidemarkProxy(t, s.trapper, "")
	s.importHosts(host("near", ""), host("far", "branch"))
	until(t, "commands run behind the proxy", func() bool { _, err := s.try("host", "run", "far", "echo"); return err == nil })
	until(t, "the agent runs a command", func() bool { _, err := s.try("host", "run", "near", "echo"); return err == nil })
	mark := filepath.Join(s.dir, "mark")
	s.tell("alert", "apply", write(t, s.dir, "alerts.yaml", fmt.Sprintf(remedies, mark)))
	lines := func() []string {
		text, _ := os.ReadFile(mark) // it is not there before the first command
		list := strings.Split(strings.TrimSpace(string(text)), "\n")
		slices.Sort(list)
		return list
	}
	until(t, "values are taken", func() bool {
		return sendTo(s.trapper, fmt.Sprintf("near state %d 0 0\n", time.Now().Unix())) && sendTo(p.address, fmt.Sprintf("far state %d 0 0\n", time.Now().Unix()))
	})
	until(t, "both problems have their command run", func() bool { return len(lines()) >= 2 })
	until(t, "the end of both problems is taken", func() bool {
		return sendTo(s.trapper, fmt.Sprintf("near state %d 0 1\n", time.Now().Unix())) && sendTo(p.address, fmt.Sprintf("far state %d 0 1\n", time.Now().Unix()))
	})
	var problems struct{ Problems []struct{ Host string } }
	until(t, "both problems are over", func() bool {
		s.get("/api/problems", url.Values{"open": {"true"}}, &problems)
		return len(problems.Problems) == 0
	})
	until(t, "alerting has nothing to do", func() bool {
		out, err := s.try("alert", "list", "--state", "waiting")
		return err == nil && !strings.Contains(out, "remedy")
	})
	var hosts struct{ Hosts []struct{ ID, Host string } }
	s.get("/api/hosts", nil, &hosts)
	var want []string
	for _, h := range hosts.Hosts {
		if h.Host == "near" || h.Host == "far" {
			want = append(want, "problem 1 of "+h.ID)
		}
	}
	slices.Sort(want)
	if got := lines(); !slices.Equal(got, want) {
		t.Errorf("the commands wrote %q, want %q", got, want)
	}
	if out := s.tell("audit", "list"); strings.Count(out, "run command") != 2 {
		t.Errorf("the audit log:\n%s", out)
	}
}

// Zabbix's own server has our proxy, active and passive, ask for an item at once and run commands, and hears what became of them.
func TestTasks_zabbixServer(t *testing.T) {
	t.Parallel()
	for name, passive := range map[string]bool{"active": false, "passive": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := startDatabase(t)
			z := &zabbixServer{t: t, dir: t.TempDir(), address: freeport.Address(t), more: "StartProxyPollers=1\nProxyConfigFrequency=2\nProxyDataFrequency=1\n"}
			status, server, config := 5, z.address, "  remote_commands: true\n"
			if passive {
				status, server, config = 6, "127.0.0.1", "  remote_commands: true\n  passive: true\n"
			}
			p := startTidemarkProxy(t, server, config)
			address := ""
			if passive {
				address = p.address
			}
			d.run("zabbix", zabbixProxied(status, address, "tls_accept=1"))
			d.run("zabbix", fmt.Sprintf("insert into interface (interfaceid,hostid,main,type,useip,ip,port) values (40010,40002,1,1,1,'127.0.0.1','%d');\n", startCommandAgent(t))+
				fmt.Sprintf("insert into items (itemid,type,hostid,name,key_,value_type,delay,interfaceid) values (%d,0,40002,'ping','agent.ping',3,'1h',40010); insert into item_rtdata (itemid) values (%[1]d);", zabbixPing))
			z.start(d)
			until(t, "the proxy has its configuration", func() bool { return p.state().Hosts == 1 })
			// Zabbix gives numbers of its own to results, from the largest on that there is.
			task, at := 0, time.Now().Unix()
			command := func(on int, line string) (status, info string) {
				t.Helper()
				task += 1_000_000
				d.run("zabbix", fmt.Sprintf("begin; insert into task (taskid,type,status,clock,ttl,proxy_hostid) values (%[1]d,2,1,%[2]d,600,40001);\n"+
					"insert into task_remote_command (taskid,command_type,execute_on,command,parent_taskid,hostid) values (%[1]d,0,%[3]d,'%[4]s',%[1]d,40002); commit;", task, at, on, line))
				row := ""
				until(t, "Zabbix hears what became of a command", func() bool {
					row = d.run("zabbix", fmt.Sprintf("select status||'|'||info from task_remote_command_result where parent_taskid=%d", task))
					return row != ""
				})
				status, info, _ = strings.Cut(row, "|")
				return status, info
			}
			if status, info := command(2, "echo on proxy"); status != "0" || info != "on proxy" {
				t.Errorf("a command on the proxy: %s, %s", status, info)
			}
			if status, info := command(0, "echo on agent"); status != "0" || info != "on agent" {
				t.Errorf("a command on the agent: %s, %s", status, info)
			}
			if status, info := command(2, "echo no; exit 4"); status != "-1" || !strings.Contains(info, "exit status 4: no") {
				t.Errorf("a command that fails: %s, %s", status, info)
			}
			for n := 1; n <= 2; n++ {
				task += 1_000_000
				before := len(d.values("history_uint", zabbixPing))
				d.run("zabbix", fmt.Sprintf("begin; insert into task (taskid,type,status,clock,ttl,proxy_hostid) values (%[1]d,6,1,%[2]d,3600,40001); insert into task_check_now (taskid,itemid) values (%[1]d,%[3]d); commit;", task, at, zabbixPing))
				until(t, "a value comes at once", func() bool { return len(d.values("history_uint", zabbixPing)) > before })
			}
		})
	}
}
