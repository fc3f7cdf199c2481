package access

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// Difference returns what is different in two values as JSON objects, without secrets; empty for a nil value. In lists of objects those that are the same
// on both sides are left out, and of those that changed what is not the same, beside the member that names them. What is too long for an entry is left out
// with its largest members, whose names stay.
func Difference(before, after any) (was, is string) {
	b, a := plain(before), plain(after)
	bm, bok := b.(map[string]any)
	am, aok := a.(map[string]any)
	if bok && aok {
		b, a = differing(bm, am)
	}
	return encode(b), encode(a)
}

// differing leaves in two objects what is not the same.
func differing(b, a map[string]any) (was, is map[string]any) {
	was, is = map[string]any{}, map[string]any{}
	for name, value := range b {
		other, ok := a[name]
		switch {
		case !ok:
			was[name] = value
		case !reflect.DeepEqual(value, other):
			was[name], is[name] = differingValues(value, other)
		}
	}
	for name, value := range a {
		if _, ok := b[name]; !ok {
			is[name] = value
		}
	}
	return was, is
}

// differingValues is differing for two values that are not the same.
func differingValues(b, a any) (was, is any) {
	bm, bok := b.(map[string]any)
	am, aok := a.(map[string]any)
	if bok && aok {
		return differing(bm, am)
	}
	bl, bok := objects(b)
	al, aok := objects(a)
	if !bok || !aok {
		return b, a
	}
	wasList, isList := differingLists(bl, al)
	if len(wasList)+len(isList) == 0 {
		return b, a // only their order is another
	}
	return wasList, isList
}

// objects returns a list all of whose elements are objects.
func objects(v any) ([]map[string]any, bool) {
	list, ok := v.([]any)
	out := make([]map[string]any, len(list))
	for i := range list {
		var is bool
		out[i], is = list[i].(map[string]any)
		ok = ok && is
	}
	return out, ok
}

// differingLists leaves in two lists of objects those that the other list has not, and of those that both have by name what is not the same.
func differingLists(b, a []map[string]any) (was, is []any) {
	was, is = []any{}, []any{}
	changed, left := others(b, a), others(a, b)
	pair := len(changed)*len(left) <= maxPairs
	for _, one := range changed {
		by := ""
		if pair {
			by = identity(one, changed)
		}
		i := -1
		if by != "" {
			i = slices.IndexFunc(left, func(o map[string]any) bool { return o[by] == one[by] })
		}
		if i < 0 || identity(left[i], left) != by {
			was = append(was, one)
			continue
		}
		before, after := differing(one, left[i])
		before[by], after[by] = one[by], one[by]
		was, is = append(was, before), append(is, after)
		left = slices.Delete(left, i, i+1)
	}
	for _, one := range left {
		is = append(is, one)
	}
	return was, is
}

// maxPairs bounds how many pairs of objects are compared.
const maxPairs = 1_000_000

// others returns the objects of a list that another has not, or has not as often.
func others(list, without []map[string]any) []map[string]any {
	have := make(map[string]int, len(without))
	for _, o := range without {
		text, _ := json.Marshal(o) // it was decoded from JSON
		have[string(text)]++
	}
	out := []map[string]any{}
	for _, o := range list {
		text, _ := json.Marshal(o)
		if have[string(text)] > 0 {
			have[string(text)]--
			continue
		}
		out = append(out, o)
	}
	return out
}

// identityNames are the members that name an object among others of its kind, the best first.
var identityNames = [...]string{"key", "macro", "host_group", "host", "name"}

// identity is the member that names an object in a list; empty when none does, or the name is there twice.
func identity(one map[string]any, list []map[string]any) string {
	for _, by := range identityNames {
		name, ok := one[by].(string)
		if !ok {
			continue
		}
		count := 0
		for _, o := range list {
			if o[by] == name {
				count++
			}
		}
		if count == 1 {
			return by
		}
		return ""
	}
	return ""
}

// encode writes a value for an entry.
func encode(v any) string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	if len(text) <= maxAuditJSON {
		return string(text)
	}
	members, ok := v.(map[string]any)
	if !ok {
		return `{"shortened":true}`
	}
	return encodePart(members)
}

// maxLeftOut bounds the names of members that are left out.
const maxLeftOut = 100

// encodePart writes of an object that is too long the smaller members and the names of the others.
func encodePart(members map[string]any) string {
	sizes := make(map[string]int, len(members))
	for name, value := range members {
		text, err := json.Marshal(value)
		if err != nil {
			return ""
		}
		sizes[name] = len(text) + 2*len(name)
	}
	names := slices.SortedFunc(maps.Keys(members), func(a, b string) int { return sizes[a] - sizes[b] })
	part, leftOut, used := map[string]any{"shortened": true}, []string{}, 0
	for _, name := range names {
		if used += sizes[name]; used <= maxAuditJSON/2 {
			part[name] = members[name]
			continue
		}
		if len(leftOut) < maxLeftOut && len(name) <= maxAuditText {
			leftOut = append(leftOut, name)
		}
	}
	slices.Sort(leftOut)
	part["left_out"] = leftOut
	text, err := json.Marshal(part)
	if err != nil || len(text) > 2*maxAuditJSON {
		return `{"shortened":true}`
	}
	return string(text)
}
