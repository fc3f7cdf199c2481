package otlp

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a message.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte
	value  uint64
}

// double returns a fixed number as a float.
func (f *field) double() float64 { return math.Float64frombits(f.value) }

// protobuf reads one request.
type protobuf struct{ left budget }

// Decode reads a request in protobuf.
func Decode(message []byte) (*Request, error) {
	p := &protobuf{left: MaxObjects}
	r := &Request{}
	err := p.each(message, func(f *field) error {
		if f.number != 1 || f.kind != protowire.BytesType {
			return nil
		}
		var res Resource
		err := p.resource(f.bytes, &res)
		r.Resources = append(r.Resources, res)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// each calls fn for each field.
func (p *protobuf) each(message []byte, fn func(*field) error) error {
	for len(message) > 0 {
		var f field
		var size int
		f.number, f.kind, size = protowire.ConsumeTag(message)
		if size < 0 {
			return wrong("a field has no valid tag")
		}
		message = message[size:]
		switch f.kind {
		case protowire.BytesType:
			f.bytes, size = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			f.value, size = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			f.value, size = protowire.ConsumeFixed64(message)
		default:
			size = protowire.ConsumeFieldValue(f.number, f.kind, message)
		}
		if size < 0 {
			return wrong("field %d ends before its value does", f.number)
		}
		message = message[size:]
		if err := fn(&f); err != nil {
			return err
		}
	}
	return nil
}

func (p *protobuf) resource(message []byte, r *Resource) error {
	if err := p.left.spend(1); err != nil {
		return err
	}
	return p.each(message, func(f *field) error {
		switch f.number {
		case 1:
			return p.each(f.bytes, func(f *field) error {
				if f.number == 1 {
					return p.attribute(f.bytes, &r.Attributes, 0)
				}
				return nil
			})
		case 2:
			return p.each(f.bytes, func(f *field) error {
				if f.number != 2 || f.kind != protowire.BytesType {
					return nil
				}
				var m Metric
				err := p.metric(f.bytes, &m)
				r.Metrics = append(r.Metrics, m)
				return err
			})
		}
		return nil
	})
}

// kinds are the numbers of the kinds in a metric.
var kinds = map[protowire.Number]Kind{5: Gauge, 7: Sum, 9: Histogram, 10: Exponential, 11: Summary}

func (p *protobuf) metric(message []byte, m *Metric) error {
	if err := p.left.spend(1); err != nil {
		return err
	}
	return p.each(message, func(f *field) error {
		switch f.number {
		case 1:
			m.Name = string(f.bytes)
		case 2:
			m.Help = string(f.bytes)
		case 3:
			m.Unit = string(f.bytes)
		case 5, 7, 9, 10, 11:
			if m.Kind != Unknown && m.Kind != kinds[f.number] {
				m.Points = nil // the last of a choice holds
			}
			m.Kind = kinds[f.number]
			return p.data(f.bytes, m)
		}
		return nil
	})
}

func (p *protobuf) data(message []byte, m *Metric) error {
	return p.each(message, func(f *field) error {
		switch {
		case f.number == 1 && f.kind == protowire.BytesType:
			if err := p.left.spend(1); err != nil {
				return err
			}
			var point Point
			err := p.point(f.bytes, m.Kind, &point)
			m.Points = append(m.Points, point)
			return err
		case f.number == 2:
			m.Temporality = Temporality(min(f.value, 3))
		case f.number == 3:
			m.Monotonic = f.value != 0
		}
		return nil
	})
}

func (p *protobuf) point(message []byte, kind Kind, out *Point) error {
	return p.each(message, func(f *field) error {
		if f.number == 3 {
			out.At = int64(min(f.value, math.MaxInt64))
			return nil
		}
		switch kind {
		case Gauge, Sum:
			return p.number(f, out)
		case Histogram:
			return p.histogram(f, out)
		case Exponential:
			return p.exponential(f, out)
		case Summary:
			return p.summary(f, out)
		}
		return nil
	})
}

func (p *protobuf) number(f *field, out *Point) error {
	switch f.number {
	case 4:
		out.Value = f.double()
	case 6:
		out.Value = float64(int64(f.value))
	case 7:
		return p.attribute(f.bytes, &out.Attributes, 0)
	case 8:
		out.NoValue = f.value&1 != 0
	}
	return nil
}

func (p *protobuf) histogram(f *field, out *Point) error {
	switch f.number {
	case 4:
		out.Count = f.value
	case 5:
		out.Sum, out.HasSum = f.double(), true
	case 6:
		return p.fixed(f, func(v uint64) { out.Buckets = append(out.Buckets, v) })
	case 7:
		return p.fixed(f, func(v uint64) { out.Bounds = append(out.Bounds, math.Float64frombits(v)) })
	case 9:
		return p.attribute(f.bytes, &out.Attributes, 0)
	case 10:
		out.NoValue = f.value&1 != 0
	}
	return nil
}

func (p *protobuf) exponential(f *field, out *Point) error {
	x := &out.Exponential
	switch f.number {
	case 1:
		return p.attribute(f.bytes, &out.Attributes, 0)
	case 4:
		out.Count = f.value
	case 5:
		out.Sum, out.HasSum = f.double(), true
	case 6:
		x.Scale = int32(protowire.DecodeZigZag(f.value))
	case 7:
		x.ZeroCount = f.value
	case 8:
		return p.exponents(f.bytes, &x.Positive)
	case 9:
		return p.exponents(f.bytes, &x.Negative)
	case 10:
		out.NoValue = f.value&1 != 0
	case 14:
		x.ZeroThreshold = f.double()
	}
	return nil
}

func (p *protobuf) exponents(message []byte, to *ExponentialBuckets) error {
	return p.each(message, func(f *field) error {
		switch {
		case f.number == 1:
			to.Offset = int32(protowire.DecodeZigZag(f.value))
		case f.number == 2 && f.kind == protowire.VarintType:
			to.Counts = append(to.Counts, f.value)
			return p.left.spend(1)
		case f.number == 2:
			for b := f.bytes; len(b) > 0; {
				v, size := protowire.ConsumeVarint(b)
				if size < 0 {
					return wrong("the buckets of a histogram end inside a number")
				}
				if err := p.left.spend(1); err != nil {
					return err
				}
				b, to.Counts = b[size:], append(to.Counts, v)
			}
		}
		return nil
	})
}

func (p *protobuf) summary(f *field, out *Point) error {
	switch f.number {
	case 4:
		out.Count = f.value
	case 5:
		out.Sum, out.HasSum = f.double(), true
	case 6:
		if err := p.left.spend(1); err != nil {
			return err
		}
		var q Quantile
		err := p.each(f.bytes, func(f *field) error {
			switch f.number {
			case 1:
				q.Quantile = f.double()
			case 2:
				q.Value = f.double()
			}
			return nil
		})
		out.Quantiles = append(out.Quantiles, q)
		return err
	case 7:
		return p.attribute(f.bytes, &out.Attributes, 0)
	case 8:
		out.NoValue = f.value&1 != 0
	}
	return nil
}

// fixed reads packed or single fixed numbers.
func (p *protobuf) fixed(f *field, add func(uint64)) error {
	if f.kind == protowire.Fixed64Type {
		add(f.value)
		return p.left.spend(1)
	}
	if len(f.bytes)%8 != 0 {
		return wrong("a list of numbers has %d bytes, expected a multiple of 8", len(f.bytes))
	}
	if err := p.left.spend(len(f.bytes) / 8); err != nil {
		return err
	}
	for b := f.bytes; len(b) > 0; b = b[8:] {
		v, _ := protowire.ConsumeFixed64(b)
		add(v)
	}
	return nil
}

// attribute reads a key and its value.
func (p *protobuf) attribute(message []byte, to *[]Attribute, depth int) error {
	if err := p.left.spend(1); err != nil {
		return err
	}
	var a Attribute
	var value any
	err := p.each(message, func(f *field) (err error) {
		switch f.number {
		case 1:
			a.Key = string(f.bytes)
		case 2:
			value, err = p.any(f.bytes, depth)
		}
		return err
	})
	a.Value = text(value)
	*to = append(*to, a)
	return err
}

// any reads a value as what JSON has for it.
func (p *protobuf) any(message []byte, depth int) (value any, err error) {
	if depth > maxDepth {
		return nil, wrong("attributes are more than %d deep", maxDepth)
	}
	if err := p.left.spend(1); err != nil {
		return nil, err
	}
	err = p.each(message, func(f *field) error {
		switch f.number {
		case 1:
			value = string(f.bytes)
		case 2:
			value = f.value != 0
		case 3:
			value = int64(f.value)
		case 4:
			value = f.double()
		case 5:
			list := []any{}
			err := p.each(f.bytes, func(f *field) error {
				v, err := p.any(f.bytes, depth+1)
				list = append(list, v)
				return err
			})
			value = list
			return err
		case 6:
			var pairs []Attribute
			err := p.each(f.bytes, func(f *field) error { return p.attribute(f.bytes, &pairs, depth+1) })
			value = pairs
			return err
		case 7:
			value = append([]byte{}, f.bytes...)
		}
		return nil
	})
	return value, err
}

// text is the text that a label has for a value: JSON for lists and maps, base64 for bytes.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = quoted(v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	case []Attribute:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = strconv.Quote(v[i].Key) + ":" + strconv.Quote(v[i].Value)
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return ""
}

func quoted(value any) string {
	switch value.(type) {
	case string, []byte:
		return strconv.Quote(text(value))
	case nil:
		return "null"
	}
	return text(value)
}
