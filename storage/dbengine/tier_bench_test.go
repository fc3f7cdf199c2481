package dbengine

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
)

// BenchmarkTiers sums up a pair of an hour and more of random walks with two decimals, one in ten of which varies: CPU a value, and bytes of each
// tier for a value.
//
//	go test -run xxx -bench 'BenchmarkTiers|BenchmarkStopped' -benchtime 1x ./storage/dbengine
func BenchmarkTiers(b *testing.B) {
	for _, kind := range []struct {
		name  string
		every int
	}{{"varying", 1}, {"one in ten varies", 10}} {
		b.Run(kind.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				o := smallOptions()
				o.limits = limitsFor(8 << 30)
				o.limits.tierTick = 0
				o.DiskSpaceBytes, o.PageCacheBytes = 8<<30, 64<<20
				db := openTest(b, vfs.NewMem(), o)
				values := walks(b, db, 400, kind.every, 8192)
				b.StartTimer()
				start := cpuNanos(b)
				if err := db.buildTiers(context.Background()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(cpuNanos(b)-start)/float64(values), "cpu-ns/value")
				for _, p := range db.pairs.all() {
					b.ReportMetric(float64(p.size+p.journalSize)/float64(values), "B/value-"+p.tier.String())
				}
				if err := db.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// walks appends so many seconds of values of which one in every varies, and closes the pair.
func walks(b *testing.B, db *DB, series, every, seconds int) int {
	r := rand.New(rand.NewPCG(1, 1))
	at := make([]int64, series)
	for s := range seconds {
		batch := &model.Batch{}
		for i := range at {
			if i%every == 0 {
				at[i] += int64(r.IntN(41) - 20)
			}
			batch.AppendFloat(model.ItemID(i+1), testBase+int64(s)*int64(time.Second), float64(at[i]+5000)/100)
		}
		if _, err := db.Append(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	closeAll(b, db)
	return series * seconds
}

func closeAll(b *testing.B, db *DB) {
	if err := db.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
	db.flushing.Lock()
	db.closePair()
	db.flushing.Unlock()
}

// BenchmarkStopped measures the memory of series that stopped and whose values are in closed pairs, before they leave memory and after.
func BenchmarkStopped(b *testing.B) {
	const series = 200_000
	for b.Loop() {
		now := testBase
		o := smallOptions()
		o.limits = limitsFor(8 << 30)
		o.limits.tierTick = 0
		o.DiskSpaceBytes, o.PageCacheBytes = 8<<30, 64<<20
		o.Now = func() int64 { return now }
		before := heap()
		db, err := Open(context.Background(), vfs.OS{}, b.TempDir(), o)
		if err != nil {
			b.Fatal(err)
		}
		for range 10 {
			batch := &model.Batch{}
			for i := range series {
				batch.AppendUint(model.ItemID(i+1), now, uint64(i))
			}
			if _, err := db.Append(context.Background(), batch); err != nil {
				b.Fatal(err)
			}
			now += int64(time.Second)
		}
		closeAll(b, db)
		db.cache.Forget(1)
		kept := heap()
		now += int64(time.Hour)
		db.work(context.Background())
		b.ReportMetric(float64(kept-before)/series, "B/series-kept")
		b.ReportMetric(float64(int64(heap())-int64(before))/series, "B/series-stopped")
		runtime.KeepAlive(db)
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
