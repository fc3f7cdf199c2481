package dbengine

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
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
		acked := killOnce(t, dir, r)
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

// killOnce starts a writer, kills it after a while, and returns the last number that it said was acknowledged.
func killOnce(t *testing.T, dir string, r *rand.Rand) int {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestDB_kill$")
	child.Env = append(os.Environ(), killDir+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	acked, lines, enough := 0, 0, 1+r.IntN(150)
	for in := bufio.NewScanner(out); in.Scan(); lines++ {
		if _, err := fmt.Sscanf(in.Text(), "acked %d", &acked); err != nil {
			t.Fatalf("the child said %q", in.Text())
		}
		if lines == enough {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = child.Wait() // it was killed
	if lines <= enough {
		t.Fatalf("the child ended by itself after %d lines", lines)
	}
	return acked
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
