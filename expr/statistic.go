package expr

import (
	"math"
	"slices"
	"time"

	"tidemark/model"
)

// statistic evaluates a function of all values in m.columns.
func (m *Machine) statistic(f *Func) (operand, FailCode) {
	c := &m.columns
	if len(c.At) == 0 {
		switch f.Kind {
		case kindCountUnique:
			return known(0)
		case kindForecast, kindTimeleft:
			return known(-1)
		}
		return unknown(FailNoData)
	}
	switch f.Kind {
	case kindCountUnique:
		return m.countUnique(f)
	case kindChangeCount:
		return m.changeCount(f)
	}
	if !c.Type.Numeric() {
		return unknown(FailType)
	}
	m.floats = m.floats[:0]
	for i := range c.Bits {
		m.floats = append(m.floats, number(c.Type, c.Bits[i]))
	}
	switch f.Kind {
	case kindPercentile:
		slices.Sort(m.floats)
		rank := max(1, math.Ceil(float64(len(m.floats))*f.number/100))
		return known(m.floats[int(rank)-1])
	case kindMonoInc, kindMonoDec:
		return known(truth(monotone(m.floats, f.Kind == kindMonoInc, f.number == 1)))
	case kindRate:
		return rate(c.At, m.floats, f.Window.At(m.moment.At, m.Zone))
	case kindForecast, kindTimeleft:
		return known(predicted(f, c.At, m.floats, m.moment.At))
	case kindMad:
		return known(medianDeviation(m.floats))
	case kindSumOfSquares:
		sum := 0.0
		for _, v := range m.floats {
			sum += v * v
		}
		return known(sum)
	}
	return moments(f.Kind, m.floats)
}

// moments computes functions of powers of the distance from the mean.
func moments(k Kind, vs []float64) (operand, FailCode) {
	n := float64(len(vs))
	mean := 0.0
	for _, v := range vs {
		mean += v / n
	}
	var second, third, fourth float64
	for _, v := range vs {
		d := v - mean
		second += d * d
		third += d * d * d
		fourth += d * d * d * d
	}
	switch k {
	case kindVarPop:
		return known(second / n)
	case kindStddevPop:
		return known(math.Sqrt(second / n))
	case kindVarSamp, kindStddevSamp:
		if len(vs) < 2 {
			return unknown(FailNoData)
		}
		if k == kindVarSamp {
			return known(second / (n - 1))
		}
		return known(math.Sqrt(second / (n - 1)))
	}
	deviation := math.Sqrt(second / n)
	if equal(deviation, 0) {
		return unknown(FailArgument)
	}
	if k == kindSkewness {
		return known(third / n / (deviation * deviation * deviation))
	}
	return known(fourth / n / (deviation * deviation * deviation * deviation))
}

// medianDeviation returns the median of the distances from the median. It reorders vs.
func medianDeviation(vs []float64) float64 {
	middle := median(vs)
	for i := range vs {
		vs[i] = math.Abs(vs[i] - middle)
	}
	return median(vs)
}

func median(vs []float64) float64 {
	slices.Sort(vs)
	half := len(vs) / 2
	if len(vs)%2 == 1 {
		return vs[half]
	}
	return (vs[half-1] + vs[half]) / 2
}

func monotone(vs []float64, rising, strict bool) bool {
	for i := 1; i < len(vs); i++ {
		step := vs[i] - vs[i-1]
		if !rising {
			step = -step
		}
		if step < 0 || strict && step == 0 {
			return false
		}
	}
	return true
}

// rate is the growth of a counter a second over a range, by the rules of Prometheus 2, as in Zabbix: a fall is a reset, and the growth is
// extended to the range's ends unless the first or last value lies far from them, and at the start not beyond where the counter would be zero.
func rate(at []int64, vs []float64, r Range) (operand, FailCode) {
	if len(vs) < 2 {
		return unknown(FailNoData)
	}
	growth := vs[len(vs)-1] - vs[0]
	for i := 1; i < len(vs); i++ {
		if vs[i] < vs[i-1] {
			growth += vs[i-1]
		}
	}
	first, last := at[0], at[len(at)-1]
	sampled := float64(last-first) / 1e9
	if r.Count > 0 {
		return known(growth / sampled)
	}
	spacing := sampled / float64(len(vs)-1)
	before := float64(first-(r.To-int64(r.Span))) / 1e9
	after := float64(r.To-last) / 1e9
	if growth > 0 && vs[0] >= 0 {
		before = min(before, sampled*(vs[0]/growth))
	}
	if before >= spacing*1.1 {
		before = spacing / 2
	}
	if after >= spacing*1.1 {
		after = spacing / 2
	}
	return known(growth * (sampled + max(0, before) + after) / sampled / (float64(r.Span) / float64(time.Second)))
}

// changeCount counts steps between neighbours: all that differ, or those up or down.
func (m *Machine) changeCount(f *Func) (operand, FailCode) {
	c := &m.columns
	if f.number != 0 && !c.Type.Numeric() {
		return unknown(FailType)
	}
	if len(c.At) < 2 {
		return unknown(FailNoData)
	}
	count := 0
	for i := 1; i < len(c.At); i++ {
		step := m.difference(c, i-1, i)
		switch {
		case f.number == 0 && !equal(step, 0), f.number == 1 && step > epsilon, f.number == 2 && step < -epsilon:
			count++
		}
	}
	return known(float64(count))
}

// countUnique counts different values that fit the operator and pattern.
func (m *Machine) countUnique(f *Func) (operand, FailCode) {
	c := &m.columns
	if c.Type == model.Binary || f.match != nil && f.match.ordered() && !c.Type.Numeric() {
		return unknown(FailType)
	}
	numbers := make(map[uint64]struct{})
	texts := make(map[string]struct{})
	for i := range c.At {
		if !m.fitsColumn(f, c, i) {
			continue
		}
		if c.Type.Numeric() {
			numbers[c.Bits[i]] = struct{}{}
			continue
		}
		if text, ok := textOf(c.Type, c.Bytes(i)); ok {
			texts[string(text)] = struct{}{}
		}
	}
	return known(float64(len(numbers) + len(texts)))
}
