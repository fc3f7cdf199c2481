package dbengine

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/storagetest"
)

// TestRepair damages datafiles and journalfiles in many ways: afterwards Check finds nothing, what was intact is
// served, and the files as they were are in the quarantine.
func TestRepair(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for round := range 40 {
		fsys, dir := vfs.NewMem(), "/engine"
		want := map[model.ItemID]map[int64]uint64{}
		db, err := Open(context.Background(), fsys, dir, tinyOptions())
		if err != nil {
			t.Fatal(err)
		}
		for k := range 30 {
			b := &model.Batch{}
			for item := model.ItemID(1); item <= 5; item++ {
				at, bits := storagetest.Base+int64(k)*60_000_000_000, r.Uint64()>>40
				b.AppendUint(item, at, bits)
				b.AppendString(item+100, at, model.Text, "text")
				if want[item] == nil {
					want[item] = map[int64]uint64{}
				}
				want[item][at] = bits
			}
			if err := appendAll(db, b); err != nil {
				t.Fatal(err)
			}
			if k%7 == 6 {
				if err := db.Flush(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		flipBits(t, fsys, dir, r, round%4)
		done, err := Repair(context.Background(), fsys, dir, nil)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if findings, err := Check(fsys, dir, nil); err != nil || len(findings) != 0 {
			t.Fatalf("round %d: after %+v: %v %v", round, done, findings, err)
		}
		if len(done.Rewritten) > 0 && done.Quarantined == 0 {
			t.Errorf("round %d: nothing was set aside: %+v", round, done)
		}
		if db, err = Open(context.Background(), fsys, dir, tinyOptions()); err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, v := range storagetest.Collect(t, db, storagetest.All(1, 2, 3, 4, 5)) {
			if bits, ok := want[v.Item][v.At]; !ok || bits != v.Bits {
				t.Errorf("round %d: item %d has %d at %d, expected %d", round, v.Item, v.Bits, v.At, bits)
			}
			found++
		}
		if lost := done.LostExtents > 0 || done.LostPages > 0; !lost && found != 150 || found == 0 {
			t.Errorf("round %d: %d values, expected 150: %+v", round, found, done)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// flipBits flips n bits of pairs, and every other time the first one in a journalfile.
func flipBits(t *testing.T, fsys vfs.FS, dir string, r *rand.Rand, n int) {
	t.Helper()
	names, err := fsys.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var pairs []string
	for _, name := range names {
		if _, _, ok := datafile.ParseName(name); ok {
			pairs = append(pairs, name)
		}
	}
	for range n {
		f, err := fsys.OpenReadWrite(filepath.Join(dir, pairs[r.IntN(len(pairs))]))
		if err != nil {
			t.Fatal(err)
		}
		size, err := f.Size()
		if err != nil {
			t.Fatal(err)
		}
		at := 64 + r.Int64N(size-64) // a damaged header sets the whole file aside
		var b [1]byte
		if _, err := f.ReadAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 1 << r.IntN(8)
		if _, err := f.WriteAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCheck_noJournalfile ends between the two files of a pair: that is no damage, and the next start loses nothing.
func TestCheck_noJournalfile(t *testing.T) {
	ctx, fsys := context.Background(), vfs.NewMem()
	db := openTest(t, fsys, tinyOptions())
	b := &model.Batch{}
	for n := range int64(30) {
		b.AppendUint(1, storagetest.Base+n*1_000_000_000, uint64(n))
	}
	if err := errors.Join(appendAll(db, b), db.Flush(ctx)); err != nil {
		t.Fatal(err)
	}
	db.Release(db.LastLSN())
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	id := datafile.ID{Generation: 1, Number: 1}
	if err := fsys.Remove(filepath.Join("/engine", id.JournalName())); err != nil {
		t.Fatal(err)
	}
	findings, err := Check(fsys, "/engine", nil)
	if err != nil || len(findings) == 0 || findings[0].File != id.Name() {
		t.Errorf("findings %v %v, expected a note on %s", findings, err, id.Name())
	}
	for _, f := range findings {
		if f.Damage {
			t.Errorf("%s, expected notes only", f)
		}
	}
	db = openTest(t, fsys, tinyOptions())
	if got := storagetest.Collect(t, db, storagetest.All(1)); len(got) != 30 {
		t.Errorf("%d values after the next start, expected 30", len(got))
	}
	if err := errors.Join(db.Close(), noDamage(fsys)); err != nil {
		t.Error(err)
	}
}
