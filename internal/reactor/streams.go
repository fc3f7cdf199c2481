package reactor

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Exchange is one request to a peer over TCP, and its answer.
type Exchange struct {
	// Context and Deadline end the exchange before its time.
	Context  context.Context //nolint:containedctx // lives as long as the exchange
	Deadline time.Time
	// ConnectBy, if not zero, is when the peer must be connected.
	ConnectBy time.Time
	To        netip.AddrPort
	Request   []byte
	// Keep says that a connection that is kept may be used; Take says whether it is kept.
	Keep    bool
	Handler Handler
}

// Handler is who made an exchange. One call is made at a time, in rounds and in functions given to Do.
type Handler interface {
	// Take is given all that came so far, and whether the peer has closed; the bytes are good until End returns. When the answer is whole,
	// Take returns true, and whether the connection is good for another exchange.
	Take(got []byte, ended bool) (whole, keep bool)
	// End is called once: with nil when the answer is whole.
	End(err error)
}

const (
	// readBytes is the buffer of a connection; it grows with the answer, which its handler bounds.
	readBytes = 2 << 10
	// keepBytes is the largest buffer that is kept, maxBuffers how many.
	keepBytes  = 32 << 10
	maxBuffers = 256
	// maxIdle bounds the connections that are kept, maxIdlePerPeer those to one peer, idleFor for how long.
	maxIdle        = 1000
	maxIdlePerPeer = 128
	idleFor        = 90 * time.Second
)

// Streams makes exchanges over TCP. The zero value is not usable; see NewStreams.
type Streams struct {
	loop
	o StreamOptions

	// The rest belongs to the loop.
	epoll  int
	events [128]unix.EpollEvent
	// flying are all connections under way; fresh are those that have not been looked at since they were made.
	flying []*conn
	fresh  []*conn
	// byFD are the connections that epoll knows.
	byFD    map[int32]*conn
	idle    map[netip.AddrPort][]idleConn
	idles   int
	gather  time.Time
	sweep   time.Time
	buffers [][]byte
}

// StreamOptions are the settings of Streams.
type StreamOptions struct {
	// Round is called after each round, in which exchanges may have ended; nil for nobody.
	Round func()
	// Allow says whether an address may be connected to; nil allows all.
	Allow func(netip.AddrPort) error
}

// conn is a connection with its exchange.
type conn struct {
	x         *Exchange
	fd        int
	sent      int
	got       []byte
	connected bool
	// reused says that the connection served another exchange before.
	reused bool
	polled bool
	// place is the index in flying.
	place int
}

type idleConn struct {
	fd    int
	until time.Time
}

// NewStreams returns Streams, which hold nothing until they are used.
func NewStreams(o StreamOptions) *Streams {
	s := &Streams{o: o, epoll: -1, byFD: map[int32]*conn{}, idle: map[netip.AddrPort][]idleConn{}}
	s.round = s.step
	return s
}

// Close ends the connections that are kept and waits for the exchanges under way. A second call does nothing.
func (s *Streams) Close() error {
	s.close()
	return nil
}

// Start begins an exchange. It must be called in a function given to Do, or by a Handler.
func (s *Streams) Start(x *Exchange) {
	c := &conn{x: x, fd: -1, place: len(s.flying)}
	s.flying = append(s.flying, c)
	if n := len(s.buffers); n > 0 {
		c.got, s.buffers = s.buffers[n-1], s.buffers[:n-1]
	} else {
		c.got = make([]byte, 0, readBytes)
	}
	now := time.Now()
	if s.gather.IsZero() {
		s.gather = now.Add(gatherInterval)
	}
	if s.sweep.IsZero() {
		s.sweep = now.Add(sweepInterval)
	}
	if x.Keep {
		if c.fd = s.takeIdle(x.To); c.fd >= 0 {
			c.connected, c.reused = true, true
		}
	}
	s.begin(c)
}

// begin connects, if need be, and sends what can be sent.
func (s *Streams) begin(c *conn) {
	if c.fd < 0 {
		if err := s.connect(c); err != nil {
			s.finish(c, false, err)
			return
		}
	}
	s.fresh = append(s.fresh, c)
	// Near peers are connected already.
	if err := c.send(); err != nil {
		s.failed(c, err)
	}
}

func (s *Streams) connect(c *conn) error {
	to := c.x.To
	if s.o.Allow != nil {
		if err := s.o.Allow(to); err != nil {
			return dialError(to, err)
		}
	}
	family, address := rawAddressOf(to)
	fd, errno := openSocket(family, unix.SOCK_STREAM)
	if errno != 0 {
		return dialError(to, os.NewSyscallError("socket", errno))
	}
	c.fd = fd
	if c.x.Keep {
		// A request after the first would wait for the acknowledgement of the one before.
		_ = setOption(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	// The request confirms the connection: one packet less, and the peer is woken once for both.
	_ = setOption(fd, unix.IPPROTO_TCP, unix.TCP_QUICKACK, 0)
	if errno := connectTo(fd, &address); errno != 0 && errno != unix.EINPROGRESS && errno != unix.EINTR {
		return dialError(to, os.NewSyscallError("connect", errno))
	}
	return nil
}

func dialError(to netip.AddrPort, err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: err}
}

// send sends what is left of the request; nil also when the system takes no more now.
func (c *conn) send() error {
	for c.sent < len(c.x.Request) {
		n, errno := send(c.fd, c.x.Request[c.sent:])
		switch {
		case errno == 0:
			c.connected = true
			c.sent += n
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			return nil
		case !c.connected:
			return dialError(c.x.To, os.NewSyscallError("connect", errno))
		default:
			return &net.OpError{Op: "write", Net: "tcp", Addr: net.TCPAddrFromAddrPort(c.x.To), Err: os.NewSyscallError("write", errno)}
		}
	}
	return nil
}

// advance does what can be done for a connection, until the system has nothing more: epoll tells of what comes later once.
func (s *Streams) advance(c *conn) {
	if err := c.send(); err != nil {
		s.failed(c, err)
		return
	}
	for c.sent == len(c.x.Request) {
		if len(c.got) == cap(c.got) {
			c.got = append(c.got, 0)[:len(c.got)]
		}
		n, errno := receive(c.fd, c.got[len(c.got):cap(c.got)], 0)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			return
		case errno != 0:
			s.failed(c, &net.OpError{Op: "read", Net: "tcp", Addr: net.TCPAddrFromAddrPort(c.x.To), Err: os.NewSyscallError("read", errno)})
			return
		case n == 0 && len(c.got) == 0:
			s.failed(c, io.EOF)
			return
		}
		c.got = c.got[:len(c.got)+n]
		whole, keep := c.x.Handler.Take(c.got, n == 0)
		if whole || n == 0 {
			var err error
			if !whole {
				err = io.ErrUnexpectedEOF
			}
			s.finish(c, keep && n > 0, err)
			return
		}
	}
}

// failed ends a connection. A peer may close one that it has kept just when it is used again: nothing came of the answer then, and the request
// is made once more.
func (s *Streams) failed(c *conn, err error) {
	if !c.reused || len(c.got) > 0 {
		s.finish(c, false, err)
		return
	}
	s.shut(c)
	c.sent, c.connected, c.reused = 0, false, false
	s.begin(c)
}

// shut closes the socket of a connection.
func (s *Streams) shut(c *conn) {
	if c.polled {
		delete(s.byFD, int32(c.fd))
		c.polled = false
	}
	if c.fd >= 0 {
		closeSocket(c.fd) // takes it out of epoll too
		c.fd = -1
	}
}

// finish ends an exchange.
func (s *Streams) finish(c *conn, keep bool, err error) {
	if c.x == nil {
		return
	}
	if !keep || !s.keep(c) {
		s.shut(c)
	}
	last := len(s.flying) - 1
	s.flying[c.place] = s.flying[last]
	s.flying[c.place].place = c.place
	s.flying[last] = nil
	s.flying = s.flying[:last]
	x := c.x
	c.x = nil
	x.Handler.End(err)
	if cap(c.got) <= keepBytes && len(s.buffers) < maxBuffers {
		s.buffers = append(s.buffers, c.got[:0])
	}
	c.got = nil
}

// step is a round.
func (s *Streams) step(now time.Time) (time.Duration, bool) {
	if len(s.flying) > 0 && !now.Before(s.gather) {
		s.look()
		s.gather = now.Add(gatherInterval)
	}
	if len(s.flying) > 0 && !now.Before(s.sweep) {
		s.sweepOver(now)
		s.dropIdle(func(i idleConn) bool { return now.After(i.until) }) // There may be no moment without an exchange under way.
		s.sweep = now.Add(sweepInterval)
	}
	if s.o.Round != nil {
		s.o.Round()
	}
	if len(s.flying) > 0 {
		return max(s.gather.Sub(now), 0), true
	}
	s.gather, s.sweep = time.Time{}, time.Time{}
	clear(s.fresh)
	s.fresh = s.fresh[:0]
	if s.closed {
		s.dropIdle(func(idleConn) bool { return true })
	}
	s.dropIdle(func(i idleConn) bool { return now.After(i.until) })
	if s.idles > 0 {
		return idleFor / 4, true
	}
	s.release()
	return 0, false
}

// look takes what has come. A connection that has nothing when it is looked at first is left to epoll from then on.
func (s *Streams) look() {
	fresh := s.fresh
	s.fresh = nil
	for i, c := range fresh {
		if c.x != nil && !c.polled {
			s.advance(c)
			if c.x != nil && !c.polled {
				s.poll(c)
			}
		}
		fresh[i] = nil
	}
	if s.fresh == nil {
		s.fresh = fresh[:0]
	}
	for len(s.byFD) > 0 {
		n, errno := watched(s.epoll, s.events[:])
		if errno == unix.EINTR {
			continue
		}
		for _, e := range s.events[:n] {
			if c := s.byFD[e.Fd]; c != nil {
				s.advance(c)
			}
		}
		if n < len(s.events) {
			return
		}
	}
}

// poll has epoll watch a connection.
func (s *Streams) poll(c *conn) {
	if s.epoll < 0 {
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			s.finish(c, false, os.NewSyscallError("epoll_create1", err))
			return
		}
		s.epoll = fd
	}
	// An event for what has come since the last look is there at once.
	if errno := watchSocket(s.epoll, c.fd, unix.EPOLL_CTL_ADD, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP|unix.EPOLLET); errno != 0 {
		s.finish(c, false, os.NewSyscallError("epoll_ctl", errno))
		return
	}
	c.polled = true
	s.byFD[int32(c.fd)] = c
}

// sweepOver ends the exchanges whose time is over.
func (s *Streams) sweepOver(now time.Time) {
	for i := len(s.flying) - 1; i >= 0; i-- {
		if i >= len(s.flying) {
			continue // A handler ended others.
		}
		c := s.flying[i]
		err := c.x.Context.Err()
		switch {
		case err != nil:
		case now.After(c.x.Deadline):
			err = os.ErrDeadlineExceeded
		case !c.connected && !c.x.ConnectBy.IsZero() && now.After(c.x.ConnectBy):
			err = dialError(c.x.To, os.ErrDeadlineExceeded)
		}
		if err != nil {
			s.finish(c, false, err)
		}
	}
}

// release gives back what an idle loop does not need.
func (s *Streams) release() {
	if s.epoll >= 0 {
		_ = unix.Close(s.epoll)
		s.epoll = -1
	}
}
