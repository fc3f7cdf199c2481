package plan

import (
	"slices"
	"strings"

	"tidemark/wire/queryplan"
)

// Key is the specification of an index, in order. Directions are 1 or -1, or 0 for an index of another kind.
type Key []Part

// Part is one field of a key.
type Part struct {
	Field     string
	Direction int
	Kind      string // "text", "hashed", …, where Direction is 0
}

// String writes a key as the shell does: {a: 1, b: -1}.
func (k Key) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, p := range k {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.Field + ": ")
		switch {
		case p.Direction > 0:
			b.WriteString("1")
		case p.Direction < 0:
			b.WriteString("-1")
		default:
			b.WriteString(`"` + p.Kind + `"`)
		}
	}
	b.WriteByte('}')
	return b.String()
}

// Index is an index of a collection.
type Index struct {
	Name string
	Key  Key
	// Unique says that a key has one document at most; Partial that not all documents are in it (partial, sparse).
	Unique, Partial bool
}

// need is what an index must serve: a shape, or one branch of its $or.
type need struct {
	equal []string
	sort  Key
	spans []string
}

// maxFields is how many fields a hint names at most; further ones seldom make an index better.
const maxFields = 4

// Hints says which indexes would serve the shape and are not among those there are: equality first, then the sort order, then a range. None where an
// index serves it already, or where an index cannot.
func (q *Query) Hints(there []Index) []queryplan.Hint {
	var hints []queryplan.Hint
	for _, n := range q.needs() {
		key, why := n.key()
		if len(key) == 0 || slices.ContainsFunc(there, func(i Index) bool { return n.served(i) }) {
			continue
		}
		h := queryplan.Hint{Key: key.String(), Why: why}
		if !slices.ContainsFunc(hints, func(o queryplan.Hint) bool { return o.Key == h.Key }) && len(hints) < queryplan.MaxHints {
			hints = append(hints, h)
		}
	}
	return hints
}

// needs returns one need, or one for each branch of an $or at the top.
func (q *Query) needs() []need {
	base := need{}
	for _, f := range q.sort.fields {
		n, ok := direction(f.value)
		if !ok || !named(f.name) {
			base.sort = nil
			break
		}
		base.sort = append(base.sort, Part{Field: f.name, Direction: int(n)})
	}
	var branches []value
	base.take(q.filter, "", &branches, 0)
	if len(branches) == 0 {
		return []need{base}
	}
	var all []need
	for _, b := range branches {
		n := need{equal: slices.Clone(base.equal), sort: base.sort, spans: slices.Clone(base.spans)}
		n.take(b, "", nil, 0)
		all = append(all, n)
	}
	return all
}

// take adds the conditions of a filter. The branches of an $or at its top go to branches, if that is not nil.
func (n *need) take(v value, path string, branches *[]value, depth int) {
	if v.kind != document || depth > maxDepth {
		return
	}
	for _, f := range v.fields {
		switch {
		case f.name == "$and":
			for _, item := range f.value.items {
				n.take(item, path, branches, depth+1)
			}
		case f.name == "$or":
			if branches != nil && len(*branches) == 0 && path == "" {
				*branches = f.value.items
			}
		case strings.HasPrefix(f.name, "$"):
			// $nor, $expr, $where, …: no index helps.
		case named(f.name):
			n.field(join(path, f.name), f.value, depth)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// field adds the condition of one field.
func (n *need) field(path string, v value, depth int) {
	if v.kind != document || len(v.fields) == 0 || !strings.HasPrefix(v.fields[0].name, "$") {
		n.add(&n.equal, path) // A value, or a whole document.
		return
	}
	for _, f := range v.fields {
		switch f.name {
		case "$eq", "$in", "$all":
			n.add(&n.equal, path)
		case "$gt", "$gte", "$lt", "$lte", "$regex": // $ne, $nin and $exists leave too much for an index to be missed.
			n.add(&n.spans, path)
		case "$elemMatch":
			if f.value.kind == document && len(f.value.fields) > 0 && strings.HasPrefix(f.value.fields[0].name, "$") {
				n.field(path, f.value, depth+1)
			} else {
				n.take(f.value, path, nil, depth+1)
			}
		}
	}
}

func (n *need) add(to *[]string, path string) {
	if !slices.Contains(*to, path) {
		*to = append(*to, path)
	}
}

// tidy drops what another condition makes needless: a range on a field that is equal, a sort by a field with one value.
func (n *need) tidy() need {
	equal := func(path string) bool { return slices.Contains(n.equal, path) }
	t := need{equal: n.equal}
	for _, p := range n.sort {
		if !equal(p.Field) {
			t.sort = append(t.sort, p)
		}
	}
	for _, s := range n.spans {
		if !equal(s) && !slices.ContainsFunc(t.sort, func(p Part) bool { return p.Field == s }) {
			t.spans = append(t.spans, s)
		}
	}
	return t
}

// key makes the index that would serve, and says why; nothing where _id or nothing is looked for.
func (n *need) key() (Key, string) {
	t := n.tidy()
	if slices.Contains(t.equal, "_id") {
		return nil, ""
	}
	var key Key
	var why []string
	for _, path := range t.equal[:min(len(t.equal), maxFields)] {
		key = append(key, Part{Field: path, Direction: 1})
	}
	if len(key) > 0 {
		why = append(why, "equality on "+strings.Join(t.equal[:len(key)], ", "))
	}
	if len(t.sort) > 0 && len(key)+len(t.sort) <= 2*maxFields {
		key = append(key, t.sort...)
		why = append(why, "the sort "+t.sort.String())
	}
	if len(t.spans) > 0 && len(key) < 2*maxFields {
		key = append(key, Part{Field: t.spans[0], Direction: 1})
		why = append(why, "the range of "+t.spans[0])
	}
	if len(key) == 1 && key[0].Field == "_id" {
		return nil, ""
	}
	return key, strings.Join(why, ", then ")
}

// served reports whether an index serves a need: all fields of its begin are equal, then the sort order in one direction or the other, then the range.
func (n *need) served(i Index) bool {
	t := n.tidy()
	if i.Partial {
		return false
	}
	at := 0
	for at < len(i.Key) && slices.Contains(t.equal, i.Key[at].Field) && (i.Key[at].Direction != 0 || i.Key[at].Kind == "hashed") {
		at++
	}
	if i.Unique && at == len(i.Key) {
		return true
	}
	if at < min(len(t.equal), maxFields) {
		return false
	}
	rest := i.Key[at:]
	if len(rest) < len(t.sort) {
		return false
	}
	flip := 0
	for k, p := range t.sort {
		if rest[k].Field != p.Field || rest[k].Direction == 0 {
			return false
		}
		turn := rest[k].Direction * p.Direction
		if flip != 0 && turn != flip {
			return false
		}
		flip = turn
	}
	if len(t.spans) == 0 {
		return true
	}
	return slices.ContainsFunc(rest[len(t.sort):], func(p Part) bool { return p.Direction != 0 && slices.Contains(t.spans, p.Field) })
}
