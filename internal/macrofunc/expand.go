package macrofunc

import "strings"

// Expand replaces the discovery macros of a text, also those with a macro function, by their values, found by name with braces. Unknown
// macros stay. escape, if not nil, is applied to each value that is put in. Values come from outside, so no user macro comes about by them: a space
// goes between brace and dollar sign.
func Expand(text string, values map[string]string, escape *strings.Replacer) string {
	if !strings.Contains(text, "{#") {
		return text
	}
	var b strings.Builder
	for {
		at := strings.Index(text, "{#")
		if at < 0 {
			break
		}
		length := strings.IndexByte(text[at:], '}') + 1
		if length == 0 {
			break
		}
		value, ok := values[text[at:at+length]]
		if at > 0 && text[at-1] == '{' {
			if call, end := Parse(text, at-1); end > 0 {
				at, length = at-1, end-at+1
				if value, ok = values[call.Macro]; ok {
					value = call.computed(value)
				}
			}
		}
		switch {
		case !ok:
			value = text[at : at+length]
		default:
			value = inert(value)
			if escape != nil {
				value = escape.Replace(value)
			}
		}
		join(&b, text[:at])
		join(&b, value)
		text = text[at+length:]
	}
	join(&b, text)
	return b.String()
}

// inert breaks the user macros in a text: who says what is discovered must not read macros, least of all secret ones.
func inert(value string) string { return strings.ReplaceAll(value, "{$", "{ $") }

// join appends a text, so that no user macro begins where it is joined.
func join(b *strings.Builder, text string) {
	if strings.HasPrefix(text, "$") && strings.HasSuffix(b.String(), "{") {
		b.WriteByte(' ')
	}
	b.WriteString(text)
}

// computed is the result of a call, or what stands for one that cannot be computed.
func (c *Call) computed(value string) string {
	out, err := c.Apply(value)
	if err != nil {
		return Unknown
	}
	return out
}

// End returns the place of the brace that closes the one that a text begins with, or −1. Strings of an expression macro {?…} may hold braces.
func End(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"' && strings.HasPrefix(text, "{?"):
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
