package dbengine

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/storagetest"
)

// TestFollow_thinnedSeed seeds a follower from a snapshot whose pairs lack the values of a share that had too much, and thins more while it follows: of the
// other share the follower has exactly what its primary has, and of that one no less; what the log still has of it may come back.
func TestFollow_thinnedSeed(t *testing.T) {
	ctx := context.Background()
	h := newHistory(rand.New(rand.NewPCG(5, 6)))
	fsys := vfs.NewMem()
	primary := openTest(t, fsys, tinyOptions())
	defer primary.Close()
	if err := defineLossy(primary); err != nil {
		t.Fatal(err)
	}
	write := func(db *DB, batches int) {
		t.Helper()
		for range batches {
			if err := appendAll(db, h.batch()); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(db.ClosePair(ctx), db.buildTiers(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	thin := func() {
		t.Helper()
		if n, err := thinAll(primary, 2); err != nil || n == 0 {
			t.Fatalf("%d pairs thinned, %v", n, err)
		}
	}
	write(primary, 30)
	thin()
	files := map[string]int64{}
	if err := fsys.MkdirAll("/seed"); err != nil {
		t.Fatal(err)
	}
	at, err := primary.Freeze(ctx, linkInto(fsys, "/seed", files), nil)
	if err != nil {
		t.Fatal(err)
	}
	standby := openTest(t, restoreFrom(t, fsys, "/seed", files), tinyOptions())
	defer standby.Close()
	same := func(what string) {
		t.Helper()
		one, two := shareDigest(t, primary, false), shareDigest(t, standby, false)
		if one != two || one.Values == 0 {
			t.Errorf("%s: of the other share the standby has %v of %d values, its primary %v of %d", what, two, two.Values, one, one.Values)
		}
		if one, two := shareDigest(t, primary, true), shareDigest(t, standby, true); two.Values < one.Values {
			t.Errorf("%s: of the share that gave values the standby has %d, its primary %d", what, two.Values, one.Values)
		}
	}
	same("seeded")
	for range 40 {
		if err := appendAll(primary, h.batch()); err != nil {
			t.Fatal(err)
		}
	}
	at = follow(t, primary, at, standby, 10_000)
	same("followed")
	before := shareDigest(t, standby, true)
	if err := errors.Join(primary.ClosePair(ctx), primary.buildTiers(ctx)); err != nil {
		t.Fatal(err)
	}
	thin()
	follow(t, primary, at, standby, 10_000)
	same("thinned while it is followed")
	if after := shareDigest(t, standby, true); after != before {
		t.Errorf("%d values of the standby became %d when its primary gave some up", before.Values, after.Values)
	}
}

// shareDigest sums up the values of the items that the tests leave out, or of all others.
func shareDigest(t *testing.T, db *DB, lossy bool) (d Digest) {
	t.Helper()
	for _, id := range crashItems {
		if lossyItems[id] != lossy {
			continue
		}
		if err := db.Read(context.Background(), storagetest.All(id), func(c *model.Columns) error { d.Add(c); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return d
}
