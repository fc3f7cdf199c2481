// Package tlsdial connects to a server as Zabbix's programs do: in the clear, with a pre-shared key, or with certificates.
package tlsdial

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

// The values of Settings.Connect.
const (
	Unencrypted = "unencrypted"
	PSK         = "psk"
	Certificate = "cert"
)

// Time limits.
const (
	dialTimeout      = 3 * time.Second
	handshakeTimeout = 30 * time.Second
)

// Settings say how connections to the server are protected. Their zero value is unencrypted.
type Settings struct {
	// Connect is Unencrypted, PSK or Certificate; empty is unencrypted.
	Connect string
	// PSKIdentity and PSKFile are the pre-shared key: its identity, and a file of one line of hexadecimal digits.
	PSKIdentity, PSKFile string
	// CAFile, CertificateFile and KeyFile are PEM files: the authorities that sign the server's certificate, and the own
	// certificate and key.
	CAFile, CertificateFile, KeyFile string
	// ServerIssuer and ServerSubject, where not empty, must be those of the server's certificate, as RFC 4514 writes them.
	ServerIssuer, ServerSubject string
}

// maxKeyFileBytes bounds a file with a pre-shared key.
const maxKeyFileBytes = 4096

// Dial connects to the server.
type Dial = func(ctx context.Context, address string) (net.Conn, error)

// Dialer makes a function that connects to the server; the files are read once. section is how errors name the settings: "agent.tls".
func (t *Settings) Dialer(section string) (Dial, error) {
	plain := &net.Dialer{Timeout: dialTimeout}
	switch t.Connect {
	case "", Unencrypted:
		return func(ctx context.Context, address string) (net.Conn, error) {
			return plain.DialContext(ctx, "tcp", address)
		}, nil
	case PSK:
		key, err := t.readKey(section)
		if err != nil {
			return nil, err
		}
		c := &tlspsk.Config{Identity: t.PSKIdentity, Key: key}
		return func(ctx context.Context, address string) (net.Conn, error) {
			return (&shaker{plain, section}).dial(ctx, address, func(nc net.Conn) secured { return tlspsk.Client(nc, c) })
		}, nil
	case Certificate:
		c, err := t.certificates(section)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, address string) (net.Conn, error) {
			return (&shaker{plain, section}).dial(ctx, address, func(nc net.Conn) secured { return tls.Client(nc, c) })
		}, nil
	}
	return nil, fmt.Errorf("%s.connect is %q, expected unencrypted, psk or cert", section, t.Connect)
}

// secured is a connection that makes a handshake.
type secured interface {
	net.Conn
	HandshakeContext(ctx context.Context) error
}

// shaker connects and makes the handshake.
type shaker struct {
	plain   *net.Dialer
	section string
}

func (s *shaker) dial(ctx context.Context, address string, secure func(net.Conn) secured) (net.Conn, error) {
	nc, err := s.plain.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := nc.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	c := secure(nc)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%w; do the settings of %s fit those at the server", err, s.section), nc.Close())
	}
	return c, nil
}

// Key reads the pre-shared key; section is how errors name the settings.
func (t *Settings) Key(section string) ([]byte, error) { return t.readKey(section) }

func (t *Settings) readKey(section string) ([]byte, error) {
	if t.PSKFile == "" || t.PSKIdentity == "" {
		return nil, fmt.Errorf("%[1]s.connect is psk: expected %[1]s.psk_identity and %[1]s.psk_file", section)
	}
	text, err := readSmall(t.PSKFile)
	if err != nil {
		return nil, fmt.Errorf("%s.psk_file: %w", section, err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		// Not the library's error, which shows a byte of the key.
		return nil, fmt.Errorf("%s.psk_file %s: expected one line of hexadecimal digits", section, t.PSKFile)
	}
	if err := tlspsk.CheckKey(t.PSKIdentity, key); err != nil {
		return nil, fmt.Errorf("%s.psk_file: %w", section, err)
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
func (t *Settings) certificates(section string) (*tls.Config, error) {
	if t.CAFile == "" || t.CertificateFile == "" || t.KeyFile == "" {
		return nil, fmt.Errorf("%[1]s.connect is cert: expected %[1]s.ca_file, %[1]s.certificate_file and %[1]s.key_file", section)
	}
	own, err := tls.LoadX509KeyPair(t.CertificateFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", section, err)
	}
	text, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("%s.ca_file: %w", section, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s.ca_file %s: expected certificates in PEM", section, t.CAFile)
	}
	return tlspsk.Verifying(&tls.Config{Certificates: []tls.Certificate{own}, RootCAs: roots, MinVersion: tls.VersionTLS12}, t.ServerIssuer, t.ServerSubject), nil
}
