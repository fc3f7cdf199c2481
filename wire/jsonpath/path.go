package jsonpath

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a path.
const (
	// MaxPathBytes is the longest path.
	MaxPathBytes = 64 << 10
	maxSegments  = 128
	// maxFilterDepth is how deep parentheses and operators of a filter may nest, and filters in paths of filters.
	maxFilterDepth = 32
)

type segmentKind uint8

const (
	segNames segmentKind = iota
	segIndexes
	segSlice
	segAll
	segFilter
	segFunction
	segKeys
)

// segment is one step of a path.
type segment struct {
	kind segmentKind
	// detached segments (..) match at any depth.
	detached bool
	names    []string
	indexes  []int
	// from and to bound a slice; nil is open.
	from, to *int
	filter   *filter
	function string
}

// definite reports whether the segment finds at most one value in each.
func (s *segment) definite() bool {
	switch s.kind {
	case segNames:
		return !s.detached && len(s.names) == 1
	case segIndexes:
		return !s.detached && len(s.indexes) == 1
	}
	return false
}

// Path is a compiled path. It may be used by several goroutines.
type Path struct {
	source   string
	segments []segment
}

// String returns the path as it was written.
func (p *Path) String() string { return p.source }

// Compile reads a path. The error names the column and what was expected.
func Compile(source string) (*Path, error) {
	if len(source) > MaxPathBytes {
		return nil, fmt.Errorf("the JSONPath has %d bytes, the limit is %d", len(source), MaxPathBytes)
	}
	p := pathReader{text: strings.TrimSpace(source)}
	if p.text == "" {
		return nil, fmt.Errorf("the JSONPath is empty")
	}
	if p.text[0] != '$' {
		return nil, p.fail("expected $")
	}
	p.at = 1
	segments, err := p.segments(false)
	if err == nil && p.at < len(p.text) {
		err = p.fail("expected . or [, found " + p.found())
	}
	if err != nil {
		return nil, err
	}
	return &Path{source: source, segments: segments}, nil
}

type pathReader struct {
	text  string
	at    int
	depth int
}

func (p *pathReader) fail(text string) error {
	return fmt.Errorf("JSONPath %q, column %d: %s", p.text, utf8.RuneCountInString(p.text[:p.at])+1, text)
}

func (p *pathReader) found() string {
	if p.at >= len(p.text) {
		return "the end"
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return strconv.QuoteRune(r)
}

func (p *pathReader) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *pathReader) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// segments reads what follows $ or @. Inside of a filter names end at operators too.
func (p *pathReader) segments(inFilter bool) ([]segment, error) {
	var list []segment
	for {
		c := p.peek()
		if c != '.' && c != '[' && c != '~' {
			return list, nil
		}
		if len(list) >= maxSegments {
			return nil, p.fail(fmt.Sprintf("expected at most %d segments", maxSegments))
		}
		s, err := p.segment(inFilter)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
}

func (p *pathReader) segment(inFilter bool) (segment, error) {
	var s segment
	if p.peek() == '~' {
		p.at++
		return segment{kind: segKeys}, nil
	}
	if p.peek() == '.' {
		p.at++
		if p.peek() == '.' {
			p.at++
			s.detached = true
		}
		if p.peek() != '[' {
			return s, p.dotted(&s, inFilter)
		}
	}
	return s, p.brackets(&s)
}

// functions are what may stand at the end of a path.
var functions = map[string]bool{"length": true, "first": true, "min": true, "max": true, "avg": true, "sum": true}

// dotted reads a name, a star or a function behind a dot.
func (p *pathReader) dotted(s *segment, inFilter bool) error {
	if p.peek() == '*' {
		p.at++
		s.kind = segAll
		return nil
	}
	start := p.at
	for p.at < len(p.text) && isNameByte(p.text[p.at], inFilter) {
		p.at++
	}
	name := p.text[start:p.at]
	if name == "" {
		return p.fail("expected a name, * or a function, found " + p.found())
	}
	if p.peek() != '(' {
		s.names = []string{name}
		return nil
	}
	if !functions[name] || s.detached {
		p.at = start
		return p.fail("expected one of the functions length() first() min() max() avg() sum()")
	}
	p.at++
	p.space()
	if p.peek() != ')' {
		return p.fail("expected ), found " + p.found())
	}
	p.at++
	s.kind, s.function = segFunction, name
	return nil
}

// isNameByte says what a name without quotes may consist of.
func isNameByte(c byte, inFilter bool) bool {
	switch {
	case c >= utf8.RuneSelf, c == '_', c >= '0' && c <= '9', c|0x20 >= 'a' && c|0x20 <= 'z':
		return true
	case inFilter:
		return false
	}
	return strings.IndexByte("-:#@$/{}%", c) >= 0
}

// brackets reads names, indexes, a slice, a star or a filter in brackets.
func (p *pathReader) brackets(s *segment) error {
	p.at++
	p.space()
	var err error
	switch c := p.peek(); {
	case c == '*':
		p.at++
		s.kind = segAll
	case c == '\'' || c == '"':
		err = p.names(s)
	case c == '?':
		err = p.filterSegment(s)
	case c == ':' || c == '-' || c >= '0' && c <= '9':
		err = p.numbers(s)
	default:
		err = p.fail("expected a name in quotes, an index, a slice, * or ?, found " + p.found())
	}
	if err != nil {
		return err
	}
	p.space()
	if p.peek() != ']' {
		return p.fail("expected ], found " + p.found())
	}
	p.at++
	return nil
}

func (p *pathReader) names(s *segment) error {
	for {
		name, err := p.quoted()
		if err != nil {
			return err
		}
		s.names = append(s.names, name)
		p.space()
		if p.peek() != ',' {
			return nil
		}
		p.at++
		p.space()
		if c := p.peek(); c != '\'' && c != '"' {
			return p.fail("expected a name in quotes, found " + p.found())
		}
	}
}

// quoted reads a text in single or double quotes; a backslash takes the character behind it as it is.
func (p *pathReader) quoted() (string, error) {
	quote := p.text[p.at]
	start := p.at
	var out []byte
	for i := p.at + 1; i < len(p.text); i++ {
		c := p.text[i]
		if c == quote {
			p.at = i + 1
			return string(out), nil
		}
		// A backslash that escapes neither itself nor the quote belongs to the text: \d in a regular expression.
		if c == '\\' && i+1 < len(p.text) && (p.text[i+1] == quote || p.text[i+1] == '\\') {
			i++
			c = p.text[i]
		}
		out = append(out, c)
	}
	p.at = start
	return "", p.fail("expected the end of the text in quotes, found the end of the path")
}

func (p *pathReader) integer() (int, bool) {
	start := p.at
	if p.peek() == '-' {
		p.at++
	}
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.at++
	}
	n, err := strconv.ParseInt(p.text[start:p.at], 10, 32)
	return int(n), err == nil
}

// numbers reads an index, a list of them or a slice.
func (p *pathReader) numbers(s *segment) error {
	if p.peek() != ':' {
		n, ok := p.integer()
		if !ok {
			return p.fail("expected an index")
		}
		s.kind, s.indexes = segIndexes, []int{n}
		p.space()
		for p.peek() == ',' {
			p.at++
			p.space()
			if n, ok = p.integer(); !ok {
				return p.fail("expected an index, found " + p.found())
			}
			s.indexes = append(s.indexes, n)
			p.space()
		}
		if p.peek() != ':' || len(s.indexes) > 1 {
			return nil
		}
		s.from, s.indexes = &n, nil
	}
	s.kind = segSlice
	p.at++
	p.space()
	if c := p.peek(); c != ']' {
		n, ok := p.integer()
		if !ok {
			return p.fail("expected the end of a slice, found " + p.found())
		}
		s.to = &n
	}
	return nil
}

func (p *pathReader) filterSegment(s *segment) error {
	p.at++
	p.space()
	if p.peek() != '(' {
		return p.fail("expected ( behind ?, found " + p.found())
	}
	p.at++
	f, err := p.filter(0)
	if err != nil {
		return err
	}
	p.space()
	if p.peek() != ')' {
		return p.fail("expected an operator or ), found " + p.found())
	}
	p.at++
	s.kind, s.filter = segFilter, f
	return nil
}
