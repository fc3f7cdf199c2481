package tlspsk

import (
	"encoding/binary"
	"slices"

	"golang.org/x/crypto/cryptobyte"
)

// The kinds of handshake messages.
const (
	msgHelloRequest        byte = 0
	msgClientHello         byte = 1
	msgServerHello         byte = 2
	msgNewSessionTicket    byte = 4
	msgEncryptedExtensions byte = 8
	msgServerKeyExchange   byte = 12
	msgServerHelloDone     byte = 14
	msgClientKeyExchange   byte = 16
	msgFinished            byte = 20
	msgKeyUpdate           byte = 24
)

// The extensions that are looked at.
const (
	extGroups          uint16 = 10
	extPointFormats    uint16 = 11
	extMACLast         uint16 = 22 // encrypt-then-MAC
	extExtendedMaster  uint16 = 23
	extPreSharedKey    uint16 = 41
	extVersions        uint16 = 43
	extKeyExchange     uint16 = 45 // psk_key_exchange_modes
	extKeyShare        uint16 = 51
	extRenegotiation   uint16 = 0xff01
	suiteRenegotiation uint16 = 0x00ff
)

const (
	// modeDHE is the only way to use a key in TLS 1.3 here: with a fresh secret besides.
	modeDHE = 1
	// maxListed bounds the entries of every list in a hello that is kept.
	maxListed = 64
	// maxIdentities bounds the identities of a hello that are looked up.
	maxIdentities = 4
)

type keyShare struct {
	group uint16
	data  []byte
}

// clientHello is what is used of a ClientHello.
type clientHello struct {
	raw            []byte // the message with its header
	version        uint16
	random         []byte
	sessionID      []byte
	suites         []uint16
	uncompressed   bool
	versions       []uint16
	groups         []uint16
	shares         []keyShare
	modes          []byte
	identities     [][]byte
	binders        [][]byte
	bindersAt      int // where in raw the binders begin: what they sign ends there
	macLast        bool
	extendedMaster bool
	renegotiation  bool
}

// decodeClientHello reads a message with its header.
func decodeClientHello(raw []byte) (*clientHello, error) {
	m := &clientHello{raw: raw}
	s := cryptobyte.String(raw[4:])
	var sessionID, suiteList, compressions cryptobyte.String
	ok := s.ReadUint16(&m.version) && s.ReadBytes(&m.random, 32) &&
		s.ReadUint8LengthPrefixed(&sessionID) && len(sessionID) <= 32 &&
		s.ReadUint16LengthPrefixed(&suiteList) && readUint16s(suiteList, &m.suites) &&
		s.ReadUint8LengthPrefixed(&compressions)
	if !ok {
		return nil, refusef(decodeError, "the client's hello is cut or too long")
	}
	m.sessionID = sessionID
	m.uncompressed = slices.Contains(compressions, 0)
	m.renegotiation = slices.Contains(m.suites, suiteRenegotiation)
	if s.Empty() {
		return m, nil
	}
	err := eachExtension(&s, func(kind uint16, body cryptobyte.String, last bool) bool {
		return m.extension(kind, body, last)
	})
	return m, err
}

// eachExtension walks the extensions that end a message.
func eachExtension(s *cryptobyte.String, f func(kind uint16, body cryptobyte.String, last bool) bool) error {
	var list cryptobyte.String
	if !s.ReadUint16LengthPrefixed(&list) || !s.Empty() {
		return refusef(decodeError, "the extensions of a hello are cut")
	}
	seen := make([]uint16, 0, 24)
	for !list.Empty() {
		var kind uint16
		var body cryptobyte.String
		if !list.ReadUint16(&kind) || !list.ReadUint16LengthPrefixed(&body) {
			return refusef(decodeError, "an extension of a hello is cut")
		}
		if slices.Contains(seen, kind) || len(seen) == maxListed {
			return refusef(illegalParameter, "extension %d comes twice, or there are more than %d", kind, maxListed)
		}
		seen = append(seen, kind)
		if !f(kind, body, list.Empty()) {
			return refusef(decodeError, "extension %d is not as expected", kind)
		}
	}
	return nil
}

func (m *clientHello) extension(kind uint16, body cryptobyte.String, last bool) bool {
	switch kind {
	case extVersions:
		var list cryptobyte.String
		return body.ReadUint8LengthPrefixed(&list) && readUint16s(list, &m.versions) && body.Empty()
	case extGroups:
		var list cryptobyte.String
		return body.ReadUint16LengthPrefixed(&list) && readUint16s(list, &m.groups) && body.Empty()
	case extKeyShare:
		return m.keyShares(body)
	case extKeyExchange:
		var list cryptobyte.String
		if !body.ReadUint8LengthPrefixed(&list) || !body.Empty() {
			return false
		}
		m.modes = list
	case extPreSharedKey:
		return last && m.preSharedKeys(body)
	case extMACLast:
		m.macLast = true
		return body.Empty()
	case extExtendedMaster:
		m.extendedMaster = true
		return body.Empty()
	case extRenegotiation:
		// Only for a first handshake, which has an empty one.
		m.renegotiation = true
		return len(body) == 1 && body[0] == 0
	}
	return true
}

func (m *clientHello) keyShares(body cryptobyte.String) bool {
	var list cryptobyte.String
	if !body.ReadUint16LengthPrefixed(&list) || !body.Empty() {
		return false
	}
	for !list.Empty() {
		var share keyShare
		var data cryptobyte.String
		if !list.ReadUint16(&share.group) || !list.ReadUint16LengthPrefixed(&data) || len(m.shares) == maxListed {
			return false
		}
		share.data = data
		m.shares = append(m.shares, share)
	}
	return true
}

func (m *clientHello) preSharedKeys(body cryptobyte.String) bool {
	var identities, binders cryptobyte.String
	if !body.ReadUint16LengthPrefixed(&identities) {
		return false
	}
	m.bindersAt = len(m.raw) - len(body)
	if !body.ReadUint16LengthPrefixed(&binders) || !body.Empty() {
		return false
	}
	for !identities.Empty() {
		var identity cryptobyte.String
		var age uint32
		if !identities.ReadUint16LengthPrefixed(&identity) || !identities.ReadUint32(&age) || len(m.identities) == maxListed {
			return false
		}
		m.identities = append(m.identities, identity)
	}
	for !binders.Empty() {
		var b cryptobyte.String
		if !binders.ReadUint8LengthPrefixed(&b) || len(m.binders) == maxListed {
			return false
		}
		m.binders = append(m.binders, b)
	}
	return len(m.identities) > 0 && len(m.identities) == len(m.binders)
}

// offersKey reports whether the client means to use a pre-shared key.
func (m *clientHello) offersKey() bool {
	if len(m.identities) > 0 {
		return true
	}
	for _, id := range m.suites {
		if s := suiteByID(id); s != nil && s.version == VersionTLS12 {
			return true
		}
	}
	return false
}

func readUint16s(s cryptobyte.String, list *[]uint16) bool {
	if len(s)%2 != 0 {
		return false
	}
	for !s.Empty() {
		var v uint16
		if !s.ReadUint16(&v) {
			return false
		}
		// More than this many are read over: nobody's choice depends on them.
		if len(*list) < 4*maxListed {
			*list = append(*list, v)
		}
	}
	return true
}

// encode returns the message with its header. The binders are zeros, to be set when the rest is known.
func (m *clientHello) encode() []byte {
	var b cryptobyte.Builder
	b.AddUint8(msgClientHello)
	b.AddUint24LengthPrefixed(func(b *cryptobyte.Builder) {
		b.AddUint16(VersionTLS12)
		b.AddBytes(m.random)
		b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(m.sessionID) })
		b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { addUint16s(b, m.suites) })
		b.AddBytes([]byte{1, 0})
		b.AddUint16LengthPrefixed(m.addExtensions)
	})
	m.raw = b.BytesOrPanic()
	binderBytes := 2
	for _, binder := range m.binders {
		binderBytes += 1 + len(binder)
	}
	m.bindersAt = len(m.raw) - binderBytes
	return m.raw
}

func (m *clientHello) addExtensions(b *cryptobyte.Builder) {
	addExtension(b, extVersions, func(b *cryptobyte.Builder) {
		b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) { addUint16s(b, m.versions) })
	})
	addExtension(b, extGroups, func(b *cryptobyte.Builder) {
		b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { addUint16s(b, m.groups) })
	})
	addExtension(b, extPointFormats, func(b *cryptobyte.Builder) { b.AddBytes([]byte{1, 0}) })
	addExtension(b, extMACLast, nil)
	addExtension(b, extExtendedMaster, nil)
	addExtension(b, extRenegotiation, func(b *cryptobyte.Builder) { b.AddUint8(0) })
	if len(m.identities) == 0 {
		return
	}
	addExtension(b, extKeyShare, func(b *cryptobyte.Builder) {
		b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) {
			for _, s := range m.shares {
				b.AddUint16(s.group)
				b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(s.data) })
			}
		})
	})
	addExtension(b, extKeyExchange, func(b *cryptobyte.Builder) { b.AddBytes([]byte{1, modeDHE}) })
	addExtension(b, extPreSharedKey, func(b *cryptobyte.Builder) {
		b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) {
			for _, identity := range m.identities {
				b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(identity) })
				b.AddUint32(0) // the age, which only tickets have
			}
		})
		b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) {
			for _, binder := range m.binders {
				b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(binder) })
			}
		})
	})
}

func addExtension(b *cryptobyte.Builder, kind uint16, body func(*cryptobyte.Builder)) {
	b.AddUint16(kind)
	if body == nil {
		body = func(*cryptobyte.Builder) {}
	}
	b.AddUint16LengthPrefixed(body)
}

func addUint16s(b *cryptobyte.Builder, list []uint16) {
	for _, v := range list {
		b.AddUint16(v)
	}
}

// serverHello is a ServerHello.
type serverHello struct {
	version   uint16
	random    []byte
	sessionID []byte
	suite     uint16
	// selected is the version of TLS 1.3, zero before.
	selected uint16
	share    keyShare
	// identity is the number of the identity that the server took; hasIdentity says that it took one.
	identity                               uint16
	hasIdentity                            bool
	macLast, extendedMaster, renegotiation bool
}

func decodeServerHello(raw []byte) (*serverHello, error) {
	m := &serverHello{}
	s := cryptobyte.String(raw[4:])
	var sessionID cryptobyte.String
	var compression uint8
	ok := s.ReadUint16(&m.version) && s.ReadBytes(&m.random, 32) &&
		s.ReadUint8LengthPrefixed(&sessionID) && len(sessionID) <= 32 &&
		s.ReadUint16(&m.suite) && s.ReadUint8(&compression)
	if !ok || compression != 0 {
		return nil, refusef(decodeError, "the server's hello is cut or compresses")
	}
	m.sessionID = sessionID
	if s.Empty() {
		return m, nil
	}
	err := eachExtension(&s, func(kind uint16, body cryptobyte.String, _ bool) bool {
		switch kind {
		case extVersions:
			return body.ReadUint16(&m.selected) && body.Empty()
		case extKeyShare:
			var data cryptobyte.String
			if !body.ReadUint16(&m.share.group) || !body.ReadUint16LengthPrefixed(&data) || !body.Empty() {
				return false
			}
			m.share.data = data
		case extPreSharedKey:
			m.hasIdentity = true
			return body.ReadUint16(&m.identity) && body.Empty()
		case extMACLast:
			m.macLast = true
			return body.Empty()
		case extExtendedMaster:
			m.extendedMaster = true
			return body.Empty()
		case extRenegotiation:
			m.renegotiation = true
			return len(body) == 1 && body[0] == 0
		case extPointFormats:
		default:
			return false // Not asked for.
		}
		return true
	})
	return m, err
}

func (m *serverHello) encode() []byte {
	var b cryptobyte.Builder
	b.AddUint8(msgServerHello)
	b.AddUint24LengthPrefixed(func(b *cryptobyte.Builder) {
		b.AddUint16(VersionTLS12)
		b.AddBytes(m.random)
		b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(m.sessionID) })
		b.AddUint16(m.suite)
		b.AddUint8(0)
		b.AddUint16LengthPrefixed(m.addExtensions)
	})
	return b.BytesOrPanic()
}

func (m *serverHello) addExtensions(b *cryptobyte.Builder) {
	if m.selected != 0 {
		addExtension(b, extVersions, func(b *cryptobyte.Builder) { b.AddUint16(m.selected) })
		addExtension(b, extKeyShare, func(b *cryptobyte.Builder) {
			b.AddUint16(m.share.group)
			b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(m.share.data) })
		})
		addExtension(b, extPreSharedKey, func(b *cryptobyte.Builder) { b.AddUint16(m.identity) })
		return
	}
	if m.renegotiation {
		addExtension(b, extRenegotiation, func(b *cryptobyte.Builder) { b.AddUint8(0) })
	}
	if m.extendedMaster {
		addExtension(b, extExtendedMaster, nil)
	}
	if m.macLast {
		addExtension(b, extMACLast, nil)
	}
}

// message returns a handshake message of this kind and body.
func message(kind byte, body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(kind)<<24|uint32(len(body)))
	return append(out, body...)
}
