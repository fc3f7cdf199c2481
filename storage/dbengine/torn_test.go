package dbengine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/storage/dbengine/header"
)

// contents returns the engine's files.
func contents(t *testing.T, fsys *vfs.Mem) map[string][]byte {
	t.Helper()
	names, err := fsys.List("/engine")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		f, err := fsys.Open("/engine/" + name)
		if err != nil {
			continue // a folder
		}
		size, err := f.Size()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, size)
		if n, err := f.ReadAt(b, 0); n < len(b) || err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		all[name] = b
	}
	return all
}

// tear returns a copy of after in which a sector of a file holds what it held before, or zeros where the file was shorter.
func tear(t *testing.T, after *vfs.Mem, name string, before []byte, at, unit int) *vfs.Mem {
	t.Helper()
	clone := after.Clone()
	f, err := clone.OpenReadWrite("/engine/" + name)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	old := make([]byte, min(unit, int(size)-at))
	if at < len(before) {
		copy(old, before[at:])
	}
	_, err = f.WriteAt(old, int64(at))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return clone
}

// eachTear calls fn for each sector that differs between two moments, in files that fit, torn away on its own.
func eachTear(t *testing.T, before map[string][]byte, after *vfs.Mem, fits func(name string) bool, fn func(torn *vfs.Mem) error) int {
	t.Helper()
	count := 0
	for name, now := range contents(t, after) {
		if !fits(name) {
			continue
		}
		for _, unit := range []int{512, 4096} {
			for at := 0; at < len(now); at += unit {
				end := min(at+unit, len(now))
				old := make([]byte, end-at)
				if at < len(before[name]) {
					copy(old, before[name][at:])
				}
				if bytes.Equal(old, now[at:end]) {
					continue
				}
				count++
				if err := fn(tear(t, after, name, before[name], at, unit)); err != nil {
					t.Fatalf("%s without the %d bytes at %d: %v", name, unit, at, err)
				}
			}
		}
	}
	return count
}

// TestDB_tornWrites tears each sector of 512 and of 4096 bytes on its own out of what a flush wrote, and out of the last record of the log: what
// is missing is seen and taken from the log, so that nothing need be written twice.
func TestDB_tornWrites(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	h := newHistory(rand.New(rand.NewPCG(5, 7)))
	fsys := vfs.NewMem()
	o := tinyOptions()
	o.limits.datafileBytes, o.limits.dirtyBytes = 1<<20, 1<<20 // nothing is written but by Flush
	db := openTest(t, fsys, o)
	write := func() {
		b := h.batch()
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
		h.ack(b)
	}
	write()
	if err := db.Flush(context.Background()); err != nil { // the headers of the pair are synced before anything else
		t.Fatal(err)
	}
	for range 20 {
		write()
	}
	before := contents(t, fsys)
	if err := db.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	p := h.promises()
	named := func(want header.Magic) func(string) bool {
		return func(name string) bool {
			magic, known := magicOf(name)
			return known && magic == want
		}
	}
	check := func(torn *vfs.Mem) error { return checkClone(torn, copyPromises(p), r) }
	// The datafile is synced before the journalfile is written, so what is torn out of it is not in the journalfile yet.
	unnamed := fsys.Clone()
	for name, old := range before {
		if named(header.Journalfile)(name) {
			if err := errors.Join(unnamed.Remove("/engine/"+name), writeFile(unnamed, "/engine/"+name, old)); err != nil {
				t.Fatal(err)
			}
		}
	}
	flushed := eachTear(t, before, unnamed, named(header.Datafile), check)
	flushed += eachTear(t, before, fsys.Clone(), named(header.Journalfile), check)

	before, p = contents(t, fsys), h.promises()
	write()
	p.sent = h.promises().sent
	logged := eachTear(t, before, fsys.Clone(), named(header.Log), check)
	if flushed < 10 || logged < 2 {
		t.Errorf("%d sectors torn out of a flush, %d out of the log", flushed, logged)
	}
	t.Logf("%d and %d sectors torn", flushed, logged)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// copyPromises copies, since checkClone adds what it writes itself.
func copyPromises(p promises) promises {
	c := promises{sent: map[string]int64{}, acked: map[string]int64{}}
	for k, v := range p.sent {
		c.sent[k] = v
	}
	for k, v := range p.acked {
		c.acked[k] = v
	}
	return c
}
