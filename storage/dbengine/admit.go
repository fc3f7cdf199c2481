package dbengine

import (
	"context"
	"fmt"
	"sync"

	"tidemark/storage"
)

// progress lets goroutines wait for the flusher's next round.
type progress struct {
	mu sync.Mutex
	ch chan struct{}
}

// next returns a channel that is closed at the next announcement.
func (p *progress) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ch == nil {
		p.ch = make(chan struct{})
	}
	return p.ch
}

func (p *progress) announce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ch != nil {
		close(p.ch)
		p.ch = nil
	}
}

// admit waits until the log has room for a batch of need bytes. While pages are written more slowly than values come, it
// holds the caller back; when they cannot be written at all, or the log itself cannot, it fails with ErrFull.
func (db *DB) admit(ctx context.Context, need int) error {
	limit := db.o.limits.logBytes - 3*db.o.limits.segmentBytes
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if db.ctx.Err() != nil {
			return storage.ErrClosed
		}
		wait := db.progress.next()
		if live := db.log.LiveBytes(); live+int64(need) <= limit || live < db.o.limits.segmentBytes {
			break
		}
		if failed := db.flushError.Load(); failed != nil {
			db.m.refused.Inc()
			return fmt.Errorf("the log is at its limit and pages cannot be written (%w): %w", *failed, storage.ErrFull)
		}
		db.poke()
		select {
		case <-wait:
		case <-ctx.Done():
		case <-db.ctx.Done():
		}
	}
	err := db.log.Room(ctx, need)
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case db.ctx.Err() != nil:
		return storage.ErrClosed
	}
	db.m.refused.Inc()
	return err
}
