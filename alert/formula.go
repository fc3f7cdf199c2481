package alert

import (
	"errors"
	"fmt"
	"strings"
)

// Limits of a formula.
const (
	maxFormulaBytes = 1024
	maxFormulaDepth = 64
)

// formula is a parsed expression of conditions: a tree of and, or and not over their places.
type formula struct {
	op        byte // 'c' a condition, '&', '|', '!'
	condition int
	left      *formula
	right     *formula
}

func (f *formula) holds(value func(int) bool) bool {
	switch f.op {
	case '&':
		return f.left.holds(value) && f.right.holds(value)
	case '|':
		return f.left.holds(value) || f.right.holds(value)
	case '!':
		return !f.left.holds(value)
	}
	return value(f.condition)
}

// parser reads words and parentheses; "not" binds closer than "and", that closer than "or".
type parser struct {
	words  []string
	labels map[string]int
}

func parseFormula(text string, labels map[string]int) (formula, error) {
	if len(text) > maxFormulaBytes {
		return formula{}, fmt.Errorf("%d bytes, expected at most %d", len(text), maxFormulaBytes)
	}
	p := parser{words: strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(text)), labels: labels}
	f, err := p.or(0)
	if err != nil {
		return formula{}, err
	}
	if len(p.words) > 0 {
		return formula{}, fmt.Errorf("found %.40q, expected and, or, or the end", p.words[0])
	}
	return *f, nil
}

func (p *parser) take(word string) bool {
	if len(p.words) == 0 || p.words[0] != word {
		return false
	}
	p.words = p.words[1:]
	return true
}

func (p *parser) or(depth int) (*formula, error) {
	left, err := p.and(depth)
	for err == nil && p.take("or") {
		var right *formula
		right, err = p.and(depth)
		left = &formula{op: '|', left: left, right: right}
	}
	return left, err
}

func (p *parser) and(depth int) (*formula, error) {
	left, err := p.not(depth)
	for err == nil && p.take("and") {
		var right *formula
		right, err = p.not(depth)
		left = &formula{op: '&', left: left, right: right}
	}
	return left, err
}

func (p *parser) not(depth int) (*formula, error) {
	if depth > maxFormulaDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxFormulaDepth)
	}
	switch {
	case p.take("not"):
		inner, err := p.not(depth + 1)
		return &formula{op: '!', left: inner}, err
	case p.take("("):
		inner, err := p.or(depth + 1)
		if err == nil && !p.take(")") {
			err = errors.New("a parenthesis is not closed")
		}
		return inner, err
	case len(p.words) == 0:
		return nil, errors.New("it ends, expected the label of a condition")
	}
	i, ok := p.labels[p.words[0]]
	if !ok {
		return nil, fmt.Errorf("found %.40q, expected the label of a condition", p.words[0])
	}
	p.words = p.words[1:]
	return &formula{op: 'c', condition: i}, nil
}
