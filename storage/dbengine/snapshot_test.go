package dbengine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"sync"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/storagetest"
)

// linkInto is what Freeze is given: it links files into a folder and notes how much of them counts.
func linkInto(fsys *vfs.Mem, dir string, files map[string]int64) func(Frozen) error {
	return func(f Frozen) error {
		files[f.Name] = f.Bytes
		return fsys.Link(path.Join("/engine", f.Name), path.Join(dir, f.Name))
	}
}

// restoreFrom copies what counts of a snapshot into the engine's folder of another file system.
func restoreFrom(t *testing.T, fsys *vfs.Mem, dir string, files map[string]int64) *vfs.Mem {
	t.Helper()
	to := vfs.NewMem()
	if err := to.MkdirAll("/engine"); err != nil {
		t.Fatal(err)
	}
	for name, size := range files {
		in, err := fsys.Open(path.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, size)
		if n, err := in.ReadAt(b, 0); n < len(b) || err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("%s: %d of %d bytes, %v", name, n, size, err)
		}
		out, err := to.Create(path.Join("/engine", name))
		if err == nil {
			_, err = out.WriteAt(b, 0)
		}
		if err = errors.Join(err, out.Sync(), out.Close(), in.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestDB_snapshot takes snapshots while values come, goes on writing, deleting and restarting, and restores them at the end.
func TestDB_snapshot(t *testing.T) {
	for seed := range uint64(count(t, "TIDEMARK_SNAPSHOT_ROUNDS", 1)) {
		snapshotRun(t, seed)
	}
}

func snapshotRun(t *testing.T, seed uint64) {
	t.Helper()
	ctx := context.Background()
	fsys := vfs.NewMem()
	db := openTest(t, fsys, tinyOptions())
	h := newHistory(rand.New(rand.NewPCG(seed, 7)))
	write := func(n int) {
		for range n {
			b := h.batch()
			if err := appendAll(db, b); err != nil {
				t.Fatal(err)
			}
			h.ack(b)
			if h.r.IntN(20) == 0 {
				db.Release(db.LastLSN())
			}
		}
	}
	type shot struct {
		dir   string
		files map[string]int64
		acked map[string]int64
		sent  map[string]int64
	}
	var shots []shot
	for i := range 5 {
		write(10 + h.r.IntN(40))
		s := shot{dir: fmt.Sprint("/snapshots/", i), files: map[string]int64{}}
		if err := fsys.MkdirAll(s.dir); err != nil {
			t.Fatal(err)
		}
		s.acked = h.promises().acked
		var writing sync.WaitGroup
		writing.Go(func() { write(20) })
		if _, err := db.Freeze(ctx, linkInto(fsys, s.dir, s.files), nil); err != nil {
			t.Fatal(err)
		}
		writing.Wait()
		s.sent = h.promises().sent
		shots = append(shots, s)
		if err := db.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = openTest(t, fsys, tinyOptions())
		}
	}
	write(100)
	if err := verify(db, h.promises()); err != nil {
		t.Fatalf("seed %d: the engine itself: %v", seed, err)
	}
	for i, s := range shots {
		restored := restoreFrom(t, fsys, s.dir, s.files)
		findings, err := Check(restored, "/engine", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range findings {
			if f.Damage {
				t.Fatalf("seed %d, snapshot %d: %v", seed, i, f)
			}
		}
		if err := checkClone(restored, promises{sent: s.sent, acked: s.acked}, rand.New(rand.NewPCG(seed, 8))); err != nil {
			t.Fatalf("seed %d, snapshot %d: %v", seed, i, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDB_Freeze_whileFlushing: the moment does not wait until all pages that are due are written, or a pair is written anew for its room.
func TestDB_Freeze_whileFlushing(t *testing.T) {
	db := openTest(t, vfs.NewMem(), smallOptions())
	defer db.Close()
	b := model.NewBatch()
	b.AppendFloat(1, testBase, 1)
	appendWait(t, db, b)
	db.flushing.Lock()
	defer db.flushing.Unlock()
	frozen := make(chan error, 1)
	go func() {
		_, err := db.Freeze(context.Background(), func(Frozen) error { return nil }, nil)
		frozen <- err
	}()
	select {
	case err := <-frozen:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the snapshot waits for the flusher")
	}
}

// TestDB_Freeze_relaxed: the moment does not wait for the second that relaxed durability leaves between syncs.
func TestDB_Freeze_relaxed(t *testing.T) {
	o := smallOptions()
	o.Durability = Relaxed
	db := openTest(t, vfs.NewMem(), o)
	defer db.Close()
	began := time.Now()
	const rounds = 20
	for i := range rounds {
		b := model.NewBatch()
		b.AppendFloat(1, testBase+int64(i), 1)
		appendWait(t, db, b)
		end := db.LastLSN()
		if lsn, err := db.Freeze(t.Context(), func(Frozen) error { return nil }, nil); err != nil || lsn < end {
			t.Fatalf("%d of %d, %v", lsn, end, err)
		}
	}
	if took := time.Since(began); took > rounds*time.Second*9/10 {
		t.Errorf("%d snapshots took %v", rounds, took)
	}
}

// shelf is a SnapshotStore that holds fixed names.
type shelf struct {
	mu      sync.Mutex
	held    []map[string]int64
	keep    bool
	dropped int
}

func (s *shelf) Holds(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, files := range s.held {
		if _, ok := files[name]; ok {
			return true
		}
	}
	return false
}

func (s *shelf) DropOldest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keep || len(s.held) == 0 {
		return false
	}
	s.held = s.held[1:]
	s.dropped++
	return true
}

// TestDB_snapshotQuota fills the quota while a snapshot holds old files: it is dropped, or values are refused, and the quota
// covers what only the snapshot holds all the while.
func TestDB_snapshotQuota(t *testing.T) {
	for _, keep := range []bool{false, true} {
		fsys := vfs.NewMem()
		s := &shelf{keep: keep}
		o := tinyOptions()
		o.DiskSpaceBytes, o.Snapshots = 2<<20, s
		db := openTest(t, fsys, o)
		r := rand.New(rand.NewPCG(3, 4))
		write := func(from, to int) error {
			for n := from; n < to; n++ {
				b := &model.Batch{}
				for item := model.ItemID(1); item <= 50; item++ {
					b.AppendUint(item, storagetest.Base+int64(n)*1_000_000_000, r.Uint64())
				}
				if err := appendAll(db, b); err != nil {
					return err
				}
				db.Release(db.LastLSN())
			}
			return nil
		}
		if err := write(0, 800); err != nil {
			t.Fatal(err)
		}
		files := map[string]int64{}
		if err := fsys.MkdirAll("/snapshots"); err != nil {
			t.Fatal(err)
		}
		done := func(model.LSN) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.held = append(s.held, files)
			return nil
		}
		if _, err := db.Freeze(context.Background(), linkInto(fsys, "/snapshots", files), done); err != nil {
			t.Fatal(err)
		}
		err := write(800, 9000)
		if keep != errors.Is(err, storage.ErrFull) || !keep && err != nil {
			t.Errorf("keep %v: writing on gave %v", keep, err)
		}
		if dropped := s.dropped == 1; dropped == keep {
			t.Errorf("keep %v: %d snapshots dropped", keep, s.dropped)
		}
		if used := db.space.usedBytes(); used > o.DiskSpaceBytes {
			t.Errorf("keep %v: %d bytes used of %d", keep, used, o.DiskSpaceBytes)
		}
		if !keep && db.PinnedBytes() != 0 {
			t.Errorf("%d bytes still pinned", db.PinnedBytes())
		}
		if keep { // removing it by hand lets writing go on
			s.mu.Lock()
			s.held = nil
			s.mu.Unlock()
			db.SnapshotsChanged()
			waitFor(t, func() bool { return write(9000, 9001) == nil })
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
	}
}
