package expr

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse_errors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "column 1: expected an expression, found nothing",
		"1 +":                                  "column 4: expected an operand, found the end",
		"(1":                                   "column 3: expected an operator or ) for the ( in column 1, found the end",
		"1 2":                                  "column 3: expected an operator or the end, found '2'",
		"foo(/h/k)":                            "column 1: expected a function, foo is not known",
		"last(1)":                              "column 6: expected an item /host/key as first argument of last",
		"abs(/h/k)":                            "column 5: expected a number or expression as first argument of abs, found an item",
		"/h/k > 1":                             "column 1: expected an operand; an item stands in a function such as last(/host/key)",
		"avg(/h/k)":                            "column 1: expected 2 arguments of avg, found 1",
		"avg(/h/k,abc)":                        `column 10: expected a period such as 30, 5m, 1h or #5, found "abc"`,
		"avg(/h/k,#0)":                         `column 10: expected a number from 1 to 1048576 behind #, found "#0"`,
		"avg(/h/k,)":                           "column 10: expected a period as second argument of avg",
		"avg(/h/k,1h:then)":                    `column 10: expected a time shift such as now-1h or now/d, found "1h:then"`,
		"avg(/h/k,1h:now/s)":                   `column 10: expected one of the units m h d w M y behind /, found "1h:now/s"`,
		"avg(/h/k,1M)":                         `column 10: expected a period such as 30, 5m, 1h or #5, found "1M"`,
		"last(/h/k,5m)":                        `column 11: expected #N as second argument of last, found "5m"`,
		"last(/h/k":                            "column 10: expected , or ) in the arguments of last, found the end",
		"last(/h)":                             "column 9: expected /host/key",
		"last(/h/)":                            "column 9: expected an item key, found ')'",
		"last(/h/k[a)":                         "column 10: expected ] behind the parameters of the item key",
		`last(/h/k["a)`:                        "column 10: expected a closing quote in the parameters of the item key",
		`"abc`:                                 "column 1: expected a closing quote for this string",
		`"a\n"`:                                `column 3: expected \" or \\ in a string`,
		"{$M":                                  "column 1: expected a closing brace for this macro",
		"5x":                                   "column 2: expected an operator or one of the suffixes KMGT smhdw after a number, found 'x'",
		"1.2.3":                                "column 4: expected an operator or one of the suffixes KMGT smhdw after a number, found '.'",
		"last":                                 "column 1: expected an operand, found the word last",
		"äö":                                   "column 1: expected an operand, found 'ä'",
		`"ä" = foo`:                            "column 7: expected an operand, found the word foo",
		"not":                                  "column 4: expected an operand, found the end",
		"1 and and":                            "column 7: expected an operand, found the word and",
		"count(/h/k,5m,near)":                  `column 15: expected one of the operators eq ne gt ge lt le like regexp iregexp bitand, found "near"`,
		`count(/h/k,5m,gt,"x")`:                `column 18: expected a number as pattern of the operator gt, found "x"`,
		`find(/h/k,,"regexp","(")`:             "column 21: expected a regular expression: error parsing regexp: missing closing ) in `(`",
		`find(/h/k,,"bitand","x")`:             `column 21: expected a whole number, or two with / between, as pattern of bitand, found "x"`,
		"percentile(/h/k,5m,101)":              `column 20: expected a percentage from 0 to 100, found "101"`,
		"timeleft(/h/k,1h,x)":                  `column 18: expected a number as third argument of timeleft, found "x"`,
		"timeleft(/h/k,1h,0,polynomial7)":      `column 20: expected polynomial1 to polynomial6, found "polynomial7"`,
		"forecast(/h/k,1h,x)":                  `column 18: expected a time such as 1h as third argument of forecast, found "x"`,
		"forecast(/h/k,1h,1h,cubic)":           `column 21: expected linear, polynomialN, exponential, logarithmic or power, found "cubic"`,
		`forecast(/h/k,1h,1h,linear,"median")`: `column 28: expected one of ["value" "max" "min" "delta" "avg"], found "median"`,
		"nodata(/h/k,#5)":                      `column 13: expected a number of seconds as second argument of nodata, found "#5"`,
		"monoinc(/h/k,5m,very)":                `column 17: expected one of ["weak" "strict"] as third argument of monoinc, found "very"`,
		strings.Repeat("(", 65):                "column 65: expected at most 64 nested parentheses and functions",
		strings.Repeat("-", 70) + "1":          "column 65: expected at most 64 nested parentheses and functions",
		strings.Repeat("1", MaxBytes+1):        "column 16385: expected at most 16384 bytes, the expression has 16385",
		"\xff":                                 "column 1: expected UTF-8 text",
	} {
		_, err := Parse(text)
		if err == nil {
			t.Errorf("Parse(%q) took it, want %s", text, want)
			continue
		}
		if err.Error() != want {
			t.Errorf("Parse(%q):\n got %s\nwant %s", text, err, want)
		}
	}
}

func TestParse_refs(t *testing.T) {
	const text = `last(/Zabbix server/vfs.fs.size[/,"a]b",[x,y]])>1G and avg(/db-1/a.b_c,1h:now-1d)=last(/Zabbix server/vfs.fs.size[/,"a]b",[x,y]],#3)`
	e, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []Ref{{"Zabbix server", `vfs.fs.size[/,"a]b",[x,y]]`}, {"db-1", "a.b_c"}}
	if len(e.Refs) != 2 || e.Refs[0] != want[0] || e.Refs[1] != want[1] {
		t.Errorf("refs %q, want %q", e.Refs, want)
	}
	if len(e.Program.Funcs) != 3 || e.Program.Funcs[2].Ref != 0 {
		t.Errorf("functions %+v", e.Program.Funcs)
	}
}

func TestParse_broken(t *testing.T) {
	for text, want := range map[string]string{
		"last(/h/k)>{$MAX}":                       "",
		"avg(/h/k,{$PERIOD})>1":                   "the macro {$PERIOD} has no value",
		"trendavg(/h/k,1M:now/M)>1":               "",
		"baselinedev(/h/k,1d:now/d,\"d\",7)>1":    "",
		"trendstl(/h/k,100h:now/h,10h,2h)>1":      "",
		"avg(last_foreach(/*/k?[tag=\"a:b\"]))>1": "functions of many items (_foreach) are not evaluated in triggers",
		"find(/h/k,,\"regexp\",\"@errors\")=1":    problemGlobalRegexp,
	} {
		e, err := Parse(text)
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
			continue
		}
		if e.Program.Broken() != want {
			t.Errorf("Parse(%q) is broken because %q, want %q", text, e.Program.Broken(), want)
		}
	}
}

func TestInterner_sharesEqualPrograms(t *testing.T) {
	var n Interner
	programs := make([]*Program, 0, 4)
	for _, text := range []string{"last(/a/x)>5", "last(/b/y) > 5", "last(/b/y)>6", "avg(/a/x,5m)>5"} {
		e, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, n.Intern(e.Program))
	}
	if programs[0] != programs[1] {
		t.Error("equal programs are not shared")
	}
	if programs[1] == programs[2] || n.Len() != 3 {
		t.Errorf("%d programs, want 3", n.Len())
	}
	n.Release(programs[0])
	if n.Len() != 3 {
		t.Error("a program that is still used was forgotten")
	}
	n.Release(programs[1])
	if n.Len() != 2 {
		t.Error("a program that is not used is kept")
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"last(/h/k)>10", `count(/h/k,#5,"regexp","^a")<>0 or not (1=2)`, "avg(/h/k[{#A},\"b\"],1h:now/h-1d)/1.5e3>-{$X:\"}\"}",
		"min(1,max(2,3))", `concat("a","\"\\")="b"`, "nodata(/h/k,30)", "time()>090000", "((((1))))", "timeleft(/h/k,1h,5K,polynomial3)", "a_foreach(/*/k?[group=\"x\"],1)",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			if _, ok := err.(*SyntaxError); !ok {
				t.Fatalf("error is a %T", err)
			}
			return
		}
		var m Machine
		m.Values = noValues{}
		m.Evaluate(t.Context(), e.Program, make([]Item, len(e.Refs)), Moment{At: 1e18, Now: 1e18})
	})
}

func TestParseRetention(t *testing.T) {
	f := func(text string, want time.Duration, ok bool) {
		t.Helper()
		if got, is := ParseRetention(text); got != want || is != ok {
			t.Errorf("ParseRetention(%q) = %v, %v, want %v, %v", text, got, is, want, ok)
		}
	}
	f("0", 0, true)
	f("31d", 31*24*time.Hour, true)
	f("3650d", 3650*24*time.Hour, true)
	f("9125d", MaxRetention, true)
	f("788400000", MaxRetention, true)
	f("9126d", 0, false)
	f("788400001", 0, false)
	f("10y", 0, false)
	f("99999999999999999999d", 0, false)
	f("-1d", 0, false)
	f("", 0, false)
}

func TestKeySpans(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		var got []string
		for _, s := range KeySpans(text) {
			got = append(got, text[s[0]:s[1]])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: found %q, want %q", text, got, want)
		}
	}
	f("")
	f("1/2+(3)/4 and {$A}/5")
	f(`last(/h/k)/2`, "k")
	f(`last( /h/k[{$A},"x]"],#2)={$B} or count(/h/b[{$A:"q"}],5m,"eq","last(/h/no)")>1`, `k[{$A},"x]"]`, `b[{$A:"q"}]`)
	f(`avg(last_foreach(/*/vfs[*,{$A}]?[tag="a"]))>{$A:"last(/h/no)"}`, `vfs[*,{$A}]?[tag="a"]`)
	f(`last(/h/k[`)
	f(`last(/h/k)="`, "k")
}

// The parser finds what KeySpans finds.
func FuzzKeySpans(f *testing.F) {
	f.Add(`last(/h/k[a,"b"],#2)=1 and max(/h/x,5m)/2>(3)/4`)
	f.Add(`avg(last_foreach(/*/vfs[*]?[tag="a"]))>1`)
	f.Fuzz(func(t *testing.T, text string) {
		spans := KeySpans(text)
		e, err := Parse(text)
		if err != nil {
			return
		}
		for _, ref := range e.Refs {
			if !slices.ContainsFunc(spans, func(s [2]int) bool { return text[s[0]:s[1]] == ref.Key }) {
				t.Errorf("%q: the key %q is not found", text, ref.Key)
			}
		}
	})
}
