package dbengine

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"tidemark/storage"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/storagetest"
)

// TestDB_thinMergedModel does the same work with two engines. In one of them pairs are merged, re-compressed and thinned in any order, the power is cut
// meanwhile, and snapshots are restored: what stays reads the same in every way, and the hours, minutes and merged values of what was left out too.
func TestDB_thinMergedModel(t *testing.T) {
	thinned, joined := 0, 0
	run := func(t *testing.T, seed uint64) error {
		w := newTwin(t, seed)
		for n := range 24 {
			if err := w.round(n); err != nil {
				return fmt.Errorf("round %d: %w", n, err)
			}
		}
		thinned, joined = thinned+w.thinned, joined+w.joined
		return w.end()
	}
	// With this seed the last hour of a series that had left memory was looked for in a merged pair alone, while it was in the tier.
	if err := run(t, 1796100770243073819); err != nil {
		t.Fatal(err)
	}
	perSeed(t, count(t, "TIDEMARK_MODEL_ROUNDS", 300)/100, run)
	if t.Logf("%d pairs thinned, %d joined", thinned, joined); thinned == 0 || joined == 0 {
		t.Error("not all was done")
	}
}

// TestDB_thinMergedWithoutHours leaves values out while there is a tier of hours, switches that off, and merges what was thinned with what came later: hours
// of both are found.
func TestDB_thinMergedWithoutHours(t *testing.T) {
	w := newTwin(t, 3)
	for w.thinned == 0 {
		if err := errors.Join(w.define(), w.write(), w.settle(), w.thin()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	w.o.HourShare = -1
	w.db = openTest(t, w.fsys, w.o)
	for range 3 {
		if err := errors.Join(w.define(), w.write(), w.settle()); err != nil {
			t.Fatal(err)
		}
	}
	mergeRuns(t, w.db, 1<<20)
	mixed := func(p *pair) bool { return p.tier == header.Raw && p.members > 1 && p.thinned() && !p.lean }
	if !slices.ContainsFunc(w.db.pairs.all(), mixed) {
		t.Fatal("nothing that was thinned was merged")
	}
	if err := errors.Join(w.compare(w.db), w.db.Close(), w.plain.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDB_leanDamage damages the tier of hours beside pairs that lack them: the hours are made again from the values.
func TestDB_leanDamage(t *testing.T) {
	w := newTwin(t, 5)
	for range 8 {
		if err := errors.Join(w.define(), w.write(), w.settle()); err != nil {
			t.Fatal(err)
		}
	}
	mergeRuns(t, w.db, 1<<20)
	var names []string
	for _, p := range w.db.pairs.all() {
		if p.tier == header.Hour {
			names = append(names, "/engine/"+p.id.Name())
		}
	}
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	for k, name := range names {
		b := slices.Clone(content(t, w.fsys, name))
		for at := header.Bytes + 300 + k; at < len(b); at += 400 {
			b[at] ^= 4
		}
		replace(t, w.fsys, name, b)
	}
	w.db = openTest(t, w.fsys, w.o)
	if err := w.compareMade(); err != nil {
		t.Error(err)
	}
	if w.db.m.damagedPages.Get() == 0 {
		t.Error("nothing that was read is damaged")
	}
	if err := errors.Join(w.db.Close(), w.plain.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDB_thinLeanWithoutHours re-compresses while there is a tier of hours, which pairs are written without then, deletes that tier and switches it off, and
// leaves the values of a share out: its hours follow from these values alone, so they are written in their place.
func TestDB_thinLeanWithoutHours(t *testing.T) {
	w := newTwin(t, 9)
	for range 6 {
		if err := errors.Join(w.define(), w.write(), w.settle()); err != nil {
			t.Fatal(err)
		}
	}
	mergeRuns(t, w.db, 24<<10)
	w.remove(w.db, header.Hour)
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	w.o.HourShare = -1
	w.db = openTest(t, w.fsys, w.o)
	for n := 0; w.thinned == 0 && n < 100; n++ {
		if err := errors.Join(w.define(), w.thin()); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.ContainsFunc(w.db.pairs.all(), func(p *pair) bool { return p.lean && p.thinned() }) {
		t.Fatal("no pair without hours was thinned")
	}
	q := storage.Query{Items: leavingItems[:1], Range: storagetest.All().Range}
	if left, all := len(storagetest.Collect(t, w.db, q)), len(storagetest.Collect(t, w.plain, q)); left >= all {
		t.Errorf("%d values of %d are left", left, all)
	}
	if err := w.compare(w.db); err != nil {
		t.Error(err)
	}
	mergeRuns(t, w.db, 1<<20)
	if err := w.compare(w.db); err != nil {
		t.Errorf("merged: %v", err)
	}
	if err := errors.Join(w.db.Close(), w.plain.Close(), noDamage(w.fsys)); err != nil {
		t.Fatal(err)
	}
}
