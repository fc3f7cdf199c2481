package confcache

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tidemark/expr"
	"tidemark/model"
)

// maxExpandedBytes bounds a text after its macros are expanded.
const maxExpandedBytes = 64 << 10

// macros resolves user macros for one host. The levels are the host's own, then its templates' (nearest first), then
// the global ones. A value for the macro's context on any level goes before a value without context on a nearer one;
// on one level an equal context goes before a matching pattern.
type macros struct {
	levels []macroLevel
}

type macroLevel map[string][]macroValue

// macroValue is one definition of a name.
type macroValue struct {
	context string
	// pattern is set for {$NAME:regex:"…"}; with a broken pattern it matches nothing.
	pattern *regexp.Regexp
	kind    contextKind
	value   string
	secret  bool
}

type contextKind uint8

const (
	noContext contextKind = iota
	exactContext
	patternContext
)

// newLevel makes a level; of several definitions of one name and context the first wins, which is how nearer templates
// win.
func newLevel(list []model.Macro) macroLevel {
	if len(list) == 0 {
		return nil
	}
	level := make(macroLevel, len(list))
	for _, m := range list {
		ref, end := parseMacro(m.Name, 0)
		if end != len(m.Name) {
			continue
		}
		v := macroValue{context: ref.context, kind: ref.kind, value: m.Value, secret: m.Secret}
		if v.kind == patternContext {
			v.pattern, _ = regexp.Compile(v.context)
		}
		same := func(o macroValue) bool { return o.kind == v.kind && o.context == v.context }
		if !slices.ContainsFunc(level[ref.name], same) {
			level[ref.name] = append(level[ref.name], v)
		}
	}
	return level
}

// resolve returns the value of a macro and whether it is secret.
func (m *macros) resolve(ref macroRef) (value string, secret, ok bool) {
	if ref.kind == exactContext {
		for _, level := range m.levels {
			values := level[ref.name]
			for i := range values {
				if values[i].kind == exactContext && values[i].context == ref.context {
					return values[i].value, values[i].secret, true
				}
			}
			for i := range values {
				if p := values[i].pattern; p != nil && p.MatchString(ref.context) {
					return values[i].value, values[i].secret, true
				}
			}
		}
	}
	for _, level := range m.levels {
		for _, v := range level[ref.name] {
			if v.kind == noContext {
				return v.value, v.secret, true
			}
		}
	}
	return "", false, false
}

// macroRef is a macro as a text names it.
type macroRef struct {
	name, context string
	kind          contextKind
}

// parseMacro reads the user macro that begins at text[at] and returns where it ends; 0 when there is none.
func parseMacro(text string, at int) (macroRef, int) {
	if !strings.HasPrefix(text[at:], "{$") {
		return macroRef{}, 0
	}
	i := at + 2
	for i < len(text) && isMacroByte(text[i]) {
		i++
	}
	ref := macroRef{name: text[at+2 : i]}
	if ref.name == "" || i == len(text) {
		return ref, 0
	}
	switch text[i] {
	case '}':
		return ref, i + 1
	case ':':
		return parseContext(text, i+1, ref)
	}
	return ref, 0
}

func isMacroByte(b byte) bool {
	return b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '.'
}

// parseContext reads the context at, quoted or not, and the brace after it.
func parseContext(text string, at int, ref macroRef) (macroRef, int) {
	ref.kind = exactContext
	i := at
	if strings.HasPrefix(text[i:], "regex:") {
		ref.kind = patternContext
		i += len("regex:")
	}
	for i < len(text) && text[i] == ' ' {
		i++
	}
	if i < len(text) && text[i] == '"' {
		end := i + 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' && end+1 < len(text) && text[end+1] == '"' {
				end++
			}
			end++
		}
		if end >= len(text) {
			return ref, 0
		}
		ref.context = strings.ReplaceAll(text[i+1:end], `\"`, `"`)
		for end++; end < len(text) && text[end] == ' '; end++ {
		}
		if end < len(text) && text[end] == '}' {
			return ref, end + 1
		}
		return ref, 0
	}
	end := strings.IndexByte(text[i:], '}')
	if end < 0 {
		return ref, 0
	}
	ref.context = text[i : i+end]
	return ref, i + end + 1
}

// expand replaces the user macros of a text. Unknown ones stay and are named in the error; so does a text that would
// grow too long.
func (m *macros) expand(text string) (string, error) { return m.replace(text, plainText) }

// show is expand for what people see: of secret macros there are stars.
func (m *macros) show(text string) string {
	out, _ := m.replace(text, shown) // what is not known stays as it is
	return out
}

// expandExpression is expand for trigger expressions: inside strings, quotes of a value are escaped, and the keys of items are as those of the items,
// with their secret macros.
func (m *macros) expandExpression(text string) (string, error) { return m.replace(text, expression) }

// key is expand for item keys, which people see: secret macros stay as they are, as in Zabbix.
func (m *macros) key(text string) (string, error) { return m.replace(text, itemKey) }

// secrets returns the secret macros of a text as they stand in it, each once.
func (m *macros) secrets(text string) []model.Macro {
	var list []model.Macro
	for i := 0; i < len(text); {
		ref, end := parseMacro(text, i)
		if end == 0 {
			i++
			continue
		}
		name := text[i:end]
		i = end
		value, secret, ok := m.resolve(ref)
		if ok && secret && !slices.ContainsFunc(list, func(o model.Macro) bool { return o.Name == name }) {
			list = append(list, model.Macro{Name: name, Value: value, Secret: true})
		}
	}
	return list
}

// written is expandExpression for what people see: secret macros stay as they are, also outside of keys.
func (m *macros) written(text string) string {
	out, _ := m.replace(text, shownExpression) // what is not known stays as it is
	return out
}

// purpose is what a text is for.
type purpose uint8

const (
	plainText purpose = iota
	expression
	shown
	itemKey
	shownExpression
)

// hidden stands for the value of a secret macro, as in Zabbix.
const hidden = "******"

func (m *macros) replace(text string, use purpose) (string, error) {
	if !strings.Contains(text, "{$") {
		return text, nil
	}
	var b strings.Builder
	var unknown []string
	last, quoted := 0, false
	var keys keySpans
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '\\' && quoted:
			i += 2
			continue
		case c == '"' && (use == expression || use == shownExpression):
			quoted = !quoted
		}
		ref, end := parseMacro(text, i)
		if end == 0 {
			i++
			continue
		}
		value, secret, ok := m.resolve(ref)
		if !ok {
			unknown = append(unknown, text[i:end])
			i = end
			continue
		}
		switch {
		case !secret:
		case use == shown:
			value = hidden
		case use == itemKey, use == shownExpression, use == expression && keys.hold(text, i):
			i = end
			continue
		}
		if quoted {
			value = strings.ReplaceAll(value, `"`, `\"`)
		}
		b.WriteString(text[last:i])
		b.WriteString(value)
		last, i = end, end
		if b.Len() > maxExpandedBytes {
			return text, fmt.Errorf("longer than %d bytes when its macros are expanded", maxExpandedBytes)
		}
	}
	b.WriteString(text[last:])
	if len(unknown) > 0 {
		return b.String(), fmt.Errorf("macro %s is not defined", strings.Join(unknown, ", "))
	}
	return b.String(), nil
}

// keySpans are where an expression has item keys, found when they are first asked for.
type keySpans struct {
	spans [][2]int
	found bool
}

func (k *keySpans) hold(text string, at int) bool {
	if !k.found {
		k.spans, k.found = expr.KeySpans(text), true
	}
	return slices.ContainsFunc(k.spans, func(s [2]int) bool { return s[0] <= at && at < s[1] })
}
