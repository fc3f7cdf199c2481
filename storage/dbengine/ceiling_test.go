package dbengine

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
)

// fills appends varying values in steps of a second, and writes them.
type fills struct {
	t   *testing.T
	db  *DB
	r   *rand.Rand
	now atomic.Int64
}

// until goes on until enough is true, at most a number of rounds, and reports whether it was.
func (f *fills) until(rounds int, enough func() bool) bool {
	for range rounds {
		if enough() {
			return true
		}
		for range 16 {
			b := &model.Batch{}
			for item := model.ItemID(1); item <= 20; item++ {
				b.AppendUint(item, f.now.Load(), f.r.Uint64())
			}
			appendWait(f.t, f.db, b)
			f.now.Add(int64(time.Second))
		}
		f.db.Release(f.db.LastLSN())
		f.db.work(context.Background())
	}
	return enough()
}

func ceilingOptions() Options {
	o := smallOptions()
	o.Logger = slog.New(&spy{})
	o.limits.logBytes, o.limits.logFloorBytes, o.limits.segmentBytes = 512<<10, 128<<10, 32<<10
	o.limits.datafileBytes, o.limits.dirtyBytes, o.DiskSpaceBytes = 64<<10, 8<<10, 4<<20
	o.limits.tick = time.Hour
	o.MinuteShare, o.HourShare = -1, -1
	return o
}

func madePairs(db *DB) int {
	db.pairs.mu.Lock()
	defer db.pairs.mu.Unlock()
	return int(db.pairs.next)
}

func closedPairs(db *DB) int { return len(db.pairs.all()) }

// TestDB_ceiling: at the ceiling old pairs go, where they may not the store grows on, and never is a value refused.
func TestDB_ceiling(t *testing.T) {
	for name, c := range map[string]struct {
		minimum time.Duration
		holds   bool
		grows   bool
	}{"free": {}, "too young": {minimum: 24 * time.Hour, grows: true}, "in a snapshot": {holds: true, grows: true}} {
		o := ceilingOptions()
		o.MinimumAge = c.minimum
		f := &fills{t: t, r: rand.New(rand.NewPCG(3, 3))}
		f.now.Store(testBase)
		o.Now = f.now.Load
		if c.holds {
			o.Snapshots = holdsAll{}
		}
		db := openTest(t, vfs.NewMem(), o)
		f.db = db
		if !f.until(1000, func() bool { return closedPairs(db) >= 5 }) {
			t.Fatalf("%s: no pairs were closed", name)
		}
		ceiling := db.space.usedBytes()
		db.SetCeiling(ceiling)
		more := 0
		if !f.until(1000, func() bool { more = madePairs(db); return more >= 15 }) {
			t.Fatalf("%s: after the ceiling there are %d pairs", name, more)
		}
		// What is released comes after what is taken: a pair and a piece of the log may stand above it.
		if used := db.space.usedBytes(); (used > ceiling+2*o.limits.datafileBytes+o.limits.segmentBytes) != c.grows {
			t.Errorf("%s: the store takes %d bytes with a ceiling of %d", name, used, ceiling)
		}
		if gone := db.CeilingDeletions(); (gone == 0) != c.grows {
			t.Errorf("%s: %d pairs were deleted", name, gone)
		}
		if db.m.refused.Get() != 0 {
			t.Errorf("%s: values were refused", name)
		}
		db.SetCeiling(0)
		gone := db.CeilingDeletions()
		f.until(100, func() bool { return madePairs(db) >= 20 })
		if db.CeilingDeletions() != gone {
			t.Errorf("%s: pairs went after it was lifted", name)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

type holdsAll struct{}

func (holdsAll) Holds(string) bool { return true }
func (holdsAll) DropOldest() bool  { return false }

// TestDB_FreeOldest: only what gives its room back at once goes.
func TestDB_FreeOldest(t *testing.T) {
	o := ceilingOptions()
	o.MinimumAge = 1000 * time.Hour
	f := &fills{t: t, r: rand.New(rand.NewPCG(4, 4))}
	f.now.Store(testBase)
	o.Now = f.now.Load
	dir := t.TempDir()
	db, err := Open(context.Background(), vfs.OS{}, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.FreeOldest("test"); err == nil {
		t.Error("an empty store freed something")
	}
	f.db = db
	if !f.until(1000, func() bool { return closedPairs(db) >= 3 }) {
		t.Fatal("no pairs were closed")
	}
	oldest := db.pairs.all()[0]
	refused := func(want string) {
		t.Helper()
		if _, err := db.FreeOldest("test"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected it refused with %q, found %v", want, err)
		}
	}
	oldest.acquire()
	refused("is being read")
	oldest.release()
	link := dir + "/link"
	if err := db.fs.(vfs.OS).Link(dir+"/"+oldest.id.Name(), link); err != nil {
		t.Fatal(err)
	}
	refused("has 2 links")
	if err := db.fs.Remove(link); err != nil {
		t.Fatal(err)
	}
	refused("minimum age")
	f.now.Add(int64(o.MinimumAge))
	used := db.space.usedBytes()
	freed, err := db.FreeOldest("test")
	if err != nil || freed <= 0 || db.space.usedBytes() != used-freed {
		t.Errorf("freed %d of %d bytes, now %d: %v", freed, used, db.space.usedBytes(), err)
	}
	if _, err := db.fs.Stat(dir + "/" + oldest.id.Name()); !isNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}
