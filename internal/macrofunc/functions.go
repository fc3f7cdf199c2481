package macrofunc

import (
	"encoding/base64"
	"fmt"
	"html"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tidemark/internal/pcre"
)

// regsub returns the output template filled with the groups of the first match; nothing when nothing matches.
func regsub(value, pattern, output string) (string, error) {
	re, err := pcre.Compile(pattern)
	if err != nil {
		return "", err
	}
	groups, err := re.Groups([]byte(value))
	if err != nil || groups == nil {
		return "", err
	}
	return pcre.Expand(output, groups, maxResultBytes), nil
}

// regrepl replaces all matches of each pattern by its replacement.
func regrepl(value string, params []string) (string, error) {
	if len(params)%2 != 0 {
		return "", fmt.Errorf("%d parameters; expected pairs of a pattern and its replacement", len(params))
	}
	for i := 0; i < len(params); i += 2 {
		re, err := pcre.Compile(params[i])
		if err != nil {
			return "", err
		}
		if len(value) > maxResultBytes {
			return value, nil // Apply refuses it
		}
		if value, err = re.Replace(value, params[i+1], maxResultBytes); err != nil {
			return "", err
		}
	}
	return value, nil
}

// maxDigits is what fmtnum takes.
const maxDigits = 20

func fmtnum(value string, params []string) (string, error) {
	digits, err := strconv.Atoi(strings.TrimSpace(params[0]))
	if err != nil || digits < 0 || digits > maxDigits {
		return "", fmt.Errorf("digits %q; expected 0 to %d", params[0], maxDigits)
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return "", fmt.Errorf("%.64q is no number", value)
	}
	return strconv.FormatFloat(f, 'f', digits, 64), nil
}

// tr replaces each character of the first set by the one at the same place of the second, whose last character stands for the rest. A set
// may hold ranges: a-z.
func tr(value string, params []string) (string, error) {
	from, to := span(params[0]), span(params[1])
	if len(from) == 0 || len(to) == 0 {
		return "", fmt.Errorf("an empty set of characters")
	}
	table := make(map[rune]rune, len(from))
	for i, r := range from {
		table[r] = to[min(i, len(to)-1)]
	}
	return strings.Map(func(r rune) rune {
		if n, ok := table[r]; ok {
			return n
		}
		return r
	}, value), nil
}

// span writes out the ranges of a set of characters. Only ranges of ASCII characters are ranges.
func span(set string) []rune {
	in := []rune(set)
	var out []rune
	for i := 0; i < len(in); i++ {
		if in[i] == '\\' && i+1 < len(in) {
			i++
			out = append(out, in[i])
			continue
		}
		if i+2 < len(in) && in[i+1] == '-' && in[i] <= in[i+2] && in[i+2] < utf8.RuneSelf {
			for r := in[i]; r <= in[i+2]; r++ {
				out = append(out, r)
			}
			i += 2
			continue
		}
		out = append(out, in[i])
	}
	return out
}

func btoa(value string, _ []string) (string, error) {
	return base64.StdEncoding.EncodeToString([]byte(value)), nil
}

func htmlencode(value string, _ []string) (string, error) {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace(value), nil
}

func htmldecode(value string, _ []string) (string, error) { return html.UnescapeString(value), nil }

func urlencode(value string, _ []string) (string, error) {
	return strings.ReplaceAll(url.QueryEscape(value), "+", "%20"), nil
}

func urldecode(value string, _ []string) (string, error) {
	out, err := url.PathUnescape(value)
	if err != nil {
		return "", fmt.Errorf("%.64q is not URL-encoded", value)
	}
	return out, nil
}

// layouts are the forms of a time that fmttime takes beside Unix seconds.
var layouts = [...]string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02", "15:04:05",
}

func fmttime(value string, params []string, zone *time.Location) (string, error) {
	at, err := readTime(strings.TrimSpace(value), zone)
	if err != nil {
		return "", err
	}
	if len(params) > 1 && strings.TrimSpace(params[1]) != "" {
		if at, err = shift(at, strings.TrimSpace(params[1])); err != nil {
			return "", err
		}
	}
	return strftime(at, params[0])
}

func readTime(value string, zone *time.Location) (time.Time, error) {
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil && seconds >= 0 && seconds < 1<<40 {
		return time.Unix(seconds, 0).In(zone), nil
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, value, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%.64q is no time; expected Unix seconds or ISO 8601", value)
}

// shift moves a time by steps such as -1d, +2h or /w, which goes to the start of the week.
func shift(t time.Time, text string) (time.Time, error) {
	for text != "" {
		op := text[0]
		end := strings.IndexAny(text[1:], "+-/")
		step := text[1:]
		if end >= 0 {
			step = text[1 : 1+end]
		}
		text = text[1+len(step):]
		if step == "" || op != '+' && op != '-' && op != '/' {
			return t, fmt.Errorf("time shift; expected steps such as -1d, +2h or /w")
		}
		unit := step[len(step)-1]
		if op == '/' {
			t = floor(t, unit)
			continue
		}
		n, err := strconv.Atoi(step[:len(step)-1])
		if err != nil || n < 0 || n > 1<<20 {
			return t, fmt.Errorf("time shift %q; expected a number with s, m, h, d, w, M or y", step)
		}
		if op == '-' {
			n = -n
		}
		if t, err = add(t, n, unit); err != nil {
			return t, err
		}
	}
	return t, nil
}

func add(t time.Time, n int, unit byte) (time.Time, error) {
	switch unit {
	case 's':
		return t.Add(time.Duration(n) * time.Second), nil
	case 'm':
		return t.Add(time.Duration(n) * time.Minute), nil
	case 'h':
		return t.Add(time.Duration(n) * time.Hour), nil
	case 'd':
		return t.AddDate(0, 0, n), nil
	case 'w':
		return t.AddDate(0, 0, 7*n), nil
	case 'M':
		return t.AddDate(0, n, 0), nil
	case 'y':
		return t.AddDate(n, 0, 0), nil
	}
	return t, fmt.Errorf("time unit %q; expected s, m, h, d, w, M or y", unit)
}

// floor goes to the start of a unit of time; weeks begin on Monday.
func floor(t time.Time, unit byte) time.Time {
	y, m, d := t.Date()
	hour, minute := t.Hour(), t.Minute()
	switch unit {
	case 'y':
		m, d, hour, minute = 1, 1, 0, 0
	case 'M':
		d, hour, minute = 1, 0, 0
	case 'w':
		d, hour, minute = d-(int(t.Weekday())+6)%7, 0, 0
	case 'd':
		hour, minute = 0, 0
	case 'h':
		minute = 0
	}
	return time.Date(y, m, d, hour, minute, 0, 0, t.Location())
}

// formats are the conversions of strftime as Go's layouts.
var formats = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'b': "Jan", 'h': "Jan", 'B': "January",
	'a': "Mon", 'A': "Monday", 'Z': "MST", 'z': "-0700", 'e': "_2", 'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04", 'D': "01/02/06", 'j': "002",
	'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
}

func strftime(t time.Time, format string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch c := format[i]; c {
		case '%':
			b.WriteByte('%')
		case 's':
			b.WriteString(strconv.FormatInt(t.Unix(), 10))
		case 'n':
			b.WriteByte('\n')
		case 'u':
			b.WriteString(strconv.Itoa((int(t.Weekday())+6)%7 + 1))
		default:
			layout, ok := formats[c]
			if !ok {
				return "", fmt.Errorf("%%%c is not known in a time format", c)
			}
			b.WriteString(t.Format(layout))
		}
	}
	return b.String(), nil
}
