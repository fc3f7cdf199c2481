package dbengine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/storagetest"
)

// killDir is the variable by which the child of TestDB_kill knows that it is one.
const killDir = "TIDEMARK_KILL_DIR"

// killItems is how many values of one number a batch has.
const killItems = 50

// TestDB_kill kills a process that writes, again and again, and looks for what it had acknowledged.
func TestDB_kill(t *testing.T) {
	if dir := os.Getenv(killDir); dir != "" {
		writeUntilKilled(t, dir)
		return
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for cycle := range count(t, "TIDEMARK_KILLS", 15) {
		acked := storagetest.KillOnce(t, storagetest.Writer{Test: "TestDB_kill", Env: []string{killDir + "=" + dir}, Lines: 150}, r)
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
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func writeUntilKilled(t *testing.T, dir string) {
	db, err := Open(context.Background(), vfs.OS{}, dir, tinyOptions())
	if err != nil {
		t.Fatal(err)
	}
	q := storagetest.All(killItems)
	q.Newest = 1
	n := uint64(0)
	if last := storagetest.Collect(t, db, q); len(last) > 0 {
		n = last[0].Bits
	}
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
