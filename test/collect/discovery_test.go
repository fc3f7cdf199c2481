package collect

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// Rules find a real snmpd, agent and sshd on the loopback; actions make hosts of them, and give an agent that registers itself what its
// metadata asks for. A kill of the server in between makes nothing twice.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	device, ssh, agent, closed := startSNMP(t, dir), startSSH(t, dir), freeport.Address(t), freeport.Address(t)
	s := startServer(t, "")
	port := func(address string) string {
		_, p, _ := net.SplitHostPort(address)
		return p
	}
	config := fmt.Sprintf("Hostname=registered\nServer=127.0.0.1\nListenIP=127.0.0.1\nListenPort=%s\nServerActive=%s\nHostMetadata=Linux postgres\nRefreshActiveChecks=60\nLogType=console\nPidFile=%s/agent.pid\nAllowRoot=1\n",
		port(agent), s.trapper, dir)
	text := fmt.Sprintf(`
rules:
  - name: loopback
    ranges: 127.0.0.1-2
    delay: 10s
    checks:
      - {type: snmp, key: .1.3.6.1.2.1.1.5.0, name: device, ports: '%s', timeout: 20s, snmp: {community: public}}
      - {type: snmp, key: .1.3.6.1.2.1.1.5.0, name: strong, ports: '%s', timeout: 20s, snmp: {version: SNMPV3, security_name: strong, security_level: AUTHPRIV, auth_protocol: SHA512, auth_passphrase: authpassphrase, priv_protocol: AES128, priv_passphrase: privpassphrase}}
      - {type: ssh, ports: '%s', timeout: 20s}
      - {type: tcp, ports: '%s'}
    host_name: device
  - name: agents
    ranges: 127.0.0.1
    delay: 10s
    checks: [{type: agent, key: agent.hostname, name: agent, ports: '%s', timeout: 20s}]
    unique: agent
actions:
  - name: devices
    event: discovery
    conditions: [{field: check, value: strong}, {field: status, value: up}]
    operations: [{type: add_group, group: Devices}, {type: link_template, template: Plain}, {type: add_tag, tag: found, value: here}]
  - name: databases
    event: autoregistration
    conditions: [{field: metadata, operator: contains, value: postgres}]
    operations: [{type: add_group, group: Databases}, {type: link_template, template: Plain}]
`, port(device), port(device), port(ssh), port(closed), port(agent))
	s.tell("import", write(t, dir, "plain.yaml", "zabbix_export: {version: '7.0', templates: [{uuid: 0a6dd6b7c1ae4a5fa1f6b59c6e1f0a12, template: Plain, name: Plain, items: [{uuid: 0a6dd6b7c1ae4a5fa1f6b59c6e1f0a13, name: plain, key: plain, type: TRAP}]}]}"))
	s.tell("discovery", "apply", write(t, dir, "discovery.yaml", text))
	if out := s.tell("discovery", "show"); strings.Contains(out, "privpassphrase") || strings.Contains(out, `"public"`) || !strings.Contains(out, "********") {
		t.Errorf("secrets are shown: %s", out)
	}
	hosts := func() map[string]string {
		var list struct {
			Hosts []struct {
				Host   string
				Groups []string
			}
		}
		s.get("/api/hosts", nil, &list)
		groups := map[string]string{}
		for _, h := range list.Hosts {
			groups[h.Host] = strings.Join(h.Groups, ",")
		}
		return groups
	}
	// What is found at an address that a host has belongs to that host: the agent registers itself at the same one, so it comes after.
	until(t, "an action made the device", func() bool { _, ok := hosts()["collect-device"]; return ok })
	launch.Run(t, filepath.Join(dir, "agent.log"), "/usr/sbin/zabbix_agentd", "-f", "-c", write(t, dir, "agent.conf", config))
	made := func() bool {
		have := hosts()
		return have["collect-device"] == "Devices" && have["registered"] == "Databases" && len(s.items("collect-device")) == 1 && len(s.items("registered")) == 1
	}
	until(t, "actions made the hosts", made)
	found := func(rule, want string) bool {
		out := s.tell("discovery", "hosts", rule)
		return strings.Contains(out, want)
	}
	until(t, "the services are found", func() bool {
		return found("loopback", "ssh 127.0.0.1:"+port(ssh)) && found("loopback", "strong 127.0.0.1:"+port(device)) && found("agents", "registered") && !found("loopback", ":"+port(closed))
	})
	if out := s.tell("host", "interfaces", "collect-device"); strings.Count(out, "snmp") != 1 || !strings.Contains(out, port(device)) {
		t.Errorf("interfaces of the device: %s", out)
	}
	before := hosts()
	s.restart()
	s.tell("discovery", "scan", "loopback")
	until(t, "the rule looked again", func() bool {
		var status struct {
			Rules []struct {
				Rule   string
				Up     int
				LastAt int64 `json:"last_at"`
			}
		}
		s.get("/api/network-discovery/status", nil, &status)
		for _, r := range status.Rules {
			if r.Rule == "loopback" {
				return r.LastAt > 0 && r.Up > 0
			}
		}
		return false
	})
	if after := hosts(); len(after) != len(before) || !made() {
		t.Errorf("after a kill and another look the hosts are %v, were %v", after, before)
	}
}
