package server

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine"
	"tidemark/storage/dbengine/header"
)

const mergedItems = 20

// mergedStore makes an engine whose pairs were merged and lack the hours that follow from their values.
func mergedStore(t *testing.T, dir string, end int64) {
	t.Helper()
	ctx := context.Background()
	db, err := dbengine.Open(ctx, vfs.OS{}, dir, dbengine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(6) {
		b := model.NewBatch()
		for i := range int64(200) {
			at := end - (6-n)*200*int64(time.Minute) + i*int64(time.Minute)
			for item := range model.ItemID(mergedItems) {
				b.AppendUint(1<<20+item, at, uint64(i*i)%1009+uint64(item))
			}
		}
		if _, err := db.Append(ctx, b); err != nil {
			t.Fatal(err)
		}
		db.Release(db.LastLSN())
		if err := db.ClosePair(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.WaitSummedUp(ctx); err != nil {
		t.Fatal(err)
	}
	done, err := db.Recompress(ctx, dbengine.Recompress{OlderThan: -1 << 60, MergeBytes: 1 << 30})
	if err = errors.Join(err, db.Close()); err != nil || done.JoinedPairs == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
}

// hoursIn are the hours of the items of mergedStore.
func hoursIn(t *testing.T, db *dbengine.DB) (rows []model.Trend) {
	t.Helper()
	for item := range model.ItemID(mergedItems) {
		q := storage.Query{Items: []model.ItemID{1<<20 + item}, Range: model.TimeRange{To: 1 << 62}}
		err := db.Trends(t.Context(), q, func(c *storage.TrendColumns) error {
			rows = append(rows, c.Trends...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// TestFollow_mergedSeed seeds a standby from a primary whose pairs were merged, and merges more while it follows: it gets the same files, and has the same
// values and hours.
func TestFollow_mergedSeed(t *testing.T) {
	data, end := t.TempDir(), (time.Now().Unix()-3600)*int64(time.Second)
	mergedStore(t, filepath.Join(data, "engine"), end)
	first := true
	p := newPair(t, func(o *Options) {
		if first {
			o.Data, first = data, false
		}
	})
	p.until("the standby has the values", p.equal)
	theirs, ours := p.primary.server.engine.(*dbengine.DB), (<-p.opened).engine.(*dbengine.DB)
	names := func(db *dbengine.DB) (list []string) {
		for _, pair := range db.Pairs() {
			if !pair.Open && pair.Tier == header.Raw {
				list = append(list, pair.Name)
			}
		}
		return list
	}
	if want, got := names(theirs), names(ours); !slices.Equal(got, want) || len(got) == 0 || len(got) >= 6 {
		t.Errorf("the standby has the pairs %q, the primary %q", got, want)
	}
	if want, got := hoursIn(t, theirs), hoursIn(t, ours); !reflect.DeepEqual(got, want) || len(got) < 20*mergedItems {
		t.Errorf("%d hours at the standby, %d at the primary", len(got), len(want))
	}
	b := model.NewBatch()
	for i := range int64(30) {
		for item := range model.ItemID(mergedItems) {
			b.AppendUint(1<<20+item, end+i*int64(time.Minute), uint64(i))
		}
	}
	if _, err := theirs.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.Recompress(t.Context(), dbengine.Recompress{OlderThan: -1 << 60, MergeBytes: 1 << 30, Again: true}); err != nil {
		t.Fatal(err)
	}
	p.until("the standby has what came since", func() bool { return p.equal() && reflect.DeepEqual(hoursIn(t, ours), hoursIn(t, theirs)) })
}
