package ipmi

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Privilege is what a session may do (6.8).
type Privilege byte

// The privileges.
const (
	Callback      Privilege = 1
	User          Privilege = 2
	Operator      Privilege = 3
	Administrator Privilege = 4
)

// Options are the settings of a session.
type Options struct {
	// Address is that of the management controller, "host:port".
	Address            string
	Username, Password string
	Privilege          Privilege
	// Resend is how long an answer is waited for before a request is sent again; zero is a second.
	Resend time.Duration
	// OnSent and OnResent, if not nil, are told of each datagram.
	OnSent, OnResent func()
}

// The longest name and password (13.20, 13.31).
const (
	maxUserBytes     = 16
	maxPasswordBytes = 20
)

// Session is an authenticated, encrypted session. It serves one call at a time.
type Session struct {
	o    Options
	nc   net.Conn
	keys *keys
	// remote is the id of the session at the controller, local the one here.
	remote, local uint32
	sequence      uint32
	next          byte
	buffer        [maxDatagram]byte
}

// RefusedError says that a controller does not let the user in.
type RefusedError struct{ Reason string }

// Error gives the reason.
func (e *RefusedError) Error() string { return e.Reason }

// Open opens a session until ctx ends. A *RefusedError is a matter of the credentials, other errors are of the connection.
func Open(ctx context.Context, o Options) (*Session, error) {
	if len(o.Username) > maxUserBytes || len(o.Password) > maxPasswordBytes {
		return nil, &RefusedError{fmt.Sprintf("the user name has more than %d bytes, or the password more than %d", maxUserBytes, maxPasswordBytes)}
	}
	if o.Resend <= 0 {
		o.Resend = time.Second
	}
	var last error
	for i := range suites {
		s := &Session{o: o, local: 0x74696465 + uint32(i)}
		err := s.open(ctx, &suites[i])
		if err == nil {
			return s, nil
		}
		if s.nc != nil {
			_ = s.nc.Close() // it is given up
		}
		var status *statusError
		if !errors.As(err, &status) {
			return nil, err
		}
		// Another suite may be one that the controller knows; wrong credentials are wrong with each.
		if status.status == 0x01 || status.status == 0x0a {
			return nil, err // it passes
		}
		if last = err; !status.suite() {
			break
		}
	}
	return nil, &RefusedError{last.Error()}
}

func (s *Session) open(ctx context.Context, with *suite) error {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "udp", s.o.Address)
	if err != nil {
		return err
	}
	s.nc = nc
	reply, err := s.exchange(ctx, payloadOpen, payloadOpenReply, s.openRequest(with))
	if err != nil {
		return err
	}
	if len(reply) < 12 || binary.LittleEndian.Uint32(reply[4:]) != s.local {
		return errPacket
	}
	s.remote = binary.LittleEndian.Uint32(reply[8:])
	return s.authenticate(ctx, with)
}

// openRequest is RMCP+ Open Session Request (13.17).
func (s *Session) openRequest(with *suite) []byte {
	out := binary.LittleEndian.AppendUint32([]byte{0, byte(s.o.Privilege), 0, 0}, s.local)
	for kind, algorithm := range []byte{with.authentication, with.integrity, with.encryption} {
		out = append(out, byte(kind), 0, 0, 8, algorithm, 0, 0, 0)
	}
	return out
}

// authenticate is the exchange of keys (13.20 to 13.23, 13.31, 13.32).
func (s *Session) authenticate(ctx context.Context, with *suite) error {
	mine := make([]byte, 16)
	_, _ = rand.Read(mine) // it never fails
	// The name alone says which user it is, whatever that user's highest privilege is.
	role := byte(s.o.Privilege) | 0x10
	who := append([]byte{role, byte(len(s.o.Username))}, s.o.Username...)
	remote, local := binary.LittleEndian.AppendUint32(nil, s.remote), binary.LittleEndian.AppendUint32(nil, s.local)

	first := append([]byte{0, 0, 0, 0}, remote...)
	first = append(append(first, mine...), role, 0, 0)
	first = append(append(first, byte(len(s.o.Username))), s.o.Username...)
	reply, err := s.exchange(ctx, payloadRAKP1, payloadRAKP2, first)
	if err != nil {
		return err
	}
	code := with.hash().Size()
	if len(reply) < 40+code {
		return errPacket
	}
	theirs, id := append([]byte{}, reply[8:24]...), append([]byte{}, reply[24:40]...)
	password := []byte(s.o.Password)
	if !hmac.Equal(reply[40:40+code], with.mac(password, local, remote, mine, theirs, id, who)) {
		// The controller is told, or it would keep the half session for a minute and have no room for others.
		if bye, err := (&packet{kind: payloadRAKP3, payload: append([]byte{0, wrongCode, 0, 0}, remote...)}).encode(nil); err == nil {
			_, _ = s.nc.Write(bye)
		}
		return &statusError{status: wrongCode}
	}
	master := with.mac(password, mine, theirs, who)
	third := append([]byte{0, 0, 0, 0}, remote...)
	third = append(third, with.mac(password, theirs, local, who)...)
	if reply, err = s.exchange(ctx, payloadRAKP3, payloadRAKP4, third); err != nil {
		return err
	}
	if len(reply) < 8+with.codeBytes || !hmac.Equal(reply[8:8+with.codeBytes], with.mac(master, mine, remote, id)[:with.codeBytes]) {
		return &statusError{status: wrongCode}
	}
	constant := func(b byte) []byte {
		c := make([]byte, 20)
		for i := range c {
			c[i] = b
		}
		return c
	}
	s.keys = &keys{suite: with, integrity: with.mac(master, constant(1)), encryption: with.mac(master, constant(2))[:16]}
	_, err = s.Command(ctx, "set session privilege", 0, 0x06, 0x3b, byte(s.o.Privilege))
	var refused *CodeError
	if errors.As(err, &refused) {
		return &statusError{status: 0x09}
	}
	return err
}

// wrongCode is the status for an authentication code that does not fit: the passwords differ.
const wrongCode = 0x0f

// statusError is a status other than zero in the exchange of keys (13.24).
type statusError struct{ status byte }

func (e *statusError) Error() string {
	text := map[byte]string{
		0x01: "the controller has no room for another session", 0x09: "the user may not have this privilege", 0x0a: "the controller has no room for another session with this privilege",
		0x0d: "the controller does not know the user, or does not let it in", 0x0e: "the controller does not know the user, or does not let it in", 0x0f: "the password is wrong",
		0x11: "the controller does not speak the cipher suites 17 and 3", 0x04: "the controller does not speak the cipher suites 17 and 3", 0x05: "the controller does not speak the cipher suites 17 and 3",
		0x10: "the controller does not speak the cipher suites 17 and 3",
	}[e.status]
	if text == "" {
		text = fmt.Sprintf("the controller refused the session with status 0x%02x", e.status)
	}
	return text
}

// suite reports whether another cipher suite may help.
func (e *statusError) suite() bool {
	switch e.status {
	case 0x04, 0x05, 0x10, 0x11, 0x12:
		return true
	}
	return false
}

// exchange sends a payload outside of a session until it is answered, and returns the answer, whose status is zero.
func (s *Session) exchange(ctx context.Context, kind, want byte, payload []byte) ([]byte, error) {
	p := &packet{kind: kind, payload: payload}
	datagram, err := p.encode(nil)
	if err != nil {
		return nil, err
	}
	reply, err := s.ask(ctx, func() ([]byte, error) { return datagram, nil }, func(in []byte) ([]byte, bool) {
		got, err := decode(in, nil)
		return payloadOf(got), err == nil && got.kind == want && len(got.payload) >= 2
	})
	if err == nil && reply[1] != 0 {
		err = &statusError{status: reply[1]}
	}
	return reply, err
}

func payloadOf(p *packet) []byte {
	if p == nil {
		return nil
	}
	return p.payload
}

// ask sends datagrams until one is answered or ctx ends.
func (s *Session) ask(ctx context.Context, make func() ([]byte, error), take func([]byte) ([]byte, bool)) ([]byte, error) {
	for attempt := 0; ; attempt++ {
		datagram, err := make()
		if err != nil {
			return nil, err
		}
		if _, err := s.nc.Write(datagram); err != nil {
			return nil, err
		}
		s.tell(attempt)
		until := time.Now().Add(s.o.Resend)
		for {
			if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
				until = deadline
			}
			if err := s.nc.SetReadDeadline(until); err != nil {
				return nil, err
			}
			n, err := s.nc.Read(s.buffer[:])
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				if deadline, ok := ctx.Deadline(); ok && !deadline.After(time.Now()) {
					return nil, context.DeadlineExceeded
				}
				break
			}
			if err != nil {
				return nil, err
			}
			if reply, ok := take(s.buffer[:n]); ok {
				return append([]byte{}, reply...), nil
			}
		}
	}
}

func (s *Session) tell(attempt int) {
	if s.o.OnSent != nil {
		s.o.OnSent()
	}
	if attempt > 0 && s.o.OnResent != nil {
		s.o.OnResent()
	}
}

// Command sends a command to a logical unit of the controller and returns the data of its answer. name is for errors.
func (s *Session) Command(ctx context.Context, name string, unit, function, command byte, data ...byte) ([]byte, error) {
	s.next = (s.next + 1) & 0x3f
	m := &message{function: function, command: command, unit: unit, sequence: s.next, data: data}
	var code byte
	reply, err := s.ask(ctx, func() ([]byte, error) {
		// Each datagram has a number of its own, or the controller takes it for one that it had.
		s.sequence++
		return (&packet{kind: payloadMessage, session: s.remote, sequence: s.sequence, payload: m.encode()}).encode(s.keys)
	}, func(in []byte) ([]byte, bool) {
		p, err := decode(in, s.keys)
		if err != nil || p.session != s.local || p.kind != payloadMessage {
			return nil, false
		}
		a, err := m.decodeAnswer(p.payload)
		if err != nil {
			return nil, false
		}
		code = a.code
		return a.data, true
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if code != 0 {
		return nil, &CodeError{name, code}
	}
	return reply, nil
}

// Close ends the session at the controller, as well as can be until ctx ends, and here.
func (s *Session) Close(ctx context.Context) error {
	if s.keys != nil && ctx.Err() == nil {
		_, _ = s.Command(ctx, "close session", 0, 0x06, 0x3c, binary.LittleEndian.AppendUint32(nil, s.remote)...) // it times out there otherwise
	}
	return s.nc.Close()
}
