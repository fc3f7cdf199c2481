package confdb

import (
	"slices"
	"strings"
	"testing"

	"tidemark/expr"
	"tidemark/internal/macrofunc"
)

// TestExpandSafely lets values of discovery macros try to bring items of other hosts into an expression.
func TestExpandSafely(t *testing.T) {
	f := func(text, value, want string) {
		t.Helper()
		got, ok := expandSafely(text, map[string]string{"{#X}": value})
		if got != want || ok != (got != text) {
			t.Errorf("%s with %s: %s, %v; want %s", text, value, got, ok, want)
		}
	}
	const text = `last(/own/k[{#X}])>{#X} or find(/own/t,,"like","{#X}")`
	f(text, "5", `last(/own/k[5])>5 or find(/own/t,,"like","5")`)
	f(text, "last(/secret/k)", text)
	f(`last(/own/k[{#X}])`, `a])+last(/secret/k[b`, `last(/own/k["a])+last(/secret/k[b"])`)
	f(`last(/own/k[[{#X}]])`, `a]])+last(/secret/k[[b`, `last(/own/k[[{#X}]])`)
	f(`find(/own/k,,"like","{#X}")`, `")+last(/secret/k)+length("`, `find(/own/k,,"like","\")+last(/secret/k)+length(\"")`)
	f(`last({#X})`, "/secret/k", `last({#X})`)
	f(`last(/{#X}/k)`, "secret", `last(/{#X}/k)`)
	f(`last(/own/{#X})`, "k)+last(/secret/k", `last(/own/{#X})`)
	f(`last(/own/k,{#X})`, "#3", `last(/own/k,#3)`)
}

// TestExpandEventText: only the text of the prototype has expression macros.
func TestExpandEventText(t *testing.T) {
	f := func(text, value, want string) {
		t.Helper()
		if got := expandEventText(text, map[string]string{"{#X}": value, "{#Y}": "?last(/secret/k)}"}); got != want {
			t.Errorf("%s with %s: %s, want %s", text, value, got, want)
		}
	}
	f("disk {#X} is full", "/srv", "disk /srv is full")
	f("disk {#X} is full", "{?last(/secret/k)}", "disk { ?last(/secret/k)} is full")
	f("{#X}{#Y}", "{", "{ ?last(/secret/k)}")
	f("{?last(/own/k[{#X}])} of {#X}", "a", "{?last(/own/k[a])} of a")
	f("{?last(/own/k[{#X}])}", "a])+last(/secret/k[b", `{?last(/own/k["a])+last(/secret/k[b"])}`)
	f("{?last(/own/k)+{#X}} left", "last(/secret/k)", "{?last(/own/k)+{#X}} left")
	f("{?last(/own/k[{#X}])}", "}{?last(/secret/k)}", "{?last(/own/k[}{ ?last(/secret/k)}])}")
	f(`{?find(/own/k,,"like","}{#X}")}`, `"}{?last(/secret/k)}`, `{?find(/own/k,,"like","}\"}{ ?last(/secret/k)}")}`)
}

// FuzzExpandEventText looks for a value that makes a text read another host.
func FuzzExpandEventText(f *testing.F) {
	f.Add("a])+last(/secret/k[b", "x")
	f.Add("{", "?last(/secret/k)}")
	f.Fuzz(func(t *testing.T, x, y string) {
		for _, text := range []string{
			`{#X}{#Y}`, `{?last(/own/k[{#X},[{#Y}]])} {#X}{?find(/own/k,{#Y},"like","{#X}")}{#Y}`, `{?last(/own/k)+{#X}}{#X}{?last(/own/k)}`, `{?{#X}(/own/{#Y})}`,
		} {
			out := expandEventText(text, map[string]string{"{#X}": x, "{#Y}": y})
			for _, macro := range expressionMacros(out) {
				e, err := expr.Parse(macro)
				if err != nil {
					continue
				}
				if at := slices.IndexFunc(e.Refs, func(r expr.Ref) bool { return r.Host != "own" }); at >= 0 {
					t.Errorf("%q with %q and %q: %q reads %v", text, x, y, out, e.Refs[at])
				}
			}
		}
	})
}

// expressionMacros are the expressions of a text that an event would evaluate.
func expressionMacros(text string) (list []string) {
	for {
		at := strings.IndexByte(text, '{')
		if at < 0 {
			return list
		}
		end := macrofunc.End(text[at:])
		if end < 0 {
			return list
		}
		if inner, ok := strings.CutPrefix(text[at:at+end], "{?"); ok {
			list = append(list, inner)
		}
		text = text[at+end+1:]
	}
}
