package query

import (
	"context"
	"math"
	"testing"
	"time"

	"tidemark/model"
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
				if err := fn(&storage.TrendColumns{Item: id, Type: f.entries[id].ValueType, Trends: []model.Trend{t}}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// TestChart_minutes has hours from 0 on, minutes from hour 2 on and values from hour 4 on, up to hour 5: each stretch of a chart comes
// from the finest that is there and fine enough, and nothing is counted twice.
func TestChart_minutes(t *testing.T) {
	f := &minuteStore{fakeStore: newFakeStore(), minutes: map[model.ItemID][]model.Trend{}}
	gauge := f.item(model.Float, 10*time.Second, "")
	counter := f.item(model.Uint, 10*time.Second, "", model.Label{Name: "type", Value: "counter"})
	bits := math.Float64bits
	for h := range int64(5) {
		f.trends[gauge] = append(f.trends[gauge], model.Trend{At: h * hour, Count: 360, Min: bits(1), Max: bits(3), Sum: 720})
		f.trends[counter] = append(f.trends[counter], model.Trend{At: h * hour, Count: 360, Increase: 3 * 3600})
	}
	for m := int64(120); m < 300; m++ {
		f.minutes[gauge] = append(f.minutes[gauge], model.Trend{At: m * minute, Count: 6, Min: bits(4), Max: bits(6), Sum: 30})
		f.minutes[counter] = append(f.minutes[counter], model.Trend{At: m * minute, Count: 6, Increase: 60 * 7})
	}
	for i := int64(4 * 360); i < 5*360; i++ {
		f.batches[gauge].AppendFloat(gauge, i*10*second, 8)
		f.batches[counter].AppendUint(counter, i*10*second, uint64(i)*90)
	}
	q := New(f, f, Options{Now: func() time.Time { return time.Unix(0, 5*hour+30*second) }})
	f.reads = 0
	c := chart(t, q, 2*hour, 5*hour, 90, gauge, counter) // two minutes a point: minutes do for all of it
	for i, want := range []float64{5, 7} {
		for k, v := range c.Series[i].Avg {
			if v != want {
				t.Errorf("series %d, point %d: %v, expected %v", i, k, v, want)
			}
		}
		if len(c.Series[i].Avg) != 90 || c.Series[i].Trends {
			t.Errorf("series %d: %+v", i, c.Series[i])
		}
	}
	s := chart(t, q, 0, 5*hour, 150, gauge).Series[0] // hours for what is older
	if s.Avg[0] != 2 || s.Avg[len(s.Avg)-1] != 5 || !s.Trends {
		t.Errorf("with hours: %+v", s)
	}
	s = chart(t, q, 3*hour, 5*hour, 1440, gauge).Series[0] // five seconds a point: values, and minutes for what is older
	if s.Avg[0] != 5 || s.Avg[len(s.Avg)-1] != 8 || s.Trends {
		t.Errorf("with values: %+v", s)
	}
	for i := range s.Avg {
		if math.IsNaN(s.Avg[i]) {
			t.Errorf("a gap at %d between minutes", s.At[i])
		}
	}
}
