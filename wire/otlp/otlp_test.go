package otlp_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"tidemark/wire/otlp"
)

func text(s string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
}

func pair(key string, v *commonpb.AnyValue) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: v}
}

// sample has every kind of metric and value, made by the official package. MetricsData has the fields of an export.
func sample() *metricspb.MetricsData {
	attributes := []*commonpb.KeyValue{
		pair("s", text("v")),
		pair("b", &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}}),
		pair("i", &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: -7}}),
		pair("d", &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: 0.5}}),
		pair("y", &commonpb.AnyValue{Value: &commonpb.AnyValue_BytesValue{BytesValue: []byte{1, 2}}}),
		pair("a", &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{text("x"), {Value: &commonpb.AnyValue_IntValue{IntValue: 1}}}}}}),
		pair("m", &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: []*commonpb.KeyValue{pair("k", text("w"))}}}}),
	}
	sum := 9.5
	return &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{pair("service.name", text("shop"))}},
		ScopeMetrics: []*metricspb.ScopeMetrics{{Metrics: []*metricspb.Metric{
			{Name: "g", Description: "help", Unit: "By", Data: &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: []*metricspb.NumberDataPoint{
				{TimeUnixNano: 5, Attributes: attributes, Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: 1.5}},
				{TimeUnixNano: 6, Flags: 1},
			}}}},
			{Name: "s", Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{IsMonotonic: true, AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, DataPoints: []*metricspb.NumberDataPoint{
				{TimeUnixNano: 5, Value: &metricspb.NumberDataPoint_AsInt{AsInt: -3}},
			}}}},
			{Name: "h", Data: &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA, DataPoints: []*metricspb.HistogramDataPoint{
				{TimeUnixNano: 5, Count: 3, Sum: &sum, BucketCounts: []uint64{1, 2, 0}, ExplicitBounds: []float64{0.5, 2}},
			}}}},
			{Name: "e", Data: &metricspb.Metric_ExponentialHistogram{ExponentialHistogram: &metricspb.ExponentialHistogram{AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, DataPoints: []*metricspb.ExponentialHistogramDataPoint{
				{
					TimeUnixNano: 5, Count: 3, Scale: -1, ZeroCount: 1, ZeroThreshold: 0.5, Positive: &metricspb.ExponentialHistogramDataPoint_Buckets{Offset: -2, BucketCounts: []uint64{2, 300}},
					Negative: &metricspb.ExponentialHistogramDataPoint_Buckets{Offset: 4, BucketCounts: []uint64{0, 7}},
				},
			}}}},
			{Name: "q", Data: &metricspb.Metric_Summary{Summary: &metricspb.Summary{DataPoints: []*metricspb.SummaryDataPoint{
				{TimeUnixNano: 5, Count: 3, Sum: 2, QuantileValues: []*metricspb.SummaryDataPoint_ValueAtQuantile{{Quantile: 0.9, Value: 4}}},
			}}}},
		}}},
	}}}
}

func want() *otlp.Request {
	return &otlp.Request{Resources: []otlp.Resource{{
		Attributes: []otlp.Attribute{{Key: "service.name", Value: "shop"}},
		Metrics: []otlp.Metric{
			{Name: "g", Help: "help", Unit: "By", Kind: otlp.Gauge, Points: []otlp.Point{
				{At: 5, Value: 1.5, Attributes: []otlp.Attribute{{Key: "s", Value: "v"}, {Key: "b", Value: "true"}, {Key: "i", Value: "-7"}, {Key: "d", Value: "0.5"}, {Key: "y", Value: "AQI="}, {Key: "a", Value: `["x",1]`}, {Key: "m", Value: `{"k":"w"}`}}},
				{At: 6, NoValue: true},
			}},
			{Name: "s", Kind: otlp.Sum, Monotonic: true, Temporality: otlp.Cumulative, Points: []otlp.Point{{At: 5, Value: -3}}},
			{Name: "h", Kind: otlp.Histogram, Temporality: otlp.Delta, Points: []otlp.Point{{At: 5, Count: 3, Sum: 9.5, HasSum: true, Buckets: []uint64{1, 2, 0}, Bounds: []float64{0.5, 2}}}},
			{Name: "e", Kind: otlp.Exponential, Temporality: otlp.Cumulative, Points: []otlp.Point{{
				At: 5, Count: 3, Exponential: otlp.Exponents{Scale: -1, ZeroCount: 1, ZeroThreshold: 0.5, Positive: otlp.ExponentialBuckets{Offset: -2, Counts: []uint64{2, 300}}, Negative: otlp.ExponentialBuckets{Offset: 4, Counts: []uint64{0, 7}}},
			}}},
			{Name: "q", Kind: otlp.Summary, Points: []otlp.Point{{At: 5, Count: 3, Sum: 2, HasSum: true, Quantiles: []otlp.Quantile{{Quantile: 0.9, Value: 4}}}}},
		},
	}}}
}

func TestDecode(t *testing.T) {
	message, err := proto.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	got, err := otlp.Decode(message)
	if err != nil || !reflect.DeepEqual(got, want()) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want())
	}
}

func TestDecodeJSON(t *testing.T) {
	message, err := protojson.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	expected := want()
	got, err := otlp.DecodeJSON(message)
	if err != nil || !reflect.DeepEqual(got, expected) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, expected)
	}
	got, err = otlp.DecodeJSON([]byte(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"n","gauge":{"dataPoints":[{"timeUnixNano":"1","asDouble":"NaN"}]}}]}]}]}`))
	if err != nil || !math.IsNaN(got.Resources[0].Metrics[0].Points[0].Value) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestDecode_refuses(t *testing.T) {
	f := func(err error) {
		t.Helper()
		if !errors.Is(err, otlp.ErrMessage) {
			t.Errorf("got %v, want ErrMessage", err)
		}
	}
	decode := func(b []byte) error { _, err := otlp.Decode(b); return err }
	decodeJSON := func(s string) error { _, err := otlp.DecodeJSON([]byte(s)); return err }
	f(decode([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f}))
	f(decode([]byte(strings.Repeat("\x0a\x00", otlp.MaxObjects+1))))
	deep := text("x")
	for range 40 {
		deep = &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{deep}}}}
	}
	data := sample()
	data.ResourceMetrics[0].Resource.Attributes[0].Value = deep
	message, err := proto.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	f(decode(message))
	f(decodeJSON("{"))
	f(decodeJSON(`{"resourceMetrics":[` + strings.Repeat("{},", otlp.MaxObjects) + `{}]}`))
	f(decodeJSON(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[{"timeUnixNano":"x"}]}}]}]}]}`))
}

// FuzzDecode: what both packages take has as many metrics and points.
func FuzzDecode(f *testing.F) {
	message, err := proto.Marshal(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(message)
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, message []byte) {
		got, err := otlp.Decode(message)
		var official metricspb.MetricsData
		if err != nil || proto.Unmarshal(message, &official) != nil {
			return
		}
		metrics, ours := 0, 0
		for _, r := range official.GetResourceMetrics() {
			for _, s := range r.GetScopeMetrics() {
				metrics += len(s.GetMetrics())
			}
		}
		for _, r := range got.Resources {
			ours += len(r.Metrics)
		}
		if metrics != ours {
			t.Errorf("%d metrics, the official package has %d", ours, metrics)
		}
	})
}

// FuzzDecodeJSON must only not panic.
func FuzzDecodeJSON(f *testing.F) {
	message, err := protojson.Marshal(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(message)
	f.Fuzz(func(_ *testing.T, message []byte) { _, _ = otlp.DecodeJSON(message) })
}
