package trapper

import (
	"context"
	"sync"
)

// budget bounds the memory of all requests at once.
type budget struct {
	limit int64
	mu    sync.Mutex
	used  int64
	// freed is closed when memory comes back while somebody waits; nil when nobody does.
	freed chan struct{}
}

// try takes n more bytes for one who holds own, if there are as many. A single request may always have what it needs
// when it is alone.
func (b *budget) try(n, own int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used != own && b.used+n > b.limit {
		return false
	}
	b.used += n
	return true
}

// wait takes n bytes as soon as there are as many. Only who holds nothing yet may wait, else two could wait for
// each other.
func (b *budget) wait(ctx context.Context, n int64) error {
	for {
		b.mu.Lock()
		if b.used == 0 || b.used+n <= b.limit {
			b.used += n
			b.mu.Unlock()
			return nil
		}
		if b.freed == nil {
			b.freed = make(chan struct{})
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

func (b *budget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
