package ipmi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// controllerFor is a management controller with suite 17, one user and the answers to commands, by function and command.
type controllerFor struct {
	t        *testing.T
	password string
	answers  map[[2]byte][]byte
	// drop is how many datagrams are ignored before each answer, garbage is sent in their place.
	drop int
}

func (c *controllerFor) serve(nc net.PacketConn) {
	const remote = 0x51525354
	suite, guid, theirs := &suites[0], bytes.Repeat([]byte{7}, 16), bytes.Repeat([]byte{9}, 16)
	var k *keys
	var local, mine, who, master []byte
	buffer, ignored := make([]byte, maxDatagram), 0
	for {
		n, from, err := nc.ReadFrom(buffer)
		if err != nil {
			return
		}
		in := buffer[:n]
		if ignored < c.drop {
			ignored++
			_, _ = nc.WriteTo([]byte("garbage"), from)
			_, _ = nc.WriteTo(append(append([]byte{}, header...), 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 1, 2, 3, 4, 5), from)
			continue
		}
		ignored = 0
		reply := &packet{}
		var seal *keys
		p, err := decode(in, nil)
		if err != nil {
			if p, err = decode(in, k); err != nil {
				continue
			}
		}
		switch p.kind {
		case payloadOpen:
			local = append([]byte{}, p.payload[4:8]...)
			reply.kind, reply.payload = payloadOpenReply, binary.LittleEndian.AppendUint32(append([]byte{0, 0, 4, 0}, local...), remote)
			reply.payload = append(reply.payload, p.payload[8:]...)
		case payloadRAKP1:
			mine, who = append([]byte{}, p.payload[8:24]...), append([]byte{p.payload[24]}, p.payload[27:]...)
			reply.kind, reply.payload = payloadRAKP2, append([]byte{0, 0, 0, 0}, local...)
			if string(who[2:]) != "watcher" {
				reply.payload[1] = 0x0d
				break
			}
			reply.payload = append(append(reply.payload, theirs...), guid...)
			reply.payload = append(reply.payload, suite.mac([]byte(c.password), local, binary.LittleEndian.AppendUint32(nil, remote), mine, theirs, guid, who)...)
		case payloadRAKP3:
			if p.payload[1] != 0 {
				continue
			}
			if !bytes.Equal(p.payload[8:], suite.mac([]byte(c.password), theirs, local, who)) {
				c.t.Error("the code of the third message does not fit")
			}
			master = suite.mac([]byte(c.password), mine, theirs, who)
			reply.kind, reply.payload = payloadRAKP4, append([]byte{0, 0, 0, 0}, local...)
			reply.payload = append(reply.payload, suite.mac(master, mine, binary.LittleEndian.AppendUint32(nil, remote), guid)[:16]...)
			k = &keys{suite: suite, integrity: suite.mac(master, bytes.Repeat([]byte{1}, 20)), encryption: suite.mac(master, bytes.Repeat([]byte{2}, 20))[:16]}
		default:
			m := p.payload
			answer := c.answers[[2]byte{m[1] >> 2, m[5]}]
			if answer == nil {
				answer = []byte{0xc1}
			}
			out := []byte{console, (m[1]>>2 | 1) << 2}
			out = append(out, checksum(out), controller, m[4], m[5])
			out = append(out, answer...)
			reply.payload, seal = append(out, checksum(out[3:])), k
			reply.session = binary.LittleEndian.Uint32(local)
		}
		datagram, err := reply.encode(seal)
		if err != nil {
			c.t.Error(err)
		}
		_, _ = nc.WriteTo(datagram, from)
	}
}

func (c *controllerFor) start() string {
	nc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); c.serve(nc) }()
	c.t.Cleanup(func() { _ = nc.Close(); <-done })
	return nc.LocalAddr().String()
}

func TestSession(t *testing.T) {
	c := &controllerFor{t: t, password: "secret", drop: 2, answers: map[[2]byte][]byte{
		{0x06, 0x3b}: {0, 2}, {0x06, 0x3c}: {0}, {0x04, 0x2d}: {0, 30, 0xc0, 0xc0}, {0x04, 0x27}: {0, 0x12, 1, 2, 3, 4, 5, 6}, {0x0a, 0x22}: {0xcb},
	}}
	address := c.start()
	resent := 0
	o := Options{Address: address, Username: "watcher", Password: "secret", Privilege: User, Resend: 10 * time.Millisecond, OnResent: func() { resent++ }}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	temp, err := DecodeRecord(fullRecord())
	if err != nil {
		t.Fatal(err)
	}
	state, err := s.Read(t.Context(), temp)
	if err != nil || state.Absent || state.Value != 50 || !state.HasValue || state.Bits != 0 {
		t.Errorf("%+v %v", state, err)
	}
	levels, err := s.Thresholds(t.Context(), temp)
	if err != nil || levels[LowerCritical] == nil || *levels[LowerCritical] != -6 || *levels[UpperCritical] != 0 || levels[UpperNonCritical] != nil {
		t.Errorf("%v %v", levels, err)
	}
	var code *CodeError
	if _, err := s.Records(t.Context()); !errors.As(err, &code) || !strings.Contains(err.Error(), "not present") {
		t.Errorf("records: %v", err)
	}
	if _, err := s.Command(t.Context(), "odd", 0, 0x06, 0x77); !errors.As(err, &code) || code.Code != 0xc1 {
		t.Errorf("an unknown command: %v", err)
	}
	foreign := *temp
	foreign.Owner = 0x30
	if _, err := s.Read(t.Context(), &foreign); err == nil {
		t.Error("another controller's sensor is read")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if resent == 0 {
		t.Error("nothing was sent again")
	}
	f := func(o Options, want string) {
		t.Helper()
		var refused *RefusedError
		if _, err := Open(t.Context(), o); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	wrong := o
	wrong.Password = "other"
	f(wrong, "the password is wrong")
	wrong = o
	wrong.Username = "nobody"
	f(wrong, "does not know the user")
	wrong.Username = "a-name-that-is-too-long"
	f(wrong, "more than 16 bytes")
	strict := &controllerFor{t: t, password: "secret", answers: map[[2]byte][]byte{{0x06, 0x3b}: {0x81}}}
	wrong = o
	wrong.Address = strict.start()
	f(wrong, "may not have this privilege")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	nobody, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	o.Address = nobody.LocalAddr().String()
	if _, err := Open(ctx, o); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody answers: %v", err)
	}
}

// fullRecord is a temperature with the value 2x-10.
func fullRecord() []byte {
	b := []byte{1, 0, 0x51, 1, 0, 0x20, 0, 4, 7, 1, 0x7f, 0x68, 1, 1, 0, 0, 0, 0, 0x3f, 0x3f, 0, 1, 0, 0, 2, 0, 0xf6, 0xc0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc4}
	b = append(b, "Temp"...)
	b[4] = byte(len(b) - 5)
	return b
}

func TestDecodeRecord(t *testing.T) {
	r, err := DecodeRecord(fullRecord())
	if err != nil || r.ID != "Temp" || r.Name() != "(7.1).Temp" || r.Number != 4 || r.Units != "C" || r.TypeName() != "temperature" || r.ReadingName() != "threshold" || !r.Threshold() {
		t.Fatalf("%+v %v", r, err)
	}
	f := func(change func([]byte), raw byte, want float64) {
		t.Helper()
		b := fullRecord()
		change(b)
		r, err := DecodeRecord(b)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := r.Value(raw); !ok && !math.IsNaN(want) || ok && math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%v %t, want %v", got, ok, want)
		}
	}
	f(func([]byte) {}, 30, 50)
	f(func(b []byte) { b[20] = 0x80 }, 0xff, -12)                      // two's complement
	f(func(b []byte) { b[20] = 0x40 }, 0xfe, -12)                      // one's complement
	f(func(b []byte) { b[20] = 0xc0 }, 1, math.NaN())                  // no value
	f(func(b []byte) { b[29] = 0xf0 }, 30, 5)                          // a tenth
	f(func(b []byte) { b[29] = 0x01 }, 60, 20)                         // the offset times ten
	f(func(b []byte) { b[25] = 0x40 }, 1, 248)                         // ten bits of the factor
	f(func(b []byte) { b[23] = 7 }, 30, 1.0/50)                        // a function
	f(func(b []byte) { b[23], b[26], b[27] = 1, 0, 0 }, 0, math.NaN()) // the logarithm of nothing
	f(func(b []byte) { b[23] = 0x70 }, 1, math.NaN())                  // a formula for each reading
	if r, err := DecodeRecord([]byte{1, 0, 0x51, 0x11, 0}); r != nil || err != nil {
		t.Errorf("a record of no sensor: %v %v", r, err)
	}
	for _, b := range [][]byte{nil, {1, 0, 0x51, 1, 99}, fullRecord()[:40], {1, 0, 0x51, 2, 3, 1, 2, 3}} {
		if r, err := DecodeRecord(b); err == nil {
			t.Errorf("%v is taken: %+v", b, r)
		}
	}
	for _, c := range []struct {
		kind byte
		in   []byte
		want string
	}{{0xc3, []byte{'A', 0xe4, 'U', 'x'}, "A?U"}, {0x42, []byte{0x41, 0x3c}, "413."}, {0x83, []byte{0x29, 0xdc, 0xa6}, "IPMI"}, {0xdf, []byte(" a\x00 "), "a"}} {
		if got := idString(c.kind, c.in); got != c.want {
			t.Errorf("name of kind %#x: %q, want %q", c.kind, got, c.want)
		}
	}
}

func TestTexts(t *testing.T) {
	f := func(kind, reading byte, bits uint16, want ...string) {
		t.Helper()
		r := &Record{Type: kind, Reading: reading}
		if got := r.Texts(bits); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f(1, 1, 0, "ok")
	f(1, 1, 1<<UpperNonCritical|1<<UpperCritical, "upper critical")
	f(8, 0x6f, 0b1001, "presence detected", "input lost")
	f(4, 0x0b, 1, "fully redundant")
	f(0x99, 0x70, 1<<14, "state 14")
	if got := units(0x01, 0, 0); got != "%" {
		t.Error(got)
	}
	if got := units(3<<3|1<<1, 6, 33); got != "W/cm/s" {
		t.Error(got)
	}
}

func FuzzDecode(f *testing.F) {
	k := &keys{suite: &suites[0], integrity: []byte("integrity"), encryption: make([]byte, 16)}
	whole, err := (&packet{session: 1, sequence: 2, payload: (&message{function: 4, command: 0x2d, data: []byte{1}}).encode()}).encode(k)
	if err != nil {
		f.Fatal(err)
	}
	open, _ := (&packet{kind: payloadOpen, payload: []byte{1, 2, 3}}).encode(nil)
	f.Add(whole)
	f.Add(open)
	f.Add(fullRecord())
	f.Fuzz(func(t *testing.T, in []byte) {
		_, _ = decode(in, nil)
		if p, err := decode(in, k); err == nil && !bytes.Equal(in, whole) && len(p.payload) > len(in) {
			t.Errorf("%x became %+v", in, p)
		}
		_, _ = (&message{function: 4, command: 0x2d}).decodeAnswer(in)
		if r, err := DecodeRecord(in); err == nil && r != nil {
			r.Value(7)
			r.Texts(0xffff)
			_ = r.Name() + r.TypeName() + r.ReadingName()
		}
		// What is inside of an authenticated packet may be anything too.
		if p, err := (&packet{payload: in[:min(len(in), 1000)]}).encode(k); err == nil {
			if back, err := decode(p, k); err != nil || !bytes.Equal(back.payload, in[:min(len(in), 1000)]) {
				t.Errorf("a packet of our own: %v", err)
			}
		}
		_, _ = openForFuzz(in)
	})
}

func openForFuzz(in []byte) ([]byte, error) { return open(make([]byte, 16), in) }
