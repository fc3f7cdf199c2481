// Package otlp reads metrics of the OpenTelemetry protocol, ExportMetricsServiceRequest in protobuf and in JSON
// (https://opentelemetry.io/docs/specs/otlp/, opentelemetry-proto 1.x). What the product does not use is skipped: exemplars, scopes, start times.
package otlp

import (
	"errors"
	"fmt"
)

// MaxObjects bounds resources, metrics, points, attributes and values of one request together, so that it takes no more memory than a
// multiple of it, whatever its bytes say.
const MaxObjects = 400_000

// maxDepth bounds attributes in attributes.
const maxDepth = 16

// ErrMessage is what every error about the bytes of a message wraps.
var ErrMessage = errors.New("otlp: no valid message")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMessage, fmt.Sprintf(format, args...))
}

// Request is what one export holds.
type Request struct{ Resources []Resource }

// Resource is where metrics come from.
type Resource struct {
	Attributes []Attribute
	Metrics    []Metric
}

// Attribute is a name and the text of its value.
type Attribute struct{ Key, Value string }

// Kind is the kind of a metric.
type Kind uint8

// The kinds.
const (
	Unknown Kind = iota
	Gauge
	Sum
	Histogram
	Exponential
	Summary
)

// Temporality says what the points of a metric count from.
type Temporality uint8

// The temporalities.
const (
	Unspecified Temporality = 0
	Delta       Temporality = 1
	Cumulative  Temporality = 2
)

// Metric is a metric and its points.
type Metric struct {
	Name, Help, Unit string
	Kind             Kind
	Temporality      Temporality
	Monotonic        bool
	Points           []Point
}

// Point is a point of any kind.
type Point struct {
	Attributes []Attribute
	// At is Unix nanoseconds.
	At int64
	// NoValue says that the point only ends its series.
	NoValue bool
	// Value is that of a gauge or sum.
	Value float64
	// Count, Sum and HasSum are those of histograms and summaries.
	Count  uint64
	Sum    float64
	HasSum bool
	// Buckets are counts up to each of Bounds, and one beyond.
	Buckets []uint64
	Bounds  []float64
	// Quantiles are those of a summary.
	Quantiles []Quantile
	// Exponential are the buckets of an exponential histogram.
	Exponential Exponents
}

// Exponents are buckets whose bounds are powers of 2^(2^-Scale): the one at index i has the values above the i-th power up to the next.
type Exponents struct {
	Scale              int32
	ZeroCount          uint64
	ZeroThreshold      float64
	Positive, Negative ExponentialBuckets
}

// ExponentialBuckets are counts from an index on.
type ExponentialBuckets struct {
	Offset int32
	Counts []uint64
}

// Quantile is a part and the value that it does not exceed.
type Quantile struct{ Quantile, Value float64 }

// budget counts objects.
type budget int

func (b *budget) spend(n int) error {
	if *b -= budget(n); *b < 0 {
		return wrong("more than %d resources, metrics, points, attributes and values together; send smaller batches", MaxObjects)
	}
	return nil
}
