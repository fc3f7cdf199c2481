package promql

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"tidemark/model"
	"tidemark/query"
	"tidemark/storage"
)

// minuteStore keeps minutes besides values and hours.
type minuteStore struct {
	*fakeStore
	minutes map[model.ItemID][]model.Trend
}

func (f *minuteStore) Minutes(_ context.Context, q storage.Query, fn func(*storage.TrendColumns) error) error {
	for _, id := range q.Items {
		for _, t := range f.minutes[id] {
			if q.Range.Contains(t.At) {
				if err := fn(&storage.TrendColumns{Item: id, Type: f.columns[id].Type, Trends: []model.Trend{t}}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// TestTrends_minutes asks for times that only minutes, and before them only hours hold.
func TestTrends_minutes(t *testing.T) {
	store := &minuteStore{fakeStore: agedStore(), minutes: map[model.ItemID][]model.Trend{}}
	gauge, counter := model.ItemID(1), model.ItemID(2)
	for m := int64(24 * 60); m < 48*60; m++ {
		store.minutes[gauge] = append(store.minutes[gauge], model.Trend{At: m * 60e9, Count: 6, Min: math.Float64bits(-1), Max: math.Float64bits(400), Sum: float64(m%10) * 6})
		store.minutes[counter] = append(store.minutes[counter], model.Trend{At: m * 60e9, Count: 6, Increase: 120})
	}
	e := New(query.New(store, store, query.Options{Now: func() time.Time { return time.Unix(4*day, 0) }}), Options{})
	for _, c := range []struct {
		text string
		at   float64
		want string
	}{
		{"gauge", 40*3600 + 5*60, `{__name__="gauge"} => 4`}, // the minute that ended
		{"max_over_time(gauge[10m])", 40 * 3600, `{} => 400`},
		{"min_over_time(gauge[6h])", 40 * 3600, `{} => -1`},
		{"round(rate(counter[10m]), 0.001)", 40 * 3600, `{} => 2`},
		{"round(increase(counter[1h]))", 40 * 3600, `{} => 7200`},
		{"max_over_time(gauge[2h])", 20 * 3600, `{} => 359`},
		{"round(rate(counter[4h]), 0.001)", 26 * 3600, `{} => 1.5`}, // two hours of hours, two of minutes
	} {
		got, _, _ := strings.Cut(instant(t, e, c.text, c.at), " @")
		if got != c.want {
			t.Errorf("%s at %v: got %q, want %q", c.text, c.at, got, c.want)
		}
	}
}
