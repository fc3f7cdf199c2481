package catalog

import (
	"slices"
	"strings"

	"tidemark/model"
)

// MetricName is the name that PromQL sees for an item key: the key without its parameters, every character outside
// [a-zA-Z0-9_:] replaced by "_". A leading digit gets a "_" before it.
func MetricName(key string) string {
	if i := strings.IndexByte(key, '['); i >= 0 {
		key = key[:i]
	}
	return wordName(key, true)
}

// LabelName is the name that PromQL sees for a tag, a discovery macro or a label: "{#FSNAME}" becomes "fsname"; every
// character outside [a-zA-Z0-9_] becomes "_"; "host" and "key" become "exported_host" and "exported_key", because
// every item has those two already. Names that begin with "__" are kept for PromQL itself and give "".
func LabelName(name string) string {
	if inner, ok := strings.CutPrefix(name, "{#"); ok {
		name = strings.ToLower(strings.TrimSuffix(inner, "}"))
	}
	name = wordName(name, false)
	switch {
	case strings.HasPrefix(name, "__"):
		return ""
	case name == "host" || name == "key":
		return "exported_" + name
	}
	return name
}

// wordName replaces what PromQL does not allow in names.
func wordName(s string, colon bool) string {
	if s == "" {
		return "_"
	}
	good := s[0] < '0' || s[0] > '9'
	for _, c := range s {
		good = good && nameRune(c, colon)
	}
	if good {
		return s
	}
	var b strings.Builder
	if s[0] >= '0' && s[0] <= '9' {
		b.WriteByte('_')
	}
	for _, c := range s {
		if !nameRune(c, colon) {
			c = '_'
		}
		b.WriteRune(c)
	}
	return b.String()
}

func nameRune(c rune, colon bool) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || colon && c == ':'
}

// cleanLabels gives labels and tags the form that the index keeps: names by the rules of LabelName, sorted, each once,
// empty values left out. Different values of one name (a Zabbix tag may repeat) are joined with commas in sorted order.
func cleanLabels(labels model.Labels, tags []model.Tag) model.Labels {
	if len(labels) == 0 && len(tags) == 0 {
		return nil
	}
	all := make(model.Labels, 0, len(labels)+len(tags))
	for _, l := range labels {
		all = append(all, model.Label{Name: LabelName(l.Name), Value: l.Value})
	}
	for _, t := range tags {
		all = append(all, model.Label{Name: LabelName(t.Name), Value: t.Value})
	}
	slices.SortFunc(all, func(a, b model.Label) int {
		if n := strings.Compare(a.Name, b.Name); n != 0 {
			return n
		}
		return strings.Compare(a.Value, b.Value)
	})
	kept := all[:0]
	for i, l := range all {
		if l.Name == "" || l.Value == "" {
			continue
		}
		if i > 0 && len(kept) > 0 && kept[len(kept)-1].Name == l.Name {
			if last := &kept[len(kept)-1]; !hasPart(last.Value, l.Value) {
				last.Value += "," + l.Value
			}
			continue
		}
		kept = append(kept, l)
	}
	return kept
}

// hasPart reports whether part is one of the parts of the comma-joined list.
func hasPart(list, part string) bool {
	return list == part || strings.HasSuffix(list, ","+part)
}
