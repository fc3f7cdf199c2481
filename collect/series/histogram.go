package series

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"tidemark/model"
	"tidemark/wire/nativehistogram"
)

// staleBits are Prometheus' stale marker, which ends a series.
const staleBits uint64 = 0x7ff0000000000002

// Histogram adds a native histogram as a classic one: NAME_count, NAME_sum, and NAME_bucket with the bounds of its buckets. labels are those of
// the histogram, sorted; at is Unix nanoseconds. It returns how many samples that made; wrong says what of the histogram does not fit together.
func (w *Write) Histogram(ctx context.Context, labels model.Labels, info func() Info, at int64, h *nativehistogram.Histogram) (made int, wrong, err error) {
	name := labels.Get(NameLabel)
	add := func(suffix, le string, value float64) error {
		w.scratch = append(w.scratch[:0], labels...)
		w.scratch = slices.DeleteFunc(w.scratch, func(l model.Label) bool { return l.Name == NameLabel || le != "" && l.Name == "le" })
		w.scratch = append(w.scratch, model.Label{Name: NameLabel, Value: name + suffix})
		if le != "" {
			w.scratch = append(w.scratch, model.Label{Name: "le", Value: le})
		}
		slices.SortFunc(w.scratch, func(a, b model.Label) int { return cmp.Compare(a.Name, b.Name) })
		w.Series(w.scratch, info)
		made++
		return w.Sample(ctx, at, value)
	}
	if math.Float64bits(h.Sum) == staleBits {
		for _, end := range [][2]string{{"_count", ""}, {"_sum", ""}, {"_bucket", "+Inf"}} {
			if err := add(end[0], end[1], h.Sum); err != nil {
				return made, nil, err
			}
		}
		return made, nil, nil
	}
	// All of it is looked at before anything is added.
	if wrong := h.Buckets(func(float64, float64) error { return nil }); wrong != nil {
		return 0, wrong, nil
	}
	err = h.Buckets(func(le, count float64) error { return add("_bucket", strconv.FormatFloat(le, 'g', -1, 64), count) })
	for _, end := range []struct {
		suffix, le string
		value      float64
	}{{"_bucket", "+Inf", h.Count}, {"_count", "", h.Count}, {"_sum", "", h.Sum}} {
		if err == nil {
			err = add(end.suffix, end.le, end.value)
		}
	}
	return made, nil, err
}
