package tlspsk

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// The kinds of records.
const (
	recordChange    byte = 20
	recordAlert     byte = 21
	recordHandshake byte = 22
	recordData      byte = 23
)

const (
	// maxMessageBytes bounds a handshake message; a ClientHello of today's libraries has 200 to 1,700 bytes.
	maxMessageBytes = 16 << 10
	// maxIdleRecords bounds the records in a row that bring nothing: empty ones, tickets, key updates.
	maxIdleRecords = 32
	// closeTimeout is how long a farewell may take.
	closeTimeout = 2 * time.Second
)

// Conn is one side of a connection. One goroutine may read while another writes. After an error, also one of a deadline,
// no more can be read, or written.
type Conn struct {
	raw    net.Conn
	config *Config
	client bool

	handshakeMu sync.Mutex
	shaken      bool
	shakeErr    error
	state       State
	// record, while Accept does not know yet who is to serve the connection, keeps what was read.
	replay    []byte
	recording bool

	readMu  sync.Mutex
	in      direction
	buf     []byte // the record at hand
	plain   []byte // what is left of its content
	waiting []byte // handshake bytes not yet taken
	idle    int
	readErr error

	writeMu  sync.Mutex
	out      direction
	outBuf   []byte
	writeErr error
	closed   bool
}

// direction is the state of the records of one direction.
type direction struct {
	p   protection // nil: not protected yet
	seq uint64
	// secret is that of TLS 1.3, from which the next is made.
	secret []byte
	suite  *suite
}

func (d *direction) use(p protection) { d.p, d.seq = p, 0 }

// useSecret makes a secret of TLS 1.3 the one in force.
func (d *direction) useSecret(s *suite, secret []byte) error {
	p, err := traffic(s, secret)
	if err != nil {
		return err
	}
	d.suite, d.secret = s, secret
	d.use(p)
	return nil
}

// State returns what the handshake settled; the zero State before it.
func (c *Conn) State() State {
	c.handshakeMu.Lock()
	defer c.handshakeMu.Unlock()
	return c.state
}

// Handshake makes the handshake unless it is made already. The deadlines of the connection bound it.
func (c *Conn) Handshake() error {
	c.handshakeMu.Lock()
	defer c.handshakeMu.Unlock()
	if c.shaken {
		return c.shakeErr
	}
	c.shaken = true
	c.readMu.Lock()
	defer c.readMu.Unlock()
	if c.client {
		c.shakeErr = c.clientHandshake()
	} else {
		c.shakeErr = c.serverHandshake(nil)
	}
	return c.settle()
}

// HandshakeContext is Handshake that ends with ctx.
func (c *Conn) HandshakeContext(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = c.raw.SetDeadline(time.Unix(1, 0)) })
	err := c.Handshake()
	if !stop() && ctx.Err() != nil && err != nil {
		return errors.Join(ctx.Err(), err)
	}
	return err
}

// settle ends a handshake: a failure is told to the peer, and nothing can be read or written after it.
func (c *Conn) settle() error {
	c.replay, c.recording = nil, false
	err := c.shakeErr
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	c.shakeErr = err
	c.readErr = err
	c.complain(err)
	c.writeMu.Lock()
	c.writeErr = err
	c.writeMu.Unlock()
	return err
}

// complain tells the peer why the connection ends, when it is this side that ends it.
func (c *Conn) complain(err error) {
	var a *AlertError
	if errors.As(err, &a) && !a.Remote {
		// The error itself is what counts.
		_ = c.alert(a.Alert)
	}
}

func (c *Conn) alert(a Alert) error {
	level := byte(2)
	if a == closeNotify {
		level = 1
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if c.writeErr != nil || c.closed {
		return c.writeErr
	}
	c.closed = true
	if err := c.raw.SetWriteDeadline(time.Now().Add(closeTimeout)); err != nil {
		return err
	}
	c.appendRecord(recordAlert, []byte{level, byte(a)})
	return c.flush()
}

// appendRecord adds a record to what flush writes. The caller holds writeMu.
func (c *Conn) appendRecord(kind byte, p []byte) {
	if c.out.p == nil {
		c.outBuf = append(appendHeader(c.outBuf, kind, len(p)), p...)
		return
	}
	c.outBuf = c.out.p.seal(c.outBuf, c.out.seq, kind, p)
	c.out.seq++
}

// flush writes what was added. The caller holds writeMu.
func (c *Conn) flush() error {
	_, err := c.raw.Write(c.outBuf)
	c.outBuf = c.outBuf[:0]
	if err != nil {
		c.writeErr = err
	}
	return err
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	if err := c.Handshake(); err != nil {
		return 0, err
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	written := 0
	for written < len(p) {
		switch {
		case c.writeErr != nil:
			return written, c.writeErr
		case c.closed:
			return written, net.ErrClosed
		case c.out.seq >= maxRecords:
			return written, refusef(closeNotify, "more than %d records were sent", maxRecords)
		}
		n := min(len(p)-written, maxPlainBytes)
		c.appendRecord(recordData, p[written:written+n])
		if err := c.flush(); err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

// Read implements net.Conn. The peer's farewell is io.EOF; an end without one is io.ErrUnexpectedEOF.
func (c *Conn) Read(p []byte) (int, error) {
	if err := c.Handshake(); err != nil {
		return 0, err
	}
	c.readMu.Lock()
	defer c.readMu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	for len(c.plain) == 0 {
		if c.readErr == nil {
			c.readErr = c.fill()
		}
		if c.readErr != nil {
			c.complain(c.readErr)
			return 0, c.readErr
		}
	}
	n := copy(p, c.plain)
	c.plain = c.plain[n:]
	return n, nil
}

// fill reads one record after the handshake.
func (c *Conn) fill() error {
	kind, p, err := c.readRecord()
	if err != nil {
		return err
	}
	if len(p) > 0 && kind == recordData {
		c.idle, c.plain = 0, p
		return nil
	}
	if c.idle++; c.idle > maxIdleRecords {
		return refusef(unexpectedMessage, "more than %d records in a row without data", maxIdleRecords)
	}
	switch kind {
	case recordData:
		return nil
	case recordHandshake:
		return c.afterHandshake(p)
	}
	return refusef(unexpectedMessage, "a record of kind %d after the handshake", kind)
}

// afterHandshake takes the messages that TLS 1.3 allows at any time: tickets, which are not used, and key updates.
func (c *Conn) afterHandshake(p []byte) error {
	c.waiting = append(c.waiting, p...)
	for {
		raw, err := c.nextMessage()
		if err != nil || raw == nil {
			return err
		}
		switch {
		case c.state.Version != VersionTLS13:
			return refusef(unexpectedMessage, "the peer renegotiates, which is not done here")
		case raw[0] == msgNewSessionTicket && c.client:
		case raw[0] == msgKeyUpdate && len(raw) == 5 && raw[4] <= 1:
			if err := c.updateKey(raw[4] == 1); err != nil {
				return err
			}
		default:
			return refusef(unexpectedMessage, "a handshake message of kind %d after the handshake", raw[0])
		}
	}
}

// updateKey moves the reading keys on, and the writing keys too when the peer asks for it.
func (c *Conn) updateKey(answer bool) error {
	if len(c.waiting) > 0 {
		return refusef(unexpectedMessage, "a key update is not the end of its record")
	}
	err := c.in.useSecret(c.in.suite, expandLabel(c.in.secret, "traffic upd", nil, 32))
	if err != nil || !answer {
		return err
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if c.writeErr != nil || c.closed {
		return c.writeErr
	}
	c.appendRecord(recordHandshake, message(msgKeyUpdate, []byte{0}))
	if err := c.flush(); err != nil {
		return err
	}
	return c.out.useSecret(c.out.suite, expandLabel(c.out.secret, "traffic upd", nil, 32))
}

// readRaw reads one record as it is sent. The body is valid until the next call.
func (c *Conn) readRaw() (header, body []byte, err error) {
	if cap(c.buf) < 512 {
		c.buf = make([]byte, 512)
	}
	header = c.buf[:headerBytes]
	if _, err := io.ReadFull(c.raw, header); err != nil {
		return nil, nil, err
	}
	n := int(binary.BigEndian.Uint16(header[3:]))
	limit := maxPlainBytes
	if c.in.p != nil {
		limit += maxExtraBytes
	}
	switch {
	case header[0] < recordChange || header[0] > recordData || header[1] != 3:
		return nil, nil, refusef(unexpectedMessage, "% x is not the start of a TLS record", header)
	case n > limit:
		return nil, nil, refusef(recordOverflow, "a record of %d bytes, expected at most %d", n, limit)
	case c.in.seq >= maxRecords:
		return nil, nil, refusef(unexpectedMessage, "more than %d records were received", maxRecords)
	}
	if need := headerBytes + n; cap(c.buf) < need {
		grown := make([]byte, max(need, min(2*need, headerBytes+limit)))
		copy(grown, header)
		c.buf = grown
	}
	header, body = c.buf[:headerBytes], c.buf[headerBytes:headerBytes+n]
	if _, err := io.ReadFull(c.raw, body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, nil, err
	}
	if c.recording {
		c.replay = append(append(c.replay, header...), body...)
	}
	return header, body, nil
}

// readRecord reads and opens one record. A farewell is io.EOF, another alert an *AlertError. The content is valid until the next
// call.
func (c *Conn) readRecord() (kind byte, p []byte, err error) {
	for range maxIdleRecords {
		header, body, err := c.readRaw()
		if err != nil {
			if errors.Is(err, io.EOF) && !os.IsTimeout(err) {
				err = io.ErrUnexpectedEOF
			}
			return 0, nil, err
		}
		if header[0] == recordChange && c.in.suite != nil {
			// TLS 1.3 lets it pass, for the sake of boxes in between, until the handshake ends.
			if len(body) == 1 && body[0] == 1 && c.state.Version == 0 {
				continue
			}
			return 0, nil, refusef(unexpectedMessage, "a change of cipher in TLS 1.3")
		}
		kind, p = header[0], body
		if c.in.p != nil {
			var ok bool
			if p, kind, ok = c.in.p.open(c.in.seq, header, body); !ok {
				return 0, nil, refusef(badRecordMAC, "a record does not fit the keys: wrong key or identity, or changed on the way")
			}
			c.in.seq++
		}
		if len(p) > maxPlainBytes {
			return 0, nil, refusef(recordOverflow, "a record of %d bytes of content, expected at most %d", len(p), maxPlainBytes)
		}
		if kind == recordAlert {
			return 0, nil, decodeAlert(p)
		}
		return kind, p, nil
	}
	return 0, nil, refusef(unexpectedMessage, "more than %d records without a message", maxIdleRecords)
}

func decodeAlert(p []byte) error {
	if len(p) != 2 {
		return refusef(decodeError, "an alert of %d bytes, expected 2", len(p))
	}
	if Alert(p[1]) == closeNotify {
		return io.EOF
	}
	return &AlertError{Alert: Alert(p[1]), Remote: true}
}

// nextMessage takes the next whole handshake message off the waiting bytes; nil when there is none. It is the caller's.
func (c *Conn) nextMessage() ([]byte, error) {
	if len(c.waiting) < 4 {
		return nil, nil
	}
	n := int(binary.BigEndian.Uint32(c.waiting) & 0xffffff)
	if n > maxMessageBytes {
		return nil, refusef(decodeError, "a handshake message of %d bytes, expected at most %d", n, maxMessageBytes)
	}
	if len(c.waiting) < 4+n {
		return nil, nil
	}
	raw := append([]byte(nil), c.waiting[:4+n]...)
	c.waiting = append(c.waiting[:0], c.waiting[4+n:]...)
	return raw, nil
}

// readMessage reads the next handshake message, which must be of one of these kinds, with its header.
func (c *Conn) readMessage(kinds ...byte) ([]byte, error) {
	for range maxIdleRecords {
		raw, err := c.nextMessage()
		if err != nil {
			return nil, err
		}
		if raw != nil {
			for _, k := range kinds {
				if raw[0] == k {
					return raw, nil
				}
			}
			return nil, refusef(unexpectedMessage, "a handshake message of kind %d, expected %v", raw[0], kinds)
		}
		kind, p, err := c.readRecord()
		if err != nil {
			return nil, err
		}
		if kind != recordHandshake || len(p) == 0 {
			return nil, refusef(unexpectedMessage, "a record of kind %d, expected a handshake message", kind)
		}
		c.waiting = append(c.waiting, p...)
	}
	return nil, refusef(unexpectedMessage, "a handshake message in more than %d records", maxIdleRecords)
}

// aligned is an error when handshake bytes wait that came before a change of keys.
func (c *Conn) aligned() error {
	if len(c.waiting) > 0 {
		return refusef(unexpectedMessage, "handshake bytes across a change of keys")
	}
	return nil
}

// send writes records of the handshake at once.
func (c *Conn) send(kind byte, parts ...[]byte) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	for _, p := range parts {
		c.appendRecord(kind, p)
	}
	return c.flush()
}

// CloseWrite says farewell; the peer reads an end. Reading goes on.
func (c *Conn) CloseWrite() error {
	if err := c.Handshake(); err != nil {
		return err
	}
	return c.alert(closeNotify)
}

// Close says farewell and closes the connection.
func (c *Conn) Close() error {
	// Not while a handshake holds the locks: closing is what ends it.
	if c.handshakeMu.TryLock() {
		shaken := c.shaken && c.shakeErr == nil
		c.handshakeMu.Unlock()
		if shaken && c.writeMu.TryLock() {
			c.writeMu.Unlock()
			_ = c.alert(closeNotify)
		}
	}
	return c.raw.Close()
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.raw.LocalAddr() }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.raw.RemoteAddr() }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error { return c.raw.SetDeadline(t) }

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.raw.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.raw.SetWriteDeadline(t) }
