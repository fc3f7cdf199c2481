package promql

import (
	"fmt"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

const (
	// maxDepth is how deep a query's expressions may be nested.
	maxDepth = 200
	// MaxSubqueryPoints is how many steps a subquery may have. The engine makes tables of that length before it looks at
	// its own limit of samples.
	MaxSubqueryPoints = 5_000_000
	// maxReads is how often nested subqueries together may read one sample. The engine counts these reads in 64 bits.
	maxReads = 1e9
	// subqueryStep is the step of a subquery that names none.
	subqueryStep = time.Minute
)

// checkBounds refuses what the engine would pay for before its own limits hold. span is the time between the first and
// the last evaluation.
func checkBounds(expr parser.Expr, span time.Duration) error {
	return checkNode(expr, bounds{span: span, reads: 1})
}

// bounds is what the expressions around a node do to it.
type bounds struct {
	span  time.Duration
	reads float64
	depth int
}

func checkNode(node parser.Node, b bounds) error {
	if b.depth++; b.depth > maxDepth {
		return &InputError{fmt.Errorf("the query is nested more than %d levels deep", maxDepth)}
	}
	if s, ok := node.(*parser.SubqueryExpr); ok {
		step := s.Step
		if step == 0 {
			step = subqueryStep
		}
		span := b.span + s.Range
		if span < 0 || span/step > MaxSubqueryPoints {
			return &InputError{fmt.Errorf("the subquery [%v:%v] has more than %d steps; make its step longer", s.Range, step, MaxSubqueryPoints)}
		}
		b.span = span
		if b.reads *= max(1, float64(s.Range)/float64(step)); b.reads > maxReads {
			return &InputError{fmt.Errorf("nested subqueries read each sample more than %.0g times; make their steps longer", maxReads)}
		}
	}
	for child := range parser.ChildrenIter(node) {
		if err := checkNode(child, b); err != nil {
			return err
		}
	}
	return nil
}
