package dbengine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/snapshot"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/storagetest"
)

// shots takes snapshots of a twin whose files are on a real disk: each since the one before, and each copied since the copy before, as over a network.
type shots struct {
	*twin
	engine, dir   string
	linked, moved *snapshot.Folder
	digests       map[*snapshot.Folder]Digest
	fetched       int
}

func newShots(t *testing.T) *shots {
	o := tinyOptions()
	o.Merge = addSums
	o.limits.logFloorBytes = 32 << 10
	s := &shots{
		twin:   &twin{t: t, r: rand.New(rand.NewPCG(7, 11)), o: o, clock: storagetest.Base, plain: openTest(t, vfs.NewMem(), o)},
		engine: filepath.Join(t.TempDir(), "engine"), dir: t.TempDir(), digests: map[*snapshot.Folder]Digest{},
	}
	s.open()
	return s
}

func (s *shots) open() {
	s.t.Helper()
	db, err := Open(context.Background(), vfs.OS{}, s.engine, s.o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.db = db
}

// take takes a snapshot and copies it.
func (s *shots) take(name string) error {
	ctx := context.Background()
	w, err := snapshot.Create(filepath.Join(s.dir, name), s.linked)
	if err != nil {
		return err
	}
	var taken *snapshot.Folder
	link := func(f Frozen) error { return w.Link(ctx, filepath.Join(s.engine, f.Name), "engine/"+f.Name, f.Bytes) }
	_, err = s.db.Freeze(ctx, link, func(lsn model.LSN) error {
		taken, err = w.Commit("test", uint64(lsn), time.Unix(1_700_000_000, 0))
		return err
	})
	if err != nil {
		return err
	}
	whole, err := taken.WithTails()
	if err != nil {
		return err
	}
	if w, err = snapshot.Create(filepath.Join(s.dir, name+"-copy"), s.moved); err != nil {
		return err
	}
	s.fetched = 0
	for i := range whole.Files {
		f := &whole.Files[i]
		err := w.Fetch(ctx, *f, func() (io.ReadCloser, error) {
			s.fetched++
			return taken.Open(ctx, f)
		})
		if err != nil {
			return err
		}
	}
	copied, err := w.Commit("test", whole.LSN, whole.CreatedAt)
	if err != nil {
		return err
	}
	s.linked, s.moved = taken, copied
	for _, f := range []*snapshot.Folder{taken, copied} {
		if s.digests[f], err = s.db.Digest(ctx, storagetest.All().Range); err != nil {
			return err
		}
		if err := s.restore(f, true); err != nil {
			return fmt.Errorf("%s: %w", f.Manifest().Name, err)
		}
	}
	return nil
}

// restore verifies a snapshot, restores it, and compares what the copy answers: its digest, and if now is set everything.
func (s *shots) restore(f *snapshot.Folder, now bool) error {
	ctx := context.Background()
	if list, err := snapshot.Verify(ctx, f, nil); err != nil || len(list) > 0 {
		return fmt.Errorf("verify: %v, %w", list, err)
	}
	findings, err := Check(snapshot.NewView(f, "engine"), "engine", nil)
	for _, d := range findings {
		if d.Damage {
			err = errors.Join(err, errors.New(d.String()))
		}
	}
	if err != nil {
		return err
	}
	back := filepath.Join(s.t.TempDir(), "back")
	if err := snapshot.Restore(ctx, f, back, nil); err != nil {
		return err
	}
	db, err := Open(ctx, vfs.OS{}, filepath.Join(back, "engine"), s.o)
	if err != nil {
		return err
	}
	got, err := db.Digest(ctx, storagetest.All().Range)
	if want := s.digests[f]; err == nil && got != want {
		err = fmt.Errorf("restored it has %d values with digest %v, expected %d with %v", got.Values, got, want.Values, want)
	}
	if err == nil && now {
		err = s.compare(db)
	}
	return errors.Join(err, db.Close())
}

// pairs counts the closed pairs of values of a kind.
func (s *shots) pairs(is func(*pair) bool) (n int) {
	for _, p := range s.db.pairs.all() {
		if p.tier == header.Raw && is(p) {
			n++
		}
	}
	return n
}

// TestDB_snapshotMerged takes snapshots, each an increment of the one before, while pairs are merged, lose the hours that follow from their values, and are
// thinned, in each order: all are whole when they are taken and at the end, and are restored to the same answers.
func TestDB_snapshotMerged(t *testing.T) {
	s := newShots(t)
	write := func() error {
		for range 3 {
			if err := errors.Join(s.define(), s.write(), s.settle()); err != nil {
				return err
			}
		}
		return nil
	}
	merge := func() error { mergeRuns(t, s.db, 1<<20); return nil }
	thin := func() error {
		for n, before := 0, s.thinned; s.thinned == before; n++ {
			if err := errors.Join(s.define(), s.write(), s.settle(), s.thin()); err != nil || n > 100 { // the log must have let go of a pair
				return errors.Join(err, fmt.Errorf("%d rounds thinned %d pairs", n, s.thinned-before))
			}
		}
		return nil
	}
	reopen := func() error { err := s.db.Close(); s.open(); return errors.Join(err, s.define()) }
	var all []*snapshot.Folder
	for i, steps := range [][]func() error{{write}, {thin}, {write, merge}, {thin}, {reopen, write}, {merge, write}} {
		for _, step := range steps {
			if err := step(); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
		if err := s.take(fmt.Sprint("snap-", i)); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if files := len(s.moved.Manifest().Files); i == 4 && s.fetched >= files {
			t.Errorf("all %d files were copied again", files)
		}
		all = append(all, s.linked, s.moved)
	}
	joined := func(p *pair) bool { return p.members > 1 && p.lean && p.thinned() }
	if s.pairs(joined) == 0 || s.pairs(func(p *pair) bool { return !p.thinned() }) == 0 {
		t.Error("no pair was merged, thinned and without hours, or all were")
	}
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(s.engine); err != nil { // snapshots are whole without the store
		t.Fatal(err)
	}
	for _, f := range all {
		if err := s.restore(f, false); err != nil {
			t.Errorf("at the end %s: %v", f.Manifest().Name, err)
		}
	}
	anew := func(f snapshot.File) bool {
		id, _, ok := datafile.ParseName(filepath.Base(f.Path))
		return ok && id.Generation > coldGeneration(generation)
	}
	if !slices.ContainsFunc(s.linked.Manifest().Files, anew) {
		t.Error("no file of a pair that was merged and thinned is in the last snapshot")
	}
	if err := s.plain.Close(); err != nil {
		t.Fatal(err)
	}
}
