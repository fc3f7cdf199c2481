package preproc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

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
