package storage

import (
	"math"
	"math/bits"
	"time"

	"tidemark/model"
)

// Hour is the step of Trends in nanoseconds.
const Hour = int64(time.Hour)

// HourOf returns the start of the hour that holds at.
func HourOf(at int64) int64 {
	hour := at - at%Hour
	if hour > at {
		hour -= Hour
	}
	return hour
}

// AddToTrend adds a value to a trend whose values come in time order; previous is the item's value before it, if
// there is one. NaN is no number and is passed over: AddToTrend reports whether the value was counted. Every engine summarises with
// this function, so that all give the same bits.
func AddToTrend(t *model.Trend, vt model.ValueType, value uint64, previous uint64, hasPrevious bool) bool {
	if vt == model.Uint {
		addUint(t, value, previous, hasPrevious)
		return true
	}
	v := math.Float64frombits(value)
	if math.IsNaN(v) {
		return false
	}
	if t.Count == 0 {
		t.Min, t.Max, t.First = value, value, value
	}
	if v < math.Float64frombits(t.Min) {
		t.Min = value
	}
	if v > math.Float64frombits(t.Max) {
		t.Max = value
	}
	t.Count++
	t.Last = value
	t.Sum += v
	if hasPrevious {
		if p := math.Float64frombits(previous); v >= p {
			t.Increase += v - p
		} else {
			t.Increase += v
		}
	}
	return true
}

func addUint(t *model.Trend, v, previous uint64, hasPrevious bool) {
	if t.Count == 0 {
		t.Min, t.Max, t.First = v, v, v
	}
	t.Min, t.Max = min(t.Min, v), max(t.Max, v)
	t.Count++
	t.Last = v
	var carry uint64
	t.SumLow, carry = bits.Add64(t.SumLow, v, 0)
	t.SumHigh += carry
	if hasPrevious {
		if v >= previous {
			t.Increase += float64(v - previous)
		} else {
			t.Increase += float64(v)
		}
	}
}

// AddRunToTrend adds values of one hour in time order, and returns the last one that was counted, for the next call. It
// gives the bits that AddToTrend gives for one value after the other, sooner.
func AddRunToTrend(t *model.Trend, vt model.ValueType, values []uint64, previous uint64, hasPrevious bool) (uint64, bool) {
	i := 0
	for ; i < len(values) && (t.Count == 0 || !hasPrevious); i++ {
		if AddToTrend(t, vt, values[i], previous, hasPrevious) {
			previous, hasPrevious = values[i], true
		}
	}
	values = values[i:]
	if len(values) == 0 {
		return previous, hasPrevious
	}
	if vt == model.Uint {
		return addUints(t, values, previous), true
	}
	low, high, last := math.Float64frombits(t.Min), math.Float64frombits(t.Max), math.Float64frombits(previous)
	sum, increase, count := t.Sum, t.Increase, t.Count
	for _, b := range values {
		v := math.Float64frombits(b)
		if v != v {
			continue
		}
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
		count++
		sum += v
		d := v
		if v >= last {
			d = v - last
		}
		increase += d
		last = v
	}
	t.Min, t.Max, t.Last = math.Float64bits(low), math.Float64bits(high), math.Float64bits(last)
	t.Sum, t.Increase, t.Count = sum, increase, count
	return t.Last, true
}

func addUints(t *model.Trend, values []uint64, previous uint64) uint64 {
	low, high, increase := t.Min, t.Max, t.Increase
	sumLow, sumHigh := t.SumLow, t.SumHigh
	for _, v := range values {
		low, high = min(low, v), max(high, v)
		var carry uint64
		sumLow, carry = bits.Add64(sumLow, v, 0)
		sumHigh += carry
		if v >= previous {
			increase += float64(v - previous)
		} else {
			increase += float64(v)
		}
		previous = v
	}
	t.Min, t.Max, t.Increase, t.SumLow, t.SumHigh = low, high, increase, sumLow, sumHigh
	t.Last = previous
	t.Count += uint64(len(values))
	return previous
}
