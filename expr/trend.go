package expr

import (
	"context"
	"math"

	"tidemark/model"
)

// maxSeasons bounds the seasons of a baseline.
const maxSeasons = 60

// trend evaluates a function of hourly trends.
func (m *Machine) trend(ctx context.Context, f *Func, item *Item) (operand, FailCode) {
	if !item.Type.Numeric() {
		return unknown(FailType)
	}
	if m.Trends == nil {
		return unknown(FailTrends)
	}
	if f.Kind == kindBaselineDev || f.Kind == kindBaselineWma {
		return m.baseline(ctx, f, item)
	}
	if f.Kind == kindTrendStl {
		return m.stl(ctx, f, item)
	}
	s, err := m.hours(ctx, item.ID, f.Window.trendRange(m.moment.At, m.Zone, 0, 0))
	if err != nil {
		return unknown(FailHistory)
	}
	if f.Kind == kindTrendCount {
		return known(float64(s.Count))
	}
	if s.Count == 0 {
		return unknown(FailNoData)
	}
	switch f.Kind {
	case kindTrendMin:
		return known(s.Min)
	case kindTrendMax:
		return known(s.Max)
	case kindTrendSum:
		return known(s.Sum)
	}
	return known(s.Sum / float64(s.Count))
}

// hours sums the trends of a range up.
func (m *Machine) hours(ctx context.Context, item model.ItemID, r model.TimeRange) (Summary, error) {
	s := Summary{Min: math.Inf(1), Max: math.Inf(-1)}
	var t model.ValueType
	var err error
	if m.trends, t, err = m.Trends.Hours(ctx, item, r, m.trends[:0]); err != nil {
		return s, err
	}
	for i := range m.trends {
		h := &m.trends[i]
		if h.Count == 0 {
			continue
		}
		s.Count += h.Count
		s.Min, s.Max = min(s.Min, number(t, h.Min)), max(s.Max, number(t, h.Max))
		s.Sum += h.Average(t) * float64(h.Count)
	}
	return s, nil
}

// baseline compares the same period in several seasons by their averages. baselinewma weights newer seasons more; baselinedev is
// how far the newest period lies from the average of all, in standard deviations.
//
// Source: Zabbix documentation, "Trend functions".
func (m *Machine) baseline(ctx context.Context, f *Func, item *Item) (operand, FailCode) {
	seasons := int(f.number)
	first := 1
	if f.Kind == kindBaselineDev {
		first = 0
	}
	var sum, weights float64
	m.floats = m.floats[:0]
	for back := first; back <= seasons; back++ {
		s, err := m.hours(ctx, item.ID, f.Window.trendRange(m.moment.At, m.Zone, f.season, back))
		if err != nil {
			return unknown(FailHistory)
		}
		if s.Count == 0 {
			if back == 0 {
				return unknown(FailNoData)
			}
			continue
		}
		average := s.Sum / float64(s.Count)
		weight := float64(seasons - back + 1)
		sum, weights = sum+average*weight, weights+weight
		m.floats = append(m.floats, average)
	}
	if len(m.floats) == 0 {
		return unknown(FailNoData)
	}
	if f.Kind == kindBaselineWma {
		return known(sum / weights)
	}
	mean, _ := aggregateList(kindAvg, m.floats)
	deviation, code := moments(kindStddevPop, m.floats)
	if code != FailNone {
		return unknown(code)
	}
	if equal(deviation.number, 0) {
		return known(0)
	}
	return known(math.Abs(m.floats[0]-mean) / deviation.number)
}
