package confdb

import (
	"strings"

	"tidemark/internal/macrofunc"
)

// keyParams splits an item key into its name and parameters. A parameter that is a list keeps its brackets.
func keyParams(key string) (name string, params []string) {
	open := strings.IndexByte(key, '[')
	if open < 0 || key[len(key)-1] != ']' {
		return key, nil
	}
	name, text := key[:open], key[open+1:len(key)-1]
	for at := 0; ; {
		end := paramEnd(text, at)
		params = append(params, strings.TrimLeft(text[at:end], " "))
		if end >= len(text) {
			return name, params
		}
		at = end + 1
	}
}

// paramEnd returns where the parameter at ends: at a comma, or at the end of the text.
func paramEnd(text string, at int) int {
	fresh, depth := true, 0
	for i := at; i < len(text); i++ {
		switch c := text[i]; {
		case c == ' ' && fresh:
			continue
		case c == '"' && fresh:
			if end := stringEnd(text, i); end > 0 {
				i = end - 1
			}
		case c == '[':
			depth++
			fresh = true
			continue
		case c == ']':
			depth--
		case c == '{':
			if end := macroEnd(text, i); end > 0 {
				i = end - 1
			}
		case c == ',':
			if depth == 0 {
				return i
			}
			fresh = true
			continue
		}
		fresh = false
	}
	return len(text)
}

// unquote returns the value of a parameter and whether it was quoted.
func unquote(param string) (string, bool) {
	param = strings.TrimRight(param, " ")
	if len(param) < 2 || param[0] != '"' || param[len(param)-1] != '"' {
		return param, false
	}
	return strings.ReplaceAll(param[1:len(param)-1], `\"`, `"`), true
}

// quote writes a parameter; it quotes when it was quoted before or must be.
func quote(value string, quoted bool) string {
	if quoted || strings.HasPrefix(value, `"`) || strings.HasPrefix(value, " ") || strings.ContainsAny(value, ",]") ||
		strings.HasPrefix(value, "[") {
		return `"` + strings.ReplaceAll(value, `"`, `\"`) + `"`
	}
	return value
}

// canonicalKey is equal for keys that differ only in how their parameters are quoted.
func canonicalKey(key string) string {
	name, params := keyParams(key)
	var b strings.Builder
	b.WriteString(name)
	for _, p := range params {
		value, _ := unquote(p)
		b.WriteByte(0)
		b.WriteString(value)
	}
	return b.String()
}

// expandKey replaces discovery macros in the parameters of a key and quotes them where their value needs it.
func expandKey(key string, macros map[string]string) string {
	if !strings.Contains(key, "{#") {
		return key
	}
	name, params := keyParams(key)
	if params == nil {
		return expandText(key, macros)
	}
	for i, p := range params {
		if !strings.Contains(p, "{#") {
			continue
		}
		if strings.HasPrefix(p, "[") {
			params[i] = expandText(p, macros)
			continue
		}
		value, quoted := unquote(p)
		params[i] = quote(expandText(value, macros), quoted)
	}
	return expandText(name, macros) + "[" + strings.Join(params, ",") + "]"
}

// expandText replaces discovery macros, also those with a macro function, and leaves the unknown ones.
func expandText(text string, macros map[string]string) string {
	return macrofunc.Expand(text, macros, nil)
}

// expandExpression replaces discovery macros in an expression: in item keys as expandKey does, in strings and contexts
// of user macros with quotes escaped. Values come from outside: where they would make it name other hosts, or more items, it stays as it is.
func expandExpression(text string, macros map[string]string) string {
	out, _ := expandSafely(text, macros)
	return out
}

// expandSafely is expandExpression, and reports whether the values may stand there.
func expandSafely(text string, macros map[string]string) (string, bool) {
	if !strings.Contains(text, "{#") {
		return text, true
	}
	refs, err := itemRefs(text)
	if err != nil {
		return text, true
	}
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	var b strings.Builder
	last := 0
	for _, r := range refs {
		b.WriteString(macrofunc.Expand(text[last:r.keyAt], macros, escape))
		b.WriteString(expandKey(text[r.keyAt:r.keyEnd], macros))
		last = r.keyEnd
	}
	b.WriteString(macrofunc.Expand(text[last:], macros, escape))
	out := b.String()
	after, err := itemRefs(out)
	if err != nil || len(after) != len(refs) {
		return text, false
	}
	for i, r := range after {
		if out[r.hostAt:r.hostEnd] != text[refs[i].hostAt:refs[i].hostEnd] {
			return text, false
		}
	}
	return out, true
}

// apart keeps a value from beginning an expression macro.
var apart = strings.NewReplacer("{?", "{ ?")

// expandEventText replaces discovery macros in a text whose macros are expanded when an event is recorded. Only the text itself has expression macros: a
// value comes from outside, and one with an expression would show items of other hosts.
func expandEventText(text string, macros map[string]string) string {
	if !strings.Contains(text, "{#") {
		return text
	}
	var b strings.Builder
	for {
		at, end := strings.Index(text, "{?"), -1
		if at >= 0 {
			end = macrofunc.End(text[at:])
		}
		if end < 0 {
			break
		}
		b.WriteString(apart.Replace(expandText(text[:at], macros)))
		b.WriteString("{?" + apart.Replace(expandExpression(text[at+2:at+end], macros)) + "}")
		text = text[at+end+1:]
	}
	b.WriteString(apart.Replace(expandText(text, macros)))
	return b.String()
}

// macroNames returns the discovery macros of a text, in order and possibly repeated.
func macroNames(text string) []string {
	var names []string
	for {
		at := strings.Index(text, "{#")
		if at < 0 {
			return names
		}
		end := strings.IndexByte(text[at:], '}')
		if end < 0 {
			return names
		}
		names = append(names, text[at:at+end+1])
		text = text[at+end+1:]
	}
}
