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
	"tidemark/storage"
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

// TestDB_minimumAgeOfClass has values of two classes in the same pairs: only those of the class whose time is long are too young.
func TestDB_minimumAgeOfClass(t *testing.T) {
	const old = 10 * time.Hour
	for name, c := range map[string]struct {
		classes []Class
		global  time.Duration
		class   uint8 // of the item that has the young values
		want    bool
	}{
		"own and too young":       {[]Class{{}, {MinimumAge: 2 * old}}, time.Hour, 1, true},
		"another's":               {[]Class{{}, {MinimumAge: 2 * old}}, time.Hour, 0, false},
		"own and old enough":      {[]Class{{MinimumAge: 2 * old}, {MinimumAge: time.Hour}}, 0, 1, false},
		"the global one":          {[]Class{{}, {MinimumAge: time.Hour}}, 2 * old, 0, true},
		"shorter than the global": {[]Class{{}, {MinimumAge: time.Hour}}, 2 * old, 1, false},
	} {
		o := smallOptions()
		o.Classes, o.MinimumAge = c.classes, c.global
		var now atomic.Int64
		now.Store(testBase)
		o.Now = now.Load
		db := openTest(t, vfs.NewMem(), o)
		if err := db.Define(context.Background(), []storage.ItemDefinition{{ID: 5, Type: model.Uint, Class: c.class}}); err != nil {
			t.Fatal(err)
		}
		b := &model.Batch{}
		b.AppendUint(5, testBase, 1)
		appendWait(t, db, b)
		if err := db.ClosePair(context.Background()); err != nil {
			t.Fatal(err)
		}
		now.Add(int64(old))
		p := db.nextToGo()
		y, short := db.tooYoung(p)
		if short != c.want || short && (y.age != old || y.minimum != 2*old) {
			t.Errorf("%s: too young %v %+v, expected %v", name, short, y, c.want)
		}
		if _, err := db.FreeOldest("test"); (err != nil) != c.want {
			t.Errorf("%s: free the oldest: %v, expected it to be held: %v", name, err, c.want)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	o := smallOptions()
	o.Classes = []Class{{MinimumAge: -1}}
	if _, err := Open(context.Background(), vfs.NewMem(), "/engine", o); err == nil {
		t.Error("a minimum age below zero is taken")
	}
}
