// Package freeport gives tests of whole programs ports to listen on.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// The range lies below the ports that systems give to connections (Linux: 32768 on), one of which could come between the choice of a port
// and its use.
const (
	first = 20_000
	count = 12_000
)

// Port returns a TCP and UDP port of 127.0.0.1 that nobody listens on and that no other test is given until t ends, whichever process
// runs it. The caller may listen on it, stop and listen again.
func Port(t testing.TB) int {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "tidemark-test-ports")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		port := first + rand.IntN(count)
		claim, err := claimed(filepath.Join(dir, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if free(port) {
			t.Cleanup(func() { claim.Close() })
			return port
		}
		claim.Close()
	}
	t.Fatalf("no free port from %d to %d", first, first+count-1)
	return 0
}

// Address is Port with the host before it.
func Address(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", Port(t))
}

// claimed returns a locked file; closing it gives it back, as does the end of the process.
func claimed(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func free(port int) bool {
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	ln.Close()
	pc, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	pc.Close()
	return true
}
