package dbengine

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/storagetest"
)

const pieceItems = 600

// flushedPair makes a closed pair of items that was flushed several times, so that an item's pages stand in several places.
func flushedPair(t *testing.T, fsys vfs.FS, direct DirectIO) (*DB, *pair) {
	t.Helper()
	o := tinyOptions()
	o.DirectIO, o.limits = direct, tinyLimits()
	o.limits.datafileBytes, o.limits.logBytes, o.limits.logFloorBytes, o.limits.tick = 4<<20, 16<<20, 8<<20, time.Hour
	o.limits.dirtyBytes = 4 << 20
	db := openTest(t, fsys, o)
	r := rand.New(rand.NewPCG(8, 9))
	for n := range 6 {
		for k := range 16 {
			b := &model.Batch{}
			for item := range model.ItemID(pieceItems) {
				b.AppendUint(1+item, storagetest.Base+int64(16*n+k)*1_000_000_000, r.Uint64()>>20)
			}
			if err := appendAll(db, b); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.ClosePair(context.Background()); err != nil {
		t.Fatal(err)
	}
	return db, db.pairs.all()[0]
}

// comparePages reads every page of a pair item by item and compares it with what queries get.
func comparePages(t *testing.T, db *DB, p *pair, x *extentReader) (pages, read int) {
	t.Helper()
	for item := model.ItemID(1); item <= pieceItems; item++ {
		_, err := db.indexedPages(p, item, func(ref *pageRef) {
			want, err := db.readPage(ref)
			if err != nil {
				t.Fatal(err)
			}
			got, err := x.passingPage(ref, func(n int) { read += n })
			if err != nil {
				t.Fatalf("item %d: %v", item, err)
			}
			if got.Item != want.Item || got.Count != want.Count || !bytes.Equal(got.Times, want.Times) || !bytes.Equal(got.Values, want.Values) {
				t.Fatalf("item %d: %+v, expected %+v", item, got, want)
			}
			pages++
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return pages, read
}

func TestExtentReader(t *testing.T) {
	for _, direct := range []DirectIO{DirectOff, DirectAuto} {
		failing := vfs.NewFailing(vfs.NewMem())
		db, p := flushedPair(t, failing, direct)
		// The smaller memory holds what is followed at once, and not the pair.
		for _, limit := range []int64{2 << 20, 64 << 20} {
			x, err := db.newExtentReader(p, limit)
			if err != nil || x == nil {
				t.Fatalf("%v, %v: a pair of %d bytes with %d extents cannot be read with %d", x, err, p.size, p.sequence, limit)
			}
			pages, read := comparePages(t, db, p, x)
			if pages < 6*pieceItems || int64(read) > 3*p.size {
				t.Errorf("%d pages, %d bytes read of a pair of %d; expected each extent about once", pages, read, p.size)
			}
			x.close()
		}
		if x, err := db.newExtentReader(p, 128<<10); err != nil || x != nil {
			t.Errorf("with too little memory: %v, %v; expected that the pair is read page by page", x, err)
		}
		// Reads of more than an extent fail, as if there were a bad place behind it: each is then read for itself.
		largest := 0
		x, err := db.newExtentReader(p, 64<<20)
		if err != nil {
			t.Fatal(err)
		}
		for i := range x.places {
			largest = max(largest, int(x.places[i].Length))
		}
		failing.SetRule(func(op vfs.Op, _ string, size int) error {
			if op == vfs.OpRead && size > largest+2*vfs.DirectBytes {
				return syscall.EIO
			}
			return nil
		})
		comparePages(t, db, p, x)
		failing.SetRule(func(op vfs.Op, _ string, _ int) error {
			if op == vfs.OpRead {
				return syscall.EIO
			}
			return nil
		})
		y, err := db.newExtentReader(p, 64<<20)
		if err == nil { // its index was in the cache
			y.close()
		} else if !errors.Is(err, syscall.EIO) {
			t.Error(err)
		}
		x.drop(x.pieces[0])
		if _, err := x.page(x.places[0].Offset, 0, func(int) error { return nil }); !errors.Is(err, syscall.EIO) {
			t.Errorf("a read that fails: %v", err)
		}
		failing.SetRule(nil)
		if _, err := x.page(x.places[0].Offset, 1<<20, func(int) error { return nil }); !errors.Is(err, extent.ErrExtent) {
			t.Errorf("a page that is not there: %v", err)
		}
		if _, err := x.page(1, 0, func(int) error { return nil }); err == nil {
			t.Error("an extent that is not there was read")
		}
		x.close()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDB_direct reads facts about direct I/O: that it is used where it can be, and not where not.
func TestDB_direct(t *testing.T) {
	for _, c := range []struct {
		setting   DirectIO
		possible  bool
		active    bool
		mustWrite bool
	}{{DirectAuto, true, true, true}, {DirectAll, true, true, true}, {DirectOff, true, false, false}, {DirectAuto, false, false, false}} {
		fsys := vfs.NewMem()
		fsys.SetDirect(c.possible)
		db, _ := flushedPair(t, fsys, c.setting)
		if err := db.buildTiers(context.Background()); err != nil {
			t.Fatal(err)
		}
		done, err := db.Recompress(context.Background(), everything("none"))
		if err != nil || done.WrittenPairs == 0 {
			t.Fatalf("%+v, %v", done, err)
		}
		s := db.Direct()
		if s.Active != c.active || (s.WrittenBytes > 0) != c.mustWrite || (s.Reason != "") != (!c.possible) || s.BufferBytes > s.BufferLimitBytes {
			t.Errorf("%v, possible %v: %+v", c.setting, c.possible, s)
		}
		if got := len(storagetest.Collect(t, db, storagetest.All(7))); got != 96 {
			t.Errorf("%v: %d values, expected 96", c.setting, got)
		}
		if err := errors.Join(db.Close(), noDamage(fsys)); err != nil {
			t.Error(err)
		}
		info, err := Info(fsys, "/engine", nil)
		if err != nil || (info.DirectIO == "yes") != c.possible {
			t.Errorf("%v, possible %v: %q, %v", c.setting, c.possible, info.DirectIO, err)
		}
	}
	for _, text := range []string{"auto", "off", "all"} {
		if d, err := ParseDirectIO(text); err != nil || d.String() != text {
			t.Errorf("%s is read as %v, %v", text, d, err)
		}
	}
	if _, err := ParseDirectIO("on"); err == nil {
		t.Error("on was taken")
	}
}

// TestDB_directPadding looks at a datafile that grows directly: it ends with the zeros of a block, which a check takes for what they are, counts for no more than it is
// charged, and ends with its last extent when it was closed and after a crash.
func TestDB_directPadding(t *testing.T) {
	o := tinyOptions()
	o.DirectIO = DirectAuto
	fsys := vfs.NewMem()
	db := openTest(t, fsys, o)
	b := &model.Batch{}
	for n := range int64(20) {
		b.AppendUint(1, storagetest.Base+n*1_000_000_000, uint64(n*n)<<30)
	}
	if err := errors.Join(appendAll(db, b), db.Flush(context.Background())); err != nil {
		t.Fatal(err)
	}
	p := db.pairs.open
	size := func(fsys *vfs.Mem) int64 {
		info, err := fsys.Stat("/engine/" + p.id.Name())
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if got := size(fsys); got%vfs.DirectBytes != 0 || got == p.size {
		t.Errorf("while it grows the file has %d bytes, %d of them extents; expected whole blocks", got, p.size)
	}
	crashed := fsys.Clone()
	if findings, err := Check(crashed, "/engine", nil); err != nil || len(findings) > 0 {
		t.Errorf("after a crash: %v, %v", findings, err)
	}
	if used, counted := diskBytes(t, fsys), db.space.usedBytes(); used > counted {
		t.Errorf("files take %d bytes, %d are counted", used, counted)
	}
	want := p.size
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := size(fsys); got != want {
		t.Errorf("after the end the file has %d bytes, expected %d", got, want)
	}
	again := openTest(t, crashed, o)
	if got := size(crashed); got != want {
		t.Errorf("after a start the file has %d bytes, expected %d", got, want)
	}
	if used, counted := diskBytes(t, crashed), again.space.usedBytes(); used > counted {
		t.Errorf("after a start files take %d bytes, %d are counted", used, counted)
	}
	if err := errors.Join(again.Close(), noDamage(crashed)); err != nil {
		t.Error(err)
	}
}
