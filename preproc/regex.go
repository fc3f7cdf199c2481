package preproc

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/dlclark/regexp2"

	"tidemark/model"
)

// regexTimeout bounds one match of an expression that needs backtracking.
const regexTimeout = time.Second

// matcher finds the first match of an expression. Expressions that Go's linear-time engine takes run there; those with
// look-around or back-references, which people bring from PCRE, run in a backtracking engine with a time limit.
type matcher struct {
	linear *regexp.Regexp
	full   *regexp2.Regexp
}

func compileMatcher(pattern string) (*matcher, error) {
	if pattern == "" {
		return nil, errors.New("the regular expression is empty")
	}
	if re, err := regexp.Compile(pattern); err == nil {
		return &matcher{linear: re}, nil
	}
	re, err := regexp2.Compile(pattern, regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w", pattern, err)
	}
	re.MatchTimeout = regexTimeout
	return &matcher{full: re}, nil
}

// groups returns the whole match and its groups, or nil when nothing matches.
func (m *matcher) groups(text []byte) ([]string, error) {
	if m.linear != nil {
		found := m.linear.FindSubmatch(text)
		if found == nil {
			return nil, nil
		}
		out := make([]string, len(found))
		for i, f := range found {
			out[i] = string(f)
		}
		return out, nil
	}
	found, err := m.full.FindStringMatch(string(text))
	if err != nil {
		return nil, fmt.Errorf("the regular expression took over %s: %w", regexTimeout, err)
	}
	if found == nil {
		return nil, nil
	}
	var out []string
	for _, g := range found.Groups() {
		out = append(out, g.String())
	}
	return out, nil
}

// expand replaces \0 to \9 in an output template by the groups.
func expand(template string, groups []string) string {
	out := make([]byte, 0, len(template)+64)
	for i := 0; i < len(template); i++ {
		c := template[i]
		if c == '\\' && i+1 < len(template) && template[i+1] >= '0' && template[i+1] <= '9' {
			i++
			if k := int(template[i] - '0'); k < len(groups) {
				out = append(out, groups[k]...)
			}
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

func compileRegexStep(s model.Step) (stepFunc, error) {
	m, err := compileMatcher(param(s, 0))
	if err != nil {
		return nil, err
	}
	output := param(s, 1)
	return func(_ *memory, in value, _ int64) (value, error) {
		groups, err := m.groups(in.bytes())
		if err != nil {
			return value{}, err
		}
		switch s.Type {
		case model.StepRegex:
			if groups == nil {
				return value{}, fmt.Errorf("%q does not match", param(s, 0))
			}
			return textValue(cutTo([]byte(expand(output, groups)))), nil
		case model.StepMatchesRegex:
			if groups == nil {
				return value{}, fmt.Errorf("the value does not match %q", param(s, 0))
			}
		case model.StepNotMatchesRegex:
			if groups != nil {
				return value{}, fmt.Errorf("the value matches %q", param(s, 0))
			}
		case model.StepCheckRegexError:
			if groups != nil {
				return value{}, errVerbatim(expand(output, groups))
			}
		}
		return in, nil
	}, nil
}
