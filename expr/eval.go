package expr

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"strconv"
	"time"

	"tidemark/model"
)

// epsilon is the tolerance of comparisons, as Zabbix has it since 5.0.
const epsilon = 2.22e-16

func equal(a, b float64) bool { return a == b || math.Abs(a-b) <= epsilon }

// FailCode says why an evaluation has no result.
type FailCode uint8

// The reasons. The ones of FailUnsupported to FailStart, and FailTrends, make one operand unknown, which "1 or" and "0 and" absorb; the others
// end the whole evaluation.
const (
	FailNone FailCode = iota
	FailBroken
	FailMissing
	FailUnsupported
	FailNoData
	FailType
	FailTooOld
	FailTooMany
	FailHistory
	FailStart
	FailDivision
	FailNumber
	FailArgument
	FailTrends
)

func (c FailCode) text() string {
	switch c {
	case FailUnsupported:
		return "the item is not supported"
	case FailNoData:
		return "not enough values in the period"
	case FailType:
		return "the function cannot use values of the item's type"
	case FailTooOld:
		return ErrTooOld.Error()
	case FailTooMany:
		return ErrTooMany.Error()
	case FailHistory:
		return "the history could not be read"
	case FailStart:
		return "the server or the item started less than the period ago"
	case FailDivision:
		return "division by zero"
	case FailNumber:
		return "expected a number, found a text that is none"
	case FailTrends:
		return "there are no trends here"
	case FailArgument:
		return "a function got a value outside of what it is defined for"
	}
	return ""
}

// Failure is why there is no result and which function of an item was the first to say so (−1: none).
type Failure struct {
	Code FailCode
	Func int16
}

// Result is the value of an expression.
type Result struct {
	Value float64
	// Text is the result if IsText is set. It is valid until the next evaluation of the same Machine.
	Text   []byte
	IsText bool
	// Failure is not FailNone when the result is unknown.
	Failure Failure
}

// True reports whether the result means PROBLEM.
func (r *Result) True() bool { return !equal(r.Value, 0) }

// Item is what an evaluation must know of one of the expression's Refs.
type Item struct {
	ID   model.ItemID
	Type model.ValueType
	// Missing items do not exist or are disabled; Unsupported ones could not be measured last time.
	Missing, Unsupported bool
	// NewestAt is the time of the newest value that came in; Since is from when on values would have been seen. Unix
	// nanoseconds; they decide nodata without a look into the history.
	NewestAt, Since int64
	// ProxySince is from when on values that come by a proxy are complete, Unix nanoseconds, and Lag for how long nothing was heard of that
	// proxy; zeros for other items. nodata looks at them unless it is strict.
	ProxySince int64
	Lag        time.Duration
	// Key is needed for bucket functions only.
	Key string
	// Many are the items that the reference of a function of many items stands for. The fields above have no meaning then.
	Many []Item
}

// Row is a value that came in just now. Functions of the newest value at its time need not look it up.
type Row struct {
	Item  model.ItemID
	At    int64
	Type  model.ValueType
	Bits  uint64
	Arena []byte
}

// Moment is when an expression is evaluated.
type Moment struct {
	// At is the time that functions are relative to, Now the clock for nodata; Unix nanoseconds.
	At, Now int64
	// Row is the value that caused the evaluation; zero for none.
	Row Row
}

// Sample is one value.
type Sample struct {
	At   int64
	Type model.ValueType
	Bits uint64
	// Text is a copy of the payload of types whose payload is bytes; implementations append to Text[:0].
	Text []byte
}

// Aggregate selects what Summary must hold.
type Aggregate uint8

// The aggregates.
const (
	WantCount Aggregate = iota
	WantSum
	WantMin
	WantMax
)

// Summary is the aggregate of a range of values. Only Count and what was asked for are set.
type Summary struct {
	Count         uint64
	Sum, Min, Max float64
}

// Values finds values of items. An error other than ErrTooOld and ErrTooMany means that history could not be read.
type Values interface {
	// Last finds the n-th newest value (n ≥ 1) at or before a time.
	Last(ctx context.Context, item model.ItemID, n int, at int64, dst *Sample) (bool, error)
	// First finds the oldest value of a range.
	First(ctx context.Context, item model.ItemID, r Range, dst *Sample) (bool, error)
	// Summary aggregates the values of a range.
	Summary(ctx context.Context, item model.ItemID, r Range, want Aggregate, dst *Summary) error
	// Read replaces the contents of dst by the values of a range, in rising order.
	Read(ctx context.Context, item model.ItemID, r Range, dst *model.Columns) error
}

// Trends finds hourly trends.
type Trends interface {
	// Hours appends the trends of a numeric item whose hours begin in a range to dst, in rising order, and tells the type of
	// their payloads.
	Hours(ctx context.Context, item model.ItemID, r model.TimeRange, dst []model.Trend) ([]model.Trend, model.ValueType, error)
}

// operand is a value on the stack: a number, a text, a list, or unknown. The list is m.lists[number].
type operand struct {
	number float64
	// whole is the exact number when it is an unsigned integer above maxExact, else zero.
	whole uint64
	text  []byte
	kind  operandKind
	cause Failure
}

// maxExact is up to where a float holds every integer.
const maxExact = 1 << 53

// unsigned returns an integer as operand, exact over the whole range.
func unsigned(v uint64) operand {
	if v <= maxExact {
		return operand{number: float64(v)}
	}
	return operand{number: float64(v), whole: v}
}

type operandKind uint8

const (
	isNumber operandKind = iota
	isText
	isUnknown
	isList
)

// Machine evaluates programs. It keeps its stack and scratch memory between evaluations and serves one goroutine.
type Machine struct {
	// Values finds the values. It may be nil for programs without functions of items.
	Values Values
	// Trends finds trends. It may be nil: functions of trends are unknown then.
	Trends Trends
	// Zone is the time zone of date functions and calendar shifts; nil is the local one.
	Zone *time.Location
	// ValuesRead counts values that functions went through one by one, as a measure of what evaluations cost.
	ValuesRead int64

	stack   []operand
	items   []Item
	moment  Moment
	failed  Failure
	texts   []byte
	sample  Sample
	summary Summary
	columns model.Columns
	floats  []float64
	buf     []byte
	// lists are the results of functions of many items, listed how many are in use.
	lists  [][]element
	listed int
	trends []model.Trend
	// stls are the last results of trendstl.
	stls map[stlKey]stlResult
}

// Evaluate runs a program. items[i] belongs to the expression's Refs[i].
func (m *Machine) Evaluate(ctx context.Context, p *Program, items []Item, moment Moment) Result {
	if p.broken != "" {
		return Result{Failure: Failure{Code: FailBroken, Func: -1}}
	}
	if cap(m.stack) < p.depth {
		m.stack = make([]operand, p.depth)
	}
	if m.Zone == nil {
		m.Zone = time.Local
	}
	m.items, m.moment, m.failed, m.texts = items, moment, Failure{}, m.texts[:0]
	m.listed = 0
	top := m.run(ctx, p)
	m.items = nil
	if m.failed.Code != FailNone {
		return Result{Failure: m.failed}
	}
	switch top.kind {
	case isUnknown:
		return Result{Failure: top.cause}
	case isList:
		return Result{Failure: Failure{Code: FailArgument, Func: -1}}
	case isText:
		v, ok := parseNumber(string(top.text))
		return Result{Value: v, Text: top.text, IsText: !ok}
	}
	if math.IsNaN(top.number) || math.IsInf(top.number, 0) {
		return Result{Failure: Failure{Code: FailArgument, Func: -1}}
	}
	return Result{Value: top.number}
}

// run executes the instructions and returns the operand that is left. A failure that ends the evaluation is in m.failed.
func (m *Machine) run(ctx context.Context, p *Program) operand {
	stack := m.stack[:cap(m.stack)]
	n := 0
	for i := range p.code {
		switch in := &p.code[i]; in.op {
		case opNumber:
			stack[n] = operand{number: p.numbers[in.arg]}
			n++
		case opText:
			stack[n] = operand{kind: isText, text: m.keep(p.texts[in.arg])}
			n++
		case opMacro:
			m.fail(FailNumber, -1)
			stack[n] = operand{}
			n++
		case opHistory:
			m.history(ctx, &p.Funcs[in.arg], int16(in.arg), &stack[n])
			n++
		case opCall:
			n -= int(in.argc)
			stack[n] = m.call(Kind(in.arg), stack[n:n+int(in.argc)])
			n++
		case opNot, opNegate:
			m.unary(in.op, &stack[n-1])
		default:
			n--
			m.binary(in.op, &stack[n-1], &stack[n])
		}
		if m.failed.Code != FailNone {
			return operand{}
		}
	}
	return stack[0]
}

// keep copies a text into memory that lives as long as the evaluation.
func (m *Machine) keep(s string) []byte {
	start := len(m.texts)
	m.texts = append(m.texts, s...)
	return m.texts[start:len(m.texts):len(m.texts)]
}

func (m *Machine) keepBytes(b []byte) []byte {
	start := len(m.texts)
	m.texts = append(m.texts, b...)
	return m.texts[start:len(m.texts):len(m.texts)]
}

// fail ends the evaluation.
func (m *Machine) fail(c FailCode, fn int16) {
	if m.failed.Code == FailNone {
		m.failed = Failure{Code: c, Func: fn}
	}
}

// numeric returns an operand as a number; a text that is no number ends the evaluation.
func (m *Machine) numeric(o *operand) float64 {
	if o.kind == isList {
		m.fail(FailArgument, -1)
		return 0
	}
	if o.kind != isText {
		return o.number
	}
	v, ok := parseNumber(string(o.text))
	if !ok {
		m.fail(FailNumber, -1)
	}
	return v
}

func (m *Machine) unary(op opcode, o *operand) {
	if o.kind == isUnknown {
		return
	}
	v := m.numeric(o)
	if op == opNegate {
		*o = operand{number: -v}
		return
	}
	*o = operand{number: truth(equal(v, 0))}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// binary replaces left by the result of an operator.
func (m *Machine) binary(op opcode, left, right *operand) {
	if op == opAnd || op == opOr {
		m.logic(op, left, right)
		return
	}
	if left.kind == isUnknown {
		return
	}
	if right.kind == isUnknown {
		*left = *right
		return
	}
	if left.kind == isText && right.kind == isText && (op == opEqual || op == opNotEqual) {
		same := bytes.Equal(left.text, right.text)
		*left = operand{number: truth(same == (op == opEqual))}
		return
	}
	if left.whole != 0 && right.whole != 0 && op >= opEqual && op <= opGreaterEqual {
		// Neighbours that are one float: what matters is how they compare.
		*left = operand{number: m.arithmetic(op, float64(cmp.Compare(left.whole, right.whole)), 0)}
		return
	}
	a, b := m.numeric(left), m.numeric(right)
	*left = operand{number: m.arithmetic(op, a, b)}
}

func (m *Machine) arithmetic(op opcode, a, b float64) float64 {
	switch op {
	case opAdd:
		return a + b
	case opSubtract:
		return a - b
	case opMultiply:
		return a * b
	case opDivide:
		if equal(b, 0) {
			m.fail(FailDivision, -1)
			return 0
		}
		return a / b
	case opEqual:
		return truth(equal(a, b))
	case opNotEqual:
		return truth(!equal(a, b))
	case opLess:
		return truth(a < b-epsilon)
	case opLessEqual:
		return truth(a <= b+epsilon)
	case opGreater:
		return truth(a > b+epsilon)
	}
	return truth(a >= b-epsilon)
}

// logic follows the rules for unknown operands: 1 or U = 1, 0 and U = 0, else U.
func (m *Machine) logic(op opcode, left, right *operand) {
	deciding := op == opOr
	for _, o := range [2]*operand{left, right} {
		if o.kind != isUnknown && equal(m.numeric(o), 0) != deciding {
			// One known operand decides; the other must still be a number or unknown.
			other := right
			if o == right {
				other = left
			}
			if other.kind != isUnknown {
				m.numeric(other)
			}
			*left = operand{number: truth(deciding)}
			return
		}
	}
	if left.kind == isUnknown {
		return
	}
	if right.kind == isUnknown {
		*left = *right
		return
	}
	*left = operand{number: truth(!deciding)}
}

// String returns the result as text; it is meaningful when there is no Failure.
func (r *Result) String() string {
	if r.IsText || r.Text != nil {
		return string(r.Text)
	}
	return strconv.FormatFloat(r.Value, 'f', -1, 64)
}
