package dbengine

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/storagetest"
)

// rhythms fills a store with series that repeat what they do every few values, if period is not zero, and returns it with everything summed up.
func rhythms(t *testing.T, fsys vfs.FS, o Options, items model.ItemID, period int) *DB {
	t.Helper()
	db := openTest(t, fsys, o)
	r := rand.New(rand.NewPCG(1, 2))
	growth := make([]uint64, items+1)
	for n := range mergeTimes {
		b := &model.Batch{}
		at := storagetest.Base + int64(n)*int64(time.Minute)
		for item := model.ItemID(1); item <= items; item++ {
			x := r.IntN(1000)
			if period > 0 {
				x = n % period * (n % period) * int(item) * 7919 % 997
			}
			switch growth[item] += uint64(x); item % 4 {
			case 0:
				b.AppendUint(item, at, uint64(x))
			case 1:
				b.AppendFloat(item, at, float64(x)/10)
			case 2:
				b.AppendUint(item, at, growth[item])
			case 3:
				b.AppendFloat(item, at, float64(x)*0.3)
			}
		}
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
		if n%30 == 29 {
			db.Release(db.LastLSN())
			if err := errors.Join(db.ClosePair(context.Background()), db.buildTiers(context.Background())); err != nil {
				t.Fatal(err)
			}
		}
	}
	return db
}

// repeatsSaid counts the datafiles whose headers say that columns repeat.
func repeatsSaid(t *testing.T, db *DB) (n int) {
	t.Helper()
	for _, p := range db.pairs.all() {
		h, err := datafile.ReadHeader(db.fs, db.dir, p.id)
		if err != nil {
			t.Fatal(err)
		}
		if h.Incompatible&header.Repeats != 0 {
			n++
		}
	}
	return n
}

// TestRecompress_repeats writes pairs anew whose series repeat: answers stay the same, also after power cuts and after opening again, and the
// datafiles say what they use; those of other series do not.
func TestRecompress_repeats(t *testing.T) {
	for _, direct := range []DirectIO{DirectOff, DirectAuto} {
		o := tinyOptions()
		o.DirectIO = direct
		fsys := vfs.NewMem()
		db := rhythms(t, fsys, o, 8, 13)
		want := said(t, db)
		if n := repeatsSaid(t, db); n != 0 {
			t.Errorf("%d datafiles repeat before they are written anew", n)
		}
		r := rand.New(rand.NewPCG(1, 3))
		fsys.OnSync(func() {
			clone := fsys.CrashClone(r)
			again := openTest(t, clone, o)
			if got := said(t, again); got != want {
				t.Errorf("after a power cut: %s", firstDifference(got, want))
			}
			if err := errors.Join(again.Close(), noDamage(clone)); err != nil {
				t.Error(err)
			}
		})
		done := mergeRuns(t, db, 1<<20)
		fsys.OnSync(nil)
		if n := repeatsSaid(t, db); n != done.JoinedPairs || n == 0 {
			t.Errorf("%d datafiles repeat: %+v", n, done)
		}
		if got := said(t, db); got != want {
			t.Errorf("answers differ: %s", firstDifference(got, want))
		}
		if err := errors.Join(db.Close(), noDamage(fsys)); err != nil {
			t.Fatal(err)
		}
		db = openTest(t, fsys, o)
		if got := said(t, db); got != want {
			t.Errorf("after opening: %s", firstDifference(got, want))
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	fsys := vfs.NewMem()
	db := rhythms(t, fsys, tinyOptions(), 8, 0)
	if done := mergeRuns(t, db, 1<<20); done.JoinedPairs == 0 || repeatsSaid(t, db) != 0 {
		t.Errorf("%d datafiles of series that do not repeat say that they do: %+v", repeatsSaid(t, db), done)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// repeatGolden is a folder with columns that repeat.
var repeatGolden = goldenFolder{
	name: "testdata/v6", says: []string{"  with columns that repeat"}, mergeBytes: 1 << 20,
	write: func(t *testing.T, fsys *vfs.Mem) *DB { return rhythms(t, fsys, tinyOptions(), mergeItems, 13) },
}

// TestRecompress_repeatGolden reads a folder that is never written again.
func TestRecompress_repeatGolden(t *testing.T) {
	repeatGolden.read(t, func(db *DB) {
		if n := repeatsSaid(t, db); n == 0 {
			t.Error("no datafile says that it has columns that repeat")
		}
	})
}
