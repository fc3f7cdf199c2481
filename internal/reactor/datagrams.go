package reactor

import (
	"context"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Question is one packet to a peer, and the packet that answers it.
type Question struct {
	// Context and Deadline end the question before its time.
	Context  context.Context //nolint:containedctx // lives as long as the question
	Deadline time.Time
	To       netip.AddrPort
	// ID is what question and answer have in common; no other question under way has it.
	ID     uint32
	Packet []byte
	// Asker is who asks.
	Asker Asker
}

// Asker is who made a question. One call is made at a time, in rounds and in functions given to Do.
type Asker interface {
	// Answer is given a packet from the peer with the id of the question; the bytes are good until it returns. It returns false for a packet
	// that is no answer, and the question stays.
	Answer(packet []byte) bool
	// Failed is called instead when there is none.
	Failed(err error)
}

const (
	// maxPacketBytes is the longest packet.
	maxPacketBytes = 64 << 10
	// socketBytes is what the system is asked to hold for a socket; it may give less. gatherAfter is how many questions are sent before
	// answers are taken, so that they do not fill it.
	socketBytes = 4 << 20
	gatherAfter = 16
	// gatherMost bounds the packets that are taken in one look, so that a flood does not keep the loop.
	gatherMost = 4096
)

// Datagrams asks over UDP, from one socket for each family of addresses. The zero value is not usable; see NewDatagrams.
type Datagrams struct {
	loop
	o DatagramOptions

	// The rest belongs to the loop.
	sockets [2]int
	asked   map[uint32]*Question
	sent    int
	gather  time.Time
	sweep   time.Time
	buffer  []byte
}

// DatagramOptions are the settings of Datagrams.
type DatagramOptions struct {
	// ID finds the id in a packet; false for a packet without one.
	ID func(packet []byte) (uint32, bool)
	// Round is called after each round; nil for nobody.
	Round func()
}

// NewDatagrams returns Datagrams, which hold nothing until they are used.
func NewDatagrams(o DatagramOptions) *Datagrams {
	d := &Datagrams{o: o, sockets: [2]int{-1, -1}, asked: map[uint32]*Question{}}
	d.round = d.step
	return d
}

// Close closes the sockets and waits for the questions under way. A second call does nothing.
func (d *Datagrams) Close() error {
	d.close()
	return nil
}

// Taken reports whether a question under way has an id. It must be called where Ask may be.
func (d *Datagrams) Taken(id uint32) bool { return d.asked[id] != nil }

// Ask sends a question. It must be called in a function given to Do, or by an Asker.
func (d *Datagrams) Ask(q *Question) {
	now := time.Now()
	if len(d.asked) == 0 {
		d.gather, d.sweep = now.Add(gatherInterval), now.Add(sweepInterval)
	}
	d.asked[q.ID] = q
	family, address := rawAddressOf(q.To)
	fd, err := d.socket(family)
	if err == nil {
		err = sendPacket(fd, q.Packet, &address)
	}
	if err != nil {
		d.fail(q, &net.OpError{Op: "write", Net: "udp", Addr: net.UDPAddrFromAddrPort(q.To), Err: err})
		return
	}
	if d.sent++; d.sent >= gatherAfter {
		d.look()
	}
}

func sendPacket(fd int, packet []byte, to *rawAddress) error {
	for {
		switch errno := sendTo(fd, packet, to); errno {
		case 0:
			return nil
		case unix.EINTR:
		case unix.EAGAIN, unix.ENOBUFS:
			return nil // Lost, as on the way.
		default:
			return os.NewSyscallError("sendto", errno)
		}
	}
}

// socket is that of a family of addresses.
func (d *Datagrams) socket(family int) (int, error) {
	at := &d.sockets[0]
	if family == unix.AF_INET6 {
		at = &d.sockets[1]
	}
	if *at >= 0 {
		return *at, nil
	}
	fd, errno := openSocket(family, unix.SOCK_DGRAM)
	if errno != 0 {
		return -1, os.NewSyscallError("socket", errno)
	}
	if setOption(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBytes) != 0 {
		_ = setOption(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, socketBytes) // what it gives is enough for some
	}
	*at = fd
	return fd, nil
}

func (d *Datagrams) fail(q *Question, err error) {
	delete(d.asked, q.ID)
	q.Asker.Failed(err)
}

// step is a round.
func (d *Datagrams) step(now time.Time) (time.Duration, bool) {
	if len(d.asked) > 0 && !now.Before(d.gather) {
		d.look()
		d.gather = now.Add(gatherInterval)
	}
	if len(d.asked) > 0 && !now.Before(d.sweep) {
		d.sweepOver(now)
		d.sweep = now.Add(sweepInterval)
	}
	if d.o.Round != nil {
		d.o.Round()
	}
	if len(d.asked) > 0 {
		return max(d.gather.Sub(now), 0), true
	}
	if d.closed {
		for i, fd := range d.sockets {
			if fd >= 0 {
				closeSocket(fd)
				d.sockets[i] = -1
			}
		}
	}
	return 0, false
}

// look takes the packets that have come.
func (d *Datagrams) look() {
	d.sent = 0
	if d.buffer == nil {
		d.buffer = make([]byte, maxPacketBytes)
	}
	for _, fd := range d.sockets {
		for n := 0; fd >= 0 && n < gatherMost; n++ {
			if !d.receive(fd) {
				break
			}
		}
	}
}

// receive takes one packet; false when there is none.
func (d *Datagrams) receive(fd int) bool {
	n, from, errno := receiveFrom(fd, d.buffer)
	if errno != 0 {
		return errno == unix.EINTR
	}
	packet := d.buffer[:n]
	id, ok := d.o.ID(packet)
	if !ok {
		return true
	}
	q := d.asked[id]
	if q == nil || from != netip.AddrPortFrom(q.To.Addr().Unmap(), q.To.Port()) { // Others cannot answer for a peer.
		return true
	}
	delete(d.asked, id)
	if !q.Asker.Answer(packet) {
		d.asked[id] = q
	}
	return true
}

// sweepOver ends the questions whose time is over.
func (d *Datagrams) sweepOver(now time.Time) {
	for _, q := range d.asked {
		err := q.Context.Err()
		if err == nil && now.After(q.Deadline) {
			err = os.ErrDeadlineExceeded
		}
		if err != nil {
			d.fail(q, err)
		}
	}
}
