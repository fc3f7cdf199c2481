package tlspsk

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"slices"

	"golang.org/x/crypto/cryptobyte"
)

// downgraded ends the random of a server that knows TLS 1.3 and speaks TLS 1.2 (RFC 8446, 4.1.3).
var downgraded = []byte("DOWNGRD\x01")

// readClientHello reads the first message of a client.
func (c *Conn) readClientHello() (*clientHello, error) {
	raw, err := c.readMessage(msgClientHello)
	if err != nil {
		return nil, err
	}
	if err := c.aligned(); err != nil {
		return nil, err
	}
	return decodeClientHello(raw)
}

// serverHandshake makes the server's side; hello is the client's when it is read already.
func (c *Conn) serverHandshake(hello *clientHello) error {
	if hello == nil {
		var err error
		if hello, err = c.readClientHello(); err != nil {
			return err
		}
	}
	if len(hello.versions) == 0 && hello.version >= VersionTLS12 {
		hello.versions = []uint16{VersionTLS12}
	}
	offers := func(v uint16) bool { return slices.Contains(hello.versions, v) && c.config.allows(v) }
	if !hello.uncompressed {
		return refusef(illegalParameter, "the client insists on compression")
	}
	if offers(VersionTLS13) && len(hello.identities) > 0 {
		return c.server13(hello)
	}
	if offers(VersionTLS12) {
		return c.server12(hello)
	}
	if offers(VersionTLS13) {
		return refusef(handshakeFailure, "the client offers no pre-shared key; set TLSConnect=psk, TLSPSKIdentity and TLSPSKFile on it")
	}
	return refusef(protocolVersion, "the client offers the versions %#04x, expected TLS 1.2 or 1.3", hello.versions)
}

// choose returns the first suite of a version that both sides have.
func (hello *clientHello) choose(version uint16) *suite {
	for i := range suites {
		s := &suites[i]
		if s.version != version || !slices.Contains(hello.suites, s.id) {
			continue
		}
		// A fresh secret is wanted, but CBC mode only with its MAC outside where there is a choice.
		if s.ecdhe && (!hello.macLast || hello.group() == 0) {
			continue
		}
		return s
	}
	return nil
}

// group returns the first group that both sides have, zero for none.
func (hello *clientHello) group() uint16 {
	for _, g := range groups {
		if slices.Contains(hello.groups, g) {
			return g
		}
	}
	return 0
}

// keyOf returns the keys of the first identity that is known, and its number. Where none is known that is the first.
func (c *Conn) keyOf(identities [][]byte) (number int, keys candidates) {
	for i, identity := range identities[:min(len(identities), maxIdentities)] {
		k, known := keysOf(c.config.Keys, identity)
		if i == 0 || known {
			number, keys = i, k
		}
		if known {
			break
		}
	}
	return number, keys
}

// server13 goes on in TLS 1.3.
func (c *Conn) server13(hello *clientHello) error {
	s := hello.choose(VersionTLS13)
	if s == nil || !slices.Contains(hello.modes, modeDHE) {
		return refusef(handshakeFailure, "no common suite: the client offers %#04x with key exchange modes %v", hello.suites, hello.modes)
	}
	number, keys := c.keyOf(hello.identities)
	signed := newTranscript()
	signed.add(hello.raw[:hello.bindersAt])
	sum := signed.sum()
	var early, chosen []byte
	found := 0
	for i, key := range keys.keys {
		secret := earlySecret(key)
		fits := keys.real[i] & subtle.ConstantTimeCompare(binder(secret, sum), hello.binders[number])
		if fits&(1^found) == 1 {
			early, chosen = secret, key
		}
		found |= fits
	}
	if found == 0 {
		return refusef(decryptError, "the client %q has no key or a wrong one", hello.identities[number])
	}
	share, fresh, err := answerShare(hello.shares)
	if err != nil {
		return err
	}
	t := newTranscript()
	t.add(hello.raw)
	answer := &serverHello{
		random: randomBytes(32), sessionID: hello.sessionID, suite: s.id, selected: VersionTLS13, share: share, identity: uint16(number),
	}
	handshake := handshakeSecret(early, fresh)
	clientApp, serverApp, clientSecret, err := c.server13Flight(s, t, answer.encode(), handshake)
	if err != nil {
		return err
	}
	raw, err := c.readMessage(msgFinished)
	if err != nil {
		return err
	}
	if err := c.aligned(); err != nil {
		return err
	}
	if !hmac.Equal(raw[4:], finishedMAC(clientSecret, t.sum())) {
		return refusef(decryptError, "the client's end of the handshake is wrong")
	}
	if err := c.in.useSecret(s, clientApp); err != nil {
		return err
	}
	c.out.secret = serverApp
	c.state = State{Version: VersionTLS13, Suite: s.name, Identity: string(hello.identities[number]), KeySum: sha256.Sum256(chosen)}
	return nil
}

// server13Flight sends all that the server has to say, and makes the secrets.
func (c *Conn) server13Flight(s *suite, t *transcript, answer, handshake []byte) (clientApp, serverApp, clientSecret []byte, err error) {
	t.add(answer)
	sum := t.sum()
	clientSecret = deriveSecret(handshake, "c hs traffic", sum)
	serverSecret := deriveSecret(handshake, "s hs traffic", sum)
	extensions := message(msgEncryptedExtensions, []byte{0, 0})
	t.add(extensions)
	finished := message(msgFinished, finishedMAC(serverSecret, t.sum()))
	t.add(finished)

	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	c.appendRecord(recordHandshake, answer)
	c.appendRecord(recordChange, []byte{1}) // For boxes in between (RFC 8446, D.4).
	if err := c.out.useSecret(s, serverSecret); err != nil {
		return nil, nil, nil, err
	}
	c.appendRecord(recordHandshake, append(extensions, finished...))
	if err := c.flush(); err != nil {
		return nil, nil, nil, err
	}
	master, sum := masterSecret(handshake), t.sum()
	clientApp = deriveSecret(master, "c ap traffic", sum)
	serverApp = deriveSecret(master, "s ap traffic", sum)
	if err := c.out.useSecret(s, serverApp); err != nil {
		return nil, nil, nil, err
	}
	return clientApp, serverApp, clientSecret, c.in.useSecret(s, clientSecret)
}

// answerShare makes the server's share and the fresh secret. A client whose shares are all of other groups is refused:
// asking it for another one is not done here, and no agent needs it.
func answerShare(shares []keyShare) (keyShare, []byte, error) {
	for _, g := range groups {
		for _, s := range shares {
			if s.group != g {
				continue
			}
			own, err := newShare(g)
			if err != nil {
				return keyShare{}, nil, err
			}
			fresh, err := own.with(s.data)
			return own.share, fresh, err
		}
	}
	return keyShare{}, nil, refusef(handshakeFailure, "the client has no key share of X25519, P-256, P-384 or P-521")
}

// server12 goes on in TLS 1.2.
func (c *Conn) server12(hello *clientHello) error {
	s := hello.choose(VersionTLS12)
	if s == nil {
		return refusef(handshakeFailure, "no common suite: the client offers %#04x; it must offer a pre-shared key (TLSConnect=psk)", hello.suites)
	}
	random := randomBytes(32)
	if c.config.allows(VersionTLS13) {
		copy(random[24:], downgraded)
	}
	macLast := s.cbc() && hello.macLast
	answer := &serverHello{
		random: random, suite: s.id, macLast: macLast, extendedMaster: hello.extendedMaster, renegotiation: hello.renegotiation,
	}
	t := newTranscript()
	t.add(hello.raw)
	flight := answer.encode()
	var own *ownShare
	if s.ecdhe {
		var err error
		if own, err = newShare(hello.group()); err != nil {
			return err
		}
		flight = append(flight, encodeServerKeyExchange(own.share)...)
	}
	flight = append(flight, message(msgServerHelloDone, nil)...)
	t.add(flight)
	if err := c.send(recordHandshake, flight); err != nil {
		return err
	}
	raw, err := c.readMessage(msgClientKeyExchange)
	if err != nil {
		return err
	}
	t.add(raw)
	identity, share, ok := decodeClientKeyExchange(raw, s.ecdhe)
	if !ok {
		return refusef(decodeError, "the client's key exchange is cut")
	}
	var fresh []byte
	if own != nil {
		if fresh, err = own.with(share); err != nil {
			return err
		}
	}
	h := &handshake12{s: s, hello: hello, answer: answer, t: t, fresh: fresh}
	return c.finish12(h, identity)
}

// handshake12 is what both sides of TLS 1.2 know when the keys are exchanged.
type handshake12 struct {
	s      *suite
	hello  *clientHello
	answer *serverHello
	t      *transcript
	fresh  []byte
}

// master returns the master secret that a key makes.
func (h *handshake12) master(key []byte) []byte {
	secret := premaster(key, h.fresh)
	if h.answer.extendedMaster {
		return prf(secret, "extended master secret", h.t.sum(), masterBytes)
	}
	return prf(secret, "master secret", append(append([]byte(nil), h.hello.random...), h.answer.random...), masterBytes)
}

func (h *handshake12) keys(master []byte) (client, server protection, err error) {
	return keys12(h.s, master, h.hello.random, h.answer.random, h.answer.macLast)
}

// readChange reads a change of cipher of TLS 1.2.
func (c *Conn) readChange() error {
	if err := c.aligned(); err != nil {
		return err
	}
	kind, p, err := c.readRecord()
	if err != nil {
		return err
	}
	if kind != recordChange || len(p) != 1 || p[0] != 1 {
		return refusef(unexpectedMessage, "a record of kind %d, expected a change of cipher", kind)
	}
	return nil
}

// finish12 reads the client's end of the handshake with each of the keys that the identity may have, and sends the
// server's. All keys are tried, also behind one that fits.
func (c *Conn) finish12(h *handshake12, identity []byte) error {
	keys, _ := keysOf(c.config.Keys, identity)
	if err := c.readChange(); err != nil {
		return err
	}
	header, sealed, err := c.readRaw()
	if err != nil {
		return err
	}
	var master, finished, chosen []byte
	var client, server protection
	for i, key := range keys.keys {
		m := h.master(key)
		in, out, err := h.keys(m)
		if err != nil {
			return err
		}
		p, kind, ok := in.open(0, header, append([]byte(nil), sealed...))
		if ok && keys.real[i] == 1 && kind == recordHandshake {
			master, client, server, finished, chosen = m, in, out, p, key
		}
	}
	want := message(msgFinished, prf(master, clientLabel, h.t.sum(), finishedBytes))
	if master == nil || !hmac.Equal(finished, want) {
		return refusef(badRecordMAC, "the client %q has no key or a wrong one", identity)
	}
	c.in.use(client)
	c.in.seq = 1
	h.t.add(want)
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	c.appendRecord(recordChange, []byte{1})
	c.out.use(server)
	c.appendRecord(recordHandshake, message(msgFinished, prf(master, serverLabel, h.t.sum(), finishedBytes)))
	if err := c.flush(); err != nil {
		return err
	}
	c.state = State{Version: VersionTLS12, Suite: h.s.name, Identity: string(identity), KeySum: sha256.Sum256(chosen)}
	return nil
}

// encodeServerKeyExchange returns the message with an empty hint and the server's share.
func encodeServerKeyExchange(share keyShare) []byte {
	var b cryptobyte.Builder
	b.AddUint16(0)
	b.AddUint8(3) // a named curve
	b.AddUint16(share.group)
	b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(share.data) })
	return message(msgServerKeyExchange, b.BytesOrPanic())
}

func decodeClientKeyExchange(raw []byte, ecdhe bool) (identity, share []byte, ok bool) {
	s := cryptobyte.String(raw[4:])
	var id, point cryptobyte.String
	ok = s.ReadUint16LengthPrefixed(&id) && (!ecdhe || s.ReadUint8LengthPrefixed(&point)) && s.Empty()
	return id, point, ok
}
