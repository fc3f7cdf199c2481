package alert

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidemark/model"
)

// Condition is one test of an event.
type Condition struct {
	// Label names the condition in a formula; when empty, conditions are A, B, C in their order.
	Label string `yaml:"label,omitempty" json:"label,omitempty"`
	// Type is host_group, template, host, trigger (its id), name (the event's), tag, tag_value, severity, time or suppressed.
	Type string `yaml:"type" json:"type"`
	// Operator depends on the type; empty is equals, for severity at_least, for time in.
	Operator string `yaml:"operator,omitempty" json:"operator,omitempty"`
	Value    string `yaml:"value,omitempty" json:"value,omitempty"`
	// Tag is the name of the tag for type tag_value.
	Tag string `yaml:"tag,omitempty" json:"tag,omitempty"`
}

// The operators.
const (
	opEquals      = "equals"
	opNot         = "not_equals"
	opContains    = "contains"
	opContainsNot = "not_contains"
	opMatches     = "matches"
	opMatchesNot  = "not_matches"
	opAtLeast     = "at_least"
	opAtMost      = "at_most"
	opIn          = "in"
	opNotIn       = "not_in"
)

// operators are those of each type, its default first.
var operators = map[string][]string{
	"host_group": {opEquals, opNot, opContains, opContainsNot, opMatches, opMatchesNot},
	"template":   {opEquals, opNot, opContains, opContainsNot},
	"host":       {opEquals, opNot, opContains, opContainsNot, opMatches, opMatchesNot},
	"trigger":    {opEquals, opNot},
	"name":       {opContains, opContainsNot, opEquals, opNot, opMatches, opMatchesNot},
	"tag":        {opEquals, opNot, opContains, opContainsNot},
	"tag_value":  {opEquals, opNot, opContains, opContainsNot, opMatches, opMatchesNot},
	"severity":   {opAtLeast, opAtMost, opEquals, opNot},
	"time":       {opIn, opNotIn},
	"suppressed": {opEquals, opNot},
}

// subject is what conditions look at.
type subject struct {
	event      *model.Event
	trigger    *model.Trigger // nil when it is gone
	host       *model.Host    // nil when it is gone
	template   string
	suppressed bool
	now        time.Time
}

// test is a condition made ready to be evaluated.
type test struct {
	kind  string
	holds func(*subject) bool
}

// compile checks a condition.
func (c *Condition) compile() (test, error) {
	t := test{kind: c.Type}
	allowed, ok := operators[c.Type]
	if !ok {
		return t, fmt.Errorf("type is %.40q, expected host_group, template, host, trigger, name, tag, tag_value, severity, time or suppressed", c.Type)
	}
	operator := c.OperatorOr()
	if !slices.Contains(allowed, operator) {
		return t, fmt.Errorf("operator is %.40q, expected one of %s for type %s", operator, strings.Join(allowed, ", "), c.Type)
	}
	if c.Type == "tag_value" && c.Tag == "" {
		return t, fmt.Errorf("tag is empty, expected the name of the tag for type tag_value")
	}
	var err error
	switch c.Type {
	case "severity":
		t.holds, err = c.severity(operator)
	case "time":
		t.holds, err = c.time(operator)
	case "suppressed":
		t.holds, err = c.suppressed(operator)
	default:
		t.holds, err = c.text(operator)
	}
	return t, err
}

func (c *Condition) severity(operator string) (func(*subject) bool, error) {
	want, ok := parseSeverity(c.Value)
	if !ok {
		return nil, fmt.Errorf("value is %.40q, expected the name of a severity", c.Value)
	}
	return func(s *subject) bool {
		switch have := s.event.Severity; operator {
		case opAtLeast:
			return have >= want
		case opAtMost:
			return have <= want
		case opNot:
			return have != want
		default:
			return have == want
		}
	}, nil
}

func (c *Condition) time(operator string) (func(*subject) bool, error) {
	var periods Periods
	if err := periods.UnmarshalText([]byte(c.Value)); err != nil {
		return nil, err
	}
	return func(s *subject) bool { return periods.Contain(s.now) == (operator == opIn) }, nil
}

func (c *Condition) suppressed(operator string) (func(*subject) bool, error) {
	want, err := strconv.ParseBool(c.Value)
	if err != nil {
		return nil, fmt.Errorf("value is %.40q, expected true or false", c.Value)
	}
	return func(s *subject) bool { return (s.suppressed == want) == (operator == opEquals) }, nil
}

// text compares texts of the event: the condition holds if one of them fits; the negated operators if none does.
func (c *Condition) text(operator string) (func(*subject) bool, error) {
	fits := func(have string) bool { return have == c.Value }
	switch operator {
	case opContains, opContainsNot:
		want := strings.ToLower(c.Value)
		fits = func(have string) bool { return strings.Contains(strings.ToLower(have), want) }
	case opMatches, opMatchesNot:
		re, err := regexp.Compile(c.Value)
		if err != nil {
			return nil, fmt.Errorf("value is no regular expression: %w", err)
		}
		fits = re.MatchString
	}
	if c.Type == "trigger" {
		if _, err := strconv.ParseUint(c.Value, 10, 64); err != nil {
			return nil, fmt.Errorf("value is %.40q, expected the id of a trigger", c.Value)
		}
	}
	if c.Type == "host_group" && (operator == opEquals || operator == opNot) {
		// A group holds the groups below it: Europe holds Europe/Riga.
		fits = func(have string) bool { return have == c.Value || strings.HasPrefix(have, c.Value+"/") }
	}
	negated := strings.HasPrefix(operator, "not_")
	return func(s *subject) bool { return slices.ContainsFunc(c.texts(s), fits) != negated }, nil
}

// texts are what a condition compares.
func (c *Condition) texts(s *subject) []string {
	switch c.Type {
	case "trigger":
		return []string{strconv.FormatUint(uint64(s.event.TriggerID), 10)}
	case "name":
		return []string{s.event.Name}
	case "template":
		if s.template != "" {
			return []string{s.template}
		}
	case "host":
		if s.host != nil {
			return []string{s.host.Host}
		}
	case "host_group":
		if s.host != nil {
			return s.host.Groups
		}
	case "tag", "tag_value":
		var list []string
		for _, t := range s.event.Tags {
			if c.Type == "tag" {
				list = append(list, t.Name)
			} else if t.Name == c.Tag {
				list = append(list, t.Value)
			}
		}
		return list
	}
	return nil
}

// OperatorOr is the condition's operator, or the default of its type.
func (c *Condition) OperatorOr() string {
	if allowed := operators[c.Type]; c.Operator == "" && len(allowed) > 0 {
		return allowed[0]
	}
	return c.Operator
}

// LabelAt is the label of a condition at a place of its action, from 0: its own, or A … Z, AA, AB ….
func (c *Condition) LabelAt(i int) string {
	if c.Label != "" {
		return c.Label
	}
	label := ""
	for i++; i > 0; i = (i - 1) / 26 {
		label = string(rune('A'+(i-1)%26)) + label
	}
	return label
}

// rule is an action's conditions and how they are combined.
type rule struct {
	tests   []test
	program formula
}

// compileRule checks the conditions of an action.
func (a *Action) compileRule() (rule, error) {
	var r rule
	labels := make(map[string]int, len(a.Conditions))
	for i := range a.Conditions {
		c := &a.Conditions[i]
		label := c.LabelAt(i)
		t, err := c.compile()
		if err != nil {
			return r, fmt.Errorf("condition %s: %w", label, err)
		}
		if _, taken := labels[label]; taken {
			return r, fmt.Errorf("condition %s: the label is used twice", label)
		}
		labels[label] = i
		r.tests = append(r.tests, t)
	}
	switch a.Evaluation {
	case "", "and_or", "and", "or":
		if a.Formula != "" {
			return r, fmt.Errorf("formula is set, expected evaluation formula with it")
		}
		return r, nil
	case "formula":
		var err error
		if r.program, err = parseFormula(a.Formula, labels); err != nil {
			return r, fmt.Errorf("formula: %w", err)
		}
		return r, nil
	}
	return r, fmt.Errorf("evaluation is %.40q, expected and_or, and, or or formula", a.Evaluation)
}

// holds evaluates the conditions for an event.
func (r *rule) holds(evaluation string, s *subject) bool {
	if len(r.tests) == 0 {
		return true
	}
	switch evaluation {
	case "formula":
		return r.program.holds(func(i int) bool { return r.tests[i].holds(s) })
	case "or":
		return slices.ContainsFunc(r.tests, func(t test) bool { return t.holds(s) })
	case "and":
		return !slices.ContainsFunc(r.tests, func(t test) bool { return !t.holds(s) })
	}
	for i, t := range r.tests {
		first := slices.IndexFunc(r.tests, func(o test) bool { return o.kind == t.kind }) == i
		if first && !slices.ContainsFunc(r.tests, func(o test) bool { return o.kind == t.kind && o.holds(s) }) {
			return false
		}
	}
	return true
}
