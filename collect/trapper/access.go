package trapper

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"tidemark/collect"
	"tidemark/internal/tlspsk"
	"tidemark/model"
)

// Access says for which hosts a peer may speak.
type Access interface {
	// Allows reports whether a peer may send values and ask for the list of a host. It is asked once per request, and
	// again when rows name another host.
	Allows(host model.HostID, p collect.Peer) bool
	// AllowsNew reports whether a peer may register a host that does not exist yet.
	AllowsNew(p collect.Peer) bool
}

// TLS says how connections that start with TLS are served. They come to the same port as plain ones.
type TLS struct {
	// Keys are the pre-shared keys; nil for none.
	Keys tlspsk.Keys
	// Certificates is what crypto/tls serves peers without a pre-shared key with; nil for none. To tell peers apart by
	// their certificates it must ask for them (ClientAuth) and should not keep session tickets.
	Certificates *tls.Config
}

// errHandshake is in the error of a TLS handshake that failed.
var errHandshake = errors.New("TLS handshake")

// startTLS makes the handshake of a connection whose first bytes are in the worker's reader.
func (s *Server) startTLS(ctx context.Context, c *conn, w *worker) error {
	s.setReadDeadline(ctx, c, s.o.HandshakeTimeout)
	if err := c.SetWriteDeadline(time.Now().Add(s.o.HandshakeTimeout)); err != nil {
		return err
	}
	head, err := w.reader.Peek(w.reader.Buffered())
	if err != nil {
		return err
	}
	secured, state, err := tlspsk.Accept(&resumed{Conn: c.Conn, head: append([]byte(nil), head...)}, &tlspsk.Config{Keys: s.o.TLS.Keys}, s.o.TLS.Certificates)
	if err != nil {
		return fmt.Errorf("%w: %w", errHandshake, err)
	}
	c.peer = peerOf(state)
	s.mu.Lock()
	c.Conn = secured
	s.mu.Unlock()
	w.reader.Reset(c)
	s.meters.secured[c.peer.Kind.String()].Inc()
	return nil
}

func peerOf(state tlspsk.State) collect.Peer {
	if state.Identity != "" {
		return collect.Peer{Kind: model.PSK, Identity: state.Identity, KeySum: state.KeySum}
	}
	return collect.Peer{Kind: model.Certificate, Issuer: state.Issuer, Subject: state.Subject}
}

// resumed is a connection whose first bytes were read before.
type resumed struct {
	net.Conn
	head []byte
}

// Read implements net.Conn.
func (r *resumed) Read(p []byte) (int, error) {
	if len(r.head) > 0 {
		n := copy(p, r.head)
		r.head = r.head[n:]
		return n, nil
	}
	return r.Conn.Read(p)
}

// refusedHandshake counts a failed handshake, unless the peer just went away.
func (s *Server) refusedHandshake(c *conn, err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return
	}
	s.refuse(c, handshakeFailed, "a TLS handshake failed", "error", err)
}

// allows reports whether the peer may speak for a host.
func (s *Server) allows(host model.HostID, c *conn) bool {
	return s.o.Access == nil || s.o.Access.Allows(host, c.peer)
}

// kindRefused is what a peer is told whose connection the host does not accept. Zabbix's agents show it in their log.
func (s *Server) kindRefused(c *conn, host []byte) string {
	s.refuse(c, kindNotAllowed, "a host does not accept this connection", "host", clip(host), "connection", c.peer.Kind.String(), "identity", c.peer.Identity)
	return "connection of type \"" + c.peer.Kind.String() + "\" is not allowed for host \"" + clip(host) + "\""
}

// Resolver finds the addresses of a DNS name; *net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

const (
	// maxAllowedLists bounds the lists of allowed hosts that are kept decoded.
	maxAllowedLists = 4096
	// resolvedFor is how long addresses of names are kept, also when there are none; resolveTimeout how long to look.
	resolvedFor    = time.Minute
	resolveTimeout = 2 * time.Second
)

// allowedLists are items' lists of allowed hosts, decoded.
type allowedLists struct {
	resolver Resolver
	mu       sync.Mutex
	byText   map[string]*allowedList
}

// allowedList is a list of allowed hosts: networks, and names with the addresses they had last.
type allowedList struct {
	networks []netip.Prefix
	names    []string

	mu         sync.Mutex
	addresses  []netip.Addr
	resolvedAt time.Time
}

// holds reports whether a list, as configured, has the address.
func (a *allowedLists) holds(ctx context.Context, text string, address netip.Addr) bool {
	a.mu.Lock()
	list := a.byText[text]
	if list == nil {
		list = decodeAllowed(text)
		if a.byText == nil || len(a.byText) >= maxAllowedLists {
			a.byText = make(map[string]*allowedList)
		}
		a.byText[text] = list
	}
	a.mu.Unlock()
	address = address.Unmap().WithZone("")
	for _, n := range list.networks {
		if n.Contains(address) {
			return true
		}
	}
	if len(list.names) == 0 {
		return false
	}
	for _, have := range list.resolve(ctx, a.resolver) {
		if have.Unmap() == address {
			return true
		}
	}
	return false
}

// decodeAllowed reads addresses, networks and names parted by commas. What is none of them allows nobody.
func decodeAllowed(text string) *allowedList {
	list := &allowedList{}
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if address, err := netip.ParseAddr(part); err == nil {
			address = address.Unmap()
			list.networks = append(list.networks, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		if network, err := netip.ParsePrefix(part); err == nil {
			list.networks = append(list.networks, unmapped(network)...)
			continue
		}
		if !strings.ContainsAny(part, "/ ") {
			list.names = append(list.names, part)
		}
	}
	return list
}

// unmapped returns a network as the addresses of peers are compared: without the prefix of mapped IPv4 addresses. The
// network of all IPv6 addresses has all IPv4 ones too, as in Zabbix.
func unmapped(n netip.Prefix) []netip.Prefix {
	switch {
	case n.Addr().Is4In6() && n.Bits() >= 96:
		return []netip.Prefix{netip.PrefixFrom(n.Addr().Unmap(), n.Bits()-96)}
	case n.Addr().Is6() && n.Bits() == 0:
		return []netip.Prefix{n, netip.PrefixFrom(netip.IPv4Unspecified(), 0)}
	}
	return []netip.Prefix{n}
}

// resolve returns the addresses of the names, looked up when the last ones are old.
func (l *allowedList) resolve(ctx context.Context, r Resolver) []netip.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.resolvedAt.IsZero() || now.Sub(l.resolvedAt) > resolvedFor {
		l.resolvedAt, l.addresses = now, nil
		ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
		defer cancel()
		for _, name := range l.names {
			// A name without addresses allows nobody.
			found, _ := r.LookupNetIP(ctx, "ip", name)
			l.addresses = append(l.addresses, found...)
		}
	}
	return l.addresses
}

// address returns where the connection comes from.
func (c *conn) address() netip.Addr {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr()
	}
	return netip.Addr{}
}
