package dbengine

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/storagetest"
)

// foreignHours makes hours that end at one.
func foreignHours(end int64, n int, vt model.ValueType) storage.TrendColumns {
	c := storage.TrendColumns{Type: vt}
	for i := range n {
		t := model.Trend{At: end - int64(n-i)*storage.Hour, Count: 60}
		if vt == model.Uint {
			t.Min, t.Max, t.First, t.Last, t.SumLow = uint64(i), uint64(i)+10, uint64(i)+5, uint64(i)+5, 60*(uint64(i)+5)
		} else {
			v := float64(i) / 8
			t.Min, t.Max, t.First, t.Last = math.Float64bits(v), math.Float64bits(v+1), math.Float64bits(v), math.Float64bits(v)
			t.Sum = 60 * v
		}
		c.Trends = append(c.Trends, t)
	}
	return c
}

// Hours that came without values stand before those that the values make: at once, after a kill, a restart, and when the pairs are gone.
func TestDB_ImportTrends(t *testing.T) {
	fsys := vfs.NewMem()
	db := openTest(t, fsys, tierOptions())
	first := storage.HourOf(storagetest.Base)
	appendHours := func(from int) { // items 1 and 2, half of each hour
		b := model.NewBatch()
		for k := range 360 {
			at := first + int64(from)*storage.Hour + int64(k)*10*int64(time.Second)
			b.AppendUint(1, at, uint64(k))
			b.AppendFloat(2, at, float64(k)/3)
		}
		appendWait(t, db, b)
	}
	appendHours(0)
	own := map[model.ItemID][]model.Trend{1: hoursOf(t, db, 1), 2: hoursOf(t, db, 2)}
	var columns []storage.TrendColumns
	want := map[model.ItemID][]model.Trend{}
	for id, vt := range map[model.ItemID]model.ValueType{1: model.Uint, 2: model.Float, 3: model.Uint} {
		c := foreignHours(first, 3000, vt)
		c.Item = id
		columns, want[id] = append(columns, c), append(slices.Clone(c.Trends), own[id]...)
	}
	expect := func(when string) {
		t.Helper()
		for id := range want {
			if got := hoursOf(t, db, id); !slices.Equal(got, want[id]) {
				t.Fatalf("%s: item %d has %d hours, expected %d", when, id, len(got), len(want[id]))
			}
		}
	}
	for range 2 { // again changes nothing
		if err := db.ImportTrends(context.Background(), columns); err != nil {
			t.Fatal(err)
		}
		expect("after the import")
	}
	killed := openTest(t, fsys.CrashClone(rand.New(rand.NewPCG(1, 2))), tierOptions())
	alive := db
	db = killed
	expect("after a power cut")
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	db = alive
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openTest(t, fsys, tierOptions())
	expect("after a restart")
	appendHours(1)
	for id := range own {
		hours := hoursOf(t, db, id)
		want[id] = append(want[id], hours[len(hours)-1])
	}
	expect("with another hour")
	if err := db.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	db.flushing.Lock()
	db.closePair()
	db.flushing.Unlock()
	if err := db.buildTiers(context.Background()); err != nil {
		t.Fatal(err)
	}
	for slices.ContainsFunc(db.Pairs(), func(p PairInfo) bool { return p.Tier == header.Raw && !p.Open }) {
		db.deleteOldest()
	}
	expect("without the pairs of values")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if findings, err := Check(fsys, "/engine", nil); err != nil || len(findings) != 0 {
		t.Fatalf("check: %v %v", findings, err)
	}
}
