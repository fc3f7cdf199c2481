package query

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"tidemark/model"
)

const second = int64(time.Second)

func chart(t *testing.T, q *Querier, from, to int64, points int, ids ...model.ItemID) *Chart {
	t.Helper()
	c, err := q.Chart(t.Context(), ChartRequest{Items: ids, Range: model.TimeRange{From: from, To: to}, Points: points})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// equal compares floats, taking NaN as equal to NaN and allowing rounding.
func equal(got, want []float64) bool {
	return slices.EqualFunc(got, want, func(a, b float64) bool {
		return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*math.Abs(b)
	})
}

func TestChart_everyValueAndGaps(t *testing.T) {
	f := newFakeStore()
	known := f.item(model.Float, time.Second, "%")
	unknown := f.item(model.Uint, 0, "")
	for _, s := range []int64{0, 1, 2, 10, 11} {
		f.batches[known].AppendFloat(known, s*second, float64(s))
	}
	for _, s := range []int64{0, 5, 10} {
		f.batches[unknown].AppendUint(unknown, s*second, 7)
	}
	c := chart(t, newTestQuerier(f, time.Unix(20, 0), Options{}), 0, 20*second, 100, known, unknown, 99)
	if len(c.Series) != 2 {
		t.Fatalf("%d series", len(c.Series))
	}
	s := c.Series[0]
	if s.Gathered || s.Trends || s.Rate || s.Units != "%" || s.Min != nil || !equal(s.Avg, []float64{0, 1, 2, math.NaN(), 10, 11}) {
		t.Errorf("got %+v", s)
	}
	if !slices.IsSorted(s.At) || len(s.At) != 6 || s.At[4] != 10*second {
		t.Errorf("times %v", s.At)
	}
	if s = c.Series[1]; !equal(s.Avg, []float64{7, 7, 7}) {
		t.Errorf("regular values of an unknown interval have gaps: %+v", s)
	}
}

func TestChart_steps(t *testing.T) {
	f := newFakeStore()
	id := f.item(model.Float, time.Second, "")
	for i := range int64(100) {
		if i < 40 || i >= 60 {
			f.batches[id].AppendFloat(id, i*second, float64(i))
		}
	}
	c := chart(t, newTestQuerier(f, time.Unix(200, 0), Options{}), 0, 100*second, 10, id)
	s := c.Series[0]
	nan := math.NaN()
	if !s.Gathered || c.StepNanos != 10*second ||
		!equal(s.Avg, []float64{4.5, 14.5, 24.5, 34.5, nan, 64.5, 74.5, 84.5, 94.5}) ||
		!equal(s.Min, []float64{0, 10, 20, 30, nan, 60, 70, 80, 90}) || !equal(s.Max, []float64{9, 19, 29, 39, nan, 69, 79, 89, 99}) {
		t.Errorf("step %d: %+v", c.StepNanos, s)
	}
	if want := []int64{0, 10, 20, 30, 40, 60, 70, 80, 90}; len(s.At) != len(want) || s.At[5] != 60*second {
		t.Errorf("times %v", s.At)
	}
}

func TestChart_counterRate(t *testing.T) {
	f := newFakeStore()
	id := f.item(model.Uint, 10*time.Second, "B", model.Label{Name: "type", Value: "counter"})
	big := uint64(1) << 63
	for i, v := range []uint64{big, big + 20, big + 40, 5, 25} {
		f.batches[id].AppendUint(id, int64(i)*10*second, v)
	}
	q := newTestQuerier(f, time.Unix(200, 0), Options{})
	s := chart(t, q, 10*second, 50*second, 100, id).Series[0]
	if !s.Rate || s.Units != "B/s" || !equal(s.Avg, []float64{2, 2, 0.5, 2}) || s.At[0] != 10*second {
		t.Errorf("got %+v", s)
	}
	// Gathered rates are weighted with the time that they cover.
	s = chart(t, q, 10*second, 50*second, 2, id).Series[0]
	if !s.Gathered || !equal(s.Avg, []float64{2, 1.25}) || !equal(s.Min, []float64{2, 0.5}) {
		t.Errorf("gathered %+v", s)
	}
	// Nobody knows what a counter did in a long silence.
	f.batches[id].AppendUint(id, 4000*second, 1000)
	f.batches[id].AppendUint(id, 4010*second, 1010)
	s = chart(t, q, 0, 5000*second, 100, id).Series[0]
	if last := s.Avg[len(s.Avg)-1]; last != 1 || len(s.Avg) != 6 {
		t.Errorf("after silence: %+v", s)
	}
}

// trend is one hour of a gauge.
func trend(h int64, low, avg, high float64) model.Trend {
	return model.Trend{At: h * hour, Count: 10, Min: math.Float64bits(low), Max: math.Float64bits(high), Sum: avg * 10, Increase: 7200}
}

func TestChart_trends(t *testing.T) {
	f := newFakeStore()
	id := f.item(model.Float, time.Minute, "")
	for h := range int64(100) {
		f.trends[id] = append(f.trends[id], trend(h, 1, 2, 3))
	}
	for i := range int64(30) {
		f.batches[id].AppendFloat(id, 100*hour+i*60*second, 8)
	}
	q := newTestQuerier(f, time.Unix(0, 100*hour+1800*second), Options{})
	s := chart(t, q, 0, 102*hour, 51, id).Series[0]
	if !s.Trends || !s.Gathered || len(s.Avg) != 51 || s.Avg[0] != 2 || s.Min[0] != 1 || s.Max[0] != 3 || s.Avg[50] != 8 {
		t.Errorf("got %+v", s)
	}
	// A short step where the history has lost the older half.
	s = chart(t, q, 98*hour, 101*hour, 90, id).Series[0]
	if !s.Trends || len(s.Avg) < 17 || s.Avg[0] != 2 || s.Avg[1] != 2 || s.Avg[len(s.Avg)-1] != 8 {
		t.Errorf("got %+v", s)
	}
}

func TestChart_counterTrends(t *testing.T) {
	f := newFakeStore()
	id := f.item(model.Float, time.Minute, "", model.Label{Name: "type", Value: "counter"})
	for h := range int64(100) {
		hourly := trend(h, 1, 2, 3)
		hourly.Count = 60
		f.trends[id] = append(f.trends[id], hourly)
	}
	// The first hour began late, and the running one is not over.
	f.trends[id][0].Count, f.trends[id][0].Increase = 30, 3600
	f.trends[id][99].Count, f.trends[id][99].Increase = 2, 240
	for i := range int64(2) {
		f.batches[id].AppendFloat(id, 99*hour+i*60*second, float64(i)*120)
	}
	q := newTestQuerier(f, time.Unix(0, 99*hour+120*second), Options{})
	s := chart(t, q, 0, 100*hour, 100, id).Series[0]
	if len(s.Avg) != 100 || s.Avg[0] != 2 || s.Avg[7] != 2 || s.Avg[99] != 2 || s.Units != "/s" {
		t.Errorf("got %+v", s)
	}
}

func TestChart_refuses(t *testing.T) {
	q := newTestQuerier(newFakeStore(), time.Unix(0, 0), Options{})
	for _, r := range []ChartRequest{
		{Range: model.TimeRange{From: 0, To: 1}},
		{Range: model.TimeRange{From: 0, To: 1}, Points: 4001},
		{Range: model.TimeRange{From: 1, To: 1}, Points: 1},
		{Range: model.TimeRange{From: math.MinInt64, To: math.MaxInt64}, Points: 1},
		{Range: model.TimeRange{From: 0, To: 1}, Points: 1, Items: make([]model.ItemID, 201)},
	} {
		var limit *LimitError
		if _, err := q.Chart(t.Context(), r); !errors.As(err, &limit) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func BenchmarkChart(b *testing.B) {
	f := newFakeStore()
	id := f.item(model.Float, time.Second, "")
	for i := range int64(86_400) {
		f.batches[id].AppendFloat(id, i*second, float64(i))
	}
	q := newTestQuerier(f, time.Unix(86_400, 0), Options{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := q.Chart(b.Context(), ChartRequest{Items: []model.ItemID{id}, Range: model.TimeRange{To: 86_400 * second}, Points: 1000}); err != nil {
			b.Fatal(err)
		}
	}
}
