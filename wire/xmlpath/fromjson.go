package xmlpath

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// FromJSON is the reverse of Document.JSON: members with @ before their name become attributes, #text text, a list elements of one name, null an empty
// element. The text must be an object with one member, the element at the top.
func FromJSON(text []byte) ([]byte, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the JSON has %d bytes, the limit is %d", len(text), MaxBytes)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := readJSON(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the JSON has something behind its end")
	}
	top, ok := v.(members)
	if !ok || len(top) != 1 {
		return nil, errors.New("expected a JSON object with one member, the element at the top")
	}
	if _, list := top[0].value.([]any); list {
		return nil, errors.New("the element at the top is a list; expected one")
	}
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	if err := writeElement(&b, top[0].name, top[0].value); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// members are those of an object, in order.
type members []member

type member struct {
	name  string
	value any
}

// readJSON reads a value: members, []any, text or nil.
func readJSON(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the JSON is nested deeper than %d levels", maxDepth)
	}
	token, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("the JSON cannot be read at byte %d: %w", d.InputOffset(), err)
	}
	delim, ok := token.(json.Delim)
	if !ok {
		if token == nil {
			return nil, nil
		}
		return fmt.Sprint(token), nil
	}
	var object members
	list := []any{}
	for d.More() {
		name := ""
		if delim == '{' {
			key, err := d.Token()
			if err != nil {
				return nil, fmt.Errorf("the JSON cannot be read at byte %d: %w", d.InputOffset(), err)
			}
			name, _ = key.(string)
		}
		v, err := readJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		object, list = append(object, member{name, v}), append(list, v)
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("the JSON cannot be read at byte %d: %w", d.InputOffset(), err)
	}
	if delim == '{' {
		return object, nil
	}
	return list, nil
}

func writeElement(b *bytes.Buffer, name string, v any) error {
	if err := checkName(name); err != nil {
		return err
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if _, list := e.([]any); list {
				return fmt.Errorf("%.40q is a list of lists; expected a list of elements", name)
			}
			if err := writeElement(b, name, e); err != nil {
				return err
			}
		}
		return nil
	case members:
		return writeMembers(b, name, v)
	case string:
		b.WriteString("<" + name + ">" + escape(v) + "</" + name + ">")
	default:
		b.WriteString("<" + name + "/>")
	}
	return nil
}

func writeMembers(b *bytes.Buffer, name string, list members) error {
	b.WriteString("<" + name)
	inner := false
	for _, m := range list {
		attribute, ok := strings.CutPrefix(m.name, "@")
		if !ok {
			inner = true
			continue
		}
		value, isText := m.value.(string)
		if err := checkName(attribute); err != nil {
			return err
		}
		if !isText && m.value != nil {
			return fmt.Errorf("the attribute %.40q is no text", attribute)
		}
		b.WriteString(" " + attribute + `="` + escape(value) + `"`)
	}
	if !inner {
		b.WriteString("/>")
		return nil
	}
	b.WriteByte('>')
	for _, m := range list {
		switch {
		case strings.HasPrefix(m.name, "@"):
		case m.name == "#text":
			text, isText := m.value.(string)
			if !isText && m.value != nil {
				return errors.New("#text is no text")
			}
			b.WriteString(escape(text))
		default:
			if err := writeElement(b, m.name, m.value); err != nil {
				return err
			}
		}
	}
	b.WriteString("</" + name + ">")
	return nil
}

// checkName refuses what is no name of an element or attribute.
func checkName(name string) error {
	ok := name != "" && name[0] != '-' && name[0] != '.' && (name[0] < '0' || name[0] > '9')
	for _, r := range name {
		ok = ok && (r >= 0x80 || r >= '0' && r <= ':' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '_' || r == '-' || r == '.')
	}
	if !ok {
		return fmt.Errorf("%.40q is no name of an XML element or attribute", name)
	}
	return nil
}

// escape writes a text; what XML cannot hold is left out.
func escape(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff {
			return -1
		}
		return r
	}, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(text))
}
