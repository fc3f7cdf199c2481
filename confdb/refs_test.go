package confdb

import (
	"slices"
	"strings"
	"testing"
)

func TestItemRefs(t *testing.T) {
	tests := []struct {
		text string
		want []string // host|key
		err  string
	}{
		{`last(/h/k)>1`, []string{"h|k"}, ""},
		{`avg(/my host/vfs.fs.size[/,pused],5m)/last( /h2/k)`, []string{"my host|vfs.fs.size[/,pused]", "h2|k"}, ""},
		{`min(/h/k["a]b",c],#3:now-1d)`, []string{`h|k["a]b",c]`}, ""},
		{`find(/h/k,,"like","last(/x/y)")=1`, []string{"h|k"}, ""},
		{`last(/h/k[{#FSNAME},{$M:"x)"}])`, []string{`h|k[{#FSNAME},{$M:"x)"}]`}, ""},
		{`max(last(/a/b),last(/c/d))`, []string{"a|b", "c|d"}, ""},
		{`last(/h/k[a,[b,c],d])`, []string{"h|k[a,[b,c],d]"}, ""},
		{`last(//k)`, []string{"|k"}, ""},
		{`(1+2)/3`, nil, ""},
		{`last(/h/k`, nil, "do not close"},
		{`last(/h/k))`, nil, "closes nothing"},
		{`last(/h)`, nil, "no second '/'"},
		{`last(/h/)`, nil, "no item key"},
		{`last(/h/k[a)`, nil, "does not close"},
		{`find(/h/k,,"like","x)`, nil, "does not end"},
		{`last(/h/k["a)`, nil, "does not end"},
	}
	for _, tt := range tests {
		refs, err := itemRefs(tt.text)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("itemRefs(%q): error %v, want %q", tt.text, err, tt.err)
			}
			continue
		}
		var got []string
		for _, r := range refs {
			got = append(got, tt.text[r.hostAt:r.hostEnd]+"|"+tt.text[r.keyAt:r.keyEnd])
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("itemRefs(%q) = %q, %v, want %q", tt.text, got, err, tt.want)
		}
	}
}

func TestExpandKey(t *testing.T) {
	macros := map[string]string{"{#A}": "x", "{#C}": "a,b", "{#Q}": `"q"`, "{#E}": ""}
	tests := []struct{ key, want string }{
		{"k", "k"},
		{"k[{#A}]", "k[x]"},
		{"k[{#A},{#B}]", "k[x,{#B}]"},
		{"k[{#C},p]", `k["a,b",p]`},
		{"k[ {#Q}]", `k["\"q\""]`},
		{`k["{#C}"]`, `k["a,b"]`},
		{`k["{#Q}"]`, `k["\"q\""]`},
		{"k[{#E}]", "k[]"},
		{"k[[{#A},y]]", "k[[x,y]]"},
		{"k.{#A}", "k.x"},
		{"k[{#A}", "k[x"},
	}
	for _, tt := range tests {
		if got := expandKey(tt.key, macros); got != tt.want {
			t.Errorf("expandKey(%q) = %q, want %q", tt.key, got, tt.want)
		}
	}
}

func TestCanonicalKey(t *testing.T) {
	for _, same := range [][2]string{{`k["a"]`, "k[a]"}, {`k[ "a" ,b]`, "k[a,b]"}, {`k["a,b"]`, `k[ "a,b"]`}} {
		if canonicalKey(same[0]) != canonicalKey(same[1]) {
			t.Errorf("%s and %s are different keys", same[0], same[1])
		}
	}
	for _, other := range [][2]string{{"k", "k[]"}, {"k[a,b]", `k["a,b"]`}, {"k[]", "k[,]"}} {
		if canonicalKey(other[0]) == canonicalKey(other[1]) {
			t.Errorf("%s and %s are one key", other[0], other[1])
		}
	}
}

func TestCheckKey(t *testing.T) {
	for _, key := range []string{"a", "a.b-c_d[1]", "k[]", `k["]",[a,"b"]]`, "k[{$M},{#X}]", "vfs.fs.size[/,pused]"} {
		if err := CheckKey(key); err != nil {
			t.Errorf("CheckKey(%q): %v", key, err)
		}
	}
	for _, key := range []string{"", "[a]", "a b", "a[", "a[b]c", `a["]`, "ä", strings.Repeat("a", 2049)} {
		if err := CheckKey(key); err == nil {
			t.Errorf("CheckKey(%.20q) accepts it", key)
		}
	}
}

func FuzzItemRefs(f *testing.F) {
	for _, seed := range []string{`last(/h/k)`, `a(/h/k[{#X},"\"",[a]],1m)`, `{$M:"`, `f("\`, `(/`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		refs, err := itemRefs(text)
		if err != nil {
			return
		}
		for _, r := range refs {
			if r.hostAt > r.hostEnd || r.hostEnd >= r.keyAt || r.keyAt >= r.keyEnd || r.keyEnd > len(text) {
				t.Fatalf("itemRefs(%q): %+v", text, r)
			}
			canonicalKey(text[r.keyAt:r.keyEnd])
		}
		expandExpression(text, map[string]string{"{#X}": `a"],`})
		f := &definitions{byName: map[string]*template{}}
		for _, r := range refs {
			f.byName[text[r.hostAt:r.hostEnd]] = &template{}
		}
		if parts := f.split(text); len(parts) != len(refs)+1 {
			t.Errorf("splitting %q at %d hosts gives %d parts", text, len(refs), len(parts))
		}
	})
}

// Keys that Zabbix takes are taken, also with brackets in the text of a parameter.
func TestCheckKey_brackets(t *testing.T) {
	for key, good := range map[string]bool{
		"system.run[cat x | grep [a-z | awk {'print $2'}]": true,
		"k[a,b[c]":    true,
		"k[ a[b, c ]": true,
		"k[a[b],c]":   true,
		"k[[a,b],c]":  true,
		"k[a[b]x":     false,
		"k[a[b":       false,
		`k["a[b]`:     false,
		"k[[a]":       false,
		"é[a[b]":      false,
	} {
		if err := CheckKey(key); (err == nil) != good {
			t.Errorf("%s: %v, want good %t", key, err, good)
		}
	}
}
