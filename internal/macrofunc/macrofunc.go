// Package macrofunc evaluates Zabbix's macro functions: {{MACRO}.function(parameters)}.
//
// A call is found by End and split by Parse; Apply computes it. The functions are those of Zabbix 7.0: btoa, fmtnum, fmttime, htmldecode,
// htmlencode, iregsub, lowercase, regrepl, regsub, tr, uppercase, urldecode, urlencode.
package macrofunc

import (
	"fmt"
	"strings"
	"time"
)

// Unknown is what stands for a macro whose function cannot be computed, as in Zabbix.
const Unknown = "*UNKNOWN*"

// maxParams bounds the parameters of one call, maxResultBytes its result.
const (
	maxParams      = 100
	maxResultBytes = 64 << 10
)

// Call is one function with its parameters, quotes removed.
type Call struct {
	// Macro is the inner macro with its braces: "{#IFNAME}".
	Macro  string
	Name   string
	Params []string
}

// Parse reads the call {{MACRO}.name(parameters)} that begins at text[at] and returns where it ends; 0 when there is none.
func Parse(text string, at int) (Call, int) {
	if at+2 >= len(text) || text[at] != '{' || text[at+1] != '{' {
		return Call{}, 0
	}
	inner := strings.IndexByte(text[at+1:], '}')
	if inner < 0 {
		return Call{}, 0
	}
	c := Call{Macro: text[at+1 : at+inner+2]}
	i := at + inner + 2
	if strings.ContainsAny(c.Macro[1:], "{ ") || i >= len(text) || text[i] != '.' {
		return Call{}, 0
	}
	start := i + 1
	for i++; i < len(text) && text[i] >= 'a' && text[i] <= 'z'; i++ {
	}
	if i == start || i >= len(text) || text[i] != '(' {
		return Call{}, 0
	}
	c.Name = text[start:i]
	var end int
	if c.Params, end = params(text, i+1); end == 0 || end >= len(text) || text[end] != '}' {
		return Call{}, 0
	}
	return c, end + 1
}

// params reads parameters up to the closing parenthesis and returns the place behind it; 0 when there is none.
func params(text string, at int) ([]string, int) {
	var list []string
	for len(list) <= maxParams {
		for at < len(text) && text[at] == ' ' {
			at++
		}
		var p string
		if at < len(text) && text[at] == '"' {
			p, at = quoted(text, at)
		} else {
			p, at = plain(text, at)
		}
		if at <= 0 || at >= len(text) {
			return nil, 0
		}
		list = append(list, p)
		switch text[at] {
		case ')':
			if len(list) == 1 && p == "" {
				list = nil
			}
			return list, at + 1
		case ',':
			at++
		default:
			return nil, 0
		}
	}
	return nil, 0
}

// quoted reads a parameter in quotes and the spaces behind it.
func quoted(text string, at int) (string, int) {
	var b strings.Builder
	for i := at + 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && text[i+1] == '"':
			i++
			b.WriteByte('"')
		case c == '"':
			for i++; i < len(text) && text[i] == ' '; i++ {
			}
			return b.String(), i
		default:
			b.WriteByte(c)
		}
	}
	return "", 0
}

// plain reads a parameter without quotes; parentheses inside are in pairs.
func plain(text string, at int) (string, int) {
	depth := 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return text[at:i], i
			}
			depth--
		case ',':
			if depth == 0 {
				return text[at:i], i
			}
		}
	}
	return "", 0
}

// Apply computes a call for the macro's value. The error says what is wrong with the call or the value.
func (c *Call) Apply(value string) (string, error) {
	out, err := c.apply(value)
	if err == nil && len(out) > maxResultBytes {
		err = fmt.Errorf("the result has %d bytes, the limit is %d", len(out), maxResultBytes)
	}
	if err != nil {
		return "", fmt.Errorf("macro function %s: %w", c.Name, err)
	}
	return out, nil
}

func (c *Call) apply(value string) (string, error) {
	f, ok := functions[c.Name]
	if !ok {
		return "", fmt.Errorf("there is no such function")
	}
	if len(c.Params) < f.least || len(c.Params) > f.most {
		return "", fmt.Errorf("%d parameters; expected %d to %d", len(c.Params), f.least, f.most)
	}
	return f.run(value, c.Params)
}

type function struct {
	least, most int
	run         func(value string, params []string) (string, error)
}

var functions = map[string]function{
	"regsub":     {2, 2, func(v string, p []string) (string, error) { return regsub(v, p[0], p[1]) }},
	"iregsub":    {2, 2, func(v string, p []string) (string, error) { return regsub(v, "(?i)"+p[0], p[1]) }},
	"regrepl":    {2, maxParams, regrepl},
	"fmtnum":     {1, 1, fmtnum},
	"fmttime":    {1, 2, func(v string, p []string) (string, error) { return fmttime(v, p, time.Local) }},
	"tr":         {2, 2, tr},
	"btoa":       {0, 0, btoa},
	"htmlencode": {0, 0, htmlencode},
	"htmldecode": {0, 0, htmldecode},
	"urlencode":  {0, 0, urlencode},
	"urldecode":  {0, 0, urldecode},
	"lowercase":  {0, 0, func(v string, _ []string) (string, error) { return strings.ToLower(v), nil }},
	"uppercase":  {0, 0, func(v string, _ []string) (string, error) { return strings.ToUpper(v), nil }},
}
