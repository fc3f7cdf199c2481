package expr

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dlclark/regexp2"

	"tidemark/model"
)

// maxPattern bounds a pattern in bytes.
const maxPattern = 64 << 10

// regexpTime bounds one match of an expression that needs backtracking.
const regexpTime = 50 * time.Millisecond

const problemGlobalRegexp = "there is no global regular expression of that name"

// comparison is an operator of count and find.
type comparison uint8

const (
	matchDefault comparison = iota // eq for numbers, like for text
	matchEqual
	matchNotEqual
	matchGreater
	matchGreaterEqual
	matchLess
	matchLessEqual
	matchLike
	matchRegexp
	matchBitAnd
)

var comparisons = map[string]comparison{
	"": matchDefault, "eq": matchEqual, "ne": matchNotEqual, "gt": matchGreater, "ge": matchGreaterEqual,
	"lt": matchLess, "le": matchLessEqual, "like": matchLike, "regexp": matchRegexp, "iregexp": matchRegexp, "bitand": matchBitAnd,
}

// matcher decides whether a value fits an operator and a pattern. It is immutable and may be used by several goroutines.
type matcher struct {
	operator comparison
	text     []byte
	// number is text as a number; isNumber says whether it is one.
	number   float64
	isNumber bool
	// wanted and mask belong to bitand.
	wanted, mask uint64
	// fast is used when the pattern fits Go's linear-time syntax, else full.
	fast *regexp.Regexp
	full *regexp2.Regexp
}

// newMatcher returns a matcher for one of the operators in comparisons, or what was expected.
func newMatcher(operator, pattern string) (*matcher, string) {
	c := comparisons[operator]
	if len(pattern) > maxPattern {
		return nil, "expected a pattern of at most 65536 bytes"
	}
	m := &matcher{operator: c, text: []byte(pattern)}
	m.number, m.isNumber = parseNumber(pattern)
	switch c {
	case matchBitAnd:
		return m, m.bits(pattern)
	case matchGreater, matchGreaterEqual, matchLess, matchLessEqual:
		if !m.isNumber {
			return nil, "expected a number as pattern of the operator " + operator + ", found " + strconv.Quote(pattern)
		}
	case matchRegexp:
		if strings.HasPrefix(pattern, "@") {
			return nil, problemGlobalRegexp
		}
		return m, m.compile(pattern, operator == "iregexp")
	}
	return m, ""
}

// bits reads [wanted/]mask.
func (m *matcher) bits(pattern string) string {
	wanted, mask, both := strings.Cut(pattern, "/")
	if !both {
		mask = wanted
	}
	var err1, err2 error
	m.wanted, err1 = strconv.ParseUint(wanted, 10, 64)
	m.mask, err2 = strconv.ParseUint(mask, 10, 64)
	if err1 != nil || err2 != nil {
		return "expected a whole number, or two with / between, as pattern of bitand, found " + strconv.Quote(pattern)
	}
	return ""
}

// compile prefers Go's regexp package, whose time is linear in the text, and falls back to one that knows look-around and
// back references. ^ and $ match at line ends, as in Zabbix.
func (m *matcher) compile(pattern string, fold bool) string {
	flags := "(?m)"
	options := regexp2.RegexOptions(regexp2.Multiline)
	if fold {
		flags = "(?mi)"
		options |= regexp2.IgnoreCase
	}
	var err error
	if m.fast, err = regexp.Compile(flags + pattern); err == nil {
		return ""
	}
	if m.full, err = regexp2.Compile(pattern, options); err != nil {
		return "expected a regular expression: " + err.Error()
	}
	m.full.MatchTimeout = regexpTime
	return ""
}

// parseNumber reads a whole string as a number with an optional suffix.
func parseNumber(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	negative := strings.HasPrefix(text, "-")
	if negative || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	size := numberLength(text)
	if size == 0 || len(text) > size+1 {
		return 0, false
	}
	v, err := strconv.ParseFloat(text[:size], 64)
	if err != nil {
		return 0, false
	}
	if size < len(text) {
		factor, ok := suffixes[text[size]]
		if !ok {
			return 0, false
		}
		v *= factor
	}
	if negative {
		v = -v
	}
	return v, true
}

// matchNumber compares a number of an item. buf holds the text of the number when the operator needs text.
func (m *matcher) matchNumber(t model.ValueType, bits uint64, buf *[]byte) bool {
	v := number(t, bits)
	switch m.operator {
	case matchLike, matchRegexp:
		*buf = appendNumber((*buf)[:0], t, bits)
		return m.matchText(*buf)
	case matchBitAnd:
		return t == model.Uint && bits&m.mask == m.wanted
	}
	if !m.isNumber {
		return len(m.text) == 0
	}
	switch m.operator {
	case matchNotEqual:
		return !equal(v, m.number)
	case matchGreater:
		return v > m.number+epsilon
	case matchGreaterEqual:
		return v >= m.number-epsilon
	case matchLess:
		return v < m.number-epsilon
	case matchLessEqual:
		return v <= m.number+epsilon
	}
	return equal(v, m.number)
}

// matchText compares a text.
func (m *matcher) matchText(text []byte) bool {
	switch m.operator {
	case matchDefault, matchLike:
		return bytes.Contains(text, m.text)
	case matchEqual:
		return bytes.Equal(text, m.text)
	case matchNotEqual:
		return !bytes.Equal(text, m.text)
	case matchRegexp:
		if m.fast != nil {
			return m.fast.Match(text)
		}
		ok, err := m.full.MatchString(string(text))
		return err == nil && ok
	}
	return false
}

// ordered reports whether the operator makes sense for numbers only.
func (m *matcher) ordered() bool {
	switch m.operator {
	case matchGreater, matchGreaterEqual, matchLess, matchLessEqual, matchBitAnd:
		return true
	}
	return false
}

// number returns a numeric payload as a float.
func number(t model.ValueType, bits uint64) float64 {
	if t == model.Uint {
		return float64(bits)
	}
	return math.Float64frombits(bits)
}

// appendNumber appends the text of a numeric payload.
func appendNumber(dst []byte, t model.ValueType, bits uint64) []byte {
	if t == model.Uint {
		return strconv.AppendUint(dst, bits, 10)
	}
	return strconv.AppendFloat(dst, math.Float64frombits(bits), 'g', -1, 64)
}
