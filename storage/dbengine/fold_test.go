package dbengine

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/storagetest"
)

// TestFold sums up series of all kinds of columns with steps from below the distance of their values to more than all of them, in memory, in pages,
// and with late values between.
func TestFold(t *testing.T) {
	db := openTest(t, vfs.NewMem(), smallOptions())
	defer db.Close()
	r := rand.New(rand.NewPCG(1, 2))
	const items, values = 9, 700
	for k := range values {
		b := &model.Batch{}
		at := testBase + int64(k)*int64(time.Second)
		b.AppendFloat(1, at, 2.5)                            // constant
		b.AppendUint(2, at, 1<<63+7)                         // constant, whose sum passes 64 bits
		b.AppendFloat(3, at, float64(k/50)/4)                // runs
		b.AppendFloat(4, at, float64(r.IntN(1000))/100)      // decimals
		b.AppendFloat(5, at, r.NormFloat64())                // all bits
		b.AppendUint(6, at+int64(r.IntN(1000)), uint64(k*k)) // times of its own
		b.AppendFloat(7, at, []float64{1, math.NaN(), math.Inf(1)}[k%3])
		b.AppendFloat(8, testBase+int64(k)*1000, float64(k)) // dense
		if k == values/2 {
			b.AppendFloat(9, at, 1)
		} else if k%2 == 0 {
			b.AppendUint(9, at, uint64(k)) // changes its type
		}
		if _, err := db.Append(context.Background(), b); err != nil {
			t.Fatal(err)
		}
		if k == 500 {
			if err := db.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func() {
		t.Helper()
		for _, step := range []int64{1, 999, 700_000_000, 1e9, 7e9, 60e9, 3600e9, math.MaxInt64} {
			q := storagetest.All()
			for id := range model.ItemID(items) {
				q.Items = append(q.Items, id+1)
			}
			if err := storagetest.CompareFolds(db, q, step); err != nil {
				t.Error(err)
			}
			q.Range = model.TimeRange{From: testBase + 3_500_000_000, To: testBase + 600e9}
			if err := storagetest.CompareFolds(db, q, step); err != nil {
				t.Error(err)
			}
		}
	}
	check()
	b := &model.Batch{}
	b.AppendFloat(4, testBase+100_500_000_000, 9)
	if _, err := db.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	check()
	if err := db.Fold(context.Background(), storagetest.All(1), 0, nil); err == nil {
		t.Error("a step of nothing is no error")
	}
}

// BenchmarkFold sums up an hour of cached series in one step and in steps of a minute, beside reading the values and adding them.
func BenchmarkFold(b *testing.B) {
	db, err := Open(context.Background(), vfs.OS{}, b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	const items, values = 100, 8192
	count := walks(b, db, items, 1, values)
	q := storage.Query{Range: model.TimeRange{From: testBase, To: testBase + values*int64(time.Second)}}
	for id := range model.ItemID(items) {
		q.Items = append(q.Items, id+1)
	}
	total := 0.0
	run := func(name string, fn func() error) {
		b.Run(name, func(b *testing.B) {
			cpu, n := cpuNanos(b), 0
			for b.Loop() {
				if err := fn(); err != nil {
					b.Fatal(err)
				}
				n += count
			}
			b.ReportMetric(float64(cpuNanos(b)-cpu)/float64(n), "cpu-ns/value")
		})
	}
	fold := func(step int64) func() error {
		return func() error {
			return db.Fold(context.Background(), q, step, func(c *storage.FoldColumns) error {
				total += c.Folds[0].Sum
				return nil
			})
		}
	}
	run("one step", fold(math.MaxInt64))
	run("minutes", fold(int64(time.Minute)))
	run("reading", func() error {
		return db.Read(context.Background(), q, func(c *model.Columns) error {
			for i := range c.At {
				total += c.Float(i)
			}
			return nil
		})
	})
}
