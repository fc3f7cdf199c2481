package dbengine

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/translog"
	"tidemark/storage/storagetest"
)

// reference makes a folder with closed pairs, an open one, marks and a log, and says what was put into it. The clone is an
// older copy of the folder.
func reference(t testing.TB, seed uint64) (fsys, older *vfs.Mem, h *history) {
	t.Helper()
	fsys = vfs.NewMem()
	h = newHistory(rand.New(rand.NewPCG(seed, 9)))
	h.sent[payload(crashItems[0], model.Uint, 1, "")] = storagetest.Now() // what survivors appends
	db, err := Open(context.Background(), fsys, "/engine", tinyOptions())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 150 {
		b := h.batch()
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
		h.ack(b)
		if i%30 == 29 {
			db.Release(db.LastLSN())
			if err := db.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if i == 80 {
			older = fsys.Clone()
		}
	}
	o := everything("zstd:1") // the first pairs become one
	o.OlderThan, o.MergeBytes = time.Duration(storagetest.Now()-newestOf(db, 3)), 1<<20
	if err := db.buildTiers(context.Background()); err != nil {
		t.Fatal(err)
	}
	if done, err := db.Recompress(context.Background(), o); err != nil || done.JoinedPairs == 0 {
		t.Fatalf("no pairs were joined: %+v, %v", done, err)
	}
	b := h.batch()
	if err := appendAll(db, b); err != nil {
		t.Fatal(err)
	}
	h.ack(b)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return fsys, older, h
}

// newestOf returns the newest time in the first closed pairs of values.
func newestOf(db *DB, n int) int64 {
	newest := int64(minTime)
	for _, p := range db.pairs.all() {
		if n > 0 && p.tier == header.Raw && p.index.Load() != nil {
			newest, n = max(newest, p.newestValue), n-1
		}
	}
	return newest
}

func dataNames(t testing.TB, fsys *vfs.Mem) []string {
	t.Helper()
	names, err := fsys.List("/engine")
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, name := range names {
		if name != lockName && !translog.IsSpare(name) {
			kept = append(kept, name)
		}
	}
	return kept
}

func content(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	f, err := fsys.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	size, _ := f.Size()
	b := make([]byte, size)
	_, _ = f.ReadAt(b, 0)
	return b
}

func replace(t testing.TB, fsys vfs.FS, name string, b []byte) {
	t.Helper()
	if err := fsys.Remove(name); err != nil {
		t.Fatal(err)
	}
	f, err := fsys.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// survivors opens a damaged folder and returns the values that it serves. None may be one that was never put in.
func survivors(t testing.TB, fsys *vfs.Mem, h *history) (map[string]int64, *spy) {
	t.Helper()
	said := &spy{}
	o := tinyOptions()
	o.Logger = slog.New(said)
	db, err := Open(context.Background(), fsys, "/engine", o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	found := map[string]int64{}
	err = db.Read(context.Background(), storagetest.All(crashItems...), func(c *model.Columns) error {
		for i, at := range c.At {
			text := ""
			if c.Type.InArena() {
				text = string(c.Bytes(i))
			}
			key := payload(c.Item, c.Type, c.Bits[i], text)
			if sent, ok := h.sent[key]; !ok || at < sent || at > sent+1000 {
				return fmt.Errorf("%s at %d was never sent", key, at)
			}
			if _, twice := found[key]; twice {
				return fmt.Errorf("%s is there twice", key)
			}
			found[key] = at
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(found, payload(crashItems[0], model.Uint, 1, ""))
	b := &model.Batch{}
	b.AppendUint(crashItems[0], storagetest.Now(), 1)
	if err := appendAll(db, b); err != nil {
		t.Fatalf("append: %v", err)
	}
	if err := db.Flush(context.Background()); err != nil {
		t.Fatalf("flush: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return found, said
}

// TestDB_files puts every file into every wrong state.
func TestDB_files(t *testing.T) {
	fsys, older, h := reference(t, 1)
	whole, _ := survivors(t, fsys.Clone(), h)
	if len(whole) != len(h.acked) {
		t.Fatalf("%d values in the reference, expected %d", len(whole), len(h.acked))
	}
	for _, name := range dataNames(t, fsys) {
		full := path.Join("/engine", name)
		b := content(t, fsys, full)
		states := map[string][]byte{
			"absent": nil, "empty": {}, "half": b[:len(b)/2], "last byte cut": b[:len(b)-1],
			"foreign": bytes.Repeat([]byte("foreign\n"), len(b)/8), "older": content(t, older, full),
			"zeros": make([]byte, len(b)),
		}
		for state, damaged := range states {
			if state == "older" && damaged == nil {
				continue
			}
			clone := fsys.Clone()
			if state == "absent" {
				if err := clone.Remove(full); err != nil {
					t.Fatal(err)
				}
			} else {
				replace(t, clone, full, damaged)
			}
			found, said := survivors(t, clone, h)
			_, isJournal, _ := datafile.ParseName(name)
			if (isJournal || name == marksName) && len(found) != len(whole) {
				t.Errorf("%s %s: %d values, expected all %d: the values are in other files\n%q", name, state, len(found), len(whole), said.lines)
			}
			if lost := len(whole) - len(found); lost > len(whole)*2/3 {
				t.Errorf("%s %s: %d of %d values are lost", name, state, lost, len(whole))
			}
			again, _ := survivors(t, clone, h)
			if len(again) < len(found) {
				t.Errorf("%s %s: %d values at the second start, %d at the first", name, state, len(again), len(found))
			}
		}
	}
}

// TestDB_bitFlips flips single bits all over a folder: Check sees each of them, or it changes nothing; the engine starts and
// serves nothing wrong.
func TestDB_bitFlips(t *testing.T) {
	fsys, _, h := reference(t, 2)
	if findings, err := Check(fsys, "/engine", nil); err != nil || len(findings) > 0 {
		t.Fatalf("the reference: %v %v", findings, err)
	}
	whole, _ := survivors(t, fsys.Clone(), h)
	names := dataNames(t, fsys)
	r := rand.New(rand.NewPCG(3, 3))
	missed := 0
	for k := range count(t, "TIDEMARK_BIT_FLIPS", 400) {
		name := path.Join("/engine", names[k%len(names)])
		b := content(t, fsys, name)
		used := len(bytes.TrimRight(b, "\x00"))
		at, bit := r.IntN(used), r.IntN(8)
		b[at] ^= 1 << bit
		clone := fsys.Clone()
		replace(t, clone, name, b)
		findings, err := Check(clone, "/engine", nil)
		if err != nil {
			t.Fatal(err)
		}
		found, _ := survivors(t, clone, h)
		if len(findings) == 0 && len(found) != len(whole) {
			missed++
			t.Errorf("%s byte %d bit %d: nothing found, and %d of %d values are served", name, at, bit, len(found), len(whole))
		}
		if len(findings) == 0 && !strings.Contains(name, "log-") {
			t.Errorf("%s byte %d bit %d: not found", name, at, bit)
		}
	}
}

// TestDB_newerVersion refuses a folder of a newer version and touches nothing.
func TestDB_newerVersion(t *testing.T) {
	fsys, _, _ := reference(t, 4)
	for _, name := range dataNames(t, fsys) {
		for _, at := range []int{4, 12} { // version, incompatible features
			clone := fsys.Clone()
			full := path.Join("/engine", name)
			b := content(t, clone, full)
			b[at] = 9
			copy(b[60:], checksumOf(b[:60]))
			replace(t, clone, full, b)
			before := clone.Clone()
			if _, err := Open(context.Background(), clone, "/engine", tinyOptions()); err == nil || !strings.Contains(err.Error(), header.ErrNewer.Error()) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s byte %d: %v, expected a refusal that names the file", name, at, err)
			}
			for _, other := range dataNames(t, before) {
				if !bytes.Equal(content(t, before, path.Join("/engine", other)), content(t, clone, path.Join("/engine", other))) {
					t.Errorf("%s byte %d: %s was changed", name, at, other)
				}
			}
		}
	}
}
