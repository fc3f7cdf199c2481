package macrofunc

import (
	"strings"
	"testing"
	"time"
)

func TestApply(t *testing.T) {
	f := func(value, call, want string) {
		t.Helper()
		text := "{{#M}." + call + "}"
		c, end := Parse("ab"+text+"cd", 2)
		if end != len(text)+2 {
			t.Errorf("Parse(%s) ends at %d, want %d", text, end, len(text)+2)
			return
		}
		got, err := c.Apply(value)
		if err != nil {
			got = Unknown
		}
		if got != want || c.Macro != "{#M}" {
			t.Errorf("%q %s = %q %v, want %q", value, text, got, err, want)
		}
	}
	f("eth0_12", `regsub("^(.*)_([0-9]+)$", "\2/\1")`, "12/eth0")
	f("eth0", `regsub(^([a-z]+)([0-9]+), port \2)`, "port 0")
	f("eth0", `regsub("^x", "y")`, "")
	f("ETH0", `iregsub("^eth", "\0!")`, "ETH!")
	f("ETH0", `regsub("(", "\0")`, Unknown)
	f("a-b-c", `regrepl("-", "+")`, "a+b+c")
	f("aab", `regrepl("a", "b", "b", "c")`, "ccc")
	f("ab", `regrepl("x*", "-")`, "-a-b-")
	f("aaa", `regrepl("^a", "b")`, "baa")
	f("xaya", `regrepl("(?<=y)a", "b")`, "xayb")
	f("3.14159", `fmtnum(2)`, "3.14")
	f("x", `fmtnum(2)`, Unknown)
	f("1", `fmtnum(99)`, Unknown)
	f("Hello", `tr(a-zA-Z, A-Za-z)`, "hELLO")
	f("a/b", `tr("/", "_")`, "a_b")
	f("abc", `tr(abc, x)`, "xxx")
	f("zabbix", `btoa()`, "emFiYml4")
	f(`<a href="x">'&`, `htmlencode()`, "&lt;a href=&quot;x&quot;&gt;&#39;&amp;")
	f("&lt;&amp;", `htmldecode()`, "<&")
	f("a b/c", `urlencode()`, "a%20b%2Fc")
	f("a%20b", `urldecode()`, "a b")
	f("a%2", `urldecode()`, Unknown)
	f("AbC", `lowercase()`, "abc")
	f("AbC", `uppercase()`, "ABC")
	f("AbC", `uppercase(1)`, Unknown)
	f("AbC", `nothing()`, Unknown)
	f(strings.Repeat("x", 50_000), `btoa()`, Unknown)
}

func TestFmttime(t *testing.T) {
	f := func(value string, params []string, want string) {
		t.Helper()
		got, err := fmttime(value, params, time.UTC)
		if err != nil {
			got = Unknown
		}
		if got != want {
			t.Errorf("fmttime(%q, %q) = %q %v, want %q", value, params, got, err, want)
		}
	}
	f("1700000000", []string{"%Y-%m-%d %H:%M:%S"}, "2023-11-14 22:13:20")
	f("1700000000", []string{"%F", "-1d/M"}, "2023-11-01")
	f("2023-11-14T22:13:20+02:00", []string{"%s %%"}, "1699992800 %")
	f("2023-11-15", []string{"%A %u", "/w"}, "Monday 1")
	f("2023-11-15", []string{"%F", "+1y"}, "2024-11-15")
	f("2023-11-15", []string{"%Q"}, Unknown)
	f("2023-11-15", []string{"%F", "1d"}, Unknown)
	f("yesterday", []string{"%F"}, Unknown)
}

func TestParse_none(t *testing.T) {
	for _, text := range []string{
		"", "{", "{{", "{{#M}", "{{#M}}", "{{#M}.f(}", "{{#M}.f()", `{{#M}.f("a)}`, "{{#M}.F()}", "{#M}.f()}", "{{#M}.f(a}", "{{#M} .f()}", `{{#M}.f("a"b)}`,
	} {
		if _, end := Parse(text, 0); end != 0 {
			t.Errorf("Parse(%q) ends at %d, want none", text, end)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{{#M}.regsub("a(b)", \1)}`, "value")
	f.Add(`{{#M}.tr(a-z,A-Z)}`, "value")
	f.Add(`{{#M}.regrepl("x*","-")}`, "value")
	f.Fuzz(func(t *testing.T, text, value string) {
		c, end := Parse(text, 0)
		if end > len(text) {
			t.Fatalf("ends at %d of %d", end, len(text))
		}
		if end == 0 {
			return
		}
		if out, err := c.Apply(value); err == nil && len(out) > maxResultBytes {
			t.Fatalf("%d bytes", len(out))
		}
	})
}
