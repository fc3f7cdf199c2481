package model

// Trend summarises the values of one item in one step of a tier (one hour for Zabbix's trends).
type Trend struct {
	// At is the start of the step, Unix nanoseconds.
	At    int64
	Count uint64
	// Min, Max, First and Last are payloads in the item's value type (see Columns.Bits).
	Min, Max, First, Last uint64
	// Sum is the sum of float values. For Uint items SumHigh:SumLow is the exact 128-bit sum instead.
	Sum             float64
	SumHigh, SumLow uint64
	// Increase is the growth of a counter in the step including the rise from the value before it; a fall is a
	// reset and counts the new value. It makes rate() right on a tier.
	Increase float64
}

// Average returns the mean as a float.
func (t *Trend) Average(vt ValueType) float64 {
	if t.Count == 0 {
		return 0
	}
	if vt == Uint {
		return (float64(t.SumHigh)*18446744073709551616.0 + float64(t.SumLow)) / float64(t.Count)
	}
	return t.Sum / float64(t.Count)
}

// TimeRange is half-open: From ≤ t < To, Unix nanoseconds.
type TimeRange struct{ From, To int64 }

// Contains reports whether at lies in the range.
func (r TimeRange) Contains(at int64) bool { return r.From <= at && at < r.To }
