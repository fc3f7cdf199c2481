// Package jsonpath reads JSON documents and answers paths in Zabbix's dialect of JSONPath.
//
// A document is parsed once, without a copy of its text, and may be asked by many paths. What a path finds is given as it
// stands in the text: numbers keep their digits and objects their order.
//
// Source of the dialect: Zabbix documentation, "JSONPath functionality", version 7.0. Functions may also stand before
// further segments here.
package jsonpath

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// Limits of a document.
const (
	// MaxBytes is the longest text.
	MaxBytes = 64 << 20
	// maxDepth is how deep lists and objects may nest.
	maxDepth = 512
)

type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindList
	kindObject
)

// node is one value. The nodes of a list or an object follow it: the first child of node i is i+1, the one behind child c
// is nodes[c].after.
type node struct {
	kind kind
	// named says that key and keyEnd are the span of the member's name without its quotes; else key is the index in a list.
	named bool
	// escaped says that the name has escapes.
	escaped     bool
	start, end  uint32
	key, keyEnd uint32
	after       uint32
	count       uint32
}

// Document is a parsed text. It may be used by several goroutines.
type Document struct {
	text  []byte
	nodes []node
}

// SyntaxError says what is wrong where.
type SyntaxError struct {
	// Offset counts bytes from 0.
	Offset int
	Text   string
}

// Error names the byte and what was expected.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Text)
}

// Parse reads a text, which the document keeps and which must not change. The error is a *SyntaxError.
func Parse(text []byte) (*Document, error) {
	if len(text) > MaxBytes {
		return nil, &SyntaxError{MaxBytes, fmt.Sprintf("expected at most %d bytes, found %d", MaxBytes, len(text))}
	}
	p := reader{text: text, nodes: make([]node, 0, len(text)/12+1)}
	p.space()
	if err := p.value(0); err != nil {
		return nil, err
	}
	p.space()
	if p.at < len(text) {
		return nil, p.fail("expected the end, found " + p.found())
	}
	return &Document{text: text, nodes: p.nodes}, nil
}

type reader struct {
	text  []byte
	at    int
	nodes []node
}

func (p *reader) fail(text string) error { return &SyntaxError{p.at, text} }

func (p *reader) found() string {
	if p.at >= len(p.text) {
		return "the end"
	}
	r, _ := utf8.DecodeRune(p.text[p.at:])
	return strconv.QuoteRune(r)
}

func (p *reader) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// value reads one value and appends its nodes.
func (p *reader) value(depth int) error {
	if p.at >= len(p.text) {
		return p.fail("expected a value, found the end")
	}
	i := len(p.nodes)
	p.nodes = append(p.nodes, node{start: uint32(p.at)})
	k, err := kindNull, error(nil)
	switch c := p.text[p.at]; {
	case c == '{' || c == '[':
		if depth >= maxDepth {
			return p.fail(fmt.Sprintf("expected at most %d levels", maxDepth))
		}
		k = kindList
		if c == '{' {
			k = kindObject
		}
		err = p.children(i, k == kindObject, depth)
	case c == '"':
		k = kindString
		err = p.quoted()
	case c == '-' || c >= '0' && c <= '9':
		k = kindNumber
		err = p.number()
	case c == 't':
		k, err = kindBool, p.word("true")
	case c == 'f':
		k, err = kindBool, p.word("false")
	case c == 'n':
		err = p.word("null")
	default:
		err = p.fail("expected a value, found " + p.found())
	}
	n := &p.nodes[i]
	n.kind, n.end, n.after = k, uint32(p.at), uint32(len(p.nodes))
	return err
}

// children reads a list or an object, whose node is parent.
func (p *reader) children(parent int, object bool, depth int) error {
	closing := byte(']')
	if object {
		closing = '}'
	}
	p.at++
	p.space()
	if p.at < len(p.text) && p.text[p.at] == closing {
		p.at++
		return nil
	}
	for count := uint32(0); ; {
		var name [2]uint32
		if object {
			var err error
			if name, err = p.name(); err != nil {
				return err
			}
		}
		i := len(p.nodes)
		if err := p.value(depth + 1); err != nil {
			return err
		}
		n := &p.nodes[i]
		n.key, n.named = count, object
		if object {
			n.key, n.keyEnd = name[0], name[1]
			n.escaped = bytes.IndexByte(p.text[name[0]:name[1]], '\\') >= 0
		}
		count++
		p.space()
		if p.at >= len(p.text) || p.text[p.at] != ',' && p.text[p.at] != closing {
			return p.fail(fmt.Sprintf("expected , or %c, found %s", closing, p.found()))
		}
		p.at++
		if p.text[p.at-1] == closing {
			p.nodes[parent].count = count
			return nil
		}
		p.space()
	}
}

// name reads a member's name and the colon behind it.
func (p *reader) name() (span [2]uint32, err error) {
	if p.at >= len(p.text) || p.text[p.at] != '"' {
		return span, p.fail("expected a name in quotes, found " + p.found())
	}
	start := p.at + 1
	if err := p.quoted(); err != nil {
		return span, err
	}
	span = [2]uint32{uint32(start), uint32(p.at - 1)}
	p.space()
	if p.at >= len(p.text) || p.text[p.at] != ':' {
		return span, p.fail("expected :, found " + p.found())
	}
	p.at++
	p.space()
	return span, nil
}

func (p *reader) quoted() error {
	for i := p.at + 1; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '"':
			p.at = i + 1
			return nil
		case c < ' ':
			p.at = i
			return p.fail("expected no control character in a string")
		case c == '\\':
			i++
			if i >= len(p.text) {
				break
			}
			if p.text[i] == 'u' {
				if i+4 >= len(p.text) || hex4(p.text[i+1:]) < 0 {
					p.at = i
					return p.fail("expected four hexadecimal digits behind \\u")
				}
				i += 4
			} else if bytes.IndexByte([]byte(`"\/bfnrt`), p.text[i]) < 0 {
				p.at = i
				return p.fail("expected one of \" \\ / b f n r t u behind \\")
			}
		}
	}
	p.at = len(p.text)
	return p.fail("expected \" at the end of a string, found the end")
}

func (p *reader) number() error {
	digits := func() int {
		n := 0
		for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
			p.at++
			n++
		}
		return n
	}
	if p.text[p.at] == '-' {
		p.at++
	}
	zero := p.at < len(p.text) && p.text[p.at] == '0'
	if n := digits(); n == 0 || zero && n > 1 {
		return p.fail("expected a number without leading zeros")
	}
	if p.at < len(p.text) && p.text[p.at] == '.' {
		p.at++
		if digits() == 0 {
			return p.fail("expected a digit, found " + p.found())
		}
	}
	if p.at < len(p.text) && p.text[p.at]|0x20 == 'e' {
		p.at++
		if p.at < len(p.text) && (p.text[p.at] == '+' || p.text[p.at] == '-') {
			p.at++
		}
		if digits() == 0 {
			return p.fail("expected a digit, found " + p.found())
		}
	}
	return nil
}

func (p *reader) word(w string) error {
	if len(p.text)-p.at < len(w) || string(p.text[p.at:p.at+len(w)]) != w {
		return p.fail("expected a value, found " + p.found())
	}
	p.at += len(w)
	return nil
}

// hex4 reads four hexadecimal digits, or returns -1.
func hex4(text []byte) rune {
	var v rune
	for _, c := range text[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		v = v<<4 | rune(c)
	}
	return v
}

// unquote appends the text of a string, given without its quotes.
func unquote(dst, text []byte) []byte {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' {
			dst = append(dst, c)
			continue
		}
		i++
		switch text[i] {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := hex4(text[i+1:])
			i += 4
			if utf16.IsSurrogate(r) && i+6 < len(text) && text[i+1] == '\\' && text[i+2] == 'u' {
				if both := utf16.DecodeRune(r, hex4(text[i+3:])); both != utf8.RuneError {
					r = both
					i += 6
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, text[i])
		}
	}
	return dst
}

// raw is a value as it stands in the text.
func (d *Document) raw(i uint32) []byte { return d.text[d.nodes[i].start:d.nodes[i].end] }

// appendText appends a value: strings without quotes and escapes, all else as it stands in the text.
func (d *Document) appendText(dst []byte, i uint32) []byte {
	n := &d.nodes[i]
	if n.kind == kindString {
		return unquote(dst, d.text[n.start+1:n.end-1])
	}
	return append(dst, d.text[n.start:n.end]...)
}

// textOf returns what appendText appends, without a copy if it stands so in the text.
func (d *Document) textOf(i uint32) string {
	n := &d.nodes[i]
	text := d.text[n.start:n.end]
	if n.kind == kindString {
		text = text[1 : len(text)-1]
		if bytes.IndexByte(text, '\\') >= 0 {
			return string(unquote(nil, text))
		}
	}
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// isNamed reports whether a node is a member with this name.
func (d *Document) isNamed(i uint32, name string) bool {
	n := &d.nodes[i]
	if !n.named {
		return false
	}
	if !n.escaped {
		return int(n.keyEnd-n.key) == len(name) && string(d.text[n.key:n.keyEnd]) == name
	}
	return string(unquote(nil, d.text[n.key:n.keyEnd])) == name
}
