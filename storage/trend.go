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
