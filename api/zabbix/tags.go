package zabbix

import (
	"slices"
	"strings"

	"tidemark/model"
)

var tagKind = kind[model.Tag]{
	name: "tag", id: "tag",
	fields: []field[model.Tag]{
		{name: "tag", get: func(t *model.Tag) string { return t.Name }},
		{name: "value", get: func(t *model.Tag) string { return t.Value }},
	},
}

func pickTags(o output, tags []model.Tag) any { return pickAll(o, &tagKind, tags) }

// matchTags reports whether tags fit conditions: all of them, or with any one of them. Conditions on the same tag are alternatives.
func matchTags(conditions []tagFilter, either bool, tags []model.Tag) bool {
	if len(conditions) == 0 {
		return true
	}
	results := make(map[string]bool)
	for _, f := range conditions {
		ok := matchTag(f, tags)
		if either && ok {
			return true
		}
		results[f.Tag] = results[f.Tag] || ok
	}
	if either {
		return false
	}
	for _, ok := range results {
		if !ok {
			return false
		}
	}
	return true
}

// matchTag compares as the operator says: 0 contains, 1 equals, 2 contains not, 3 differs, 4 exists, 5 is not there.
func matchTag(f tagFilter, tags []model.Tag) bool {
	found := slices.ContainsFunc(tags, func(t model.Tag) bool {
		if t.Name != f.Tag {
			return false
		}
		switch f.operator {
		case "1", "3":
			return t.Value == f.Value
		case "4", "5":
			return true
		}
		return strings.Contains(strings.ToLower(t.Value), strings.ToLower(f.Value))
	})
	if f.operator == "2" || f.operator == "3" || f.operator == "5" {
		return !found
	}
	return found
}
