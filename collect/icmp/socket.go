package icmp

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/icmp"
)

// socket is one for all checks of an address family.
type socket struct {
	pinger *Pinger
	conn   *icmp.PacketConn
	six    bool
	// raw says that the identifier id is ours to choose, and that packets of others come too.
	raw  bool
	id   int
	done chan struct{}

	mu      sync.Mutex
	waiting map[uint64]*waiter
}

// waiter is a check that waits for answers.
type waiter struct {
	at      netip.Addr
	answers chan time.Duration

	// sent are the times of the packets, seen those that were answered; guarded by the socket's lock.
	sent []time.Time
	seen []bool
}

func (s *socket) add(token uint64, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[token] = w
}

func (s *socket) drop(token uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, token)
}

// send sends the packet of a number; the payload begins with the token.
func (s *socket) send(at netip.Addr, number int, payload []byte) error {
	request, _, _ := s.echo()
	m := icmp.Message{Type: request, Body: &icmp.Echo{ID: s.id, Seq: number & 0xffff, Data: payload}}
	packet, err := m.Marshal(nil)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if w := s.waiting[binary.BigEndian.Uint64(payload)]; w != nil {
		w.sent = append(w.sent, time.Now())
	}
	s.mu.Unlock()
	ip := &net.IPAddr{IP: at.AsSlice(), Zone: at.Zone()}
	if s.raw {
		_, err = s.conn.WriteTo(packet, ip)
	} else {
		_, err = s.conn.WriteTo(packet, &net.UDPAddr{IP: ip.IP, Zone: ip.Zone})
	}
	return err
}

// unreachable reports whether an error says something of the target, not of this machine.
func unreachable(err error) bool {
	return errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTDOWN)
}

// receive hands answers to the checks that wait for them, until the socket is closed.
func (s *socket) receive() {
	defer close(s.done)
	packet := make([]byte, maxSize+8)
	for {
		n, from, err := s.conn.ReadFrom(packet)
		now := time.Now()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			continue // an ICMP error that belongs to a packet of ours
		}
		s.take(packet[:n], from, now)
	}
}

// take looks at one packet from outside.
func (s *socket) take(packet []byte, from net.Addr, now time.Time) {
	_, reply, protocol := s.echo()
	m, err := icmp.ParseMessage(protocol, packet)
	if err != nil || m.Type != reply {
		return
	}
	echo, ok := m.Body.(*icmp.Echo)
	if !ok || len(echo.Data) < minSize || s.raw && echo.ID != s.id {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiting[binary.BigEndian.Uint64(echo.Data)]
	if w == nil || echo.Seq >= len(w.sent) || w.seen[echo.Seq] || addressOf(from) != w.at.WithZone("") {
		s.pinger.stranger.Inc()
		return
	}
	w.seen[echo.Seq] = true
	s.pinger.received.Inc()
	w.answers <- now.Sub(w.sent[echo.Seq]) // It has room for all.
}

func addressOf(a net.Addr) netip.Addr {
	var ip net.IP
	switch a := a.(type) {
	case *net.UDPAddr:
		ip = a.IP
	case *net.IPAddr:
		ip = a.IP
	}
	at, _ := netip.AddrFromSlice(ip)
	return at.Unmap()
}
