package dbengine

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/page"
	"tidemark/storage/storagetest"
)

// valueReader reads values.
type valueReader interface {
	Read(ctx context.Context, q storage.Query, fn func(*model.Columns) error) error
}

// foldMinutes is the plain way to sum up minutes: value after value.
func foldMinutes(reader valueReader, id model.ItemID) ([]minuteRow, error) {
	var rows []minuteRow
	var previous uint64
	hasPrevious, last := false, model.ValueType(0)
	err := reader.Read(context.Background(), storagetest.All(id), func(c *model.Columns) error {
		if !c.Type.Numeric() || c.Type != last {
			hasPrevious = false
		}
		if last = c.Type; !c.Type.Numeric() {
			return nil
		}
		for i, at := range c.At {
			start := minuteOf(at)
			if n := len(rows); n == 0 || rows[n-1].At != start || rows[n-1].valueType != c.Type {
				rows = append(rows, minuteRow{Trend: model.Trend{At: start}, valueType: c.Type})
			}
			if storage.AddToTrend(&rows[len(rows)-1].Trend, c.Type, c.Bits[i], previous, hasPrevious) {
				previous, hasPrevious = c.Bits[i], true
			}
		}
		return nil
	})
	return slices.DeleteFunc(rows, func(m minuteRow) bool { return m.Count == 0 }), err
}

// compareMinutes compares the tier with the values that a reader has.
func compareMinutes(db *DB, reader valueReader, items ...model.ItemID) error {
	for _, id := range items {
		want, err := foldMinutes(reader, id)
		if err != nil {
			return err
		}
		var got []minuteRow
		err = db.Minutes(context.Background(), storagetest.All(id), func(c *storage.TrendColumns) error {
			for _, row := range c.Trends {
				got = append(got, minuteRow{Trend: row, valueType: c.Type})
			}
			return nil
		})
		if err != nil {
			return err
		}
		if len(got) != len(want) {
			return fmt.Errorf("%d minutes of item %d, expected %d", len(got), id, len(want))
		}
		for i := range got {
			if err := sameMinute(&got[i], &want[i]); err != nil {
				return fmt.Errorf("item %d, minute %d: %w", id, want[i].At, err)
			}
		}
	}
	return nil
}

// sameMinute allows floats' sums another order.
func sameMinute(got, want *minuteRow) error {
	near := func(a, b float64) bool {
		scale := math.Abs(a) + math.Abs(b)
		if want.valueType == model.Float {
			scale += float64(want.Count) * (math.Abs(math.Float64frombits(want.Min)) + math.Abs(math.Float64frombits(want.Max)))
		}
		return math.Abs(a-b) <= 1e-9*scale
	}
	g, w := got.Trend, want.Trend
	if !near(g.Sum, w.Sum) || !near(g.Increase, w.Increase) || got.valueType != want.valueType {
		return fmt.Errorf("%+v, expected %+v", *got, *want)
	}
	g.Sum, g.Increase = w.Sum, w.Increase
	if want.valueType == model.Float { // zeros of either sign
		for _, pair := range [][2]*uint64{{&g.Min, &w.Min}, {&g.Max, &w.Max}} {
			if math.Float64frombits(*pair[0]) == math.Float64frombits(*pair[1]) {
				*pair[0] = *pair[1]
			}
		}
	}
	if g != w {
		return fmt.Errorf("%+v, expected %+v", *got, *want)
	}
	return nil
}

// fillTiers writes so many hours of values of 20 series, one in ten seconds, into pairs of an hour each.
func fillTiers(t *testing.T, db *DB, hours int) {
	t.Helper()
	for h := range hours {
		for k := range 360 {
			b := &model.Batch{}
			at := storagetest.Base + int64(h*360+k)*10*int64(time.Second)
			for item := model.ItemID(1); item <= 10; item++ {
				b.AppendUint(item, at, uint64(h*360+k)*uint64(item)%5000)
				b.AppendFloat(item+10, at, float64((k*int(item))%97)/4)
			}
			if err := appendAll(db, b); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		db.flushing.Lock()
		db.closePair()
		db.flushing.Unlock()
	}
	if err := db.buildTiers(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// tierOptions make pairs that only fillTiers closes.
func tierOptions() Options {
	o := smallOptions()
	o.limits.datafileBytes = 16 << 20
	o.limits.pageValues = 200
	return o
}

// TestDB_tiersOutliveValues deletes the pairs with the values one after the other: minutes and hours stay as they were, also after
// restarts, and a check finds nothing.
func TestDB_tiersOutliveValues(t *testing.T) {
	fsys := vfs.NewMem()
	db := openTest(t, fsys, tierOptions())
	fillTiers(t, db, 4)
	items := []model.ItemID{1, 7, 11, 20}
	want := map[model.ItemID][]minuteRow{}
	hours := map[model.ItemID][]model.Trend{}
	for _, id := range items {
		rows, err := foldMinutes(db, id)
		if err != nil {
			t.Fatal(err)
		}
		want[id], hours[id] = rows, hoursOf(t, db, id)
	}
	for round := range 4 {
		if !db.deleteOldest() {
			t.Fatal("no pair to delete")
		}
		if round == 1 {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if findings, err := Check(fsys, "/engine", nil); err != nil || len(findings) != 0 {
				t.Fatalf("check: %v %v", findings, err)
			}
			db = openTest(t, fsys, tierOptions())
			if err := db.buildTiers(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range items {
			i := 0
			err := db.Minutes(context.Background(), storagetest.All(id), func(c *storage.TrendColumns) error {
				for _, row := range c.Trends {
					if i == len(want[id]) {
						return fmt.Errorf("more than %d minutes of item %d", i, id)
					}
					if err := sameMinute(&minuteRow{Trend: row, valueType: c.Type}, &want[id][i]); err != nil {
						return fmt.Errorf("item %d: %w", id, err)
					}
					i++
				}
				return nil
			})
			if err != nil || i != len(want[id]) {
				t.Fatalf("after %d pairs: %d minutes of item %d, expected %d: %v", round+1, i, id, len(want[id]), err)
			}
			if got := hoursOf(t, db, id); !slices.Equal(got, hours[id]) {
				t.Fatalf("after %d pairs: hours %+v, expected %+v", round+1, got, hours[id])
			}
		}
	}
	if values := storagetest.Collect(t, db, storagetest.All(items...)); len(values) != 0 {
		t.Errorf("%d values are left", len(values))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := Info(fsys, "/engine", nil)
	if err != nil {
		t.Fatal(err)
	}
	if m := info.Instances["minute"]; m.Series != 20 || m.Pairs != 4 || m.Samples != 20*4*60 || info.Instances["hourly"].Series != 20 {
		t.Errorf("info %+v", info)
	}
}

func hoursOf(t *testing.T, db *DB, id model.ItemID) []model.Trend {
	t.Helper()
	var rows []model.Trend
	err := db.Trends(context.Background(), storagetest.All(id), func(c *storage.TrendColumns) error {
		rows = append(rows, c.Trends...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestDB_tierShares sees a tier give up its oldest pairs when it takes more than its share, and values go first when there is no room.
func TestDB_tierShares(t *testing.T) {
	o := tierOptions()
	o.MinuteShare, o.HourShare = 1, -1
	o.DiskSpaceBytes = 16 << 20
	db := openTest(t, vfs.NewMem(), o)
	fillTiers(t, db, 24)
	total, pairs := int64(0), 0
	for _, p := range db.pairs.all() {
		if p.tier == header.Minute {
			total += p.charged
			pairs++
		}
		if p.tier == header.Hour {
			t.Errorf("%s holds hours, and there shall be no such tier", p.id.Name())
		}
	}
	if limit := o.DiskSpaceBytes / 100; total > limit || pairs == 0 || pairs == 24 {
		t.Errorf("%d pairs of %d bytes, expected some and at most %d bytes", pairs, total, limit)
	}
	if err := compareMinutes(db, db, 1, 20); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDB_tierCrash cuts the power at each sync while tiers are built: nothing is counted twice or lost.
func TestDB_tierCrash(t *testing.T) {
	crashTiers(t, tierOptions, func(db *DB) { fillTiers(t, db, 2) }, func(clone int, db *DB) {
		if err := compareMinutes(db, db, 1, 2, 11, 20); err != nil {
			t.Fatalf("clone %d: %v", clone, err)
		}
	})
}

// crashTiers clones the file system at each sync while tiers are built of what fill stored, and compares each clone before and after its tiers are
// built too.
func crashTiers(t *testing.T, options func() Options, fill func(*DB), compare func(clone int, db *DB)) {
	t.Helper()
	fsys := vfs.NewMem()
	o := options()
	o.MinuteShare, o.HourShare = -1, -1
	db := openTest(t, fsys, o)
	fill(db)
	db.o.tierShares = tierShares{0, 15, 5}
	var clones []*vfs.Mem
	r := rand.New(rand.NewPCG(7, 7))
	var mu sync.Mutex // the flusher syncs beside the tiers
	fsys.OnSync(func() {
		mu.Lock()
		defer mu.Unlock()
		clones = append(clones, fsys.CrashClone(r))
	})
	if err := db.buildTiers(context.Background()); err != nil {
		t.Fatal(err)
	}
	fsys.OnSync(nil)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if len(clones) < 8 {
		t.Fatalf("%d syncs, expected more", len(clones))
	}
	for i, clone := range clones {
		said := &spy{}
		o := options()
		o.Logger = slog.New(said)
		db := openTest(t, clone, o)
		if said.said("set aside") {
			t.Errorf("clone %d: %v", i, said.lines)
		}
		for range 2 {
			compare(i, db)
			if err := db.buildTiers(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRepair_keepsTiers damages a pair of a tier and repairs it: it is still one of the tier.
func TestRepair_keepsTiers(t *testing.T) {
	fsys := vfs.NewMem()
	db := openTest(t, fsys, tierOptions())
	fillTiers(t, db, 1)
	var name string
	for _, p := range db.pairs.all() {
		if p.tier == header.Minute {
			name = path.Join("/engine", p.id.Name())
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b := content(t, fsys, name)
	b[len(b)/2] ^= 1
	replace(t, fsys, name, b)
	if _, err := Repair(context.Background(), fsys, "/engine", nil); err != nil {
		t.Fatal(err)
	}
	if findings, err := Check(fsys, "/engine", nil); err != nil || len(findings) != 0 {
		t.Fatalf("check: %v %v", findings, err)
	}
	db = openTest(t, fsys, tierOptions())
	tiers := 0
	for _, p := range db.pairs.all() {
		if p.tier == header.Minute {
			tiers++
		}
	}
	if tiers != 1 {
		t.Errorf("%d pairs of minutes, expected 1", tiers)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMinuteRows(t *testing.T) {
	f := func(vt model.ValueType, late bool, values ...uint64) {
		t.Helper()
		c := &model.Columns{Type: vt}
		for i, v := range values {
			c.At, c.Bits = append(c.At, testBase+int64(i)*7*int64(time.Second)), append(c.Bits, v)
		}
		var m minuteRows
		m.take(c)
		for i := range m.rows {
			m.rows[i].late = late
		}
		times := make([]int64, len(m.rows))
		for i := range times {
			times[i] = m.rows[i].At
		}
		p := extent.Page{Type: vt, Kind: extent.Minute, Count: len(times), Times: page.AppendTimes(nil, times), Values: appendMinutes(nil, m.rows)}
		got, err := decodeMinutes(nil, &p)
		if err != nil || !slices.Equal(got, m.rows) {
			t.Errorf("%v %x: %+v, expected %+v: %v", vt, values, got, m.rows, err)
		}
		for n := range p.Values {
			short := p
			short.Values = p.Values[:n]
			if got, err := decodeMinutes(nil, &short); err == nil && !slices.Equal(got, m.rows) {
				t.Errorf("%d of %d bytes are read as %+v", n, len(p.Values), got)
			}
		}
	}
	ramp, large := make([]uint64, 100), make([]uint64, 100)
	walk, flat := make([]uint64, 100), bytes.Repeat([]byte{1}, 100)
	for i := range ramp {
		ramp[i], large[i] = uint64(i*i), math.MaxUint64-uint64(i%3)
		walk[i] = math.Float64bits(float64(i%9)/8 - 0.5)
	}
	f(model.Uint, false, ramp...)
	f(model.Uint, true, large...)
	f(model.Float, false, walk...)
	f(model.Float, true, walk...)
	same := make([]uint64, len(flat))
	f(model.Uint, false, same...)
	f(model.Float, false, same...)
	for i := range same {
		same[i] = math.Float64bits(0.1)
	}
	f(model.Float, false, same...)
	for i := range same {
		same[i] = math.Float64bits(math.Copysign(0, -1))
	}
	f(model.Float, false, same...)
	f(model.Uint, false, 5)
}

func FuzzDecodeMinutes(f *testing.F) {
	rows := []minuteRow{{Trend: model.Trend{At: 0, Count: 3, First: 1, Last: 2, Min: 1, Max: 2, SumLow: 5, Increase: 1}, valueType: model.Uint}}
	f.Add(appendMinutes(nil, rows), uint8(model.Uint), 1)
	rows[0].late = true
	f.Add(appendMinutes(nil, rows), uint8(model.Uint), 1)
	rows[0].valueType = model.Float
	f.Add(appendMinutes(nil, rows), uint8(model.Float), 1)
	f.Fuzz(func(t *testing.T, b []byte, vt uint8, n int) {
		if n < 1 || n > 2000 {
			return
		}
		times := make([]int64, n)
		for i := range times {
			times[i] = int64(i) * minute
		}
		p := extent.Page{Type: model.ValueType(vt), Kind: extent.Minute, Count: n, Times: page.AppendTimes(nil, times), Values: b}
		if rows, err := decodeMinutes(nil, &p); err == nil && len(rows) != n {
			t.Errorf("%d rows, expected %d", len(rows), n)
		}
	})
}

// TestDB_tiersWhileWriting sums up pairs while values come, are read, and the quota deletes the oldest.
func TestDB_tiersWhileWriting(t *testing.T) {
	o := smallOptions()
	o.limits.tierTick = time.Millisecond
	o.limits.tick = 2 * time.Millisecond
	o.limits.logBytes, o.limits.logFloorBytes, o.limits.segmentBytes = 512<<10, 128<<10, 64<<10
	o.limits.datafileBytes = 24 << 10
	o.DiskSpaceBytes = 1 << 20
	db := openTest(t, vfs.NewMem(), o)
	ctx, stop := context.WithCancel(context.Background())
	var readers sync.WaitGroup
	for k := range 2 {
		readers.Go(func() {
			for i := k; ctx.Err() == nil; i++ {
				q := storagetest.All(model.ItemID(1 + i%20))
				last := int64(math.MinInt64)
				err := db.Minutes(ctx, q, func(c *storage.TrendColumns) error {
					for _, row := range c.Trends {
						if row.At <= last || row.Count == 0 || row.Count > 60 {
							return fmt.Errorf("minute %d behind %d: %+v", row.At, last, row)
						}
						last = row.At
					}
					return nil
				})
				if err == nil {
					err = db.Read(ctx, q, func(*model.Columns) error { return nil })
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(4, 4))
	for s := range 2500 {
		b := &model.Batch{}
		for item := model.ItemID(1); item <= 20; item++ {
			b.AppendFloat(item, testBase+int64(s)*int64(time.Second), r.Float64())
		}
		if _, err := db.Append(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := db.buildTiers(context.Background()); err != nil {
		t.Fatal(err)
	}
	stop()
	readers.Wait()
	tiers, raw := 0, 0
	for _, p := range db.pairs.all() {
		if p.tier == header.Minute {
			tiers++
		}
		if p.tier == header.Raw {
			raw++
		}
	}
	if used := db.space.usedBytes(); tiers == 0 || raw == 0 || used > o.DiskSpaceBytes {
		t.Errorf("%d pairs of minutes, %d of values, %d bytes of %d", tiers, raw, used, o.DiskSpaceBytes)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
