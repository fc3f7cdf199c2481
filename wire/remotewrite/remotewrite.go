// Package remotewrite reads the protobuf messages of Prometheus remote write 1.0 (prometheus.WriteRequest) and 2.0
// (io.prometheus.write.v2.Request). The specification is at https://prometheus.io/docs/specs/prw/.
//
// A message is read in place and handed on series by series, so that it takes no memory that its bytes do not: a request of a few megabytes of
// empty series would be gigabytes as structs.
package remotewrite

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"tidemark/wire/nativehistogram"
)

// Version is a version of the protocol.
type Version int

// The versions.
const (
	V1 Version = 1
	V2 Version = 2
)

// Limits of a message.
const (
	// MaxSymbols bounds the table of symbols of a 2.0 request.
	MaxSymbols = 1 << 20
	// MaxLabels bounds the labels of one series.
	MaxLabels = 256
)

// Label is a name and a value; both are parts of the message.
type Label struct{ Name, Value []byte }

// Series is what is known of a series before its samples. It is valid during the call that delivers it.
type Series struct {
	Labels []Label
	// Help and Unit come with 2.0.
	Help, Unit []byte
	// Histograms and Exemplars count those that come with the series.
	Histograms, Exemplars int
}

// Receiver takes what a message holds.
type Receiver interface {
	// Series begins a series.
	Series(s *Series) error
	// Sample is a sample of the series that began last; at is Unix milliseconds.
	Sample(at int64, value float64) error
	// Histogram is a native histogram of that series.
	Histogram(at int64, h *nativehistogram.Histogram) error
}

// ErrMessage is what every error about the bytes of a message wraps.
var ErrMessage = errors.New("remote write: no valid message")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMessage, fmt.Sprintf(format, args...))
}

// decoder reads one message.
type decoder struct {
	version Version
	to      Receiver
	symbols [][]byte
	series  Series
}

// numbers are the field numbers that differ between the versions.
type numbers struct{ series, labels, samples, exemplars, histograms protowire.Number }

func (v Version) numbers() numbers {
	if v == V2 {
		return numbers{series: 5, labels: 1, samples: 2, histograms: 3, exemplars: 4}
	}
	return numbers{series: 1, labels: 1, samples: 2, exemplars: 3, histograms: 4}
}

// Decode reads a message and hands it to a receiver, whose errors it returns as they are. What an error leaves behind was delivered.
func Decode(message []byte, version Version, to Receiver) error {
	d := &decoder{version: version, to: to}
	if version == V2 {
		if err := d.readSymbols(message); err != nil {
			return err
		}
	}
	return fields(message, func(n protowire.Number, t protowire.Type, value []byte, _ uint64) error {
		if n != d.version.numbers().series {
			return nil
		}
		if t != protowire.BytesType {
			return wrong("a series has wire type %d, expected a message", t)
		}
		return d.oneSeries(value)
	})
}

// fields calls fn for each field of a message: with the bytes of length-delimited ones, or the number of others.
func fields(message []byte, fn func(n protowire.Number, t protowire.Type, value []byte, number uint64) error) error {
	for len(message) > 0 {
		n, t, size := protowire.ConsumeTag(message)
		if size < 0 {
			return wrong("a field has no valid tag")
		}
		message = message[size:]
		var value []byte
		var number uint64
		switch t {
		case protowire.BytesType:
			value, size = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			number, size = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			number, size = protowire.ConsumeFixed64(message)
		default:
			size = protowire.ConsumeFieldValue(n, t, message)
		}
		if size < 0 {
			return wrong("field %d ends before its value does", n)
		}
		message = message[size:]
		if err := fn(n, t, value, number); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) readSymbols(message []byte) error {
	return fields(message, func(n protowire.Number, t protowire.Type, value []byte, _ uint64) error {
		switch {
		case n != 4 || t != protowire.BytesType:
			return nil
		case len(d.symbols) == 0 && len(value) != 0:
			return wrong("the first symbol is %.40q, expected the empty text", value)
		case len(d.symbols) == MaxSymbols:
			return wrong("more than %d symbols", MaxSymbols)
		}
		d.symbols = append(d.symbols, value)
		return nil
	})
}

func (d *decoder) symbol(ref uint64) ([]byte, error) {
	if ref >= uint64(len(d.symbols)) {
		return nil, wrong("symbol %d of %d is referred to", ref, len(d.symbols))
	}
	return d.symbols[ref], nil
}

// oneSeries reads what stands beside the samples first, because fields may come in any order.
func (d *decoder) oneSeries(message []byte) error {
	s, numbers := &d.series, d.version.numbers()
	*s = Series{Labels: s.Labels[:0]}
	var pending uint64 // the reference of a name, plus one
	err := fields(message, func(n protowire.Number, t protowire.Type, value []byte, number uint64) error {
		switch {
		case n == numbers.labels && d.version == V1:
			return d.label(value)
		case n == numbers.labels && t == protowire.VarintType:
			return d.reference(&pending, number)
		case n == numbers.labels:
			return d.references(&pending, value)
		case n == numbers.histograms:
			s.Histograms++
		case n == numbers.exemplars:
			s.Exemplars++
		case n == 5 && d.version == V2 && t == protowire.BytesType:
			return d.metadata(value)
		}
		return nil
	})
	if err == nil && pending != 0 {
		err = wrong("a series has a label without a value")
	}
	if err == nil {
		err = d.to.Series(s)
	}
	if err != nil {
		return err
	}
	return fields(message, func(n protowire.Number, t protowire.Type, value []byte, _ uint64) error {
		if n == numbers.histograms {
			return d.histogram(t, value)
		}
		if n != numbers.samples {
			return nil
		}
		if t != protowire.BytesType {
			return wrong("a sample has wire type %d, expected a message", t)
		}
		return d.sample(value)
	})
}

func (d *decoder) add(l Label) error {
	if len(d.series.Labels) == MaxLabels {
		return wrong("a series has more than %d labels", MaxLabels)
	}
	d.series.Labels = append(d.series.Labels, l)
	return nil
}

func (d *decoder) label(message []byte) error {
	var l Label
	err := fields(message, func(n protowire.Number, _ protowire.Type, value []byte, _ uint64) error {
		switch n {
		case 1:
			l.Name = value
		case 2:
			l.Value = value
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.add(l)
}

// references reads packed references of names and values in turn.
func (d *decoder) references(pending *uint64, packed []byte) error {
	for len(packed) > 0 {
		ref, size := protowire.ConsumeVarint(packed)
		if size < 0 {
			return wrong("the references of labels end inside a number")
		}
		packed = packed[size:]
		if err := d.reference(pending, ref); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) reference(pending *uint64, ref uint64) error {
	value, err := d.symbol(ref)
	if err != nil {
		return err
	}
	if *pending == 0 {
		*pending = ref + 1
		return nil
	}
	name := d.symbols[*pending-1]
	*pending = 0
	return d.add(Label{name, value})
}

func (d *decoder) metadata(message []byte) error {
	return fields(message, func(n protowire.Number, t protowire.Type, _ []byte, number uint64) error {
		if t != protowire.VarintType || n != 3 && n != 4 {
			return nil
		}
		text, err := d.symbol(number)
		if n == 3 {
			d.series.Help = text
		} else {
			d.series.Unit = text
		}
		return err
	})
}

func (d *decoder) sample(message []byte) error {
	var at int64
	var value float64
	err := fields(message, func(n protowire.Number, t protowire.Type, _ []byte, number uint64) error {
		switch {
		case n == 1 && t == protowire.Fixed64Type:
			value = math.Float64frombits(number)
		case n == 2 && t == protowire.VarintType:
			at = int64(number)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.to.Sample(at, value)
}
