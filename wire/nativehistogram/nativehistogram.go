// Package nativehistogram turns histograms with exponential buckets into classic ones: counts up to bounds. The bounds are those of the
// buckets that are there, so nothing is lost but how values lie inside of a bucket.
//
// Sources: Prometheus' remote write 1.0 and 2.0 (message Histogram), OpenTelemetry's data model ("ExponentialHistogram").
package nativehistogram

import (
	"errors"
	"fmt"
	"math"
)

// MaxBuckets bounds the buckets of one histogram; senders keep to 160 or so.
const MaxBuckets = 4096

// CustomSchema is the schema of buckets whose bounds come with the histogram.
const CustomSchema = -53

// Span is a run of buckets: Offset lies between the end of the run before, or zero for the first, and its start.
type Span struct {
	Offset int32
	Length uint32
}

// Side are the buckets of one sign.
type Side struct {
	Spans  []Span
	Counts []float64
}

// Histogram is a native histogram. Bucket i of the positive side has the values above base^(i-1) and up to base^i, with base = 2^(2^-Schema).
type Histogram struct {
	Schema                               int32
	Count, Sum, ZeroCount, ZeroThreshold float64
	Positive, Negative                   Side
	// Custom are the bounds of CustomSchema.
	Custom []float64
}

// bucket is one with its index.
type bucket struct {
	index int64
	count float64
}

// buckets lists the buckets of a side by index.
func (s *Side) buckets() ([]bucket, error) {
	var out []bucket
	next := int64(0)
	for _, span := range s.Spans {
		next += int64(span.Offset)
		if len(out)+int(span.Length) > len(s.Counts) || len(out) > 0 && span.Offset < 0 {
			return nil, fmt.Errorf("its spans do not fit its %d counts", len(s.Counts))
		}
		for range span.Length {
			out = append(out, bucket{next, s.Counts[len(out)]})
			next++
		}
	}
	if len(out) != len(s.Counts) {
		return nil, fmt.Errorf("it has %d counts, and spans for %d", len(s.Counts), len(out))
	}
	return out, nil
}

// Buckets calls f for each bound from the lowest on, with the count of the values up to it; infinity, whose count is Count, is left out.
// What does not fit together is an error before the first call.
func (h *Histogram) Buckets(f func(le, count float64) error) error {
	if len(h.Positive.Counts)+len(h.Negative.Counts) > MaxBuckets {
		return fmt.Errorf("it has %d buckets; at most %d are taken", len(h.Positive.Counts)+len(h.Negative.Counts), MaxBuckets)
	}
	positive, err := h.Positive.buckets()
	if err != nil {
		return err
	}
	negative, err := h.Negative.buckets()
	if err != nil {
		return err
	}
	if h.Schema == CustomSchema {
		return h.custom(positive, f)
	}
	if h.Schema < -10 || h.Schema > 20 {
		return fmt.Errorf("its schema is %d; expected -10 to 20", h.Schema)
	}
	w := &walk{f: f, last: math.Inf(-1)}
	for i := len(negative) - 1; i >= 0; i-- {
		// The lower edge, where the run begins.
		w.edge(-h.bound(negative[i].index))
		w.add(-h.bound(negative[i].index-1), negative[i].count)
	}
	if h.ZeroCount > 0 {
		if h.ZeroThreshold > 0 {
			w.edge(-h.ZeroThreshold)
		}
		w.add(math.Abs(h.ZeroThreshold), h.ZeroCount)
	}
	for _, b := range positive {
		w.edge(h.bound(b.index - 1))
		w.add(h.bound(b.index), b.count)
	}
	return w.err
}

// walk adds counts up and tells each bound once, in order.
type walk struct {
	f    func(le, count float64) error
	last float64
	sum  float64
	err  error
}

// edge tells a bound that no value lies below of; so values are looked for above it only.
func (w *walk) edge(le float64) { w.add(le, 0) }

func (w *walk) add(le, count float64) {
	w.sum += count
	if w.err != nil || le <= w.last || math.IsInf(le, 0) || math.IsNaN(le) {
		return
	}
	w.last = le
	w.err = w.f(le, w.sum)
}

// bound is base^index.
func (h *Histogram) bound(index int64) float64 {
	if h.Schema <= 0 {
		return ldexp(1, index<<-h.Schema)
	}
	whole := index >> h.Schema
	part := index - whole<<h.Schema
	return ldexp(math.Exp2(float64(part)/float64(int64(1)<<h.Schema)), whole)
}

func ldexp(fraction float64, exponent int64) float64 {
	return math.Ldexp(fraction, int(max(-5000, min(5000, exponent))))
}

// custom are the buckets whose bounds came along.
func (h *Histogram) custom(list []bucket, f func(le, count float64) error) error {
	for i := range h.Custom {
		if math.IsNaN(h.Custom[i]) || i > 0 && h.Custom[i] <= h.Custom[i-1] {
			return errors.New("its bounds do not rise")
		}
	}
	if len(list) > 0 && (list[0].index < 0 || list[len(list)-1].index > int64(len(h.Custom))) {
		return fmt.Errorf("it has buckets beyond its %d bounds", len(h.Custom))
	}
	w := &walk{f: f, last: math.Inf(-1)}
	at := 0
	for i, bound := range h.Custom {
		count := 0.0
		if at < len(list) && list[at].index == int64(i) {
			count = list[at].count
			at++
		}
		w.add(bound, count)
	}
	return w.err
}
