package dbengine

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
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
		var now atomic.Int64
		now.Store(testBase)
		said := &spy{}
		o := smallOptions()
		o.MinimumAge, o.Logger, o.Now = c.minimum, slog.New(said), now.Load
		o.limits.logBytes, o.limits.logFloorBytes, o.limits.segmentBytes = 512<<10, 128<<10, 32<<10
		o.limits.datafileBytes, o.limits.dirtyBytes, o.DiskSpaceBytes = 64<<10, 8<<10, 1<<20
		o.limits.tick = time.Hour
		db := openTest(t, vfs.NewMem(), o)
		for i := 0; i < 20_000 && db.m.pairsDeleted.Get() == 0; i++ {
			b := &model.Batch{}
			for item := model.ItemID(1); item <= 20; item++ {
				b.AppendUint(item, now.Load(), r.Uint64())
			}
			appendWait(t, db, b)
			now.Add(int64(time.Second))
			if i%16 == 15 {
				db.Release(db.LastLSN())
				db.work(context.Background())
			}
		}
		if db.m.pairsDeleted.Get() == 0 {
			t.Fatalf("%s: no pair was deleted", name)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		has := func(text string) int {
			return slices.IndexFunc(said.lines, func(line string) bool { return strings.Contains(line, text) })
		}
		warned, deleted := has("for the minimum age"), has("delete the oldest pair")
		if got := warned >= 0 && warned < deleted; got != c.want || !c.want && warned >= 0 {
			t.Errorf("%s: warned in line %d, deleted in line %d, expected a warning before: %v", name, warned, deleted, c.want)
		}
	}
}
