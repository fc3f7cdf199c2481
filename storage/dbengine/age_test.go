package dbengine

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
)

// TestDB_minimumAge fills a store: the warning comes before the first pair is deleted, and not when its values are old enough.
func TestDB_minimumAge(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for name, c := range map[string]struct {
		minimum time.Duration
		want    bool
	}{"younger": {24 * time.Hour, true}, "older": {time.Second, false}, "none": {0, false}} {
		now := testBase
		said := &spy{}
		o := smallOptions()
		o.MinimumAge, o.Logger, o.Now = c.minimum, slog.New(said), func() int64 { return now }
		o.limits.logBytes, o.limits.logFloorBytes, o.limits.segmentBytes = 512<<10, 128<<10, 64<<10
		o.limits.datafileBytes, o.DiskSpaceBytes = 24<<10, 1<<20
		o.limits.tick = time.Hour
		db := openTest(t, vfs.NewMem(), o)
		warned := false
		for i := 0; i < 4000 && db.m.pairsDeleted.Get() == 0; i++ {
			b := &model.Batch{}
			for item := model.ItemID(1); item <= 20; item++ {
				b.AppendUint(item, now, r.Uint64())
			}
			appendWait(t, db, b)
			now += int64(time.Second)
			if i%16 == 15 {
				db.Release(db.LastLSN())
				db.work(context.Background())
			}
			warned = warned || db.m.pairsDeleted.Get() == 0 && said.said("minimum age")
		}
		if db.m.pairsDeleted.Get() == 0 {
			t.Fatalf("%s: no pair was deleted", name)
		}
		if warned != c.want {
			t.Errorf("%s: warned %v, expected %v: %q", name, warned, c.want, said.lines)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
