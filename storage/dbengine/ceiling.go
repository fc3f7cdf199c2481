package dbengine

import (
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"tidemark/storage/dbengine/header"
)

// ceiling is what SetCeiling was told, and what of the engine's size passed by itself then.
type ceiling struct{ bytes, passing int64 }

// SetCeiling holds the engine at a size below its quota: from there on the oldest pair of values makes room for what is written to pairs. It is a wish
// and no limit: a pair goes only if that frees its room at once and its values are older than the minimum age, and where none may go the engine
// grows on up to its quota. No value is refused for it. Nothing goes for what gives its room back by itself: the log, also the files that it allocates
// in advance, and pairs that are being written anew. Zero lifts it.
func (db *DB) SetCeiling(sizeBytes int64) {
	if sizeBytes <= 0 {
		db.ceiling.Store(nil)
	} else if sizeBytes != db.CeilingBytes() {
		db.ceiling.Store(&ceiling{bytes: sizeBytes, passing: db.passing()})
	}
}

// CeilingBytes is what SetCeiling was told last.
func (db *DB) CeilingBytes() int64 {
	if c := db.ceiling.Load(); c != nil {
		return c.bytes
	}
	return 0
}

// passing is what of the engine's size gives its room back by itself.
func (db *DB) passing() int64 { return db.log.SizeBytes() + db.borrowed.Load() + db.retiring.Load() }

// ceilingNow is how large the engine may be with the log as long as it is now; false if there is no ceiling.
func (db *DB) ceilingNow() (sizeBytes int64, held bool) {
	c := db.ceiling.Load()
	if c == nil {
		return 0, false
	}
	return c.bytes - c.passing + db.passing(), true
}

// CeilingDeletions is how many pairs went below the quota, for the ceiling or by FreeOldest.
func (db *DB) CeilingDeletions() uint64 { return db.m.ceilingPairs.Get() }

// keepBelowCeiling deletes the oldest pair if more bytes would pass the ceiling. One at most: what a reader holds is given back later, and the next
// one must not pay for it.
func (db *DB) keepBelowCeiling(more int64) {
	ceiling, held := db.ceilingNow()
	if !held || db.space.usedBytes()+more <= ceiling {
		return
	}
	_, _ = db.FreeOldest("to stay at the size that the store had") // why nothing went is no matter: then it grows
}

// FreeOldest deletes the oldest pair of values if that frees its room, and returns how much. Else the error says what holds the pair: a
// snapshot, another link, a reader, or its age. Summaries are never deleted by it.
func (db *DB) FreeOldest(why string) (int64, error) {
	p, err := db.freeable()
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	size := p.charged
	p.mu.Unlock()
	db.o.Logger.Info("delete the oldest pair", "file", p.id.Name(), "bytes", size, "why", why)
	db.m.ceilingPairs.Inc()
	db.deletePair(p)
	return size, nil
}

// freeable takes the oldest pair of values out of the list, if it can be freed.
func (db *DB) freeable() (*pair, error) {
	// Its age is found without the lock: that may read the pair's index.
	next := db.nextToGo()
	var y young
	short := false
	if next != nil {
		y, short = db.tooYoung(next)
	}
	db.pairs.mu.Lock()
	defer db.pairs.mu.Unlock()
	i := db.pairs.oldest()
	if i < 0 || db.pairs.list[i].tier != header.Raw {
		return nil, fmt.Errorf("there is no closed file pair of values")
	}
	p := db.pairs.list[i]
	name := p.id.Name()
	if p != next {
		return nil, fmt.Errorf("%s became the oldest just now", name)
	}
	if s := db.o.Snapshots; s != nil && s.Holds(name) {
		return nil, fmt.Errorf("a kept snapshot holds %s, so that nothing would be freed", name)
	}
	if info, err := db.fs.Stat(filepath.Join(db.dir, name)); err == nil {
		if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
			return nil, fmt.Errorf("%s has %d links, so that nothing would be freed", name, s.Nlink)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readers > 0 {
		return nil, fmt.Errorf("%s is being read", name)
	}
	if short {
		return nil, fmt.Errorf("%s has values that are %v old, and the minimum age is %v", name, y.age.Round(time.Second), y.minimum)
	}
	db.pairs.list = slices.Delete(slices.Clone(db.pairs.list), i, i+1)
	return p, nil
}
