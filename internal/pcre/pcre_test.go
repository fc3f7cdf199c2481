package pcre

import (
	"fmt"
	"strings"
	"testing"
)

func TestGroups(t *testing.T) {
	for _, c := range []struct{ pattern, text, want string }{
		{`(\w+)=(\d+)`, "x ab=12", `["ab=12" "ab" "12"]`},
		{`a(b)?c`, "ac", `["ac" ""]`},
		{`a(?=b)`, "ab", `["a"]`},
		{`(a)\1`, "aa", `["aa" "a"]`},
		{`end$`, "the end\n", `["end"]`},
		{`end$`, "the end\n\n", `[]`},
		{`^b`, "a\nb", `[]`},
		{`(?m)^b`, "a\nb", `["b"]`},
		{`\d++x`, "12x", `["12x"]`},
		{`a\++`, "a++", `["a++"]`},
		{`[a\h]+`, "b a\ta", `[" a\ta"]`},
		{`a\Rb`, "a\r\nb", `["a\r\nb"]`},
		{`[]a]+`, "x]a", `["]a"]`},
		{`[[:digit:]]+`, "a12", `["12"]`},
		{`(?<name>x)y`, "xy", `["xy" "x"]`},
		{`ё.`, "aёb", `["ёb"]`},
	} {
		re, err := Compile(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		groups, err := re.Groups([]byte(c.text))
		if got := fmt.Sprintf("%q", groups); err != nil || got != c.want {
			t.Errorf("%s on %q: %s, %v; want %s", c.pattern, c.text, got, err, c.want)
		}
		ok, err := re.Match([]byte(c.text))
		if err != nil || ok != (c.want != "[]") {
			t.Errorf("%s on %q: matches %v, %v", c.pattern, c.text, ok, err)
		}
	}
	for _, p := range []string{"", "[a-z", "(", `a{2,1}`} {
		if _, err := Compile(p); err == nil {
			t.Errorf("%q compiles", p)
		}
	}
}

func TestMatchEnds(t *testing.T) {
	re, err := Compile(`(?=a)(a+)+\d`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := re.Match([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac")); err == nil {
		t.Error("catastrophic backtracking is not reported")
	}
}

func TestExpand(t *testing.T) {
	groups := []string{"whole", "one"}
	for template, want := range map[string]string{`\1:\0`: "one:whole", `\2x`: "x", `\\1`: `\one`, `\`: `\`, "": ""} {
		if got := Expand(template, groups, 1000); got != want {
			t.Errorf("%s: %q, want %q", template, got, want)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{`a(?=b)$`, `[\h]++`, `(?<n>a)\k<n>`, `\`, `[`, `(?i)x{2,}`} {
		f.Add(s, "ab\n")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 64 || len(text) > 64 {
			return
		}
		re, err := Compile(pattern)
		if err != nil {
			return
		}
		_, _ = re.Match([]byte(text))
		_, _ = re.Groups([]byte(text))
	})
}

// A template that names a long group many times yields little more than its caller has use for.
func TestExpand_enough(t *testing.T) {
	long, template := strings.Repeat("a", 1000), strings.Repeat(`\0`, 1000)
	if got := len(Expand(template, []string{long}, 5000)); got <= 5000 || got > 6000 {
		t.Errorf("%d bytes", got)
	}
	for _, pattern := range []string{"a", "(?<=a)a"} { // the second needs the engine that backtracks
		re, err := Compile(pattern)
		if err != nil {
			t.Fatal(err)
		}
		got, err := re.Replace(long, strings.Repeat(`\0`, 1000), 5000)
		if err != nil || len(got) <= 5000 || len(got) > 8000 {
			t.Errorf("%s: %d bytes, %v", pattern, len(got), err)
		}
	}
}
