package tlspsk

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // as the MAC of the one suite that OpenSSL 1.0 has
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"golang.org/x/crypto/chacha20poly1305"
)

// suite is a cipher suite.
type suite struct {
	id   uint16
	name string
	// version is the only version that has the suite.
	version uint16
	// ecdhe suites of TLS 1.2 make a fresh secret; the others rely on the key alone.
	ecdhe    bool
	keyBytes int
	ivBytes  int
	// mac is that of suites in CBC mode, nil for the others.
	mac      func() hash.Hash
	macBytes int
	aead     func(key []byte) (cipher.AEAD, error)
}

func (s *suite) cbc() bool { return s.mac != nil }

// suites are in the order in which a server prefers them. TLS_AES_256_GCM_SHA384 is not among them: an external key
// belongs to one hash, SHA-256 where nothing else is said (RFC 8446, 4.2.11), and no agent offers a key for another.
var suites = []suite{
	{id: 0x1301, name: "TLS_AES_128_GCM_SHA256", version: VersionTLS13, keyBytes: 16, ivBytes: 12, aead: gcm},
	{id: 0x1303, name: "TLS_CHACHA20_POLY1305_SHA256", version: VersionTLS13, keyBytes: 32, ivBytes: 12, aead: chacha20poly1305.New},
	{id: 0xc037, name: "ECDHE-PSK-AES128-CBC-SHA256", version: VersionTLS12, ecdhe: true, keyBytes: 16, mac: sha256.New, macBytes: 32},
	{id: 0x00a8, name: "PSK-AES128-GCM-SHA256", version: VersionTLS12, keyBytes: 16, ivBytes: 4, aead: gcm},
	{id: 0x00ae, name: "PSK-AES128-CBC-SHA256", version: VersionTLS12, keyBytes: 16, mac: sha256.New, macBytes: 32},
	{id: 0x008c, name: "PSK-AES128-CBC-SHA", version: VersionTLS12, keyBytes: 16, mac: sha1.New, macBytes: 20},
}

func suiteByID(id uint16) *suite {
	for i := range suites {
		if suites[i].id == id {
			return &suites[i]
		}
	}
	return nil
}

func gcm(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

const (
	headerBytes = 5
	// maxPlainBytes is the largest content of a record.
	maxPlainBytes = 1 << 14
	// maxExtraBytes is what protection may add to it: 256 in TLS 1.3; an IV, padding and a MAC in TLS 1.2.
	maxExtraBytes = 16 + 256 + 32
	// maxRecords ends a connection before its keys have protected more than is safe (RFC 8446, 5.5): 256 GiB of full
	// records, when a request has 128 MiB at most.
	maxRecords = 1 << 24
)

// protection makes and opens records of one direction.
type protection interface {
	// seal appends a whole record with the content p to dst.
	seal(dst []byte, seq uint64, kind byte, p []byte) []byte
	// open decrypts the body of a record in place and returns its content and kind. It says nothing of why it fails.
	open(seq uint64, header, body []byte) (p []byte, kind byte, ok bool)
}

// aead13 protects records of TLS 1.3.
type aead13 struct {
	aead cipher.AEAD
	iv   [12]byte
}

func (a *aead13) nonce(seq uint64) []byte {
	n := a.iv
	tail := n[4:]
	binary.BigEndian.PutUint64(tail, binary.BigEndian.Uint64(tail)^seq)
	return n[:]
}

func (a *aead13) seal(dst []byte, seq uint64, kind byte, p []byte) []byte {
	start := len(dst)
	dst = appendHeader(dst, recordData, len(p)+1+a.aead.Overhead())
	content := len(dst)
	dst = append(append(dst, p...), kind)
	return a.aead.Seal(dst[:content], a.nonce(seq), dst[content:], dst[start:content])
}

func (a *aead13) open(seq uint64, header, body []byte) ([]byte, byte, bool) {
	if header[0] != recordData {
		return nil, 0, false
	}
	p, err := a.aead.Open(body[:0], a.nonce(seq), body, header)
	if err != nil {
		return nil, 0, false
	}
	end := len(p)
	for end > 0 && p[end-1] == 0 {
		end--
	}
	if end == 0 {
		return nil, 0, false
	}
	return p[:end-1], p[end-1], true
}

// gcm12 protects records of TLS 1.2 in GCM mode (RFC 5288): the explicit part of the nonce is the sequence number.
type gcm12 struct {
	aead cipher.AEAD
	iv   [4]byte
}

const explicitBytes = 8

func (g *gcm12) seal(dst []byte, seq uint64, kind byte, p []byte) []byte {
	dst = appendHeader(dst, kind, explicitBytes+len(p)+g.aead.Overhead())
	dst = binary.BigEndian.AppendUint64(dst, seq)
	var nonce [12]byte
	copy(nonce[:], g.iv[:])
	copy(nonce[4:], dst[len(dst)-explicitBytes:])
	extra := pseudoHeader(seq, kind, len(p))
	return g.aead.Seal(dst, nonce[:], p, extra[:])
}

func (g *gcm12) open(seq uint64, header, body []byte) ([]byte, byte, bool) {
	if len(body) < explicitBytes+g.aead.Overhead() {
		return nil, 0, false
	}
	var nonce [12]byte
	copy(nonce[:], g.iv[:])
	copy(nonce[4:], body[:explicitBytes])
	sealed := body[explicitBytes:]
	extra := pseudoHeader(seq, header[0], len(sealed)-g.aead.Overhead())
	p, err := g.aead.Open(sealed[:0], nonce[:], sealed, extra[:])
	return p, header[0], err == nil
}

func appendHeader(dst []byte, kind byte, length int) []byte {
	dst = append(dst, kind, 3, 3)
	return binary.BigEndian.AppendUint16(dst, uint16(length))
}

// pseudoHeader is what TLS 1.2 authenticates of a record besides its content.
func pseudoHeader(seq uint64, kind byte, length int) (h [13]byte) {
	binary.BigEndian.PutUint64(h[:], seq)
	h[8], h[9], h[10] = kind, 3, 3
	binary.BigEndian.PutUint16(h[11:], uint16(length))
	return h
}

// randomBytes returns n random bytes.
func randomBytes(n int) []byte {
	b := make([]byte, n)
	// Read never fails.
	_, _ = rand.Read(b)
	return b
}
