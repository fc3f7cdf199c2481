package compat

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/collect/keyring"
	"tidemark/collect/poller"
	"tidemark/collect/trapper"
	"tidemark/collect/zbxagent"
	"tidemark/model"
	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// authority writes a certificate authority and two certificates of it into a folder: ca.pem, NAME.pem, NAME.key.
func authority(t *testing.T, dir string, names ...string) {
	t.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Compat CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ca.pem", "CERTIFICATE", caDER)
	for i, name := range names {
		// Agents built with GnuTLS only know suites with RSA.
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 2)), Subject: pkix.Name{CommonName: name, Organization: []string{"Tidemark"}},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		}
		der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
		if err != nil {
			t.Fatal(err)
		}
		keyDER, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		write(name+".pem", "CERTIFICATE", der)
		write(name+".key", "PRIVATE KEY", keyDER)
	}
}

// tlsSettings are what an agent has in its configuration, what the command line of our side has, and what a host has.
func tlsSettings(t *testing.T, kind, dir string) (config string, flags []string, host model.HostTLS) {
	t.Helper()
	switch kind {
	case "psk":
		if err := os.WriteFile(filepath.Join(dir, "psk"), []byte(tlsKey+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		config = fmt.Sprintf("TLSAccept=psk\nTLSPSKIdentity=%s\nTLSPSKFile=%s/psk\n", tlsIdentity, dir)
		flags = []string{"--tls-psk-identity", tlsIdentity, "--tls-psk-file", dir + "/psk"}
		host = model.HostTLS{Connect: model.PSK, Identity: tlsIdentity, Key: decodeKey(t)}
	case "cert":
		authority(t, dir, "agent", "server")
		config = fmt.Sprintf("TLSAccept=cert\nTLSCAFile=%[1]s/ca.pem\nTLSCertFile=%[1]s/agent.pem\nTLSKeyFile=%[1]s/agent.key\n", dir)
		flags = []string{"--tls-ca-file", dir + "/ca.pem", "--tls-cert-file", dir + "/server.pem", "--tls-key-file", dir + "/server.key"}
		host = model.HostTLS{Connect: model.Certificate, Subject: "CN=agent,O=Tidemark", Issuer: "CN=Compat CA"}
	default:
		host = model.HostTLS{Connect: model.Unencrypted}
	}
	return config, flags, host
}

// startPassive starts a real agent that answers passive checks and returns its address.
func startPassive(t *testing.T, a realAgent, dir, config string) string {
	t.Helper()
	address, _ := startPassiveOn(t, a, dir, config, freeport.Port(t))
	return address
}

func startPassiveOn(t *testing.T, a realAgent, dir, config string, port int) (string, *process) {
	t.Helper()
	text := fmt.Sprintf("PidFile=%[1]s/agent.pid\nLogType=console\nServer=127.0.0.1\nListenIP=127.0.0.1\nListenPort=%[2]d\nHostname=compat\nTimeout=10\n", dir, port) +
		strings.ReplaceAll(a.config(dir), "StartAgents=0", "StartAgents=3") + config
	path := filepath.Join(dir, "agent.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "agent.log")
	showLog(t, log)
	p := run(t, log, a.path, a.args(path)...)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	dial(t, address).Close()
	return address, p
}

// The command line asks both real agents, by each kind of connection.
func TestPassive_get(t *testing.T) {
	for _, a := range agents {
		for _, kind := range []string{"unencrypted", "psk", "cert"} {
			t.Run(a.name+" "+kind, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				config, flags, _ := tlsSettings(t, kind, dir)
				address := startPassive(t, a, dir, config)
				get := func(key string, flags ...string) (string, error) {
					out, err := exec.Command(binary, append([]string{"agent", "get", "--from", address, "-k", key}, flags...)...).CombinedOutput()
					return string(out), err
				}
				if out, err := get("agent.ping", flags...); err != nil || out != "1\n" {
					t.Errorf("agent.ping: %q, %v", out, err)
				}
				if out, err := get("agent.hostname", flags...); err != nil || out != "compat\n" {
					t.Errorf("agent.hostname: %q, %v", out, err)
				}
				if out, err := get("no.such.key", flags...); err == nil || !strings.Contains(out, "not supported: ") {
					t.Errorf("no.such.key: %q, %v", out, err)
				}
				if kind == "unencrypted" {
					return
				}
				if out, err := get("agent.ping"); err == nil {
					t.Errorf("the agent answers unencrypted: %q", out)
				}
			})
		}
	}
}

// gathered is a sink that counts values by item.
type gathered struct {
	mu   sync.Mutex
	rows map[model.ItemID][]string
}

func (g *gathered) Put(_ context.Context, b *model.Batch) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rows == nil {
		g.rows = make(map[model.ItemID][]string)
	}
	for i := range b.Len() {
		g.rows[b.Items[i]] = append(g.rows[b.Items[i]], string(b.Bytes(i)))
	}
	b.Finish(nil)
	b.Free()
	return nil
}

func (g *gathered) count(id model.ItemID) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.rows[id])
}

// waitFor waits for something that must come.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	launch.Until(t, patience, what, ok)
}

// The poller asks both real agents by each kind of connection, also after the agent was killed and came back.
func TestPassive_pollerOutage(t *testing.T) {
	for _, a := range agents {
		for _, kind := range []string{"unencrypted", "psk", "cert"} {
			t.Run(a.name+" "+kind, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				config, _, host := tlsSettings(t, kind, dir)
				host.HostID, host.Accept = 7, model.Unencrypted
				keys := keyring.New(nil)
				keys.Apply([]model.HostTLS{host})
				options := zbxagent.Options{Access: keys}
				if kind == "cert" {
					options.Certificates = clientCertificates(t, dir)
				}
				port := freeport.Port(t)
				address, agent := startPassiveOn(t, a, dir, config, port)
				values := &gathered{}
				p := poller.New(poller.Options{
					Sink: values, Kinds: []poller.Kind{zbxagent.New(options).Kind()}, UnreachableDelay: time.Second, UnreachablePeriod: 3 * time.Second, UnavailableDelay: time.Second,
				})
				ctx, cancel := context.WithCancel(context.Background())
				ended := make(chan error, 1)
				go func() { ended <- p.Run(ctx) }()
				defer func() {
					cancel()
					if err := <-ended; !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				}()
				var tasks []poller.Task
				for i, key := range []string{"agent.ping", "system.uname", "no.such.key"} {
					tasks = append(tasks, poller.Task{Item: &model.Item{ID: model.ItemID(i + 1), HostID: 7, Key: key, Delay: "1s"}, Address: address})
				}
				if err := p.Apply(7, tasks); err != nil {
					t.Fatal(err)
				}
				waitFor(t, "the first values come", func() bool { return values.count(1) > 1 && values.count(2) > 1 && values.count(3) > 1 })
				available := func() int { return p.Interfaces(7)[0].Available }
				if available() != poller.Available {
					t.Errorf("interfaces %+v", p.Interfaces(7))
				}
				agent.kill()
				waitFor(t, "the agent is seen to be gone", func() bool { return available() == poller.Unavailable })
				startPassiveOn(t, a, dir, config, port)
				before := values.count(1)
				waitFor(t, "values come again", func() bool { return available() == poller.Available && values.count(1) > before+1 })
				values.mu.Lock()
				if values.rows[1][0] != "1" || !strings.HasPrefix(values.rows[2][0], "Linux ") || values.rows[3][0] == "" {
					t.Errorf("values %v", values.rows)
				}
				values.mu.Unlock()
			})
		}
	}
}

func clientCertificates(t *testing.T, dir string) *tls.Config {
	t.Helper()
	own, err := tls.LoadX509KeyPair(dir+"/server.pem", dir+"/server.key")
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(dir + "/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		t.Fatal("no certificate in ca.pem")
	}
	return &tls.Config{Certificates: []tls.Certificate{own}, RootCAs: pool, ClientCAs: pool}
}

// oneItem is a configuration of one host with one trapper item and one active check.
type oneItem struct{}

func (oneItem) Host(name []byte) (trapper.HostRef, bool) {
	return trapper.HostRef{ID: 7, Enabled: true}, string(name) == "compat"
}

func (o oneItem) ItemByKey(_ model.HostID, key []byte) (trapper.ItemRef, bool) {
	if string(key) == "agent.ping" {
		return o.ItemByID(2)
	}
	return trapper.ItemRef{ID: 1, HostID: 7, Type: model.Trapper, ValueType: model.Text, Enabled: true}, true
}

func (oneItem) ItemByID(id model.ItemID) (trapper.ItemRef, bool) {
	return trapper.ItemRef{ID: id, HostID: 7, Type: model.ActiveAgent, ValueType: model.Uint, Enabled: true}, id == 2
}

func (oneItem) ActiveChecks(model.HostID) ([]*model.Item, uint64) {
	return []*model.Item{{ID: 2, HostID: 7, Key: "agent.ping", Delay: "1s", Interval: time.Second, Type: model.ActiveAgent}}, 1
}

// startTrapper runs a trapper whose one host accepts the key or the certificate of the peers.
func startTrapper(t *testing.T, dir string) (port string, values *gathered) {
	t.Helper()
	keys := keyring.New(nil)
	keys.Apply([]model.HostTLS{{
		HostID: 7, Connect: model.PSK, Accept: model.PSK | model.Certificate, Identity: tlsIdentity, Key: decodeKey(t), Subject: "CN=agent,O=Tidemark",
	}})
	authority(t, dir, "agent", "server", "other")
	certificates := clientCertificates(t, dir)
	certificates.ClientAuth, certificates.SessionTicketsDisabled = tls.RequireAndVerifyClientCert, true
	values = &gathered{}
	s := trapper.New(trapper.Options{Sink: values, Items: oneItem{}, Access: keys, TLS: &trapper.TLS{Keys: keys, Certificates: certificates}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), ln) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "psk"), []byte(tlsKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(ln.Addr().String())
	return port, values
}

// zabbix_sender comes with the right key, a wrong one, certificates and none at all.
func TestTLS_sender(t *testing.T) {
	dir := t.TempDir()
	port, values := startTrapper(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "wrong"), []byte(strings.Repeat("ab", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	cert := func(name string) []string {
		return []string{"--tls-connect", "cert", "--tls-ca-file", dir + "/ca.pem", "--tls-cert-file", dir + "/" + name + ".pem", "--tls-key-file", dir + "/" + name + ".key"}
	}
	psk := func(identity, file string) []string {
		return []string{"--tls-connect", "psk", "--tls-psk-identity", identity, "--tls-psk-file", filepath.Join(dir, file)}
	}
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"key", psk(tlsIdentity, "psk"), "processed: 1; failed: 0"},
		{"wrong key", psk(tlsIdentity, "wrong"), "Sending failed"},
		{"unknown identity", psk("nobody", "psk"), "Sending failed"},
		{"certificate", cert("agent"), "processed: 1; failed: 0"},
		{"certificate of another", cert("other"), "processed: 0; failed: 1"},
		{"unencrypted", nil, "processed: 0; failed: 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"-vv", "-z", "127.0.0.1", "-p", port, "-s", "compat", "-k", "k", "-o", test.name}, test.args...)
			out, _ := exec.Command("zabbix_sender", args...).CombinedOutput()
			if !strings.Contains(string(out), test.want) {
				t.Errorf("%s, want %q", out, test.want)
			}
		})
	}
	values.mu.Lock()
	defer values.mu.Unlock()
	if got := fmt.Sprint(values.rows[1]); got != "[key certificate]" {
		t.Errorf("values %s", got)
	}
}

// Real agents send active checks with a key and with certificates.
func TestTLS_activeAgents(t *testing.T) {
	for _, a := range agents {
		for _, kind := range []string{"psk", "cert"} {
			t.Run(a.name+" "+kind, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				port, values := startTrapper(t, dir)
				config := fmt.Sprintf("TLSConnect=psk\nTLSPSKIdentity=%s\nTLSPSKFile=%s/psk\n", tlsIdentity, dir)
				if kind == "cert" {
					config = fmt.Sprintf("TLSConnect=cert\nTLSCAFile=%[1]s/ca.pem\nTLSCertFile=%[1]s/agent.pem\nTLSKeyFile=%[1]s/agent.key\n", dir)
				}
				startPassive(t, a, dir, config+"TLSAccept="+kind+"\nServerActive=127.0.0.1:"+port+"\n")
				waitFor(t, "values of active checks come", func() bool { return values.count(2) > 2 })
			})
		}
	}
}
