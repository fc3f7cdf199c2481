package tlspsk

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"golang.org/x/crypto/cryptobyte"
)

// transcript is the hash of all messages of a handshake.
type transcript struct{ h hash.Hash }

func newTranscript() *transcript { return &transcript{sha256.New()} }

func (t *transcript) add(message []byte) { t.h.Write(message) }

func (t *transcript) sum() []byte { return t.h.Sum(nil) }

func mac(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// prf is the pseudo-random function of TLS 1.2 (RFC 5246, 5).
func prf(secret []byte, label string, seed []byte, n int) []byte {
	labelled := append([]byte(label), seed...)
	out := make([]byte, 0, n+sha256.Size)
	for a := mac(secret, labelled); len(out) < n; a = mac(secret, a) {
		out = append(out, mac(secret, a, labelled)...)
	}
	return out[:n]
}

// premaster is the secret that a key and, in suites with one, a fresh secret make (RFC 4279, 2; RFC 5489, 2). Without a
// fresh one as many zeros as the key has bytes take its place.
func premaster(key, fresh []byte) []byte {
	if fresh == nil {
		fresh = make([]byte, len(key))
	}
	out := binary.BigEndian.AppendUint16(nil, uint16(len(fresh)))
	out = append(out, fresh...)
	out = binary.BigEndian.AppendUint16(out, uint16(len(key)))
	return append(out, key...)
}

const (
	masterBytes   = 48
	finishedBytes = 12
	clientLabel   = "client finished"
	serverLabel   = "server finished"
)

// keys12 makes the protections of both directions from the master secret.
func keys12(s *suite, master, clientRandom, serverRandom []byte, macLast bool) (client, server protection, err error) {
	seed := append(append([]byte(nil), serverRandom...), clientRandom...)
	block := prf(master, "key expansion", seed, 2*(s.macBytes+s.keyBytes+s.ivBytes))
	take := func(n int) []byte {
		b := block[:n]
		block = block[n:]
		return b
	}
	clientMAC, serverMAC := take(s.macBytes), take(s.macBytes)
	clientKey, serverKey := take(s.keyBytes), take(s.keyBytes)
	if s.cbc() {
		if client, err = newCBC(s, clientKey, clientMAC, macLast); err != nil {
			return nil, nil, err
		}
		server, err = newCBC(s, serverKey, serverMAC, macLast)
		return client, server, err
	}
	a, err := s.aead(clientKey)
	if err != nil {
		return nil, nil, err
	}
	b, err := s.aead(serverKey)
	if err != nil {
		return nil, nil, err
	}
	return &gcm12{a, [4]byte(take(s.ivBytes))}, &gcm12{b, [4]byte(take(s.ivBytes))}, nil
}

// expandLabel is HKDF-Expand-Label (RFC 8446, 7.1).
func expandLabel(secret []byte, label string, context []byte, n int) []byte {
	var b cryptobyte.Builder
	b.AddUint16(uint16(n))
	b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) {
		b.AddBytes([]byte("tls13 "))
		b.AddBytes([]byte(label))
	})
	b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(context) })
	out, err := hkdf.Expand(sha256.New, secret, string(b.BytesOrPanic()), n)
	if err != nil {
		panic("tlspsk: expand: " + err.Error()) // n is a constant far below the limit
	}
	return out
}

func deriveSecret(secret []byte, label string, sum []byte) []byte {
	return expandLabel(secret, label, sum, sha256.Size)
}

func extract(secret, salt []byte) []byte {
	out, err := hkdf.Extract(sha256.New, secret, salt)
	if err != nil {
		panic("tlspsk: extract: " + err.Error()) // SHA-256 is always allowed
	}
	return out
}

var (
	emptySum = sha256.Sum256(nil)
	zeros    [sha256.Size]byte
)

// earlySecret is the first secret of TLS 1.3; binder the MAC by which a client proves that it has the key.
func earlySecret(key []byte) []byte { return extract(key, zeros[:]) }

func binder(early, sum []byte) []byte {
	return finishedMAC(deriveSecret(early, "ext binder", emptySum[:]), sum)
}

func finishedMAC(secret, sum []byte) []byte {
	return mac(expandLabel(secret, "finished", nil, sha256.Size), sum)
}

func handshakeSecret(early, fresh []byte) []byte {
	return extract(fresh, deriveSecret(early, "derived", emptySum[:]))
}

func masterSecret(handshake []byte) []byte {
	return extract(zeros[:], deriveSecret(handshake, "derived", emptySum[:]))
}

// traffic makes the protection of one direction from its secret.
func traffic(s *suite, secret []byte) (protection, error) {
	a, err := s.aead(expandLabel(secret, "key", nil, s.keyBytes))
	if err != nil {
		return nil, err
	}
	return &aead13{a, [12]byte(expandLabel(secret, "iv", nil, 12))}, nil
}

// groups are the groups of key shares, in the order in which a server prefers them.
var groups = []uint16{29, 23, 24, 25}

func curve(group uint16) ecdh.Curve {
	switch group {
	case 29:
		return ecdh.X25519()
	case 23:
		return ecdh.P256()
	case 24:
		return ecdh.P384()
	case 25:
		return ecdh.P521()
	}
	return nil
}
