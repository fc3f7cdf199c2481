package otlp

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/model/value"

	"tidemark/collect/series"
	"tidemark/model"
	"tidemark/wire/nativehistogram"
	wire "tidemark/wire/otlp"
)

// targetInfo is the series that holds what else is known of a resource.
const targetInfo = "target_info"

// The attributes that say which target a resource is.
const (
	serviceName      = "service.name"
	serviceNamespace = "service.namespace"
	serviceInstance  = "service.instance.id"
)

var staleNaN = math.Float64frombits(value.StaleNaN)

// translation turns one request into samples, with the names that Prometheus' receiver gives by default (underscores, units and _total as
// suffixes).
type translation struct {
	ctx     context.Context //nolint:containedctx // lives as long as its request
	write   *series.Write
	metrics otlptranslator.MetricNamer
	labels  otlptranslator.LabelNamer

	job, instance string
	host          series.Host
	// metric and name are the metric under way; labelled are the labels of its point.
	metric   *wire.Metric
	name     string
	labelled model.Labels
	scratch  model.Labels
	latest   int64
	rejected int
	first    string
}

func newTranslation(ctx context.Context, w *series.Write) *translation {
	return &translation{ctx: ctx, write: w, metrics: otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)}
}

// reject counts points that are not stored.
func (t *translation) reject(points int, format string, args ...any) {
	t.rejected += points
	if t.first == "" {
		t.first = fmt.Sprintf(format, args...)
	}
}

func (t *translation) request(r *wire.Request) error {
	for i := range r.Resources {
		if err := t.resource(&r.Resources[i]); err != nil {
			return err
		}
	}
	return nil
}

func attribute(list []wire.Attribute, key string) string {
	for _, a := range list {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

func (t *translation) resource(r *wire.Resource) error {
	t.job, t.instance, t.latest = attribute(r.Attributes, serviceName), attribute(r.Attributes, serviceInstance), 0
	if space := attribute(r.Attributes, serviceNamespace); space != "" && t.job != "" {
		t.job = space + "/" + t.job
	}
	t.host = series.HostOf(t.job, t.instance)
	for i := range r.Metrics {
		if err := t.oneMetric(&r.Metrics[i]); err != nil {
			return err
		}
	}
	return t.info(r)
}

// info writes target_info, if there is more to say of the resource than which it is.
func (t *translation) info(r *wire.Resource) error {
	more := slices.DeleteFunc(slices.Clone(r.Attributes), func(a wire.Attribute) bool {
		return a.Key == serviceName || a.Key == serviceNamespace || a.Key == serviceInstance
	})
	if len(more) == 0 || t.latest == 0 || t.job == "" && t.instance == "" {
		return nil
	}
	t.metric, t.name = &wire.Metric{Help: "Target metadata"}, targetInfo
	if err := t.label(more); err != nil {
		return nil //nolint:nilerr // its points are stored all the same
	}
	return t.sample(targetInfo, "", "", t.latest, 1)
}

// types are the types by which names get their suffixes.
var types = map[wire.Kind]otlptranslator.MetricType{
	wire.Gauge: otlptranslator.MetricTypeGauge, wire.Sum: otlptranslator.MetricTypeNonMonotonicCounter, wire.Histogram: otlptranslator.MetricTypeHistogram,
	wire.Exponential: otlptranslator.MetricTypeExponentialHistogram, wire.Summary: otlptranslator.MetricTypeSummary,
}

func (t *translation) oneMetric(m *wire.Metric) error {
	n := len(m.Points)
	if n == 0 {
		return nil
	}
	kind := types[m.Kind]
	if m.Kind == wire.Sum && m.Monotonic {
		kind = otlptranslator.MetricTypeMonotonicCounter
	}
	name, err := t.metrics.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: kind})
	switch {
	case err != nil:
		t.reject(n, "metric %.60q: %v", m.Name, err)
		return nil
	case m.Kind == wire.Unknown:
		t.reject(n, "metric %.60q is no gauge, sum, histogram or summary", m.Name)
		return nil
	case (m.Kind == wire.Sum || m.Kind == wire.Histogram || m.Kind == wire.Exponential) && m.Temporality != wire.Cumulative:
		t.reject(n, "metric %.60q has delta temporality, expected cumulative (set OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=cumulative, or put the cumulativetodelta's opposite, deltatocumulative, into the collector)", m.Name)
		return nil
	}
	t.metric, t.name = m, name
	for i := range m.Points {
		if err := t.point(&m.Points[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *translation) point(p *wire.Point) error {
	if p.At <= 0 || p.At == math.MaxInt64 {
		t.reject(1, "metric %.60q: a point has no time", t.metric.Name)
		return nil
	}
	if err := t.label(p.Attributes); err != nil {
		t.reject(1, "metric %.60q: %v", t.metric.Name, err)
		return nil
	}
	t.latest = max(t.latest, p.At)
	switch t.metric.Kind {
	case wire.Histogram:
		return t.histogram(p)
	case wire.Exponential:
		return t.exponential(p)
	case wire.Summary:
		return t.summary(p)
	}
	return t.sample(t.name, "", "", p.At, t.valueOf(p, p.Value))
}

// valueOf is a value, or the stale marker for a point without one.
func (t *translation) valueOf(p *wire.Point, v float64) float64 {
	if p.NoValue {
		return staleNaN
	}
	return v
}

func (t *translation) histogram(p *wire.Point) error {
	if len(p.Buckets) > 0 && len(p.Buckets) != len(p.Bounds)+1 {
		t.reject(1, "metric %.60q: a histogram has %d counts and %d bounds, expected one more", t.metric.Name, len(p.Buckets), len(p.Bounds))
		return nil
	}
	if p.HasSum || p.NoValue {
		if err := t.sample(t.name+"_sum", "", "", p.At, t.valueOf(p, p.Sum)); err != nil {
			return err
		}
	}
	if err := t.sample(t.name+"_count", "", "", p.At, t.valueOf(p, float64(p.Count))); err != nil {
		return err
	}
	sum := uint64(0)
	for i, bound := range p.Bounds {
		if i < len(p.Buckets) {
			sum += p.Buckets[i]
		}
		if math.IsInf(bound, 1) {
			continue
		}
		if err := t.sample(t.name+"_bucket", "le", strconv.FormatFloat(bound, 'f', -1, 64), p.At, t.valueOf(p, float64(sum))); err != nil {
			return err
		}
	}
	return t.sample(t.name+"_bucket", "le", "+Inf", p.At, t.valueOf(p, float64(p.Count)))
}

// exponential stores an exponential histogram as a classic one with the bounds of its buckets. A bucket's index is that of its lower bound here,
// and of its upper one in native histograms.
func (t *translation) exponential(p *wire.Point) error {
	x := &p.Exponential
	h := nativehistogram.Histogram{
		Schema: x.Scale, ZeroCount: float64(x.ZeroCount), ZeroThreshold: x.ZeroThreshold, Positive: exponents(&x.Positive), Negative: exponents(&x.Negative),
	}
	if err := h.Buckets(func(float64, float64) error { return nil }); err != nil {
		t.reject(1, "metric %.60q: exponential histogram: %v", t.metric.Name, err)
		return nil
	}
	if p.HasSum || p.NoValue {
		if err := t.sample(t.name+"_sum", "", "", p.At, t.valueOf(p, p.Sum)); err != nil {
			return err
		}
	}
	if err := t.sample(t.name+"_count", "", "", p.At, t.valueOf(p, float64(p.Count))); err != nil {
		return err
	}
	err := h.Buckets(func(le, count float64) error {
		return t.sample(t.name+"_bucket", "le", strconv.FormatFloat(le, 'g', -1, 64), p.At, t.valueOf(p, count))
	})
	if err != nil {
		return err
	}
	return t.sample(t.name+"_bucket", "le", "+Inf", p.At, t.valueOf(p, float64(p.Count)))
}

func exponents(from *wire.ExponentialBuckets) nativehistogram.Side {
	if len(from.Counts) == 0 || from.Offset == math.MaxInt32 {
		return nativehistogram.Side{}
	}
	side := nativehistogram.Side{Spans: []nativehistogram.Span{{Offset: from.Offset + 1, Length: uint32(len(from.Counts))}}}
	for _, c := range from.Counts {
		side.Counts = append(side.Counts, float64(c))
	}
	return side
}

func (t *translation) summary(p *wire.Point) error {
	if err := t.sample(t.name+"_sum", "", "", p.At, t.valueOf(p, p.Sum)); err != nil {
		return err
	}
	if err := t.sample(t.name+"_count", "", "", p.At, t.valueOf(p, float64(p.Count))); err != nil {
		return err
	}
	for _, q := range p.Quantiles {
		if err := t.sample(t.name, "quantile", strconv.FormatFloat(q.Quantile, 'f', -1, 64), p.At, t.valueOf(p, q.Value)); err != nil {
			return err
		}
	}
	return nil
}

// label makes the labels of attributes: names made valid, values of names that become the same joined, job and instance of the resource.
func (t *translation) label(attributes []wire.Attribute) error {
	t.labelled = t.labelled[:0]
	sorted := slices.Clone(attributes)
	slices.SortFunc(sorted, func(a, b wire.Attribute) int { return cmp.Compare(a.Key, b.Key) })
	for _, a := range sorted {
		name, err := t.labels.Build(a.Key)
		if err != nil {
			return err
		}
		if name != series.NameLabel {
			t.set(name, a.Value, ";")
		}
	}
	if t.job != "" {
		t.set("job", t.job, "")
	}
	if t.instance != "" {
		t.set("instance", t.instance, "")
	}
	return nil
}

// set adds a label. Where it is there, the value is joined to the one before, or, without a join, takes its place.
func (t *translation) set(name, value, join string) {
	for i := range t.labelled {
		if t.labelled[i].Name != name {
			continue
		}
		if join != "" {
			value = t.labelled[i].Value + join + value
		}
		t.labelled[i].Value = value
		return
	}
	t.labelled = append(t.labelled, model.Label{Name: name, Value: value})
}

// sample adds one sample of the point under way, with one label more if it has a name.
func (t *translation) sample(metric, name, value string, at int64, v float64) error {
	t.scratch = append(t.scratch[:0], t.labelled...)
	if name != "" {
		t.scratch = slices.DeleteFunc(t.scratch, func(l model.Label) bool { return l.Name == name })
		t.scratch = append(t.scratch, model.Label{Name: name, Value: value})
	}
	t.scratch = append(t.scratch, model.Label{Name: series.NameLabel, Value: metric})
	slices.SortFunc(t.scratch, func(a, b model.Label) int { return cmp.Compare(a.Name, b.Name) })
	t.write.Series(t.scratch, func() series.Info {
		return series.Info{Host: t.host, Help: t.metric.Help, Unit: t.metric.Unit}
	})
	// Prometheus has milliseconds; so the same point by another way is the same sample.
	return t.write.Sample(t.ctx, at/1e6*1e6, v)
}
