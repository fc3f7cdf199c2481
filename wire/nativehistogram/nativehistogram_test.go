package nativehistogram

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
)

func list(t *testing.T, h *Histogram) string {
	t.Helper()
	var out []string
	if err := h.Buckets(func(le, count float64) error {
		out = append(out, fmt.Sprintf("%g:%g", le, count))
		return nil
	}); err != nil {
		return err.Error()
	}
	return strings.Join(out, " ")
}

func TestBuckets(t *testing.T) {
	f := func(h Histogram, want string) {
		t.Helper()
		if got := list(t, &h); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	f(Histogram{}, "")
	f(Histogram{Schema: 0, Positive: Side{[]Span{{1, 2}, {1, 1}}, []float64{1, 2, 3}}}, "1:0 2:1 4:3 8:3 16:6")
	f(Histogram{Schema: -1, ZeroCount: 2, ZeroThreshold: 0.25, Positive: Side{[]Span{{1, 1}}, []float64{1}}}, "-0.25:0 0.25:2 1:2 4:3")
	f(Histogram{Schema: 0, ZeroCount: 1, Negative: Side{[]Span{{0, 2}}, []float64{5, 7}}, Positive: Side{[]Span{{0, 1}}, []float64{1}}}, "-2:0 -1:7 -0.5:12 0:13 0.5:13 1:14")
	f(Histogram{Schema: CustomSchema, Custom: []float64{1, 5}, Positive: Side{[]Span{{1, 2}}, []float64{3, 9}}}, "1:0 5:3")
	f(Histogram{Schema: CustomSchema, Custom: []float64{5, 1}}, "its bounds do not rise")
	f(Histogram{Schema: CustomSchema, Custom: []float64{1}, Positive: Side{[]Span{{2, 1}}, []float64{3}}}, "it has buckets beyond its 1 bounds")
	f(Histogram{Schema: 30}, "its schema is 30; expected -10 to 20")
	f(Histogram{Positive: Side{[]Span{{0, 3}}, []float64{1}}}, "its spans do not fit its 1 counts")
	f(Histogram{Positive: Side{[]Span{{0, 1}}, []float64{1, 2}}}, "it has 2 counts, and spans for 1")
	f(Histogram{Positive: Side{[]Span{{2000, 1}}, []float64{1}}}, "") // beyond what a number can be
}

// TestBuckets_bounds compares the bounds with Prometheus' own.
func TestBuckets_bounds(t *testing.T) {
	for schema := int32(-4); schema <= 8; schema++ {
		theirs := &histogram.FloatHistogram{Schema: schema, PositiveSpans: []histogram.Span{{Offset: -7, Length: 20}}, PositiveBuckets: make([]float64, 20), Count: 20}
		for i := range theirs.PositiveBuckets {
			theirs.PositiveBuckets[i] = 1
		}
		ours := Histogram{Schema: schema, Positive: Side{[]Span{{-7, 20}}, theirs.PositiveBuckets}}
		bounds := map[float64]float64{}
		if err := ours.Buckets(func(le, count float64) error { bounds[le] = count; return nil }); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for it := theirs.PositiveBucketIterator(); it.Next(); {
			b := it.At()
			sum += b.Count
			found := false
			for le, count := range bounds {
				if math.Abs(le-b.Upper) <= 1e-15*b.Upper {
					found = count == sum
				}
			}
			if !found {
				t.Errorf("schema %d: no bound %g with the count %g in %v", schema, b.Upper, sum, bounds)
			}
		}
	}
}

func FuzzBuckets(f *testing.F) {
	f.Add(int32(3), int32(-5), uint32(4), 0.5, 2.0)
	f.Fuzz(func(t *testing.T, schema, offset int32, length uint32, zero, count float64) {
		h := &Histogram{Schema: schema, ZeroCount: count, ZeroThreshold: zero, Positive: Side{[]Span{{offset, length}, {offset, 1}}, []float64{1, 2, 3}}, Negative: Side{[]Span{{offset, 1}}, []float64{count}}, Custom: []float64{zero, count}}
		last, n := math.Inf(-1), 0
		_ = h.Buckets(func(le, _ float64) error {
			if n++; le <= last || n > MaxBuckets {
				t.Errorf("bound %g behind %g", le, last)
			}
			last = le
			return nil
		})
	})
}
