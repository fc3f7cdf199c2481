package dbengine

import (
	"context"
	"fmt"

	"tidemark/storage"
)

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
		wait := db.progress.Next()
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
