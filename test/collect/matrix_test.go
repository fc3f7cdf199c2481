package collect

import (
	"fmt"
	"net"
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

// way is a kind of connection as each side says it.
type way struct {
	name string
	// agent is what an agent's configuration has, sender what a sender's command line has, host what our side sets for the host.
	agent, sender, host []string
}

// ways are the kinds of connections that a peer makes to the server, with the files of a folder.
func ways(dir string) []way {
	return []way{
		{name: "unencrypted"},
		{
			name:   "psk",
			agent:  []string{"TLSConnect=psk", "TLSPSKIdentity=id", "TLSPSKFile=" + dir + "/psk"},
			sender: []string{"--tls-connect", "psk", "--tls-psk-identity", "id", "--tls-psk-file", dir + "/psk"},
			host:   []string{"--accept", "psk", "--psk-identity", "id", "--psk-file", dir + "/psk"},
		},
		{
			name:   "cert",
			agent:  []string{"TLSConnect=cert", "TLSCAFile=" + dir + "/ca.pem", "TLSCertFile=" + dir + "/agent.pem", "TLSKeyFile=" + dir + "/agent.key"},
			sender: []string{"--tls-connect", "cert", "--tls-ca-file", dir + "/ca.pem", "--tls-cert-file", dir + "/agent.pem", "--tls-key-file", dir + "/agent.key"},
			host:   []string{"--accept", "cert", "--subject", "CN=agent,O=Tidemark"},
		},
	}
}

// follower is a real agent that follows a log.
type follower struct {
	host, log, program, config, output string
	kill                               func()
}

func (f *follower) start(t *testing.T) {
	t.Helper()
	f.kill = launch.Run(t, f.output, "/usr/sbin/"+f.program, "-f", "-c", f.config)
}

func (f *follower) key() string { return "log[" + f.log + "]" }

// lines appends numbered lines to the log.
func (f *follower) lines(t *testing.T, from, to int) {
	t.Helper()
	file, err := os.OpenFile(f.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for n := from; n < to; n++ {
		fmt.Fprintln(file, n)
	}
}

// newFollower prepares an agent that sends active checks by a kind of connection.
func newFollower(t *testing.T, s *server, dir, program string, w way) *follower {
	t.Helper()
	name := program + "." + w.name
	f := &follower{host: name, log: filepath.Join(dir, name+".app"), program: program, output: filepath.Join(dir, name+".log")}
	text := fmt.Sprintf("PidFile=%[1]s/%[2]s.pid\nLogType=console\nServer=127.0.0.1\nListenIP=127.0.0.1\nListenPort=%[3]d\nServerActive=%[4]s\nHostname=%[2]s\nBufferSend=1\n", dir, name, freeport.Port(t), s.trapper)
	if program == "zabbix_agentd" {
		text += "AllowRoot=1\nStartAgents=0\n"
	} else {
		text += "ControlSocket=" + dir + "/" + name + ".sock\n"
	}
	f.config = write(t, dir, name+".conf", text+strings.Join(w.agent, "\n")+"\n")
	return f
}

// send sends numbered values with times of their own by zabbix_sender, and reports whether all of them were taken.
func send(s *server, host string, w way, began time.Time, from, to int) bool {
	var lines strings.Builder
	for n := from; n < to; n++ {
		at := began.Add(time.Duration(n) * time.Millisecond)
		fmt.Fprintf(&lines, "%s numbers %d %d %d\n", host, at.Unix(), at.Nanosecond(), n)
	}
	ip, port, _ := net.SplitHostPort(s.trapper)
	c := exec.Command("/usr/bin/zabbix_sender", append([]string{"-z", ip, "-p", port, "-T", "-N", "-i", "-"}, w.sender...)...)
	c.Stdin = strings.NewReader(lines.String())
	out, err := c.CombinedOutput()
	return err == nil && strings.Contains(string(out), "failed: 0;")
}

// Both real agents with active checks and zabbix_sender, by each kind of connection, over kills of the server and of the agents: nothing is lost
// and nothing doubled.
func TestMatrix(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority(t, dir, "server", "agent")
	write(t, dir, "psk", pskText+"\n")
	s := startServer(t, fmt.Sprintf("trapper: {tls: {ca_file: %[1]s/ca.pem, certificate_file: %[1]s/server.pem, key_file: %[1]s/server.key}}\n", dir))
	var followers []*follower
	var hosts []object
	secured := map[string][]string{}
	for _, w := range ways(dir) {
		for _, program := range []string{"zabbix_agentd", "zabbix_agent2"} {
			f := newFollower(t, s, dir, program, w)
			followers = append(followers, f)
			hosts = append(hosts, object{"host": f.host, "items": []object{{"name": "log", "type": "ZABBIX_ACTIVE", "key": f.key(), "delay": "1s", "value_type": "LOG"}}})
			secured[f.host] = w.host
		}
		hosts = append(hosts, object{"host": "sender." + w.name, "items": []object{{"name": "numbers", "type": "TRAP", "key": "numbers", "delay": "0", "value_type": "UNSIGNED"}}})
		secured["sender."+w.name] = w.host
	}
	s.importHosts(hosts...)
	for host, settings := range secured {
		if settings != nil {
			s.tell(append([]string{"host", "tls", "set", host}, settings...)...)
		}
	}
	began := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	all := func(what string, from, to int) {
		t.Helper()
		for _, f := range followers {
			f.lines(t, from, to)
		}
		for _, w := range ways(dir) {
			until(t, "zabbix_sender by "+w.name+" is answered "+what, func() bool { return send(s, "sender."+w.name, w, began, from, to) })
		}
	}
	for _, f := range followers {
		f.start(t)
	}
	all("at first", 0, 20)
	for _, f := range followers {
		until(t, "lines of "+f.host+" come", func() bool { return s.count(f.host, f.key()) >= 20 })
	}
	for _, f := range followers {
		f.lines(t, 20, 40)
	}
	s.restart()
	all("after a kill of the server", 40, 60)
	for _, f := range followers {
		f.kill()
		f.start(t)
	}
	all("after a kill of the agents", 60, 80)
	// What is sent once more is not doubled.
	for _, w := range ways(dir) {
		until(t, "the same is taken again", func() bool { return send(s, "sender."+w.name, w, began, 0, 80) })
	}
	s.restart()
	for _, f := range followers {
		until(t, "all lines of "+f.host+" are there", func() bool { return s.count(f.host, f.key()) >= 80 })
		s.numbered(f.host, f.key(), 80)
	}
	for _, w := range ways(dir) {
		s.numbered("sender."+w.name, "numbers", 80)
	}
}

// numbered checks that the values of an item are the numbers below n, each once.
func (s *server) numbered(host, key string, n int) {
	s.t.Helper()
	var page struct {
		Values []struct{ Value struct{ V string } }
	}
	s.get("/api/values", url.Values{"item": {s.items(host)[key].ID}, "from": {"0"}, "to": {"4000000000000"}, "limit": {"10000"}}, &page)
	seen := make([]string, len(page.Values))
	for i, v := range page.Values {
		seen[i] = v.Value.V
	}
	want := make([]string, n)
	for i := range want {
		want[i] = strconv.Itoa(i)
	}
	slices.Sort(seen)
	if slices.Sort(want); !slices.Equal(seen, want) {
		s.t.Errorf("%s %s: %d values %.300v, expected each below %d once", host, key, len(seen), seen, n)
	}
}
