package catalog

import (
	"context"
	"errors"
	"slices"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
)

// sharedLog is a log that several catalogs use one after the other, as servers on one database do.
type sharedLog struct {
	records [][]byte
	failed  error
}

func (l *sharedLog) Load(_ context.Context, apply func([]byte) error) error {
	for _, r := range l.records {
		if err := apply(r); err != nil {
			return err
		}
	}
	return nil
}

func (l *sharedLog) Append(records [][]byte) error {
	if l.failed != nil {
		return l.failed
	}
	l.records = append(l.records, records...)
	return nil
}

func (l *sharedLog) Rewrite(fill func(func([]byte) error) error) error {
	var all [][]byte
	if err := errors.Join(l.failed, fill(func(r []byte) error { all = append(all, r); return nil })); err != nil {
		return err
	}
	l.records = all
	return nil
}

// TestOpen_shared gives the same items the same ids on the next server, never gives an id again, and takes over the file of a server that was alone.
func TestOpen_shared(t *testing.T) {
	ctx, decl := context.Background(), func(keys ...string) (list []Declaration) {
		for _, k := range keys {
			list = append(list, Declaration{Key: k, ValueType: model.Float})
		}
		return list
	}
	declare := func(c *Catalog, keys ...string) (ids []model.ItemID) {
		t.Helper()
		entries, _, err := c.Declare(ctx, 1, "h", decl(keys...))
		if err != nil {
			t.Fatal(err)
		}
		for i := range entries {
			ids = append(ids, entries[i].ID)
		}
		return ids
	}
	open := func(dir string, l Log) *Catalog {
		t.Helper()
		c, err := Open(ctx, vfs.OS{}, dir, Options{Log: l})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	folder, log := t.TempDir()+"/catalog", &sharedLog{}
	alone := open(folder, nil)
	before := declare(alone, "a", "b")
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	first := open(folder, log)
	if got := declare(first, "a", "b"); !slices.Equal(got, before) {
		t.Errorf("ids %v, expected %v as before", got, before)
	}
	ids := declare(first, "a", "b", "c")
	// A write fails; whether it counts is not known, so the next one writes all anew.
	log.failed = errors.New("away")
	if _, _, err := first.Declare(ctx, 1, "h", decl("d")); !errors.Is(err, log.failed) {
		t.Errorf("declared without its log: %v", err)
	}
	log.failed = nil
	ids = append(ids, declare(first, "d")...)
	second := open(t.TempDir()+"/catalog", log)
	if got := declare(second, "a", "b", "c", "d"); !slices.Equal(got, ids) {
		t.Errorf("the second server has ids %v, expected %v", got, ids)
	}
	if fresh := declare(second, "e"); fresh[0] <= slices.Max(ids) {
		t.Errorf("id %d was given before: %v", fresh[0], ids)
	}
	if _, _, _, err := second.ReadLog(Position{}, 1); err == nil {
		t.Error("a log that is no file can be read as one")
	}
}
