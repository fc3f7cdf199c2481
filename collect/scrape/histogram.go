package scrape

import (
	"fmt"
	"strconv"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"tidemark/collect/series"
	"tidemark/wire/nativehistogram"
)

// is reports a choice that may be missing.
func is(choice *bool) bool { return choice != nil && *choice }

// histogram takes a native histogram as the classic one with the same bounds: NAME_bucket, NAME_count and NAME_sum. One that does not fit together
// is counted and left out, with the rest of the answer unharmed.
func (p *parsing) histogram(parser textparse.Parser) error {
	text, own, whole, h := parser.Histogram()
	if !is(p.t.job.config.NativeHistograms) {
		p.t.job.s.histograms.Inc()
		return nil
	}
	if h == nil {
		h = whole.ToFloat(nil)
	}
	if err := coarsen(h, p.t.job.config.BucketLimit); err != nil {
		return fmt.Errorf("%.100q: %w", text, err)
	}
	n := native(h)
	// All of it is looked at before anything is added.
	if n.Buckets(func(float64, float64) error { return nil }) != nil {
		p.t.job.s.histograms.Inc()
		return nil
	}
	part := func(suffix, le string, v float64) error {
		p.suffix, p.le = suffix, le
		defer func() { p.suffix, p.le = "", "" }()
		p.key = append(append(append(append(p.key[:0], text...), 0xff), suffix...), le...)
		return p.sample(parser, p.key, own, v)
	}
	err := n.Buckets(func(le, count float64) error { return part("_bucket", strconv.FormatFloat(le, 'g', -1, 64), count) })
	for _, end := range []struct {
		suffix, le string
		value      float64
	}{{"_bucket", "+Inf", n.Count}, {"_count", "", n.Count}, {"_sum", "", n.Sum}} {
		if err == nil {
			err = part(end.suffix, end.le, end.value)
		}
	}
	return err
}

// coarsen halves the resolution of a histogram until it has at most limit buckets; zero is no limit but that of the product.
func coarsen(h *histogram.FloatHistogram, limit int) error {
	if limit == 0 {
		limit = nativehistogram.MaxBuckets
	}
	for len(h.PositiveBuckets)+len(h.NegativeBuckets) > limit {
		if !histogram.IsExponentialSchema(h.Schema) || h.Schema <= histogram.ExponentialSchemaMin {
			return fmt.Errorf("a native histogram has more than %d buckets (native_histogram_bucket_limit)", limit)
		}
		if err := h.ReduceResolution(h.Schema - 1); err != nil {
			return err
		}
	}
	return nil
}

// native is a histogram without Prometheus' types.
func native(h *histogram.FloatHistogram) *nativehistogram.Histogram {
	side := func(spans []histogram.Span, counts []float64) nativehistogram.Side {
		s := nativehistogram.Side{Counts: counts}
		for _, span := range spans {
			s.Spans = append(s.Spans, nativehistogram.Span{Offset: span.Offset, Length: span.Length})
		}
		return s
	}
	return &nativehistogram.Histogram{
		Schema: h.Schema, Count: h.Count, Sum: h.Sum, ZeroCount: h.ZeroCount, ZeroThreshold: h.ZeroThreshold,
		Positive: side(h.PositiveSpans, h.PositiveBuckets), Negative: side(h.NegativeSpans, h.NegativeBuckets), Custom: h.CustomValues,
	}
}

// partLabels are the labels of a part of a native histogram.
func (p *parsing) partLabels(of labels.Labels) labels.Labels {
	b := labels.NewBuilder(of)
	b.Set(series.NameLabel, of.Get(series.NameLabel)+p.suffix)
	b.Del("le")
	if p.le != "" {
		b.Set("le", p.le)
	}
	return b.Labels()
}
