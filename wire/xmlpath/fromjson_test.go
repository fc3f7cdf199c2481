package xmlpath

import "testing"

func TestFromJSON(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		got, err := FromJSON([]byte(text))
		if err != nil {
			got = []byte("error: " + err.Error())
		} else {
			want = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + want + "\n"
		}
		if string(got) != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
	f(`{"a":null}`, `<a/>`)
	f(`{"a":"x < \"y\" & z"}`, `<a>x &lt; &quot;y&quot; &amp; z</a>`)
	f(`{"a":{"@n":"1","#text":"t","b":["1",{"c":null},null],"d":2.50,"e":true}}`, `<a n="1">t<b>1</b><b><c/></b><b/><d>2.50</d><e>true</e></a>`)
	f(`{"a":{"@n":null}}`, `<a n=""/>`)
	f(`{"a":"\u0001x"}`, `<a>x</a>`)
	f(`{"a":1,"b":2}`, `error: expected a JSON object with one member, the element at the top`)
	f(`["a"]`, `error: expected a JSON object with one member, the element at the top`)
	f(`{"a":["x"]}`, `error: the element at the top is a list; expected one`)
	f(`{"a":{"b":[["x"]]}}`, `error: "b" is a list of lists; expected a list of elements`)
	f(`{"a b":1}`, `error: "a b" is no name of an XML element or attribute`)
	f(`{"a":{"@b":{}}}`, `error: the attribute "b" is no text`)
	f(`{"a":{"#text":["x"]}}`, `error: #text is no text`)
	f(`{"a":1} 2`, `error: the JSON has something behind its end`)
	f(`{"a":`, `error: the JSON cannot be read at byte 5: EOF`)
}

// FuzzFromJSON reads back what it wrote.
func FuzzFromJSON(f *testing.F) {
	f.Add(`{"a":{"@n":"1","#text":"t","b":["1",{"c":null}]}}`)
	f.Add(`{"é":"\u2028"}`)
	f.Fuzz(func(t *testing.T, text string) {
		out, err := FromJSON([]byte(text))
		if err != nil {
			return
		}
		if _, err := Parse(out); err != nil && len(out) < MaxBytes {
			t.Fatalf("%s: %v", out, err)
		}
	})
}
