package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine"
)

const (
	// diskBytes is the size of the file system, which holds an engine of the smallest quota and what others write.
	diskBytes = 448 << 20
	// recovery is how long after room came back values must be taken again.
	recovery  = 30 * time.Second
	fullItems = 500
)

// TestFullDisk has others fill the small file system of an engine and free it again, with the engine's real files: what was acknowledged is there in the end, a full disk
// refuses what is not, reads go on, and ten seconds after there is room values are taken again. It mounts a file system in a file, which needs root.
func TestFullDisk(t *testing.T) {
	dir := mounted(t)
	db := openFull(t, dir)
	w := &filling{t: t, db: db, r: rand.New(rand.NewPCG(1, 1)), acked: map[int64]bool{}}
	for round := range fullDisks(t) {
		fill(t, filepath.Join(dir, "others"))
		for w.append() {
		}
		if !w.full {
			t.Fatalf("round %d: the disk never became full", round)
		}
		w.check(1)
		if err := os.Remove(filepath.Join(dir, "others")); err != nil {
			t.Fatal(err)
		}
		freed := time.Now()
		for !w.append() {
			if time.Since(freed) > recovery {
				t.Fatalf("round %d: no value was taken %v after there was room", round, recovery)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	state := db.Direct()
	t.Logf("%d rounds, %d of %d rows acknowledged, direct I/O %+v", fullDisks(t), len(w.acked), w.rows, state)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	findings, err := dbengine.Check(vfs.OS{}, filepath.Join(dir, "engine"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Damage {
			t.Error(f)
		}
	}
	w.db = openFull(t, dir)
	w.check(fullItems)
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
}

// fullDisks is how often the disk is filled; TIDEMARK_FULL_DISKS sets another number.
func fullDisks(t *testing.T) int {
	t.Helper()
	text := os.Getenv("TIDEMARK_FULL_DISKS")
	if text == "" {
		return 20
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("TIDEMARK_FULL_DISKS is %q, want a number", text)
	}
	return n
}

// mounted makes a small file system in a file and mounts it.
func mounted(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	image, dir := filepath.Join(base, "disk"), filepath.Join(base, "mounted")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, diskBytes), os.Mkdir(dir, 0o750)); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-m", "0", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v\n%s", err, out)
		}
	})
	return dir
}

func openFull(t *testing.T, dir string) *dbengine.DB {
	t.Helper()
	db, err := dbengine.Open(context.Background(), vfs.OS{}, filepath.Join(dir, "engine"), dbengine.Options{
		DiskSpaceBytes: dbengine.MinDiskSpaceBytes, PageCacheBytes: dbengine.MinPageCacheBytes, DirectIO: dbengine.DirectAll,
	})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// fill writes a file until nothing more fits.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 20; size >= 512; {
		if _, err = f.Write(make([]byte, size)); err == nil {
			continue
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		size /= 2
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// filling writes rows of values: row n has the value n of every item, at second n.
type filling struct {
	t     *testing.T
	db    *dbengine.DB
	r     *rand.Rand
	rows  int64
	acked map[int64]bool
	full  bool
}

const fullBase = 1_767_225_600

// append writes some rows and reports whether they were taken; full says whether it was for want of room that they were not.
func (w *filling) append() bool {
	w.t.Helper()
	b := &model.Batch{}
	first := w.rows
	for range 20 {
		at := (fullBase + w.rows) * int64(time.Second)
		for id := range model.ItemID(fullItems) {
			b.AppendUint(1+id, at, valueOf(id, w.rows))
		}
		w.rows++
	}
	done := model.NewCompletion()
	b.Done = append(b.Done, done)
	_, err := w.db.Append(context.Background(), b)
	if err == nil {
		<-done.Done()
		err = done.Err()
	}
	if w.full = errors.Is(err, storage.ErrFull); err != nil && !w.full {
		w.t.Fatalf("%v, expected a full disk", err)
	}
	for n := first; err == nil && n < w.rows; n++ {
		w.acked[n] = true
	}
	return err == nil
}

// valueOf is a number that takes its eight bytes.
func valueOf(id model.ItemID, row int64) uint64 {
	x := uint64(row)*0x9E3779B97F4A7C15 + uint64(id)*0xBF58476D1CE4E5B9
	return x ^ x>>29
}

// check reads some items: each value is right, and from the oldest that is there on all that were acknowledged are.
func (w *filling) check(items int) {
	w.t.Helper()
	for id := range model.ItemID(items) {
		found := map[int64]bool{}
		oldest := w.rows
		q := storage.Query{Items: []model.ItemID{1 + id}, Range: model.TimeRange{From: 0, To: (fullBase + w.rows) * int64(time.Second)}}
		err := w.db.Read(context.Background(), q, func(c *model.Columns) error {
			for i, at := range c.At {
				row := at/int64(time.Second) - fullBase
				if c.Bits[i] != valueOf(id, row) {
					return fmt.Errorf("item %d, row %d: %x, expected %x", 1+id, row, c.Bits[i], valueOf(id, row))
				}
				found[row] = true
				oldest = min(oldest, row)
			}
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
		for row := range w.acked {
			if row >= oldest && !found[row] {
				w.t.Fatalf("item %d: row %d was acknowledged and is not there; the oldest is %d", 1+id, row, oldest)
			}
		}
		if len(found) == 0 {
			w.t.Fatalf("item %d has no values", 1+id)
		}
	}
}
