package zbx

import (
	"math"
	"time"

	"tidemark/model"
)

// Declaration says what an item is that our own agent makes known. All strings are copies.
type Declaration struct {
	Key   string
	Name  string
	Units string
	// Type is Float, Uint, Character, Text, LogEntry or Binary.
	Type model.ValueType
	// Interval is how often a value comes; zero when there is no rhythm.
	Interval time.Duration
	// Labels are sorted by name.
	Labels model.Labels
	// Bad says why the declaration cannot be taken; empty for a good one.
	Bad string
}

// MaxLabels bounds the labels of one declaration.
const MaxLabels = 32

// Declarations walks the elements of `declare`.
type Declarations struct {
	s     scanner
	first bool
	err   error
}

// NewDeclarations walks the array that Request.Declare holds; the same text must not be walked twice.
func NewDeclarations(declare []byte) Declarations {
	return Declarations{s: scanner{b: declare}, first: true}
}

// Err returns the syntax error that ended the walk; always nil for the Declare of a decoded Request.
func (d *Declarations) Err() error { return d.err }

// Next reads the next declaration and reports whether there was one. One of a wrong form comes with Bad set and does not
// end the walk.
func (d *Declarations) Next(dst *Declaration) bool {
	*dst = Declaration{}
	if d.err != nil || len(d.s.b) == 0 {
		return false
	}
	if d.first && d.s.peek() != '[' {
		d.err = d.s.fail("'['")
		return false
	}
	more, err := d.s.next(&d.first, ']')
	if err == nil && more {
		err = dst.decode(&d.s)
	}
	d.err = err
	return err == nil && more
}

func (d *Declaration) decode(s *scanner) error {
	if s.peek() != '{' {
		d.Bad = "declaration is no object"
		return s.skip(0)
	}
	d.Type = model.Float
	first := true
	for {
		more, err := s.next(&first, '}')
		if err != nil {
			return err
		}
		if !more {
			break
		}
		k, err := s.key()
		if err != nil {
			return err
		}
		if err := d.member(s, k); err != nil {
			return err
		}
	}
	if d.Bad == "" && d.Key == "" {
		d.Bad = "declaration without a key"
	}
	return nil
}

func (d *Declaration) member(s *scanner, k []byte) error {
	if string(k) == "labels" {
		return d.labels(s)
	}
	text, _, err := s.scalar()
	if err != nil {
		return err
	}
	if len(text) > MaxNameBytes {
		d.Bad = "a text of a declaration is longer than 8192 bytes"
		return nil
	}
	switch string(k) {
	case "key":
		d.Key = string(text)
	case "name":
		d.Name = string(text)
	case "units":
		d.Units = string(text)
	case "type":
		t, ok := valueType(text)
		if !ok {
			d.Bad = "type is none of float, unsigned, char, text, log, binary"
		}
		d.Type = t
	case "interval_ms":
		n, ok := parseUint(text)
		if !ok || n > math.MaxInt64/uint64(time.Millisecond) {
			d.Bad = "interval_ms is no whole number of milliseconds"
			return nil
		}
		d.Interval = time.Duration(n) * time.Millisecond
	}
	return nil
}

func valueType(text []byte) (model.ValueType, bool) {
	for t := model.Float; t <= model.Binary; t++ {
		if t.String() == string(text) {
			return t, true
		}
	}
	return model.Float, false
}

func (d *Declaration) labels(s *scanner) error {
	if s.peek() != '{' {
		d.Bad = "labels is no object"
		return s.skip(0)
	}
	first := true
	for {
		more, err := s.next(&first, '}')
		if err != nil || !more {
			return err
		}
		k, err := s.key()
		if err != nil {
			return err
		}
		text, kind, err := s.scalar()
		if err != nil {
			return err
		}
		switch {
		case kind == kindNone:
			d.Bad = "a label is no text"
		case len(k) == 0 || len(k) > 255 || len(text) > MaxNameBytes:
			d.Bad = "a label has no name, a name longer than 255 bytes or a value longer than 8192"
		case len(d.Labels) >= MaxLabels:
			d.Bad = "more than 32 labels"
		default:
			d.Labels = insertLabel(d.Labels, model.Label{Name: string(k), Value: string(text)})
		}
	}
}

// insertLabel keeps ls sorted and without duplicates; the first of two wins.
func insertLabel(ls model.Labels, l model.Label) model.Labels {
	i := len(ls)
	for i > 0 && ls[i-1].Name > l.Name {
		i--
	}
	if i > 0 && ls[i-1].Name == l.Name {
		return ls
	}
	ls = append(ls, model.Label{})
	copy(ls[i+1:], ls[i:])
	ls[i] = l
	return ls
}
