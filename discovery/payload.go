package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"tidemark/model"
	"tidemark/wire/jsonpath"
)

const (
	// maxMacros is how many macros one element may have, maxMacroBytes how long a value may be.
	maxMacros     = 1000
	maxMacroBytes = 64 << 10
)

// macroPath is a compiled model.MacroPath.
type macroPath struct {
	macro string
	path  *jsonpath.Path
}

// readRows reads a value: an array of objects, or an object whose field data is one. An element's macros are its fields that are named as
// macros and what the paths find. Anything else refuses the whole value.
func readRows(text []byte, paths []macroPath) ([]map[string]string, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil, refuse("the value is empty; expected a JSON array of objects")
	}
	if text[0] == '{' {
		data, err := field(text, "data")
		if err != nil {
			return nil, err
		}
		text = data
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, broken(err, d, "an array of objects")
	}
	var rows []map[string]string
	for d.More() {
		if len(rows) == MaxRows {
			return nil, refuse("the value has more than %d elements", MaxRows)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, broken(err, d, "an object")
		}
		row, err := readRow(raw, paths)
		if err != nil {
			return nil, refuse("element %d: %v", len(rows)+1, err)
		}
		rows = append(rows, row)
	}
	if _, err := d.Token(); err != nil {
		return nil, broken(err, d, "the end of the array")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, refuse("the value has something behind its end")
	}
	return rows, nil
}

// broken is the reason for JSON that does not read.
func broken(err error, d *json.Decoder, expected string) error {
	if err == nil {
		return refuse("the value is no JSON array; expected %s", expected)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse("the value ends at byte %d; expected %s", d.InputOffset(), expected)
	}
	return refuse("the value is no JSON at byte %d: %v; expected %s", d.InputOffset(), err, expected)
}

// field returns a field of an object.
func field(text []byte, name string) ([]byte, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, refuse("the value is no JSON: %v", err)
	}
	data, ok := object[name]
	if !ok {
		return nil, refuse("the value is an object without the field %q; expected an array of objects", name)
	}
	return data, nil
}

func readRow(raw json.RawMessage, paths []macroPath) (map[string]string, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return nil, fmt.Errorf("%.40q is no object", raw)
	}
	row := make(map[string]string, len(object)+len(paths))
	for name, value := range object {
		if !isMacro(name) {
			continue
		}
		if text, ok := scalar(value); ok {
			row[name] = text
		}
	}
	if len(paths) > 0 {
		document, err := jsonpath.Parse(raw)
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			delete(row, p.macro)
			text, found, err := document.Query(p.path)
			if err != nil {
				return nil, fmt.Errorf("the path of %s: %w", p.macro, err)
			}
			if found {
				row[p.macro] = string(text)
			}
		}
	}
	if len(row) > maxMacros {
		return nil, fmt.Errorf("%d macros; at most %d are taken", len(row), maxMacros)
	}
	for name, value := range row {
		if len(value) > maxMacroBytes {
			return nil, fmt.Errorf("%s has %d bytes; at most %d are taken", name, len(value), maxMacroBytes)
		}
	}
	return row, nil
}

// isMacro reports whether a field is named as a discovery macro: {#NAME}.
func isMacro(name string) bool {
	if !strings.HasPrefix(name, "{#") || !strings.HasSuffix(name, "}") || len(name) < 4 {
		return false
	}
	for _, c := range name[2 : len(name)-1] {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// scalar is the text of a value that is neither an object nor an array; null is empty.
func scalar(raw json.RawMessage) (string, bool) {
	switch raw[0] {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return "", false
		}
		return s, true
	case '{', '[':
		return "", false
	case 'n':
		return "", true
	}
	return string(raw), true
}

func compilePaths(list []model.MacroPath) ([]macroPath, error) {
	paths := make([]macroPath, 0, len(list))
	for _, p := range list {
		path, err := jsonpath.Compile(p.Path)
		if err != nil {
			return nil, refuse("the path of %s: %v", p.Macro, err)
		}
		paths = append(paths, macroPath{p.Macro, path})
	}
	return paths, nil
}
