package promql

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"tidemark/model"
	"tidemark/storage"
)

// foldValues is how many values a sample must stand for at least, so that summing up is worth it.
const foldValues = 8

// plain reports whether the ranges of all selectors begin at steps of the query. Those in subqueries begin elsewhere.
func plain(expr parser.Expr) bool {
	ok := true
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.SubqueryExpr:
			ok = false
		case *parser.VectorSelector:
			ok = ok && !n.Anchored && !n.Smoothed
		}
		return nil
	})
	return ok
}

// seesLast reports whether a function looks at nothing but the last of several values in one millisecond, as PromQL does.
func seesLast(function string) bool {
	return function == "last_over_time" || function == "present_over_time" || function == "absent_over_time"
}

const (
	countFunction = "count_over_time"
	// countMatcher is the name of a matcher, none of which a query can have since its value is no name, that asks for how many values there are.
	countMatcher = "\x00count"
)

// countParser makes sums of count_over_time: no sample can stand for several values that are counted, but for their number it can. Texts and positions in
// messages stay what they were.
type countParser struct{ parser.Parser }

// ParseExpr parses a query.
func (p countParser) ParseExpr(text string) (parser.Expr, error) {
	expr, err := p.Parser.ParseExpr(text)
	if err != nil || !plain(expr) {
		return expr, err
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		call, ok := node.(*parser.Call)
		if !ok || call.Func.Name != countFunction || len(call.Args) != 1 {
			return nil
		}
		m, ok := call.Args[0].(*parser.MatrixSelector)
		if !ok {
			return nil
		}
		if v, ok := m.VectorSelector.(*parser.VectorSelector); ok {
			v.LabelMatchers = append(v.LabelMatchers, labels.MustNewMatcher(labels.MatchEqual, countMatcher, ""))
			call.Func = parser.Functions["sum_over_time"]
		}
		return nil
	})
	return expr, nil
}

// withoutCount takes the matcher out that asks for numbers of values, and reports whether there was one.
func withoutCount(matchers []*labels.Matcher) ([]*labels.Matcher, bool) {
	for i, m := range matchers {
		if m.Name == countMatcher {
			return slices.Delete(slices.Clone(matchers), i, i+1), true
		}
	}
	return matchers, false
}

// buckets returns the function that the engine may evaluate in part, and the length of the stretches in which: each range is some of them, one behind
// the other, and a sample for each gives the function's result over the values.
func (l *loader) buckets() (function string, millis int64) {
	length := l.hints.Range
	if length <= 0 || !l.selector.queryable.plain || !l.selector.queryable.querier.CanFold() {
		return "", 0
	}
	width := gcd(length, l.hints.Step)
	if l.counts {
		return countFunction, width
	}
	switch l.hints.Func {
	case "min_over_time", "max_over_time", "sum_over_time", "last_over_time", "first_over_time", "present_over_time", "absent_over_time":
		return l.hints.Func, width
	case "avg_over_time":
		if width == length { // an average of averages is none
			return l.hints.Func, width
		}
	}
	return "", 0
}

func gcd(a, b int64) int64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// fold lets the engine sum up the values of items that have many in each bucket, and returns those whose values must be read.
func (l *loader) fold(ctx context.Context, ids []model.ItemID) (left []model.ItemID, err error) {
	function, width := l.buckets()
	if function == "" {
		return ids, nil
	}
	q := l.selector.queryable.querier
	var many []model.ItemID
	for _, id := range ids {
		if entry, ok := q.Catalog().Item(id); ok && entry.Interval > 0 && entry.Interval <= time.Duration(width)*time.Millisecond/foldValues {
			many = append(many, id)
		} else {
			left = append(left, id)
		}
	}
	// Ranges leave out their first instant, which the engine's start takes into account.
	r := model.TimeRange{From: nanos(l.hints.Start), To: nanos(l.hints.End + 1)}
	unfit := map[model.ItemID]bool{}
	err = q.Fold(ctx, many, r, nanos(width), func(c *storage.FoldColumns) error {
		if s := l.byItem[c.Item]; s != nil && !unfit[c.Item] {
			unfit[c.Item] = !s.takeFolds(c, function, width)
		}
		return l.spend(len(c.Folds))
	})
	if err != nil {
		return nil, err
	}
	for id, is := range unfit {
		if is {
			s := l.byItem[id]
			s.at, s.values, s.foldedFrom = nil, nil, nil
			left = append(left, id)
		}
	}
	return left, nil
}

// takeFolds takes a sample for each fold, at its end. It reports false where PromQL sees something else than the sums: values that are no numbers, which
// may be marks of staleness; several in one millisecond, of which it sees the last; a change of type.
func (s *series) takeFolds(c *storage.FoldColumns, function string, width int64) bool {
	for i := range c.Folds {
		f := &c.Folds[i]
		at := millis(f.At) + width - 1
		if n := len(s.at); f.NaNs > 0 || n > 0 && s.at[n-1] >= at {
			return false
		}
		number := func(bits uint64) float64 {
			one := model.Columns{Type: c.Type, Bits: []uint64{bits}}
			return one.Float(0)
		}
		v := 0.0
		switch function {
		case "min_over_time":
			v = number(f.Min)
		case "max_over_time":
			v = number(f.Max)
		case "last_over_time", "present_over_time", "absent_over_time":
			v = number(f.Last)
		case "first_over_time":
			v = number(f.First)
		case countFunction:
			v = float64(f.Count)
		case "sum_over_time":
			v = f.Total(c.Type)
		default:
			v = f.Total(c.Type) / float64(f.Count)
		}
		if f.Dense && !seesLast(function) {
			return false
		}
		if s.foldedFrom == nil {
			first := millis(f.FirstAt)
			s.foldedFrom = &first
		}
		s.at, s.values = append(s.at, at), append(s.values, v)
	}
	return true
}
