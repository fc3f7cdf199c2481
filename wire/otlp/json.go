package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// The forms of OTLP/JSON: names in lower camel case, 64-bit integers as text or number, bytes in base64.
type (
	jsonRequest struct {
		ResourceMetrics []struct {
			Resource struct {
				Attributes []jsonAttribute `json:"attributes"`
			} `json:"resource"`
			ScopeMetrics []struct {
				Metrics []jsonMetric `json:"metrics"`
			} `json:"scopeMetrics"`
		} `json:"resourceMetrics"`
	}
	jsonMetric struct {
		Name        string    `json:"name"`
		Description string    `json:"description"`
		Unit        string    `json:"unit"`
		Gauge       *jsonData `json:"gauge"`
		Sum         *jsonData `json:"sum"`
		Histogram   *jsonData `json:"histogram"`
		Exponential *jsonData `json:"exponentialHistogram"`
		Summary     *jsonData `json:"summary"`
	}
	jsonData struct {
		DataPoints  []jsonPoint     `json:"dataPoints"`
		Temporality jsonTemporality `json:"aggregationTemporality"`
		Monotonic   bool            `json:"isMonotonic"`
	}
	jsonPoint struct {
		Attributes []jsonAttribute `json:"attributes"`
		At         jsonInt         `json:"timeUnixNano"`
		AsDouble   *jsonFloat      `json:"asDouble"`
		AsInt      *jsonInt        `json:"asInt"`
		Flags      uint32          `json:"flags"`
		Count      jsonUint        `json:"count"`
		Sum        *jsonFloat      `json:"sum"`
		Buckets    []jsonUint      `json:"bucketCounts"`
		Bounds     []jsonFloat     `json:"explicitBounds"`
		Scale      jsonInt         `json:"scale"`
		ZeroCount  jsonUint        `json:"zeroCount"`
		Zero       jsonFloat       `json:"zeroThreshold"`
		Positive   jsonExponents   `json:"positive"`
		Negative   jsonExponents   `json:"negative"`
		Quantiles  []struct {
			Quantile jsonFloat `json:"quantile"`
			Value    jsonFloat `json:"value"`
		} `json:"quantileValues"`
	}
	jsonExponents struct {
		Offset jsonInt    `json:"offset"`
		Counts []jsonUint `json:"bucketCounts"`
	}
	jsonAttribute struct {
		Key   string    `json:"key"`
		Value jsonValue `json:"value"`
	}
	jsonValue struct {
		String *string    `json:"stringValue"`
		Bool   *bool      `json:"boolValue"`
		Int    *jsonInt   `json:"intValue"`
		Double *jsonFloat `json:"doubleValue"`
		Array  *struct {
			Values []jsonValue `json:"values"`
		} `json:"arrayValue"`
		Map *struct {
			Values []jsonAttribute `json:"values"`
		} `json:"kvlistValue"`
		Bytes *string `json:"bytesValue"`
	}
	jsonInt         int64
	jsonUint        uint64
	jsonFloat       float64
	jsonTemporality uint8
)

func unquoted(b []byte) string { return strings.Trim(string(b), `"`) }

// UnmarshalJSON reads a number or its text.
func (i *jsonInt) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(unquoted(b), 10, 64)
	*i = jsonInt(v)
	return err
}

// UnmarshalJSON reads a number or its text.
func (i *jsonUint) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseUint(unquoted(b), 10, 64)
	*i = jsonUint(v)
	return err
}

// UnmarshalJSON reads a number or its text, which may be NaN or Infinity.
func (f *jsonFloat) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(unquoted(b), 64)
	*f = jsonFloat(v)
	return err
}

// UnmarshalJSON reads the number or the name.
func (t *jsonTemporality) UnmarshalJSON(b []byte) error {
	switch name := unquoted(b); name {
	case "AGGREGATION_TEMPORALITY_DELTA":
		*t = jsonTemporality(Delta)
	case "AGGREGATION_TEMPORALITY_CUMULATIVE":
		*t = jsonTemporality(Cumulative)
	case "AGGREGATION_TEMPORALITY_UNSPECIFIED":
		*t = 0
	default:
		v, err := strconv.ParseUint(name, 10, 2)
		*t = jsonTemporality(v)
		return err
	}
	return nil
}

// DecodeJSON reads a request in JSON.
func DecodeJSON(message []byte) (*Request, error) {
	// Each object and each element of a list takes one of these bytes, so they bound what decoding allocates.
	if bytes.Count(message, []byte("{"))+bytes.Count(message, []byte(",")) > MaxObjects {
		return nil, wrong("more than %d values; send smaller batches", MaxObjects)
	}
	var in jsonRequest
	if err := json.Unmarshal(message, &in); err != nil {
		return nil, wrong("%v", err)
	}
	out := &Request{}
	for i := range in.ResourceMetrics {
		from := &in.ResourceMetrics[i]
		r := Resource{Attributes: attributes(from.Resource.Attributes)}
		for _, scope := range from.ScopeMetrics {
			for j := range scope.Metrics {
				r.Metrics = append(r.Metrics, scope.Metrics[j].metric())
			}
		}
		out.Resources = append(out.Resources, r)
	}
	return out, nil
}

func (m *jsonMetric) metric() Metric {
	out := Metric{Name: m.Name, Help: m.Description, Unit: m.Unit}
	for i, data := range []*jsonData{m.Gauge, m.Sum, m.Histogram, m.Exponential, m.Summary} {
		if data == nil {
			continue
		}
		kind := Gauge + Kind(i) // in the order of the kinds
		out.Kind, out.Temporality, out.Monotonic = kind, Temporality(data.Temporality), data.Monotonic
		out.Points = make([]Point, len(data.DataPoints))
		for i := range data.DataPoints {
			out.Points[i] = data.DataPoints[i].point()
		}
	}
	return out
}

func (p *jsonPoint) point() Point {
	out := Point{Attributes: attributes(p.Attributes), At: int64(p.At), NoValue: p.Flags&1 != 0, Count: uint64(p.Count)}
	switch {
	case p.AsDouble != nil:
		out.Value = float64(*p.AsDouble)
	case p.AsInt != nil:
		out.Value = float64(*p.AsInt)
	}
	if p.Sum != nil {
		out.Sum, out.HasSum = float64(*p.Sum), true
	}
	for _, b := range p.Buckets {
		out.Buckets = append(out.Buckets, uint64(b))
	}
	for _, b := range p.Bounds {
		out.Bounds = append(out.Bounds, float64(b))
	}
	for _, q := range p.Quantiles {
		out.Quantiles = append(out.Quantiles, Quantile{float64(q.Quantile), float64(q.Value)})
	}
	out.Exponential = Exponents{
		Scale: int32(max(math.MinInt32, min(math.MaxInt32, p.Scale))), ZeroCount: uint64(p.ZeroCount), ZeroThreshold: float64(p.Zero), Positive: p.Positive.buckets(), Negative: p.Negative.buckets(),
	}
	if out.At < 0 {
		out.At = math.MaxInt64
	}
	return out
}

func (e *jsonExponents) buckets() ExponentialBuckets {
	out := ExponentialBuckets{Offset: int32(max(math.MinInt32, min(math.MaxInt32, e.Offset)))}
	for _, c := range e.Counts {
		out.Counts = append(out.Counts, uint64(c))
	}
	return out
}

func attributes(list []jsonAttribute) []Attribute {
	var out []Attribute
	for i := range list {
		out = append(out, Attribute{list[i].Key, text(list[i].Value.value())})
	}
	return out
}

func (v *jsonValue) value() any {
	switch {
	case v.String != nil:
		return *v.String
	case v.Bool != nil:
		return *v.Bool
	case v.Int != nil:
		return int64(*v.Int)
	case v.Double != nil:
		return float64(*v.Double)
	case v.Array != nil:
		list := []any{}
		for i := range v.Array.Values {
			list = append(list, v.Array.Values[i].value())
		}
		return list
	case v.Map != nil:
		return attributes(v.Map.Values)
	case v.Bytes != nil:
		if b, err := base64.StdEncoding.DecodeString(*v.Bytes); err == nil {
			return b
		}
	}
	return nil
}
