package reactor

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// keep keeps a connection for the next exchange with the peer; false when there is no room.
func (s *Streams) keep(c *conn) bool {
	to := c.x.To
	if s.closed || s.idles >= maxIdle || len(s.idle[to]) >= maxIdlePerPeer {
		return false
	}
	if c.polled {
		if watchSocket(s.epoll, c.fd, unix.EPOLL_CTL_DEL, 0) != 0 {
			return false
		}
		delete(s.byFD, int32(c.fd))
		c.polled = false
	}
	s.idle[to] = append(s.idle[to], idleConn{c.fd, time.Now().Add(idleFor)})
	s.idles++
	c.fd = -1
	return true
}

// takeIdle returns a kept connection that the peer has not closed, the one used last; -1 for none.
func (s *Streams) takeIdle(to netip.AddrPort) int {
	list := s.idle[to]
	defer func() {
		if len(list) == 0 {
			delete(s.idle, to)
			return
		}
		s.idle[to] = list
	}()
	for len(list) > 0 {
		fd := list[len(list)-1].fd
		list = list[:len(list)-1]
		s.idles--
		var one [1]byte
		// What a peer sends unasked is its reason to close.
		if _, errno := receive(fd, one[:], unix.MSG_PEEK); errno == unix.EAGAIN {
			return fd
		}
		closeSocket(fd)
	}
	return -1
}

// dropIdle closes the kept connections of which over is true.
func (s *Streams) dropIdle(over func(idleConn) bool) {
	for to, list := range s.idle {
		kept := list[:0]
		for _, i := range list {
			if over(i) {
				closeSocket(i.fd)
				s.idles--
				continue
			}
			kept = append(kept, i)
		}
		if s.idle[to] = kept; len(kept) == 0 {
			delete(s.idle, to)
		}
	}
}
