package promql

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"

	"tidemark/model"
	"tidemark/query"
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

// TestFold compares what queries give with and without an engine that sums up values.
func TestFold(t *testing.T) {
	plainStore := newFakeStore()
	r := rand.New(rand.NewPCG(1, 1))
	gauge := plainStore.item(seriesName("gauge"), model.Float, time.Second)
	counter := plainStore.item(seriesName("counter"), model.Uint, time.Second)
	scraped := plainStore.item(seriesName("scraped"), model.Float, time.Second) // with stale markers
	crowded := plainStore.item(seriesName("crowded"), model.Float, time.Second) // with several values in one millisecond
	for i := range int64(7200) {
		if i%1000 > 900 {
			continue // a gap
		}
		plainStore.add(gauge, i*1e9, math.Float64bits(float64(r.IntN(1000))/8))
		plainStore.add(counter, i*1e9+r.Int64N(1e9), uint64(i*i))
		v := float64(i)
		if i%500 == 0 {
			v = math.Float64frombits(value.StaleNaN)
		}
		plainStore.add(scraped, i*1e9, math.Float64bits(v))
		plainStore.add(crowded, i*1e9, math.Float64bits(float64(i)))
		plainStore.add(crowded, i*1e9+1, math.Float64bits(float64(2*i)))
	}
	folding := &foldStore{fakeStore: plainStore}
	engine := func(store query.Reader) *Engine {
		return New(query.New(store, plainStore, query.Options{Now: func() time.Time { return time.Unix(7200, 0) }}), Options{})
	}
	want, got := engine(plainStore), engine(folding)
	for _, function := range []string{"min", "max", "sum", "avg", "last", "count", "stddev", "present", "absent"} {
		for _, name := range []string{"gauge", "counter", "scraped", "crowded"} {
			for _, form := range []string{"%s_over_time(%s[5m])", "%s_over_time(%s[1m] offset 7s)", "sum(%s_over_time(%s[10m]))", "%s_over_time(%s[5m] @ 3000)", "max_over_time(%s_over_time(%s[1m])[5m:20s])"} {
				text := fmt.Sprintf(form, function, name)
				for _, at := range []float64{300, 3600.5, 7199} {
					if a, b := instant(t, got, text, at), instant(t, want, text, at); a != b {
						t.Errorf("%s at %v: %s, expected %s", text, at, a, b)
					}
				}
				for _, step := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 7 * time.Minute} {
					request := Request{Text: text, From: time.Unix(600, 3e6), To: time.Unix(7000, 0), Step: step}
					if a, b := ranged(t, got, request), ranged(t, want, request); a != b {
						t.Errorf("%s every %v: %.300s, expected %.300s", text, step, a, b)
					}
				}
			}
		}
	}
	if folding.folds < 10_000 {
		t.Errorf("%d folds: the engine was not asked", folding.folds)
	}
}

func ranged(t *testing.T, e *Engine, r Request) string {
	t.Helper()
	out := ""
	err := e.Query(t.Context(), r, func(r *promql.Result) error {
		out = r.String()
		return r.Err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
