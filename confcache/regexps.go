package confcache

import (
	"regexp"
	"strings"

	"tidemark/model"
)

// Globals is what holds for all hosts.
type Globals struct {
	Macros []model.Macro
	// Regexps are the global regular expressions besides the defaults.
	Regexps []model.GlobalRegexp
}

// regexps are the global regular expressions by name, with their patterns.
type regexps map[string]globalRegexp

type globalRegexp struct {
	model.GlobalRegexp
	pattern string
}

// compileRegexps puts one's own over the defaults.
func compileRegexps(own []model.GlobalRegexp) regexps {
	out := make(regexps)
	for _, list := range [][]model.GlobalRegexp{model.DefaultRegexps(), own} {
		for _, g := range list {
			out[g.Name] = globalRegexp{g, g.Pattern()}
		}
	}
	return out
}

// of returns the pattern that @name stands for; another text, or a name that is not known, stays.
func (r regexps) of(text string) string {
	if name, ok := strings.CutPrefix(text, "@"); ok {
		if g, ok := r[name]; ok {
			return g.pattern
		}
	}
	return text
}

// inFunctions finds @name where a function of a trigger wants a pattern: behind the operators, and in logeventid and logsource.
var inFunctions = regexp.MustCompile(`("i?regexp"\s*,\s*|\blog(?:eventid|source)\((?:[^"()]|"(?:[^"\\]|\\.)*")*?,\s*)"(@[^"\\]+)"`)

// inExpression puts patterns in the place of their names in the functions of an expression.
func (r regexps) inExpression(text string) string {
	if !strings.Contains(text, `"@`) {
		return text
	}
	return inFunctions.ReplaceAllStringFunc(text, func(found string) string {
		parts := inFunctions.FindStringSubmatch(found)
		pattern := r.of(parts[2])
		if pattern == parts[2] {
			return found
		}
		return parts[1] + `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(pattern) + `"`
	})
}

// Regexp finds a global regular expression.
func (s *Snapshot) Regexp(name string) (model.GlobalRegexp, bool) {
	g, ok := s.regexps[name]
	return g.GlobalRegexp, ok
}

// Regexps returns the global regular expressions by name, one's own and the defaults.
func (s *Snapshot) Regexps() map[string]model.GlobalRegexp {
	out := make(map[string]model.GlobalRegexp, len(s.regexps))
	for name, g := range s.regexps {
		out[name] = g.GlobalRegexp
	}
	return out
}
