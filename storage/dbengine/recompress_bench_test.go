package dbengine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/storagetest"
)

// BenchmarkMerge writes series with a value a minute into pairs of half a day each, re-compresses them one by one, and merges them: bytes a value with the
// index, pages a series, and what reading all of a series costs.
func BenchmarkMerge(b *testing.B) {
	const items, days = 2000, 10
	o := tinyOptions()
	o.limits = limitsFor(4 << 30)
	o.limits.tierTick = 0
	o.DiskSpaceBytes, o.PageCacheBytes, o.MinuteShare = 4<<30, 32<<20, -1
	for b.Loop() {
		ctx := context.Background()
		db := openTest(b, vfs.NewMem(), o)
		r := rand.New(rand.NewPCG(1, 2))
		walk := make([]int, items)
		for n := range days * 24 * 60 {
			batch := &model.Batch{}
			for item := range walk {
				walk[item] += r.IntN(101) - 50
				batch.AppendFloat(model.ItemID(item+1), storagetest.Base+int64(n)*int64(time.Minute), float64(walk[item])/100)
			}
			if err := appendAll(db, batch); err != nil {
				b.Fatal(err)
			}
			if n%720 == 719 {
				db.Release(db.LastLSN())
				if err := errors.Join(db.ClosePair(ctx), db.buildTiers(ctx)); err != nil {
					b.Fatal(err)
				}
			}
		}
		report := func(what string) {
			size, pages, values := int64(0), int64(0), uint64(0)
			for _, p := range db.pairs.all() {
				if p.tier == header.Raw {
					size, pages, values = size+p.size+p.journalSize, pages+p.pageCount, values+p.values
				}
			}
			began := time.Now()
			for item := model.ItemID(1); item <= items; item++ {
				if err := db.Read(ctx, storagetest.All(item), func(*model.Columns) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			took := time.Since(began)
			b.ReportMetric(float64(size)/float64(values), "B/value-"+what)
			b.ReportMetric(float64(pages)/items, "pages/series-"+what)
			b.ReportMetric(float64(took.Nanoseconds())/items/1000, "µs/read-"+what)
		}
		report("fresh")
		for _, limit := range []int64{0, 1 << 30} {
			p := everything("none")
			p.ExtentBytes, p.MergeBytes = 0, limit
			if done, err := db.Recompress(ctx, p); err != nil || done.WrittenPairs == 0 || done.SkippedPairs > 0 {
				b.Fatal(fmt.Sprintf("%+v", done), err)
			}
			report(map[int64]string{0: "each", 1 << 30: "merged"}[limit])
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
