package expr

import (
	"strings"

	"tidemark/model"
)

// Query is the reference of a function of many items: /host/key with * for any host or any parameter of the key, and perhaps a
// filter ?[group="Databases" and tag="service:pg"].
type Query struct {
	// Host is the technical name of the host, * for any; empty for the host of the object that owns the expression.
	Host string
	// Key is the key without the filter.
	Key    string
	name   string
	params []string
	// filter is the condition in postfix notation; empty for none.
	filter []condition
}

// condition is an operand of a filter or one of its operators.
type condition struct {
	op opcode
	// property is group or tag, equals how its value is compared.
	property string
	equals   bool
	value    string
}

// ParseQuery reads the reference of a function of many items. The error is a *SyntaxError whose column counts in the key.
func ParseQuery(r Ref) (*Query, error) {
	q := &Query{Host: r.Host, Key: r.Key}
	key, filter := r.Key, ""
	if i := strings.LastIndex(r.Key, "?["); i >= 0 && strings.HasSuffix(r.Key, "]") {
		key, filter = r.Key[:i], r.Key[i+2:len(r.Key)-1]
	}
	q.Key = key
	q.name, q.params = SplitKey(key)
	if filter == "" {
		return q, nil
	}
	p := filterParser{scanner: scanner{text: filter}}
	if err := p.conditions(0); err != nil {
		return nil, err
	}
	if p.peek() != 0 {
		return nil, p.fail(p.at, "expected and, or or ] in a filter, found %s", p.found())
	}
	q.filter = p.out
	return q, nil
}

// AnyKey reports whether the key stands for several keys of a host.
func (q *Query) AnyKey() bool {
	for _, p := range q.params {
		if p == "*" {
			return true
		}
	}
	return false
}

// MatchHost reports whether the query means a host, by its technical name.
func (q *Query) MatchHost(host string) bool { return q.Host == "*" || q.Host == host }

// MatchKey reports whether the query means a key.
func (q *Query) MatchKey(key string) bool {
	if key == q.Key {
		return true
	}
	name, params := SplitKey(key)
	if name != q.name || len(params) != len(q.params) {
		return false
	}
	for i, p := range q.params {
		if p != "*" && p != params[i] {
			return false
		}
	}
	return true
}

// HasFilter reports whether groups and tags matter.
func (q *Query) HasFilter() bool { return len(q.filter) > 0 }

// Match applies the filter to the groups of a host and to the tags of an item and its host. A group stands for its nested groups.
func (q *Query) Match(groups []string, tags ...[]model.Tag) bool {
	var stack [maxFilter]bool
	n := 0
	for i := range q.filter {
		switch c := &q.filter[i]; c.op {
		case opNot:
			stack[n-1] = !stack[n-1]
		case opAnd:
			n--
			stack[n-1] = stack[n-1] && stack[n]
		case opOr:
			n--
			stack[n-1] = stack[n-1] || stack[n]
		default:
			stack[n] = c.fits(groups, tags) == c.equals
			n++
		}
	}
	return n == 0 || stack[0]
}

func (c *condition) fits(groups []string, tags [][]model.Tag) bool {
	if c.property == "group" {
		for _, g := range groups {
			if rest, ok := strings.CutPrefix(g, c.value); ok && (rest == "" || rest[0] == '/') {
				return true
			}
		}
		return false
	}
	name, value, both := strings.Cut(c.value, ":")
	for _, list := range tags {
		for _, t := range list {
			if t.Name == name && (!both || t.Value == value) {
				return true
			}
		}
	}
	return false
}

// maxFilter bounds the conditions of one filter.
const maxFilter = 32

type filterParser struct {
	scanner
	out   []condition
	depth int
}

// conditions reads conditions whose operators bind stronger than limit.
func (p *filterParser) conditions(limit uint8) error {
	if p.depth++; p.depth > maxFilter || len(p.out) >= maxFilter {
		return p.fail(p.at, "expected at most %d conditions in a filter", maxFilter)
	}
	defer func() { p.depth-- }()
	if err := p.condition(); err != nil {
		return err
	}
	for {
		op := opNone
		p.peek()
		switch word := p.word(); word {
		case "and":
			op = opAnd
		case "or":
			op = opOr
		}
		if op == opNone || priorities[op] <= limit {
			return nil
		}
		p.at += len(p.word())
		if err := p.conditions(priorities[op]); err != nil {
			return err
		}
		p.out = append(p.out, condition{op: op})
	}
}

func (p *filterParser) condition() error {
	const expected = "expected group or tag in a filter, found %s"
	if p.peek() == '(' {
		p.at++
		if err := p.conditions(0); err != nil {
			return err
		}
		if p.peek() != ')' {
			return p.fail(p.at, "expected ) in a filter, found %s", p.found())
		}
		p.at++
		return nil
	}
	if p.peek() == 0 || !isLetter(p.text[p.at]) {
		return p.fail(p.at, expected, p.found())
	}
	word := p.word()
	if word == "not" {
		p.at += len(word)
		if err := p.conditions(priorities[opNot]); err != nil {
			return err
		}
		p.out = append(p.out, condition{op: opNot})
		return nil
	}
	if word != "group" && word != "tag" {
		return p.fail(p.at, expected, p.found())
	}
	p.at += len(word)
	c := condition{property: word, equals: true}
	switch p.peek() {
	case '=':
		p.at++
	case '<':
		if !strings.HasPrefix(p.text[p.at:], "<>") {
			return p.fail(p.at, "expected = or <> in a filter, found %s", p.found())
		}
		c.equals = false
		p.at += 2
	default:
		return p.fail(p.at, "expected = or <> in a filter, found %s", p.found())
	}
	if p.peek() != '"' {
		return p.fail(p.at, "expected a text in quotes in a filter, found %s", p.found())
	}
	var err error
	c.value, err = p.quoted()
	p.out = append(p.out, c)
	return err
}

// SplitKey cuts an item key into its name and the parameters in brackets, without their quotes; a list in brackets keeps them.
func SplitKey(key string) (name string, params []string) {
	open := strings.IndexByte(key, '[')
	if open < 0 || !strings.HasSuffix(key, "]") {
		return key, nil
	}
	name, rest := key[:open], key[open+1:len(key)-1]
	for {
		rest = strings.TrimLeft(rest, " ")
		if strings.HasPrefix(rest, `"`) {
			end := 1
			for end < len(rest) && rest[end] != '"' {
				if rest[end] == '\\' {
					end++
				}
				end++
			}
			params = append(params, strings.ReplaceAll(rest[1:min(end, len(rest))], `\"`, `"`))
			rest = rest[min(end+1, len(rest)):]
			if i := strings.IndexByte(rest, ','); i >= 0 {
				rest = rest[i+1:]
				continue
			}
			return name, params
		}
		end, depth := 0, 0
		for end < len(rest) && (rest[end] != ',' || depth > 0) {
			switch rest[end] {
			case '[':
				depth++
			case ']':
				depth--
			}
			end++
		}
		params = append(params, rest[:end])
		if end == len(rest) {
			return name, params
		}
		rest = rest[end+1:]
	}
}

// KeySpans returns where the text of an expression has the keys of items, func(/host/key…), as half-open ranges of bytes in order. Macros may stand in
// the text, so that it need not be one that parses; what cannot be read names no item.
func KeySpans(text string) [][2]int {
	var spans [][2]int
	for s := (scanner{text: text}); s.at < len(text); {
		switch text[s.at] {
		case '"':
			end := closingQuote(text, s.at)
			if end < 0 {
				return spans
			}
			s.at = end + 1
		case '{':
			if _, err := s.macro(); err != nil {
				s.at++
			}
		case '(':
			call := s.at > 0 && isWord(text[s.at-1])
			s.at++
			if !call || s.peek() != '/' {
				continue
			}
			ref, err := s.query()
			if err != nil {
				return spans
			}
			spans = append(spans, [2]int{s.at - len(ref.Key), s.at})
		default:
			s.at++
		}
	}
	return spans
}
