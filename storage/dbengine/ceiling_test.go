package dbengine

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
)

// fills appends varying values in steps of a second, and writes them.
type fills struct {
	t   *testing.T
	db  *DB
	r   *rand.Rand
	now atomic.Int64
}

// newFills returns fills whose clock is that of the options.
func newFills(t *testing.T, o *Options, seed uint64) *fills {
	f := &fills{t: t, r: rand.New(rand.NewPCG(seed, seed))}
	f.now.Store(testBase)
	o.Now = f.now.Load
	return f
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
		f := newFills(t, &o, 3)
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
	f := newFills(t, &o, 4)
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

// TestDB_ceilingFullDisk: others take all that is free, and what is freed. At the ceiling no pair goes for log files that wait for their use, and no
// second one for a page that cannot be written.
func TestDB_ceilingFullDisk(t *testing.T) {
	o := ceilingOptions()
	o.limits.segmentBytes, o.limits.datafileBytes, o.limits.tick = 128<<10, 32<<10, time.Millisecond
	f := newFills(t, &o, 5)
	fsys := vfs.NewMem()
	db := openTest(t, fsys, o)
	f.db = db
	if !f.until(1000, func() bool { return closedPairs(db) >= 8 }) {
		t.Fatal("no pairs were closed")
	}
	db.SetCeiling(db.space.usedBytes())
	full := 0
	for n := 0; n < 20_000 && full < 20; n++ {
		fsys.SetCapacity(fsys.UsedBytes())
		b := &model.Batch{}
		for item := model.ItemID(1); item <= 20; item++ {
			b.AppendUint(item, f.now.Load(), f.r.Uint64())
		}
		f.now.Add(int64(time.Second))
		if err := appendAll(db, b); errors.Is(err, storage.ErrFull) {
			full++
		} else if err != nil {
			t.Fatal(err)
		}
		db.work(context.Background())
	}
	if gone := db.CeilingDeletions(); gone > 1 || full < 20 {
		t.Errorf("%d pairs went while nothing could be written, %d batches were refused", gone, full)
	}
	fsys.SetCapacity(0)
	waitFor(t, func() bool { return db.log.Err() == nil && db.flushError.Load() == nil })
	made := madePairs(db)
	if !f.until(1000, func() bool { return madePairs(db) >= made+10 }) {
		t.Fatalf("%d pairs were made with room again, expected 10", madePairs(db)-made)
	}
	if gone := db.CeilingDeletions(); gone < 8 || gone > 12 {
		t.Errorf("%d pairs went for 10 new ones", gone)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDB_ceilingBorrowed: what is written anew, and a log that grows for a while, cost no pair at the ceiling.
func TestDB_ceilingBorrowed(t *testing.T) {
	o := ceilingOptions()
	f := newFills(t, &o, 6)
	fsys := vfs.NewMem()
	db := openTest(t, fsys, o)
	f.db = db
	if !f.until(1000, func() bool { return closedPairs(db) >= 5 }) {
		t.Fatal("no pairs were closed")
	}
	db.SetCeiling(db.space.usedBytes())
	hold := db.KeepLog()
	before := db.log.SizeBytes()
	made := madePairs(db)
	fsys.OnSync(func() { db.keepBelowCeiling(0) }) // as if something were written in the middle of a pair that is written anew
	done, err := db.Recompress(context.Background(), everything("zstd:3"))
	fsys.OnSync(nil)
	if err != nil || done.WrittenPairs == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if gone := db.CeilingDeletions(); gone > 0 {
		t.Errorf("%d pairs went for what was written anew", gone)
	}
	f.until(60, func() bool { return db.log.SizeBytes() >= before+2*o.limits.segmentBytes })
	if gone, more := int(db.CeilingDeletions()), madePairs(db)-made; gone > more+1 {
		t.Errorf("%d pairs went for %d new ones while the log grew by %d bytes", gone, more, db.log.SizeBytes()-before)
	}
	hold()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
