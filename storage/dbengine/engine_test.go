package dbengine

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
)

const testBase = int64(1_700_000_000_000_000_000)

// smallLimits make files and pages small, so that tests see them change.
func smallLimits() *limits {
	return &limits{
		segmentBytes: 1 << 20, logBytes: 16 << 20, logFloorBytes: 4 << 20, datafileBytes: 64 << 10,
		pageValues: 64, chunkValues: 16, pageBytes: 1024, dirtyBytes: 32 << 10, dirtyAge: time.Hour, tick: time.Second,
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
