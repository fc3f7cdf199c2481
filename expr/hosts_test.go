package expr

import (
	"slices"
	"strings"
	"testing"
)

func FuzzHosts(f *testing.F) {
	f.Add("last(/h/k)+sum(last_foreach( /*/k?[group=\"G\"]))", "h")
	f.Fuzz(func(t *testing.T, text, host string) {
		if host == "" || strings.ContainsAny(host, "/") {
			return
		}
		if !slices.Contains(Hosts(text+"(/"+host+"/k)"), host) {
			t.Errorf("%q in %q is not found", host, text)
		}
		e, err := Parse(text)
		if err != nil {
			return
		}
		for _, r := range e.Refs {
			if !slices.Contains(Hosts(text), r.Host) {
				t.Errorf("%q, which %q reads, is not found", r.Host, text)
			}
		}
	})
}
