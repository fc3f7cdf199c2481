package dbengine

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"tidemark/storage"
)

const (
	lockName      = "LOCK"
	marksName     = "marks.nmk"
	tempSuffix    = ".tmp"
	quarantineDir = "quarantine"
	// blockBytes is what file systems give at once, so files are charged in multiples of it.
	blockBytes = 4096
)

func roundUp(n int64) int64 { return (n + blockBytes - 1) / blockBytes * blockBytes }

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// space counts what all files of the engine take, so that it never passes the quota.
type space struct {
	mu          sync.Mutex
	quota, used int64
}

// take counts size bytes if the quota has room for them.
func (s *space) take(size int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used+size > s.quota {
		return false
	}
	s.used += size
	return true
}

// release gives bytes back.
func (s *space) release(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= size
}

// limit is the quota.
func (s *space) limit() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quota
}

func (s *space) usedBytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// reserve counts size bytes of pairs before they are written, and deletes the oldest pairs until there is room.
func (db *DB) reserve(size int64) error {
	db.keepBelowCeiling(size)
	return db.reserveQuota(size)
}

// reserveQuota is reserve for what no pair goes for as long as the quota has room.
func (db *DB) reserveQuota(size int64) error {
	for {
		if db.space.take(size) {
			return nil
		}
		if db.PinnedBytes() > 0 {
			if db.o.Snapshots.DropOldest() {
				db.SnapshotsChanged()
				continue
			}
			if db.oldestIsPinned() {
				return fmt.Errorf("%d bytes more than the disk space of %d bytes allows, and snapshots hold the oldest files; remove snapshots: %w",
					size, db.space.quota, storage.ErrFull)
			}
		}
		if !db.deleteOldest() {
			return fmt.Errorf("%d bytes more than the disk space of %d bytes allows: %w", size, db.space.quota, storage.ErrFull)
		}
	}
}
