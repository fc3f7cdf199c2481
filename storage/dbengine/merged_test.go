package dbengine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/translog"
	"tidemark/storage/storagetest"
)

// addSums is a merge function: values are numbers of eight bytes.
func addSums(dst, a, b []byte) ([]byte, error) {
	if len(b) != 8 || len(a) != 0 && len(a) != 8 {
		return dst, errors.New("no sum")
	}
	sum := binary.LittleEndian.Uint64(b)
	if len(a) == 8 {
		sum += binary.LittleEndian.Uint64(a)
	}
	return binary.LittleEndian.AppendUint64(dst, sum), nil
}

// mergeOptions are tierOptions with addSums.
func mergeOptions() Options {
	o := tierOptions()
	o.Merge = addSums
	return o
}

// fillMerged writes hours of binary values of five series, one in ten seconds, beside numbers, each hour into a pair of its own: some do not merge, some come
// an hour late. The last hour stays in memory.
func fillMerged(t *testing.T, db *DB, hours int) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 5))
	for h := range hours {
		for k := range 360 {
			b := &model.Batch{}
			at := storagetest.Base + int64(h*360+k)*10*int64(time.Second)
			for item := model.ItemID(1); item <= 5; item++ {
				b.AppendUint(item+10, at, r.Uint64N(100))
				if k%7 == 3 && item%2 == 0 {
					continue
				}
				if k%50 == 9 {
					b.AppendBytes(item, at+1, model.Binary, []byte("no"))
				}
				b.AppendBytes(item, at, model.Binary, binary.LittleEndian.AppendUint64(nil, r.Uint64()))
				if k%20 == 11 && h > 0 {
					late := at - int64(time.Hour) - r.Int64N(int64(30*time.Minute)) - 2
					b.AppendBytes(item, late, model.Binary, binary.LittleEndian.AppendUint64(nil, r.Uint64()))
				}
			}
			if err := appendAll(db, b); err != nil {
				t.Fatal(err)
			}
		}
		if h == hours-1 {
			return
		}
		if err := db.ClosePair(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// sumsOf adds values by cell and counts the pieces that they came in.
func sumsOf(t *testing.T, cell func(int64) int, read func(fn func(*model.Columns) error) error) (sums map[int]uint64, pieces int) {
	t.Helper()
	sums = map[int]uint64{}
	err := read(func(c *model.Columns) error {
		for i, at := range c.At {
			if b := c.Bytes(i); len(b) == 8 {
				pieces++
				sums[cell(at)] += binary.LittleEndian.Uint64(b)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums, pieces
}

// mergedSums and valueSums read a range from the tiers and from the values.
func mergedSums(t *testing.T, db *DB, q storage.Query, cell func(int64) int) (map[int]uint64, int) {
	t.Helper()
	return sumsOf(t, cell, func(fn func(*model.Columns) error) error {
		return db.Merged(context.Background(), q, cell, fn)
	})
}

func valueSums(t *testing.T, db *DB, q storage.Query, cell func(int64) int) (map[int]uint64, int) {
	t.Helper()
	return sumsOf(t, cell, func(fn func(*model.Columns) error) error {
		return db.Read(context.Background(), q, fn)
	})
}

// oneCell is for sums of a whole range.
func oneCell(int64) int { return 0 }

// compareMerged compares tiers and values over ranges and cells of all kinds.
func compareMerged(t *testing.T, db *DB, hours int) {
	t.Helper()
	r := rand.New(rand.NewPCG(9, 9))
	length := int64(hours) * storage.Hour
	for n := range 300 {
		from, to := storagetest.Base-storage.Hour+r.Int64N(length), storagetest.Base+length
		if to = from + 1 + r.Int64N(to-from); n%3 == 0 { // as queries ask
			from, to = stepEnd(from, minute)+1, stepEnd(to, minute)+1
		}
		step := 1 + r.Int64N(3*storage.Hour)
		if n%2 == 0 {
			step = stepEnd(step, minute)
		}
		cell := func(at int64) int { return int((at - from) / step) }
		if n%5 == 0 {
			cell = oneCell
		}
		q := storage.Query{Items: []model.ItemID{model.ItemID(1 + n%5)}, Range: model.TimeRange{From: from, To: to}}
		got, _ := mergedSums(t, db, q, cell)
		want, _ := valueSums(t, db, q, cell)
		if len(got) != len(want) {
			t.Fatalf("range %d: %d cells, expected %d", n, len(got), len(want))
		}
		for k, sum := range want {
			if got[k] != sum {
				t.Fatalf("range %d, cell %d: %d, expected %d", n, k, got[k], sum)
			}
		}
	}
}

// TestDB_merged reads ranges of all kinds before there are tiers, with them, after a restart, and after the pairs were written anew: always what the values
// say, and from many fewer pieces.
func TestDB_merged(t *testing.T) {
	const hours = 5
	fsys := vfs.NewMem()
	db := openTest(t, fsys, mergeOptions())
	fillMerged(t, db, hours)
	compareMerged(t, db, hours)
	if err := db.buildTiers(context.Background()); err != nil {
		t.Fatal(err)
	}
	if db.m.mergeRefused.Get() == 0 {
		t.Error("no value was refused, and some do not merge")
	}
	compareMerged(t, db, hours)
	_, values := valueSums(t, db, storagetest.All(1, 2, 3, 4, 5), oneCell)
	if _, pieces := mergedSums(t, db, storagetest.All(1, 2, 3, 4, 5), oneCell); pieces > values/3 {
		t.Errorf("%d pieces for %d values", pieces, values)
	}
	if _, err := db.Recompress(context.Background(), Recompress{MergeBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	compareMerged(t, db, hours)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if findings, err := Check(fsys, "/engine", nil); err != nil || len(findings) != 0 {
		t.Fatalf("check: %v %v", findings, err)
	}
	if info, err := Info(fsys, "/engine", nil); err != nil || info.Instances["merged"].Series != 5 || info.Instances["merged"].Samples == 0 {
		t.Errorf("info %+v %v", info, err)
	}
	db = openTest(t, fsys, mergeOptions())
	compareMerged(t, db, hours)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDB_mergedOutliveValues deletes the pairs with the values, then those of minutes: ranges that are made of whole minutes, then of whole hours, stay as they were.
func TestDB_mergedOutliveValues(t *testing.T) {
	const hours = 4
	fsys := vfs.NewMem()
	db := openTest(t, fsys, mergeOptions())
	fillMerged(t, db, hours)
	if err := db.ClosePair(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := db.buildTiers(context.Background()); err != nil {
		t.Fatal(err)
	}
	begin := stepEnd(storagetest.Base, storage.Hour) - 3*storage.Hour
	ask := func(step int64) []map[int]uint64 {
		var all []map[int]uint64
		for id := model.ItemID(1); id <= 5; id++ {
			q := storage.Query{Items: []model.ItemID{id}, Range: model.TimeRange{From: begin + 1, To: begin + 8*storage.Hour + 1}}
			sums, _ := mergedSums(t, db, q, func(at int64) int { return int((at - 1 - begin) / step) })
			all = append(all, sums)
		}
		return all
	}
	same := func(when string, got, want []map[int]uint64) {
		t.Helper()
		for i := range want {
			if len(got[i]) != len(want[i]) || len(want[i]) == 0 {
				t.Fatalf("%s: %d cells, expected %d", when, len(got[i]), len(want[i]))
			}
			for k, sum := range want[i] {
				if got[i][k] != sum {
					t.Fatalf("%s: item %d, cell %d: %d, expected %d", when, i+1, k, got[i][k], sum)
				}
			}
		}
	}
	minutes, hourly := ask(3*minute), ask(storage.Hour)
	for round := range hours {
		if !db.deleteOldest() {
			t.Fatal("no pair to delete")
		}
		if round == 2 {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = openTest(t, fsys, mergeOptions())
		}
		same("after pairs of values went", ask(3*minute), minutes)
		same("after pairs of values went", ask(storage.Hour), hourly)
	}
	if values := storagetest.Collect(t, db, storagetest.All(1, 2, 3, 4, 5)); len(values) != 0 {
		t.Fatalf("%d values are left", len(values))
	}
	for range hours {
		if p := db.pairs.all()[0]; !db.deleteOldest() || p.tier == header.Hour {
			t.Fatalf("%s went", p.id.Name())
		}
		same("after pairs of minutes went", ask(storage.Hour), hourly)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDB_mergedCrash cuts the power at each sync while tiers are built: nothing is counted twice or lost.
func TestDB_mergedCrash(t *testing.T) {
	crashTiers(t, mergeOptions, func(db *DB) { fillMerged(t, db, 3) }, func(_ int, db *DB) { compareMerged(t, db, 3) })
}

// TestDB_mergedDamage flips bits in tiers: the values, which are still there, are read in their place, and a repair keeps that right.
func TestDB_mergedDamage(t *testing.T) {
	fsys := vfs.NewMem()
	db := openTest(t, fsys, mergeOptions())
	fillMerged(t, db, 3)
	if err := db.buildTiers(context.Background()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range db.pairs.all() {
		if p.tier != header.Raw {
			names = append(names, path.Join("/engine", p.id.Name()))
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for k, name := range names {
		b := slices.Clone(content(t, fsys, name))
		for at := header.Bytes + 200 + k; at < len(b); at += 1500 {
			b[at] ^= 4
		}
		replace(t, fsys, name, b)
	}
	db = openTest(t, fsys, mergeOptions())
	compareMerged(t, db, 3)
	if db.m.damagedPages.Get() == 0 {
		t.Error("nothing that was read is damaged")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Repair(context.Background(), fsys, "/engine", nil); err != nil {
		t.Fatal(err)
	}
	if findings, err := Check(fsys, "/engine", nil); err != nil || len(findings) != 0 {
		t.Fatalf("check: %v %v", findings, err)
	}
	db = openTest(t, fsys, mergeOptions())
	compareMerged(t, db, 3)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDB_mergedOldFolder opens a folder whose tiers were made without a merge function: the values are read.
func TestDB_mergedOldFolder(t *testing.T) {
	fsys := vfs.NewMem()
	db := openTest(t, fsys, tierOptions())
	fillMerged(t, db, 3)
	if err := db.buildTiers(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openTest(t, fsys, mergeOptions())
	compareMerged(t, db, 3)
	if err := db.ClosePair(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := db.buildTiers(context.Background()); err != nil {
		t.Fatal(err)
	}
	compareMerged(t, db, 3)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// mergedGolden is a folder with tiers that hold merged values, as written when they came to be; see goldenDirs.
const mergedGolden = "testdata/v4"

// TestDB_mergedGolden reads a folder that is never written again: the pair with the values was deleted from it.
func TestDB_mergedGolden(t *testing.T) {
	if os.Getenv("TIDEMARK_WRITE_GOLDEN") != "" {
		writeMergedGolden(t)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(mergedGolden)); err != nil {
		t.Fatal(err)
	}
	if findings, err := Check(vfs.OS{}, dir, nil); err != nil || len(findings) != 0 {
		t.Errorf("check: %v %v", findings, err)
	}
	var dump bytes.Buffer
	if err := Dump(vfs.OS{}, dir, &dump); err != nil || !strings.Contains(dump.String(), "merged values") || strings.Contains(dump.String(), "damage") {
		t.Errorf("dump: %v\n%s", err, dump.String())
	}
	o := mergeOptions()
	db, err := Open(context.Background(), vfs.OS{}, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for item := model.ItemID(1); item <= 2; item++ {
		minutes, _ := mergedSums(t, db, storagetest.All(item), func(at int64) int { return int(at / minute) })
		hours, pieces := mergedSums(t, db, storagetest.All(item), oneCell)
		sum := uint64(item) * 120 * 119 / 2
		if len(minutes) < 60 || hours[0] != sum || pieces > 3 {
			t.Errorf("item %d: %d minutes, %d in %d hours, expected %d", item, len(minutes), hours[0], pieces, sum)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func writeMergedGolden(t *testing.T) {
	if _, err := os.Stat(mergedGolden); err == nil {
		t.Fatalf("%s exists: a golden folder is never changed", mergedGolden)
	}
	db, err := Open(context.Background(), vfs.OS{}, mergedGolden, mergeOptions())
	if err != nil {
		t.Fatal(err)
	}
	for k := range 120 {
		b := &model.Batch{}
		for item := model.ItemID(1); item <= 2; item++ {
			b.AppendBytes(item, storagetest.Base+int64(k)*30*int64(time.Second), model.Binary, binary.LittleEndian.AppendUint64(nil, uint64(item)*uint64(k)))
			b.AppendFloat(item+2, storagetest.Base+int64(k)*30*int64(time.Second), float64(k))
		}
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
	}
	db.Release(db.LastLSN())
	if err := db.ClosePair(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := db.buildTiers(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !db.deleteOldest() {
		t.Fatal("no pair to delete")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(mergedGolden)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, log := translog.ParseName(n.Name()); log || translog.IsSpare(n.Name()) || n.Name() == lockName {
			if err := os.Remove(filepath.Join(mergedGolden, n.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDB_mergedWhileWriting reads sums while values come, pairs are closed, summed up and written anew: a sum never has a value twice, or one less than before.
func TestDB_mergedWhileWriting(t *testing.T) {
	o := smallOptions()
	o.Merge = addSums
	o.limits.tierTick, o.limits.tick = time.Millisecond, 2*time.Millisecond
	o.limits.datafileBytes = 8 << 10
	db := openTest(t, vfs.NewMem(), o)
	ctx, stop := context.WithCancel(context.Background())
	var written atomic.Uint64
	var readers sync.WaitGroup
	for k := range 2 {
		readers.Go(func() {
			q := storagetest.All(model.ItemID(1 + k))
			for last := uint64(0); ctx.Err() == nil; {
				sum := uint64(0)
				least := written.Load()
				err := db.Merged(context.Background(), q, nil, func(c *model.Columns) error {
					for i := range c.At {
						sum += binary.LittleEndian.Uint64(c.Bytes(i))
					}
					return nil
				})
				if most := written.Load() + 1; err != nil || sum < max(last, least) || sum > most {
					t.Errorf("item %d: a sum of %d, expected %d to %d: %v", k+1, sum, max(last, least), most, err)
					return
				}
				last = sum
			}
		})
	}
	one := binary.LittleEndian.AppendUint64(nil, 1)
	r := rand.New(rand.NewPCG(4, 4))
	for s := range 2000 {
		b := &model.Batch{}
		for item := model.ItemID(1); item <= 2; item++ {
			b.AppendBytes(item, testBase+int64(s)*7*int64(time.Second), model.Binary, one)
			b.AppendUint(item+2, testBase+int64(s)*7*int64(time.Second), r.Uint64())
		}
		if _, err := db.Append(context.Background(), b); err != nil {
			t.Fatal(err)
		}
		written.Add(1)
		if s%500 == 499 {
			if err := db.ClosePair(context.Background()); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Recompress(context.Background(), Recompress{MergeBytes: 1 << 20}); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop()
	readers.Wait()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
