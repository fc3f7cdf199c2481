package promql

import (
	"context"
	"time"

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

// buckets returns the function that the engine may evaluate in part, and the length of the stretches in which: each range is some of them, one behind
// the other, and a sample for each gives the function's result over the values.
func (l *loader) buckets() (function string, millis int64) {
	length := l.hints.Range
	if length <= 0 || !l.selector.queryable.plain || !l.selector.queryable.querier.CanFold() {
		return "", 0
	}
	width := gcd(length, l.hints.Step)
	switch l.hints.Func {
	case "min_over_time", "max_over_time", "sum_over_time", "last_over_time":
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
		case "last_over_time":
			v = number(f.Last)
		case "sum_over_time":
			v = f.Total(c.Type)
		default:
			v = f.Total(c.Type) / float64(f.Count)
		}
		if f.Dense && function != "last_over_time" {
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
