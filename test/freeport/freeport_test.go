package freeport

import (
	"net"
	"sync"
	"testing"
)

func TestPort_apart(t *testing.T) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	seen := map[int]bool{}
	for range 200 {
		wg.Go(func() {
			p := Port(t)
			mu.Lock()
			defer mu.Unlock()
			if seen[p] {
				t.Errorf("port %d given twice", p)
			}
			seen[p] = true
		})
	}
	wg.Wait()
}

func TestFree_taken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if free(ln.Addr().(*net.TCPAddr).Port) {
		t.Error("a port with a listener counts as free")
	}
}
