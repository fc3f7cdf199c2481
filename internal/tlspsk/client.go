package tlspsk

import (
	"bytes"
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"slices"

	"golang.org/x/crypto/cryptobyte"
)

// retryRandom is the random of a hello that asks for another key share (RFC 8446, 4.1.3).
var retryRandom = sha256.Sum256([]byte("HelloRetryRequest"))

// ownShare is one side's half of a fresh secret.
type ownShare struct {
	share keyShare
	key   *ecdh.PrivateKey
}

func newShare(group uint16) (*ownShare, error) {
	key, err := curve(group).GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return &ownShare{keyShare{group, key.PublicKey().Bytes()}, key}, nil
}

// with returns the fresh secret made with the peer's half.
func (o *ownShare) with(data []byte) ([]byte, error) {
	public, err := curve(o.share.group).NewPublicKey(data)
	if err != nil {
		return nil, refusef(illegalParameter, "the peer's key share is no point of its group")
	}
	fresh, err := o.key.ECDH(public)
	if err != nil {
		return nil, refusef(illegalParameter, "the peer's key share is of low order")
	}
	return fresh, nil
}

// clientHandshake makes the client's side.
func (c *Conn) clientHandshake() error {
	if err := CheckKey(c.config.Identity, c.config.Key); err != nil {
		return err
	}
	hello := &clientHello{random: randomBytes(32), groups: groups, uncompressed: true}
	for _, v := range []uint16{VersionTLS13, VersionTLS12} {
		if c.config.allows(v) {
			hello.versions = append(hello.versions, v)
		}
	}
	for _, s := range suites {
		if c.config.allows(s.version) {
			hello.suites = append(hello.suites, s.id)
		}
	}
	var shares []*ownShare
	early := earlySecret(c.config.Key)
	if c.config.allows(VersionTLS13) {
		for _, g := range groups[:2] {
			own, err := newShare(g)
			if err != nil {
				return err
			}
			shares, hello.shares = append(shares, own), append(hello.shares, own.share)
		}
		hello.identities = [][]byte{[]byte(c.config.Identity)}
		hello.binders = [][]byte{make([]byte, sha256.Size)}
	}
	raw := hello.encode()
	if len(hello.binders) > 0 {
		signed := newTranscript()
		signed.add(raw[:hello.bindersAt])
		copy(raw[len(raw)-sha256.Size:], binder(early, signed.sum()))
	}
	if err := c.send(recordHandshake, raw); err != nil {
		return err
	}
	t := newTranscript()
	t.add(raw)
	answerRaw, err := c.readMessage(msgServerHello)
	if err != nil {
		return err
	}
	t.add(answerRaw)
	answer, err := decodeServerHello(answerRaw)
	if err != nil {
		return err
	}
	return c.answered(hello, answer, t, shares, early)
}

// answered goes on in the version that the server chose.
func (c *Conn) answered(hello *clientHello, answer *serverHello, t *transcript, shares []*ownShare, early []byte) error {
	s := suiteByID(answer.suite)
	version := answer.version
	if answer.selected != 0 {
		version = answer.selected
	}
	switch {
	case bytes.Equal(answer.random, retryRandom[:]):
		return refusef(handshakeFailure, "the server wants a key share of another group than X25519 and P-256")
	case !slices.Contains(hello.versions, version):
		return refusef(protocolVersion, "the server chose version %#04x, expected TLS 1.2 or 1.3", version)
	case s == nil || s.version != version || !slices.Contains(hello.suites, s.id):
		return refusef(illegalParameter, "the server chose suite %#04x, which was not offered", answer.suite)
	case version == VersionTLS13:
		return c.client13(s, answer, t, shares, early)
	case c.config.allows(VersionTLS13) && bytes.Equal(answer.random[24:], downgraded):
		return refusef(illegalParameter, "the server knows TLS 1.3 and was made to choose TLS 1.2")
	case answer.macLast && !s.cbc():
		return refusef(unsupportedExtension, "the server puts a MAC last that suite %s does not have", s.name)
	}
	return c.client12(&handshake12{s: s, hello: hello, answer: answer, t: t})
}

// client13 goes on in TLS 1.3.
func (c *Conn) client13(s *suite, answer *serverHello, t *transcript, shares []*ownShare, early []byte) error {
	if !answer.hasIdentity || answer.identity != 0 || len(answer.sessionID) != 0 {
		return refusef(illegalParameter, "the server did not take the pre-shared key")
	}
	i := slices.IndexFunc(shares, func(o *ownShare) bool { return o.share.group == answer.share.group })
	if i < 0 {
		return refusef(illegalParameter, "the server chose group %d, for which no share was sent", answer.share.group)
	}
	fresh, err := shares[i].with(answer.share.data)
	if err != nil {
		return err
	}
	if err := c.aligned(); err != nil {
		return err
	}
	handshake, sum := handshakeSecret(early, fresh), t.sum()
	clientSecret := deriveSecret(handshake, "c hs traffic", sum)
	serverSecret := deriveSecret(handshake, "s hs traffic", sum)
	if err := c.in.useSecret(s, serverSecret); err != nil {
		return err
	}
	if err := c.serverEnd13(t, serverSecret); err != nil {
		return err
	}
	master, sum := masterSecret(handshake), t.sum()
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if err := c.out.useSecret(s, clientSecret); err != nil {
		return err
	}
	c.appendRecord(recordHandshake, message(msgFinished, finishedMAC(clientSecret, sum)))
	if err := c.flush(); err != nil {
		return err
	}
	if err := c.out.useSecret(s, deriveSecret(master, "c ap traffic", sum)); err != nil {
		return err
	}
	if err := c.in.useSecret(s, deriveSecret(master, "s ap traffic", sum)); err != nil {
		return err
	}
	c.state = State{Version: VersionTLS13, Suite: s.name, Identity: c.config.Identity, KeySum: sha256.Sum256(c.config.Key)}
	return nil
}

// serverEnd13 reads what the server says under the keys of the handshake.
func (c *Conn) serverEnd13(t *transcript, serverSecret []byte) error {
	raw, err := c.readMessage(msgEncryptedExtensions)
	if err != nil {
		return err
	}
	s := cryptobyte.String(raw[4:])
	if err := eachExtension(&s, func(uint16, cryptobyte.String, bool) bool { return true }); err != nil {
		return err
	}
	t.add(raw)
	if raw, err = c.readMessage(msgFinished); err != nil {
		return err
	}
	if err := c.aligned(); err != nil {
		return err
	}
	if !hmac.Equal(raw[4:], finishedMAC(serverSecret, t.sum())) {
		return refusef(decryptError, "the server's end of the handshake is wrong")
	}
	t.add(raw)
	return nil
}

// client12 goes on in TLS 1.2.
func (c *Conn) client12(h *handshake12) error {
	raw, err := c.readMessage(msgServerKeyExchange, msgServerHelloDone)
	if err != nil {
		return err
	}
	var own *ownShare
	if raw[0] == msgServerKeyExchange {
		h.t.add(raw)
		if own, err = c.serverKeyExchange(h, raw); err != nil {
			return err
		}
		if raw, err = c.readMessage(msgServerHelloDone); err != nil {
			return err
		}
	}
	if len(raw) != 4 || h.s.ecdhe && own == nil {
		return refusef(unexpectedMessage, "the server's hello ends without its key share")
	}
	h.t.add(raw)
	exchange := encodeClientKeyExchange(c.config.Identity, own)
	h.t.add(exchange)
	master := h.master(c.config.Key)
	client, server, err := h.keys(master)
	if err != nil {
		return err
	}
	finished := message(msgFinished, prf(master, clientLabel, h.t.sum(), finishedBytes))
	if err := c.clientEnd12(exchange, finished, client); err != nil {
		return err
	}
	h.t.add(finished)
	if err := c.readChange(); err != nil {
		return err
	}
	c.in.use(server)
	if raw, err = c.readMessage(msgFinished); err != nil {
		return err
	}
	if err := c.aligned(); err != nil {
		return err
	}
	if !hmac.Equal(raw[4:], prf(master, serverLabel, h.t.sum(), finishedBytes)) {
		return refusef(decryptError, "the server's end of the handshake is wrong")
	}
	c.state = State{Version: VersionTLS12, Suite: h.s.name, Identity: c.config.Identity, KeySum: sha256.Sum256(c.config.Key)}
	return nil
}

// clientEnd12 sends the client's last messages.
func (c *Conn) clientEnd12(exchange, finished []byte, client protection) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	c.appendRecord(recordHandshake, exchange)
	c.appendRecord(recordChange, []byte{1})
	c.out.use(client)
	c.appendRecord(recordHandshake, finished)
	return c.flush()
}

// serverKeyExchange reads the hint, which is not used, and makes the fresh secret where the suite has one.
func (c *Conn) serverKeyExchange(h *handshake12, raw []byte) (*ownShare, error) {
	s := cryptobyte.String(raw[4:])
	var hint, point cryptobyte.String
	var form uint8
	var group uint16
	ok := s.ReadUint16LengthPrefixed(&hint)
	if ok && h.s.ecdhe {
		ok = s.ReadUint8(&form) && form == 3 && s.ReadUint16(&group) && s.ReadUint8LengthPrefixed(&point)
	}
	if !ok || !s.Empty() {
		return nil, refusef(decodeError, "the server's key exchange is cut or of no named curve")
	}
	if !h.s.ecdhe {
		return nil, nil
	}
	if !slices.Contains(groups, group) {
		return nil, refusef(illegalParameter, "the server chose group %d, which was not offered", group)
	}
	own, err := newShare(group)
	if err != nil {
		return nil, err
	}
	h.fresh, err = own.with(point)
	return own, err
}

func encodeClientKeyExchange(identity string, own *ownShare) []byte {
	var b cryptobyte.Builder
	b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes([]byte(identity)) })
	if own != nil {
		b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(own.share.data) })
	}
	return message(msgClientKeyExchange, b.BytesOrPanic())
}
