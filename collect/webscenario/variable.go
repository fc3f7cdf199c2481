package webscenario

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"tidemark/internal/pcre"
	"tidemark/model"
	"tidemark/wire/jsonpath"
	"tidemark/wire/xmlpath"
)

const (
	// maxVariableBytes bounds a value that was taken out of an answer.
	maxVariableBytes = 64 << 10
	// maxFilledBytes bounds a request with its variables, and each text while they are filled in.
	maxFilledBytes = 1 << 20
)

// take sets variables out of an answer, and plain ones to their texts. Without an answer only the plain ones are set.
func (r *run) take(list []model.Pair, answer []byte, plain bool) error {
	for _, v := range list {
		kind, source, found := strings.Cut(v.Value, ":")
		var extract func(string, []byte) (string, error)
		if found {
			extract = extractors[kind]
		}
		if extract == nil {
			if plain {
				r.variables[v.Name] = r.fill(v.Value)
			}
			continue
		}
		if answer == nil {
			continue
		}
		value, err := extract(source, answer)
		if err != nil {
			return fmt.Errorf("variable %s: %w", v.Name, err)
		}
		if len(value) > maxVariableBytes {
			return fmt.Errorf("variable %s: its value has %d bytes; at most %d are taken", v.Name, len(value), maxVariableBytes)
		}
		r.variables[v.Name] = value
	}
	return nil
}

// extractors find a value in an answer.
var extractors = map[string]func(string, []byte) (string, error){
	"regex":    byRegex,
	"jsonpath": byJSONPath,
	"xmlxpath": byXMLPath,
}

// byRegex gives the first group of the match, or all of it when there is no group.
func byRegex(source string, text []byte) (string, error) {
	re, err := pcre.Compile(source)
	if err != nil {
		return "", err
	}
	groups, err := re.Groups(text)
	switch {
	case err != nil:
		return "", err
	case groups == nil:
		return "", fmt.Errorf("regular expression %q matches nothing of the answer", source)
	case len(groups) > 1:
		return groups[1], nil
	}
	return groups[0], nil
}

func byJSONPath(source string, text []byte) (string, error) {
	path, err := jsonpath.Compile(source)
	if err != nil {
		return "", err
	}
	document, err := jsonpath.Parse(text)
	if err != nil {
		return "", err
	}
	value, found, err := document.Query(path)
	if err == nil && !found {
		err = fmt.Errorf("JSONPath %q matches nothing of the answer", source)
	}
	return string(value), err
}

func byXMLPath(source string, text []byte) (string, error) {
	path, err := xmlpath.Compile(source)
	if err != nil {
		return "", err
	}
	document, err := xmlpath.Parse(text)
	if err != nil {
		return "", err
	}
	value, err := document.Query(path)
	if err == nil && len(value) == 0 {
		err = errors.New("the XPath matches nothing of the answer")
	}
	return string(value), err
}

// fill replaces {name} by the variable's value, and {{name}.urlencode()} and {{name}.urldecode()} by what those make of it. What is no
// variable stays as it is. A value is not looked through again.
func (r *run) fill(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text) && b.Len() <= maxFilledBytes; {
		if text[i] == '{' {
			if value, end := r.variable(text[i:]); end > 0 {
				b.WriteString(value)
				i += end
				continue
			}
		}
		b.WriteByte(text[i])
		i++
	}
	return b.String()
}

// variable reads the variable at the start of text and returns its value and where it ends; zero when there is none.
func (r *run) variable(text string) (string, int) {
	if !strings.HasPrefix(text, "{{") {
		end := strings.IndexByte(text, '}') + 1
		value, ok := r.variables[text[:end]]
		if !ok {
			return "", 0
		}
		return value, end
	}
	end := strings.IndexByte(text, '}') + 1
	if end == 0 {
		return "", 0
	}
	value, ok := r.variables[text[1:end]]
	if !ok {
		return "", 0
	}
	for call, f := range functions {
		if strings.HasPrefix(text[end:], call) {
			return f(value), end + len(call)
		}
	}
	return "", 0
}

// functions are what may stand behind a variable in braces of its own.
var functions = map[string]func(string) string{
	".urlencode()}": url.QueryEscape,
	".urldecode()}": func(s string) string {
		decoded, err := url.QueryUnescape(s)
		if err != nil {
			return s
		}
		return decoded
	},
}

func (r *run) fillAll(list []model.Pair) []model.Pair {
	var out []model.Pair
	for _, p := range list {
		out = append(out, model.Pair{Name: r.fill(p.Name), Value: r.fill(p.Value)})
	}
	return out
}
