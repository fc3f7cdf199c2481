// Package pcre matches regular expressions that people wrote for PCRE.
//
// Most of them run on Go's linear-time engine. Those with look-around, back-references or another thing that it lacks run
// on a backtracking engine with a time limit, so that no expression and no text can hold up the program.
package pcre

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

// MatchTimeout bounds one match of an expression that needs backtracking.
const MatchTimeout = time.Second

// MaxPatternBytes is the longest expression.
const MaxPatternBytes = 64 << 10

// Regexp is a compiled expression. It may be used by several goroutines.
type Regexp struct {
	linear *regexp.Regexp
	// full is set when linear is not, and beside it when the expression has a $: in PCRE it also matches before a line feed
	// at the end of the text.
	full *regexp2.Regexp
}

// Compile compiles an expression. The error names it.
func Compile(pattern string) (*Regexp, error) {
	if pattern == "" {
		return nil, errors.New("the regular expression is empty")
	}
	if len(pattern) > MaxPatternBytes {
		return nil, fmt.Errorf("the regular expression has %d bytes, the limit is %d", len(pattern), MaxPatternBytes)
	}
	translated := translate(pattern)
	linear, linearErr := regexp.Compile(translated)
	if linearErr == nil && !strings.Contains(pattern, "$") {
		return &Regexp{linear: linear}, nil
	}
	full, err := compileFull(translated)
	switch {
	case linearErr == nil && err == nil:
		return &Regexp{linear: linear, full: full}, nil
	case linearErr == nil:
		return &Regexp{linear: linear}, nil
	case err != nil:
		return nil, fmt.Errorf("regular expression %q: %w", pattern, err)
	}
	return &Regexp{full: full}, nil
}

func compileFull(pattern string) (re *regexp2.Regexp, err error) {
	// The parser of the backtracking engine has been seen to panic on broken expressions.
	defer func() {
		if p := recover(); p != nil {
			re, err = nil, fmt.Errorf("not understood: %v", p)
		}
	}()
	re, err = regexp2.Compile(pattern, regexp2.None)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = MatchTimeout
	return re, nil
}

// backtracks reports whether text must be matched by the backtracking engine.
func (r *Regexp) backtracks(text []byte) bool {
	return r.linear == nil || r.full != nil && len(text) > 0 && text[len(text)-1] == '\n'
}

// Match reports whether the expression matches somewhere in text. The error is that a match took too long.
func (r *Regexp) Match(text []byte) (bool, error) {
	if !r.backtracks(text) {
		return r.linear.Match(text), nil
	}
	ok, err := r.full.MatchString(string(text))
	return ok, tooLong(err)
}

// Groups returns the first match and its groups, or nil when nothing matches; a group that took no part is "".
func (r *Regexp) Groups(text []byte) ([]string, error) {
	if !r.backtracks(text) {
		found := r.linear.FindSubmatch(text)
		if found == nil {
			return nil, nil
		}
		out := make([]string, len(found))
		for i, f := range found {
			out[i] = string(f)
		}
		return out, nil
	}
	found, err := r.full.FindStringMatch(string(text))
	if err != nil || found == nil {
		return nil, tooLong(err)
	}
	groups := found.Groups()
	out := make([]string, 0, len(groups))
	for i := range groups {
		out = append(out, groups[i].String())
	}
	return out, nil
}

func tooLong(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the regular expression took over %s: %w", MatchTimeout, err)
}

// Expand replaces \0 to \9 in an output template by the groups of a match. It stops where the result has more than enough bytes, which then is longer
// than that: a template may name a long group a thousand times.
func Expand(template string, groups []string, enough int) string {
	out := make([]byte, 0, len(template)+64)
	for i := 0; i < len(template) && len(out) <= enough; i++ {
		c := template[i]
		if c == '\\' && i+1 < len(template) && template[i+1] >= '0' && template[i+1] <= '9' {
			i++
			if k := int(template[i] - '0'); k < len(groups) {
				out = append(out, groups[k]...)
			}
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

// classes are PCRE's escapes that neither engine has, outside and inside of brackets.
var classes = map[byte][2]string{'h': {`[ \t]`, ` \t`}, 'H': {`[^ \t]`, ""}, 'R': {`(?:\r\n|[\n\r\f])`, ""}, 'N': {`[^\n]`, ""}}

// translate rewrites what both engines lack: \h, \H, \R, \N, and possessive quantifiers, which become greedy ones.
func translate(pattern string) string {
	if !strings.Contains(pattern, `\`) && !strings.Contains(pattern, "+") {
		return pattern
	}
	var out strings.Builder
	bracket := 0
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '\\' && i+1 < len(pattern):
			i++
			form := classes[pattern[i]][min(bracket, 1)]
			if form == "" {
				form = pattern[i-1 : i+1]
			}
			out.WriteString(form)
			continue
		case bracket > 0 && c == ']':
			bracket = 0
		case bracket == 0 && c == '[':
			bracket = 1
			out.WriteByte(c)
			// A bracket right behind the opening one, or behind its ^, is an ordinary character.
			if i+1 < len(pattern) && pattern[i+1] == '^' {
				i++
				out.WriteByte('^')
			}
			if i+1 < len(pattern) && pattern[i+1] == ']' {
				i++
				out.WriteString(`\]`)
			}
			continue
		case bracket > 0 && c == '[' && i+1 < len(pattern) && pattern[i+1] == ':':
			if end := strings.Index(pattern[i:], ":]"); end > 0 {
				out.WriteString(pattern[i : i+end+2])
				i += end + 1
				continue
			}
		case bracket == 0 && c == '+' && i > 0 && quantified(pattern[:i]):
			continue
		}
		out.WriteByte(c)
	}
	return out.String()
}

// quantified reports whether a pattern ends with a quantifier that a + behind it makes possessive.
func quantified(pattern string) bool {
	last := pattern[len(pattern)-1]
	if last != '*' && last != '+' && last != '?' && last != '}' {
		return false
	}
	slashes := 0
	for i := len(pattern) - 2; i >= 0 && pattern[i] == '\\'; i-- {
		slashes++
	}
	if slashes%2 == 1 || len(pattern) < 2 {
		return false
	}
	if last == '?' {
		// (?+ does not exist, and a?? is lazy already.
		return pattern[len(pattern)-2] != '('
	}
	return last != '}' || strings.LastIndexByte(pattern, '{') > 0
}
