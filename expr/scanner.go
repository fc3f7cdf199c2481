package expr

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// scanner walks over the text of an expression. What a character means depends on whether an operand or an operator is
// expected ("/" begins an item or divides), so the parser asks for what it expects.
type scanner struct {
	text string
	at   int
}

// fail returns an error at byte offset at.
func (s *scanner) fail(at int, format string, args ...any) error {
	at = min(at, len(s.text))
	return &SyntaxError{Column: utf8.RuneCountInString(s.text[:at]) + 1, Text: fmt.Sprintf(format, args...)}
}

// found describes what stands at the present place, for messages.
func (s *scanner) found() string {
	if s.at >= len(s.text) {
		return "the end"
	}
	r, _ := utf8.DecodeRuneInString(s.text[s.at:])
	return strconv.QuoteRune(r)
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// peek returns the next byte that is not space, or 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.at >= len(s.text) {
		return 0
	}
	return s.text[s.at]
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isWord(c byte) bool   { return isLetter(c) || isDigit(c) || c == '_' }

// word returns the word (letters, digits, underscores) at the present place without passing it.
func (s *scanner) word() string {
	end := s.at
	for end < len(s.text) && isWord(s.text[end]) {
		end++
	}
	return s.text[s.at:end]
}

// operator reads a binary operator; opNone when there is none.
func (s *scanner) operator() opcode {
	c := s.peek()
	next := byte(0)
	if s.at+1 < len(s.text) {
		next = s.text[s.at+1]
	}
	op, size := opNone, 1
	switch c {
	case '+':
		op = opAdd
	case '-':
		op = opSubtract
	case '*':
		op = opMultiply
	case '/':
		op = opDivide
	case '=':
		op = opEqual
	case '<':
		op = opLess
		if next == '=' {
			op, size = opLessEqual, 2
		} else if next == '>' {
			op, size = opNotEqual, 2
		}
	case '>':
		op = opGreater
		if next == '=' {
			op, size = opGreaterEqual, 2
		}
	case 'a', 'o':
		switch w := s.word(); w {
		case "and":
			op, size = opAnd, len(w)
		case "or":
			op, size = opOr, len(w)
		}
	}
	if op != opNone {
		s.at += size
	}
	return op
}

// suffixes multiply a constant: bytes by 1024, times in seconds.
var suffixes = map[byte]float64{
	'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40,
	's': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 7 * 86400,
}

// number reads an unsigned number with an optional suffix.
func (s *scanner) number() (float64, error) {
	start := s.at
	size := numberLength(s.text[start:])
	if size == 0 {
		return 0, s.fail(start, "expected a number, found %s", s.found())
	}
	v, err := strconv.ParseFloat(s.text[start:start+size], 64)
	if err != nil {
		return 0, s.fail(start, "expected a number of 64 bits, found %s", s.text[start:start+size])
	}
	s.at += size
	if s.at < len(s.text) {
		if factor, ok := suffixes[s.text[s.at]]; ok {
			v *= factor
			s.at++
		}
	}
	if s.at < len(s.text) && (isWord(s.text[s.at]) || s.text[s.at] == '.') {
		return 0, s.fail(s.at, "expected an operator or one of the suffixes KMGT smhdw after a number, found %s", s.found())
	}
	return v, nil
}

// numberLength returns how many bytes of text are digits[.digits][e[±]digits].
func numberLength(text string) int {
	i := 0
	for i < len(text) && isDigit(text[i]) {
		i++
	}
	whole := i
	if i < len(text) && text[i] == '.' {
		i++
		for i < len(text) && isDigit(text[i]) {
			i++
		}
		if i == whole+1 && whole == 0 {
			return 0
		}
	}
	if i == 0 {
		return 0
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		j := i + 1
		if j < len(text) && (text[j] == '+' || text[j] == '-') {
			j++
		}
		digits := j
		for j < len(text) && isDigit(text[j]) {
			j++
		}
		if j > digits {
			i = j
		}
	}
	return i
}

// quoted reads a string in double quotes, in which \" and \\ stand for a quote and a backslash.
func (s *scanner) quoted() (string, error) {
	start := s.at
	escaped := false
	for i := start + 1; i < len(s.text); i++ {
		switch s.text[i] {
		case '\\':
			if i+1 >= len(s.text) || s.text[i+1] != '"' && s.text[i+1] != '\\' {
				return "", s.fail(i, `expected \" or \\ in a string`)
			}
			escaped = true
			i++
		case '"':
			s.at = i + 1
			body := s.text[start+1 : i]
			if escaped {
				body = unescaper.Replace(body)
			}
			return body, nil
		}
	}
	return "", s.fail(start, "expected a closing quote for this string")
}

var unescaper = strings.NewReplacer(`\"`, `"`, `\\`, `\`)

// macro reads {…} as it stands. Quotes inside hide braces, so that {$M:"}"} is one macro.
func (s *scanner) macro() (string, error) {
	start := s.at
	depth, inQuotes := 0, false
	for i := start; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case inQuotes && c == '\\':
			i++
		case c == '"':
			inQuotes = !inQuotes
		case inQuotes:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				s.at = i + 1
				return s.text[start:s.at], nil
			}
		}
	}
	return "", s.fail(start, "expected a closing brace for this macro")
}

// query reads /host/key[parameters]?[filter].
func (s *scanner) query() (Ref, error) {
	start := s.at
	slash := strings.IndexByte(s.text[start+1:], '/')
	if slash < 0 {
		return Ref{}, s.fail(len(s.text), "expected /host/key")
	}
	host := s.text[start+1 : start+1+slash]
	if i := strings.IndexAny(host, "(),\"<>=\n"); i >= 0 {
		return Ref{}, s.fail(start+1+i, "expected / behind the name of the host")
	}
	s.at = start + 1 + slash + 1
	key, err := s.key()
	if err != nil {
		return Ref{}, err
	}
	return Ref{Host: host, Key: key}, nil
}

// isKey reports whether c may stand in an item key outside of its brackets; * is for foreach, {#} for macros.
func isKey(c byte) bool {
	return isWord(c) || c == '.' || c == '-' || c == '*'
}

// key reads an item key with its parameters in brackets.
func (s *scanner) key() (string, error) {
	start := s.at
	for s.at < len(s.text) {
		if s.text[s.at] == '{' {
			if _, err := s.macro(); err != nil {
				return "", err
			}
			continue
		}
		if !isKey(s.text[s.at]) {
			break
		}
		s.at++
	}
	if s.at == start {
		return "", s.fail(start, "expected an item key, found %s", s.found())
	}
	if err := s.brackets(); err != nil {
		return "", err
	}
	if strings.HasPrefix(s.text[s.at:], "?[") {
		s.at++
		if err := s.brackets(); err != nil {
			return "", err
		}
	}
	return s.text[start:s.at], nil
}

// brackets passes [ … ] with quoted parameters and inner brackets, if they come next.
func (s *scanner) brackets() error {
	if s.at >= len(s.text) || s.text[s.at] != '[' {
		return nil
	}
	depth := 0
	parameterStart := false // a quote opens a quoted parameter only at the parameter's start
	for i := s.at; i < len(s.text); i++ {
		switch c := s.text[i]; c {
		case '[':
			depth++
			parameterStart = true
		case ']':
			if depth--; depth == 0 {
				s.at = i + 1
				return nil
			}
			parameterStart = false
		case ',', '=':
			parameterStart = true
		case ' ':
		case '"':
			if parameterStart {
				if i = closingQuote(s.text, i); i < 0 {
					return s.fail(s.at, "expected a closing quote in the parameters of the item key")
				}
			}
			parameterStart = false
		default:
			parameterStart = false
		}
	}
	return s.fail(s.at, "expected ] behind the parameters of the item key")
}

// closingQuote returns the place of the quote that closes the one at i, or -1.
func closingQuote(text string, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// parameter reads one parameter of a history function: quoted, or as it stands up to a comma or parenthesis.
func (s *scanner) parameter() (text string, wasQuoted bool, err error) {
	if s.peek() == '"' {
		text, err = s.quoted()
		return text, true, err
	}
	start := s.at
	for s.at < len(s.text) && s.text[s.at] != ',' && s.text[s.at] != ')' {
		if s.text[s.at] == '{' {
			if _, err := s.macro(); err != nil {
				return "", false, err
			}
			continue
		}
		s.at++
	}
	return strings.TrimRight(s.text[start:s.at], " \t\r\n"), false, nil
}
