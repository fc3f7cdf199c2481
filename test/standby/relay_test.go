package standby

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// relay is an address that can be moved from one server to another.
type relay struct {
	net.Listener
	mu     sync.Mutex
	target string
	open   map[net.Conn]bool
	users  map[string]int // connections to each target
}

func newRelay(t testing.TB, target string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, target: target, open: map[net.Conn]bool{}, users: map[string]int{}}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.pass(c)
		}
	}()
	return r
}

func (r *relay) pass(in net.Conn) {
	defer in.Close()
	r.mu.Lock()
	target := r.target
	r.users[target]++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.users[target]--
		r.mu.Unlock()
	}()
	out, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		return
	}
	defer out.Close()
	r.mu.Lock()
	r.open[in], r.open[out] = true, true
	r.mu.Unlock()
	go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
	_, _ = io.Copy(in, out)
	r.mu.Lock()
	delete(r.open, in)
	delete(r.open, out)
	r.mu.Unlock()
}

// move sends new connections elsewhere and cuts those that are open.
func (r *relay) move(target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
	for c := range r.open {
		_ = c.Close()
	}
}

// moveGently sends new connections elsewhere and waits until those that are open have ended.
func (r *relay) moveGently(t testing.TB, target string) {
	t.Helper()
	r.mu.Lock()
	old := r.target
	r.target = target
	r.mu.Unlock()
	until(t, "nobody uses the old address", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.users[old] == 0
	})
}
