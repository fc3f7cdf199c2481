package dbengine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/storagetest"
)

// descriptorsDir is the variable by which the child of TestDB_descriptors knows that it is one.
const descriptorsDir = "TIDEMARK_DESCRIPTORS_DIR"

// TestDB_descriptors runs the engine with many pairs in a process that may have 64 descriptors.
func TestDB_descriptors(t *testing.T) {
	if dir := os.Getenv(descriptorsDir); dir != "" {
		if err := useFewDescriptors(dir); err != nil {
			t.Fatal(err)
		}
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestDB_descriptors$")
	child.Env = append(os.Environ(), descriptorsDir+"="+t.TempDir())
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func useFewDescriptors(dir string) error {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 64, Max: 64}); err != nil {
		return err
	}
	o := tinyOptions()
	o.limits.datafileBytes = 1 << 10
	const batches, items = 120, 20
	db, err := Open(context.Background(), vfs.OS{}, dir, o)
	if err != nil {
		return err
	}
	for k := range batches {
		b := &model.Batch{}
		for item := range items {
			b.AppendUint(model.ItemID(item+1), storagetest.Base+int64(k)*1_000_000_000, uint64(k*k*item)*0x9E3779B97F4A7C15)
		}
		if err := appendAll(db, b); err != nil {
			return err
		}
		if err := db.Flush(context.Background()); err != nil {
			return err
		}
	}
	for range 2 {
		if n := len(db.pairs.all()); n < 100 {
			return fmt.Errorf("%d pairs, expected 100 or more", n)
		}
		if err := readEverything(db, batches, items); err != nil {
			return err
		}
		if err := db.Close(); err != nil {
			return err
		}
		if open, err := os.ReadDir("/proc/self/fd"); err == nil && len(open) > 20 {
			return fmt.Errorf("%d descriptors are open behind Close", len(open))
		}
		if db, err = Open(context.Background(), vfs.OS{}, dir, o); err != nil {
			return err
		}
	}
	return db.Close()
}

// readEverything reads all items at once.
func readEverything(db *DB, batches, items int) error {
	var group sync.WaitGroup
	errs := make([]error, items)
	for item := range items {
		group.Go(func() {
			n := 0
			errs[item] = db.Read(context.Background(), storagetest.All(model.ItemID(item+1)), func(c *model.Columns) error {
				for _, bits := range c.Bits {
					if want := uint64(n*n*item) * 0x9E3779B97F4A7C15; bits != want {
						return fmt.Errorf("value %d of item %d is %d, expected %d", n, item+1, bits, want)
					}
					n++
				}
				return nil
			})
			if errs[item] == nil && n != batches {
				errs[item] = fmt.Errorf("item %d has %d values, expected %d", item+1, n, batches)
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
