package expr

import (
	"context"
	"math"
	"slices"
	"strconv"

	"tidemark/model"
)

// element is one entry of a list: the result of one item.
type element struct {
	operand
	// bound is the upper bound of a bucket of a histogram.
	bound float64
}

// foreach evaluates a function of many items into dst, a list. Items without values add nothing to it.
func (m *Machine) foreach(ctx context.Context, f *Func, index int16, items []Item, dst *operand) {
	if m.listed == len(m.lists) {
		m.lists = append(m.lists, nil)
	}
	list := m.lists[m.listed][:0]
	for i := range items {
		item := &items[i]
		if item.Missing || item.Unsupported && f.Kind != kindExistsForeach {
			continue
		}
		e, code := m.element(ctx, f, item)
		switch code {
		case FailNone:
			list = append(list, e)
		case FailNoData, FailType:
		default:
			*dst = operand{kind: isUnknown, cause: Failure{Code: code, Func: index}}
			return
		}
	}
	m.lists[m.listed] = list
	*dst = operand{kind: isList, number: float64(m.listed)}
	m.listed++
	if f.Kind == kindBucketPercentile {
		v, code := quantile(f.number/100, list)
		if code != FailNone {
			*dst = operand{kind: isUnknown, cause: Failure{Code: code, Func: index}}
			return
		}
		*dst = operand{number: v}
	}
}

// element evaluates a function of many items for one of them.
func (m *Machine) element(ctx context.Context, f *Func, item *Item) (e element, code FailCode) {
	r := f.Window.At(m.moment.At, m.Zone)
	single := *f
	switch f.Kind {
	case kindExistsForeach:
		e.number = 1
		return e, FailNone
	case kindLastForeach:
		// The period of last_foreach bounds how old the value may be.
		found, err := m.Values.Last(ctx, item.ID, max(1, f.Window.Count), r.To-1, &m.sample)
		if found && r.Count == 0 && m.sample.At < r.From {
			return e, FailNoData
		}
		e.operand, code = m.sampled(found, err)
		return e, code
	case kindBucketRateForeach, kindBucketPercentile:
		return m.bucket(ctx, f, item, r)
	case kindCountForeach:
		single.Kind = kindCount
		e.operand, code = m.find(ctx, &single, item)
		return e, code
	case kindAvgForeach:
		single.Kind = kindAvg
	case kindMaxForeach:
		single.Kind = kindMax
	case kindMinForeach:
		single.Kind = kindMin
	default:
		single.Kind = kindSum
	}
	e.operand, code = m.aggregate(ctx, &single, item)
	return e, code
}

// bucket is the rate of an item that counts what fell into a bucket, whose upper bound is a parameter of its key.
func (m *Machine) bucket(ctx context.Context, f *Func, item *Item, r Range) (e element, code FailCode) {
	if !item.Type.Numeric() {
		return e, FailType
	}
	bound, ok := bucketBound(item.Key, max(1, int(f.number)), f.Kind == kindBucketPercentile)
	if !ok {
		return e, FailType
	}
	if err := m.read(ctx, item.ID, r); err != nil {
		return e, readFailure(err)
	}
	m.floats = m.floats[:0]
	for _, bits := range m.columns.Bits {
		m.floats = append(m.floats, number(m.columns.Type, bits))
	}
	e.bound = bound
	e.operand, code = rate(m.columns.At, m.floats, r)
	return e, code
}

// bucketBound reads the bound from a parameter of a key, counted from 1; first takes parameter 1 whatever n is.
func bucketBound(key string, n int, first bool) (float64, bool) {
	if first {
		n = 1
	}
	_, params := SplitKey(key)
	if n > len(params) {
		return 0, false
	}
	text := params[n-1]
	if text == "+Inf" || text == "inf" || text == "Inf" {
		return math.Inf(1), true
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsNaN(v)
}

// callList evaluates a function whose first argument is a list, or histogram_quantile.
func (m *Machine) callList(k Kind, args []operand) operand {
	fail := func(c FailCode) operand {
		m.fail(c, -1)
		return operand{}
	}
	var list []element
	if args[0].kind == isList {
		list = m.lists[int(args[0].number)]
	}
	switch k {
	case kindItemCount:
		return operand{number: float64(len(list))}
	case kindCount:
		return m.countList(list, args[1:])
	case kindHistogramQuantile:
		return m.histogram(args)
	}
	if len(args) > 1 {
		return fail(FailArgument)
	}
	m.floats = m.floats[:0]
	for i := range list {
		m.floats = append(m.floats, m.numeric(&list[i].operand))
	}
	if m.failed.Code != FailNone {
		return operand{}
	}
	if len(m.floats) == 0 {
		return operand{kind: isUnknown, cause: Failure{Code: FailNoData, Func: -1}}
	}
	if v, ok := aggregateList(k, m.floats); ok {
		return operand{number: v}
	}
	if k < kindStddevPop || k > kindSkewness {
		return fail(FailArgument)
	}
	result, code := moments(k, m.floats)
	if code != FailNone {
		return operand{kind: isUnknown, cause: Failure{Code: code, Func: -1}}
	}
	return result
}

// aggregateList evaluates the simple functions of a list that is not empty. It may reorder vs.
func aggregateList(k Kind, vs []float64) (float64, bool) {
	sum := 0.0
	for _, v := range vs {
		sum += v
	}
	switch k {
	case kindAvg:
		return sum / float64(len(vs)), true
	case kindSum:
		return sum, true
	case kindMin:
		return slices.Min(vs), true
	case kindMax:
		return slices.Max(vs), true
	case kindMad:
		return medianDeviation(vs), true
	case kindSumOfSquares:
		sum = 0
		for _, v := range vs {
			sum += v * v
		}
		return sum, true
	}
	return 0, false
}

// countList counts the elements that fit an operator and a pattern.
func (m *Machine) countList(list []element, args []operand) operand {
	if len(args) == 0 {
		return operand{number: float64(len(list))}
	}
	pattern := ""
	if len(args) > 1 {
		pattern = string(m.asText(&args[1]))
	}
	match, problem := newMatcher(string(m.asText(&args[0])), pattern)
	if _, ok := comparisons[string(m.asText(&args[0]))]; !ok || problem != "" {
		m.fail(FailArgument, -1)
		return operand{}
	}
	count := 0
	for i := range list {
		o := &list[i].operand
		if o.kind == isText && match.matchText(o.text) || o.kind == isNumber && match.matchNumber(model.Float, math.Float64bits(o.number), &m.buf) {
			count++
		}
	}
	return operand{number: float64(count)}
}

// histogram is histogram_quantile(q, list) or histogram_quantile(q, bound, rate, …).
func (m *Machine) histogram(args []operand) operand {
	var list []element
	switch {
	case len(args) == 2 && args[1].kind == isList:
		list = m.lists[int(args[1].number)]
	case len(args)%2 == 0:
		m.fail(FailArgument, -1)
		return operand{}
	default:
		for i := 1; i < len(args); i += 2 {
			bound := m.numeric(&args[i])
			if args[i].kind == isText && m.failed.Code != FailNone {
				// "Inf" is a text that is no number to all other functions.
				if b, ok := bucketBound("k["+string(args[i].text)+"]", 1, true); ok {
					m.failed, bound = Failure{}, b
				}
			}
			list = append(list, element{operand: operand{number: m.numeric(&args[i+1])}, bound: bound})
		}
	}
	q := m.numeric(&args[0])
	if m.failed.Code != FailNone {
		return operand{}
	}
	v, code := quantile(q, list)
	if code != FailNone {
		return operand{kind: isUnknown, cause: Failure{Code: code, Func: -1}}
	}
	return operand{number: v}
}

// quantile estimates a quantile from the rates of cumulative buckets, as Prometheus' histogram_quantile does: the value is taken to
// lie evenly in its bucket. It reorders buckets.
func quantile(q float64, buckets []element) (float64, FailCode) {
	if q < 0 || q > 1 || math.IsNaN(q) {
		return 0, FailArgument
	}
	slices.SortFunc(buckets, func(a, b element) int {
		switch {
		case a.bound < b.bound:
			return -1
		case a.bound > b.bound:
			return 1
		}
		return 0
	})
	// Buckets of the same bound, of several hosts, add up.
	merged := buckets[:0:0]
	for _, b := range buckets {
		if n := len(merged); n > 0 && merged[n-1].bound == b.bound {
			merged[n-1].number += b.number
			continue
		}
		merged = append(merged, b)
	}
	n := len(merged)
	if n < 2 || !math.IsInf(merged[n-1].bound, 1) || merged[n-1].number <= 0 {
		return 0, FailNoData
	}
	for i := 1; i < n; i++ {
		merged[i].number = max(merged[i].number, merged[i-1].number)
	}
	rank := q * merged[n-1].number
	at, _ := slices.BinarySearchFunc(merged, rank, func(e element, rank float64) int {
		if e.number < rank {
			return -1
		}
		return 1
	})
	switch {
	case at >= n-1:
		return merged[n-2].bound, FailNone
	case at == 0 && merged[0].bound <= 0:
		return merged[0].bound, FailNone
	}
	from, below := 0.0, 0.0
	if at > 0 {
		from, below = merged[at-1].bound, merged[at-1].number
	}
	return from + (merged[at].bound-from)*(rank-below)/(merged[at].number-below), FailNone
}
