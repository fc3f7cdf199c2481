//go:build linux

package capture

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tidemark/sniff/packet"
)

// RingOptions say what a Ring captures.
type RingOptions struct {
	// Interface is a device's name, or "any".
	Interface string
	// Ports are the TCP ports to capture; none captures all TCP.
	Ports []uint16
	// RingBytes is the size of the ring, rounded up to whole blocks of 512 KiB; 0 means 8 MiB.
	RingBytes int
	// PollTime is how long the kernel may hold a part-filled block back, and how long Next waits; 0 means 50 ms. Longer
	// means fewer wake-ups.
	PollTime time.Duration
	// Fanout, if not zero, is the id of a fanout group: the rings of a group share the frames by flow.
	Fanout uint16
}

// Ring captures from a network interface through a ring that the kernel fills (TPACKET_V3; see the kernel's
// Documentation/networking/packet_mmap.rst). Opening it needs CAP_NET_RAW; reading does not.
type Ring struct {
	fd       int
	ring     []byte
	poll     time.Duration
	index    int   // of the interface, 0 for any
	loopback int32 // index of lo when capturing on any, else 0

	block   int
	pos     int // offset of the next frame in the block, 0 when the block is not open
	left    int // frames left in the open block
	stats   Stats
	skipped atomic.Uint64
}

// ringBlockBytes holds several frames of 64 KiB; the kernel hands over a block at a time, at the latest after the poll time.
const ringBlockBytes = 512 << 10

// OpenRing opens a ring on an interface.
func OpenRing(o RingOptions) (*Ring, error) {
	r := &Ring{poll: o.PollTime}
	if r.poll <= 0 {
		r.poll = 50 * time.Millisecond
	}
	index, isLoopback, err := findInterface(o.Interface)
	if err != nil {
		return nil, err
	}
	// Protocol 0 captures nothing until bind names one, so that no frame passes before the filter is in place.
	r.index = index
	r.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.EPERM) {
			return nil, errors.New("capture: not allowed to open a packet socket; run as root or give the binary CAP_NET_RAW (setcap cap_net_raw+ep tidemark)")
		}
		return nil, fmt.Errorf("capture: open a packet socket: %w", err)
	}
	if err := r.setUp(o, index, isLoopback); err != nil {
		r.Close()
		return nil, fmt.Errorf("capture on %s: %w", o.Interface, err)
	}
	return r, nil
}

func findInterface(name string) (index int, isLoopback bool, err error) {
	if name == "any" {
		return 0, false, nil
	}
	device, err := net.InterfaceByName(name)
	if err != nil {
		return 0, false, fmt.Errorf("capture: there is no interface %q; there are: %s, any", name, interfaceNames())
	}
	return device.Index, device.Flags&net.FlagLoopback != 0, nil
}

// interfaceNames lists the machine's devices.
func interfaceNames() string {
	devices, err := net.Interfaces()
	if err != nil {
		return "?"
	}
	var names []string
	for _, d := range devices {
		names = append(names, d.Name)
	}
	return strings.Join(names, ", ")
}

func (r *Ring) setUp(o RingOptions, index int, isLoopback bool) error {
	if err := unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return fmt.Errorf("this kernel has no TPACKET_V3: %w", err)
	}
	if isLoopback {
		// Loopback shows each frame twice; the copy on its way out can be left out by the kernel (since 4.20). Where it
		// cannot, the flow tracker drops duplicates by their sequence numbers.
		_ = unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	}
	if index == 0 {
		if lo, err := net.InterfaceByName("lo"); err == nil {
			r.loopback = int32(lo.Index)
		}
	}
	if err := r.attachFilter(o.Ports); err != nil {
		return err
	}
	if err := r.mapRing(o.RingBytes); err != nil {
		return err
	}
	address := unix.SockaddrLinklayer{Protocol: swap(unix.ETH_P_ALL), Ifindex: index}
	if err := unix.Bind(r.fd, &address); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if o.Fanout != 0 {
		fanout := int(o.Fanout) | (unix.PACKET_FANOUT_HASH|unix.PACKET_FANOUT_FLAG_DEFRAG)<<16
		if err := unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_FANOUT, fanout); err != nil {
			return fmt.Errorf("join fanout group %d: %w", o.Fanout, err)
		}
	}
	return nil
}

// swap changes a number to network byte order.
func swap(v uint16) uint16 { return v<<8 | v>>8 }

func (r *Ring) attachFilter(ports []uint16) error {
	program, err := portFilter(ports)
	if err != nil {
		return err
	}
	raw := make([]unix.SockFilter, len(program))
	for i, p := range program {
		raw[i] = unix.SockFilter{Code: p.Op, Jt: p.Jt, Jf: p.Jf, K: p.K}
	}
	fprog := unix.SockFprog{Len: uint16(len(raw)), Filter: &raw[0]}
	if err := unix.SetsockoptSockFprog(r.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &fprog); err != nil {
		return fmt.Errorf("attach the port filter: %w", err)
	}
	return nil
}

func (r *Ring) mapRing(sizeBytes int) error {
	if sizeBytes <= 0 {
		sizeBytes = 8 << 20
	}
	blocks := (sizeBytes + ringBlockBytes - 1) / ringBlockBytes
	request := unix.TpacketReq3{
		Block_size: ringBlockBytes, Block_nr: uint32(blocks), Frame_size: ringBlockBytes, Frame_nr: uint32(blocks),
		Retire_blk_tov: uint32(max(1, r.poll.Milliseconds())),
	}
	if err := unix.SetsockoptTpacketReq3(r.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &request); err != nil {
		return fmt.Errorf("make a ring of %d KiB: %w", blocks*ringBlockBytes>>10, err)
	}
	ring, err := unix.Mmap(r.fd, 0, blocks*ringBlockBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map the ring: %w", err)
	}
	r.ring = ring
	// What others sent must not be in a core dump.
	_ = unix.Madvise(ring, unix.MADV_DONTDUMP)
	return nil
}

// header returns the header of the block at hand.
func (r *Ring) header() *unix.TpacketHdrV1 {
	description := (*unix.TpacketBlockDesc)(unsafe.Pointer(&r.ring[r.block*ringBlockBytes]))
	return (*unix.TpacketHdrV1)(unsafe.Pointer(&description.Hdr[0]))
}

// Next implements Source. The frame lies in the ring and is valid until the next call.
func (r *Ring) Next(f *Frame) error {
	for {
		if r.left == 0 {
			if err := r.openBlock(); err != nil {
				return err
			}
			continue
		}
		base := r.block*ringBlockBytes + r.pos
		h := (*unix.Tpacket3Hdr)(unsafe.Pointer(&r.ring[base]))
		address := (*unix.RawSockaddrLinklayer)(unsafe.Pointer(&r.ring[base+int(unsafe.Sizeof(*h))+addressPad]))
		r.left--
		r.pos += int(h.Next_offset)
		if r.loopback != 0 && address.Pkttype == unix.PACKET_OUTGOING && address.Ifindex == r.loopback {
			r.skipped.Add(1)
			continue
		}
		start := base + int(h.Mac)
		f.Data = r.ring[start : start+int(h.Snaplen)]
		f.WireBytes = int(h.Len)
		f.At = int64(h.Sec)*1e9 + int64(h.Nsec)
		f.Link = linkOf(address.Hatype)
		return nil
	}
}

// addressPad is the padding between a frame's header and its address: both are aligned to 16 bytes.
const addressPad = (16 - int(unsafe.Sizeof(unix.Tpacket3Hdr{}))%16) % 16

// linkOf maps a device's hardware type to what its frames begin with.
func linkOf(hardware uint16) packet.LinkType {
	if hardware == unix.ARPHRD_ETHER || hardware == unix.ARPHRD_LOOPBACK {
		return packet.Ethernet
	}
	return packet.Raw
}

// openBlock gives a used block back to the kernel and waits for the next one.
func (r *Ring) openBlock() error {
	if r.pos != 0 {
		atomic.StoreUint32(&r.header().Block_status, unix.TP_STATUS_KERNEL)
		r.pos = 0
		r.block++
		if r.block*ringBlockBytes == len(r.ring) {
			r.block = 0
		}
	}
	h := r.header()
	if atomic.LoadUint32(&h.Block_status)&unix.TP_STATUS_USER == 0 {
		fds := []unix.PollFd{{Fd: int32(r.fd), Events: unix.POLLIN | unix.POLLERR}}
		n, err := unix.Poll(fds, int(max(1, r.poll.Milliseconds())))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("capture: wait for frames: %w", err)
		}
		if n > 0 && fds[0].Revents&unix.POLLERR != 0 {
			if code, _ := unix.GetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_ERROR); code != 0 {
				return r.failed(unix.Errno(code))
			}
		}
		if atomic.LoadUint32(&h.Block_status)&unix.TP_STATUS_USER == 0 {
			return ErrTimeout
		}
	}
	r.left = int(h.Num_pkts)
	r.pos = int(h.Offset_to_first_pkt)
	return nil
}

// failed says what an error of the socket means. An interface that went down is captured on again when it comes up; one that was
// removed never, also if another gets its name.
func (r *Ring) failed(code unix.Errno) error {
	if code != unix.ENETDOWN {
		return fmt.Errorf("capture: %w", code)
	}
	if _, err := net.InterfaceByIndex(r.index); err != nil && r.index != 0 {
		return errors.New("capture: the interface was removed")
	}
	return ErrTimeout
}

// Stats implements Source. The kernel clears its counters with each call, so they are added up here.
func (r *Ring) Stats() (Stats, error) {
	s, err := unix.GetsockoptTpacketStatsV3(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return r.stats, fmt.Errorf("capture: read the ring's counters: %w", err)
	}
	r.stats.Received += uint64(s.Packets)
	r.stats.Dropped += uint64(s.Drops)
	r.stats.Freezes += uint64(s.Freeze_q_cnt)
	r.stats.Outgoing = r.skipped.Load()
	return r.stats, nil
}

// Close unmaps the ring and closes the socket. A second call does nothing.
func (r *Ring) Close() error {
	if r.fd < 0 {
		return nil
	}
	var first error
	if r.ring != nil {
		first = unix.Munmap(r.ring)
		r.ring = nil
	}
	if err := unix.Close(r.fd); first == nil {
		first = err
	}
	r.fd = -1
	return first
}
