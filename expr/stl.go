package expr

import (
	"context"
	"math"
	"slices"
	"time"

	"tidemark/model"
)

// anomalies holds the parameters of trendstl.
type anomalies struct {
	// detect and season are in hours.
	detect, season int
	deviations     float64
	deviation      Kind
	// span is the seasonal window of the decomposition; zero for nearly the same season all the time.
	span int
}

// maxSTLHours bounds the hours of trendstl, whose cost grows faster than they do.
const maxSTLHours = 4000

// bindSTL reads the parameters of trendstl behind the period: detection period, season, deviations, algorithm, window.
func (p *parser) bindSTL(f *Func, params []parameter) error {
	a := &anomalies{deviations: 3, deviation: kindMad}
	hours := int(f.Window.Span / time.Hour)
	if hours > maxSTLHours {
		return p.fail(params[0].at, "expected at most %dh for trendstl, found %q", maxSTLHours, params[0].text)
	}
	for i, to := range []*int{&a.detect, &a.season} {
		d, ok := ParseDuration(params[i+1].text, true)
		if !ok || d < time.Hour || d%time.Hour != 0 || int(d/time.Hour) > hours {
			return p.fail(params[i+1].at, "expected whole hours within the period of trendstl, found %q", params[i+1].text)
		}
		*to = int(d / time.Hour)
	}
	if a.season < 2 || 2*a.season > hours {
		return p.fail(params[2].at, "expected a season of 2h to half of the period, found %q", params[2].text)
	}
	if len(params) > 3 && params[3].text != "" {
		v, ok := parseNumber(params[3].text)
		if !ok || v < 1 || v > 1e6 {
			return p.fail(params[3].at, "expected a number of deviations from 1, found %q", params[3].text)
		}
		a.deviations = v
	}
	if len(params) > 4 && params[4].text != "" {
		kind, ok := map[string]Kind{"mad": kindMad, "stddevpop": kindStddevPop, "stddevsamp": kindStddevSamp}[params[4].text]
		if !ok {
			return p.fail(params[4].at, "expected mad, stddevpop or stddevsamp, found %q", params[4].text)
		}
		a.deviation = kind
	}
	if len(params) > 5 && params[5].text != "" {
		v, ok := parseNumber(params[5].text)
		if !ok || v < 7 || v > 1e6 || v != math.Trunc(v) {
			return p.fail(params[5].at, "expected a seasonal window from 7, found %q", params[5].text)
		}
		a.span = int(v)
	}
	f.anomalies = a
	return nil
}

// stl is the share of hours in the detection period, the end of the period, whose average lies further from season and trend than usual.
// Missing hours are put in between their neighbours and never count.
//
// Source: Zabbix documentation, "Trend functions"; decomposition as decompose says.
func (m *Machine) stl(ctx context.Context, f *Func, item *Item) (operand, FailCode) {
	a := f.anomalies
	r := f.Window.trendRange(m.moment.At, m.Zone, 0, 0)
	n := int((r.To - r.From) / int64(time.Hour))
	if n < 2*a.season || n > maxSTLHours+24 {
		return unknown(FailNoData)
	}
	trends, t, err := m.Trends.Hours(ctx, item.ID, r, m.trends[:0])
	if m.trends = trends; err != nil {
		return unknown(FailHistory)
	}
	values := make([]float64, n)
	for i := range values {
		values[i] = math.NaN()
	}
	for i := range trends {
		if h := &trends[i]; h.Count > 0 {
			if at := int((h.At - r.From) / int64(time.Hour)); at >= 0 && at < n {
				values[at] = h.Average(t)
			}
		}
	}
	key, sum := stlKey{item.ID, f}, hashOf(values)
	if have, ok := m.stls[key]; ok && have.sum == sum {
		return have.result, have.code
	}
	result, code := a.share(values)
	if m.stls == nil || len(m.stls) >= maxSTLResults {
		m.stls = make(map[stlKey]stlResult)
	}
	m.stls[key] = stlResult{sum, result, code}
	return result, code
}

// maxSTLResults bounds the results that are kept: the hours of a period change once an hour, and are asked for every half minute.
const maxSTLResults = 10_000

type stlKey struct {
	item model.ItemID
	f    *Func
}

type stlResult struct {
	sum    uint64
	result operand
	code   FailCode
}

func hashOf(values []float64) uint64 {
	sum := uint64(14695981039346656037)
	for _, v := range values {
		sum = (sum ^ math.Float64bits(v)) * 1099511628211
		sum ^= sum >> 29
	}
	return sum
}

// share is the share of odd hours at the end of the values, of which those that are not there are NaN.
func (a *anomalies) share(values []float64) (operand, FailCode) {
	n := len(values)
	there := slices.Clone(values)
	if !fillGaps(values, n/2) {
		return unknown(FailNoData)
	}
	rest := decompose(values, a.season, a.span)
	usual, code := deviationOf(a.deviation, rest)
	if code != FailNone {
		return unknown(code)
	}
	noise := 0.0
	for _, v := range values {
		noise = max(noise, math.Abs(v))
	}
	limit := max(a.deviations*usual, noise*1e-9)
	odd, all := 0, 0
	for i := n - a.detect; i < n; i++ {
		if math.IsNaN(there[i]) {
			continue
		}
		if all++; math.Abs(rest[i]) > limit {
			odd++
		}
	}
	if all == 0 {
		return unknown(FailNoData)
	}
	return known(float64(odd) / float64(all))
}

func deviationOf(k Kind, rest []float64) (float64, FailCode) {
	if k == kindMad {
		return medianDeviation(slices.Clone(rest)), FailNone
	}
	o, code := moments(k, rest)
	return o.number, code
}

// fillGaps puts values between their neighbours; false when more than most are missing.
func fillGaps(values []float64, most int) bool {
	last, missing := -1, 0
	for i, v := range values {
		if math.IsNaN(v) {
			missing++
			continue
		}
		for k := last + 1; k < i; k++ {
			if last < 0 {
				values[k] = v
				continue
			}
			values[k] = values[last] + (v-values[last])*float64(k-last)/float64(i-last)
		}
		last = i
	}
	if last < 0 || missing > most {
		return false
	}
	for k := last + 1; k < len(values); k++ {
		values[k] = values[last]
	}
	return true
}

// decompose takes season and trend out of a series and returns what is left. It is robust: single odd values do not bend the fit.
//
// Source: Cleveland, Cleveland, McRae, Terpenning: STL: A Seasonal-Trend Decomposition Procedure Based on Loess (1990), with one inner and 15 outer
// passes, seasonal degree 0, and the windows that the paper proposes.
func decompose(y []float64, season, span int) []float64 {
	n := len(y)
	if span == 0 {
		span = 10*n + 1
	}
	span |= 1
	trendSpan := int(math.Ceil(1.5*float64(season)/(1-1.5/float64(span)))) | 1
	lowSpan := season | 1
	trend, seasonal, rest := make([]float64, n), make([]float64, n), make([]float64, n)
	work, cycle := make([]float64, n), make([]float64, n+2*season)
	var weights []float64
	for range 15 {
		for i := range y {
			work[i] = y[i] - trend[i]
		}
		smoothCycles(work, weights, season, span, cycle)
		low := loess(average(average(average(cycle, season), season), 3), nil, lowSpan, 1)
		for i := range y {
			seasonal[i] = cycle[season+i] - low[i]
			work[i] = y[i] - seasonal[i]
		}
		trend = loess(work, weights, trendSpan, 1)
		for i := range y {
			rest[i] = y[i] - seasonal[i] - trend[i]
		}
		weights = bisquare(rest)
	}
	return rest
}

// smoothCycles smooths the values of each place in the season over the seasons, one season further at both ends.
func smoothCycles(y, weights []float64, season, span int, out []float64) {
	for place := range season {
		var sub, w []float64
		for i := place; i < len(y); i += season {
			sub = append(sub, y[i])
			if weights != nil {
				w = append(w, weights[i])
			}
		}
		for k := -1; k <= len(sub); k++ {
			if at := place + (k+1)*season; at < len(out) {
				out[at] = loessAt(sub, w, float64(k), span, 0)
			}
		}
	}
}

// average is the moving average, len(y)-n+1 long.
func average(y []float64, n int) []float64 {
	out := make([]float64, len(y)-n+1)
	sum := 0.0
	for _, v := range y[:n] {
		sum += v
	}
	for i := range out {
		out[i] = sum / float64(n)
		if i+n < len(y) {
			sum += y[i+n] - y[i]
		}
	}
	return out
}

func loess(y, weights []float64, span, degree int) []float64 {
	out := make([]float64, len(y))
	for i := range y {
		out[i] = loessAt(y, weights, float64(i), span, degree)
	}
	return out
}

// loessAt is the local fit of a degree (0 or 1) at x, of the span values around it; weights may be nil.
func loessAt(y, weights []float64, x float64, span, degree int) float64 {
	n := len(y)
	from := max(0, min(int(math.Round(x))-span/2, n-span))
	to := min(n, from+span)
	reach := max(x-float64(from), float64(to-1)-x)
	if span > n {
		reach += float64(span-n) / 2
	}
	reach = max(reach, 1e-9)
	var sum, sumX, sumXX, sumY, sumXY float64
	for i := from; i < to; i++ {
		d := float64(i) - x
		w := 1.0
		if r := math.Abs(d) / reach; r > 0.999 {
			continue
		} else if r > 0.001 {
			c := 1 - r*r*r
			w = c * c * c
		}
		if weights != nil {
			w *= weights[i]
		}
		sum, sumX, sumXX = sum+w, sumX+w*d, sumXX+w*d*d
		sumY, sumXY = sumY+w*y[i], sumXY+w*d*y[i]
	}
	if sum <= 0 {
		return y[max(0, min(n-1, int(math.Round(x))))]
	}
	if det := sum*sumXX - sumX*sumX; degree > 0 && det > 1e-12*sum*sum*reach*reach {
		return (sumXX*sumY - sumX*sumXY) / det
	}
	return sumY / sum
}

// bisquare gives values that are far off little weight or none.
func bisquare(rest []float64) []float64 {
	sizes := make([]float64, len(rest))
	for i, r := range rest {
		sizes[i] = math.Abs(r)
	}
	sorted := slices.Sorted(slices.Values(sizes))
	middle := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	limit := 6 * middle
	weights := make([]float64, len(rest))
	for i, r := range sizes {
		switch {
		case r <= 0.001*limit:
			weights[i] = 1
		case r <= 0.999*limit:
			c := 1 - (r/limit)*(r/limit)
			weights[i] = c * c
		}
	}
	return weights
}
