package preproc

import (
	"fmt"

	"tidemark/internal/pcre"
	"tidemark/model"
)

func compileRegexStep(s model.Step) (stepFunc, error) {
	pattern, output := param(s, 0), param(s, 1)
	re, err := pcre.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return func(_ *memory, in value, _ int64) (value, error) {
		if s.Type == model.StepMatchesRegex || s.Type == model.StepNotMatchesRegex {
			ok, err := re.Match(in.bytes())
			switch {
			case err != nil:
				return value{}, err
			case !ok && s.Type == model.StepMatchesRegex:
				return value{}, fmt.Errorf("the value does not match %q", pattern)
			case ok && s.Type == model.StepNotMatchesRegex:
				return value{}, fmt.Errorf("the value matches %q", pattern)
			}
			return in, nil
		}
		groups, err := re.Groups(in.bytes())
		switch {
		case err != nil:
			return value{}, err
		case s.Type == model.StepCheckRegexError && groups == nil:
			return in, nil
		case s.Type == model.StepCheckRegexError:
			return value{}, errVerbatim(cutTo([]byte(pcre.Expand(output, groups, maxStepBytes))))
		case groups == nil:
			return value{}, fmt.Errorf("%q does not match", pattern)
		}
		return textValue(cutTo([]byte(pcre.Expand(output, groups, maxStepBytes)))), nil
	}, nil
}

// failureMatch says which failures a step "check for not supported value" takes.
type failureMatch struct {
	// regex is nil for any failure.
	regex *pcre.Regexp
	// negated takes failures that do not match.
	negated bool
}

// compileFailureMatch reads the parameters of "check for not supported value": none or -1 for any failure, 0 and a pattern for
// those that match, 1 and a pattern for those that do not.
func compileFailureMatch(s model.Step) (failureMatch, error) {
	var m failureMatch
	switch scope := param(s, 0); scope {
	case "", "-1":
		return m, nil
	case "0", "1":
		m.negated = scope == "1"
	default:
		return m, fmt.Errorf("%q is no way to match errors; expected -1, 0 or 1", scope)
	}
	var err error
	m.regex, err = pcre.Compile(param(s, 1))
	return m, err
}

// take reports whether the step takes a failure, and returns its groups for \0 to \9 in the on-fail value.
func (m failureMatch) take(failure string) (groups []string, ok bool, err error) {
	if m.regex == nil {
		return nil, true, nil
	}
	groups, err = m.regex.Groups([]byte(failure))
	if err != nil {
		return nil, false, err
	}
	return groups, (groups != nil) != m.negated, nil
}
