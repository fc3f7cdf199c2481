package dbengine

import (
	"context"
	"syscall"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
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
