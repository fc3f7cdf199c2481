package capture

import (
	"bytes"
	"net"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// setLoopback sets the loopback device of the thread's network namespace up or down.
func setLoopback(t *testing.T, up bool) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	if up {
		request.SetUint16(unix.IFF_UP)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		t.Fatal(err)
	}
}

// TestRing_interfaceDown takes the device down and up again under a capture, in a network namespace of its own: the capture waits, and goes on.
func TestRing_interfaceDown(t *testing.T) {
	runtime.LockOSThread() // for good: the thread ends with the test, and its namespace too
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("a network namespace of its own needs root: %v", err)
	}
	setLoopback(t, true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	r, err := OpenRing(RingOptions{Interface: "lo", Ports: []uint16{port}, RingBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	setLoopback(t, false)
	for range 3 {
		if err := r.Next(&Frame{}); err != ErrTimeout {
			t.Fatalf("while the device is down: %v", err)
		}
	}
	setLoopback(t, true)
	body := bytes.Repeat([]byte("0123456789abcdef"), 64)
	exchange(t, l, body)
	sent, answered := collect(t, r, port)
	if !bytes.Equal(sent, body) || string(answered) != "thanks" {
		t.Errorf("captured %d bytes to the server and %q from it after the device came up", len(sent), answered)
	}
}
