package event

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// withUnits writes a number for people: bytes by 1024 and most other units by 1000 with K M G T P, times as days and hours.
// A unit that begins with ! and a few others are not scaled.
func withUnits(text, units string) string {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return strings.TrimSpace(text + " " + units)
	}
	switch units {
	case "":
		return rounded(v)
	case "s", "uptime":
		return duration(v)
	case "unixtime":
		return time.Unix(int64(v), 0).UTC().Format("2006-01-02 15:04:05 UTC")
	case "%", "ms", "rpm", "RPM":
		return rounded(v) + " " + units
	}
	if plain, ok := strings.CutPrefix(units, "!"); ok {
		return rounded(v) + " " + plain
	}
	base := 1000.0
	if units == "B" || units == "Bps" {
		base = 1024
	}
	prefix := ""
	for _, next := range []string{"K", "M", "G", "T", "P"} {
		if math.Abs(v) < base {
			break
		}
		v /= base
		prefix = next
	}
	return rounded(v) + " " + prefix + units
}

// rounded has at most two decimals, or two digits that are not zero for small numbers.
func rounded(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	if math.Abs(v) < 0.01 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v, 'f', 2, 64), "0"), ".")
}

// duration writes seconds with the two greatest units that are not zero.
func duration(v float64) string {
	if math.Abs(v) < 60 || math.Abs(v) > 1e12 {
		return rounded(v) + " s"
	}
	sign := ""
	if v < 0 {
		sign, v = "-", -v
	}
	rest := int64(v)
	var parts []string
	for _, unit := range []struct {
		seconds int64
		name    string
	}{{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}} {
		if n := rest / unit.seconds; n > 0 && len(parts) < 2 {
			parts = append(parts, strconv.FormatInt(n, 10)+unit.name)
			rest %= unit.seconds
		}
	}
	return sign + strings.Join(parts, " ")
}
