package preproc

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tidemark/model"
)

// Trial is what the steps of an item make of a value that is not stored.
type Trial struct {
	// Steps has an entry for each step that ran, in the order in which they ran.
	Steps []TrialStep
	// Value is the text of what would be stored, Discarded says that nothing would be, and Error why the item would be not supported.
	Value     string
	Discarded bool
	Error     string
}

// TrialStep is what one step made of a value.
type TrialStep struct {
	// Number is the step's place in the item, from 1.
	Number int
	Name   string
	// Value is what the step yields, Discarded says that it yields nothing.
	Value     string
	Discarded bool
	// Error is why the step failed. With one, and a Value or Discarded, the step's on-fail action gave that instead.
	Error string
}

// TrialInput is a value to try steps with: a text, or why there was none.
type TrialInput struct {
	Text  string
	Error string
	At    time.Time
}

// maxTrialBytes bounds the text of one result.
const maxTrialBytes = 64 << 10

// Try runs an item's steps over values, one after another, and tells what became of the last one step by step. Nothing is kept or stored. The
// values before the last one are for steps that look back, such as a change per second.
func Try(item *model.Item, scripts Scripts, values ...TrialInput) Trial {
	s := newItemState(item, scripts)
	var t Trial
	for n, v := range values {
		if n == len(values)-1 {
			s.trace = t.step(item)
		}
		in, failure := textValue([]byte(v.Text)), error(nil)
		if v.Error != "" {
			in, failure = value{}, errVerbatim(v.Error)
		}
		out, err := s.run(in, failure, v.At.UnixNano())
		if err != nil && !errors.Is(err, errDiscard) {
			s.forget()
		}
		if n == len(values)-1 {
			t.finish(item, out, err, v.At.UnixNano())
		}
	}
	return t
}

func (t *Trial) step(item *model.Item) func(int, value, error, error) {
	return func(number int, out value, err, failed error) {
		step := TrialStep{Number: number, Name: stepName(item.Steps[number-1].Type)}
		if step.Discarded = errors.Is(err, errDiscard); !step.Discarded && err == nil {
			step.Value = cutText(out.bytes())
		}
		if failed != nil && !errors.Is(failed, errDiscard) {
			step.Error = cutText([]byte(failed.Error()))
			if _, verbatim := err.(errVerbatim); verbatim { //nolint:errorlint // never wrapped
				step.Error = cutText([]byte(err.Error()))
			}
			step.Error = item.Conceal(step.Error)
		}
		t.Steps = append(t.Steps, step)
	}
}

// finish converts the result to the item's type, as it would be stored.
func (t *Trial) finish(item *model.Item, out value, err error, at int64) {
	if t.Discarded = errors.Is(err, errDiscard); t.Discarded {
		return
	}
	b := model.NewBatch()
	defer b.Free()
	b.AppendBytes(item.ID, at, model.Raw, nil)
	store(b, 0, item, out, err)
	switch {
	case b.Types[0] == model.Unsupported:
		t.Error = item.Conceal(cutText(b.Bytes(0)))
	case b.Types[0] == model.Uint:
		t.Value = strconv.FormatUint(b.Bits[0], 10)
	case b.Types[0] == model.Float:
		t.Value = strconv.FormatFloat(math.Float64frombits(b.Bits[0]), 'g', -1, 64)
	case b.Types[0] == model.LogEntry:
		text, _ := model.LogText(b.Bytes(0))
		t.Value = cutText(text)
	default:
		t.Value = cutText(b.Bytes(0))
	}
}

func cutText(text []byte) string {
	if len(text) > maxTrialBytes {
		return string(cutUTF8(text, maxTrialBytes)) + "…"
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// CheckSteps returns the first step, from 0, that cannot work, and why. Scripts are compiled when they run and are not looked at.
func CheckSteps(steps []model.Step, t model.ValueType) (int, error) {
	for i, s := range steps {
		var err error
		switch s.Type {
		case model.StepCheckUnsupported:
			_, err = compileFailureMatch(s)
		case model.StepJavaScript:
			if strings.TrimSpace(param(s, 0)) == "" {
				err = errors.New("the script is empty")
			}
		default:
			_, err = compileStep(s, t)
		}
		if err != nil {
			return i, fmt.Errorf("step %d (%s): %w", i+1, stepName(s.Type), err)
		}
	}
	return 0, nil
}
