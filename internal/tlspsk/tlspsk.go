// Package tlspsk is TLS with a pre-shared key, which Zabbix agents, senders and proxies use and crypto/tls lacks.
//
// It holds what those peers need and nothing else: TLS 1.3 with an external key and ephemeral Diffie–Hellman
// (psk_dhe_ke), and TLS 1.2 with the suites of table suites, all of them with SHA-256 as the hash of the handshake. There is
// no renegotiation, resumption, compression, early data, or retry of a hello. Certificates are left to crypto/tls; Accept
// reads the first message of a connection and hands it to the right one.
//
// A server answers an unknown identity and a wrong key alike and after the same work, see keysOf. An identity may have two
// keys at a time, so that a key can be replaced without a gap.
//
// Sources: RFC 8446 (TLS 1.3), RFC 5246 (TLS 1.2), RFC 4279, 5487 and 5489 (suites with pre-shared keys), RFC 7366
// (encrypt-then-MAC), RFC 7627 (extended master secret), RFC 5746 (only the empty renegotiation_info that peers insist on).
// docs/design/0021-tls-psk.md says why this is our own.
package tlspsk

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
)

// The versions.
const (
	VersionTLS12 uint16 = 0x0303
	VersionTLS13 uint16 = 0x0304
)

const (
	// MaxIdentityBytes bounds an identity: 128 characters of up to four bytes, as Zabbix stores.
	MaxIdentityBytes = 512
	// MinKeyBytes and MaxKeyBytes bound a key.
	MinKeyBytes, MaxKeyBytes = 16, 256
	// MaxKeys is how many keys an identity may have at a time: the one in use and the one that replaces it.
	MaxKeys = 2
)

// Keys knows the keys of a server's peers.
type Keys interface {
	// Keys returns the keys of an identity, at most MaxKeys of MinKeyBytes to MaxKeyBytes, and none for an identity
	// that it does not know. The caller only reads them. Its time should not depend on whether the identity is known.
	Keys(identity string) [][]byte
}

// Config says what one side uses. It may be shared by connections and must not change while it is.
type Config struct {
	// Keys is needed by a server.
	Keys Keys
	// Identity and Key are needed by a client.
	Identity string
	Key      []byte
	// MinVersion and MaxVersion bound the version; zero is TLS 1.2 and TLS 1.3.
	MinVersion, MaxVersion uint16
}

func (c *Config) allows(version uint16) bool {
	return (c.MinVersion == 0 || version >= c.MinVersion) && (c.MaxVersion == 0 || version <= c.MaxVersion)
}

// State says what a handshake settled.
type State struct {
	Version uint16
	// Suite is the name of the cipher suite.
	Suite string
	// Identity is that of the key; empty when the peer showed a certificate.
	Identity string
	// KeySum is the SHA-256 sum of the key, which tells the keys of an identity apart; zero with a certificate.
	KeySum [sha256.Size]byte
	// Issuer and Subject are the names of the peer's certificate as RFC 4514 writes them; empty with a key.
	Issuer, Subject string
}

// ErrHandshake is in the error of every handshake that the two sides could not agree on, and of every record that does not
// carry the right keys; errors of the network are not.
var ErrHandshake = errors.New("TLS")

// Alert is the reason for the end of a connection, as TLS numbers it.
type Alert uint8

// The alerts that this package sends.
const (
	closeNotify          Alert = 0
	unexpectedMessage    Alert = 10
	badRecordMAC         Alert = 20
	recordOverflow       Alert = 22
	handshakeFailure     Alert = 40
	illegalParameter     Alert = 47
	decodeError          Alert = 50
	decryptError         Alert = 51
	protocolVersion      Alert = 70
	unsupportedExtension Alert = 110
)

// String names the alert.
func (a Alert) String() string {
	switch a {
	case closeNotify:
		return "close notify"
	case unexpectedMessage:
		return "unexpected message"
	case badRecordMAC:
		return "bad record MAC (wrong key or identity)"
	case recordOverflow:
		return "record overflow"
	case handshakeFailure:
		return "handshake failure (no common suite)"
	case illegalParameter:
		return "illegal parameter"
	case decodeError:
		return "decode error"
	case decryptError:
		return "decrypt error (wrong key or identity)"
	case protocolVersion:
		return "protocol version"
	case unsupportedExtension:
		return "unsupported extension"
	case 42, 43, 44, 45, 46, 48:
		return fmt.Sprintf("certificate refused (%d)", uint8(a))
	case 115:
		return "unknown PSK identity"
	}
	return fmt.Sprintf("alert %d", uint8(a))
}

// AlertError ends a connection.
type AlertError struct {
	Alert Alert
	// Remote is set when the peer sent it.
	Remote bool
	// Why says what was found and what was expected; empty for an alert of the peer.
	Why string
}

// Error says who ended the connection and why.
func (e *AlertError) Error() string {
	if e.Remote {
		return "TLS: the peer refuses: " + e.Alert.String()
	}
	return "TLS: " + e.Why
}

// Is makes every AlertError an ErrHandshake.
func (e *AlertError) Is(target error) bool { return target == ErrHandshake }

func refusef(a Alert, format string, args ...any) error {
	return &AlertError{Alert: a, Why: fmt.Sprintf(format, args...)}
}

// Server returns the server's side of a connection. The handshake is made by Handshake or the first Read or Write.
func Server(nc net.Conn, c *Config) *Conn { return &Conn{raw: nc, config: c} }

// Client returns the client's side of a connection. The handshake is made by Handshake or the first Read or Write.
func Client(nc net.Conn, c *Config) *Conn { return &Conn{raw: nc, config: c, client: true} }

// CheckKey says what is wrong with an identity and its key; nil for nothing.
func CheckKey(identity string, key []byte) error {
	if len(identity) == 0 || len(identity) > MaxIdentityBytes {
		return fmt.Errorf("PSK identity has %d bytes, expected 1 to %d", len(identity), MaxIdentityBytes)
	}
	if len(key) < MinKeyBytes || len(key) > MaxKeyBytes {
		return fmt.Errorf("PSK has %d hexadecimal digits, expected %d to %d", 2*len(key), 2*MinKeyBytes, 2*MaxKeyBytes)
	}
	return nil
}

// candidates are the keys that a handshake is tried with: always MaxKeys of them, so that the work is the same for every
// identity. real is 1 for those that may be accepted.
type candidates struct {
	keys [MaxKeys][]byte
	real [MaxKeys]int
}

// keysOf returns the keys of an identity, filled up with one that nobody has; it is always made, and as long as most keys.
func keysOf(k Keys, identity []byte) (c candidates, known bool) {
	nobodys := randomBytes(32)
	for i := range c.keys {
		c.keys[i] = nobodys
	}
	if k == nil || len(identity) == 0 || len(identity) > MaxIdentityBytes {
		return c, false
	}
	for i, key := range k.Keys(string(identity)) {
		if i < MaxKeys && len(key) >= MinKeyBytes && len(key) <= MaxKeyBytes {
			c.keys[i], c.real[i], known = key, 1, true
		}
	}
	return c, known
}
