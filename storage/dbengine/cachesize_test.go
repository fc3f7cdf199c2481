package dbengine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/pagecache"
	"tidemark/storage/storagetest"
)

// cacheLoad writes one kind of values in many pairs and reads them at the same time until the cache has been filled several times.
type cacheLoad struct {
	name  string
	codec string
	text  bool
	value func(r *rand.Rand, item, k int) float64
}

// TestDB_cacheSize compares what the page cache counts with what the heap gives back when it is dropped, after writing and reading at once: constants (small pages,
// where what belongs to a page weighs most), random walks, full mantissas, compressed extents and texts.
func TestDB_cacheSize(t *testing.T) {
	for _, load := range []cacheLoad{
		{name: "constant", value: func(_ *rand.Rand, item, _ int) float64 { return float64(item) }},
		{name: "gauge", value: func(r *rand.Rand, item, k int) float64 { return float64(item+k%50+r.IntN(9)) / 100 }},
		{name: "full mantissas", value: func(r *rand.Rand, _, _ int) float64 { return r.NormFloat64() }},
		{name: "compressed", codec: "zstd:1", value: func(r *rand.Rand, item, k int) float64 { return float64(item+k%50+r.IntN(9)) / 100 }},
		{name: "texts", text: true},
	} {
		t.Run(load.name, func(t *testing.T) { load.run(t) })
	}
}

func (l *cacheLoad) run(t *testing.T) {
	ctx := context.Background()
	const limit, series = 2500 << 10, 2000
	o := smallOptions()
	o.DiskSpaceBytes, o.PageCacheBytes, o.MinuteShare = 1<<30, limit, -1
	o.limits = limitsFor(256 << 20)
	o.limits.tick, o.limits.pageValues, o.limits.datafileBytes, o.limits.tierTick = time.Hour, 128, 1<<20, 0
	if l.codec != "" {
		o.HotCodec = everything(l.codec).Codec
	}
	db, err := Open(ctx, vfs.OS{}, t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var readers sync.WaitGroup
	most := int64(0)
	b := model.NewBatch()
	for k := range 512 {
		b.Reset()
		at := testBase + int64(k)*int64(time.Second)
		for i := range series {
			if l.text {
				b.AppendString(model.ItemID(1+i), at, model.Text, fmt.Sprintf("line %d of %d: %x", k, i, r.Uint64()))
			} else {
				b.AppendFloat(model.ItemID(1+i), at, l.value(r, i, k))
			}
		}
		if _, err := db.Append(ctx, b); err != nil {
			t.Fatal(err)
		}
		if k%64 != 63 {
			continue
		}
		if err := db.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		seed := r.Uint64()
		readers.Go(func() { // while the next ones are written
			r := rand.New(rand.NewPCG(seed, 3))
			for range 300 {
				q := storagetest.All(model.ItemID(1 + r.IntN(series)))
				if err := db.Read(ctx, q, func(*model.Columns) error { return nil }); err != nil {
					t.Error(err)
					return
				}
			}
		})
		most = max(most, db.cache.Stats().UsedBytes)
	}
	readers.Wait()
	b.Free()
	stats := db.cache.Stats()
	with := int64(heap())
	db.cache = pagecache.New(limit)
	held := with - int64(heap())
	// What counts too much is a time column that pages of a group share, and texts beside the numbers that stand for them.
	off := 100 * float64(held-stats.UsedBytes) / float64(stats.UsedBytes)
	t.Logf("%d bytes counted of %d, %d held (%+.1f %%), %d evicted", stats.UsedBytes, limit, held, off, stats.Evictions)
	if most > limit || stats.UsedBytes < limit*90/100 || stats.Evictions == 0 {
		t.Errorf("%d bytes of %d are counted, at most %d; %d evicted", stats.UsedBytes, limit, most, stats.Evictions)
	}
	if off > 2 {
		t.Errorf("the cache holds %d bytes, %.1f %% more than it counts", held, off)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
