package postgres

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/memory"
	"tidemark/storage/storagetest"
	"tidemark/trendcache"
)

// TestDB_trendcache keeps hours through the trends cache, with late values and a restart, and compares them with those that the plain
// engine makes of the same values.
func TestDB_trendcache(t *testing.T) {
	var clock atomic.Int64
	clock.Store(storagetest.Base)
	dsn := shared.database(t)
	o := testOptions(t, Partitions, t.TempDir())
	o.Now, o.Classes = clock.Load, nil
	db := open(t, dsn, o)
	plain := memory.New(memory.Options{})
	cache := trendcache.New(trendcache.Options{Engine: db, Now: o.Now})
	r := rand.New(rand.NewPCG(1, 1))
	ctx := context.Background()
	for hour := range 8 {
		for range 12 {
			b, same := &model.Batch{}, &model.Batch{}
			for item := model.ItemID(1); item <= 6; item++ {
				at := clock.Load()
				if r.IntN(6) == 0 {
					at -= r.Int64N(3 * storage.Hour)
				}
				for _, b := range []*model.Batch{b, same} {
					if item%2 == 0 {
						b.AppendUint(item, at, 1<<63+uint64(at))
					} else {
						b.AppendFloat(item, at, float64(at%1000)/8)
					}
				}
			}
			storagetest.Append(t, db, b)
			cache.Add(b)
			if _, err := plain.Append(ctx, same); err != nil {
				t.Fatal(err)
			}
			clock.Add(int64(5 * time.Minute))
		}
		if hour == 4 { // the process ends without having written the last hour
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = open(t, dsn, o)
			cache = trendcache.New(trendcache.Options{Engine: db, Now: o.Now})
			if err := db.Replay(ctx, 0, func(_ model.LSN, b *model.Batch) error { cache.AddLate(b); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		clock.Add(int64(2 * time.Minute))
		if hour != 3 {
			if err := cache.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
		clock.Add(-int64(2 * time.Minute))
	}
	if text, err := pgtest.Exec(dsn, "SELECT count(*) FROM trends_c0; SELECT count(*) FROM trends_uint_c0"); err != nil || len(text) < 4 {
		t.Errorf("stored hours: %q, %v", text, err)
	}
	for item := model.ItemID(1); item <= 6; item++ {
		var got, want []model.Trend
		collect := func(into *[]model.Trend) func(*storage.TrendColumns) error {
			return func(c *storage.TrendColumns) error { *into = append(*into, c.Trends...); return nil }
		}
		if err := db.Trends(ctx, storagetest.All(item), collect(&got)); err != nil {
			t.Fatal(err)
		}
		if err := plain.Trends(ctx, storagetest.All(item), collect(&want)); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("item %d has %d hours, expected %d", item, len(got), len(want))
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("item %d hour %d: %+v\nexpected %+v", item, i, got[i], want[i])
			}
		}
	}
}
