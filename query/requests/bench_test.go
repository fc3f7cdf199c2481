package requests

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine"
	"tidemark/wire/sketch"
)

// BenchmarkRank ranks 2,000 shapes of one instance over 15 minutes and over an hour. Of the shapes a tenth is busy in every interval, the others in one of
// twenty, as in a capture of a shop's server; "full" has all of them in every interval.
func BenchmarkRank(b *testing.B) {
	for _, load := range []struct {
		name string
		rare int
	}{{"usual", 20}, {"full", 1}} {
		store, now := benchStore(b, load.rare)
		reader := store.reader()
		instance, err := reader.Instance("db 1/" + testAddress)
		if err != nil {
			b.Fatal(err)
		}
		for _, length := range []time.Duration{15 * time.Minute, time.Hour} {
			for _, q := range []Question{{Group: ByShape, Order: ByLoad}, {Group: ByShape, Order: ByP95}, {Group: ByCollection, Order: ByLoad}} {
				b.Run(fmt.Sprintf("%s/%s/%s-by-%s", load.name, length, q.Group, q.Order), func(b *testing.B) {
					q.Range = model.TimeRange{From: now.Add(-length).UnixNano(), To: now.UnixNano()}
					q.Limit, q.Slices = 100, 30
					for b.Loop() {
						r, err := reader.Rank(b.Context(), instance, q)
						if err != nil {
							b.Fatal(err)
						}
						if q.Group == ByShape && r.Found != 2000 {
							b.Fatalf("%d shapes, want 2,000", r.Found)
						}
					}
				})
			}
		}
	}
}

func benchStore(b *testing.B, rare int) (*testStore, time.Time) {
	b.Helper()
	engine, err := dbengine.Open(b.Context(), vfs.OS{}, b.TempDir(), dbengine.Options{DiskSpaceBytes: 2 << 30, PageCacheBytes: 256 << 20, Durability: dbengine.Relaxed})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = engine.Close() })
	now := time.Now().Truncate(time.Minute)
	s := newTestStore(b, engine, now)
	instance := s.declareInstance()
	shapes := make([][]model.ItemID, 2000)
	var defs []storage.ItemDefinition
	for i := range shapes {
		shapes[i] = s.declareShape(fmt.Sprintf("%016x", i*7919), fmt.Sprintf("c%d", i%60), []string{"find", "update", "aggregate"}[i%3])
	}
	for _, ids := range append(shapes, instance) {
		for m, id := range ids {
			t := model.Uint
			if m == int(timeMeasure) {
				t = model.Float
			} else if m == int(latencyMeasure) {
				t = model.Binary
			}
			defs = append(defs, storage.ItemDefinition{ID: id, Type: t, Group: 1, Share: 1})
		}
	}
	if err := engine.Define(b.Context(), defs); err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for n := 359; n >= 0; n-- {
		at := now.Add(-time.Duration(n) * testInterval).UnixNano()
		total := &Sums{Latency: new(sketch.Sketch)}
		for i, ids := range shapes {
			if i%10 != 0 && random.IntN(rare) != 0 && n != 0 {
				continue
			}
			sums := randomSums(random, 1+random.IntN(20), 2e6)
			total.Add(sums)
			s.put(ids, at, sums)
		}
		s.put(instance, at, total)
		s.flush()
	}
	return s, now
}
