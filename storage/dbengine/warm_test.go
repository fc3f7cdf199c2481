package dbengine

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
)

// watchedFS tells of reads while a shard is locked.
type watchedFS struct {
	*vfs.Mem
	db            atomic.Pointer[DB]
	reads, locked atomic.Int64
}

func (w *watchedFS) Open(name string) (vfs.File, error) {
	f, err := w.Mem.Open(name)
	return watchedFile{f, w}, err
}

func (w *watchedFS) OpenReadWrite(name string) (vfs.File, error) {
	f, err := w.Mem.OpenReadWrite(name)
	return watchedFile{f, w}, err
}

func (w *watchedFS) Create(name string) (vfs.File, error) {
	f, err := w.Mem.Create(name)
	return watchedFile{f, w}, err
}

type watchedFile struct {
	vfs.File
	fs *watchedFS
}

func (f watchedFile) ReadAt(b []byte, at int64) (int, error) {
	if db := f.fs.db.Load(); db != nil {
		f.fs.reads.Add(1)
		for i := range db.shards {
			if !db.shards[i].mu.TryLock() {
				f.fs.locked.Add(1)
				break
			}
			db.shards[i].mu.Unlock()
		}
	}
	return f.File.ReadAt(b, at)
}

// TestAppend_late looks for late values on the disk, in the growing pair and in closed ones, with nothing in the cache and after a start: no
// shard is locked while the disk is read.
func TestAppend_late(t *testing.T) {
	fsys := &watchedFS{Mem: vfs.NewMem()}
	o := smallOptions()
	o.limits.tick, o.limits.tierTick = time.Hour, 0
	open := func() *DB {
		db, err := Open(context.Background(), fsys, "engine", o)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open()
	const items, seconds = 40, 3000
	at := func(k int) int64 { return testBase + int64(k)*int64(time.Second) }
	for k := range seconds {
		b := &model.Batch{}
		for item := model.ItemID(1); item <= items; item++ {
			b.AppendUint(item, at(2*k), uint64(k)*uint64(item))
		}
		appendWait(t, db, b)
		if k == 1000 || k == 2000 {
			if err := db.ClosePair(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := db.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		if round == 2 { // series are not known any more
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = open()
		}
		for file := range uint64(20) {
			db.cache.Forget(file)
		}
		fsys.reads.Store(0)
		db.flushing.Lock() // the flusher locks shards too
		fsys.db.Store(db)
		b := &model.Batch{}
		for item := model.ItemID(1); item <= items; item++ {
			for _, k := range []int{10 + round, 1500 + round, 2900} {
				b.AppendUint(item, at(2*k), uint64(k)*uint64(item)) // a duplicate
				b.AppendUint(item, at(2*k)+1+int64(round), 7)
			}
		}
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
		fsys.db.Store(nil)
		db.flushing.Unlock()
		if reads, locked := fsys.reads.Load(), fsys.locked.Load(); reads == 0 || locked > 0 {
			t.Errorf("round %d: %d reads, %d of them while a shard was locked", round, reads, locked)
		}
		for i := range b.Items {
			if duplicate := b.Flags[i]&model.Duplicate != 0; duplicate != (i%2 == 0) {
				t.Fatalf("round %d, row %d: flags %b", round, i, b.Flags[i])
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
