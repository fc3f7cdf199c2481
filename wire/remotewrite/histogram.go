package remotewrite

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"tidemark/wire/nativehistogram"
)

// side are the buckets of one sign as messages have them: whole numbers as differences, or counts.
type side struct {
	spans  []nativehistogram.Span
	deltas []int64
	counts []float64
}

// histogram reads a native histogram; its numbers are those of both versions.
func (d *decoder) histogram(t protowire.Type, message []byte) error {
	if t != protowire.BytesType {
		return wrong("a histogram has wire type %d, expected a message", t)
	}
	var h nativehistogram.Histogram
	var positive, negative side
	var at int64
	err := fields(message, func(n protowire.Number, t protowire.Type, value []byte, number uint64) error {
		switch n {
		case 1:
			h.Count = float64(number)
		case 2:
			h.Count = math.Float64frombits(number)
		case 3:
			h.Sum = math.Float64frombits(number)
		case 4:
			h.Schema = int32(protowire.DecodeZigZag(number))
		case 5:
			h.ZeroThreshold = math.Float64frombits(number)
		case 6:
			h.ZeroCount = float64(number)
		case 7:
			h.ZeroCount = math.Float64frombits(number)
		case 8, 9, 10:
			return negative.field(n-8, t, value, number)
		case 11, 12, 13:
			return positive.field(n-11, t, value, number)
		case 15:
			at = int64(number)
		case 16:
			return doubles(&h.Custom, t, value, number)
		}
		return nil
	})
	if err != nil {
		return err
	}
	h.Positive, h.Negative = positive.whole(), negative.whole()
	return d.to.Histogram(at, &h)
}

// field reads spans (0), differences (1) or counts (2).
func (s *side) field(what protowire.Number, t protowire.Type, value []byte, number uint64) error {
	switch what {
	case 0:
		if len(s.spans) >= nativehistogram.MaxBuckets {
			return wrong("a histogram has more than %d spans", nativehistogram.MaxBuckets)
		}
		var span nativehistogram.Span
		err := fields(value, func(n protowire.Number, _ protowire.Type, _ []byte, number uint64) error {
			switch n {
			case 1:
				span.Offset = int32(protowire.DecodeZigZag(number))
			case 2:
				span.Length = uint32(min(number, math.MaxInt32))
			}
			return nil
		})
		s.spans = append(s.spans, span)
		return err
	case 1:
		if t == protowire.VarintType {
			s.deltas = append(s.deltas, protowire.DecodeZigZag(number))
			return s.bound(len(s.deltas))
		}
		for len(value) > 0 {
			v, size := protowire.ConsumeVarint(value)
			if size < 0 {
				return wrong("the buckets of a histogram end inside a number")
			}
			value, s.deltas = value[size:], append(s.deltas, protowire.DecodeZigZag(v))
			if err := s.bound(len(s.deltas)); err != nil {
				return err
			}
		}
		return nil
	}
	return doubles(&s.counts, t, value, number)
}

func (s *side) bound(n int) error {
	if n > nativehistogram.MaxBuckets {
		return wrong("a histogram has more than %d buckets", nativehistogram.MaxBuckets)
	}
	return nil
}

// doubles reads packed or single numbers.
func doubles(to *[]float64, t protowire.Type, value []byte, number uint64) error {
	if t == protowire.Fixed64Type {
		value = protowire.AppendFixed64(nil, number)
	}
	if len(value)%8 != 0 || len(*to)+len(value)/8 > nativehistogram.MaxBuckets {
		return wrong("a histogram has a list of %d bytes, expected a multiple of 8 and at most %d numbers", len(value), nativehistogram.MaxBuckets)
	}
	for ; len(value) > 0; value = value[8:] {
		v, _ := protowire.ConsumeFixed64(value)
		*to = append(*to, math.Float64frombits(v))
	}
	return nil
}

// whole makes counts of differences.
func (s *side) whole() nativehistogram.Side {
	counts, sum := s.counts, int64(0)
	for _, delta := range s.deltas {
		sum += delta
		counts = append(counts, float64(sum))
	}
	return nativehistogram.Side{Spans: s.spans, Counts: counts}
}
