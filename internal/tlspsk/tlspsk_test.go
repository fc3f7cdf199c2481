package tlspsk

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"testing"
	"time"
)

// keyring is a fixed set of keys.
type keyring map[string][][]byte

func (k keyring) Keys(identity string) [][]byte { return k[identity] }

var (
	keyA = bytes.Repeat([]byte{0xa1}, 32)
	keyB = bytes.Repeat([]byte{0xb2}, 16)
)

func testKeys() keyring {
	return keyring{"a": {keyA}, "b": {keyB}, "rotating": {keyA, keyB}}
}

// pipe returns both ends of a connection over loopback, closed with the test.
func pipe(t testing.TB) (client, server net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err = net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// shake makes a handshake and returns both sides and their errors.
func shake(t testing.TB, client, server *Config) (c, s *Conn, clientErr, serverErr error) {
	a, b := pipe(t)
	c, s = Client(a, client), Server(b, server)
	done := make(chan error, 1)
	go func() { done <- s.Handshake() }()
	clientErr = c.Handshake()
	if clientErr != nil {
		a.Close()
	}
	return c, s, clientErr, <-done
}

func TestHandshake_versions(t *testing.T) {
	tests := []struct {
		name           string
		client, server Config
		version        uint16
		suite          string
	}{
		{"both know 1.3", Config{}, Config{}, VersionTLS13, "TLS_AES_128_GCM_SHA256"},
		{"client knows 1.2", Config{MaxVersion: VersionTLS12}, Config{}, VersionTLS12, "ECDHE-PSK-AES128-CBC-SHA256"},
		{"server knows 1.2", Config{}, Config{MaxVersion: VersionTLS12}, VersionTLS12, "ECDHE-PSK-AES128-CBC-SHA256"},
		{"only 1.3", Config{MinVersion: VersionTLS13}, Config{MinVersion: VersionTLS13}, VersionTLS13, "TLS_AES_128_GCM_SHA256"},
	}
	for _, test := range tests {
		for _, who := range []struct {
			identity string
			key      []byte
		}{{"a", keyA}, {"b", keyB}, {"rotating", keyA}, {"rotating", keyB}} {
			t.Run(test.name+" "+who.identity, func(t *testing.T) {
				test.client.Identity, test.client.Key = who.identity, who.key
				test.server.Keys = testKeys()
				c, s, clientErr, serverErr := shake(t, &test.client, &test.server)
				if clientErr != nil || serverErr != nil {
					t.Fatalf("handshake: client %v, server %v", clientErr, serverErr)
				}
				want := State{Version: test.version, Suite: test.suite, Identity: who.identity, KeySum: sha256.Sum256(who.key)}
				if c.State() != want || s.State() != want {
					t.Errorf("state %+v and %+v, want %+v", c.State(), s.State(), want)
				}
				exchange(t, c, s)
			})
		}
	}
}

// exchange sends much both ways and says farewell.
func exchange(t *testing.T, c, s *Conn) {
	t.Helper()
	sent := make([]byte, 100_000)
	for i := range sent {
		sent[i] = byte(i * 7)
	}
	done := make(chan error, 1)
	go func() {
		got := make([]byte, len(sent))
		_, err := io.ReadFull(s, got)
		if err == nil && !bytes.Equal(got, sent) {
			err = errors.New("other bytes arrived")
		}
		if err == nil {
			_, err = s.Write(got)
		}
		done <- errors.Join(err, s.Close())
	}()
	if _, err := c.Write(sent); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came back, want %d: %v", len(got), len(sent), err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A wrong key and an unknown identity end alike: same error on the client, same alert.
func TestHandshake_refused(t *testing.T) {
	for _, version := range []uint16{VersionTLS12, VersionTLS13} {
		var seen [][]byte
		for _, who := range []struct {
			identity string
			key      []byte
		}{{"a", keyB}, {"nobody", keyA}, {"rotating", bytes.Repeat([]byte{1}, 32)}} {
			a, b := pipe(t)
			var got bytes.Buffer
			c := Client(&tapped{Conn: a, in: &got}, &Config{Identity: who.identity, Key: who.key, MaxVersion: version})
			s := Server(b, &Config{Keys: testKeys()})
			done := make(chan error, 1)
			go func() { done <- s.Handshake() }()
			clientErr, serverErr := c.Handshake(), <-done
			var alert *AlertError
			if !errors.As(clientErr, &alert) || !alert.Remote || !errors.Is(serverErr, ErrHandshake) {
				t.Errorf("version %#x, identity %s: client %v, server %v; want a refusal by the server", version, who.identity, clientErr, serverErr)
			}
			if s.State() != (State{}) {
				t.Errorf("state after a refusal: %+v", s.State())
			}
			// Only the lengths and kinds of records can be compared: they hold fresh shares.
			seen = append(seen, shape(got.Bytes()))
		}
		for i := range seen {
			if !bytes.Equal(seen[i], seen[0]) {
				t.Errorf("version %#x: the answers differ: % x and % x", version, seen[0], seen[i])
			}
		}
	}
}

type tapped struct {
	net.Conn
	in *bytes.Buffer
}

func (c *tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.Write(p[:n])
	return n, err
}

// shape returns the headers of records, and the bodies of alerts.
func shape(b []byte) (out []byte) {
	for len(b) >= headerBytes {
		n := headerBytes + int(b[3])<<8 + int(b[4])
		out = append(out, b[:headerBytes]...)
		if b[0] == recordAlert {
			out = append(out, b[headerBytes:n]...)
		}
		b = b[n:]
	}
	return out
}

func TestHandshake_downgrade(t *testing.T) {
	// Somebody in between takes TLS 1.3 out of the client's hello; the client sees the server's mark.
	a, b := pipe(t)
	c := Client(&firstWrite{Conn: a, edit: func(p []byte) []byte {
		return bytes.Replace(p, []byte{0, 43, 0, 5, 4, 3, 4, 3, 3}, []byte{0, 43, 0, 5, 4, 3, 3, 3, 3}, 1)
	}}, &Config{Identity: "a", Key: keyA})
	s := Server(b, &Config{Keys: testKeys()})
	done := make(chan error, 1)
	go func() { done <- s.Handshake() }()
	err := c.Handshake()
	a.Close()
	var alert *AlertError
	if !errors.As(err, &alert) || alert.Alert != illegalParameter || alert.Remote {
		t.Errorf("client: %v, want it to see the downgrade", err)
	}
	if err := <-done; err == nil {
		t.Error("the server made the handshake")
	}
}

type firstWrite struct {
	net.Conn
	edit func([]byte) []byte
}

func (c *firstWrite) Write(p []byte) (int, error) {
	if c.edit != nil {
		n := len(p)
		_, err := c.Conn.Write(c.edit(bytes.Clone(p)))
		c.edit = nil
		return n, err
	}
	return c.Conn.Write(p)
}

// Every suite opens what it sealed, and nothing that was changed anywhere.
func TestProtection(t *testing.T) {
	for _, s := range suites {
		for _, macLast := range []bool{false, true} {
			if macLast && !s.cbc() {
				continue
			}
			seal, open := protections(t, &s, macLast)
			for _, n := range []int{0, 1, 15, 16, 17, 255, 256, 300, 1000, maxPlainBytes} {
				p := bytes.Repeat([]byte{'x'}, n)
				record := seal.seal([]byte("before"), 5, recordData, p)[len("before"):]
				if want := len(record) - headerBytes; int(record[3])<<8+int(record[4]) != want || want > maxPlainBytes+maxExtraBytes {
					t.Fatalf("%s: header % x for %d bytes", s.name, record[:headerBytes], want)
				}
				try := func(seq uint64, r []byte) ([]byte, bool) {
					r = bytes.Clone(r)
					got, kind, ok := open.open(seq, r[:headerBytes], r[headerBytes:])
					return got, ok && kind == recordData
				}
				if got, ok := try(5, record); !ok || !bytes.Equal(got, p) {
					t.Fatalf("%s: %d bytes do not come back", s.name, n)
				}
				if _, ok := try(6, record); ok {
					t.Fatalf("%s: opened out of order", s.name)
				}
				for _, at := range []int{headerBytes, headerBytes + 9, len(record) / 2, len(record) - 33, len(record) - 17, len(record) - 1} {
					changed := bytes.Clone(record)
					changed[max(at, headerBytes)] ^= 0x40
					if _, ok := try(5, changed); ok {
						t.Fatalf("%s: %d bytes opened with byte %d of %d changed", s.name, n, at, len(record))
					}
				}
				for cut := range min(n, 40) {
					if _, ok := try(5, record[:len(record)-1-cut]); ok {
						t.Fatalf("%s: opened without its last %d bytes", s.name, cut+1)
					}
				}
			}
		}
	}
}

// protections makes both ends of one direction of a suite.
func protections(t testing.TB, s *suite, macLast bool) (seal, open protection) {
	t.Helper()
	make1 := func() protection {
		if s.version == VersionTLS13 {
			p, err := traffic(s, bytes.Repeat([]byte{7}, 32))
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		client, _, err := keys12(s, make([]byte, masterBytes), make([]byte, 32), make([]byte, 32), macLast)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	return make1(), make1()
}

// The number of blocks hashed may not depend on the padding: the content's blocks and the filler make the same sum.
func TestPadding(t *testing.T) {
	for n := 1; n <= 300; n++ {
		p := bytes.Repeat([]byte{1}, n)
		p[n-1] = 0
		if remove, good := padding(p, 0); remove != 1 || good != 1 {
			t.Errorf("%d bytes with a padding of zero: %d, %d", n, remove, good)
		}
		for i := range min(n, 256) {
			p := bytes.Repeat([]byte{byte(i)}, n)
			if remove, good := padding(p, 0); remove != i+1 || good != 1 {
				t.Fatalf("%d bytes with a padding of %d: %d, %d", n, i, remove, good)
			}
			if i > 0 {
				p[n-2] ^= 1
				if remove, good := padding(p, 0); remove != 1 || good != 0 {
					t.Fatalf("%d bytes with a wrong padding of %d: %d, %d", n, i, remove, good)
				}
			}
			if _, good := padding(bytes.Repeat([]byte{byte(i)}, n), n-i); good != 0 {
				t.Fatalf("%d bytes with a padding of %d leave room for %d", n, i, n-i)
			}
		}
	}
}

// RFC 8448 has no external key; the schedule is checked against its resumed handshake, part 4: the key there is the
// one that a ticket stands for, only the label of the binder differs.
func TestSchedule_early(t *testing.T) {
	psk := unhex(t, "4ecd0eb6ec3b4d87f5d6028f922ca4c5851a277fd41311c9e62d2c9492e1c4f3")
	want := unhex(t, "9b2188e9b2fc6d64d71dc329900e20bb41915000f678aa839cbb797cb7d8332c")
	if got := earlySecret(psk); !bytes.Equal(got, want) {
		t.Errorf("early secret % x, want % x", got, want)
	}
}

// A vector that implementers of TLS 1.2 have agreed on for P_SHA256 (IETF TLS list, 2009).
func TestPRF(t *testing.T) {
	secret := unhex(t, "9bbe436ba940f017b17652849a71db35")
	seed := unhex(t, "a0ba9f936cda311827a6f796ffd5198c")
	want := unhex(t, "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a")
	if got := prf(secret, "test label", seed, 100); !bytes.Equal(got[:32], want) {
		t.Errorf("% x, want % x", got[:32], want)
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	n, ok := new(big.Int).SetString(s, 16)
	if !ok {
		t.Fatalf("%q is not hexadecimal", s)
	}
	return n.FillBytes(make([]byte, len(s)/2))
}

func TestKeyUpdate(t *testing.T) {
	c, s, clientErr, serverErr := shake(t, &Config{Identity: "a", Key: keyA}, &Config{Keys: testKeys()})
	if clientErr != nil || serverErr != nil {
		t.Fatal(clientErr, serverErr)
	}
	// The client updates its key and asks the server to do so too.
	if err := c.send(recordHandshake, message(msgKeyUpdate, []byte{1})); err != nil {
		t.Fatal(err)
	}
	if err := c.out.useSecret(c.out.suite, expandLabel(c.out.secret, "traffic upd", nil, 32)); err != nil {
		t.Fatal(err)
	}
	exchange(t, c, s)
}

func TestRead_floods(t *testing.T) {
	tests := []struct {
		name string
		kind byte
		body []byte
	}{
		{"empty records", recordData, nil},
		{"key updates", recordHandshake, message(msgKeyUpdate, []byte{0})},
		{"a hello", recordHandshake, message(msgClientHello, nil)},
		{"half a key update in front", recordHandshake, append(message(msgKeyUpdate, []byte{0}), 0)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, s, clientErr, serverErr := shake(t, &Config{Identity: "a", Key: keyA}, &Config{Keys: testKeys()})
			if clientErr != nil || serverErr != nil {
				t.Fatal(clientErr, serverErr)
			}
			go func() {
				for range 2 * maxIdleRecords {
					if c.send(test.kind, test.body) != nil {
						return
					}
					if len(test.body) == 5 && c.out.useSecret(c.out.suite, expandLabel(c.out.secret, "traffic upd", nil, 32)) != nil {
						return
					}
				}
			}()
			_, err := s.Read(make([]byte, 1))
			var alert *AlertError
			if !errors.As(err, &alert) || alert.Alert != unexpectedMessage {
				t.Errorf("%v, want an unexpected message", err)
			}
		})
	}
}

func TestRead_cut(t *testing.T) {
	c, s, clientErr, serverErr := shake(t, &Config{Identity: "a", Key: keyA}, &Config{Keys: testKeys()})
	if clientErr != nil || serverErr != nil {
		t.Fatal(clientErr, serverErr)
	}
	c.raw.Close()
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v, want an unexpected end: nobody said farewell", err)
	}
}

func TestAccept(t *testing.T) {
	certificate := selfSigned(t)
	serve := func(cert *tls.Config) (net.Conn, chan State, chan error) {
		a, b := pipe(t)
		states, errs := make(chan State, 1), make(chan error, 1)
		go func() {
			c, state, err := Accept(b, &Config{Keys: testKeys()}, cert)
			if err == nil {
				_, err = io.Copy(c, c)
			}
			states <- state
			errs <- err
			if c != nil {
				c.Close()
			}
			b.Close()
		}()
		return a, states, errs
	}
	check := func(c interface {
		net.Conn
		CloseWrite() error
	},
	) {
		t.Helper()
		_, err := c.Write([]byte("hello"))
		got, err2 := io.ReadAll(io.LimitReader(c, 5))
		if err = errors.Join(err, err2, c.CloseWrite()); err != nil || string(got) != "hello" {
			t.Errorf("%q came back: %v", got, err)
		}
	}
	both := &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAnyClientCert}

	nc, states, errs := serve(both)
	check(Client(nc, &Config{Identity: "a", Key: keyA}))
	if s, err := <-states, <-errs; err != nil || s.Identity != "a" {
		t.Errorf("with a key: %+v, %v", s, err)
	}
	nc, states, errs = serve(both)
	check(tls.Client(nc, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{certificate}}))
	if s, err := <-states, <-errs; err != nil || s.Identity != "" || s.Subject != "CN=peer,O=Tidemark" {
		t.Errorf("with a certificate: %+v, %v", s, err)
	}
	nc, _, errs = serve(nil)
	if err := tls.Client(nc, &tls.Config{InsecureSkipVerify: true}).Handshake(); err == nil {
		t.Error("a handshake without key and certificates")
	}
	if err := <-errs; !errors.Is(err, ErrHandshake) {
		t.Errorf("server: %v", err)
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "peer", Organization: []string{"Tidemark"}},
		NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
