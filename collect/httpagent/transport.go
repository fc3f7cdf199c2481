package httpagent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tidemark/model"
)

// transportKey is what connections must have in common to be shared.
type transportKey struct {
	proxy, certFile, keyFile, keyPassword string
	verifyPeer, verifyHost                bool
}

// transport returns the connections for a request.
func (c *Checker) transport(q *model.HTTPRequest) (*http.Transport, error) {
	key := transportKey{q.Proxy, q.CertFile, q.KeyFile, q.KeyPassword, q.VerifyPeer, q.VerifyHost}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.transports[key]; t != nil {
		return t, nil
	}
	t, err := c.newTransport(q, false)
	if err != nil {
		return nil, err
	}
	if len(c.transports) >= maxTransports {
		for _, old := range c.transports {
			old.CloseIdleConnections()
		}
		clear(c.transports)
	}
	// A changed certificate file is seen when its settings are made anew, which is not before the server restarts or the item changes.
	c.transports[key] = t
	return t, nil
}

// newTransport makes connections for a request. NTLM authenticates a connection and not a request, so it needs HTTP/1 and connections
// that nobody else uses.
func (c *Checker) newTransport(q *model.HTTPRequest, own bool) (*http.Transport, error) {
	secure, err := c.tlsConfig(q)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Control: c.o.Rules.Control}
	t := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: secure, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: maxPerHost, MaxIdleConns: 1000,
		IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: maxHeaderBytes,
	}
	protocols := []string{"h2", "http/1.1"}
	if own {
		protocols = []string{"http/1.1"}
		t.ForceAttemptHTTP2, t.TLSNextProto, t.MaxConnsPerHost = false, map[string]func(string, *tls.Conn) http.RoundTripper{}, 1
	}
	if q.VerifyHost && !q.VerifyPeer {
		t.DialTLSContext = namedTLS(dialer, secure, protocols)
	}
	if q.Proxy != "" {
		text := q.Proxy
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			return nil, errors.New("the HTTP proxy is no address; expected [http://][user[:password]@]host[:port]")
		}
		t.Proxy = http.ProxyURL(u)
	}
	return t, nil
}

func (c *Checker) tlsConfig(q *model.HTTPRequest) (*tls.Config, error) {
	s := &tls.Config{MinVersion: tls.VersionTLS10} // Old devices are asked too.
	if !q.VerifyPeer || !q.VerifyHost {
		// What is wanted of the two is checked below.
		s.InsecureSkipVerify = true
		s.VerifyConnection = func(state tls.ConnectionState) error { return verify(&state, q.VerifyPeer, q.VerifyHost) }
	}
	if q.CertFile == "" {
		return s, nil
	}
	cert, err := c.readFile(q.CertFile)
	if err != nil {
		return nil, err
	}
	key := cert
	if q.KeyFile != "" {
		if key, err = c.readFile(q.KeyFile); err != nil {
			return nil, err
		}
	}
	if q.KeyPassword != "" {
		return nil, errors.New("keys with a password are not read; store the key in the server's folder without one")
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", q.CertFile, err)
	}
	s.Certificates = []tls.Certificate{pair}
	return s, nil
}

// namedTLS connects with TLS and checks that the certificate is for the name or address that was asked for.
func namedTLS(dialer *net.Dialer, base *tls.Config, protocols []string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		nc, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s := base.Clone()
		s.ServerName, s.NextProtos = host, protocols
		s.VerifyConnection = func(state tls.ConnectionState) error { return state.PeerCertificates[0].VerifyHostname(host) }
		c := tls.Client(nc, s)
		if err := c.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, nc.Close())
		}
		return c, nil
	}
}

// verify checks one of the two things that a certificate can be checked for, or none.
func verify(state *tls.ConnectionState, peer, host bool) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the server shows no certificate")
	}
	leaf := state.PeerCertificates[0]
	if host {
		if err := leaf.VerifyHostname(state.ServerName); err != nil {
			return err
		}
	}
	if !peer {
		return nil
	}
	between := x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Intermediates: between})
	return err
}
