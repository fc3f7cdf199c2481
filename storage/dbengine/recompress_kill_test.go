package dbengine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/storagetest"
)

// recompressDir is the variable by which the child of TestDB_recompressKill knows that it is one.
const recompressDir = "TIDEMARK_RECOMPRESS_DIR"

// TestDB_recompressKill kills a process that writes values, reads them and writes pairs anew, again and again.
func TestDB_recompressKill(t *testing.T) {
	if dir := os.Getenv(recompressDir); dir != "" {
		recompressUntilKilled(t, dir)
		return
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	generations := 0
	for cycle := range count(t, "TIDEMARK_RECOMPRESS_KILLS", 20) {
		acked := storagetest.KillOnce(t, storagetest.Writer{Test: "TestDB_recompressKill", Env: []string{recompressDir + "=" + dir}, Lines: 60, After: 3 * time.Millisecond}, r)
		db, err := Open(context.Background(), vfs.OS{}, dir, tinyOptions())
		if err != nil {
			t.Fatal(err)
		}
		for item := model.ItemID(1); item <= killItems; item++ {
			values := storagetest.Collect(t, db, storagetest.All(item))
			if len(values) < acked {
				t.Fatalf("cycle %d: item %d has %d values, and %d were acknowledged", cycle, item, len(values), acked)
			}
			for i, v := range values {
				if v.Bits != uint64(i+1) || v.At != storagetest.Base+int64(i+1)*1_000_000_000 {
					t.Fatalf("cycle %d: value %d is %v", cycle, i, v)
				}
			}
		}
		for _, p := range db.pairs.all() {
			generations = max(generations, int(p.id.Generation))
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*"+tempSuffix)); err != nil || len(left) > 0 {
			t.Fatalf("cycle %d: %q were left behind, %v", cycle, left, err)
		}
	}
	if generations < 2 && !recompresses(t, dir) {
		t.Error("no pair can be written anew")
	}
}

// recompresses writes pairs anew after all kills: on a busy machine every child may have been killed before it came so far.
func recompresses(t *testing.T, dir string) bool {
	t.Helper()
	ctx := context.Background()
	db, err := Open(ctx, vfs.OS{}, dir, tinyOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.ClosePair(ctx); err != nil {
		t.Fatal(err)
	}
	if err := db.buildTiers(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Recompress(ctx, everything("zstd:1")); err != nil {
		t.Fatal(err)
	}
	for _, p := range db.pairs.all() {
		if p.id.Generation >= 2 {
			return true
		}
	}
	return false
}

func recompressUntilKilled(t *testing.T, dir string) {
	ctx := context.Background()
	db, err := Open(ctx, vfs.OS{}, dir, tinyOptions())
	if err != nil {
		t.Fatal(err)
	}
	q := storagetest.All(killItems)
	q.Newest = 1
	n := uint64(0)
	if last := storagetest.Collect(t, db, q); len(last) > 0 {
		n = last[0].Bits
	}
	go func() {
		for {
			if err := db.buildTiers(ctx); err != nil {
				panic(err)
			}
			o := everything("zstd:1")
			o.MergeBytes = MergeAuto
			if _, err := db.Recompress(ctx, o); err != nil {
				panic(err)
			}
		}
	}()
	go func() {
		for {
			_ = db.Read(ctx, storagetest.All(1, 2, 3), func(*model.Columns) error { return nil })
		}
	}()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		n++
		b := &model.Batch{}
		for item := model.ItemID(1); item <= killItems; item++ {
			b.AppendUint(item, storagetest.Base+int64(n)*1_000_000_000, n)
		}
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("acked %d\n", n)
	}
}
