package dbengine

import (
	"fmt"
	"path/filepath"
	"sync"
)

// pins counts the files that the engine removed and that kept snapshots still hold. Their room stays taken.
type pins struct {
	mu    sync.Mutex
	files map[string]int64
	bytes int64
}

// pinned notes a removed file of the engine if a kept snapshot holds it, and reports whether it does.
func (db *DB) pinned(name string, charged int64) bool {
	if db.o.Snapshots == nil || !db.o.Snapshots.Holds(name) {
		return false
	}
	db.pins.add(name, charged)
	return true
}

func (p *pins) add(name string, size int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.files == nil {
		p.files = map[string]int64{}
	}
	if _, known := p.files[name]; !known {
		p.files[name] = size
		p.bytes += size
	}
}

// PinnedBytes is the room of files that the engine removed and kept snapshots hold.
func (db *DB) PinnedBytes() int64 {
	db.pins.mu.Lock()
	defer db.pins.mu.Unlock()
	return db.pins.bytes
}

// SnapshotsChanged gives back the room of files that no kept snapshot holds any more. Call it after one was removed.
func (db *DB) SnapshotsChanged() {
	db.pins.mu.Lock()
	gone := int64(0)
	for name, size := range db.pins.files {
		if !db.o.Snapshots.Holds(name) {
			delete(db.pins.files, name)
			gone += size
		}
	}
	db.pins.bytes -= gone
	db.pins.mu.Unlock()
	db.space.release(gone)
	db.poke()
}

// PinSnapshot counts a file that a kept snapshot holds although the engine, at its start, does not have it any more.
func (db *DB) PinSnapshot(name string, sizeBytes int64) error {
	if info, err := db.fs.Stat(filepath.Join(db.dir, name)); err == nil && !info.IsDir() {
		return nil
	} else if !isNotExist(err) {
		return fmt.Errorf("look for %s: %w", name, err)
	}
	db.pins.mu.Lock()
	_, known := db.pins.files[name]
	db.pins.mu.Unlock()
	if known {
		return nil
	}
	db.pins.add(name, roundUp(sizeBytes))
	db.space.mu.Lock()
	db.space.used += roundUp(sizeBytes)
	db.space.mu.Unlock()
	return nil
}

// oldestIsPinned reports whether a kept snapshot holds the oldest pair, so that deleting it would free nothing.
func (db *DB) oldestIsPinned() bool {
	db.pairs.mu.Lock()
	defer db.pairs.mu.Unlock()
	i := db.pairs.oldest()
	return i < 0 || db.o.Snapshots.Holds(db.pairs.list[i].id.Name())
}
