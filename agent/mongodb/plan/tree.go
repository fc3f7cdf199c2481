// Package plan works out how a MongoDB server would answer a shape, without any value: it reads the printed form of a shape, puts placeholders
// in the place of values, reads what the server says of its plan, and says which index is missing. It asks nobody; package mongodb does.
package plan

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// kind is what stands at a place of a shape.
type kind uint8

const (
	placeholder kind = iota // "?"
	document
	list
	word // a direction, a path of a field, the kind of an index
)

// value is a part of a shape.
type value struct {
	kind   kind
	fields []field // of a document
	items  []value // of a list
	text   string  // of a word
}

type field struct {
	name  string
	value value
}

// maxDepth bounds the nesting of a shape, as the printer does.
const maxDepth = 32

// reader reads the printed form of shapes (docs/protocol/query-shape.md).
type reader struct {
	text string
	at   int
}

func (r *reader) fail(expected string) error {
	return fmt.Errorf("the shape cannot be read at byte %d: expected %s", r.at, expected)
}

func (r *reader) take(s string) bool {
	if strings.HasPrefix(r.text[r.at:], s) {
		r.at += len(s)
		return true
	}
	return false
}

func (r *reader) value(depth int) (value, error) {
	switch {
	case depth > maxDepth:
		return value{}, r.fail("less nesting")
	case r.take("?"):
		return value{kind: placeholder}, nil
	case r.take("{"):
		return r.document(depth)
	case r.take("["):
		return r.list(depth)
	case r.take(`"`):
		end := strings.IndexByte(r.text[r.at:], '"')
		if end < 0 {
			return value{}, r.fail(`a closing "`)
		}
		v := value{kind: word, text: r.text[r.at : r.at+end]}
		r.at += end + 1
		return v, nil
	}
	w := r.name()
	if w == "" {
		return value{}, r.fail("a value")
	}
	return value{kind: word, text: w}, nil
}

// name takes the longest run of what field names, paths and numbers are made of. Names with other signs cannot be told from the notation.
func (r *reader) name() string {
	start := r.at
	for r.at < len(r.text) {
		c, size := utf8.DecodeRuneInString(r.text[r.at:])
		if c == utf8.RuneError || c <= ' ' || strings.ContainsRune("{}[],:\"?…", c) {
			break
		}
		r.at += size
	}
	return r.text[start:r.at]
}

func (r *reader) document(depth int) (value, error) {
	v := value{kind: document}
	if r.take("}") {
		return v, nil
	}
	for {
		name := r.name()
		if !r.take(": ") {
			return v, r.fail("a field name of letters, digits and _ . $ -, and a colon")
		}
		child, err := r.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.fields = append(v.fields, field{name, child})
		if r.take("}") {
			return v, nil
		}
		if !r.take(", ") {
			return v, r.fail("a comma or }")
		}
	}
}

func (r *reader) list(depth int) (value, error) {
	v := value{kind: list}
	if r.take("]") {
		return v, nil
	}
	for {
		child, err := r.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.items = append(v.items, child)
		if r.take("]") {
			return v, nil
		}
		if !r.take(", ") {
			return v, r.fail("a comma or ]")
		}
	}
}

// Query is the part of a shape by which a server chooses its plan.
type Query struct {
	filter, sort  value
	limited, skip bool
}

// Parse reads the printed form of a command that looks for documents. Its error says in plain words why there is no plan.
func Parse(command, text string) (*Query, error) {
	r := &reader{text: text}
	if !r.take(command) {
		return nil, r.fail("the command")
	}
	q := &Query{filter: value{kind: document}, sort: value{kind: document}}
	switch command {
	case "find", "count", "findAndModify":
	case "distinct":
		if r.take(" ") {
			r.name()
		}
	case "update", "delete":
	case "aggregate":
		if !r.take(" ") {
			return nil, r.fail("stages")
		}
		stages, err := r.value(0)
		if err != nil {
			return nil, err
		}
		return q, q.pipeline(stages)
	default:
		return nil, fmt.Errorf("%s looks for no documents", command)
	}
	if strings.HasPrefix(r.text[r.at:], " {") {
		r.at++
		var err error
		if q.filter, err = r.value(0); err != nil {
			return nil, err
		}
	}
	return q, q.rest(r, command)
}

// rest reads what follows the filter, and keeps what a plan depends on.
func (q *Query) rest(r *reader, command string) error {
	for r.take(" ") {
		if command == "update" && (strings.HasPrefix(r.text[r.at:], "{") || strings.HasPrefix(r.text[r.at:], "[")) {
			return nil // The update itself; nothing behind it matters.
		}
		label := r.name()
		switch label {
		case "sort":
			if !r.take(" ") {
				return r.fail("a sort order")
			}
			var err error
			if q.sort, err = r.value(0); err != nil {
				return err
			}
			if q.sort.kind != document {
				return r.fail("a sort order in braces")
			}
		case "limit":
			q.limited = true
			r.take(" ?")
		case "skip":
			q.skip = true
			r.take(" ?")
		default: // projection, hint, update, remove, …: they come last, or change no choice of an index.
			return nil
		}
	}
	return nil
}

// pipeline takes the stages at the begin that a server hands to the reading of the collection.
func (q *Query) pipeline(stages value) error {
	if stages.kind != list {
		return fmt.Errorf("the pipeline cannot be read")
	}
	for i := range stages.items {
		s := &stages.items[i]
		if s.kind != document || len(s.fields) != 1 {
			return nil
		}
		name, v := s.fields[0].name, s.fields[0].value
		switch name {
		case "$match":
			if i > 0 {
				return nil
			}
			q.filter = v
		case "$sort":
			if len(q.sort.fields) > 0 || v.kind != document {
				return nil
			}
			q.sort = v
		case "$limit":
			q.limited = true
			return nil
		case "$geoNear", "$search", "$searchMeta", "$vectorSearch", "$collStats", "$indexStats", "$planCacheStats", "$changeStream", "$currentOp", "$documents", "$listSessions":
			if i == 0 {
				return fmt.Errorf("a pipeline that begins with %s has no plan of this kind", name)
			}
			return nil
		default:
			return nil
		}
	}
	return nil
}
