package server

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

func sendExport(t *testing.T, at, contentType string, body []byte, packed bool) (int, string) {
	t.Helper()
	if packed {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		body = b.Bytes()
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/api/v1/otlp/v1/metrics", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	if packed {
		r.Header.Set("Content-Encoding", "gzip")
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text)
}

func attributes(pairs ...string) []*commonpb.KeyValue {
	var out []*commonpb.KeyValue
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, &commonpb.KeyValue{Key: pairs[i], Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: pairs[i+1]}}})
	}
	return out
}

const cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE

func exported(when time.Time) *metricspb.MetricsData {
	at := uint64(when.UnixNano())
	sum := 2.5
	number := func(v float64, attrs ...string) []*metricspb.NumberDataPoint {
		return []*metricspb.NumberDataPoint{{TimeUnixNano: at, Attributes: attributes(attrs...), Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: v}}}
	}
	return &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{
		Resource: &resourcepb.Resource{Attributes: attributes("service.name", "cart", "service.namespace", "shop", "service.instance.id", "i1", "cloud.region", "eu")},
		ScopeMetrics: []*metricspb.ScopeMetrics{{Metrics: []*metricspb.Metric{
			{Name: "memory.usage", Unit: "By", Description: "Memory.", Data: &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: number(7, "a.b", "1", "a_b", "2")}}},
			{Name: "requests", Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{IsMonotonic: true, AggregationTemporality: cumulative, DataPoints: number(5)}}},
			{Name: "delta", Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{IsMonotonic: true, AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA, DataPoints: number(5)}}},
			{Name: "duration", Unit: "s", Data: &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{AggregationTemporality: cumulative, DataPoints: []*metricspb.HistogramDataPoint{
				{TimeUnixNano: at, Count: 4, Sum: &sum, BucketCounts: []uint64{1, 2, 1}, ExplicitBounds: []float64{0.5, 2}},
			}}}},
			{Name: "parts", Data: &metricspb.Metric_Summary{Summary: &metricspb.Summary{DataPoints: []*metricspb.SummaryDataPoint{
				{TimeUnixNano: at, Count: 4, Sum: 9, QuantileValues: []*metricspb.SummaryDataPoint_ValueAtQuantile{{Quantile: 0.9, Value: 3}}},
			}}}},
			{Name: "native", Data: &metricspb.Metric_ExponentialHistogram{ExponentialHistogram: &metricspb.ExponentialHistogram{AggregationTemporality: cumulative, DataPoints: []*metricspb.ExponentialHistogramDataPoint{{
				TimeUnixNano: at, Count: 9, Sum: &sum, ZeroCount: 1, Positive: &metricspb.ExponentialHistogramDataPoint_Buckets{Offset: 1, BucketCounts: []uint64{2, 0, 6}},
			}}}}},
		}}},
	}}}
}

func TestOTLP(t *testing.T) {
	_, at, _ := runForTest(t, Options{Data: t.TempDir()})
	now := time.Now()
	binary, err := proto.Marshal(exported(now))
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(exported(now))
	if err != nil {
		t.Fatal(err)
	}
	// The same points by each way: nothing is doubled.
	for _, packed := range []bool{false, true} {
		status, answer := sendExport(t, at, "application/x-protobuf", binary, packed)
		if status != http.StatusOK || !strings.Contains(answer, `"delta" has delta temporality`) {
			t.Errorf("status %d, answer %q", status, answer)
		}
	}
	if status, answer := sendExport(t, at, "application/json", text, true); status != http.StatusOK || !strings.Contains(answer, `"rejectedDataPoints":"1"`) {
		t.Errorf("status %d, answer %q", status, answer)
	}
	when := now.Add(time.Second)
	target := `"instance":"i1","job":"shop/cart"`
	expect(t, instant(t, at, `memory_usage_bytes`, when), `{"__name__":"memory_usage_bytes","a_b":"1;2",`+target+`} 7`)
	expect(t, instant(t, at, `requests_total`, when), `{"__name__":"requests_total",`+target+`} 5`)
	expect(t, instant(t, at, `duration_seconds_bucket`, when),
		`{"__name__":"duration_seconds_bucket",`+target+`,"le":"+Inf"} 4`, `{"__name__":"duration_seconds_bucket",`+target+`,"le":"0.5"} 1`, `{"__name__":"duration_seconds_bucket",`+target+`,"le":"2"} 3`)
	expect(t, instant(t, at, `duration_seconds_sum / duration_seconds_count`, when), `{`+target+`} 0.625`)
	expect(t, instant(t, at, `parts`, when), `{"__name__":"parts",`+target+`,"quantile":"0.9"} 3`)
	native := func(le, count string) string {
		return `{"__name__":"native_bucket",` + target + `,"le":"` + le + `"} ` + count
	}
	expect(t, instant(t, at, `native_bucket`, when), native("+Inf", "9"), native("0", "1"), native("16", "9"), native("2", "1"), native("4", "3"), native("8", "3"))
	expect(t, instant(t, at, `histogram_quantile(0.5, native_bucket)`, when), `{`+target+`} 10`)
	expect(t, instant(t, at, `target_info`, when), `{"__name__":"target_info","cloud_region":"eu",`+target+`} 1`)
	expect(t, instant(t, at, `max(count_over_time({job="shop/cart"}[1m]))`, when), `{} 1`)

	ended := exported(now.Add(2 * time.Second))
	ended.ResourceMetrics[0].ScopeMetrics[0].Metrics[0].GetGauge().DataPoints[0].Flags = 1
	if binary, err = proto.Marshal(ended); err != nil {
		t.Fatal(err)
	}
	sendExport(t, at, "application/x-protobuf", binary, false)
	expect(t, instant(t, at, `memory_usage_bytes`, now.Add(3*time.Second)))
	for contentType, want := range map[string]int{"text/plain": http.StatusUnsupportedMediaType, "application/json": http.StatusBadRequest, "application/x-protobuf": http.StatusBadRequest} {
		if status, answer := sendExport(t, at, contentType, []byte("{\xff"), false); status != want {
			t.Errorf("%s: status %d (%s), want %d", contentType, status, answer, want)
		}
	}
}
