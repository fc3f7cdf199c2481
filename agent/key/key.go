// Package key is what an item key measures on this machine: it parses keys in Zabbix's notation and reads /proc, /sys
// and files for them.
//
// A Machine reads each kernel file at most once per tick and keeps the files open; a Check is a compiled key that takes
// its value out of what was read. Names, parameters and messages of keys follow the Zabbix agent's public
// documentation, so that templates written for it work; keys and modes of our own are listed in docs/user/agent.md.
package key

import (
	"strings"
)

// MaxKeyBytes bounds the text of an item key, as Zabbix does.
const MaxKeyBytes = 2048

// maxParams bounds the parameters of one key and the elements of one array parameter.
const maxParams = 128

// ErrSyntax is returned for text that is no item key.
var ErrSyntax = reason("Invalid item key format.")

// Key is a parsed item key.
type Key struct {
	// Name is the part before the bracket.
	Name   string
	Params []Param
}

// Param is one parameter of a key: plain text, quotes removed, or an array.
type Param struct {
	Text string
	// List are the elements of an array parameter; Text is then empty.
	List    []string
	IsArray bool
}

// Param returns the text of parameter i, zero-based, or fallback where it is missing or empty.
func (k Key) Param(i int, fallback string) string {
	if i >= len(k.Params) || k.Params[i].Text == "" {
		return fallback
	}
	return k.Params[i].Text
}

// Parse reads an item key: a name of letters, digits, '_', '.' and '-', and parameters in brackets. A parameter is
// unquoted text without ',' and ']', quoted text in which \" stands for a quote, or an array of such in brackets.
// Spaces before a parameter and after a closing quote are passed over.
func Parse(s string) (Key, error) {
	if len(s) > MaxKeyBytes {
		return Key{}, ErrSyntax
	}
	end := 0
	for end < len(s) && isNameByte(s[end]) {
		end++
	}
	if end == 0 {
		return Key{}, ErrSyntax
	}
	k := Key{Name: s[:end]}
	if end == len(s) {
		return k, nil
	}
	if s[end] != '[' {
		return Key{}, ErrSyntax
	}
	p := parser{s: s, at: end + 1}
	params, ok := p.params()
	if !ok || p.at != len(s) {
		return Key{}, ErrSyntax
	}
	k.Params = params
	return k, nil
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}

type parser struct {
	s  string
	at int
}

func (p *parser) spaces() {
	for p.at < len(p.s) && p.s[p.at] == ' ' {
		p.at++
	}
}

// params reads up to and over the closing bracket.
func (p *parser) params() ([]Param, bool) {
	var params []Param
	for len(params) < maxParams {
		p.spaces()
		if p.at == len(p.s) {
			return nil, false
		}
		var param Param
		ok := true
		if p.s[p.at] == '[' {
			p.at++
			param.IsArray = true
			param.List, ok = p.list()
			p.spaces()
		} else {
			param.Text, ok = p.text()
		}
		if !ok || p.at == len(p.s) {
			return nil, false
		}
		params = append(params, param)
		switch c := p.s[p.at]; c {
		case ']', ',':
			p.at++
			if c == ']' {
				return params, true
			}
		default:
			return nil, false
		}
	}
	return nil, false
}

// list reads the elements of an array up to and over its closing bracket. Arrays do not nest.
func (p *parser) list() ([]string, bool) {
	var list []string
	for len(list) < maxParams {
		p.spaces()
		if p.at == len(p.s) || p.s[p.at] == '[' {
			return nil, false
		}
		text, ok := p.text()
		if !ok || p.at == len(p.s) {
			return nil, false
		}
		list = append(list, text)
		switch c := p.s[p.at]; c {
		case ']', ',':
			p.at++
			if c == ']' {
				return list, true
			}
		default:
			return nil, false
		}
	}
	return nil, false
}

// text reads one quoted or unquoted parameter and stops before the ',' or ']' behind it.
func (p *parser) text() (string, bool) {
	if p.s[p.at] != '"' {
		length := strings.IndexAny(p.s[p.at:], ",]")
		if length < 0 {
			return "", false
		}
		text := p.s[p.at : p.at+length]
		p.at += length
		return text, true
	}
	start := p.at + 1
	escaped := false
	for p.at = start; p.at < len(p.s); p.at++ {
		if p.s[p.at] != '"' {
			continue
		}
		if p.s[p.at-1] == '\\' && p.at > start {
			escaped = true
			continue
		}
		text := p.s[start:p.at]
		if escaped {
			text = strings.ReplaceAll(text, `\"`, `"`)
		}
		p.at++
		p.spaces()
		return text, true
	}
	return "", false
}

// String returns the key in the form that Parse reads back to the same key, quoted only where needed.
func (k Key) String() string {
	if len(k.Params) == 0 {
		return k.Name
	}
	b := append([]byte(k.Name), '[')
	for i, param := range k.Params {
		if i > 0 {
			b = append(b, ',')
		}
		if !param.IsArray {
			b = appendParam(b, param.Text)
			continue
		}
		b = append(b, '[')
		for j, text := range param.List {
			if j > 0 {
				b = append(b, ',')
			}
			b = appendParam(b, text)
		}
		b = append(b, ']')
	}
	return string(append(b, ']'))
}

// Quote returns text as a parameter, quoted where it must be.
func Quote(text string) string { return string(appendParam(nil, text)) }

func appendParam(b []byte, text string) []byte {
	if text == "" {
		return b
	}
	if text[0] != '"' && text[0] != '[' && text[0] != ' ' && !strings.ContainsAny(text, ",]") {
		return append(b, text...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(text, `"`, `\"`)...)
	return append(b, '"')
}
