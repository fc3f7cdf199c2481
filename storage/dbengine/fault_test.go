package dbengine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/storagetest"
)

// faultRun writes through a file system that may fail, and checks what is found after the power was cut too.
func faultRun(fsys *vfs.Mem, failing *vfs.Failing, seed uint64, direct DirectIO) error {
	h := newHistory(rand.New(rand.NewPCG(seed, 3)))
	o := tinyOptions()
	o.DirectIO = direct
	db, err := Open(context.Background(), failing, "/engine", o)
	if err == nil {
		for i := range 12 {
			b := h.batch()
			c := model.NewCompletion()
			b.Done = append(b.Done, c)
			if _, err := db.Append(context.Background(), b); err != nil {
				if len(b.Done) != 1 {
					return fmt.Errorf("a failed Append took the completion: %w", err)
				}
				continue
			}
			<-c.Done()
			if c.Err() == nil {
				h.ack(b)
			}
			if i%4 == 3 {
				_ = db.Flush(context.Background()) // may fail; nothing acknowledged may be lost by that
			}
		}
		if err := faultRead(db, h); err != nil {
			return err
		}
		_ = db.Close()
	}
	clone := fsys.CrashClone(rand.New(rand.NewPCG(seed, 4)))
	for _, files := range []*vfs.Mem{clone, fsys} {
		db, err := Open(context.Background(), files, "/engine", tinyOptions())
		if err != nil {
			return fmt.Errorf("open after the fault: %w", err)
		}
		if err := verify(db, h.promises()); err != nil {
			return err
		}
		if err := db.Close(); err != nil {
			return err
		}
	}
	return nil
}

// faultRead reads while faults may strike: a read may fail, but what it gives is right.
func faultRead(db *DB, h *history) error {
	p := h.promises()
	err := db.Read(context.Background(), storagetest.All(crashItems...), func(c *model.Columns) error {
		for i := range c.At {
			text := ""
			if c.Type.InArena() {
				text = string(c.Bytes(i))
			}
			if _, ok := p.sent[payload(c.Item, c.Type, c.Bits[i], text)]; !ok {
				return fmt.Errorf("a value that was never sent: %v at %d", payload(c.Item, c.Type, c.Bits[i], text), c.At[i])
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, syscall.EIO) {
		return err
	}
	return nil
}

// TestDB_failNth fails the n-th operation, for every n that a run has.
func TestDB_failNth(t *testing.T) {
	for _, direct := range []DirectIO{DirectAuto, DirectAll} {
		failEach(t, direct, count(t, "TIDEMARK_FAULT_RUNS", 600))
	}
}

func failEach(t *testing.T, direct DirectIO, most int) {
	t.Helper()
	base := vfs.NewFailing(vfs.NewMem())
	if err := faultRun(base.FS.(*vfs.Mem), base, 1, direct); err != nil {
		t.Fatal(err)
	}
	total := base.Count()
	step := max(total*2/int64(most), 1)
	runs := 0
	for _, sticky := range []bool{false, true} {
		for n := int64(1); n <= total; n += step {
			fsys := vfs.NewMem()
			failing := vfs.NewFailing(fsys)
			failing.FailNth(n, vfs.OpAny, syscall.EIO, sticky)
			if err := faultRun(fsys, failing, 1, direct); err != nil {
				t.Fatalf("direct I/O %v, operation %d of %d, sticky %v: %v", direct, n, total, sticky, err)
			}
			runs++
		}
	}
	t.Logf("direct I/O %v: %d runs over %d operations", direct, runs, total)
}

// TestDB_fullDisk fills the disk and frees it again, several times.
func TestDB_fullDisk(t *testing.T) {
	fsys := vfs.NewMem()
	h := newHistory(rand.New(rand.NewPCG(7, 7)))
	o := tinyOptions()
	o.limits.logBytes = 224 << 10
	db, err := Open(context.Background(), fsys, "/engine", o)
	if err != nil {
		t.Fatal(err)
	}
	for round := range count(t, "TIDEMARK_FULL_DISKS", 20) {
		fsys.SetCapacity(fsys.UsedBytes() + int64(h.r.IntN(40<<10)))
		refused := false
		for i := 0; i < 2000 && !refused; i++ {
			b := h.batch()
			c := model.NewCompletion()
			b.Done = append(b.Done, c)
			_, err := db.Append(context.Background(), b)
			if err == nil {
				<-c.Done()
				if err = c.Err(); err == nil {
					h.ack(b)
				}
			}
			refused = errors.Is(err, storage.ErrFull)
			if err != nil && !refused {
				t.Fatalf("round %d: %v, expected ErrFull", round, err)
			}
		}
		if !refused {
			t.Fatalf("round %d: the disk never became full", round)
		}
		if err := verify(db, h.promises()); err != nil {
			t.Fatalf("round %d, full: %v", round, err)
		}
		fsys.SetCapacity(0)
		b := &model.Batch{}
		for { // it recovers by itself; the test's own timeout bounds the wait
			h.mu.Lock()
			h.n++
			b.Reset()
			b.AppendUint(1, h.clock, h.n*0x9E3779B97F4A7C15>>8)
			h.sent[payloadOf(b, 0)] = h.clock
			h.clock++
			h.mu.Unlock()
			if err := appendAll(db, b); err == nil {
				h.ack(b)
				break
			} else if !errors.Is(err, storage.ErrFull) {
				t.Fatal(err)
			}
			<-db.progress.Next()
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = Open(context.Background(), fsys, "/engine", o); err != nil {
		t.Fatal(err)
	}
	if err := verify(db, h.promises()); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDB_fullDiskPairs tries to write pages to a full disk many times: the tries leave no pairs behind.
func TestDB_fullDiskPairs(t *testing.T) {
	ctx, fsys := context.Background(), vfs.NewMem()
	db := openTest(t, fsys, tinyOptions())
	r := rand.New(rand.NewPCG(3, 3))
	b := &model.Batch{}
	for n := range int64(500) {
		b.AppendUint(1, storagetest.Base+n*1_000_000_000, r.Uint64()>>8)
	}
	if err := appendAll(db, b); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		fsys.SetCapacity(fsys.UsedBytes() + 512) // enough for the heads of a pair's files, not for the page
		// No error comes where the flusher has the pages in hand, and finds the disk full itself.
		if err := db.Flush(ctx); err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%v, expected a full disk", err)
		}
	}
	if n := len(db.pairs.all()); n > 1 {
		t.Errorf("%d pairs, expected at most one", n)
	}
	fsys.SetCapacity(0)
	if err := db.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if got := storagetest.Collect(t, db, storagetest.All(1)); len(got) != 500 {
		t.Errorf("%d values, expected 500", len(got))
	}
	if err := errors.Join(db.Close(), noDamage(fsys)); err != nil {
		t.Error(err)
	}
}

// TestDB_quota writes several times the quota and checks the files' size all the while.
func TestDB_quota(t *testing.T) {
	fsys := vfs.NewMem()
	o := smallOptions()
	o.DiskSpaceBytes = 4 << 20
	o.limits = smallLimits()
	o.limits.segmentBytes, o.limits.logBytes, o.limits.logFloorBytes = 64<<10, 1<<20, 512<<10
	db := openTest(t, fsys, o)
	var most atomic.Int64
	fsys.OnSync(func() {
		for used, old := fsys.UsedBytes(), most.Load(); used > old && !most.CompareAndSwap(old, used); old = most.Load() {
		}
	})
	r := rand.New(rand.NewPCG(1, 1))
	at := testBase
	for range 1500 {
		b := &model.Batch{}
		for item := model.ItemID(1); item <= 400; item++ {
			b.Append(item, at, model.Float, r.Uint64()>>2)
		}
		at += 1_000_000_000
		appendWait(t, db, b)
	}
	if err := db.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if over := most.Load() - o.DiskSpaceBytes; over > 0 {
		t.Errorf("%d bytes over the quota", over)
	}
	if used := fsys.UsedBytes(); used < o.DiskSpaceBytes*3/4 {
		t.Errorf("only %d bytes of %d are used", used, o.DiskSpaceBytes)
	}
	if db.m.pairsDeleted.Get() == 0 {
		t.Error("no pair was deleted")
	}
	q := storagetest.All(5)
	q.Newest = 1
	if got := storagetest.Collect(t, db, q); len(got) != 1 || got[0].At != at-1_000_000_000 {
		t.Errorf("newest value %v", got)
	}
	all := storagetest.Collect(t, db, storagetest.All(5))
	if !slices.IsSortedFunc(all, func(a, b storagetest.Value) int { return int(a.At - b.At) }) || len(all) < 100 {
		t.Errorf("%d values are left", len(all))
	}
	if s := db.Stats(); s.DiskBytes > o.DiskSpaceBytes || s.Items != 400 || s.To != at-1_000_000_000 {
		t.Errorf("stats %+v", s)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
