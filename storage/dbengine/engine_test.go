package dbengine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/storagetest"
)

const testBase = int64(1_700_000_000_000_000_000)

// smallLimits make files and pages small, so that tests see them change.
func smallLimits() *limits {
	return &limits{
		segmentBytes: 1 << 20, logBytes: 16 << 20, logFloorBytes: 4 << 20, datafileBytes: 64 << 10,
		pageValues: 64, pageBytes: 1024, dirtyBytes: 32 << 10, dirtyAge: time.Hour, tick: time.Second, idleAge: time.Hour,
	}
}

func smallOptions() Options {
	return Options{DiskSpaceBytes: 64 << 20, PageCacheBytes: 1 << 20, limits: smallLimits(), Now: func() int64 { return testBase + int64(24*time.Hour) }}
}

func openTest(t testing.TB, fsys vfs.FS, o Options) *DB {
	t.Helper()
	db, err := Open(context.Background(), fsys, "/engine", o)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func appendWait(t testing.TB, db *DB, b *model.Batch) {
	t.Helper()
	c := model.NewCompletion()
	b.Done = append(b.Done, c)
	if _, err := db.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
}

func TestDB_keepsValuesAcrossRestart(t *testing.T) {
	fsys := vfs.NewMem()
	want := map[string]bool{}
	for round := range 5 {
		db := openTest(t, fsys, smallOptions())
		for k := range 40 {
			b := model.NewBatch()
			at := testBase + int64(round*40+k)*int64(time.Second)
			for item := model.ItemID(1); item <= 20; item++ {
				b.AppendFloat(item, at, float64(item)*1.5+float64(k))
				b.AppendUint(item+100, at, uint64(item)<<40+uint64(k))
				b.AppendString(item+200, at, model.Text, fmt.Sprint("line ", k, " of ", item))
			}
			for i := range b.Len() {
				want[render(b.Items[i], b.Types[i], b.At[i], b.Bits[i], b.Arena)] = true
			}
			appendWait(t, db, b)
		}
		if round%2 == 1 {
			if err := db.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		got := readAllItems(t, db)
		if len(got) != len(want) {
			t.Errorf("round %d: %d values before closing, expected %d", round, len(got), len(want))
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = openTest(t, fsys, smallOptions())
		got = readAllItems(t, db)
		for v := range want {
			if !got[v] {
				t.Fatalf("round %d: %s is missing after the restart", round, v)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("round %d: %d values after the restart, expected %d", round, len(got), len(want))
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func render(item model.ItemID, vt model.ValueType, at int64, bits uint64, arena []byte) string {
	if vt.InArena() {
		return fmt.Sprintf("%d %v %d %q", item, vt, at, model.SpanBytes(arena, bits))
	}
	return fmt.Sprintf("%d %v %d %x", item, vt, at, bits)
}

func readAllItems(t testing.TB, db *DB) map[string]bool {
	t.Helper()
	got := map[string]bool{}
	q := storage.Query{Range: model.TimeRange{From: math.MinInt64, To: math.MaxInt64}}
	for i := model.ItemID(1); i < 300; i++ {
		q.Items = append(q.Items, i)
	}
	err := db.Read(context.Background(), q, func(c *model.Columns) error {
		for i := range c.At {
			v := render(c.Item, c.Type, c.At[i], c.Bits[i], c.Arena)
			if got[v] {
				t.Errorf("%s is there twice", v)
			}
			got[v] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestDB_relaxed(t *testing.T) {
	fsys := vfs.NewMem()
	o := smallOptions()
	o.Durability = Relaxed
	db := openTest(t, fsys, o)
	for k := range 200 {
		b := &model.Batch{}
		b.AppendUint(1, testBase+int64(k), uint64(k))
		appendWait(t, db, b)
	}
	killed := fsys.Clone() // a killed process loses nothing that was written
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string]*vfs.Mem{"killed": killed, "closed": fsys.CrashClone(rand.New(rand.NewPCG(1, 1)))} {
		db := openTest(t, files, o)
		if got := readAllItems(t, db); len(got) != 200 {
			t.Errorf("%s: %d values, expected 200", name, len(got))
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpen_refusesImpossibleOptions(t *testing.T) {
	for _, o := range []Options{
		{DiskSpaceBytes: 1 << 20},
		{PageCacheBytes: 1 << 20},
		{GroupDelay: time.Second},
		{GroupDelay: -1},
		{Classes: make([]Class, MaxClasses+1)},
		{Classes: []Class{{History: -1}}},
	} {
		fsys := vfs.NewMem()
		if db, err := Open(context.Background(), fsys, "/engine", o); err == nil {
			t.Errorf("%+v was taken", o)
			db.Close()
		}
		if names, err := fsys.List("/engine"); err == nil {
			t.Errorf("%+v: files were made: %q", o, names)
		}
	}
}

func TestOpen_locksTheFolder(t *testing.T) {
	fsys := vfs.NewMem()
	db := openTest(t, fsys, smallOptions())
	if _, err := Open(context.Background(), fsys, "/engine", smallOptions()); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("a second open: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDB_refusesBrokenBatches(t *testing.T) {
	db := openTest(t, vfs.NewMem(), smallOptions())
	for name, spoil := range map[string]func(b *model.Batch){
		"no item":        func(b *model.Batch) { b.AppendUint(0, testBase, 1) },
		"past the arena": func(b *model.Batch) { b.Append(1, testBase, model.Text, model.Span(3, 5)) },
		"unknown type":   func(b *model.Batch) { b.Append(1, testBase, 77, 0) },
		"long text":      func(b *model.Batch) { b.AppendBytes(1, testBase, model.Text, make([]byte, model.MaxTextBytes+1)) },
		"short column":   func(b *model.Batch) { b.At = b.At[:0] },
		"long mark":      func(b *model.Batch) { b.Marks = []model.Mark{{Key: strings.Repeat("k", 256)}} },
		"empty mark":     func(b *model.Batch) { b.Marks = []model.Mark{{}} },
	} {
		b := &model.Batch{}
		b.AppendUint(1, testBase, 1)
		spoil(b)
		c := model.NewCompletion()
		b.Done = append(b.Done, c)
		if _, err := db.Append(context.Background(), b); err == nil || len(b.Done) != 1 {
			t.Errorf("%s: %v, %d completions left", name, err, len(b.Done))
		}
	}
	if got := readAllItems(t, db); len(got) != 0 {
		t.Errorf("refused batches stored %v", got)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDB_prunes(t *testing.T) {
	o := smallOptions()
	var clock atomic.Int64 // the flusher reads it too
	clock.Store(testBase)
	o.Now = clock.Load
	o.Classes = []Class{{History: time.Hour}, {History: 2 * time.Hour}}
	db := openTest(t, vfs.NewMem(), o)
	for k := range 30 {
		now := clock.Load()
		b := &model.Batch{}
		for item := model.ItemID(1); item <= 250; item++ {
			for i := range 60 {
				b.AppendUint(item, now+int64(i)*int64(time.Second), uint64(item)*uint64(k*60+i)*7919)
			}
		}
		appendWait(t, db, b)
		if err := db.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		clock.Add(int64(10 * time.Minute))
	}
	now := clock.Load()
	used := db.Stats()
	freed, err := db.Prune(context.Background(), now)
	if err != nil || freed == 0 {
		t.Errorf("%d bytes freed of %d: %v", freed, used.DiskBytes, err)
	}
	s := db.Stats()
	if s.DiskBytes != used.DiskBytes-freed || s.From < now-int64(3*time.Hour) || s.From > now-int64(2*time.Hour) || s.Values > used.Values*6/10 {
		t.Errorf("stats after pruning %+v", s)
	}
	if err := db.SetClasses([]Class{{History: time.Hour}}); err == nil {
		t.Error("another number of classes was taken")
	}
	if err := db.SetClasses([]Class{{History: time.Hour}, {History: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	freed, err = db.Prune(context.Background(), now)
	if shorter := db.Stats(); err != nil || freed == 0 || shorter.From <= s.From || shorter.From < now-int64(2*time.Hour) {
		t.Errorf("with a shorter retention %d bytes were freed: %v; %+v", freed, err, shorter)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDB_ranges reads parts of pages whose times are one step apart, and of others.
func TestDB_ranges(t *testing.T) {
	o := smallOptions()
	db := openTest(t, vfs.NewMem(), o)
	const n = 200
	for item, step := range []int64{0, 10, 7, 1} {
		if item == 0 {
			continue
		}
		b := &model.Batch{}
		for k := range int64(n) {
			at := testBase + k*step
			if item == 2 {
				at += k * k // not linear
			}
			if item == 3 {
				b.AppendFloat(model.ItemID(item), at, float64(k)/4)
			} else {
				b.AppendUint(model.ItemID(item), at, uint64(k*k))
			}
		}
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
		if err := db.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		all := storagetest.Collect(t, db, storagetest.All(model.ItemID(item)))
		if len(all) != n {
			t.Fatalf("item %d: %d values", item, len(all))
		}
		for from := int64(-3); from < 700; from += 13 {
			for _, size := range []int64{0, 1, 9, 10, 64, 633, 5000} {
				q := storagetest.All(model.ItemID(item))
				q.Range = model.TimeRange{From: testBase + from, To: testBase + from + size}
				var want []storagetest.Value
				for _, v := range all {
					if q.Range.Contains(v.At) {
						want = append(want, v)
					}
				}
				storagetest.Compare(t, storagetest.Collect(t, db, q), want)
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
