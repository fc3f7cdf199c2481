package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"tidemark/internal/tlspsk"
)

// The values of TLS.Connect.
const (
	ConnectUnencrypted = "unencrypted"
	ConnectPSK         = "psk"
	ConnectCertificate = "cert"
)

// TLS says how the agent protects its connections to the server. Its zero value is unencrypted.
type TLS struct {
	// Connect is ConnectUnencrypted, ConnectPSK or ConnectCertificate; empty is unencrypted.
	Connect string
	// PSKIdentity and PSKFile are the pre-shared key: its identity, and a file of one line of hexadecimal digits.
	PSKIdentity, PSKFile string
	// CAFile, CertificateFile and KeyFile are PEM files: the authorities that sign the server's certificate, and the agent's own
	// certificate and key.
	CAFile, CertificateFile, KeyFile string
	// ServerIssuer and ServerSubject, where not empty, must be those of the server's certificate, as RFC 4514 writes them.
	ServerIssuer, ServerSubject string
}

// maxKeyFileBytes bounds a file with a pre-shared key.
const maxKeyFileBytes = 4096

// dialer makes a function that connects to the server; the files are read once.
func (t *TLS) dialer() (func(ctx context.Context, address string) (net.Conn, error), error) {
	plain := &net.Dialer{Timeout: dialTimeout}
	switch t.Connect {
	case "", ConnectUnencrypted:
		return func(ctx context.Context, address string) (net.Conn, error) {
			return plain.DialContext(ctx, "tcp", address)
		}, nil
	case ConnectPSK:
		key, err := t.readKey()
		if err != nil {
			return nil, err
		}
		c := &tlspsk.Config{Identity: t.PSKIdentity, Key: key}
		return func(ctx context.Context, address string) (net.Conn, error) {
			return shaken(ctx, plain, address, func(nc net.Conn) secured { return tlspsk.Client(nc, c) })
		}, nil
	case ConnectCertificate:
		c, err := t.certificates()
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, address string) (net.Conn, error) {
			return shaken(ctx, plain, address, func(nc net.Conn) secured { return tls.Client(nc, c) })
		}, nil
	}
	return nil, fmt.Errorf("agent.tls.connect is %q, expected unencrypted, psk or cert", t.Connect)
}

// secured is a connection that makes a handshake.
type secured interface {
	net.Conn
	HandshakeContext(ctx context.Context) error
}

func shaken(ctx context.Context, plain *net.Dialer, address string, secure func(net.Conn) secured) (net.Conn, error) {
	nc, err := plain.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := nc.SetDeadline(time.Now().Add(exchangeTimeout)); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	c := secure(nc)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%w; do the agent's TLS settings fit those of its host at the server", err), nc.Close())
	}
	return c, nil
}

func (t *TLS) readKey() ([]byte, error) {
	if t.PSKFile == "" || t.PSKIdentity == "" {
		return nil, errors.New("agent.tls.connect is psk: expected agent.tls.psk_identity and agent.tls.psk_file")
	}
	text, err := readSmall(t.PSKFile)
	if err != nil {
		return nil, fmt.Errorf("agent.tls.psk_file: %w", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		// Not the library's error, which shows a byte of the key.
		return nil, fmt.Errorf("agent.tls.psk_file %s: expected one line of hexadecimal digits", t.PSKFile)
	}
	if err := tlspsk.CheckKey(t.PSKIdentity, key); err != nil {
		return nil, fmt.Errorf("agent.tls.psk_file: %w", err)
	}
	return key, nil
}

func readSmall(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxKeyFileBytes {
		return nil, fmt.Errorf("%s has %d bytes, expected at most %d", name, info.Size(), maxKeyFileBytes)
	}
	return os.ReadFile(name)
}

// certificates makes settings that check the server as Zabbix does: its certificate must come from one of the authorities, and be of
// the issuer and subject that are set, whatever name it is reached by.
func (t *TLS) certificates() (*tls.Config, error) {
	if t.CAFile == "" || t.CertificateFile == "" || t.KeyFile == "" {
		return nil, errors.New("agent.tls.connect is cert: expected agent.tls.ca_file, agent.tls.certificate_file and agent.tls.key_file")
	}
	own, err := tls.LoadX509KeyPair(t.CertificateFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("agent.tls: %w", err)
	}
	text, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("agent.tls.ca_file: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("agent.tls.ca_file %s: expected certificates in PEM", t.CAFile)
	}
	return tlspsk.Verifying(&tls.Config{Certificates: []tls.Certificate{own}, RootCAs: roots, MinVersion: tls.VersionTLS12}, t.ServerIssuer, t.ServerSubject), nil
}
