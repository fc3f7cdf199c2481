package collect

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

const pskText = "8f1c2b7a9d3e4f5061728394a5b6c7d88f1c2b7a9d3e4f5061728394a5b6c7d8"

// write writes a small file and returns its name.
func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Our agent sends values, and real agents answer passive checks, by each kind of connection and over a kill of the server; settings are
// made by the command line.
func TestAgents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority(t, dir, "server", "agent")
	psk := write(t, dir, "psk", pskText+"\n")
	s := startServer(t, fmt.Sprintf("trapper: {tls: {ca_file: %[1]s/ca.pem, certificate_file: %[1]s/server.pem, key_file: %[1]s/server.key}}\n", dir))
	kinds := map[string]struct{ flags, config, settings []string }{
		"unencrypted": {},
		"psk": {
			flags:    []string{"--tls-connect", "psk", "--tls-psk-identity", "id", "--tls-psk-file", psk},
			config:   []string{"TLSAccept=psk", "TLSPSKIdentity=id", "TLSPSKFile=" + psk},
			settings: []string{"--connect", "psk", "--accept", "psk", "--psk-identity", "id", "--psk-file", psk},
		},
		"cert": {
			flags: []string{
				"--tls-connect", "cert", "--tls-ca-file", dir + "/ca.pem", "--tls-cert-file", dir + "/agent.pem", "--tls-key-file", dir + "/agent.key",
				"--tls-server-cert-subject", "CN=server,O=Tidemark", "--tls-server-cert-issuer", "CN=Collect CA",
			},
			config:   []string{"TLSAccept=cert", "TLSCAFile=" + dir + "/ca.pem", "TLSCertFile=" + dir + "/agent.pem", "TLSKeyFile=" + dir + "/agent.key"},
			settings: []string{"--connect", "cert", "--accept", "cert", "--subject", "CN=agent,O=Tidemark"},
		},
	}
	var want [][2]string
	var hosts []object
	for name, kind := range kinds {
		for _, program := range []string{"zabbix_agentd", "zabbix_agent2"} {
			host, address := program+"."+name, freeport.Address(t)
			ip, port, _ := net.SplitHostPort(address)
			text := fmt.Sprintf("PidFile=%[1]s/%[2]s.pid\nLogType=console\nServer=127.0.0.1\nListenIP=127.0.0.1\nListenPort=%[3]s\nHostname=%[2]s\n", dir, host, port)
			if program == "zabbix_agentd" {
				text += "AllowRoot=1\nStartAgents=3\n"
			} else {
				text += "ControlSocket=" + dir + "/" + host + ".sock\n"
			}
			launch.Run(t, filepath.Join(dir, host+".log"), "/usr/sbin/"+program, "-f", "-c", write(t, dir, host+".conf", text+strings.Join(kind.config, "\n")+"\n"))
			hosts = append(hosts, object{
				"host":       host,
				"interfaces": []object{{"ip": "127.0.0.9", "port": "1", "interface_ref": "if1"}, {"ip": ip, "port": port, "default": "NO", "interface_ref": "if2"}},
				"items": []object{{
					"name": "ping", "type": "ZABBIX_PASSIVE", "key": "agent.ping", "value_type": "UNSIGNED", "delay": "1s", "interface_ref": "if2", "timeout": "20s",
				}},
			})
			want = append(want, [2]string{host, "agent.ping"})
		}
		hosts = append(hosts, object{"host": "own." + name})
		want = append(want, [2]string{"own." + name, "system.uptime"})
	}
	s.importHosts(hosts...)
	for _, h := range hosts {
		host := h["host"].(string)
		kind := kinds[host[strings.LastIndexByte(host, '.')+1:]]
		if kind.settings != nil {
			s.tell(append([]string{"host", "tls", "set", host}, kind.settings...)...)
		}
		if strings.HasPrefix(host, "own.") {
			launch.Run(t, filepath.Join(dir, host+".log"), binary, append([]string{"agent", "--server", s.trapper, "--host", host, "--data", filepath.Join(dir, host)}, kind.flags...)...)
		}
	}
	more := func(what string) {
		t.Helper()
		before := make([]int, len(want))
		for i, w := range want {
			before[i] = s.count(w[0], w[1])
		}
		for i, w := range want {
			until(t, "values of "+w[0]+" come "+what, func() bool { return s.count(w[0], w[1]) > before[i]+1 })
		}
	}
	more("at first")
	s.restart()
	more("after a kill")
	if out := s.tell("host", "interfaces", "zabbix_agentd.psk"); !strings.Contains(out, "available") {
		t.Errorf("interfaces: %s", out)
	}
	if out := s.tell("queue"); !strings.Contains(out, "agent") {
		t.Errorf("queue: %s", out)
	}
	if out := s.tell("check", "now", "zabbix_agent2.cert", "agent.ping"); !strings.Contains(out, "asked for 1 item now") {
		t.Errorf("check now: %s", out)
	}
}
