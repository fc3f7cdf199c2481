package preproc

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"tidemark/model"
)

// variable is one line of an SNMP walk.
type variable struct {
	oid string
	// kind is the type in front of the value, such as Hex-STRING; empty when there is none.
	kind, text string
	null       bool
}

// walk is the text that an SNMP walk gives: lines ".1.3.6.1.2.1.1.5.0 = STRING: "db1"", where values may go over several lines.
//
// Source: net-snmp's snmpwalk with the options -On -OQ and alike, as Zabbix's walk[] prints it.
type walk struct {
	variables []variable
	byOID     map[string]int32
}

// maxVariables bounds the lines of a walk.
const maxVariables = 1_000_000

func parseWalk(text string) (*walk, error) {
	w := &walk{byOID: map[string]int32{}}
	text = strings.TrimRight(text, "\r\n")
	for line := 1; text != ""; line++ {
		if len(w.variables) >= maxVariables {
			return nil, fmt.Errorf("expected at most %d variables in an SNMP walk", maxVariables)
		}
		oid, rest, ok := cutOID(text)
		if !ok {
			first, _, _ := strings.Cut(text, "\n")
			return nil, fmt.Errorf("invalid SNMP walk: expected .OID = value, found %q", shorten([]byte(first)))
		}
		v := variable{oid: oid}
		var err error
		if text, err = v.parse(rest); err != nil {
			return nil, fmt.Errorf("invalid SNMP walk at %s: %w", oid, err)
		}
		if strings.HasPrefix(v.text, "No more variables left") && v.kind == "" {
			continue
		}
		if _, ok := w.byOID[oid]; !ok {
			w.byOID[oid] = int32(len(w.variables))
			w.variables = append(w.variables, v)
		}
	}
	return w, nil
}

// cutOID cuts ".1.3.6 = " off the start of a line.
func cutOID(text string) (oid, rest string, ok bool) {
	if !strings.HasPrefix(text, ".") {
		return "", "", false
	}
	end := 0
	for end < len(text) && (text[end] == '.' || text[end] >= '0' && text[end] <= '9') {
		end++
	}
	rest, ok = strings.CutPrefix(text[end:], " = ")
	if !ok {
		// A value may be empty and the space behind = lost.
		rest, ok = strings.CutPrefix(text[end:], " =")
		ok = ok && (rest == "" || rest[0] == '\n')
	}
	return text[:end], rest, ok && end > 1
}

// parse reads type and value and returns the lines behind them.
func (v *variable) parse(text string) (rest string, err error) {
	if wrong, ok := strings.CutPrefix(text, "Wrong Type (should be "); ok {
		_, text, ok = strings.Cut(wrong, "): ")
		if !ok || !isTyped(text) {
			return "", errors.New("expected a type and a value behind the warning about a wrong type")
		}
	}
	text = strings.TrimPrefix(text, "Opaque: ")
	if isTyped(text) {
		v.kind, text, _ = strings.Cut(text, ":")
		text = strings.TrimPrefix(text, " ")
	}
	if strings.HasPrefix(text, `"`) {
		return v.quoted(text[1:])
	}
	value, rest := text, ""
	// The value ends before the next line that begins with an OID.
	for at := 0; ; {
		next := strings.IndexByte(text[at:], '\n')
		if next < 0 {
			break
		}
		at += next + 1
		if _, _, ok := cutOID(text[at:]); ok {
			value, rest = text[:at-1], text[at:]
			break
		}
	}
	v.text = strings.TrimSuffix(value, "\r")
	switch v.kind {
	case "Hex-STRING", "BITS":
		v.text = strings.Join(strings.Fields(v.text), " ")
	case "":
		v.null = v.text == "NULL"
	}
	return rest, nil
}

// isTyped reports whether a value begins with the name of a type and a colon.
func isTyped(text string) bool {
	kind, _, ok := strings.Cut(text, ":")
	if !ok || kind == "" || len(kind) > 24 {
		return false
	}
	for i := range len(kind) {
		c := kind[i]
		if c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return kind[0]|0x20 >= 'a'
}

// quoted reads a text up to its closing quote.
func (v *variable) quoted(text string) (rest string, err error) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			out.WriteByte(text[i])
		case c != '"':
			out.WriteByte(c)
		default:
			v.text = out.String()
			rest = strings.TrimLeft(text[i+1:], " \r")
			if rest != "" && rest[0] != '\n' {
				return "", errors.New("expected the end of the line behind the closing quote")
			}
			return strings.TrimPrefix(rest, "\n"), nil
		}
	}
	return "", errors.New("expected a closing quote, found the end")
}

// The formats in which a value that is bytes can be shown. The numbers are Zabbix's.
const (
	formatUnchanged = iota
	formatText
	formatMAC
	formatBits
)

func parseFormat(text string) (int, error) {
	if text == "" {
		return formatUnchanged, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < formatUnchanged || n > formatBits {
		return 0, fmt.Errorf("%q is no format; expected 0 unchanged, 1 UTF-8, 2 MAC or 3 BITS", text)
	}
	return n, nil
}

// formatBytes shows bytes that are written as "0A 1B 2C".
func formatBytes(text string, format int) (string, error) {
	if format == formatUnchanged {
		return text, nil
	}
	fields := strings.Fields(text)
	raw := make([]byte, len(fields))
	for i, f := range fields {
		if len(f) != 2 {
			return "", fmt.Errorf("%q is no byte in hexadecimal", shorten([]byte(f)))
		}
		if _, err := hex.Decode(raw[i:i+1], []byte(f)); err != nil {
			return "", fmt.Errorf("%q is no byte in hexadecimal", f)
		}
	}
	switch format {
	case formatMAC:
		return strings.Join(fields, ":"), nil
	case formatBits:
		var bits uint64
		for i := min(len(raw), 8) - 1; i >= 0; i-- {
			bits = bits<<8 | uint64(raw[i])
		}
		return strconv.FormatUint(bits, 10), nil
	}
	text, _, _ = strings.Cut(string(raw), "\x00")
	return validText(text), nil
}

// validText replaces each byte that is no UTF-8 by a question mark.
func validText(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 {
			out.WriteByte('?')
		} else {
			out.WriteString(text[:size])
		}
		text = text[size:]
	}
	return out.String()
}

// formatted returns the value in a format; only bytes have one.
func (v *variable) formatted(format int) (string, error) {
	if v.kind != "Hex-STRING" && v.kind != "BITS" {
		return v.text, nil
	}
	return formatBytes(v.text, format)
}

// cleanOID gives an OID the dot at its start and none at its end.
func cleanOID(oid string) (string, error) {
	clean := "." + strings.Trim(strings.TrimSpace(oid), ".")
	if clean == "." || strings.Trim(clean, ".0123456789") != "" {
		return "", fmt.Errorf("%q is no OID; expected numbers such as .1.3.6.1.2.1.1.5.0", oid)
	}
	return clean, nil
}

func compileWalkValue(s model.Step) (stepFunc, error) {
	oid, err := cleanOID(param(s, 0))
	if err != nil {
		return nil, err
	}
	format, err := parseFormat(param(s, 1))
	if err != nil {
		return nil, err
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		w, err := in.asWalk()
		if err != nil {
			return value{}, err
		}
		i, ok := w.byOID[oid]
		if !ok {
			return value{}, fmt.Errorf("the walk has no OID %s", oid)
		}
		text, err := w.variables[i].formatted(format)
		return textValue([]byte(text)), err
	}, nil
}

// column is one field of walk → JSON.
type column struct {
	name, oid string
	format    int
}

// compileWalkToJSON reads groups of three parameters: name, OID and format.
func compileWalkToJSON(s model.Step) (stepFunc, error) {
	if len(s.Params) == 0 || len(s.Params)%3 != 0 {
		return nil, fmt.Errorf("found %d parameters; expected name, OID and format of each field", len(s.Params))
	}
	var columns []column
	for i := 0; i < len(s.Params); i += 3 {
		c := column{name: s.Params[i]}
		var err error
		if c.oid, err = cleanOID(s.Params[i+1]); err != nil {
			return nil, err
		}
		if c.format, err = parseFormat(s.Params[i+2]); err != nil {
			return nil, err
		}
		if c.name == "" {
			return nil, errors.New("the name of a field is empty")
		}
		columns = append(columns, c)
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		w, err := in.asWalk()
		if err != nil {
			return value{}, err
		}
		out, err := w.toJSON(columns)
		return textValue(out), err
	}, nil
}

// toJSON makes one object per index, which is what follows the OIDs of the columns.
func (w *walk) toJSON(columns []column) ([]byte, error) {
	if len(w.variables) == 0 {
		return []byte("[]"), nil
	}
	var order []string
	rows := map[string][]byte{}
	for n := range columns {
		c := &columns[n]
		for i := range w.variables {
			v := &w.variables[i]
			if len(v.oid) <= len(c.oid)+1 || v.oid[len(c.oid)] != '.' || !strings.HasPrefix(v.oid, c.oid) {
				continue
			}
			index := v.oid[len(c.oid)+1:]
			row, ok := rows[index]
			if !ok {
				order = append(order, index)
				row = appendMember([]byte{'{'}, "{#SNMPINDEX}", index)
			}
			row = append(row, ',')
			if v.null {
				row = appendMember(row, c.name, "")
				row = append(row[:len(row)-2], "null"...)
			} else {
				text, err := v.formatted(c.format)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", v.oid, err)
				}
				row = appendMember(row, c.name, text)
			}
			rows[index] = row
		}
	}
	if len(order) == 0 {
		return nil, errors.New("the walk has none of the OIDs")
	}
	out := []byte{'['}
	for i, index := range order {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, rows[index]...), '}')
		if len(out) > maxStepBytes {
			return nil, tooLarge("JSON")
		}
	}
	return append(out, ']'), nil
}

func compileGetValue(s model.Step) (stepFunc, error) {
	format, err := parseFormat(param(s, 0))
	if err != nil {
		return nil, err
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		text, err := formatBytes(string(in.bytes()), format)
		return textValue([]byte(text)), err
	}, nil
}
