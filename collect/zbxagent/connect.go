package zbxagent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"tidemark/internal/tlspsk"
	"tidemark/model"
)

// pair is a pre-shared key with its identity.
type pair struct {
	identity string
	key      []byte
}

// connect connects to an agent as the settings of its host say.
func (c *Checker) connect(ctx context.Context, q Query) (net.Conn, error) {
	switch q.TLS.Connect {
	case 0, model.Unencrypted:
		return c.dial(ctx, q.Address)
	case model.PSK:
		return c.connectPSK(ctx, q)
	case model.Certificate:
		return c.connectCertificate(ctx, q)
	}
	return nil, fmt.Errorf("connections of kind %d are not known", q.TLS.Connect)
}

func (c *Checker) dial(ctx context.Context, address string) (net.Conn, error) {
	nc, err := c.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := nc.SetDeadline(deadline); err != nil {
			return nil, errors.Join(err, nc.Close())
		}
	}
	return nc, nil
}

// connectPSK connects with a pre-shared key. While a key is being replaced the agent may have either: the one that it had
// last is tried first.
func (c *Checker) connectPSK(ctx context.Context, q Query) (net.Conn, error) {
	pairs := []pair{{q.TLS.Identity, q.TLS.Key}}
	rotating := len(q.TLS.OldKey) > 0 && c.o.Now().UnixNano() < q.TLS.OldUntil
	hadOld := false
	if rotating {
		pairs = append(pairs, pair{q.TLS.OldIdentity, q.TLS.OldKey})
		if hadOld = c.hasOld(q.Address); hadOld {
			pairs[0], pairs[1] = pairs[1], pairs[0]
		}
	}
	var first error
	for i, p := range pairs {
		nc, err := c.shake(ctx, q.Address, p)
		if err == nil {
			if rotating {
				c.setOld(q.Address, hadOld != (i == 1))
			}
			return nc, nil
		}
		if first == nil {
			first = err
		}
		if !refusedKey(err) {
			break
		}
	}
	return nil, first
}

// refusedKey reports whether a handshake failed so that it may be for the key: agents with OpenSSL close without an
// alert when they do not know the identity.
func refusedKey(err error) bool {
	return errors.Is(err, tlspsk.ErrHandshake) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || isReset(err)
}

func (c *Checker) shake(ctx context.Context, address string, p pair) (net.Conn, error) {
	nc, err := c.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	secured := tlspsk.Client(nc, &tlspsk.Config{Identity: p.identity, Key: p.key})
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, secured.Close())
	}
	return secured, nil
}

func (c *Checker) hasOld(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.old[address]
}

func (c *Checker) setOld(address string, old bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !old {
		delete(c.old, address)
		return
	}
	if len(c.old) >= maxRemembered {
		clear(c.old)
	}
	c.old[address] = true
}

func (c *Checker) connectCertificate(ctx context.Context, q Query) (net.Conn, error) {
	if c.o.Certificates == nil || c.o.Certificates.RootCAs == nil {
		return nil, errors.New("this server has no certificate authority to check agents by")
	}
	nc, err := c.dial(ctx, q.Address)
	if err != nil {
		return nil, err
	}
	secured := tls.Client(nc, tlspsk.Verifying(c.o.Certificates, q.TLS.Issuer, q.TLS.Subject))
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, secured.Close())
	}
	return secured, nil
}
