package pcre

import "github.com/dlclark/regexp2"

// Replace replaces all matches by an output template, in which \0 to \9 stand for groups of the match. It stops where the result has more than enough
// bytes, which then is longer than that. The error is that it took too long.
func (r *Regexp) Replace(text, template string, enough int) (string, error) {
	if !r.backtracks([]byte(text)) {
		out := make([]byte, 0, len(text))
		last := 0
		for _, m := range r.linear.FindAllStringSubmatchIndex(text, -1) {
			groups := make([]string, len(m)/2)
			for i := range groups {
				if m[2*i] >= 0 {
					groups[i] = text[m[2*i]:m[2*i+1]]
				}
			}
			out = append(out, text[last:m[0]]...)
			out = append(out, Expand(template, groups, enough-len(out))...)
			last = m[1]
			if len(out) > enough {
				break
			}
		}
		return string(append(out, text[last:]...)), nil
	}
	size := 0
	out, err := r.full.ReplaceFunc(text, func(m regexp2.Match) string {
		if size > enough {
			return "" // the result is too long already
		}
		found := m.Groups()
		groups := make([]string, 0, len(found))
		for i := range found {
			groups = append(groups, found[i].String())
		}
		filled := Expand(template, groups, enough-size)
		size += len(filled)
		return filled
	}, -1, -1)
	return out, tooLong(err)
}
