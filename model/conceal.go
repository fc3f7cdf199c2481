package model

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// leastCut is how many bytes of the beginning of a secret are hidden where a text was cut; fewer may stand there by chance.
const leastCut = 4

// Conceal returns a text about the item that people see, such as why it has no value, with its secret macros as they were written in the place of their
// values, also of those that are quoted, escaped as in an address, or cut off at the end.
func (i *Item) Conceal(text string) string {
	if i.Collect == nil || len(i.Collect.Secrets) == 0 {
		return text
	}
	return conceal(text, i.Collect.Secrets)
}

// HasSecret reports whether one of the texts holds the value of a secret macro of the item, so that a message that quotes a part of it may do so too.
func (i *Item) HasSecret(texts ...string) bool {
	if i.Collect == nil {
		return false
	}
	return slices.ContainsFunc(i.Collect.Secrets, func(m Macro) bool {
		return m.Value != "" && slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, m.Value) })
	})
}

func conceal(text string, secrets []Macro) string {
	var forms []Pair
	for _, m := range secrets {
		quoted := strconv.Quote(m.Value)
		for _, form := range [...]string{m.Value, quoted[1 : len(quoted)-1], url.QueryEscape(m.Value), url.PathEscape(m.Value)} {
			if form != "" && !slices.ContainsFunc(forms, func(o Pair) bool { return o.Value == form }) {
				forms = append(forms, Pair{Name: m.Name, Value: form})
			}
		}
	}
	// The longest goes first: one may begin with another.
	slices.SortStableFunc(forms, func(a, b Pair) int { return len(b.Value) - len(a.Value) })
	list := make([]string, 0, 2*len(forms))
	for _, f := range forms {
		list = append(list, f.Value, f.Name)
	}
	if len(list) == 0 {
		return text
	}
	text = strings.NewReplacer(list...).Replace(text)
	parts := strings.Split(text, "…")
	for n := range parts {
		parts[n] = concealCut(parts[n], forms)
	}
	return strings.Join(parts, "…")
}

// concealCut hides the beginning of a secret at the end of a text that may have been cut there.
func concealCut(text string, forms []Pair) string {
	for _, f := range forms {
		for n := min(len(f.Value)-1, len(text)); n >= leastCut; n-- {
			if strings.HasSuffix(text, f.Value[:n]) {
				return text[:len(text)-n] + f.Name
			}
		}
	}
	return text
}
