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

// numeric returns a value as the number that steps of an item of type vt calculate with: unsigned items lose the fraction at
// once, float items never keep an integer.
func numeric(in value, vt model.ValueType) (value, error) {
	n, err := in.number()
	if err != nil {
		return n, err
	}
	switch {
	case vt == model.Float && n.form == uintForm:
		return floatValue(float64(n.uint)), nil
	case vt == model.Uint && n.form == floatForm:
		u, ok := floatToUint(n.real)
		if !ok {
			return n, fmt.Errorf("cannot convert %q to an unsigned integer", shorten(in.bytes()))
		}
		return uintValue(u), nil
	}
	return n, nil
}

// compileMultiplier multiplies; integers stay integers and wrap around, and an integer times a fraction is cut to an integer.
func compileMultiplier(text string, vt model.ValueType) (stepFunc, error) {
	factor, err := textValue([]byte(text)).number()
	if err != nil {
		return nil, fmt.Errorf("multiplier %q is no number", text)
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		n, err := numeric(in, vt)
		if err != nil {
			return value{}, err
		}
		if n.form == uintForm && factor.form == uintForm {
			return uintValue(n.uint * factor.uint), nil
		}
		product := n.float() * factor.float()
		if n.form == uintForm {
			if u, ok := floatToUint(product); ok {
				return uintValue(u), nil
			}
		}
		return floatValue(product), nil
	}, nil
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
		text := trimNumber(in.bytes())
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

// compileSimpleChange yields the difference to the value before; a fall is a counter reset and yields nothing.
func compileSimpleChange(vt model.ValueType) stepFunc {
	return func(m *memory, in value, at int64) (value, error) {
		n, err := numeric(in, vt)
		if err != nil {
			return value{}, err
		}
		before, was := m.last, m.set
		m.remember(n, at)
		if !was || less(n, before) {
			return value{}, errDiscard
		}
		return difference(n, before), nil
	}
}

// less compares exactly when both are integers.
func less(a, b value) bool {
	if a.form == uintForm && b.form == uintForm {
		return a.uint < b.uint
	}
	return a.float() < b.float()
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

// compileChangePerSecond yields the difference per second; for unsigned items the fraction is cut.
func compileChangePerSecond(vt model.ValueType) stepFunc {
	return func(m *memory, in value, at int64) (value, error) {
		n, err := numeric(in, vt)
		if err != nil {
			return value{}, err
		}
		before, was, since := m.last, m.set, m.at
		m.remember(n, at)
		if !was || at <= since || less(n, before) {
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
	if from != nil && to != nil && less(*to, *from) {
		return nil, fmt.Errorf("the lower limit %s is above the upper one %s", low, high)
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		n, err := in.number()
		if err != nil {
			return value{}, err
		}
		if from != nil && less(n, *from) {
			return value{}, fmt.Errorf("the value is below %s", low)
		}
		if to != nil && less(*to, n) {
			return value{}, fmt.Errorf("the value is above %s", high)
		}
		return in, nil
	}, nil
}
