package preproc

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"tidemark/model"
)

// errDiscard says that a step yields no value; nothing is stored and nothing is wrong.
var errDiscard = errors.New("discarded")

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
	steps     []step
	// broken is why the steps cannot run at all; every value becomes unsupported with it.
	broken error
}

// step is one compiled step. memory is its place to remember an earlier value.
type step struct {
	source model.Step
	run    func(m *memory, in value, at int64) (value, error)
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
	m.set, m.at, m.last = true, at, v
}

func compile(item *model.Item) *program {
	p := &program{source: item.Steps, valueType: item.ValueType}
	for i, s := range item.Steps {
		if i == 0 && s.Type == model.StepCheckUnsupported {
			p.steps = append(p.steps, step{source: s})
			continue
		}
		run, err := compileStep(s, item.ValueType)
		if err != nil {
			p.broken = fmt.Errorf("preprocessing step %d: %w", i+1, err)
			return p
		}
		p.steps = append(p.steps, step{source: s, run: run})
	}
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
	memory  []memory
}

func newItemState(item *model.Item) *itemState {
	p := compile(item)
	return &itemState{program: p, memory: make([]memory, len(p.steps))}
}

// forget resets what the steps remember, as every final error does.
func (s *itemState) forget() {
	for i := range s.memory {
		s.memory[i] = memory{hold: s.memory[i].hold}
	}
}

// run preprocesses row i of b and reports whether it yields a value.
func (s *itemState) run(b *model.Batch, i int, item *model.Item) bool {
	if s.program.broken != nil {
		setUnsupported(b, i, s.program.broken.Error())
		return true
	}
	in, failure := rowValue(b, i)
	first := 0
	if s.program.steps[0].source.Type == model.StepCheckUnsupported {
		first = 1
		if failure != nil {
			in, failure = handleFailure(s.program.steps[0].source, failure)
		}
	}
	if failure != nil {
		return s.finish(b, i, item, in, failure)
	}
	at := b.At[i]
	for k := first; k < len(s.program.steps); k++ {
		out, err := s.program.steps[k].run(&s.memory[k], in, at)
		if err != nil && !errors.Is(err, errDiscard) {
			if _, verbatim := err.(errVerbatim); !verbatim {
				err = fmt.Errorf("preprocessing step %d (%s) failed for value %q: %w", k+1, stepName(s.program.steps[k].source.Type), shorten(in.bytes()), err)
			}
			out, err = handleFailure(s.program.steps[k].source, err)
		}
		if err != nil {
			return s.finish(b, i, item, in, err)
		}
		in = out
	}
	return s.finish(b, i, item, in, nil)
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

// finish stores the result in row i, converted to the item's type, and reports whether there is one.
func (s *itemState) finish(b *model.Batch, i int, item *model.Item, out value, err error) bool {
	if errors.Is(err, errDiscard) {
		return false
	}
	if err != nil {
		s.forget()
		setUnsupported(b, i, err.Error())
		return true
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
		if b.Types[i] == model.Unsupported {
			s.forget()
		}
	}
	return true
}

// seconds parses a duration parameter such as "1h" or "600".
func seconds(text string) (time.Duration, error) {
	if text == "" {
		return 0, errors.New("the heartbeat is empty; expected seconds or a number with s, m, h, d or w")
	}
	unit := time.Second
	digits := text
	if u, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[text[len(text)-1]]; ok {
		unit, digits = u, text[:len(text)-1]
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is no time; expected seconds or a number with s, m, h, d or w", text)
	}
	return time.Duration(n) * unit, nil
}
