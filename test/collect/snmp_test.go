package collect

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// startSNMP starts a real snmpd with a community and users of several kinds, and returns its address.
func startSNMP(t testing.TB, dir string) string {
	t.Helper()
	address := freeport.Address(t)
	config := fmt.Sprintf(`agentAddress udp:%s
rocommunity public 127.0.0.1
createUser weak MD5 "authpassphrase"
createUser middle SHA "authpassphrase" DES "privpassphrase"
createUser strong SHA-512 "authpassphrase" AES "privpassphrase"
createUser wide SHA-256 "authpassphrase" AES-256 "privpassphrase"
rouser weak auth
rouser middle priv
rouser strong priv
rouser wide priv
sysName collect-device
sysContact somebody
`, address)
	// What it keeps must not be that of the machine.
	args := []string{"SNMP_PERSISTENT_DIR=" + dir + "/snmp", "/usr/sbin/snmpd", "-f", "-Lf", "/dev/null", "-C", "-c", write(t, dir, "snmpd.conf", config), "-p", dir + "/snmpd.pid"}
	launch.Run(t, filepath.Join(dir, "snmpd.log"), "/usr/bin/env", args...)
	return address
}

func snmpInterface(address string, details object) object {
	host, port, _ := net.SplitHostPort(address)
	return object{"type": "SNMP", "ip": host, "port": port, "interface_ref": "if1", "details": details}
}

func secure(name, level, auth, priv string) object {
	return object{
		"version": "SNMPV3", "securityname": name, "securitylevel": level, "authprotocol": auth, "authpassphrase": "authpassphrase", "privprotocol": priv, "privpassphrase": "privpassphrase",
	}
}

// A real snmpd is asked in each version and kind of protection, discovered, and sends traps, over a kill of the server.
func TestSNMP(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	device, traps := startSNMP(t, dir), freeport.Address(t)
	s := startServer(t, fmt.Sprintf("collect: {trap_listen: %q}\n", traps))
	const name, missing = "1.3.6.1.2.1.1.5.0", "1.3.6.1.2.1.1.99.0"
	access := map[string]object{
		"v1": {"version": "SNMPV1", "community": "public"}, "v2c": {"community": "public"}, "single": {"community": "public", "bulk": "NO"},
		"weak": secure("weak", "AUTHNOPRIV", "MD5", ""), "middle": secure("middle", "AUTHPRIV", "SHA1", "DES"), "strong": secure("strong", "AUTHPRIV", "SHA512", "AES128"),
		"wide": secure("wide", "AUTHPRIV", "SHA256", "AES256"), "wrong": secure("strong", "AUTHPRIV", "SHA256", "AES128"),
	}
	var hosts []object
	for kind, details := range access {
		item := func(key, oid string) object {
			return checked("SNMP_AGENT", key, "TEXT", object{"snmp_oid": oid, "interface_ref": "if1", "timeout": "20s"})
		}
		hosts = append(hosts, object{
			"host": kind, "interfaces": []object{snmpInterface(device, details)},
			"items": []object{
				item("name", name), item("missing", missing), item("walk", "walk[1.3.6.1.2.1.1.5,1.3.6.1.2.1.1.4]"), item("uptime", "get[1.3.6.1.2.1.1.3.0]"),
				{"name": "trap", "type": "SNMP_TRAP", "key": "snmptrap[link" + kind + "]", "value_type": "TEXT", "interface_ref": "if1"},
			},
			"discovery_rules": []object{{
				"name": "interfaces", "type": "SNMP_AGENT", "key": "if.discovery", "delay": "1s", "snmp_oid": "discovery[{#IFNAME},1.3.6.1.2.1.2.2.1.2]", "interface_ref": "if1",
				"item_prototypes": []object{checked("SNMP_AGENT", "type[{#IFNAME}]", "UNSIGNED", object{"snmp_oid": "1.3.6.1.2.1.2.2.1.3.{#SNMPINDEX}", "interface_ref": "if1"})},
			}},
		})
	}
	s.importHosts(hosts...)
	all := func() {
		t.Helper()
		for kind := range access {
			if kind == "wrong" {
				s.has(kind, map[string]string{"name": "! authentication protocol or passphrase"})
				continue
			}
			s.has(kind, map[string]string{
				"name": "collect-device", "missing": "! the device ", "uptime": "*", "type[lo]": "24",
				"walk": ".1.3.6.1.2.1.1.5.0 = STRING: \"collect-device\"\n.1.3.6.1.2.1.1.4.0 = STRING: \"somebody\"",
			})
		}
	}
	all()
	trap := func(kind string, args ...string) {
		t.Helper()
		before := s.count(kind, "snmptrap[link"+kind+"]")
		args = append(args, traps, "", ".1.3.6.1.6.3.1.1.5.3", ".1.3.6.1.2.1.2.2.1.2.1", "s", "link"+kind)
		if out, err := exec.Command("/usr/bin/snmptrap", args...).CombinedOutput(); err != nil {
			t.Fatalf("snmptrap: %v\n%s", err, out)
		}
		until(t, "a trap of "+kind+" comes", func() bool { return s.count(kind, "snmptrap[link"+kind+"]") > before })
	}
	inform := []string{"-v", "2c", "-c", "public", "-Ci", "-t", "20"}
	trap("v2c", inform...)
	trap("strong", "-v", "3", "-u", "strong", "-l", "authPriv", "-a", "SHA-512", "-A", "authpassphrase", "-x", "AES", "-X", "privpassphrase", "-e", "0x8000000001020304")
	s.restart()
	all()
	trap("v2c", inform...)
	if out := s.tell("host", "interfaces", "wide"); !strings.Contains(out, "snmp") || !strings.Contains(out, "available") {
		t.Errorf("interfaces: %s", out)
	}
}
