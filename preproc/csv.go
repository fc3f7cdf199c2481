package preproc

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"tidemark/model"
)

// maxColumns bounds the fields of one row.
const maxColumns = 10_000

// compileCSVToJSON reads delimiter, quote and whether the first row is a header. An empty delimiter is a comma, unless the text
// begins with a line such as sep=; which then names it. An empty quote means that there are no quotes.
//
// Source: Zabbix documentation, "CSV to JSON preprocessing". A line feed at the end of the text begins one more, empty row.
func compileCSVToJSON(s model.Step) (stepFunc, error) {
	var c csvFormat
	for i, target := range []*string{&c.delimiter, &c.quote} {
		*target = param(s, i)
		if utf8.RuneCountInString(*target) > 1 {
			return nil, fmt.Errorf("%s %q has more than one character", []string{"delimiter", "quote"}[i], *target)
		}
	}
	if c.delimiter != "" && c.delimiter == c.quote {
		return nil, fmt.Errorf("delimiter and quote are both %q", c.quote)
	}
	switch header := param(s, 2); header {
	case "", "0":
	case "1":
		c.header = true
	default:
		return nil, fmt.Errorf("%q says not whether there is a header row; expected 0 or 1", header)
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		out, err := c.toJSON(string(in.bytes()))
		return textValue(out), err
	}, nil
}

type csvFormat struct {
	delimiter, quote string
	header           bool
}

func (c csvFormat) toJSON(text string) ([]byte, error) {
	if len(text) >= 5 && strings.EqualFold(text[:4], "sep=") {
		line, rest, _ := strings.Cut(text, "\n")
		if sep := strings.TrimSuffix(line[4:], "\r"); utf8.RuneCountInString(sep) == 1 {
			if c.delimiter == "" {
				c.delimiter = sep
			}
			text = rest
		}
	}
	if c.delimiter == "" {
		c.delimiter = ","
	}
	out := []byte{'['}
	var names []string
	for row := 1; text != "" || row == 1 && c.header; row++ {
		var fields []string
		var ended bool
		var err error
		if fields, text, ended, err = c.row(text); err != nil {
			return nil, fmt.Errorf("row %d: %w", row, err)
		}
		if row == 1 && c.header {
			if names, err = header(fields); err != nil {
				return nil, err
			}
		} else if out, err = appendRow(out, fields, names, c.header); err != nil {
			return nil, fmt.Errorf("row %d: %w", row, err)
		}
		if ended && text == "" {
			if out, err = appendRow(out, []string{""}, names, c.header); err != nil {
				return nil, fmt.Errorf("row %d: %w", row+1, err)
			}
		}
		if len(out) > maxStepBytes {
			return nil, tooLarge("JSON")
		}
	}
	return append(out, ']'), nil
}

// row reads one row; ended reports whether a line feed ended it.
func (c csvFormat) row(text string) (fields []string, rest string, ended bool, err error) {
	for {
		if len(fields) >= maxColumns {
			return nil, "", false, fmt.Errorf("expected at most %d fields", maxColumns)
		}
		var field string
		if c.quote != "" && strings.HasPrefix(text, c.quote) {
			if field, text, err = c.quoted(text[len(c.quote):]); err != nil {
				return nil, "", false, err
			}
		} else {
			end := strings.Index(text, c.delimiter)
			if line := strings.IndexByte(text, '\n'); line >= 0 && (end < 0 || line < end) {
				end = line
			}
			if end < 0 {
				end = len(text)
			}
			field, text = text[:end], text[end:]
			if strings.HasPrefix(text, "\n") || text == "" {
				field = strings.TrimSuffix(field, "\r")
			}
		}
		fields = append(fields, field)
		switch {
		case text == "":
			return fields, "", false, nil
		case strings.HasPrefix(text, "\n"):
			return fields, text[1:], true, nil
		case strings.HasPrefix(text, c.delimiter):
			text = text[len(c.delimiter):]
		default:
			return nil, "", false, errors.New("expected a delimiter behind the closing quote")
		}
	}
}

// quoted reads a field up to its closing quote; a doubled quote stands for itself.
func (c csvFormat) quoted(text string) (field, rest string, err error) {
	var out strings.Builder
	for {
		end := strings.Index(text, c.quote)
		if end < 0 {
			return "", "", errors.New("expected a closing quote, found the end")
		}
		out.WriteString(text[:end])
		text = text[end+len(c.quote):]
		if !strings.HasPrefix(text, c.quote) {
			break
		}
		out.WriteString(c.quote)
		text = text[len(c.quote):]
	}
	if strings.HasPrefix(text, "\r\n") || text == "\r" {
		text = text[1:]
	}
	return out.String(), text, nil
}

// header checks the names of the columns.
func header(fields []string) ([]string, error) {
	seen := make(map[string]bool, len(fields))
	for _, name := range fields {
		if seen[name] {
			return nil, fmt.Errorf("two columns have the name %q", shorten([]byte(name)))
		}
		seen[name] = true
	}
	return fields, nil
}

// appendRow appends a row as an object. With a header missing fields are empty, else the names are 1, 2 and so on.
func appendRow(out []byte, fields, names []string, hasHeader bool) ([]byte, error) {
	if hasHeader && len(fields) > len(names) {
		return nil, fmt.Errorf("found %d fields, the header has %d", len(fields), len(names))
	}
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = append(out, '{')
	for i := range max(len(fields), len(names)) {
		if i > 0 {
			out = append(out, ',')
		}
		field, name := "", ""
		if i < len(fields) {
			field = fields[i]
		}
		if hasHeader {
			name = names[i]
		} else {
			name = strconv.Itoa(i + 1)
		}
		out = appendMember(out, name, field)
	}
	return append(out, '}'), nil
}
