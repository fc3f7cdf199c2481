package bench

import (
	"context"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkRun runs the workload for go test's profilers: writes, cached reads, both.
func BenchmarkRun(b *testing.B) {
	for _, kind := range Kinds {
		for name, who := range map[string][2]int{"write": {1, 0}, "read": {0, 1}, "mixed": {1, 1}, "write2": {2, 0}, "mixed2": {2, 2}} {
			b.Run(kind+"/"+name, func(b *testing.B) {
				for b.Loop() {
					r, err := Run(context.Background(), Options{
						Metrics: 4096, Writers: who[0], Readers: who[1], CacheBytes: 1 << 30, Duration: 3 * time.Second,
						Values: kind, Dir: filepath.Join(b.TempDir(), "engine"),
					})
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(r.PointsPerCore/1e6, "M/s/core")
					b.ReportMetric(r.AppendP999, "ms/append-p99.9")
				}
			})
		}
	}
}
