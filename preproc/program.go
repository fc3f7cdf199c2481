package preproc

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"tidemark/internal/pcre"
	"tidemark/model"
)

// errDiscard says that a step yields no value; nothing is stored and nothing is wrong.
var errDiscard = errors.New("discarded")

// errUnreadable stands for the reason why a step with secret macros cannot work: it may quote a part of their values.
var errUnreadable = errors.New("it cannot work with the values of its secret macros in place; the reason is not shown, because it may hold them")

// errVerbatim is an error text that is shown as it is, without the step's name before it.
type errVerbatim string

func (e errVerbatim) Error() string { return string(e) }

// form is what a value is between two steps.
type form uint8

const (
	textForm form = iota
	uintForm
	floatForm
)

// value travels from step to step.
type value struct {
	form form
	text []byte
	uint uint64
	real float64
	// parsed, if not nil, keeps what was made of the text; it is set for a master value on its way to dependent items.
	parsed *parsed
}

func textValue(b []byte) value   { return value{form: textForm, text: b} }
func uintValue(u uint64) value   { return value{form: uintForm, uint: u} }
func floatValue(f float64) value { return value{form: floatForm, real: f} }

// bytes returns the value as text.
func (v value) bytes() []byte {
	switch v.form {
	case uintForm:
		return strconv.AppendUint(nil, v.uint, 10)
	case floatForm:
		return strconv.AppendFloat(nil, v.real, 'g', -1, 64)
	}
	return v.text
}

// number returns the value as a number: text that is an integer becomes one, other numbers a float.
func (v value) number() (value, error) {
	if v.form != textForm {
		return v, nil
	}
	text := trimNumber(v.text)
	if u, err := strconv.ParseUint(string(text), 10, 64); err == nil {
		return uintValue(u), nil
	}
	if f, ok := ParseFloat(text); ok {
		return floatValue(f), nil
	}
	return v, fmt.Errorf("cannot convert %q to a number", shorten(v.text))
}

func (v value) float() float64 {
	if v.form == uintForm {
		return float64(v.uint)
	}
	return v.real
}

// shorten bounds what an error text shows of a value.
func shorten(text []byte) string {
	const most = 64
	if len(text) <= most {
		return string(text)
	}
	return string(bytes.ToValidUTF8(text[:most], nil)) + "…"
}

// program is an item's steps, compiled once and shared by its values.
type program struct {
	source    []model.Step
	valueType model.ValueType
	// checks are the steps "check for not supported value", which look at failures of the collection, steps all others.
	checks []check
	steps  []step
	// broken is why the steps cannot run at all; every value becomes unsupported with it.
	broken error
}

// step is one compiled step. memory is its place to remember an earlier value.
type step struct {
	source model.Step
	// number is the step's place in the item, from 1.
	number int
	run    stepFunc
}

// check is a step "check for not supported value".
type check struct {
	source model.Step
	// number is the step's place in the item, from 1.
	number  int
	matches failureMatch
}

// memory is what one step of one item remembers.
type memory struct {
	set  bool
	at   int64
	last value
	hold []byte
}

// remember keeps v; text is copied.
func (m *memory) remember(v value, at int64) {
	if v.form == textForm {
		m.hold = append(m.hold[:0], v.text...)
		v.text = m.hold
	}
	v.parsed = nil
	m.set, m.at, m.last = true, at, v
}

// compile makes an item's steps ready. Checks for not supported values come first wherever they stand, and of them the one for
// any error last, as in Zabbix.
func compile(item *model.Item, scripts Scripts) *program {
	p := &program{source: item.Steps, valueType: item.ValueType}
	var any []check
	for i, s := range item.Steps {
		var err error
		switch s.Type {
		case model.StepCheckUnsupported:
			c := check{source: s, number: i + 1}
			if c.matches, err = compileFailureMatch(s); c.matches.regex == nil {
				any = append(any, c)
			} else {
				p.checks = append(p.checks, c)
			}
		case model.StepJavaScript:
			var run stepFunc
			run, err = compileScript(param(s, 0), scripts)
			p.steps = append(p.steps, step{source: s, number: i + 1, run: run})
		default:
			var run stepFunc
			run, err = compileStep(s, item.ValueType)
			p.steps = append(p.steps, step{source: s, number: i + 1, run: run})
		}
		if err != nil {
			if item.HasSecret(s.Params...) {
				err = errUnreadable
			}
			p.broken = fmt.Errorf("preprocessing step %d (%s): %w", i+1, stepName(s.Type), err)
			return p
		}
	}
	p.checks = append(p.checks, any...)
	return p
}

// serves reports whether the program was made from the item's present steps.
func (p *program) serves(item *model.Item) bool {
	if p.valueType != item.ValueType || len(p.source) != len(item.Steps) {
		return false
	}
	if &p.source[0] == &item.Steps[0] {
		return true
	}
	return slices.EqualFunc(p.source, item.Steps, func(a, b model.Step) bool {
		return a.Type == b.Type && a.OnFail == b.OnFail && a.FailValue == b.FailValue && slices.Equal(a.Params, b.Params)
	})
}

// itemState is the compiled program of one item with what its steps remember.
type itemState struct {
	program *program
	// mu is held while a value passes the steps.
	mu     sync.Mutex
	memory []memory
	// trace, if not nil, is told what each step made of a value; failed says that an on-fail action came after the error.
	trace func(number int, out value, err error, failed error)
}

func newItemState(item *model.Item, scripts Scripts) *itemState {
	p := compile(item, scripts)
	return &itemState{program: p, memory: make([]memory, len(p.steps))}
}

// forget resets what the steps remember, as every final error does.
func (s *itemState) forget() {
	for i := range s.memory {
		s.memory[i] = memory{hold: s.memory[i].hold}
	}
}

// run takes a value, or the failure to collect one, through the steps.
func (s *itemState) run(in value, failure error, at int64) (value, error) {
	if s.program.broken != nil {
		return value{}, s.program.broken
	}
	for i := range s.program.checks {
		if failure == nil || errors.Is(failure, errDiscard) {
			break
		}
		c := &s.program.checks[i]
		groups, ok, err := c.matches.take(failure.Error())
		if err != nil {
			return value{}, err
		}
		if ok {
			source := c.source
			source.FailValue = pcre.Expand(source.FailValue, groups, maxStepBytes)
			was := failure
			in, failure = handleFailure(source, failure)
			if s.trace != nil {
				s.trace(c.number, in, failure, was)
			}
		}
	}
	for k := 0; failure == nil && k < len(s.program.steps); k++ {
		st := &s.program.steps[k]
		out, err := st.run(&s.memory[k], in, at)
		failed := err
		if err != nil && !errors.Is(err, errDiscard) {
			if _, verbatim := err.(errVerbatim); !verbatim {
				err = fmt.Errorf("preprocessing step %d (%s) failed for value %q: %w", st.number, stepName(st.source.Type), shorten(in.bytes()), err)
			}
			out, err = handleFailure(st.source, err)
		}
		if s.trace != nil {
			s.trace(st.number, out, err, failed)
		}
		in, failure = out, err
	}
	return in, failure
}

// handleFailure applies a step's custom on-fail action.
func handleFailure(s model.Step, err error) (value, error) {
	switch s.OnFail {
	case model.FailDiscard:
		return value{}, errDiscard
	case model.FailSetValue:
		return textValue([]byte(s.FailValue)), nil
	case model.FailSetError:
		return value{}, errVerbatim(s.FailValue)
	}
	return value{}, err
}

// rowValue reads row i as the input of the first step; an Unsupported row is a failure.
func rowValue(b *model.Batch, i int) (value, error) {
	switch b.Types[i] {
	case model.Uint:
		return uintValue(b.Bits[i]), nil
	case model.Float:
		return floatValue(math.Float64frombits(b.Bits[i])), nil
	case model.Unsupported:
		return value{}, errVerbatim(b.Bytes(i))
	case model.LogEntry:
		line, err := model.LogText(b.Bytes(i))
		return textValue(line), err
	}
	return textValue(b.Bytes(i)), nil
}

// store puts the result of an item into row i, converted to the item's type; a failure becomes an Unsupported row.
func store(b *model.Batch, i int, item *model.Item, out value, err error) {
	if err != nil {
		setUnsupported(b, i, err.Error())
		return
	}
	wasLog := b.Types[i] == model.LogEntry
	switch {
	case out.form == uintForm:
		b.Types[i], b.Bits[i] = model.Uint, out.uint
	case out.form == floatForm:
		b.Types[i], b.Bits[i] = model.Float, math.Float64bits(out.real)
	case wasLog && item.ValueType == model.LogEntry:
		entry, _ := model.DecodeLog(b.Bytes(i))
		entry.Text = string(out.text)
		offset := len(b.Arena)
		b.Arena = model.AppendLog(b.Arena, entry)
		b.Bits[i] = model.Span(offset, len(b.Arena)-offset)
	default:
		b.Types[i], b.Bits[i] = model.Raw, b.Store(out.text)
	}
	if b.Types[i] != item.ValueType {
		convertRow(b, i, item.ValueType)
	}
}
