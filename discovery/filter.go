package discovery

import (
	"fmt"
	"strings"

	"tidemark/internal/pcre"
	"tidemark/model"
)

// filter is a compiled model.Filter.
type filter struct {
	conditions []condition
	// root is nil for a filter without conditions.
	root *formula
}

// condition is one compiled condition.
type condition struct {
	macro    string
	operator model.ConditionOperator
	re       *pcre.Regexp
}

// takes reports whether an element fits the filter.
func (f *filter) takes(row map[string]string) (bool, error) {
	if f.root == nil {
		return true, nil
	}
	return f.root.holds(func(i int) (bool, error) { return f.conditions[i].holds(row) })
}

// holds reports whether the condition does. A macro that the element lacks neither matches nor fails to match: such a condition does not hold.
func (c *condition) holds(row map[string]string) (bool, error) {
	value, ok := row[c.macro]
	switch c.operator {
	case model.MacroExists:
		return ok, nil
	case model.MacroNotExists:
		return !ok, nil
	}
	if !ok {
		return false, nil
	}
	matches := true
	var err error
	if c.re != nil {
		matches, err = c.re.Match([]byte(value))
	}
	if err != nil {
		return false, refuse("the filter on %s: %v", c.macro, err)
	}
	return matches == (c.operator == model.MatchesRegex), nil
}

func compileFilter(f *model.Filter) (*filter, error) {
	out := &filter{}
	for _, c := range f.Conditions {
		compiled := condition{macro: c.Macro, operator: c.Operator}
		var err error
		switch {
		case c.Operator == model.MacroExists || c.Operator == model.MacroNotExists || c.Value == "":
		case strings.HasPrefix(c.Value, "@"):
			// The configuration cache has put the pattern in the place of every name that is known.
			err = fmt.Errorf("there is no global regular expression %q; make one of that name, or put its expression in its place", c.Value[1:])
		default:
			compiled.re, err = pcre.Compile(c.Value)
		}
		if err != nil {
			return nil, refuse("the filter on %s: %v", c.Macro, err)
		}
		out.conditions = append(out.conditions, compiled)
	}
	if len(out.conditions) == 0 {
		return out, nil
	}
	var err error
	if f.Kind == model.FilterFormula {
		out.root, err = parseFormula(f)
	} else {
		out.root = joined(f)
	}
	return out, err
}

// joined is the formula of a filter that has none.
func joined(f *model.Filter) *formula {
	all := &formula{op: '&'}
	switch f.Kind {
	case model.FilterOr:
		all.op = '|'
		fallthrough
	case model.FilterAnd:
		for i := range f.Conditions {
			all.parts = append(all.parts, &formula{op: 'c', condition: i})
		}
		return all
	}
	groups := make(map[string]*formula)
	for i, c := range f.Conditions {
		g := groups[c.Macro]
		if g == nil {
			g = &formula{op: '|'}
			groups[c.Macro] = g
			all.parts = append(all.parts, g)
		}
		g.parts = append(g.parts, &formula{op: 'c', condition: i})
	}
	return all
}

// formula is a node of a filter's formula: a condition (c), and (&), or (|), not (!).
type formula struct {
	op        byte
	condition int
	parts     []*formula
}

func (f *formula) holds(condition func(int) (bool, error)) (bool, error) {
	switch f.op {
	case 'c':
		return condition(f.condition)
	case '!':
		ok, err := f.parts[0].holds(condition)
		return !ok, err
	}
	for _, p := range f.parts {
		ok, err := p.holds(condition)
		if err != nil || ok == (f.op == '|') {
			return ok, err
		}
	}
	return f.op == '&', nil
}

// maxFormulaDepth bounds parentheses.
const maxFormulaDepth = 50

// parser reads a formula: "A and (B or not C)".
type parser struct {
	text string
	at   int
	ids  map[string]int
}

func parseFormula(f *model.Filter) (*formula, error) {
	p := &parser{text: f.Formula, ids: make(map[string]int)}
	for i, c := range f.Conditions {
		p.ids[c.ID] = i
	}
	root, err := p.either(0)
	if err == nil && p.word() != "" {
		err = p.expected("and, or, or the end")
	}
	if err != nil {
		return nil, refuse("the filter's formula %q: %v", f.Formula, err)
	}
	return root, nil
}

func (p *parser) expected(what string) error {
	return fmt.Errorf("expected %s at character %d", what, p.at+1)
}

// word returns the next word without taking it.
func (p *parser) word() string {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
	end := p.at
	for end < len(p.text) && strings.IndexByte(" \t\r\n()", p.text[end]) < 0 {
		end++
	}
	if end == p.at && end < len(p.text) {
		end++
	}
	return p.text[p.at:end]
}

func (p *parser) take(word string) bool {
	if !strings.EqualFold(p.word(), word) {
		return false
	}
	p.at += len(word)
	return true
}

func (p *parser) either(depth int) (*formula, error) { return p.chain('|', "or", depth, p.both) }

func (p *parser) both(depth int) (*formula, error) { return p.chain('&', "and", depth, p.single) }

func (p *parser) chain(op byte, word string, depth int, part func(int) (*formula, error)) (*formula, error) {
	first, err := part(depth)
	if err != nil {
		return nil, err
	}
	all := &formula{op: op, parts: []*formula{first}}
	for p.take(word) {
		next, err := part(depth)
		if err != nil {
			return nil, err
		}
		all.parts = append(all.parts, next)
	}
	return all, nil
}

func (p *parser) single(depth int) (*formula, error) {
	if depth > maxFormulaDepth {
		return nil, fmt.Errorf("more than %d levels", maxFormulaDepth)
	}
	if p.take("not") {
		inner, err := p.single(depth + 1)
		return &formula{op: '!', parts: []*formula{inner}}, err
	}
	if p.take("(") {
		inner, err := p.either(depth + 1)
		if err == nil && !p.take(")") {
			err = p.expected(")")
		}
		return inner, err
	}
	word := p.word()
	i, ok := p.ids[word]
	if !ok || word == "" {
		return nil, p.expected("the id of a condition")
	}
	p.at += len(word)
	return &formula{op: 'c', condition: i}, nil
}
