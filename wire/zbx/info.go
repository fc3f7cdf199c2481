package zbx

import "strings"

// ParseInfo reads the counts of an info line; ok is false when it has not all three.
func ParseInfo(info string) (c Counts, ok bool) {
	var seen int
	for part := range strings.SplitSeq(info, ";") {
		name, text, found := strings.Cut(part, ":")
		if !found {
			continue
		}
		n, isNumber := parseUint([]byte(strings.TrimSpace(text)))
		if !isNumber {
			continue
		}
		switch strings.TrimSpace(name) {
		case "processed":
			c.Processed, seen = n, seen|1
		case "failed":
			c.Failed, seen = n, seen|2
		case "total":
			c.Total, seen = n, seen|4
		}
	}
	return c, seen == 7
}
