package media

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// call is a request that a service got.
type call struct {
	method, host, path string
	header             http.Header
	body               []byte
}

func (c *call) text(t *testing.T, path ...string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(c.body, &v); err != nil {
		t.Errorf("%s %s%s: %v in %.200s", c.method, c.host, c.path, err, c.body)
		return ""
	}
	for _, name := range path {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			if v = nil; len(at) > 0 {
				v = at[0].(map[string]any)[name]
			}
		}
	}
	return fmt.Sprint(v)
}

// internet is an HTTP proxy behind which every https address leads to the services of a test.
type internet struct {
	// url is the proxy's, authority the file of the certificate that services have theirs from.
	url, authority string
	key            *ecdsa.PrivateKey
	root           *x509.Certificate
	serve          func(c *call) (status int, body string)

	mu    sync.Mutex
	calls []call
}

func startInternet(t *testing.T, serve func(c *call) (status int, body string)) *internet {
	t.Helper()
	n := &internet{serve: serve, authority: filepath.Join(t.TempDir(), "ca.pem")}
	var err error
	if n.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	n.root = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, n.root, n.root, &n.key.PublicKey, n.key)
	if err == nil {
		err = os.WriteFile(n.authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(http.HandlerFunc(n.connect))
	t.Cleanup(proxy.Close)
	n.url = proxy.URL
	return n
}

// certificate makes a certificate for a name.
func (n *internet) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: hello.ServerName}, DNSNames: []string{hello.ServerName},
		NotBefore: n.root.NotBefore, NotAfter: n.root.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, n.root, &n.key.PublicKey, n.key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: n.key}, err
}

// connect answers what a proxy is asked: a tunnel for https, or a plain request.
func (n *internet) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		r.URL.Host = ""
		n.answer(w, r)
		return
	}
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	inside := tls.Server(client, &tls.Config{GetCertificate: n.certificate, MinVersion: tls.VersionTLS12})
	in := bufio.NewReader(inside)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		answer := httptest.NewRecorder()
		n.answer(answer, r)
		result := answer.Result()
		if result.ContentLength = int64(answer.Body.Len()); result.Write(inside) != nil {
			return
		}
	}
}

func (n *internet) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	c := call{method: r.Method, host: host, path: r.URL.RequestURI(), header: r.Header, body: bytes.TrimSpace(body)}
	n.mu.Lock()
	n.calls = append(n.calls, c)
	n.mu.Unlock()
	status, text := n.serve(&c)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// of returns the calls of a host so far.
func (n *internet) of(host string) []call {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []call
	for _, c := range n.calls {
		if c.host == host {
			list = append(list, c)
		}
	}
	return list
}
