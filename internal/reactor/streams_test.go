package reactor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// peer answers each line with what answer writes; it closes the connection when answer returns false.
type peer struct {
	at          netip.AddrPort
	connections atomic.Int32
}

func listen(t *testing.T, answer func(nc net.Conn, line string) bool) *peer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{at: ln.Addr().(*net.TCPAddr).AddrPort()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			p.connections.Add(1)
			serving.Go(func() {
				defer nc.Close()
				var line []byte
				one := make([]byte, 1)
				for {
					if _, err := nc.Read(one); err != nil {
						return
					}
					if line = append(line, one[0]); one[0] != '\n' {
						continue
					}
					if !answer(nc, string(line)) {
						return
					}
					line = line[:0]
				}
			})
		}
	})
	t.Cleanup(func() { ln.Close(); serving.Wait() })
	return p
}

// asked is an exchange of a test: the answer is whole at its first line break, or with toEnd at the end of the connection.
type asked struct {
	Exchange
	toEnd bool
	keep  bool
	got   string
	err   error
	done  chan struct{}
}

func (a *asked) Take(got []byte, ended bool) (whole, keep bool) {
	a.got = string(got)
	if a.toEnd {
		return ended, false
	}
	return bytes.HasSuffix(got, []byte("\n")), a.keep
}

func (a *asked) End(err error) { a.err = err; close(a.done) }

func ask(s *Streams, to netip.AddrPort, request string, change func(*asked)) *asked {
	a := &asked{done: make(chan struct{})}
	a.Exchange = Exchange{Context: context.Background(), Deadline: time.Now().Add(time.Minute), To: to, Request: []byte(request), Handler: a}
	if change != nil {
		change(a)
	}
	s.Do(func() { s.Start(&a.Exchange) })
	return a
}

func (a *asked) wait(t *testing.T) (string, error) {
	t.Helper()
	select {
	case <-a.done:
	case <-time.After(time.Minute):
		t.Fatal("the exchange does not end")
	}
	return a.got, a.err
}

func open(t *testing.T, o StreamOptions) *Streams {
	s := NewStreams(o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
	})
	return s
}

func TestStreams_answers(t *testing.T) {
	release := make(chan struct{})
	p := listen(t, func(nc net.Conn, line string) bool {
		switch line {
		case "slow\n":
			<-release // So epoll has the connection.
			for _, part := range []string{"a ", strings.Repeat("long ", 10_000), "answer\n"} {
				io.WriteString(nc, part)
			}
		case "bare\n":
			<-release
			io.WriteString(nc, "to the end")
			return false
		case "close\n":
			return false
		default:
			io.WriteString(nc, "echo "+line)
		}
		return true
	})
	s := open(t, StreamOptions{})
	slow, bare := ask(s, p.at, "slow\n", nil), ask(s, p.at, "bare\n", func(a *asked) { a.toEnd = true })
	for range 3 {
		if got, err := ask(s, p.at, "x\n", nil).wait(t); got != "echo x\n" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	if _, err := ask(s, p.at, "close\n", nil).wait(t); !errors.Is(err, io.EOF) {
		t.Errorf("a peer that closes: %v", err)
	}
	close(release)
	if got, err := slow.wait(t); len(got) != 2+50_000+7 || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got, err := bare.wait(t); got != "to the end" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if n := p.connections.Load(); n != 6 {
		t.Errorf("%d connections, want one for each exchange", n)
	}
}

func TestStreams_keep(t *testing.T) {
	p := listen(t, func(nc net.Conn, line string) bool {
		if line == "die\n" {
			return false
		}
		io.WriteString(nc, "echo "+line)
		return line != "last\n"
	})
	s := open(t, StreamOptions{})
	keep := func(a *asked) { a.Keep, a.keep = true, true }
	for range 5 {
		if got, err := ask(s, p.at, "x\n", keep).wait(t); got != "echo x\n" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if n := p.connections.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	// The peer closes it after an answer: the next exchange has another one.
	for range 5 {
		if got, err := ask(s, p.at, "last\n", keep).wait(t); got != "echo last\n" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if n := p.connections.Load(); n != 5 {
		t.Errorf("%d connections, want 5", n)
	}
	// One that is closed without a byte was asked for once more, and then it is an error.
	ask(s, p.at, "x\n", keep).wait(t)
	before := p.connections.Load()
	if _, err := ask(s, p.at, "die\n", keep).wait(t); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a peer that closes: %v", err)
	}
	if n := p.connections.Load() - before; n != 1 {
		t.Errorf("%d new connections for the second try, want 1", n)
	}
	// Exchanges at the same time have each their own.
	a, b := ask(s, p.at, "x\n", keep), ask(s, p.at, "y\n", keep)
	if got, err := a.wait(t); got != "echo x\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := b.wait(t); got != "echo y\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Connections that are kept end at their time while others are busy without a pause.
func TestStreams_idleBesideBusy(t *testing.T) {
	stuck := make(chan struct{})
	p := listen(t, func(nc net.Conn, line string) bool {
		if line == "stuck\n" {
			<-stuck
			return false
		}
		io.WriteString(nc, "echo "+line)
		return true
	})
	defer close(stuck)
	var rounds atomic.Int32
	s := open(t, StreamOptions{Round: func() { rounds.Add(1) }})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ask(s, p.at, "stuck\n", func(a *asked) { a.Context = ctx })
	if _, err := ask(s, p.at, "x\n", func(a *asked) { a.Keep, a.keep = true, true }).wait(t); err != nil {
		t.Fatal(err)
	}
	kept := func(f func(i *idleConn)) int {
		n := make(chan int, 1)
		s.Do(func() {
			for _, list := range s.idle {
				for i := range list {
					f(&list[i])
				}
			}
			n <- s.idles
		})
		return <-n
	}
	if n := kept(func(i *idleConn) { i.until = time.Now().Add(-time.Second) }); n != 1 {
		t.Fatalf("%d connections are kept, want 1", n)
	}
	const enough = 4 * int32(sweepInterval/gatherInterval)
	for start := rounds.Load(); rounds.Load()-start < enough; {
		time.Sleep(gatherInterval) //nolint:forbidigo // the rounds go on meanwhile
	}
	if n := kept(func(*idleConn) {}); n != 0 {
		t.Errorf("%d connections are kept beyond their time", n)
	}
}

func TestStreams_failures(t *testing.T) {
	stuck := make(chan struct{})
	p := listen(t, func(net.Conn, string) bool { <-stuck; return false })
	defer close(stuck)
	s := open(t, StreamOptions{Allow: func(to netip.AddrPort) error {
		if to.Addr() == netip.MustParseAddr("127.0.0.9") {
			return errors.New("not there")
		}
		return nil
	}})
	_, err := ask(s, p.at, "x\n", func(a *asked) { a.Deadline = time.Now().Add(10 * time.Millisecond) }).wait(t)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a peer that does not answer: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := ask(s, p.at, "x\n", func(a *asked) { a.Context = ctx })
	cancel()
	if _, err := a.wait(t); !errors.Is(err, context.Canceled) {
		t.Errorf("an exchange that is not wanted any more: %v", err)
	}
	if _, err = ask(s, netip.MustParseAddrPort("127.0.0.9:80"), "x\n", nil).wait(t); err == nil || !strings.Contains(err.Error(), "not there") {
		t.Errorf("an address that is not allowed: %v", err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := closed.Addr().(*net.TCPAddr).AddrPort()
	closed.Close()
	_, err = ask(s, at, "x\n", nil).wait(t)
	_, want := net.Dial("tcp", at.String())
	if !errors.Is(err, syscall.ECONNREFUSED) || err.Error() != want.Error() {
		t.Errorf("nobody listens: %v, want %v", err, want)
	}
}

// Many are under way at once, on one goroutine.
func TestStreams_many(t *testing.T) {
	release := make(chan struct{})
	p := listen(t, func(nc net.Conn, line string) bool {
		<-release
		io.WriteString(nc, "echo "+line)
		return false
	})
	var rounds, ended atomic.Int32
	s := open(t, StreamOptions{Round: func() { rounds.Add(1) }})
	const n = 400
	var all []*asked
	for range n {
		all = append(all, ask(s, p.at, "x\n", nil))
	}
	for p.connections.Load() < n {
		time.Sleep(time.Millisecond) //nolint:forbidigo // the peer accepts meanwhile
	}
	close(release)
	for _, a := range all {
		if got, err := a.wait(t); got == "echo x\n" && err == nil {
			ended.Add(1)
		}
	}
	if ended.Load() != n || rounds.Load() == 0 {
		t.Errorf("%d of %d exchanges in %d rounds", ended.Load(), n, rounds.Load())
	}
}

// A peer that does not take connections has until ConnectBy only.
func TestStreams_connectBy(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(bound.(*unix.SockaddrInet4).Port))
	s := open(t, StreamOptions{})
	// One connection fills its queue; what comes then is not answered.
	var list []*asked
	for range 4 {
		list = append(list, ask(s, to, "x\n", func(a *asked) {
			a.ConnectBy, a.Deadline = time.Now().Add(20*time.Millisecond), time.Now().Add(500*time.Millisecond)
		}))
	}
	dialing := 0
	for _, a := range list {
		_, err := a.wait(t)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v", err)
		}
		var failed *net.OpError
		if errors.As(err, &failed) && failed.Op == "dial" {
			dialing++
		}
	}
	if dialing == 0 || dialing == len(list) {
		t.Errorf("%d of %d were not connected in time, want some", dialing, len(list))
	}
}
