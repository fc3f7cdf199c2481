package proxy

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"
)

// authority signs certificates into a folder: ca.pem, and NAME.pem with NAME.key.
type authority struct {
	t           *testing.T
	dir         string
	certificate *x509.Certificate
	key         *rsa.PrivateKey
	serial      int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.certificate, a.key = a.sign("Branch CA", true, nil, nil)
	return a
}

// sign makes a key and its certificate, by the authority or by itself.
func (a *authority) sign(name string, isCA bool, parent *x509.Certificate, signer *rsa.PrivateKey) (*x509.Certificate, *rsa.PrivateKey) {
	a.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048) // Zabbix offers no suites for others
	if err != nil {
		a.t.Fatal(err)
	}
	a.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: name, Organization: []string{"Branch"}}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: isCA, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if isCA {
		template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageCertSign, nil
	}
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	file := name
	if isCA {
		file = "ca"
	}
	write(a.t, a.dir, file+".pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(a.t, a.dir, file+".key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	return certificate, key
}

// give makes a certificate for a name.
func (a *authority) give(name string) { a.sign(name, false, a.certificate, a.key) }

// Debian's zabbix_proxy and ours speak to our server with certificates on both sides. A certificate of the same authority for somebody else is
// not let in.
func TestCertificates(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for _, name := range []string{"server", "branch", "other"} {
		a.give(name)
	}
	s := startServer(t, fmt.Sprintf("trapper:\n  tls: {ca_file: %[1]s/ca.pem, certificate_file: %[1]s/server.pem, key_file: %[1]s/server.key}\n", a.dir))
	s.tell("proxies", "add", "branch", "--accept", "cert", "--subject", "CN=branch,O=Branch", "--issuer", "CN=Branch CA,O=Branch")
	s.importHosts(object{
		"host": "db1", "proxy": object{"name": "branch"},
		"items": []object{{"name": "numbers", "type": "TRAP", "key": "numbers", "delay": "0", "value_type": "UNSIGNED"}},
	})
	throughBoth(t, s, fmt.Sprintf("TLSConnect=cert\nTLSCAFile=%[1]s/ca.pem\nTLSCertFile=%[1]s/branch.pem\nTLSKeyFile=%[1]s/branch.key\n"+
		"TLSServerCertIssuer=CN=Branch CA,O=Branch\nTLSServerCertSubject=CN=server,O=Branch\n", a.dir), certificateSettings(a, "branch"))

	other := startTidemarkProxy(t, s.trapper, certificateSettings(a, "other"))
	until(t, "a proxy with another certificate is refused", func() bool {
		return strings.Contains(fmt.Sprint(other.state().Problems), `connection of type "cert" is not allowed for proxy "branch"`)
	})
}

// Both proxies speak to our server without encryption.
func TestUnencrypted(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	s.tell("proxies", "add", "branch", "--accept", "unencrypted")
	s.importHosts(object{
		"host": "db1", "proxy": object{"name": "branch"},
		"items": []object{{"name": "numbers", "type": "TRAP", "key": "numbers", "delay": "0", "value_type": "UNSIGNED"}},
	})
	throughBoth(t, s, "", "")
}

// throughBoth sends values through Debian's zabbix_proxy and then through ours, which have connections as their settings say. Server and proxy
// are killed while values wait in the proxy: each value arrives once.
func throughBoth(t *testing.T, s *server, theirSettings, ourSettings string) {
	t.Helper()
	began := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	arrived := func(n int) func() bool { return func() bool { return len(s.values("db1", "numbers")) >= n } }

	theirs := startZabbixProxy(t, s, theirSettings)
	until(t, "zabbix_proxy takes values", func() bool { return theirs.send(numbered(began, 0, 1)) })
	until(t, "values of zabbix_proxy arrive", arrived(1))
	s.kill()
	before := theirs.kept()
	until(t, "zabbix_proxy takes values for later", func() bool { return theirs.send(numbered(began, 1, 300)) })
	// It takes values before they are in its database; a kill would lose those.
	until(t, "zabbix_proxy keeps the values", func() bool { return theirs.kept() >= before+299 })
	theirs.kill()
	theirs.start()
	s.start()
	until(t, "the backlog of zabbix_proxy arrives", arrived(300))
	theirs.kill()

	ours := startTidemarkProxy(t, s.trapper, ourSettings)
	until(t, "our proxy takes values", func() bool { return sendTo(ours.address, numbered(began, 300, 301)) })
	until(t, "values of our proxy arrive", arrived(301))
	s.kill()
	until(t, "our proxy takes values for later", func() bool { return sendTo(ours.address, numbered(began, 301, 600)) })
	ours.restart()
	s.start()
	until(t, "the backlog of our proxy arrives", arrived(600))
	s.restart()
	// What it had and not yet acknowledged is told again.
	until(t, "the values are there after a kill", arrived(600))
	got := inOrder(s.values("db1", "numbers"), "0")
	for n, v := range got {
		if v != strconv.Itoa(n) || len(got) != 600 {
			t.Fatalf("value %d of %d is %s; each of 600 must be there once", n, len(got), v)
		}
	}
	ours.kill()
}

// certificateSettings are those of a proxy with a certificate.
func certificateSettings(a *authority, name string) string {
	return fmt.Sprintf("  tls: {connect: cert, ca_file: %[1]s/ca.pem, certificate_file: %[1]s/%[2]s.pem, key_file: %[1]s/%[2]s.key, server_subject: \"CN=server,O=Branch\"}\n", a.dir, name)
}
