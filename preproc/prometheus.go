package preproc

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"tidemark/model"
	"tidemark/wire/exposition"
	"tidemark/wire/jsonpath"
)

// compilePrometheusPattern reads pattern, kind of result and its parameter. Exports before 5.2 have the result as second and last
// parameter: \value or the name of a label.
func compilePrometheusPattern(s model.Step) (stepFunc, error) {
	pattern, err := exposition.ParsePattern(param(s, 0))
	if err != nil {
		return nil, err
	}
	request, output := param(s, 1), param(s, 2)
	if request == "" || request == `\value` {
		request = "value"
	}
	if len(s.Params) == 2 && request != "value" {
		request, output = "label", request
	}
	switch {
	case request != "value" && request != "label" && request != "function":
		return nil, fmt.Errorf("%q is no result of a Prometheus pattern; expected value, label or function", request)
	case request == "label" && output == "":
		return nil, errors.New("the name of the label is empty")
	case request == "function":
		switch output {
		case "sum", "min", "max", "avg", "count":
		default:
			return nil, fmt.Errorf("%q is no function; expected sum, min, max, avg or count", output)
		}
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		page, err := in.asPage()
		if err != nil {
			return value{}, err
		}
		found, err := page.Select(pattern)
		if err != nil {
			return value{}, err
		}
		if request == "function" {
			return aggregateSamples(page, found, output)
		}
		if len(found) != 1 {
			return value{}, notOne(len(found), param(s, 0))
		}
		sample := &page.Samples[found[0]]
		if request == "value" {
			return textValue([]byte(sample.Value)), nil
		}
		text, ok := sample.Label(output)
		if !ok {
			return value{}, fmt.Errorf("the metric has no label %q", output)
		}
		return textValue([]byte(text)), nil
	}, nil
}

func notOne(found int, pattern string) error {
	if found == 0 {
		return fmt.Errorf("no metric matches %q", pattern)
	}
	return fmt.Errorf("%d metrics match %q; expected one", found, pattern)
}

func aggregateSamples(page *exposition.Page, found []int32, function string) (value, error) {
	if function == "count" {
		return uintValue(uint64(len(found))), nil
	}
	if len(found) == 0 {
		return value{}, errors.New("no metric matches the pattern")
	}
	low, high, sum := math.Inf(1), math.Inf(-1), 0.0
	for _, i := range found {
		v, err := exposition.ParseValue(page.Samples[i].Value)
		if err != nil {
			return value{}, err
		}
		low, high, sum = min(low, v), max(high, v), sum+v
	}
	switch function {
	case "min":
		sum = low
	case "max":
		sum = high
	case "avg":
		sum /= float64(len(found))
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return value{}, fmt.Errorf("the %s of the metrics is %v", function, sum)
	}
	return floatValue(sum), nil
}

// compilePrometheusToJSON lists the samples that a pattern selects.
func compilePrometheusToJSON(source string) (stepFunc, error) {
	pattern, err := exposition.ParsePattern(source)
	if err != nil {
		return nil, err
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		page, err := in.asPage()
		if err != nil {
			return value{}, err
		}
		found, err := page.Select(pattern)
		if err != nil {
			return value{}, err
		}
		dst := []byte{'['}
		for n, i := range found {
			if n > 0 {
				dst = append(dst, ',')
			}
			if dst = appendSample(dst, page, &page.Samples[i]); len(dst) > maxStepBytes {
				return value{}, tooLarge("JSON")
			}
		}
		return textValue(append(dst, ']')), nil
	}, nil
}

func appendSample(dst []byte, page *exposition.Page, s *exposition.Sample) []byte {
	dst = appendMember(append(dst, '{'), "name", s.Name)
	dst = appendMember(append(dst, ','), "value", s.Value)
	dst = appendMember(append(dst, ','), "line_raw", s.Line)
	if len(s.Labels) > 0 {
		dst = append(dst, `,"labels":{`...)
		for i, l := range s.Labels {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendMember(dst, l.Name, l.Value)
		}
		dst = append(dst, '}')
	}
	dst = appendMember(append(dst, ','), "type", page.Type(s.Name))
	if help, ok := page.Help(s.Name); ok {
		dst = appendMember(append(dst, ','), "help", help)
	}
	return append(dst, '}')
}

// appendMember appends a member of a JSON object whose value is text.
func appendMember(dst []byte, name, text string) []byte {
	dst = append(jsonpath.AppendQuoted(dst, []byte(name)), ':')
	return jsonpath.AppendQuoted(dst, []byte(text))
}

func tooLarge(what string) error {
	return fmt.Errorf("the %s is longer than %s bytes", what, strconv.Itoa(maxStepBytes))
}
