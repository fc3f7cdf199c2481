package preproc

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ohler55/ojg/jp"
	"github.com/ohler55/ojg/oj"
)

// jsonPath is a path in Zabbix's dialect: a JSONPath with filters, and perhaps a function at its end.
type jsonPath struct {
	source   string
	path     jp.Expr
	function string
	definite bool
}

// jsonFunctions are what may stand at the end of a path.
var jsonFunctions = []string{".length()", ".first()", ".min()", ".max()", ".avg()", ".sum()", "~"}

func parseJSONPath(source string) (*jsonPath, error) {
	p := &jsonPath{source: source}
	rest := strings.TrimSpace(source)
	for _, f := range jsonFunctions {
		if strings.HasSuffix(rest, f) {
			p.function, rest = strings.Trim(f, ".()"), strings.TrimSuffix(rest, f)
			break
		}
	}
	if rest == "" {
		return nil, errors.New("the JSONPath is empty")
	}
	path, err := jp.ParseString(rest)
	if err != nil {
		return nil, fmt.Errorf("JSONPath %q: %w", source, err)
	}
	p.path = path
	p.definite = isDefinite(path)
	return p, nil
}

// isDefinite reports whether a path can match one place only.
func isDefinite(path jp.Expr) bool {
	for _, fragment := range path {
		switch fragment.(type) {
		case jp.Root, jp.At, jp.Child, jp.Nth, jp.Bracket:
		default:
			return false
		}
	}
	return true
}

// maxJSONBytes bounds a document that a step parses.
const maxJSONBytes = 16 << 20

func parseJSON(text []byte) (any, error) {
	if len(text) > maxJSONBytes {
		return nil, fmt.Errorf("the JSON has %d bytes, the limit is %d", len(text), maxJSONBytes)
	}
	document, err := oj.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	return document, nil
}

// query returns the text that the path yields; found is false when nothing matches.
func (p *jsonPath) query(document any) (text string, found bool, err error) {
	matches := p.path.Get(document)
	if p.function != "" {
		return p.apply(matches)
	}
	if len(matches) == 0 {
		return "", false, nil
	}
	if p.definite {
		return jsonText(matches[0]), true, nil
	}
	return jsonText(matches), true, nil
}

// apply runs the function at the path's end over the matches.
func (p *jsonPath) apply(matches []any) (string, bool, error) {
	if p.function == "~" {
		if len(p.path) == 0 {
			return "", false, nil
		}
		if child, ok := p.path[len(p.path)-1].(jp.Child); ok && len(matches) > 0 {
			return string(child), true, nil
		}
		return "", false, nil
	}
	values := matches
	if p.definite && len(matches) == 1 {
		if list, ok := matches[0].([]any); ok {
			values = list
		}
	}
	switch p.function {
	case "length":
		if len(matches) == 0 {
			return "", false, nil
		}
		return strconv.Itoa(len(values)), true, nil
	case "first":
		if len(values) == 0 {
			return "", false, nil
		}
		return jsonText(values[0]), true, nil
	}
	return aggregateJSON(p.function, values)
}

// aggregateJSON is min, max, avg or sum over numbers and numbers in text.
func aggregateJSON(function string, values []any) (string, bool, error) {
	if len(values) == 0 {
		return "", false, nil
	}
	low, high, sum := math.Inf(1), math.Inf(-1), 0.0
	for _, v := range values {
		f, err := jsonNumber(v)
		if err != nil {
			return "", false, err
		}
		low, high, sum = min(low, f), max(high, f), sum+f
	}
	result := map[string]float64{"min": low, "max": high, "sum": sum, "avg": sum / float64(len(values))}[function]
	return strconv.FormatFloat(result, 'g', -1, 64), true, nil
}

func jsonNumber(v any) (float64, error) {
	switch n := v.(type) {
	case int64:
		return float64(n), nil
	case float64:
		return n, nil
	case string:
		if f, ok := ParseFloat([]byte(n)); ok {
			return f, nil
		}
	}
	return 0, fmt.Errorf("%s is no number", shorten([]byte(jsonText(v))))
}

// jsonText is a match as Zabbix gives it on: text without quotes, all else as JSON.
func jsonText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return oj.JSON(v, &oj.Options{Sort: true})
}

func compileJSONPath(source string) (stepFunc, error) {
	path, err := parseJSONPath(source)
	if err != nil {
		return nil, err
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		document, err := parseJSON(in.bytes())
		if err != nil {
			return value{}, err
		}
		text, found, err := path.query(document)
		if err != nil {
			return value{}, err
		}
		if !found {
			return value{}, fmt.Errorf("no data matches the JSONPath %q", source)
		}
		return textValue([]byte(text)), nil
	}, nil
}

// compileCheckJSON makes the text at the path the item's error; a document that does not parse passes, as in Zabbix.
func compileCheckJSON(source string) (stepFunc, error) {
	path, err := parseJSONPath(source)
	if err != nil {
		return nil, err
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		document, err := parseJSON(in.bytes())
		if err != nil {
			return in, nil
		}
		text, found, err := path.query(document)
		if err != nil || !found || strings.TrimSpace(text) == "" {
			return in, nil
		}
		return value{}, errVerbatim(text)
	}, nil
}
