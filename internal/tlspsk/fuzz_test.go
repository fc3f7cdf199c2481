package tlspsk

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// wire is a connection that has received all it ever will.
type wire struct {
	io.Reader
	written bytes.Buffer
}

func (w *wire) Write(p []byte) (int, error)      { return w.written.Write(p) }
func (w *wire) Close() error                     { return nil }
func (w *wire) LocalAddr() net.Addr              { return nil }
func (w *wire) RemoteAddr() net.Addr             { return nil }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// recorded returns what each side of a handshake sends.
func recorded(f *testing.F, c *Config) (client, server []byte) {
	a, b := pipe(f)
	var fromClient, fromServer bytes.Buffer
	s := Server(&tapped{Conn: b, in: &fromClient}, &Config{Keys: testKeys()})
	done := make(chan error, 1)
	go func() { done <- s.Handshake() }()
	if err := Client(&tapped{Conn: a, in: &fromServer}, c).Handshake(); err != nil {
		f.Fatal(err)
	}
	if err := <-done; err != nil {
		f.Fatal(err)
	}
	return fromClient.Bytes(), fromServer.Bytes()
}

// FuzzServer gives a server anything: nobody gets in without a key, and the answer stays small.
func FuzzServer(f *testing.F) {
	for _, v := range []uint16{VersionTLS12, VersionTLS13} {
		client, _ := recorded(f, &Config{Identity: "a", Key: keyA, MaxVersion: v})
		f.Add(client)
		f.Add(client[:len(client)/2])
	}
	f.Add([]byte("\x16\x03\x01\x00\x04\x01\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := &wire{Reader: bytes.NewReader(b)}
		s := Server(w, &Config{Keys: testKeys()})
		if err := s.Handshake(); err == nil {
			t.Fatal("a handshake with recorded messages")
		}
		if w.written.Len() > 4096 {
			t.Errorf("%d bytes of answer", w.written.Len())
		}
	})
}

// FuzzClient gives a client anything.
func FuzzClient(f *testing.F) {
	for _, v := range []uint16{VersionTLS12, VersionTLS13} {
		_, server := recorded(f, &Config{Identity: "a", Key: keyA, MaxVersion: v})
		f.Add(server)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		w := &wire{Reader: bytes.NewReader(b)}
		if err := Client(w, &Config{Identity: "a", Key: keyA}).Handshake(); err == nil {
			t.Fatal("a handshake with recorded messages")
		}
	})
}

// FuzzHello decodes hellos and checks that what encodes decodes.
func FuzzHello(f *testing.F) {
	m := &clientHello{
		random: make([]byte, 32), suites: []uint16{0x1301}, versions: []uint16{VersionTLS13}, groups: groups,
		shares: []keyShare{{29, make([]byte, 32)}}, identities: [][]byte{[]byte("a")}, binders: [][]byte{make([]byte, 32)},
	}
	f.Add(m.encode())
	f.Add((&serverHello{random: make([]byte, 32), suite: 0x1301, selected: VersionTLS13, share: keyShare{29, make([]byte, 32)}}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 4 || len(b) > maxMessageBytes {
			return
		}
		if m, err := decodeClientHello(b); err == nil && len(m.identities) > 0 && (m.bindersAt <= 4 || m.bindersAt >= len(b)) {
			t.Errorf("binders at %d of %d", m.bindersAt, len(b))
		}
		if m, err := decodeServerHello(b); err == nil {
			if _, err := decodeServerHello(m.encode()); err != nil {
				t.Errorf("encoded again: %v", err)
			}
		}
	})
}

// FuzzOpen opens anything with the keys of each suite.
func FuzzOpen(f *testing.F) {
	for i := range suites {
		seal, _ := protections(f, &suites[i], false)
		f.Add(uint8(i), seal.seal(nil, 0, recordData, []byte("hello"))[headerBytes:])
	}
	f.Fuzz(func(t *testing.T, number uint8, body []byte) {
		s := &suites[int(number)%len(suites)]
		_, open := protections(t, s, number&0x80 != 0)
		header := appendHeader(nil, recordData, len(body))
		n := len(body)
		if p, _, ok := open.open(0, header, body); ok && len(p) > n {
			t.Errorf("%d bytes out of %d", len(p), n)
		}
	})
}

func BenchmarkHandshake(b *testing.B) {
	for _, v := range []uint16{VersionTLS12, VersionTLS13} {
		b.Run(map[uint16]string{VersionTLS12: "1.2", VersionTLS13: "1.3"}[v], func(b *testing.B) {
			for range b.N {
				a, c := net.Pipe()
				s := Server(c, &Config{Keys: testKeys()})
				done := make(chan error, 1)
				go func() { done <- s.Handshake() }()
				if err := Client(a, &Config{Identity: "a", Key: keyA, MaxVersion: v}).Handshake(); err != nil {
					b.Fatal(err)
				}
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSeal(b *testing.B) {
	p := make([]byte, maxPlainBytes)
	for i := range suites {
		b.Run(suites[i].name, func(b *testing.B) {
			seal, _ := protections(b, &suites[i], false)
			out := make([]byte, 0, 2*maxPlainBytes)
			b.SetBytes(maxPlainBytes)
			for n := range b.N {
				out = seal.seal(out[:0], uint64(n), recordData, p)
			}
		})
	}
}
