package confdb

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"time"
	"unicode/utf8"

	"tidemark/model"
)

const (
	// maxIdentityChars is the longest identity of a pre-shared key.
	maxIdentityChars = 128
	// minPSKBytes and maxPSKBytes bound a pre-shared key.
	minPSKBytes, maxPSKBytes = 16, 256
	anyKind                  = model.Unencrypted | model.PSK | model.Certificate
)

// SetHostTLS sets how a host's connections must be protected; host 0 stands for agents that register themselves. When it
// replaces a pre-shared key the one before stays good for keep, so that agents can be changed one after another; with zero
// it is void at once. The members Old… of t are not read. An identity that another host has with another key is
// ErrInvalid, like settings that cannot be. Keys are stored encrypted with the file secret.key of the data folder.
func (d *DB) SetHostTLS(ctx context.Context, t model.HostTLS, keep time.Duration) error {
	if err := checkTLS(&t); err != nil {
		return d.wrap("set TLS", err)
	}
	box, err := d.openBox(true)
	if err != nil {
		return d.wrap("set TLS", err)
	}
	return d.change(ctx, "set TLS", func(c *change) error {
		if err := c.checkPeer(ctx, t.HostID); err != nil {
			return err
		}
		all, err := c.readTLS(ctx, box)
		if err != nil {
			return err
		}
		for _, other := range all {
			if other.HostID != t.HostID && t.Identity != "" && other.Identity == t.Identity && len(other.Key) > 0 && !bytes.Equal(other.Key, t.Key) {
				return fmt.Errorf("PSK identity %q: %w; %s has it with another key", t.Identity, ErrInvalid, peerName(other.HostID))
			}
			if other.HostID != t.HostID {
				continue
			}
			same := other.Identity == t.Identity && bytes.Equal(other.Key, t.Key)
			switch {
			case same: // An earlier rotation goes on.
				t.OldIdentity, t.OldKey, t.OldUntil = other.OldIdentity, other.OldKey, other.OldUntil
			case keep > 0 && len(other.Key) > 0:
				t.OldIdentity, t.OldKey, t.OldUntil = other.Identity, other.Key, d.now().Add(keep).UnixNano()
			default:
				t.OldIdentity, t.OldKey, t.OldUntil = "", nil, 0
			}
		}
		return c.writeTLS(ctx, box, &t)
	})
}

// checkPeer looks whether the host or proxy exists, and has a changed host read again.
func (c *change) checkPeer(ctx context.Context, peer model.HostID) error {
	what, query, id := "host", "SELECT id FROM hosts WHERE id = ?", int64(peer)
	if proxy := peer.Proxy(); proxy != 0 {
		what, query, id = "proxy", "SELECT id FROM proxies WHERE id = ?", int64(proxy)
	}
	if id == 0 {
		return nil
	}
	have, err := c.id(ctx, query, id)
	if err != nil {
		return err
	}
	if have == 0 {
		return fmt.Errorf("%s %d: %w", what, id, ErrNotFound)
	}
	if what == "host" {
		c.touch(peer)
	}
	return nil
}

func checkTLS(t *model.HostTLS) error {
	switch {
	case t.Connect != model.Unencrypted && t.Connect != model.PSK && t.Connect != model.Certificate:
		return fmt.Errorf("%w: TLS of host %d connects as %d; expected 1, 2 or 4", ErrInvalid, t.HostID, t.Connect)
	case t.Accept == 0 || t.Accept&^anyKind != 0:
		return fmt.Errorf("%w: TLS of host %d accepts %d; expected a sum of 1, 2 and 4", ErrInvalid, t.HostID, t.Accept)
	}
	needed := t.Connect == model.PSK || t.Accept&model.PSK != 0
	if !needed && t.Identity == "" && len(t.Key) == 0 {
		return nil
	}
	if n := utf8.RuneCountInString(t.Identity); n < 1 || n > maxIdentityChars || !utf8.ValidString(t.Identity) {
		return fmt.Errorf("%w: PSK identity has %d characters; expected 1 to %d of UTF-8", ErrInvalid, n, maxIdentityChars)
	}
	if len(t.Key) < minPSKBytes || len(t.Key) > maxPSKBytes {
		return fmt.Errorf("%w: PSK has %d hexadecimal digits; expected %d to %d", ErrInvalid, 2*len(t.Key), 2*minPSKBytes, 2*maxPSKBytes)
	}
	return nil
}

// HostTLS returns how the connections of hosts must be protected; hosts that are not in it are unencrypted. An entry of
// host 0 is for agents that register themselves. A pair that has been replaced is left out when its time is over. When keys
// cannot be read, because secret.key is gone or damaged, the list is whole all the same, without those keys, and the error,
// which is an *UnreadableError, says so.
func (d *DB) HostTLS(ctx context.Context) ([]model.HostTLS, error) {
	var n int
	if err := d.sql.QueryRowContext(ctx, "SELECT count(*) FROM host_tls").Scan(&n); err != nil || n == 0 {
		return nil, d.wrap("read TLS", err)
	}
	rows, err := d.sql.QueryContext(ctx, selectTLS)
	if err != nil {
		return nil, d.wrap("read TLS", err)
	}
	box, boxErr := d.openBox(false)
	list, unreadable, err := scanTLS(rows, box)
	if err != nil {
		return nil, d.wrap("read TLS", err)
	}
	now := d.now().UnixNano()
	for i := range list {
		if t := &list[i]; t.OldUntil <= now {
			t.OldIdentity, t.OldKey, t.OldUntil = "", nil, 0
		}
	}
	if unreadable != nil && boxErr != nil {
		unreadable = boxErr
	}
	if unreadable != nil {
		return list, d.wrap("read TLS", &UnreadableError{unreadable})
	}
	return list, nil
}

// UnreadableError says that pre-shared keys cannot be read; hosts that need them are closed until they are set again.
type UnreadableError struct{ Err error }

// Error says why.
func (e *UnreadableError) Error() string { return "pre-shared keys cannot be read: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *UnreadableError) Unwrap() error { return e.Err }

// selectTLS gives proxies the ids of model.ProxyID.Peer.
const selectTLS = `SELECT coalesce(host_id, proxy_id + 4611686018427387904, 0), connect, accept, identity, key, old_identity, old_key, old_until, issuer, subject
	FROM host_tls ORDER BY 1`

// scanTLS reads the rows; keys that do not open are left out and are unreadable.
func scanTLS(rows *sql.Rows, box *box) (list []model.HostTLS, unreadable, err error) {
	open := func(t *model.HostTLS, sealed []byte, identity string) model.Secret {
		key, err := box.open(sealed, tlsPlace(t.HostID, identity))
		if err != nil {
			unreadable = err
		}
		return key
	}
	err = each(rows, func(r *sql.Rows) error {
		var t model.HostTLS
		var key, oldKey []byte
		err := r.Scan(&t.HostID, &t.Connect, &t.Accept, &t.Identity, &key, &t.OldIdentity, &oldKey, &t.OldUntil, &t.Issuer, &t.Subject)
		t.Key, t.OldKey = open(&t, key, t.Identity), open(&t, oldKey, t.OldIdentity)
		list = append(list, t)
		return err
	})
	return list, unreadable, err
}

// tlsPlace names where a sealed key belongs, so that it cannot be moved to another host.
func tlsPlace(host model.HostID, identity string) string {
	return fmt.Sprintf("host_tls/%d/%s", host, identity)
}

func peerName(peer model.HostID) string {
	if proxy := peer.Proxy(); proxy != 0 {
		return fmt.Sprintf("proxy %d", proxy)
	}
	return fmt.Sprintf("host %d", peer)
}

func (c *change) readTLS(ctx context.Context, box *box) ([]model.HostTLS, error) {
	s, err := c.prepare(ctx, selectTLS)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx)
	if err != nil {
		return nil, err
	}
	// What cannot be read can only be set again.
	list, _, err := scanTLS(rows, box)
	return list, err
}

func (c *change) writeTLS(ctx context.Context, box *box, t *model.HostTLS) error {
	var host, proxy any
	if id := t.HostID.Proxy(); id != 0 {
		proxy = int64(id)
	} else if t.HostID != 0 {
		host = int64(t.HostID)
	}
	if err := c.exec(ctx, "DELETE FROM host_tls WHERE host_id IS ? AND proxy_id IS ?", host, proxy); err != nil {
		return err
	}
	return c.exec(ctx, `INSERT INTO host_tls (host_id, proxy_id, connect, accept, identity, key, old_identity, old_key, old_until, issuer, subject)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, host, proxy, t.Connect, t.Accept, t.Identity, box.seal(t.Key, tlsPlace(t.HostID, t.Identity)),
		t.OldIdentity, box.seal(t.OldKey, tlsPlace(t.HostID, t.OldIdentity)), t.OldUntil, t.Issuer, t.Subject)
}
