package proxyconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"tidemark/model"
)

// cell is a column of a row as text; null is empty.
type cell string

// UnmarshalJSON takes a number, a text or null.
func (c *cell) UnmarshalJSON(text []byte) error {
	switch {
	case bytes.Equal(text, []byte("null")):
		*c = ""
	case len(text) > 0 && text[0] == '"':
		var s string
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		*c = cell(s)
	case len(text) > 0 && (text[0] == '{' || text[0] == '['):
		return fmt.Errorf("found %.40q in a row, expected a number or a text", text)
	default:
		*c = cell(text)
	}
	return nil
}

// received is a table as it came.
type received struct {
	Fields []string          `json:"fields"`
	Data   []json.RawMessage `json:"data"`
}

// reader walks the rows of a table.
type reader struct {
	name    string
	columns map[string]int
	row     []cell
	err     error
}

// each calls fn for each row; columns that the table does not have are empty.
func (t *received) each(name string, fn func(r *reader)) error {
	r := &reader{name: name, columns: make(map[string]int, len(t.Fields))}
	for i, f := range t.Fields {
		r.columns[f] = i
	}
	for n, text := range t.Data {
		r.row = r.row[:0]
		if err := json.Unmarshal(text, &r.row); err != nil {
			return fmt.Errorf("table %s, row %d: %w", name, n, err)
		}
		if len(r.row) != len(t.Fields) {
			return fmt.Errorf("table %s, row %d: %d columns, expected %d", name, n, len(r.row), len(t.Fields))
		}
		if fn(r); r.err != nil {
			return fmt.Errorf("table %s, row %d: %w", name, n, r.err)
		}
	}
	return nil
}

func (r *reader) text(column string) string {
	if i, ok := r.columns[column]; ok {
		return string(r.row[i])
	}
	return ""
}

// number reads an integer; an empty column is zero.
func (r *reader) number(column string) int {
	text := r.text(column)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("column %s is %.40q, expected a small integer", column, text)
	}
	return int(n)
}

func (r *reader) yes(column string) bool { return r.number(column) == 1 }

// large reads an unsigned integer; an empty column is zero.
func (r *reader) large(column string) uint64 {
	text := r.text(column)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("column %s is %.40q, expected an unsigned integer", column, text)
	}
	return n
}

// id is large for a column that must not be zero.
func (r *reader) id(column string) uint64 {
	n := r.large(column)
	if n == 0 && r.err == nil {
		r.err = fmt.Errorf("column %s is empty, expected an id", column)
	}
	return n
}

// nameOf returns the name of a number; empty for one that has none.
func nameOf(names map[string]int, n int) string {
	for name, number := range names {
		if number == n {
			return name
		}
	}
	return ""
}

// kinds reads a mask of kinds of connections; what is out of range accepts nothing.
func (r *reader) kinds(column string) model.ConnectionKind {
	n := r.number(column)
	if n < 0 || n > int(model.Unencrypted|model.PSK|model.Certificate) {
		return 0
	}
	return model.ConnectionKind(n)
}
