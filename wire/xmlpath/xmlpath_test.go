package xmlpath

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const rack = `<?xml version="1.0"?>
<rack site="A &amp; B">
  <unit n="1"><temp>21.5</temp><note>a &lt; b</note></unit>
  <unit n="2"><temp>30</temp><empty/></unit>
  <!-- spare -->
</rack>`

func TestQuery(t *testing.T) {
	d, err := Parse([]byte(rack))
	if err != nil {
		t.Fatal(err)
	}
	f := func(path, want string) {
		t.Helper()
		p, err := Compile(path)
		var got []byte
		if err == nil {
			got, err = d.Query(p)
		}
		if err != nil {
			got = []byte("error: " + err.Error())
		}
		if string(got) != want {
			t.Errorf("%s\n got %s\nwant %s", path, got, want)
		}
	}
	f(`/rack/unit[1]/temp`, `<temp>21.5</temp>`)
	f(`/rack/unit[@n="2"]/temp/text()`, `30`)
	f(`/rack/unit/temp/text()`, `21.530`)
	f(`/rack/unit[1]/note/text()`, `a &lt; b`)
	f(`string(/rack/unit[1]/note)`, `a < b`)
	f(`/rack/unit[2]/empty`, `<empty/>`)
	f(`/rack/@site`, ` site="A &amp; B"`)
	f(`string(/rack/@site)`, `A & B`)
	f(`number(/rack/unit[2]/@n)`, `2`)
	f(`count(//unit)`, `2`)
	f(`sum(//temp)`, `51.5`)
	f(`count(//unit) > 1`, `1`)
	f(`boolean(//none)`, `0`)
	f(`//none`, ``)
	f(`number(//note)`, `error: XPath "number(//note)" gives no number`)
	f(`//unit[`, `error: XPath "//unit[": expression must evaluate to a node-set`)
}

func TestParse(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if _, err := Parse([]byte(text)); fmt.Sprint(err) != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	f("", "invalid XML: line 1: expected an element, found the end")
	f("text", "invalid XML: line 1: expected an element, found text")
	f("<a><b></a>", "invalid XML: line 1: expected the end of <b>, found </a>")
	f("<a>\n<b>", "invalid XML: line 2: expected the end of <b>, found the end")
	f("<a/><b/>", "invalid XML: line 1: expected one element at the top, found another: <b>")
	f("<a>&unknown;</a>", "invalid XML: XML syntax error on line 1: invalid character entity &unknown;")
	f(strings.Repeat("<a>", 300), "invalid XML: line 1: expected at most 256 levels")
	f("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>\xe9</a>", "<nil>")
}

func TestJSON(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		d, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(d.JSON()); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
	f(`<a/>`, `{"a":null}`)
	f(`<a>b</a>`, `{"a":"b"}`)
	f(`<a b="c"/>`, `{"a":{"@b":"c"}}`)
	f(`<a b="">c</a>`, `{"a":{"@b":"","#text":"c"}}`)
	f(`<a><b>1</b><c/><b x="2">3</b></a>`, `{"a":{"b":["1",{"@x":"2","#text":"3"}],"c":null}}`)
	f("<n:a>\n <b>é\"</b>\n</n:a>", `{"n:a":{"b":"é\""}}`)
	f(`<a>x<b/>y<![CDATA[<z>]]></a>`, `{"a":{"#text":"xy<z>","b":null}}`)
}

func TestExpensivePathEnds(t *testing.T) {
	d, err := Parse([]byte("<a>" + strings.Repeat("<b><c/></b>", 20_000) + "</a>"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile("//b[count(//c) > 1]")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.query(p, 100_000); err != ErrTooMuch {
		t.Errorf("error %v, want %v", err, ErrTooMuch)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(rack, "//unit[@n=1]/temp")
	f.Add(`<a b="&#10;"><![CDATA[x]]></a>`, "string(/a)")
	f.Fuzz(func(t *testing.T, text, path string) {
		d, err := Parse([]byte(text))
		if err != nil {
			return
		}
		if out := d.JSON(); !json.Valid(out) {
			t.Fatalf("%q gives %q, which is no JSON", text, out)
		}
		again, err := Parse(d.root.appendXML(nil))
		if err == nil && string(again.JSON()) != string(d.JSON()) {
			t.Fatalf("%q reads back as %s, was %s", text, again.JSON(), d.JSON())
		}
		if p, err := Compile(path); err == nil {
			_, _ = d.Query(p)
		}
	})
}
