// Package ipmi speaks IPMI 2.0 over a network (RMCP+) as far as reading sensors needs it: sessions, commands and sensor data records.
//
// Source: Intelligent Platform Management Interface Specification, second generation, version 2.0, revision 1.1; section numbers below are
// those of it. Nothing of a datagram is believed before its length is checked, and nothing of a session before its authentication code is.
package ipmi

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // the protocol's
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
)

// maxDatagram is the largest datagram that is read.
const maxDatagram = 4096

// The types of payloads (13.27.3).
const (
	payloadMessage   = 0x00
	payloadOpen      = 0x10
	payloadOpenReply = 0x11
	payloadRAKP1     = 0x12
	payloadRAKP2     = 0x13
	payloadRAKP3     = 0x14
	payloadRAKP4     = 0x15
)

// suite is a cipher suite (22.15.2): how keys are agreed on, what authenticates packets, and AES-CBC-128 for what is in them.
type suite struct {
	name string
	// authentication, integrity and encryption are the numbers of the algorithms.
	authentication, integrity, encryption byte
	hash                                  func() hash.Hash
	// codeBytes is the length of a packet's authentication code.
	codeBytes int
}

// suites are those that are offered, the better one first: suite 17 and suite 3.
var suites = []suite{
	{"17 (SHA-256)", 3, 4, 1, sha256.New, 16},
	{"3 (SHA-1)", 1, 1, 1, sha1.New, 12},
}

func (s *suite) mac(key []byte, parts ...[]byte) []byte {
	m := hmac.New(s.hash, key)
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

// keys are those of a session.
type keys struct {
	suite *suite
	// integrity authenticates packets, encryption is the AES key.
	integrity, encryption []byte
}

var errPacket = errors.New("a packet is damaged")

// packet is a datagram of IPMI 2.0.
type packet struct {
	kind byte
	// session is the id of the session at the receiver; zero outside of one.
	session  uint32
	sequence uint32
	payload  []byte
}

// header is that of RMCP for IPMI (13.1.3), with the format of version 2.0 behind it.
var header = []byte{0x06, 0x00, 0xff, 0x07, 0x06}

// encode writes a packet; with keys it is encrypted and authenticated.
func (p *packet) encode(k *keys) ([]byte, error) {
	kind, payload := p.kind, p.payload
	if k != nil {
		kind |= 0xc0
		var err error
		if payload, err = seal(k.encryption, payload); err != nil {
			return nil, err
		}
	}
	out := append([]byte{}, header...)
	out = append(out, kind)
	out = binary.LittleEndian.AppendUint32(out, p.session)
	out = binary.LittleEndian.AppendUint32(out, p.sequence)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(payload)))
	out = append(out, payload...)
	if k == nil {
		return out, nil
	}
	// The part that is authenticated begins with the format and has a length divisible by four.
	pad := (4 - (len(out)-4+2)%4) % 4
	out = append(out, bytes.Repeat([]byte{0xff}, pad)...)
	out = append(out, byte(pad), 0x07)
	return append(out, k.suite.mac(k.integrity, out[4:])[:k.suite.codeBytes]...), nil
}

// decode reads a packet. With keys it must be authenticated by them; the session is compared by the caller.
func decode(in []byte, k *keys) (*packet, error) {
	const fixed = 16
	if len(in) < fixed || !bytes.Equal(in[:5], header) {
		return nil, errPacket
	}
	p := &packet{kind: in[5] & 0x3f, session: binary.LittleEndian.Uint32(in[6:]), sequence: binary.LittleEndian.Uint32(in[10:])}
	size := int(binary.LittleEndian.Uint16(in[14:]))
	if len(in) < fixed+size {
		return nil, errPacket
	}
	p.payload = in[fixed : fixed+size]
	if k == nil {
		if in[5]&0xc0 != 0 {
			return nil, errPacket
		}
		return p, nil
	}
	code := len(in) - k.suite.codeBytes
	if in[5]&0xc0 != 0xc0 || code < fixed+size+2 || !hmac.Equal(k.suite.mac(k.integrity, in[4:code])[:k.suite.codeBytes], in[code:]) {
		return nil, errPacket
	}
	var err error
	p.payload, err = open(k.encryption, p.payload)
	return p, err
}

// seal encrypts a payload (13.29): a random vector, then the payload with its padding 1, 2, 3, … and the length of that.
func seal(key, payload []byte) ([]byte, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	padded := append([]byte{}, payload...)
	pad := (aes.BlockSize - (len(payload)+1)%aes.BlockSize) % aes.BlockSize
	for i := range pad {
		padded = append(padded, byte(i+1))
	}
	padded = append(padded, byte(pad))
	out := make([]byte, aes.BlockSize+len(padded))
	_, _ = rand.Read(out[:aes.BlockSize]) // it never fails
	cipher.NewCBCEncrypter(block, out[:aes.BlockSize]).CryptBlocks(out[aes.BlockSize:], padded)
	return out, nil
}

func open(key, sealed []byte) ([]byte, error) {
	if len(sealed) < 2*aes.BlockSize || len(sealed)%aes.BlockSize != 0 {
		return nil, errPacket
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	out := make([]byte, len(sealed)-aes.BlockSize)
	cipher.NewCBCDecrypter(block, sealed[:aes.BlockSize]).CryptBlocks(out, sealed[aes.BlockSize:])
	pad := int(out[len(out)-1])
	if pad+1 > len(out) {
		return nil, errPacket
	}
	return out[:len(out)-1-pad], nil
}

// The addresses of the two sides in messages (5.5): the management controller, and software on this side.
const (
	controller = 0x20
	console    = 0x81
)

// message is a request (13.8).
type message struct {
	function, command byte
	// unit is the logical unit of the controller, sequence a number of 6 bits that the answer repeats.
	unit, sequence byte
	data           []byte
}

func (m *message) encode() []byte {
	out := []byte{controller, m.function<<2 | m.unit&3}
	out = append(out, checksum(out), console, m.sequence<<2, m.command)
	out = append(out, m.data...)
	return append(out, checksum(out[3:]))
}

// answer is what a controller answered: a completion code and, when that is zero, data.
type answer struct {
	code byte
	data []byte
}

// decodeAnswer reads the answer to a message; another message's is errPacket.
func (m *message) decodeAnswer(in []byte) (*answer, error) {
	if len(in) < 8 || in[1]>>2 != m.function|1 || in[4]>>2 != m.sequence || in[5] != m.command || checksum(in[:2]) != in[2] || checksum(in[3:len(in)-1]) != in[len(in)-1] {
		return nil, errPacket
	}
	return &answer{in[6], in[7 : len(in)-1]}, nil
}

// checksum is the one that makes a sum of zero.
func checksum(b []byte) byte {
	var sum byte
	for _, c := range b {
		sum += c
	}
	return -sum
}

// CodeError is an answer with a completion code other than zero (5.2).
type CodeError struct {
	Command string
	Code    byte
}

// Error says what the code means.
func (e *CodeError) Error() string {
	text := map[byte]string{
		0xc0: "the controller is busy", 0xc1: "the controller does not know the command", 0xc3: "the controller ran out of time", 0xc5: "the reservation was cancelled",
		0xc9: "a parameter is out of range", 0xcc: "the controller does not know the sensor, or a parameter", 0xca: "it cannot return so many bytes", 0xcb: "what was asked for is not present", 0xcd: "the command is illegal for this sensor", 0xce: "no answer could be given",
		0xd3: "the destination is not there", 0xd4: "the user's privilege is too low", 0xd5: "the command cannot be done now", 0xff: "an error that it does not name",
	}[e.Code]
	if text == "" {
		text = fmt.Sprintf("completion code 0x%02x", e.Code)
	}
	return e.Command + ": " + text
}
