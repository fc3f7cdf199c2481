package model

import (
	"regexp"
	"strconv"
	"strings"
)

// ValueMap gives values a text for people.
type ValueMap struct {
	Name     string
	Mappings []Mapping
}

// MappingKind is how a mapping fits values.
type MappingKind uint8

// The kinds of mappings. The numbers are Zabbix's.
const (
	MapEqual MappingKind = iota
	MapAtLeast
	MapAtMost
	MapRange
	MapRegex
	MapDefault
)

// Mapping is one line of a value map.
type Mapping struct {
	Kind  MappingKind
	Value string
	Text  string
	// Pattern is for MapRegex; nil matches nothing.
	Pattern *regexp.Regexp
}

// Map returns the text of a value: that of the first mapping that fits, the default one last. False is for a value without a text. A nil map
// has none.
func (m *ValueMap) Map(value string, numeric bool) (string, bool) {
	if m == nil {
		return "", false
	}
	otherwise := -1
	for i := range m.Mappings {
		if m.Mappings[i].Kind == MapDefault {
			otherwise = i
		} else if m.Mappings[i].fits(value, numeric) {
			return m.Mappings[i].Text, true
		}
	}
	if otherwise >= 0 {
		return m.Mappings[otherwise].Text, true
	}
	return "", false
}

func (m *Mapping) fits(value string, numeric bool) bool {
	if m.Kind == MapRegex {
		return m.Pattern != nil && m.Pattern.MatchString(value)
	}
	if m.Kind == MapEqual && value == m.Value {
		return true
	}
	if !numeric {
		return false
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return false
	}
	if m.Kind == MapRange {
		return inRanges(v, m.Value)
	}
	limit, err := strconv.ParseFloat(m.Value, 64)
	switch {
	case err != nil:
		return false
	case m.Kind == MapAtLeast:
		return v >= limit
	case m.Kind == MapAtMost:
		return v <= limit
	}
	return v == limit
}

// inRanges reports whether a number is in a list such as "1-3,7,-5--1".
func inRanges(v float64, list string) bool {
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		low, high := part, part
		if len(part) > 1 {
			if dash := strings.IndexByte(part[1:], '-'); dash >= 0 {
				low, high = part[:dash+1], part[dash+2:]
			}
		}
		from, err := strconv.ParseFloat(strings.TrimSpace(low), 64)
		if err != nil {
			continue
		}
		if to, err := strconv.ParseFloat(strings.TrimSpace(high), 64); err == nil && v >= from && v <= to {
			return true
		}
	}
	return false
}
