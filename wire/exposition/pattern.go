package exposition

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tidemark/internal/pcre"
)

type comparison uint8

const (
	equal comparison = iota
	notEqual
	match
	notMatch
)

// matcher is a condition of a label.
type matcher struct {
	label string
	how   comparison
	value string
	regex *pcre.Regexp
}

// Pattern selects samples: name{label="value",label=~"regex"} == value, each part optional.
//
// Source: Zabbix documentation, "Prometheus checks". Regular expressions match anywhere in the value unless they are anchored.
type Pattern struct {
	// Name is the metric; empty for any.
	Name     string
	matchers []matcher
	value    *float64
}

// maxPatternBytes is the longest pattern.
const maxPatternBytes = 64 << 10

// ParsePattern reads a pattern; the empty one selects everything. The error names it and what was expected.
func ParsePattern(text string) (*Pattern, error) {
	p := &Pattern{}
	if len(text) > maxPatternBytes {
		return nil, fmt.Errorf("the Prometheus pattern has %d bytes, the limit is %d", len(text), maxPatternBytes)
	}
	rest := strings.TrimSpace(text)
	end := nameEnd(rest)
	p.Name, rest = rest[:end], strings.TrimLeft(rest[end:], " \t\n")
	if strings.HasPrefix(rest, "{") {
		var problem string
		if rest, problem = p.labels(rest[1:]); problem != "" {
			return nil, fmt.Errorf("the Prometheus pattern %q: %s", shorten(text), problem)
		}
	}
	rest = strings.TrimSpace(rest)
	if number, ok := strings.CutPrefix(rest, "=="); ok {
		v, err := ParseValue(strings.TrimSpace(number))
		if err != nil {
			return nil, fmt.Errorf("the Prometheus pattern %q: expected a number behind ==", shorten(text))
		}
		p.value, rest = &v, ""
	}
	if rest != "" {
		return nil, fmt.Errorf("the Prometheus pattern %q: expected {, == or the end, found %q", shorten(text), shorten(rest))
	}
	return p, nil
}

func (p *Pattern) labels(text string) (rest, problem string) {
	for {
		text = strings.TrimLeft(text, " \t\n")
		if strings.HasPrefix(text, "}") {
			return text[1:], ""
		}
		if len(p.matchers) >= maxLabels {
			return "", fmt.Sprintf("expected at most %d labels", maxLabels)
		}
		end := nameEnd(text)
		if end == 0 {
			return "", "expected the name of a label or }"
		}
		m := matcher{label: text[:end]}
		text = strings.TrimLeft(text[end:], " \t")
		switch {
		case strings.HasPrefix(text, "=~"):
			m.how, text = match, text[2:]
		case strings.HasPrefix(text, "!~"):
			m.how, text = notMatch, text[2:]
		case strings.HasPrefix(text, "!="):
			m.how, text = notEqual, text[2:]
		case strings.HasPrefix(text, "="):
			text = text[1:]
		default:
			return "", "expected one of = != =~ !~ behind the label " + m.label
		}
		var ok bool
		if m.value, text, ok = quoted(strings.TrimLeft(text, " \t")); !ok {
			return "", "expected the value of the label " + m.label + " in quotes"
		}
		if (m.how == match || m.how == notMatch) && m.value != "" {
			var err error
			if m.regex, err = pcre.Compile(m.value); err != nil {
				return "", err.Error()
			}
		}
		p.matchers = append(p.matchers, m)
		text = strings.TrimLeft(text, " \t\n")
		switch {
		case strings.HasPrefix(text, ","):
			text = text[1:]
		case !strings.HasPrefix(text, "}"):
			return "", "expected , or } behind the label " + m.label
		}
	}
}

// Select returns the indexes of the samples that a pattern selects, in the order of the page.
func (p *Page) Select(pattern *Pattern) ([]int32, error) {
	var out []int32
	take := func(i int32) error {
		ok, err := pattern.selects(&p.Samples[i])
		if ok {
			out = append(out, i)
		}
		return err
	}
	if name := pattern.onlyName(); name != "" {
		for _, i := range p.byName[name] {
			if err := take(i); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	for i := range p.Samples {
		if err := take(int32(i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// onlyName is the name that selected samples must have; empty for any.
func (p *Pattern) onlyName() string {
	if p.Name != "" {
		return p.Name
	}
	for i := range p.matchers {
		if m := &p.matchers[i]; m.label == "__name__" && m.how == equal {
			return m.value
		}
	}
	return ""
}

func (p *Pattern) selects(s *Sample) (bool, error) {
	if p.Name != "" && s.Name != p.Name {
		return false, nil
	}
	for i := range p.matchers {
		ok, err := p.matchers[i].fits(s)
		if !ok || err != nil {
			return false, err
		}
	}
	if p.value == nil {
		return true, nil
	}
	v, err := ParseValue(s.Value)
	return err == nil && (v == *p.value || math.IsNaN(v) && math.IsNaN(*p.value)), nil
}

// fits reports whether a sample has the label as the condition says; a label that a sample does not have fits no condition
// but the negative ones.
func (m *matcher) fits(s *Sample) (bool, error) {
	value, found := s.Label(m.label)
	switch m.how {
	case equal:
		return found && value == m.value, nil
	case notEqual:
		return value != m.value, nil
	}
	ok := found
	if found && m.regex != nil {
		var err error
		if ok, err = m.regex.Match([]byte(value)); err != nil {
			return false, err
		}
	}
	return ok == (m.how == match), nil
}

// ParseValue reads a value as it stands in a sample.
func ParseValue(s string) (float64, error) {
	if !isValue(s) {
		return 0, fmt.Errorf("%q is no value", shorten(s))
	}
	return strconv.ParseFloat(s, 64)
}
