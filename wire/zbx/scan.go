package zbx

import (
	"math"
	"unicode/utf8"
)

// scanner walks JSON text. It unescapes strings in place, so that a text is walked for its strings only once.
//
// It is lenient where real clients are: raw control characters and invalid UTF-8 in strings pass through.
type scanner struct {
	b []byte
	p int
}

func (s *scanner) fail(want string) error { return &SyntaxError{Offset: s.p, Want: want} }

// peek skips white space and returns the byte there, 0 at the end.
func (s *scanner) peek() byte {
	if s.p < len(s.b) {
		if c := s.b[s.p]; c > ' ' {
			return c
		}
	}
	return s.peekSpace()
}

func (s *scanner) peekSpace() byte {
	for ; s.p < len(s.b); s.p++ {
		switch c := s.b[s.p]; c {
		case ' ', '\n', '\t', '\r':
		default:
			return c
		}
	}
	return 0
}

// next steps over the opening bracket or comma before an element and reports whether there is one. first is true
// before the first call; the scanner then stands on the opening bracket.
func (s *scanner) next(first *bool, end byte) (bool, error) {
	if *first {
		*first = false
		s.p++
		if s.peek() == end {
			s.p++
			return false, nil
		}
		return true, nil
	}
	switch s.peek() {
	case ',':
		s.p++
		s.peek()
		return true, nil
	case end:
		s.p++
		return false, nil
	}
	if end == '}' {
		return false, s.fail("',' or '}'")
	}
	return false, s.fail("',' or ']'")
}

// key reads the name of a member and its colon, and leaves the scanner on the value.
func (s *scanner) key() ([]byte, error) {
	if s.peek() != '"' {
		return nil, s.fail("a name in double quotes")
	}
	k, err := s.str()
	if err != nil {
		return nil, err
	}
	if s.peek() != ':' {
		return nil, s.fail("':'")
	}
	s.p++
	s.peek()
	return k, nil
}

// str reads the string at the scanner and returns its text.
func (s *scanner) str() ([]byte, error) {
	s.p++
	b, start := s.b, s.p
	for i := start; i < len(b); i++ {
		switch b[i] {
		case '"':
			s.p = i + 1
			return b[start:i:i], nil
		case '\\':
			return s.unescape(start, i)
		}
	}
	s.p = len(b)
	return nil, s.fail("the end of a string")
}

// unescape goes on with str at the first backslash, at i. What it writes is never longer than what it has read.
func (s *scanner) unescape(start, i int) ([]byte, error) {
	b, w := s.b, i
	for i < len(b) {
		switch c := b[i]; c {
		case '"':
			s.p = i + 1
			return b[start:w:w], nil
		case '\\':
			r, n := escape(b[i:])
			if n == 0 {
				s.p = i
				return nil, s.fail("an escape sequence")
			}
			if r < utf8.RuneSelf {
				b[w] = byte(r)
				w++
			} else {
				w += utf8.EncodeRune(b[w:], r)
			}
			i += n
		default:
			b[w] = c
			w++
			i++
		}
	}
	s.p = len(b)
	return nil, s.fail("the end of a string")
}

// escape decodes the escape sequence at the start of b and returns its length, 0 when it is none. A surrogate without
// its other half gives U+FFFD.
func escape(b []byte) (rune, int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
	default:
		return 0, 0
	}
	r, ok := hex4(b)
	if !ok {
		return 0, 0
	}
	if r < 0xD800 || r > 0xDFFF {
		return r, 6
	}
	if r < 0xDC00 {
		if low, ok := hex4(b[6:]); ok && 0xDC00 <= low && low <= 0xDFFF {
			return (r-0xD800)<<10 + (low - 0xDC00) + 0x10000, 12
		}
	}
	return utf8.RuneError, 6
}

// hex4 reads \uXXXX at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		r <<= 4
		switch {
		case '0' <= c && c <= '9':
			r |= rune(c - '0')
		case 'a' <= c && c <= 'f':
			r |= rune(c-'a') + 10
		case 'A' <= c && c <= 'F':
			r |= rune(c-'A') + 10
		default:
			return 0, false
		}
	}
	return r, true
}

// kind is what a JSON value is.
type kind uint8

const (
	kindNone   kind = iota // null, an object or an array: skipped
	kindString             // the text, unescaped
	kindNumber             // the number as it stands, also true and false
)

// scalar reads the value at the scanner. Objects, arrays and null are skipped and give kindNone.
func (s *scanner) scalar() ([]byte, kind, error) {
	switch s.peek() {
	case '"':
		text, err := s.str()
		return text, kindString, err
	case '{', '[', 'n':
		return nil, kindNone, s.skip(0)
	}
	start := s.p
	if err := s.skip(0); err != nil {
		return nil, kindNone, err
	}
	return s.b[start:s.p:s.p], kindNumber, nil
}

// skip steps over the value at the scanner, checking its syntax and changing nothing. depth is how many brackets are
// open around it.
func (s *scanner) skip(depth int) error {
	// objects has a bit per open bracket, the innermost lowest: 1 for an object.
	var objects uint64
	level := 0
	for {
		if objects&1 == 1 {
			if err := s.skipKey(); err != nil {
				return err
			}
		}
		c := s.peek()
		if c != '{' && c != '[' {
			if err := s.skipScalar(c); err != nil {
				return err
			}
		} else {
			if depth+level >= MaxDepth {
				return s.fail("at most 32 levels of brackets")
			}
			level++
			objects <<= 1
			if c == '{' {
				objects |= 1
			}
			s.p++
			if s.peek() != closing(objects) {
				continue
			}
		}
		for level > 0 && s.peek() == closing(objects) {
			s.p++
			level--
			objects >>= 1
		}
		if level == 0 {
			return nil
		}
		if s.peek() != ',' {
			return s.fail("',' or '" + string(rune(closing(objects))) + "'")
		}
		s.p++
	}
}

// closing returns the bracket that closes the innermost one.
func closing(objects uint64) byte {
	if objects&1 == 1 {
		return '}'
	}
	return ']'
}

func (s *scanner) skipScalar(first byte) error {
	switch first {
	case '"':
		return s.skipString()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.skipNumber()
}

func (s *scanner) skipKey() error {
	if s.peek() != '"' {
		return s.fail("a name in double quotes")
	}
	if err := s.skipString(); err != nil {
		return err
	}
	if s.peek() != ':' {
		return s.fail("':'")
	}
	s.p++
	return nil
}

func (s *scanner) skipString() error {
	b := s.b
	for i := s.p + 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			s.p = i + 1
			return nil
		case '\\':
			_, n := escape(b[i:])
			if n == 0 {
				s.p = i
				return s.fail("an escape sequence")
			}
			i += n - 1
		}
	}
	s.p = len(b)
	return s.fail("the end of a string")
}

func (s *scanner) skipNumber() error {
	i, digits := s.p, 0
	for ; i < len(s.b); i++ {
		c := s.b[i]
		if '0' <= c && c <= '9' {
			digits++
			continue
		}
		if c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			break
		}
	}
	if digits == 0 {
		return s.fail("a value")
	}
	s.p = i
	return nil
}

func (s *scanner) word(w string) error {
	if len(s.b)-s.p < len(w) || string(s.b[s.p:s.p+len(w)]) != w {
		return s.fail(w)
	}
	s.p += len(w)
	return nil
}

// parseUint reads decimal digits, all of b.
func parseUint(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || n > math.MaxUint64/10 || n*10 > math.MaxUint64-d {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}
