package query

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/storagetest"
)

// foldStore sums up values besides.
type foldStore struct {
	*fakeStore
	folds int
}

func (f *foldStore) Fold(_ context.Context, q storage.Query, step int64, fn func(*storage.FoldColumns) error) error {
	return storagetest.Fold(f.Read, q, step, func(c *storage.FoldColumns) error {
		f.folds += len(c.Folds)
		return fn(c)
	})
}

// TestChart_fold draws the same with an engine that sums up values: many of them, few in a long range, counters, a gap.
func TestChart_fold(t *testing.T) {
	store := newFakeStore()
	many := store.item(model.Float, time.Second, "")
	few := store.item(model.Float, time.Second, "")
	counter := store.item(model.Uint, time.Second, "B", model.Label{Name: "type", Value: "counter"})
	base := int64(1_700_000_000) * 1e9
	for i := range int64(3000) {
		at := base + i*1e9
		v := float64(i%97) / 4
		if i%50 == 0 {
			v = math.NaN()
		}
		if i < 1000 || i > 1400 {
			store.batches[many].AppendFloat(many, at, v)
		}
		if i%100 == 7 {
			store.batches[few].AppendFloat(few, at, v)
		}
		store.batches[counter].AppendUint(counter, at, uint64(3*i))
	}
	folding := &foldStore{fakeStore: store}
	now := func() time.Time { return time.Unix(0, base+3000e9) }
	request := ChartRequest{Items: []model.ItemID{many, few, counter}, Range: model.TimeRange{From: base + 3e9, To: base + 2900e9}, Points: 100}
	var charts [2]*Chart
	for i, reader := range []Reader{store, folding} {
		var err error
		if charts[i], err = New(reader, store, Options{Now: now}).Chart(context.Background(), request); err != nil {
			t.Fatal(err)
		}
	}
	same := func(a, b []float64) bool {
		return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) })
	}
	for i, want := range charts[0].Series {
		got := charts[1].Series[i]
		if !slices.Equal(got.At, want.At) || !same(got.Avg, want.Avg) || !same(got.Min, want.Min) || !same(got.Max, want.Max) || got.Gathered != want.Gathered {
			t.Errorf("series %d: %+v, expected %+v", i, got, want)
		}
	}
	if folding.folds == 0 || !charts[1].Series[0].Gathered || charts[1].Series[1].Gathered {
		t.Errorf("%d folds, %+v", folding.folds, charts[1].Series)
	}
}
