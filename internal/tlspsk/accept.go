package tlspsk

import (
	"crypto/tls"
	"net"
)

// Accept makes the server's side of a handshake with a peer that has either a pre-shared key or a certificate. The first message
// decides: one that offers a key is served by this package, any other by crypto/tls with certificates, which may be nil for
// none. The deadlines of nc bound the handshake. The returned connection owns nc; after an error the caller closes nc.
func Accept(nc net.Conn, keys *Config, certificates *tls.Config) (net.Conn, State, error) {
	c := Server(nc, keys)
	hello, err := c.firstMessage()
	if err != nil {
		return nil, State{}, err
	}
	if hello.offersKey() || certificates == nil {
		err := c.goOn(hello)
		return c, c.State(), err
	}
	// Read again by crypto/tls.
	t := tls.Server(&replayed{Conn: nc, head: c.replay}, certificates)
	if err := t.Handshake(); err != nil {
		return nil, State{}, err
	}
	return t, certificateState(t), nil
}

// firstMessage reads the client's hello, keeping the bytes.
func (c *Conn) firstMessage() (*clientHello, error) {
	c.handshakeMu.Lock()
	defer c.handshakeMu.Unlock()
	c.shaken, c.recording = true, true
	hello, err := c.readClientHello()
	c.recording = false
	if err != nil {
		c.shakeErr = err
		return nil, c.settle()
	}
	return hello, nil
}

// goOn makes the rest of the handshake.
func (c *Conn) goOn(hello *clientHello) error {
	c.handshakeMu.Lock()
	defer c.handshakeMu.Unlock()
	c.shakeErr = c.serverHandshake(hello)
	return c.settle()
}

func certificateState(t *tls.Conn) State {
	cs := t.ConnectionState()
	s := State{Version: cs.Version, Suite: tls.CipherSuiteName(cs.CipherSuite)}
	if len(cs.PeerCertificates) > 0 {
		s.Issuer, s.Subject = cs.PeerCertificates[0].Issuer.String(), cs.PeerCertificates[0].Subject.String()
	}
	return s
}

// replayed is a connection whose first bytes were read before.
type replayed struct {
	net.Conn
	head []byte
}

// Read implements net.Conn.
func (r *replayed) Read(p []byte) (int, error) {
	if len(r.head) > 0 {
		n := copy(p, r.head)
		r.head = r.head[n:]
		return n, nil
	}
	return r.Conn.Read(p)
}

// CloseWrite closes the sending side, where the connection can.
func (r *replayed) CloseWrite() error {
	if half, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
