package proxy

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/test/freeport"
)

// waiting is a passive proxy.
type waiting struct {
	address string
	// kill ends it as a power cut would, start starts it again; kept is how many values of the test it has on its disk.
	kill, start func()
	kept        func() int
}

// passiveZabbix starts Debian's zabbix_proxy as a passive one.
func passiveZabbix(t *testing.T, s *server, secured string) *waiting {
	p := startZabbixProxy(t, s, "ProxyMode=1\n"+secured)
	return &waiting{address: p.address, kill: func() { p.kill() }, start: p.start, kept: p.kept}
}

// passiveTidemark starts ours; what it answered is on its disk.
func passiveTidemark(t *testing.T, secured string) *waiting {
	p := startTidemarkProxy(t, "127.0.0.1", "  passive: true\n"+secured)
	return &waiting{address: p.address, kill: func() { p.kill() }, start: p.start, kept: func() int { return 1 << 20 }}
}

// throughPassive sends values through a proxy that the server asks. Server and proxy are killed while values wait in the proxy, and the
// configuration changes: each value arrives once.
func throughPassive(t *testing.T, s *server, p *waiting, add ...string) {
	t.Helper()
	s.tell(append([]string{"proxies", "add", "branch", "--address", p.address}, add...)...)
	numbers := object{"name": "numbers", "type": "TRAP", "key": "numbers", "delay": "0", "value_type": "UNSIGNED"}
	s.importHosts(object{"host": "db1", "proxy": object{"name": "branch"}, "items": []object{numbers}})
	began := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	arrived := func(n int) func() bool { return func() bool { return len(s.values("db1", "numbers")) >= n } }
	until(t, "the proxy takes values", func() bool { return sendTo(p.address, numbered(began, 0, 1)) })
	until(t, "values arrive", arrived(1))
	s.kill()
	before := p.kept()
	until(t, "the proxy takes values for later", func() bool { return sendTo(p.address, numbered(began, 1, 300)) })
	until(t, "the proxy keeps the values", func() bool { return p.kept() >= min(before+299, 1<<20) })
	p.kill()
	p.start()
	s.start()
	until(t, "the backlog arrives", arrived(300))
	s.importHosts(object{"host": "db1", "proxy": object{"name": "branch"}, "items": []object{numbers, {"name": "more", "type": "TRAP", "key": "more", "delay": "0", "value_type": "UNSIGNED"}}})
	until(t, "the proxy knows a new item", func() bool { return sendTo(p.address, fmt.Sprintf("db1 more %d 0 7\n", began.Unix())) })
	until(t, "its value arrives", func() bool { return slices.Equal(s.values("db1", "more"), []string{"7"}) })
	until(t, "the proxy takes more values", func() bool { return sendTo(p.address, numbered(began, 300, 600)) })
	s.restart()
	until(t, "all values arrive", arrived(600))
	got := inOrder(s.values("db1", "numbers"), "0")
	for n, v := range got {
		if v != strconv.Itoa(n) || len(got) != 600 {
			t.Fatalf("value %d of %d is %s; each of 600 must be there once", n, len(got), v)
		}
	}
	if out := s.tell("proxies", "list"); !strings.Contains(out, "asked at "+p.address) || strings.Contains(out, "in vain") {
		t.Errorf("proxies:\n%s", out)
	}
}

func TestPassive_unencrypted(t *testing.T) {
	t.Parallel()
	t.Run("zabbix_proxy", func(t *testing.T) {
		t.Parallel()
		s := startServer(t, "")
		throughPassive(t, s, passiveZabbix(t, s, ""))
	})
	t.Run("tidemark", func(t *testing.T) {
		t.Parallel()
		throughPassive(t, startServer(t, ""), passiveTidemark(t, ""))
	})
}

func TestPassive_psk(t *testing.T) {
	t.Parallel()
	t.Run("zabbix_proxy", func(t *testing.T) {
		t.Parallel()
		s := startServer(t, "")
		key := write(t, s.dir, "psk", pskText)
		throughPassive(t, s, passiveZabbix(t, s, "TLSAccept=psk\nTLSPSKIdentity=branch key\nTLSPSKFile=%s/psk\n"), "--connect", "psk", "--psk-identity", "branch key", "--psk-file", key)
	})
	t.Run("tidemark", func(t *testing.T) {
		t.Parallel()
		s := startServer(t, "")
		key := write(t, s.dir, "psk", pskText)
		p := passiveTidemark(t, "  tls: {connect: psk, psk_identity: branch key, psk_file: "+key+"}\n")
		throughPassive(t, s, p, "--connect", "psk", "--psk-identity", "branch key", "--psk-file", key)
		s.tell("proxies", "add", "branch", "--connect", "unencrypted")
		until(t, "a server without the key is refused", func() bool {
			return strings.Contains(s.tell("proxies", "list"), `connection of type "unencrypted" is not allowed`)
		})
	})
}

func TestPassive_certificates(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for _, name := range []string{"server", "branch"} {
		a.give(name)
	}
	start := func(t *testing.T) *server {
		return startServer(t, fmt.Sprintf("trapper:\n  tls: {ca_file: %[1]s/ca.pem, certificate_file: %[1]s/server.pem, key_file: %[1]s/server.key}\n", a.dir))
	}
	add := []string{"--connect", "cert", "--subject", "CN=branch,O=Branch", "--issuer", "CN=Branch CA,O=Branch"}
	t.Run("zabbix_proxy", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		throughPassive(t, s, passiveZabbix(t, s, fmt.Sprintf("TLSAccept=cert\nTLSCAFile=%[1]s/ca.pem\nTLSCertFile=%[1]s/branch.pem\nTLSKeyFile=%[1]s/branch.key\n"+
			"TLSServerCertIssuer=CN=Branch CA,O=Branch\nTLSServerCertSubject=CN=server,O=Branch\n", a.dir)), add...)
	})
	t.Run("tidemark", func(t *testing.T) {
		t.Parallel()
		throughPassive(t, start(t), passiveTidemark(t, passiveCertificate(a)), add...)
	})
}

// passiveCertificate are the settings of a passive proxy of ours with a certificate, which is that of its port.
func passiveCertificate(a *authority) string {
	return "  tls: {connect: cert, server_subject: \"CN=server,O=Branch\", server_issuer: \"CN=Branch CA,O=Branch\"}\n" + portCertificate(a)
}

// zabbixProxied are the rows of a proxy and a host with a value of it. status is 5 for an active proxy, 6 for a passive one, which is asked at address.
func zabbixProxied(status int, address, secured string) string {
	ip, port := "127.0.0.1", "10051"
	if address != "" {
		ip, port, _ = net.SplitHostPort(address)
	}
	return "begin; update hosts set status=1 where status=0;\n" +
		fmt.Sprintf("insert into hosts (hostid,host,name,status) values (40001,'branch','branch',%d);\n", status) +
		"update hosts set " + secured + " where hostid=40001;\n" +
		fmt.Sprintf("insert into interface (interfaceid,hostid,main,type,useip,ip,port) select 40009,40001,1,0,1,'%s','%s' where %d=6;\n", ip, port, status) +
		"insert into hosts (hostid,host,name,status,proxy_hostid) values (40002,'db1','db1',0,40001);\n" +
		"insert into hosts_groups (hostgroupid,hostid,groupid) select 90000,40002,min(groupid) from hstgrp;\n" +
		fmt.Sprintf("insert into items (itemid,type,hostid,name,key_,value_type) values (%d,2,40002,'numbers','numbers',3); insert into item_rtdata (itemid) values (%[1]d);\ncommit;", zabbixNumbers)
}

// throughZabbix sends values through a proxy of ours to Zabbix's own server, over a stop of the server and a kill of the proxy.
func throughZabbix(t *testing.T, z *zabbixServer, d *database, p *tidemarkProxy) {
	t.Helper()
	z.start(d)
	began := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	arrived := func(n int) func() bool {
		return func() bool { return len(d.values("history_uint", zabbixNumbers)) >= n }
	}
	until(t, "the proxy takes values", func() bool { return sendTo(p.address, numbered(began, 0, 1)) })
	until(t, "values are at Zabbix", arrived(1))
	z.stop()
	until(t, "the proxy takes values for later", func() bool { return sendTo(p.address, numbered(began, 1, 400)) })
	p.restart()
	z.start(d)
	until(t, "the backlog is at Zabbix", arrived(400))
	p.restart()
	until(t, "the proxy takes more values", func() bool { return sendTo(p.address, numbered(began, 400, 500)) })
	until(t, "all values are at Zabbix", arrived(500))
	for n, v := range d.values("history_uint", zabbixNumbers) {
		if v != strconv.Itoa(n) {
			t.Fatalf("value %d is %s; each must be there once", n, v)
		}
	}
	until(t, "nothing is wrong", func() bool { st := p.state(); return st.Connected && st.Waiting == 0 && len(st.Problems) == 0 })
}

const zabbixSubject = "tls_subject='CN=branch,O=Branch', tls_issuer='CN=Branch CA,O=Branch'"

// Our proxy works for Zabbix's own server with certificates on both sides.
func TestTidemarkProxy_zabbixServerCertificate(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for _, name := range []string{"server", "branch"} {
		a.give(name)
	}
	d := startDatabase(t)
	z := &zabbixServer{t: t, dir: t.TempDir(), address: freeport.Address(t), more: zabbixCertificate(a)}
	p := startTidemarkProxy(t, z.address, certificateSettings(a, "branch"))
	d.run("zabbix", zabbixProxied(5, "", "tls_accept=4, "+zabbixSubject))
	throughZabbix(t, z, d, p)
}

func zabbixCertificate(a *authority) string {
	return fmt.Sprintf("TLSCAFile=%[1]s/ca.pem\nTLSCertFile=%[1]s/server.pem\nTLSKeyFile=%[1]s/server.key\n", a.dir)
}

// Zabbix's own server asks our proxy as a passive one: in the clear, with a key and with certificates.
func TestTidemarkProxy_zabbixServerPassive(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for _, name := range []string{"server", "branch"} {
		a.give(name)
	}
	key := write(t, t.TempDir(), "psk", pskText)
	for name, kind := range map[string]struct{ ours, theirs string }{
		"unencrypted": {"", "tls_connect=1"},
		"psk":         {"  tls: {connect: psk, psk_identity: branch key, psk_file: " + key + "}\n", "tls_connect=2, tls_psk_identity='branch key', tls_psk='" + pskText + "'"},
		"certificate": {passiveCertificate(a), "tls_connect=4, " + zabbixSubject},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := startDatabase(t)
			z := &zabbixServer{t: t, dir: t.TempDir(), address: freeport.Address(t), more: "StartProxyPollers=1\nProxyConfigFrequency=2\nProxyDataFrequency=1\n" + zabbixCertificate(a)}
			p := startTidemarkProxy(t, "127.0.0.1", "  passive: true\n"+kind.ours)
			d.run("zabbix", zabbixProxied(6, p.address, kind.theirs))
			throughZabbix(t, z, d, p)
		})
	}
}
