package requests

import (
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine"
	"tidemark/wire/sketch"
)

// TestTiers reads latencies from the merged sketches of the engine's tiers: the same as those of the values, for any range while these are there, and for
// whole minutes when they are gone.
func TestTiers(t *testing.T) {
	db, err := dbengine.Open(t.Context(), vfs.NewMem(), "/engine", dbengine.Options{
		DiskSpaceBytes: 1 << 30, PageCacheBytes: 32 << 20, Durability: dbengine.Relaxed, Merge: sketch.AppendMerged,
		Now: func() int64 { return testEnd.UnixNano() },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	h := newHistoryIn(t, db, 12*time.Hour)
	reader, instance := h.store.reader(), h.instance(t)
	if err := db.ClosePair(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.WaitSummedUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := func(n *Names) string { return n.ID }
	for _, length := range []time.Duration{50 * time.Second, 17 * time.Minute, 5 * time.Hour, 11 * time.Hour} {
		for _, shift := range []int64{0, 777, int64(25 * time.Second)} {
			r := model.TimeRange{From: h.end.Add(-length).UnixNano() - shift, To: h.end.UnixNano() - shift}
			want := sumOf(h.shapes, r, id)
			ranking, err := reader.Rank(t.Context(), instance, Question{Group: ByShape, Order: ByP95, Range: r, Limit: 100})
			if err != nil || len(ranking.Rows) != len(want) {
				t.Fatalf("%d shapes over %s, want %d: %v", len(ranking.Rows), length, len(want), err)
			}
			for i := range ranking.Rows {
				if d := differ(&ranking.Rows[i].Sums, want[ranking.Rows[i].ID]); d != "" {
					t.Errorf("%s over %s: %s", ranking.Rows[i].ID, length, d)
				}
			}
			checkProfileOf(t, h, r)
		}
	}
	if _, err := db.FreeOldest("for a test"); err != nil {
		t.Fatal(err)
	}
	for _, length := range []time.Duration{17 * time.Minute, 5 * time.Hour, 11 * time.Hour} {
		r := model.TimeRange{From: h.end.Add(-length).UnixNano(), To: h.end.UnixNano()}
		p, err := reader.Profile(t.Context(), instance, "aa02", r, 60)
		if err != nil {
			t.Fatal(err)
		}
		if want := sumOf(h.shapes, r, id)["aa02"]; p.Latency == nil || !p.Latency.Equal(want.Latency) {
			t.Errorf("over %s the latencies differ once the values are gone", length)
		}
	}
}

// checkProfileOf compares the percentiles of each column with those of what was stored.
func checkProfileOf(t *testing.T, h *history, r model.TimeRange) {
	t.Helper()
	p, err := h.store.reader().Profile(t.Context(), h.instance(t), "aa02", r, 60)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Columns {
		from := p.Start + int64(i)*int64(p.Step)
		column := model.TimeRange{From: max(from, r.From), To: min(from+int64(p.Step), r.To)}
		want := sumOf(h.shapes, column, func(n *Names) string { return n.ID })["aa02"]
		if want == nil {
			continue
		}
		for k, q := range []float64{0.5, 0.95, 0.99, 1} {
			if got := p.Columns[i].Quantiles[k]; got != want.Latency.Quantile(q)/1e9 {
				t.Errorf("column %d of %d, quantile %g: %g, want %g", i, len(p.Columns), q, got, want.Latency.Quantile(q)/1e9)
			}
		}
	}
}
