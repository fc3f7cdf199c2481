package expr

import (
	"strings"
	"unicode"
)

// Hosts returns the hosts in /host/key of a text, which may be no whole expression and may hold macros; too many are found rather than too few, and one
// may be there several times.
func Hosts(text string) []string {
	var hosts []string
	for i := range len(text) {
		if text[i] != '(' && text[i] != ',' {
			continue
		}
		rest, ok := strings.CutPrefix(strings.TrimLeftFunc(text[i+1:], unicode.IsSpace), "/")
		if host, _, more := strings.Cut(rest, "/"); ok && more {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
