package dbengine

import (
	"context"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/storagetest"
)

func BenchmarkAppend(b *testing.B) {
	dir := b.TempDir()
	db, err := Open(context.Background(), vfs.OS{}, dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	const items, rows = 10_000, 1000
	batch := model.NewBatch()
	at, next := testBase, 0
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuNanos(b)
	for done := 0; done < b.N; done += rows {
		batch.Reset()
		for range rows {
			batch.AppendFloat(model.ItemID(1+next), at+int64(next)*1000, float64(next%100)/4)
			if next++; next == items {
				next, at = 0, at+1_000_000_000
			}
		}
		if _, err := db.Append(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuNanos(b)-cpu)/float64(b.N), "cpu-ns/value")
}

// cpuNanos is the CPU time of the process, which other programs on the machine do not lengthen as they do the wall clock.
func cpuNanos(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkMemory tells what active series take in memory, of values with two decimals at 1 s with some jitter.
func BenchmarkMemory(b *testing.B) {
	const series = 20_000
	r := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		db, err := Open(context.Background(), vfs.OS{}, b.TempDir(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		before := heap()
		batch := model.NewBatch()
		for k := range 600 {
			at := testBase + int64(k)*1_000_000_000 + int64(r.IntN(1_000_000))
			for first := 1; first <= series; first += 1000 {
				batch.Reset()
				for item := first; item < first+1000; item++ {
					batch.AppendFloat(model.ItemID(item), at, float64(r.IntN(10_000))/100)
				}
				if _, err := db.Append(context.Background(), batch); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(heap()-before)/series, "heap-B/series")
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what pools held is garbage only now
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkRead reads everything of sealed series, from the page cache.
func BenchmarkRead(b *testing.B) {
	db, err := Open(context.Background(), vfs.OS{}, b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	batch := model.NewBatch()
	q := storagetest.All()
	for item := model.ItemID(1); item <= 100; item++ {
		q.Items = append(q.Items, item)
		batch.Reset()
		for k := range 10_000 {
			batch.AppendFloat(item, testBase+int64(k)*1_000_000_000, float64(k%1000)/100)
		}
		if _, err := db.Append(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
	cpu, values := cpuNanos(b), 0
	for b.Loop() {
		err := db.Read(context.Background(), q, func(c *model.Columns) error {
			values += len(c.At)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuNanos(b)-cpu)/float64(values), "cpu-ns/value")
}

// BenchmarkFlush writes pages of few values of many series, as when the log has become too long.
func BenchmarkFlush(b *testing.B) {
	db, err := Open(context.Background(), vfs.OS{}, b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	const series = 20_000
	batch, at := model.NewBatch(), testBase
	for b.Loop() {
		b.StopTimer()
		for range 6 {
			for first := 1; first <= series; first += 1000 {
				batch.Reset()
				for item := first; item < first+1000; item++ {
					batch.AppendFloat(model.ItemID(item), at+int64(item), float64(item%100)/4)
				}
				if _, err := db.Append(context.Background(), batch); err != nil {
					b.Fatal(err)
				}
			}
			at += 1_000_000_000
		}
		b.StartTimer()
		if err := db.Flush(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/series, "ns/series")
}
