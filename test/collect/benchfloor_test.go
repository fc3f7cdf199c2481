package collect

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tidemark/wire/zbx"
)

// BenchmarkFloor is the least that checks can cost with the calls of the system that they need, at the pace and in the rounds of BenchmarkPeers: one
// thread, no poller, nothing is read but bytes.
func BenchmarkFloor(b *testing.B) {
	b.Run("agent", func(b *testing.B) {
		floor(b, startAgent(b), zbx.AppendFrame(nil, []byte("agent.ping")), false)
	})
	b.Run("http", func(b *testing.B) {
		site := startWeb(b)
		floor(b, site, fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: %s\r\nUser-Agent: floor\r\nAccept-Encoding: gzip\r\n\r\n", site), true)
	})
}

const (
	floorRounds = 15 // in a second
	floorChecks = 67 // in a round
	floorGather = 5 * time.Millisecond
)

// floor asks a peer, with connections that are kept or not, and reports the time of the processor that its thread used.
func floor(b *testing.B, address string, request []byte, keep bool) {
	b.Helper()
	time.Sleep(time.Second) //nolint:forbidigo // the peer starts meanwhile
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	to := netip.MustParseAddrPort(address)
	peer := &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	fail := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	var fds [floorChecks]int
	open := func(i int) {
		var err error
		fds[i], err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		fail(err)
		fail(unix.SetsockoptInt(fds[i], unix.IPPROTO_TCP, unix.TCP_QUICKACK, 0))
		fail(unix.Connect(fds[i], peer))
	}
	if keep {
		for i := range fds {
			open(i)
		}
	}
	rest := func(d time.Duration) {
		left := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&left, nil) // early is as good
	}
	buffer := make([]byte, 4096)
	checks, before := 0, threadTime(b)
	for end := time.Now().Add(span()); time.Now().Before(end); rest(time.Second/floorRounds - floorGather) {
		for i := range fds {
			if !keep {
				open(i)
			}
			_, err := unix.Write(fds[i], request)
			fail(err)
		}
		rest(floorGather)
		for _, fd := range fds {
			n, err := unix.Read(fd, buffer)
			fail(err)
			if n == 0 {
				b.Fatal("no answer")
			}
			if !keep {
				fail(unix.Close(fd))
			}
			checks++
		}
	}
	spent := threadTime(b) - before
	for _, fd := range fds {
		if keep {
			fail(unix.Close(fd))
		}
	}
	report(b, float64(checks), spent)
}

// threadTime is the time of the processor that this thread has used.
func threadTime(b *testing.B) time.Duration {
	b.Helper()
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
