package reactor

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls of this file never wait, so the runtime is not told of them: it would wake its thread that looks for calls that do, and that thread
// then looks 50 times in the next milliseconds, which costs a poller that is otherwise idle more than its checks.

// sockaddrBytes has room for an address of either family.
const sockaddrBytes = unix.SizeofSockaddrInet6

// rawAddress is an address as the system takes it: struct sockaddr_in or sockaddr_in6.
type rawAddress struct {
	bytes [sockaddrBytes]byte
	size  uintptr
}

func rawAddressOf(to netip.AddrPort) (family int, raw rawAddress) {
	ip := to.Addr().Unmap()
	binary.BigEndian.PutUint16(raw.bytes[2:], to.Port())
	if ip.Is4() {
		binary.NativeEndian.PutUint16(raw.bytes[:], unix.AF_INET)
		four := ip.As4()
		copy(raw.bytes[4:], four[:])
		raw.size = unix.SizeofSockaddrInet4
		return unix.AF_INET, raw
	}
	binary.NativeEndian.PutUint16(raw.bytes[:], unix.AF_INET6)
	sixteen := ip.As16()
	copy(raw.bytes[8:], sixteen[:])
	raw.size = unix.SizeofSockaddrInet6
	return unix.AF_INET6, raw
}

// addrPort is the address and the port; invalid for a family that is neither.
func (a *rawAddress) addrPort() netip.AddrPort {
	port := binary.BigEndian.Uint16(a.bytes[2:])
	switch binary.NativeEndian.Uint16(a.bytes[:]) {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a.bytes[4:8])), port)
	case unix.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(a.bytes[8:24])).Unmap(), port)
	}
	return netip.AddrPort{}
}

func openSocket(family, kind int) (int, unix.Errno) {
	fd, _, err := unix.RawSyscall(unix.SYS_SOCKET, uintptr(family), uintptr(kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC), 0)
	return int(fd), err
}

func setOption(fd, level, option int, value int32) unix.Errno {
	_, _, err := unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option), uintptr(unsafe.Pointer(&value)), unsafe.Sizeof(value), 0)
	return err
}

func connectTo(fd int, to *rawAddress) unix.Errno {
	_, _, err := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&to.bytes)), to.size)
	return err
}

// send sends some of b, which is not empty. It is no write: a connection that the peer has reset raises no signal.
func send(fd int, b []byte) (int, unix.Errno) {
	n, _, err := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return int(n), err
}

// sendTo sends a packet, which is not empty.
func sendTo(fd int, b []byte, to *rawAddress) unix.Errno {
	_, _, err := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, uintptr(unsafe.Pointer(&to.bytes)), to.size)
	return err
}

// receive reads into b, which has room for at least one byte.
func receive(fd int, b []byte, flags uintptr) (int, unix.Errno) {
	n, _, err := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|flags, 0, 0)
	return int(n), err
}

// receiveFrom reads a packet and says who sent it.
func receiveFrom(fd int, b []byte) (int, netip.AddrPort, unix.Errno) {
	var from rawAddress
	size := uint32(sockaddrBytes)
	n, _, err := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(&from.bytes)), uintptr(unsafe.Pointer(&size)))
	if err != 0 {
		return 0, netip.AddrPort{}, err
	}
	return int(n), from.addrPort(), 0
}

func closeSocket(fd int) { _, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

func watchSocket(epoll, fd int, operation uintptr, events uint32) unix.Errno {
	e := unix.EpollEvent{Events: events, Fd: int32(fd)}
	_, _, err := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(epoll), operation, uintptr(fd), uintptr(unsafe.Pointer(&e)), 0, 0)
	return err
}

// watched takes the events that there are now.
func watched(epoll int, events []unix.EpollEvent) (int, unix.Errno) {
	n, _, err := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}
