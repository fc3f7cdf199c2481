package jsonpath

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"tidemark/internal/pcre"
)

type operator uint8

const (
	opValue operator = iota
	opPath
	opNot
	opNegate
	opMultiply
	opDivide
	opAdd
	opSubtract
	opEqual
	opNotEqual
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opMatch
	opAnd
	opOr
)

// filter is a node of a filter's expression.
type filter struct {
	op          operator
	left, right *filter
	value       operand
	// segments are a path's; root tells $ from @.
	segments []segment
	root     bool
	// regex is compiled when the pattern is a constant.
	regex *pcre.Regexp
}

type operandKind uint8

const (
	isMissing operandKind = iota
	isNumber
	isText
)

// operand is a value in a filter.
type operand struct {
	kind   operandKind
	number float64
	text   string
}

// operators in the order in which they are tried, with how strongly they bind.
var operators = []struct {
	text     string
	op       operator
	priority int
}{
	{"||", opOr, 1},
	{"&&", opAnd, 2},
	{"==", opEqual, 3},
	{"!=", opNotEqual, 3},
	{"=~", opMatch, 3},
	{"<=", opLessEqual, 3},
	{">=", opGreaterEqual, 3},
	{"<", opLess, 3},
	{">", opGreater, 3},
	{"+", opAdd, 4},
	{"-", opSubtract, 4},
	{"*", opMultiply, 5},
	{"/", opDivide, 5},
}

// filter reads an expression whose operators bind stronger than limit.
func (p *pathReader) filter(limit int) (*filter, error) {
	if p.depth++; p.depth > maxFilterDepth {
		return nil, p.fail(fmt.Sprintf("expected at most %d nested expressions", maxFilterDepth))
	}
	defer func() { p.depth-- }()
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	for {
		p.space()
		found := false
		for _, o := range operators {
			if !strings.HasPrefix(p.text[p.at:], o.text) {
				continue
			}
			if o.priority <= limit {
				return left, nil
			}
			found = true
			p.at += len(o.text)
			right, err := p.filter(o.priority)
			if err != nil {
				return nil, err
			}
			left = &filter{op: o.op, left: left, right: right}
			break
		}
		if !found {
			return left, nil
		}
		if left.op == opMatch && left.right.op == opValue {
			if left.regex, err = pcre.Compile(left.right.value.text); err != nil {
				return nil, p.fail(err.Error())
			}
		}
	}
}

func (p *pathReader) operand() (*filter, error) {
	p.space()
	switch c := p.peek(); {
	case c == '(':
		p.at++
		f, err := p.filter(0)
		if err != nil {
			return nil, err
		}
		p.space()
		if p.peek() != ')' {
			return nil, p.fail("expected an operator or ), found " + p.found())
		}
		p.at++
		return f, nil
	case c == '!' || c == '-':
		p.at++
		f, err := p.filter(6)
		if err != nil {
			return nil, err
		}
		if c == '!' {
			return &filter{op: opNot, left: f}, nil
		}
		return &filter{op: opNegate, left: f}, nil
	case c == '\'' || c == '"':
		text, err := p.quoted()
		return &filter{value: operand{kind: isText, text: text}}, err
	case c == '@' || c == '$':
		p.at++
		segments, err := p.segments(true)
		return &filter{op: opPath, root: c == '$', segments: segments}, err
	case c == '.' || c >= '0' && c <= '9':
		return p.constant("0123456789.eE")
	}
	return p.constant("truefalsn")
}

// constant reads a number or one of the words true, false and null.
func (p *pathReader) constant(bytes string) (*filter, error) {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte(bytes, p.text[p.at]) >= 0 {
		p.at++
	}
	text := p.text[start:p.at]
	switch text {
	case "true", "false", "null":
		return &filter{value: operand{kind: isText, text: text}}, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		p.at = start
		return nil, p.fail("expected a path, a number or a text in quotes, found " + p.found())
	}
	return &filter{value: operand{kind: isNumber, number: v}}, nil
}

// truth is what an operand means as a condition.
func (o operand) truth() bool {
	return o.kind == isNumber && o.number != 0 || o.kind == isText && o.text != ""
}

func boolean(b bool) operand {
	if b {
		return operand{kind: isNumber, number: 1}
	}
	return operand{kind: isNumber}
}

// asNumber returns an operand as a number.
func (o operand) asNumber() (float64, bool) {
	if o.kind != isText {
		return o.number, o.kind == isNumber
	}
	if o.text == "" || strings.Trim(o.text, "0123456789.eE+-") != "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(o.text, 64)
	return v, err == nil
}

func (o operand) asText() string {
	if o.kind == isNumber {
		return formatNumber(o.number)
	}
	return o.text
}

// evaluate returns the filter's value for node at.
func (q *query) evaluate(f *filter, at uint32) (operand, error) {
	switch f.op {
	case opValue:
		return f.value, nil
	case opPath:
		return q.pathOperand(f, at)
	}
	left, err := q.evaluate(f.left, at)
	if err != nil {
		return left, err
	}
	switch f.op {
	case opNot:
		return boolean(!left.truth()), nil
	case opNegate:
		v, ok := left.asNumber()
		if !ok {
			return operand{}, nil
		}
		return operand{kind: isNumber, number: -v}, nil
	case opAnd:
		if !left.truth() {
			return boolean(false), nil
		}
	case opOr:
		if left.truth() {
			return boolean(true), nil
		}
	}
	right, err := q.evaluate(f.right, at)
	if err != nil {
		return right, err
	}
	switch f.op {
	case opAnd, opOr:
		return boolean(right.truth()), nil
	case opMatch:
		return matches(f, left, right)
	case opAdd, opSubtract, opMultiply, opDivide:
		return arithmetic(f.op, left, right), nil
	}
	return boolean(compare(f.op, left, right)), nil
}

// pathOperand is what a path finds: its first value as text, or nothing.
func (q *query) pathOperand(f *filter, at uint32) (operand, error) {
	start := at
	if f.root {
		start = 0
	}
	if n, found, simple := q.follow(f.segments, start); simple {
		if !found {
			return operand{}, nil
		}
		return operand{kind: isText, text: q.textOf(n)}, nil
	}
	r, err := q.walk(f.segments, start)
	if err != nil || r.empty() {
		return operand{}, err
	}
	return operand{kind: isText, text: string(q.firstText(&r))}, nil
}

// follow is walk for paths of single names and indexes only, which nearly all paths in filters are; it does not allocate.
func (q *query) follow(segments []segment, n uint32) (at uint32, found, simple bool) {
	for i := range segments {
		s := &segments[i]
		if !s.definite() {
			return 0, false, false
		}
	}
	for i := range segments {
		out, err := q.children(&segments[i], n, q.room[:0])
		q.room = out
		if err != nil || len(out) == 0 {
			return 0, false, true
		}
		n = out[0]
	}
	return n, true, true
}

func matches(f *filter, left, right operand) (operand, error) {
	if left.kind == isMissing || right.kind == isMissing {
		return boolean(false), nil
	}
	re := f.regex
	if re == nil {
		var err error
		if re, err = pcre.Compile(right.asText()); err != nil {
			return operand{}, err
		}
	}
	ok, err := re.Match([]byte(left.asText()))
	return boolean(ok), err
}

func arithmetic(op operator, left, right operand) operand {
	a, ok := left.asNumber()
	b, both := right.asNumber()
	if !ok || !both {
		return operand{}
	}
	switch op {
	case opAdd:
		a += b
	case opSubtract:
		a -= b
	case opMultiply:
		a *= b
	default:
		a /= b
	}
	if math.IsNaN(a) || math.IsInf(a, 0) {
		return operand{}
	}
	return operand{kind: isNumber, number: a}
}

// epsilon is the tolerance of comparisons of numbers.
const epsilon = 2.22e-16

// compare compares as numbers if both are, else as text. Nothing equals nothing and is less than nothing.
func compare(op operator, left, right operand) bool {
	if left.kind == isMissing || right.kind == isMissing {
		same := left.kind == right.kind
		return op == opEqual && same || op == opNotEqual && !same
	}
	a, ok := left.asNumber()
	b, both := right.asNumber()
	order := 0
	if ok && both {
		if math.Abs(a-b) > epsilon {
			order = cmp.Compare(a, b)
		}
	} else {
		order = cmp.Compare(left.asText(), right.asText())
	}
	switch op {
	case opEqual:
		return order == 0
	case opNotEqual:
		return order != 0
	case opLess:
		return order < 0
	case opLessEqual:
		return order <= 0
	case opGreater:
		return order > 0
	}
	return order >= 0
}
