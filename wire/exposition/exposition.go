// Package exposition reads the text format in which exporters show their metrics, line by line and as it stands: Zabbix's
// Prometheus steps give values and lines on in the words of the exporter.
//
// Source of the format: Prometheus documentation, "Exposition formats", text format 0.0.4; timestamps, exemplars behind # and
// the # EOF of OpenMetrics are read and passed over.
package exposition

import (
	"bytes"
	"fmt"
	"strings"
)

// Limits of a page.
const (
	// MaxBytes is the longest page.
	MaxBytes = 64 << 20
	// maxLabels is the number of labels of one sample.
	maxLabels = 256
)

// Label is one label of a sample.
type Label struct{ Name, Value string }

// Sample is one line with a value.
type Sample struct {
	Name string
	// Labels are in the order of the line.
	Labels []Label
	// Value is the value as it is written: "1027", "1.5e3", "NaN", "+Inf".
	Value string
	// Line is the whole line without white space at its ends.
	Line string
}

// Label returns the value of a label; the metric's name is the label __name__.
func (s *Sample) Label(name string) (string, bool) {
	for i := range s.Labels {
		if s.Labels[i].Name == name {
			return s.Labels[i].Value, true
		}
	}
	if name == "__name__" {
		return s.Name, true
	}
	return "", false
}

// Page is a parsed page. It may be used by several goroutines.
type Page struct {
	Samples []Sample
	// byName holds the indexes of the samples of a name.
	byName      map[string][]int32
	types, help map[string]string
}

// Type returns the declared type of a metric in lower case; "untyped" when none is declared. The lines of histograms and
// summaries have the type of the metric that they belong to.
func (p *Page) Type(name string) string {
	if t, ok := p.types[name]; ok {
		return t
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count", "_total"} {
		base, ok := strings.CutSuffix(name, suffix)
		if !ok {
			continue
		}
		if t, ok := p.types[base]; ok && (t == "histogram" || t == "summary" || suffix == "_total") {
			return t
		}
	}
	return "untyped"
}

// Help returns the help text of a metric; false when there is none.
func (p *Page) Help(name string) (string, bool) {
	h, ok := p.help[name]
	return h, ok
}

// SyntaxError says what is wrong in which line, counted from 1.
type SyntaxError struct {
	Line int
	Text string
}

// Error names the line and what was expected.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid metrics in line %d: %s", e.Line, e.Text)
}

// Parse reads a page. The page keeps no part of text.
func Parse(text []byte) (*Page, error) {
	if len(text) > MaxBytes {
		return nil, &SyntaxError{1, fmt.Sprintf("expected at most %d bytes, found %d", MaxBytes, len(text))}
	}
	p := &Page{byName: map[string][]int32{}, types: map[string]string{}, help: map[string]string{}}
	// One copy of the text that all strings of the page are parts of.
	rest := string(text)
	for n := 1; rest != ""; n++ {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		line = strings.Trim(line, " \t\r")
		if line == "" {
			continue
		}
		if line[0] == '#' {
			p.comment(line)
			continue
		}
		s, problem := parseSample(line)
		if problem != "" {
			return nil, &SyntaxError{n, problem}
		}
		p.byName[s.Name] = append(p.byName[s.Name], int32(len(p.Samples)))
		p.Samples = append(p.Samples, s)
	}
	return p, nil
}

// comment keeps # TYPE and # HELP lines and passes over the others.
func (p *Page) comment(line string) {
	what, rest := word(strings.TrimLeft(line[1:], " \t"))
	name, rest := word(rest)
	switch what {
	case "TYPE":
		p.types[name] = strings.ToLower(rest)
	case "HELP":
		p.help[name] = helpEscapes.Replace(rest)
	}
}

var helpEscapes = strings.NewReplacer(`\\`, `\`, `\n`, "\n")

// word cuts the first word off.
func word(s string) (first, rest string) {
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimLeft(s[i:], " \t")
}

func isNameByte(c byte, first bool) bool {
	return c == '_' || c == ':' || c|0x20 >= 'a' && c|0x20 <= 'z' || !first && c >= '0' && c <= '9'
}

// nameEnd returns where a name at the start of s ends.
func nameEnd(s string) int {
	i := 0
	for i < len(s) && isNameByte(s[i], i == 0) {
		i++
	}
	return i
}

// parseSample reads name{labels} value [timestamp]. problem says what was expected.
func parseSample(line string) (s Sample, problem string) {
	s.Line = line
	end := nameEnd(line)
	if end == 0 {
		return s, "expected the name of a metric"
	}
	s.Name = line[:end]
	rest := strings.TrimLeft(line[end:], " \t")
	if strings.HasPrefix(rest, "{") {
		if rest, problem = s.labels(rest[1:]); problem != "" {
			return s, problem
		}
	} else if rest == line[end:] {
		return s, "expected { or a space behind the name of the metric"
	}
	var more string
	s.Value, more = word(strings.TrimLeft(rest, " \t"))
	if !isValue(s.Value) {
		return s, fmt.Sprintf("expected a value, found %q", shorten(s.Value))
	}
	stamp, more := word(more)
	if stamp != "" && stamp[0] != '#' {
		if !isValue(stamp) {
			return s, fmt.Sprintf("expected a timestamp, found %q", shorten(stamp))
		}
		if more != "" && more[0] != '#' {
			return s, fmt.Sprintf("expected the end of the line, found %q", shorten(more))
		}
	}
	return s, ""
}

// labels reads the labels up to the closing brace and returns what is behind it.
func (s *Sample) labels(text string) (rest, problem string) {
	for {
		text = strings.TrimLeft(text, " \t")
		if strings.HasPrefix(text, "}") {
			return text[1:], ""
		}
		if len(s.Labels) >= maxLabels {
			return "", fmt.Sprintf("expected at most %d labels", maxLabels)
		}
		end := nameEnd(text)
		if end == 0 {
			return "", "expected the name of a label or }"
		}
		l := Label{Name: text[:end]}
		text = strings.TrimLeft(text[end:], " \t")
		if !strings.HasPrefix(text, "=") {
			return "", "expected = behind the label " + l.Name
		}
		text = strings.TrimLeft(text[1:], " \t")
		var ok bool
		if l.Value, text, ok = quoted(text); !ok {
			return "", "expected the value of the label " + l.Name + " in quotes"
		}
		s.Labels = append(s.Labels, l)
		text = strings.TrimLeft(text, " \t")
		switch {
		case strings.HasPrefix(text, ","):
			text = text[1:]
		case !strings.HasPrefix(text, "}"):
			return "", "expected , or } behind the label " + l.Name
		}
	}
}

// quoted reads a text in double quotes with the escapes \\, \" and \n.
func quoted(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		return "", "", false
	}
	escaped := false
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			value = text[1:i]
			if escaped {
				value = labelEscapes.Replace(value)
			}
			return value, text[i+1:], true
		}
	}
	return "", "", false
}

var labelEscapes = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// isValue reports whether a text is a number, an infinity or NaN. The number itself is not needed.
func isValue(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	t := strings.TrimLeft(s, "+-")
	switch strings.ToLower(t) {
	case "nan", "inf", "infinity":
		return len(s)-len(t) <= 1
	}
	return t != "" && len(s)-len(t) <= 1 && bytes.IndexFunc([]byte(t), func(r rune) bool {
		return !strings.ContainsRune("0123456789.eE+-xXabcdfABCDFpP", r)
	}) < 0 && strings.ContainsAny(t[:1], "0123456789.")
}

func shorten(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
