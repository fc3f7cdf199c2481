package preproc

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"tidemark/model"
)

type stepFunc = func(m *memory, in value, at int64) (value, error)

// stepName is the name of a step as Zabbix exports write it, in lower case with spaces.
func stepName(t model.StepType) string {
	names := map[model.StepType]string{
		model.StepMultiplier: "multiplier", model.StepRightTrim: "right trim", model.StepLeftTrim: "left trim", model.StepTrim: "trim",
		model.StepRegex: "regular expression", model.StepBoolToDecimal: "boolean to decimal", model.StepOctalToDecimal: "octal to decimal",
		model.StepHexToDecimal: "hexadecimal to decimal", model.StepSimpleChange: "simple change", model.StepChangePerSecond: "change per second",
		model.StepJSONPath: "JSONPath", model.StepInRange: "in range", model.StepMatchesRegex: "matches regular expression",
		model.StepNotMatchesRegex: "does not match regular expression", model.StepCheckJSONError: "check for error in JSON",
		model.StepCheckRegexError: "check for error using regular expression", model.StepDiscardUnchanged: "discard unchanged",
		model.StepDiscardHeartbeat: "discard unchanged with heartbeat", model.StepReplace: "replace", model.StepCheckUnsupported: "check for not supported value",
	}
	if n, ok := names[t]; ok {
		return n
	}
	return "step type " + strconv.Itoa(int(t))
}

// param returns parameter i of a step, or "".
func param(s model.Step, i int) string {
	if i < len(s.Params) {
		return s.Params[i]
	}
	return ""
}

// compileStep makes a step ready to run for an item of type vt.
func compileStep(s model.Step, vt model.ValueType) (stepFunc, error) {
	switch s.Type {
	case model.StepMultiplier:
		return compileMultiplier(param(s, 0))
	case model.StepRightTrim, model.StepLeftTrim, model.StepTrim:
		return compileTrim(s.Type, unescape(param(s, 0))), nil
	case model.StepReplace:
		return compileReplace(unescape(param(s, 0)), unescape(param(s, 1)))
	case model.StepRegex, model.StepMatchesRegex, model.StepNotMatchesRegex, model.StepCheckRegexError:
		return compileRegexStep(s)
	case model.StepBoolToDecimal:
		return boolToDecimal, nil
	case model.StepOctalToDecimal:
		return radixToDecimal(8), nil
	case model.StepHexToDecimal:
		return radixToDecimal(16), nil
	case model.StepSimpleChange:
		return simpleChange, nil
	case model.StepChangePerSecond:
		return compileChangePerSecond(vt), nil
	case model.StepJSONPath:
		return compileJSONPath(param(s, 0))
	case model.StepCheckJSONError:
		return compileCheckJSON(param(s, 0))
	case model.StepInRange:
		return compileInRange(param(s, 0), param(s, 1))
	case model.StepDiscardUnchanged:
		return discardUnchanged, nil
	case model.StepDiscardHeartbeat:
		return compileHeartbeat(param(s, 0))
	case model.StepCheckUnsupported:
		return nil, errors.New("\"check for not supported value\" must be the first step")
	}
	return nil, fmt.Errorf("%s is not available yet", stepName(s.Type))
}

func compileMultiplier(text string) (stepFunc, error) {
	factor, err := textValue([]byte(text)).number()
	if err != nil {
		return nil, fmt.Errorf("multiplier %q is no number", text)
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		n, err := in.number()
		if err != nil {
			return value{}, err
		}
		if n.form == uintForm && factor.form == uintForm {
			return uintValue(n.uint * factor.uint), nil
		}
		return floatValue(n.float() * factor.float()), nil
	}, nil
}

// unescape expands \s \r \n \t \\ in parameters of trim and replace.
func unescape(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\s`, " ", `\r`, "\r", `\n`, "\n", `\t`, "\t").Replace(s)
}

func compileTrim(t model.StepType, set string) stepFunc {
	return func(_ *memory, in value, _ int64) (value, error) {
		text := in.bytes()
		if t != model.StepRightTrim {
			text = bytes.TrimLeft(text, set)
		}
		if t != model.StepLeftTrim {
			text = bytes.TrimRight(text, set)
		}
		return textValue(text), nil
	}
}

func compileReplace(from, to string) (stepFunc, error) {
	if from == "" {
		return nil, errors.New("the text to search for is empty")
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		out := bytes.ReplaceAll(in.bytes(), []byte(from), []byte(to))
		return textValue(cutTo(out)), nil
	}, nil
}

// maxStepBytes bounds what a step may yield; later steps and the item's type cut further.
const maxStepBytes = 16 << 20

func cutTo(text []byte) []byte {
	if len(text) > maxStepBytes {
		return cutUTF8(text, maxStepBytes)
	}
	return text
}

func boolToDecimal(_ *memory, in value, _ int64) (value, error) {
	switch strings.ToLower(string(bytes.TrimSpace(in.bytes()))) {
	case "true", "t", "yes", "y", "on", "up", "running", "enabled", "available", "ok", "master":
		return uintValue(1), nil
	case "false", "f", "no", "n", "off", "down", "unused", "disabled", "unavailable", "err", "slave":
		return uintValue(0), nil
	}
	n, err := in.number()
	if err != nil {
		return value{}, fmt.Errorf("%q is no boolean; expected a word such as true, false, up, down, enabled or a number", shorten(in.bytes()))
	}
	if n.float() != 0 {
		return uintValue(1), nil
	}
	return uintValue(0), nil
}

func radixToDecimal(base int) stepFunc {
	return func(_ *memory, in value, _ int64) (value, error) {
		text := bytes.TrimSpace(in.bytes())
		if base == 16 {
			text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte(" "), nil), []byte("\n"), nil)
		}
		u, err := strconv.ParseUint(string(text), base, 64)
		if err != nil {
			return value{}, fmt.Errorf("%q is no number to base %d", shorten(text), base)
		}
		return uintValue(u), nil
	}
}

// simpleChange yields the difference to the value before; a fall is a counter reset and yields nothing.
func simpleChange(m *memory, in value, at int64) (value, error) {
	n, err := in.number()
	if err != nil {
		return value{}, err
	}
	before, was := m.last, m.set
	m.remember(n, at)
	if !was || n.float() < before.float() {
		return value{}, errDiscard
	}
	return difference(n, before), nil
}

// difference is n − before for n ≥ before, exact when both are integers.
func difference(n, before value) value {
	if n.form == uintForm && before.form == uintForm {
		d, borrow := bits.Sub64(n.uint, before.uint, 0)
		if borrow == 0 {
			return uintValue(d)
		}
	}
	return floatValue(n.float() - before.float())
}

// compileChangePerSecond yields the difference per second; for unsigned items the fraction is cut by the conversion.
func compileChangePerSecond(vt model.ValueType) stepFunc {
	return func(m *memory, in value, at int64) (value, error) {
		n, err := in.number()
		if err != nil {
			return value{}, err
		}
		before, was, since := m.last, m.set, m.at
		m.remember(n, at)
		if !was || at <= since || n.float() < before.float() {
			return value{}, errDiscard
		}
		rate := difference(n, before).float() / (float64(at-since) / float64(time.Second))
		if vt == model.Uint {
			if u, ok := floatToUint(rate); ok {
				return uintValue(u), nil
			}
		}
		return floatValue(rate), nil
	}
}

func compileInRange(low, high string) (stepFunc, error) {
	limit := func(text string) (*value, error) {
		if text == "" {
			return nil, nil
		}
		v, err := textValue([]byte(text)).number()
		if err != nil {
			return nil, fmt.Errorf("limit %q is no number", text)
		}
		return &v, nil
	}
	from, err := limit(low)
	if err != nil {
		return nil, err
	}
	to, err := limit(high)
	if err != nil {
		return nil, err
	}
	if from == nil && to == nil {
		return nil, errors.New("both limits are empty; expected at least one")
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		n, err := in.number()
		if err != nil {
			return value{}, err
		}
		if from != nil && n.float() < from.float() {
			return value{}, fmt.Errorf("the value is below %s", low)
		}
		if to != nil && n.float() > to.float() {
			return value{}, fmt.Errorf("the value is above %s", high)
		}
		return in, nil
	}, nil
}

// same compares as Zabbix's throttling does: numbers by value, else text by bytes.
func same(a, b value) bool {
	if a.form == b.form {
		switch a.form {
		case uintForm:
			return a.uint == b.uint
		case floatForm:
			return a.real == b.real
		}
		return bytes.Equal(a.text, b.text)
	}
	return bytes.Equal(a.bytes(), b.bytes())
}

func discardUnchanged(m *memory, in value, at int64) (value, error) {
	if m.set && same(m.last, in) {
		return value{}, errDiscard
	}
	m.remember(in, at)
	return in, nil
}

// compileHeartbeat passes a value that changed, or whose time is the heartbeat or more after the last one passed.
func compileHeartbeat(text string) (stepFunc, error) {
	heartbeat, err := seconds(text)
	if err != nil {
		return nil, err
	}
	if heartbeat <= 0 {
		return nil, fmt.Errorf("heartbeat %q must be at least 1 second", text)
	}
	return func(m *memory, in value, at int64) (value, error) {
		if m.set && same(m.last, in) && at-m.at < int64(heartbeat) {
			return value{}, errDiscard
		}
		m.remember(in, at)
		return in, nil
	}, nil
}
