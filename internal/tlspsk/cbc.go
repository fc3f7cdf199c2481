package tlspsk

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/subtle"
	"hash"
)

// cbc12 protects records of TLS 1.2 in CBC mode. With macLast, as RFC 7366 has it, the MAC covers the encrypted bytes
// and is checked before anything is decrypted. Without, as OpenSSL 1.0 has it, the MAC lies inside, and open takes care
// that its time tells nothing of the padding.
type cbc12 struct {
	block    cipher.Block
	mac      hash.Hash
	newHash  func() hash.Hash
	macLast  bool
	macBytes int
}

func newCBC(s *suite, key, macKey []byte, macLast bool) (*cbc12, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return &cbc12{block: block, mac: hmac.New(s.mac, macKey), newHash: s.mac, macLast: macLast, macBytes: s.macBytes}, nil
}

// sum appends the MAC of a record whose authenticated bytes are p.
func (c *cbc12) sum(dst []byte, seq uint64, kind byte, p []byte) []byte {
	h := pseudoHeader(seq, kind, len(p))
	c.mac.Reset()
	c.mac.Write(h[:])
	c.mac.Write(p)
	return c.mac.Sum(dst)
}

func (c *cbc12) seal(dst []byte, seq uint64, kind byte, p []byte) []byte {
	start := len(dst)
	dst = appendHeader(dst, kind, 0)
	var iv [aes.BlockSize]byte
	_, _ = rand.Read(iv[:]) // Read never fails.
	dst = append(dst, iv[:]...)
	content := len(dst)
	dst = append(dst, p...)
	if !c.macLast {
		dst = c.sum(dst, seq, kind, p)
	}
	pad := aes.BlockSize - (len(dst)-content)%aes.BlockSize
	for range pad {
		dst = append(dst, byte(pad-1))
	}
	cipher.NewCBCEncrypter(c.block, iv[:]).CryptBlocks(dst[content:], dst[content:])
	if c.macLast {
		dst = c.sum(dst, seq, kind, dst[start+headerBytes:])
	}
	length := len(dst) - start - headerBytes
	dst[start+3], dst[start+4] = byte(length>>8), byte(length)
	return dst
}

func (c *cbc12) open(seq uint64, header, body []byte) ([]byte, byte, bool) {
	kind := header[0]
	if c.macLast {
		if len(body) < c.macBytes {
			return nil, 0, false
		}
		sealed := body[:len(body)-c.macBytes]
		if !hmac.Equal(c.sum(nil, seq, kind, sealed), body[len(sealed):]) {
			return nil, 0, false
		}
		body = sealed
	}
	if len(body) < 2*aes.BlockSize || len(body)%aes.BlockSize != 0 {
		return nil, 0, false
	}
	p := body[aes.BlockSize:]
	cipher.NewCBCDecrypter(c.block, body[:aes.BlockSize]).CryptBlocks(p, p)
	if c.macLast {
		remove, good := padding(p, 0)
		return p[:len(p)-remove], kind, good == 1
	}
	p, ok := c.openInner(seq, kind, p)
	return p, kind, ok
}

// openInner checks padding and MAC of decrypted bytes together. A wrong padding is taken for one of length zero, the
// MAC is computed all the same, and the hash is given as many more blocks as the longest content would have had: so
// the work is the same whatever the padding says.
func (c *cbc12) openInner(seq uint64, kind byte, p []byte) ([]byte, bool) {
	if len(p) < c.macBytes+1 {
		return nil, false
	}
	remove, good := padding(p, c.macBytes)
	length := len(p) - remove - c.macBytes
	local := c.sum(nil, seq, kind, p[:length])
	var filler [hashBlockBytes]byte
	h := c.newHash()
	for range hashBlocks(len(p)-c.macBytes-1) - hashBlocks(length) {
		h.Write(filler[:])
	}
	good &= subtle.ConstantTimeCompare(local, p[length:length+c.macBytes])
	return p[:length], good == 1
}

// hashBlockBytes is the block of SHA-1 and SHA-256.
const hashBlockBytes = 64

// hashBlocks is how many blocks the inner hash of a MAC takes for n bytes: the key's, the pseudo header, the content,
// and at least nine bytes of padding.
func hashBlocks(n int) int {
	return (hashBlockBytes + 13 + n + 9 + hashBlockBytes - 1) / hashBlockBytes
}

// padding returns how many bytes of p are padding with its length byte, and 1 if all of them are right and leave room
// for need bytes. Its time depends on the length of p only.
func padding(p []byte, need int) (remove, good int) {
	last := p[len(p)-1]
	good = subtle.ConstantTimeLessOrEq(int(last)+1+need, len(p))
	for i := range min(256, len(p)) {
		inside := subtle.ConstantTimeLessOrEq(i, int(last))
		good &= subtle.ConstantTimeByteEq(p[len(p)-1-i], last) | (1 ^ inside)
	}
	return subtle.ConstantTimeSelect(good, int(last)+1, 1), good
}
