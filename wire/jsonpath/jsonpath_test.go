package jsonpath

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const shop = `{
 "goods": [
  {"name":"anchor","price":12.5,"kind":"metal","tags":["a","b"],"ok":true},
  {"name":"buoy","price":"7","kind":"foam","tags":["c"]},
  {"name":"chart \"N\"","price":3,"kind":"paper","sheet":4,"tags":[],"ok":false}
 ],
 "limit": {"price": 5, "kind": "metal", "no kind": null},
 "deep": {"x": {"price": 100}, "list": [{"y": [1, [2, 3]]}]},
 "list": ["p", "q", "r", "s"], "empty": [], "": "blank", "\u00e9": 1
}`

func TestQuery(t *testing.T) {
	f := func(path, want string) {
		t.Helper()
		d, err := Parse([]byte(shop))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		p, err := Compile(path)
		if err == nil {
			var text []byte
			var found bool
			text, found, err = d.Query(p)
			got = string(text)
			if err == nil && !found {
				got = "nothing"
			}
		}
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", path, got, want)
		}
	}
	// One place.
	f(`$.limit.price`, `5`)
	f(`$.limit['no kind']`, `null`)
	f(`$["limit"].["kind"]`, `metal`)
	f(`$.goods[2].name`, `chart "N"`)
	f(`$.goods[-1].sheet`, `4`)
	f(`$.goods[3]`, `nothing`)
	f(`$.list.x`, `nothing`)
	f(`$['']`, `blank`)
	f(`$.limit`, `{"price": 5, "kind": "metal", "no kind": null}`)
	f("$['é']", `1`)
	// Several.
	f(`$.goods[*].name`, `["anchor","buoy","chart \"N\""]`)
	f(`$.goods.*.price`, `[12.5,"7",3]`)
	f(`$..price`, `[12.5,"7",3,5,100]`)
	f(`$.deep..y[1]`, `[[2, 3]]`)
	f(`$.deep..y..[0]`, `[1,2]`)
	f(`$.list[0,2]`, `["p","r"]`)
	f(`$.list[:]`, `["p","q","r","s"]`)
	f(`$.list[1:-1]`, `["q","r"]`)
	f(`$.list[-2:]`, `["r","s"]`)
	f(`$.list[7:]`, `nothing`)
	f(`$.limit['kind', "price"]`, `["metal",5]`)
	// Filters.
	f(`$.goods[?(@.price > $.limit.price)].name`, `["anchor","buoy"]`)
	f(`$.goods[?(@.kind == 'metal' || @.price == 1 + 2)].name`, `["anchor","chart \"N\""]`)
	f(`$.goods[?(@.price >= 7 && !(@.kind == "foam"))].name.first()`, `anchor`)
	f(`$.goods[?(@.sheet)].name.first()`, `chart "N"`)
	f(`$.goods[?(!@.sheet)].name`, `["anchor","buoy"]`)
	f(`$.goods[?(@.ok == "true")].name`, `["anchor"]`)
	f(`$.goods[?(@.ok == true)].name`, `["anchor"]`)
	f(`$.goods[?(@["name"] =~ "^[ab]")].price`, `[12.5,"7"]`)
	f(`$.goods[?(@.name =~ '(?=.*y$)b')].price.first()`, `7`)
	f(`$..[?(@.price < 4)].name`, `["chart \"N\""]`)
	f(`$.goods[?(@.tags.length() == 2)].name`, `["anchor"]`)
	f(`$.goods[?(@.price*2 - 1 == 5)].name`, `["chart \"N\""]`)
	f(`$.goods[?(@.none != "x")].name.length()`, `3`)
	f(`$.goods[?(@.none < 5)]`, `nothing`)
	f(`$.goods[?(@.price == 3 == 1)].name`, `["chart \"N\""]`)
	f(`$.goods[?(@.price == -3 + 6)].name`, `["chart \"N\""]`)
	f(`$.list[?(@ == "q")]`, `["q"]`)
	f(`$.goods[?(@.kind == $.limit.none)]`, `nothing`)
	// Functions.
	f(`$.list.length()`, `4`)
	f(`$.empty.length()`, `0`)
	f(`$.goods[?(@.price > 99)].length()`, `0`)
	f(`$.none.length()`, `nothing`)
	f(`$.goods[*].price.sum()`, `22.5`)
	f(`$.goods[*].price.avg()`, `7.5`)
	f(`$.goods[*].price.min()`, `3`)
	f(`$..price.max()`, `100`)
	f(`$..tags.first().length()`, `2`)
	f(`$.goods.first().name`, `anchor`)
	f(`$.empty.first()`, `nothing`)
	f(`$.empty.sum()`, `error: the function sum() has no values`)
	f(`$.list.sum()`, `error: the function sum() needs numbers, found "p"`)
	f(`$.limit.length()`, `error: the function length() needs a list, found {"price": 5, "kind": "metal", "no kind": null}`)
	f(`$.list.length().first()`, `error: nothing can follow a function whose result is a number`)
	f(`$.limit.*~`, `["price","kind","no kind"]`)
	f(`$.limit.kind~`, `kind`)
	f(`$.goods[?(@.sheet)]~`, `["2"]`)
	f(`$..[?(@.price == 100)]~.first()`, `x`)
	// Mistakes.
	f(``, `error: the JSONPath is empty`)
	f(`limit`, `error: JSONPath "limit", column 1: expected $`)
	f(`$.`, `error: JSONPath "$.", column 3: expected a name, * or a function, found the end`)
	f(`$.a b`, `error: JSONPath "$.a b", column 4: expected . or [, found ' '`)
	f(`$[`, `error: JSONPath "$[", column 3: expected a name in quotes, an index, a slice, * or ?, found the end`)
	f(`$['a'`, `error: JSONPath "$['a'", column 6: expected ], found the end`)
	f(`$.a.size()`, `error: JSONPath "$.a.size()", column 5: expected one of the functions length() first() min() max() avg() sum()`)
	f(`$[?(@.a =~ "[a-z")]`, `error: JSONPath "$[?(@.a =~ \"[a-z\")]", column 18: regular expression "[a-z": error parsing regexp: unterminated [] set in `+"`[a-z`")
	f(`$[?(@.a == )]`, `error: JSONPath "$[?(@.a == )]", column 12: expected a path, a number or a text in quotes, found ')'`)
}

func TestParse(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := Parse([]byte(text))
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	f(``, `invalid JSON at byte 0: expected a value, found the end`)
	f(`{"a":1,}`, `invalid JSON at byte 7: expected a name in quotes, found '}'`)
	f(`[1 2]`, `invalid JSON at byte 3: expected , or ], found '2'`)
	f(`[1]x`, `invalid JSON at byte 3: expected the end, found 'x'`)
	f(`01`, `invalid JSON at byte 2: expected a number without leading zeros`)
	f("\"a\nb\"", `invalid JSON at byte 2: expected no control character in a string`)
	f(`"\x"`, `invalid JSON at byte 2: expected one of " \ / b f n r t u behind \`)
	f(strings.Repeat("[", 600), `invalid JSON at byte 512: expected at most 512 levels`)
	f(`{"a":[1,-0.5e+3,"\ud83d\ude00",true,false,null,{}]}`, `<nil>`)
	d, err := Parse([]byte(`{"a":"\ud83d\ude00 \ud83d \u0041\/"}`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile("$.a")
	if err != nil {
		t.Fatal(err)
	}
	if text, _, err := d.Query(p); err != nil || string(text) != "😀 � A/" {
		t.Errorf("%q %v", text, err)
	}
}

func TestExpensivePathEnds(t *testing.T) {
	d, err := Parse([]byte("[" + strings.Repeat(`[{"a":1}],`, 20_000) + "0]"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(`$..[?($..a)]`)
	if err != nil {
		t.Fatal(err)
	}
	q := query{Document: d, limit: 100_000}
	if _, err := q.walk(p.segments, 0); err != ErrTooMuch {
		t.Errorf("error %v, want %v", err, ErrTooMuch)
	}
}

// FuzzQuery compares the parser with encoding/json and looks that results are JSON again.
func FuzzQuery(f *testing.F) {
	for _, p := range []string{`$.goods[?(@.price > 1)].name`, `$..*~`, `$[0:2]`, `$.a.first()`, `$..[?(@ =~ "a")].sum()`, `$['a','b']`} {
		f.Add(shop, p)
	}
	f.Add(`[1e5,"\u00e9",{"a":{}}]`, `$..*`)
	f.Fuzz(func(t *testing.T, text, path string) {
		d, err := Parse([]byte(text))
		if valid := json.Valid([]byte(text)); (err == nil) != valid && !(valid && strings.Contains(err.Error(), "levels")) {
			t.Fatalf("%q: %v, but encoding/json says %v", text, err, valid)
		}
		if err != nil || len(text) > 4096 {
			return
		}
		p, err := Compile(path)
		if err != nil {
			return
		}
		out, found, err := d.Query(p)
		if err != nil || !found || len(out) == 0 || out[0] != '[' {
			return
		}
		if q := (query{Document: d, limit: maxSteps}); !json.Valid(out) {
			r, err := q.walk(p.segments, 0)
			if err != nil || !r.definite {
				t.Fatalf("%s of %q gives %q, which is no JSON", path, text, out)
			}
		}
	})
}

func bigDocument() []byte {
	var b strings.Builder
	b.WriteString(`{"list":[`)
	for i := range 1000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"disk%d","read":%d,"write":%d.5,"labels":{"bus":"pci","slot":"%d"}}`, i, i*7, i, i)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func BenchmarkParse(b *testing.B) {
	text := bigDocument()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkQuery(b *testing.B) {
	d, err := Parse(bigDocument())
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range []string{`$.list[500].read`, `$.list[?(@.name == "disk500")].read.first()`, `$..read.sum()`} {
		p, err := Compile(path)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(path, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, found, err := d.Query(p); err != nil || !found {
					b.Fatal(found, err)
				}
			}
		})
	}
}
