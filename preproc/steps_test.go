package preproc

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tidemark/model"
)

// yields runs one value through one step of a text item and compares the result; failures are shown without what stands before the
// value.
func yields(t *testing.T, vt model.ValueType, s model.Step, in, want string) {
	t.Helper()
	got := run(t, vt, []model.Step{s}, in)[0]
	if _, why, ok := strings.Cut(got, fmt.Sprintf(" failed for value %q: ", shorten([]byte(in)))); ok {
		got = "failed: " + why
	}
	if got != want {
		t.Errorf("%s %q of %q\n got %s\nwant %s", stepName(s.Type), s.Params, in, got, want)
	}
}

func TestNumberSteps(t *testing.T) {
	f := func(vt model.ValueType, s model.Step, in, want string) { t.Helper(); yields(t, vt, s, in, want) }
	// Unsigned items lose the fraction before they are multiplied, others keep it.
	f(model.Uint, one(model.StepMultiplier, "10"), "0.9", "unsigned:0")
	f(model.Uint, one(model.StepMultiplier, "1.5"), "3", "unsigned:4")
	f(model.Uint, one(model.StepMultiplier, "2"), "18446744073709551615", "unsigned:18446744073709551614")
	f(model.Uint, one(model.StepMultiplier, "2"), "-1", `failed: cannot convert "-1" to an unsigned integer`)
	f(model.Float, one(model.StepMultiplier, "1.5e1"), "1.5e1", "float:225")
	f(model.Float, one(model.StepMultiplier, "2"), "x", `failed: cannot convert "x" to a number`)
	f(model.Text, one(model.StepMultiplier, "1.5"), "3", "text:4")
	f(model.Text, one(model.StepMultiplier, "1.5"), "3.0", "text:4.5")
	f(model.Text, one(model.StepMultiplier, "a"), "3", `unsupported:preprocessing step 1 (multiplier): multiplier "a" is no number`)
	f(model.Uint, one(model.StepBoolToDecimal), "RUNNING", "unsigned:1")
	f(model.Uint, one(model.StepBoolToDecimal), "-0.5", "unsigned:1")
	f(model.Uint, one(model.StepBoolToDecimal), "maybe", `failed: "maybe" is no boolean; expected a word such as true, false, up, down, enabled or a number`)
	f(model.Uint, one(model.StepOctalToDecimal), "777", "unsigned:511")
	f(model.Uint, one(model.StepOctalToDecimal), "8", `failed: "8" is no number to base 8`)
	f(model.Uint, one(model.StepHexToDecimal), "\"ffff FFFF\nFFFF FFFF\"", "unsigned:18446744073709551615")
	f(model.Uint, one(model.StepHexToDecimal), "fg", `failed: "fg" is no number to base 16`)
	f(model.Float, one(model.StepInRange, "-1", "1"), "1", "float:1")
	f(model.Float, one(model.StepInRange, "2", "1"), "1", `unsupported:preprocessing step 1 (in range): the lower limit 2 is above the upper one 1`)
	f(model.Float, one(model.StepInRange, "", ""), "1", `unsupported:preprocessing step 1 (in range): both limits are empty; expected at least one`)
	f(model.Uint, one(model.StepInRange, "18446744073709551614", ""), "18446744073709551613", `failed: the value is below 18446744073709551614`)
}

func TestTextSteps(t *testing.T) {
	f := func(s model.Step, in, want string) { t.Helper(); yields(t, model.Text, s, in, want) }
	f(one(model.StepRightTrim, `\s\n`), " a \n", "text: a")
	f(one(model.StepLeftTrim, `\t `), "\t a ", "text:a ")
	f(one(model.StepReplace, `\n1\r2\t3\s4`, "OK"), "\n1\r2\t3 4", "text:OK")
	f(one(model.StepReplace, `\\t`, "OK"), `\t`, "text:OK")
	f(one(model.StepReplace, `\`, "OK"), `\`, "text:OK")
	f(one(model.StepReplace, "", "x"), "a", "unsupported:preprocessing step 1 (replace): the text to search for is empty")
	f(one(model.StepRegex, `^(\w+)\s(?!b)(\w+)$`, `\2-\1-\3-\0`), "a c\n", "text:c-a--a c")
	f(one(model.StepRegex, `(`, ``), "a", "unsupported:preprocessing step 1 (regular expression): regular expression \"(\": error parsing regexp: missing closing ) in `(`")
	f(one(model.StepMatchesRegex, "^a"), "ab", "text:ab")
	f(one(model.StepMatchesRegex, "^a"), "b", `failed: the value does not match "^a"`)
	f(one(model.StepNotMatchesRegex, "^a"), "ab", `failed: the value matches "^a"`)
	f(one(model.StepCheckRegexError, `err(or)?: (.*)`, `found \2`), "error: disk", "unsupported:found disk")
	f(one(model.StepCheckRegexError, `err`, ``), "fine", "text:fine")
}

func TestXMLSteps(t *testing.T) {
	f := func(s model.Step, in, want string) { t.Helper(); yields(t, model.Text, s, in, want) }
	f(one(model.StepXMLPath, "/a/b"), "<a><b>1</b><b>2</b></a>", "text:<b>1</b><b>2</b>")
	f(one(model.StepXMLPath, "/a/b/text()"), "<a><b>1</b></a>", "text:1")
	f(one(model.StepXMLPath, "/a/c"), "<a/>", "text:")
	f(one(model.StepXMLPath, "/a"), "<a>", "failed: invalid XML: line 1: expected the end of <a>, found the end")
	f(one(model.StepCheckXMLError, "string(/a/error)"), "<a><error> no disk </error></a>", "unsupported:no disk")
	f(one(model.StepCheckXMLError, "/a/error"), "<a><b/></a>", "text:<a><b/></a>")
	f(one(model.StepCheckXMLError, "/a/error"), "no XML", "text:no XML")
	f(one(model.StepXMLToJSON), `<a x="1">b</a>`, `text:{"a":{"@x":"1","#text":"b"}}`)
}

func TestPrometheusSteps(t *testing.T) {
	const page = "# TYPE cpu gauge\n# HELP cpu Share.\ncpu{n=\"0\",host=\"a,b\"} 1.10\ncpu{n=\"1\"} 3\nup 1\n"
	f := func(s model.Step, want string) { t.Helper(); yields(t, model.Text, s, page, want) }
	f(one(model.StepPrometheusPattern, `cpu{n="0"}`, "value", ""), "text:1.10")
	f(one(model.StepPrometheusPattern, `cpu{n="0"}`, `\value`), "text:1.10")
	f(one(model.StepPrometheusPattern, `cpu == 1.1`, "label", "host"), "text:a,b")
	f(one(model.StepPrometheusPattern, `cpu{n="0"}`, "host"), "text:a,b")
	f(one(model.StepPrometheusPattern, `cpu`, "function", "sum"), "text:4.1")
	f(one(model.StepPrometheusPattern, `cpu`, "function", "avg"), "text:2.05")
	f(one(model.StepPrometheusPattern, `cpu`, "function", "min"), "text:1.1")
	f(one(model.StepPrometheusPattern, `cpu`, "function", "max"), "text:3")
	f(one(model.StepPrometheusPattern, `none`, "function", "count"), "text:0")
	f(one(model.StepPrometheusPattern, `none`, "function", "sum"), "failed: no metric matches the pattern")
	f(one(model.StepPrometheusPattern, `cpu`, "value", ""), `failed: 2 metrics match "cpu"; expected one`)
	f(one(model.StepPrometheusPattern, `none`, "value", ""), `failed: no metric matches "none"`)
	f(one(model.StepPrometheusPattern, `up`, "label", "x"), `failed: the metric has no label "x"`)
	f(one(model.StepPrometheusPattern, `up`, "gpu", "x"), `unsupported:preprocessing step 1 (Prometheus pattern): "gpu" is no result of a Prometheus pattern; expected value, label or function`)
	f(one(model.StepPrometheusToJSON, `cpu{n="0"}`),
		`text:[{"name":"cpu","value":"1.10","line_raw":"cpu{n=\"0\",host=\"a,b\"} 1.10","labels":{"n":"0","host":"a,b"},"type":"gauge","help":"Share."}]`)
	f(one(model.StepPrometheusToJSON, `up`), `text:[{"name":"up","value":"1","line_raw":"up 1","type":"untyped"}]`)
	f(one(model.StepPrometheusToJSON, `none`), `text:[]`)
	yields(t, model.Text, one(model.StepPrometheusToJSON, ""), "up{x} 1", "failed: invalid metrics in line 1: expected = behind the label x")
}

func TestCSVToJSON(t *testing.T) {
	f := func(in, want string, params ...string) {
		t.Helper()
		yields(t, model.Text, one(model.StepCSVToJSON, params...), in, want)
	}
	f("1,2,3", `text:[{"1":"1","2":"2","3":"3"}]`, "", "", "0")
	f("a;b\r\n1;\"x;\"\"y\"\"\"", `text:[{"a":"1","b":"x;\"y\""}]`, ";", `"`, "1")
	f("sep=.\nA.B\n1.2\n", `text:[{"A":"1","B":"2"},{"A":"","B":""}]`, "", "", "1")
	f("SEP=|\n1|2", `text:[{"1":"1|2"}]`, ",", "", "0")
	f("a,b\n1", `text:[{"a":"1","b":""}]`, ",", "", "1")
	f("a,b", `text:[]`, ",", "", "1")
	f("", `text:[]`, ",", "", "0")
	f("\"a\nb\",c", `text:[{"1":"a\nb","2":"c"}]`, ",", `"`, "0")
	f("a,b\n1,2,3", `failed: row 2: found 3 fields, the header has 2`, ",", "", "1")
	f("a,a\n1,2", `failed: two columns have the name "a"`, ",", "", "1")
	f("\"a", `failed: row 1: expected a closing quote, found the end`, ",", `"`, "0")
	f("\"a\"b,c", `failed: row 1: expected a delimiter behind the closing quote`, ",", `"`, "0")
	f("a", `unsupported:preprocessing step 1 (CSV to JSON): delimiter ";;" has more than one character`, ";;", "", "0")
	f("a", `unsupported:preprocessing step 1 (CSV to JSON): "2" says not whether there is a header row; expected 0 or 1`, ",", "", "2")
}

func TestSNMPSteps(t *testing.T) {
	const walked = `.1.3.6.2.1 = STRING: "up \"one\"
two"
.1.3.6.2.2 = STRING: plain
more
.1.3.6.2.30 = Hex-STRING: 74 65 73 74 20 
D1 91 00
.1.3.6.3.1 = INTEGER: 5
.1.3.6.3.2 = 17
.1.3.6.3.3 = NULL
.1.3.6.4.1 = BITS: 01 02
.1.3.6.4.2 = Opaque: Float: 0.46
.1.3.6.4.3 = Wrong Type (should be Gauge32 or Unsigned32): Counter32: 123
.1.3.6.4.4 = ""
.1.3.6.5.1 = No more variables left in this MIB View (It is past the end of the MIB tree)
`
	f := func(want string, params ...string) {
		t.Helper()
		yields(t, model.Text, one(model.StepSNMPWalkValue, params...), walked, want)
	}
	f("text:up \"one\"\ntwo", ".1.3.6.2.1", "0")
	f("text:plain\nmore", "1.3.6.2.2", "0")
	f("text:74 65 73 74 20 D1 91 00", ".1.3.6.2.30", "0")
	f("text:test ё", ".1.3.6.2.30", "1")
	f("text:74:65:73:74:20:D1:91:00", ".1.3.6.2.30", "2")
	f("text:5", ".1.3.6.3.1", "1")
	f("text:17", ".1.3.6.3.2", "0")
	f("text:NULL", ".1.3.6.3.3", "0")
	f("text:513", ".1.3.6.4.1", "3")
	f("text:0.46", ".1.3.6.4.2", "0")
	f("text:123", ".1.3.6.4.3", "0")
	f("text:", ".1.3.6.4.4", "0")
	f("failed: the walk has no OID .1.3.6.5.1", ".1.3.6.5.1", "0")
	f(`unsupported:preprocessing step 1 (SNMP walk value): "IF-MIB::ifDescr" is no OID; expected numbers such as .1.3.6.1.2.1.1.5.0`, "IF-MIB::ifDescr", "0")
	f(`unsupported:preprocessing step 1 (SNMP walk value): "4" is no format; expected 0 unchanged, 1 UTF-8, 2 MAC or 3 BITS`, ".1.3", "4")
	j := func(in, want string, params ...string) {
		t.Helper()
		yields(t, model.Text, one(model.StepSNMPWalkToJSON, params...), in, want)
	}
	j(walked, `text:[{"{#SNMPINDEX}":"1","{#NAME}":"up \"one\"\ntwo","{#N}":"5"},{"{#SNMPINDEX}":"2","{#NAME}":"plain\nmore","{#N}":"17"},`+
		`{"{#SNMPINDEX}":"30","{#NAME}":"test ё"},{"{#SNMPINDEX}":"3","{#N}":null}]`, "{#NAME}", "1.3.6.2.", "1", "{#N}", ".1.3.6.3", "0")
	j("", "text:[]", "{#A}", ".1.3", "0")
	j(walked, "failed: the walk has none of the OIDs", "{#A}", ".1.3.6.9", "0")
	j("bad data", `failed: invalid SNMP walk: expected .OID = value, found "bad data"`, "{#A}", ".1.3", "0")
	j(".1.3 = STRING: \"a", `failed: invalid SNMP walk at .1.3: expected a closing quote, found the end`, "{#A}", ".1.3", "0")
	j(".1.3.1 = Wrong Type (should be Gauge32): Counter32 1", `failed: invalid SNMP walk at .1.3.1: expected a type and a value behind the warning about a wrong type`, "{#A}", ".1.3", "0")
	j(walked, `unsupported:preprocessing step 1 (SNMP walk to JSON): found 2 parameters; expected name, OID and format of each field`, "{#A}", ".1.3")
	g := func(in, format, want string) {
		t.Helper()
		yields(t, model.Text, one(model.StepSNMPGetValue, format), in, want)
	}
	g("74 65 73 74 20 D1 91 FF", "1", "text:test ё?")
	g("FE EE 15 15\n", "3", "text:353758974")
	g("01 02 03 04 05 06 07 08 09 10", "3", "text:578437695752307201")
	g("0a 1B", "2", "text:0a:1B")
	g("74 X5", "1", `failed: "X5" is no byte in hexadecimal`)
	g("74 5", "1", `failed: "5" is no byte in hexadecimal`)
}

func TestCheckUnsupported(t *testing.T) {
	check := func(fail model.OnFail, value string, params ...string) model.Step {
		return model.Step{Type: model.StepCheckUnsupported, Params: params, OnFail: fail, FailValue: value}
	}
	f := func(failure, want string, steps ...model.Step) {
		t.Helper()
		sink := &fakeSink{}
		p := New(Options{Items: fakeItems{1: {ID: 1, ValueType: model.Text, Steps: steps}}, Sink: sink})
		b := model.NewBatch()
		b.AppendString(1, 1, model.Unsupported, failure)
		if err := p.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(sink.got, "|"); got != want {
			t.Errorf("%q: got %s, want %s", failure, got, want)
		}
	}
	f("gone", "unsupported:gone", one(model.StepTrim, " "))
	f("gone", "text:0", check(model.FailSetValue, "0"))
	f("gone", "", check(model.FailDiscard, "", "-1"))
	f("gone", "unsupported:else", check(model.FailSetError, "else", "-1"))
	f("code 404: none", `text:404`, check(model.FailSetValue, `\1`, "0", `code (\d+)`))
	f("code 404: none", "unsupported:code 404: none", check(model.FailSetValue, "x", "0", `timeout`))
	f("code 404: none", "text:x", check(model.FailSetValue, "x", "1", `timeout`))
	// The check for any error is the last one wherever it stands, and all come before other steps.
	f("code 404", "text:first!", one(model.StepReplace, "?", "!"), check(model.FailSetValue, "any"), check(model.FailSetValue, "first?", "0", "404"))
	f("x", `unsupported:preprocessing step 1 (check for not supported value): "7" is no way to match errors; expected -1, 0 or 1`, check(model.FailSetValue, "", "7"))
}

func FuzzCSV(f *testing.F) {
	f.Add("sep=;\na;b\n1;\"x\"\"\"\n", "", `"`, true)
	f.Add("a,b\r\n", ",", "", false)
	f.Fuzz(func(t *testing.T, text, delimiter, quote string, header bool) {
		h := "0"
		if header {
			h = "1"
		}
		run, err := compileCSVToJSON(one(model.StepCSVToJSON, delimiter, quote, h))
		if err != nil {
			return
		}
		out, err := run(nil, textValue([]byte(text)), 0)
		if err == nil && !json.Valid(out.text) {
			t.Fatalf("%q gives %q, which is no JSON", text, out.text)
		}
	})
}

func FuzzWalk(f *testing.F) {
	f.Add(".1.3.1 = STRING: \"a\\\"\n\"\n.1.3.2 = Hex-STRING: 01 \n02\n", 1)
	f.Add(".1 = Wrong Type (should be X): Counter32: 1\n.2 = NULL", 0)
	f.Fuzz(func(t *testing.T, text string, format int) {
		w, err := parseWalk(text)
		if err != nil {
			return
		}
		out, err := w.toJSON([]column{{"{#A}", ".1", format & 3}, {"{#B}", ".1.3", 0}})
		if err == nil && !json.Valid(out) {
			t.Fatalf("%q gives %q, which is no JSON", text, out)
		}
	})
}
