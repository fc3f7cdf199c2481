package collect

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// binary is the path of the program under test.
var binary string

func TestMain(m *testing.M) { launch.Main(m, &binary) }

// patience is how long a test waits for something that must come.
const patience = 90 * time.Second

// until waits for something that must come.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	launch.Until(t, patience, what, ok)
}

// server is the program under test.
type server struct {
	t             *testing.T
	dir           string
	http, trapper string
	config        string
	kill          func()
}

// startServer starts a server with an empty data folder on free ports; config is more of its configuration file.
func startServer(t *testing.T, config string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), http: freeport.Address(t), trapper: freeport.Address(t)}
	s.config = filepath.Join(s.dir, "tidemark.yaml")
	text := fmt.Sprintf("data: %s/data\nautoregistration: true\nhttp: {listen: %q}\nstorage: {disk_space: 1GiB}\n", s.dir, s.http) + config
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	return s
}

func (s *server) start() {
	s.t.Helper()
	s.kill = launch.Run(s.t, filepath.Join(s.dir, "server.log"), binary, "server", "--config", s.config, "--trapper", s.trapper)
	until(s.t, "the server is ready", func() bool {
		resp, err := http.Get("http://" + s.http + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// restart kills the server as a power cut would and starts it again.
func (s *server) restart() {
	s.t.Helper()
	s.kill()
	s.start()
}

// tell runs a command that speaks to the server and returns what it prints.
func (s *server) tell(args ...string) string {
	s.t.Helper()
	out, err := exec.Command(binary, append(args, "--http", s.http)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tidemark %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// get reads JSON from the REST API.
func (s *server) get(path string, query url.Values, into any) {
	s.t.Helper()
	resp, err := http.Get("http://" + s.http + path + "?" + query.Encode())
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.500s", path, resp.Status, body)
	}
	if err := errors.Join(err, json.Unmarshal(body, into)); err != nil {
		s.t.Fatal(err)
	}
}

// object is one of an export.
type object = map[string]any

// importHosts imports hosts; each gets a group.
func (s *server) importHosts(hosts ...object) {
	s.t.Helper()
	group := []object{{"name": "Collect"}}
	for _, h := range hosts {
		h["groups"], h["name"] = group, h["host"]
	}
	body, err := json.Marshal(object{"zabbix_export": object{
		"version": "6.0", "groups": []object{{"uuid": "0b6f8a52c9a14c0c8d4d0f3e5b7a9c12", "name": "Collect"}}, "hosts": hosts,
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.Post("http://"+s.http+"/api/import", "application/json", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"refused":`)) || bytes.Contains(answer, []byte("has no collector")) {
		s.t.Fatalf("import: %s, %v: %.3000s", resp.Status, err, answer)
	}
}

// reading is what is known of an item.
type reading struct {
	ID, Key, State, Error string
	Last                  *struct{ Value struct{ V string } }
}

// items returns the items of a host by key.
func (s *server) items(host string) map[string]reading {
	s.t.Helper()
	var hosts struct{ Hosts []struct{ ID, Host string } }
	s.get("/api/hosts", url.Values{"search": {host}}, &hosts)
	byKey := map[string]reading{}
	for _, h := range hosts.Hosts {
		if h.Host != host {
			continue
		}
		var list struct{ Items []reading }
		s.get("/api/items", url.Values{"host": {h.ID}, "limit": {"10000"}}, &list)
		for _, i := range list.Items {
			byKey[i.Key] = i
		}
	}
	return byKey
}

// count is how many values of an item are stored.
func (s *server) count(host, key string) int {
	s.t.Helper()
	i, ok := s.items(host)[key]
	if !ok {
		return 0
	}
	var page struct{ Values []struct{} }
	s.get("/api/values", url.Values{"item": {i.ID}, "from": {"0"}, "to": {"4000000000000"}, "limit": {"10000"}}, &page)
	return len(page.Values)
}

// authority writes a certificate authority and certificates of it into a folder: ca.pem, NAME.pem, NAME.key.
func authority(t *testing.T, dir string, names ...string) {
	t.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Collect CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(240 * time.Hour),
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
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(240 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
			DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
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
