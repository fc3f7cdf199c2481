package zabbix

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind describes one kind of objects: which members they have and how they are got.
type kind[T any] struct {
	// name is for errors, id the member that is always in an answer.
	name, id string
	fields   []field[T]
	selects  []selection[T]
	// filters are members that are only looked at: of filter, not of output.
	filters []field[T]
	// groupings are by what groupCount counts; none when it counts nothing by itself.
	groupings []grouping[T]
	// strict refuses members of output that the kind does not have, as Zabbix does for some kinds and passes them over for the others.
	strict bool
}

// field is one member that is a text; numbers are texts too.
type field[T any] struct {
	name string
	// number orders by value and not by letters.
	number bool
	get    func(*T) string
}

// selection is a member that is asked for with a parameter of its own, such as selectTags; without a parameter it is a member like others whose
// value is no text.
type selection[T any] struct {
	param, name string
	// get returns what encodes in JSON: a list of objects for output, or one.
	get func(c *call, o output, row *T) any
}

// filtered is field for a member that filter names.
func (k *kind[T]) filtered(name string) *field[T] {
	for i := range k.filters {
		if k.filters[i].name == name {
			return &k.filters[i]
		}
	}
	return k.field(name)
}

func (k *kind[T]) field(name string) *field[T] {
	for i := range k.fields {
		if k.fields[i].name == name {
			return &k.fields[i]
		}
	}
	return nil
}

// lookup is what all calls of get have in common.
type lookup[T any] struct {
	out      output
	filter   map[string][]string
	search   map[string][]string
	limit    int64
	preserve bool
	count    bool
	grouped  bool // counts are by group
	start    bool // searches at the start
	any      bool // one search is enough
	wildcard bool
	exclude  bool
	sort     []order[T]
	selected []output // of kind.selects
	fields   []*field[T]
}

type order[T any] struct {
	by      *field[T]
	falling bool
}

// readLookup reads the common parameters; the call's own must have been asked for already.
func readLookup[T any](c *call, k *kind[T]) (*lookup[T], error) {
	c.accept("editable", "nopermissions", "inheritedTags", "limitSelects")
	l := &lookup[T]{
		out: c.output("output"), limit: c.number("limit", 0, math.MaxInt64), preserve: c.flag("preservekeys"), count: c.flag("countOutput"),
		start: c.flag("startSearch"), any: c.flag("searchByAny"), wildcard: c.flag("searchWildcardsEnabled"), exclude: c.flag("excludeSearch"),
	}
	if !l.out.given {
		l.out.all = true
	}
	if k.strict {
		k.checkOutput(c, &l.out)
	}
	l.count = l.count || l.out.count
	if l.grouped = c.flag("groupCount"); l.grouped && k.groupings == nil {
		c.fail("groupCount", fmt.Sprintf("objects of the kind %s cannot be counted by group", k.name))
	}
	l.filter, l.search = readMembers(c, k, "filter"), readMembers(c, k, "search")
	names, orders := c.texts("sortfield"), c.texts("sortorder")
	for i, name := range names {
		f := k.field(name)
		if f == nil {
			c.fail("sortfield", fmt.Sprintf("cannot sort a %s by %.100q", k.name, name))
			continue
		}
		o := order[T]{by: f}
		if len(orders) > 0 {
			o.falling = strings.EqualFold(orders[min(i, len(orders)-1)], "DESC")
		}
		l.sort = append(l.sort, o)
	}
	for _, s := range k.selects {
		if s.param == "" {
			l.selected = append(l.selected, output{given: l.out.has(s.name), all: true})
			continue
		}
		l.selected = append(l.selected, c.output(s.param))
	}
	for i := range k.fields {
		if f := &k.fields[i]; l.out.all || f.name == k.id || slices.Contains(l.out.names, f.name) {
			l.fields = append(l.fields, f)
		}
	}
	return l, c.done()
}

// checkOutput refuses members that objects of the kind do not have.
func (k *kind[T]) checkOutput(c *call, out *output) {
	for i, name := range out.names {
		known := k.field(name) != nil || name == "extend" || slices.ContainsFunc(k.selects, func(s selection[T]) bool { return s.param == "" && s.name == name })
		if known {
			continue
		}
		names := make([]string, 0, len(k.fields))
		for n := range k.fields {
			names = append(names, strconv.Quote(k.fields[n].name))
		}
		c.fail("output/"+strconv.Itoa(i+1), "value must be one of "+strings.Join(names, ", "))
	}
}

// readMembers reads filter or search: texts by member.
func readMembers[T any](c *call, k *kind[T], name string) map[string][]string {
	v, ok := c.get(name)
	if !ok || string(v) == "[]" {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(v, &object); err != nil {
		c.fail(name, "an object is expected")
		return nil
	}
	members := make(map[string][]string, len(object))
	for member, value := range object {
		if string(value) == "null" {
			continue
		}
		texts, ok := scalars(value)
		switch {
		case k.field(member) == nil && (name != "filter" || k.filtered(member) == nil):
			c.fail(name, fmt.Sprintf("a %s has no member %.100q to look at", k.name, member))
		case !ok:
			c.fail(name+"/"+member, "a character string or an array of them is expected")
		default:
			members[member] = texts
		}
	}
	return members
}

// filterTexts are the texts of a member of filter; nil when it is not given or is no text.
func (p *params) filterTexts(member string) []string {
	var object map[string]json.RawMessage
	if v, ok := p.get("filter"); !ok || json.Unmarshal(v, &object) != nil || object[member] == nil || string(object[member]) == "null" {
		return nil
	}
	texts, _ := scalars(object[member])
	return texts
}

// needs reports whether a member is looked at or answered.
func (l *lookup[T]) needs(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(l.fields, func(f *field[T]) bool { return f.name == name }) || l.compares(name)
	})
}

// compares reports whether a member decides which objects are answered, or in which order.
func (l *lookup[T]) compares(name string) bool {
	return l.filter[name] != nil || l.search[name] != nil || slices.ContainsFunc(l.sort, func(o order[T]) bool { return o.by.name == name })
}

// take returns the objects that fit, in order, at most as many as asked for.
func (l *lookup[T]) take(k *kind[T], rows []T) []T {
	if len(l.filter)+len(l.search) > 0 {
		rows = slices.DeleteFunc(rows, func(row T) bool { return !l.fits(k, &row) })
	}
	if len(l.sort) > 0 {
		slices.SortStableFunc(rows, func(a, b T) int { return l.compare(&a, &b) })
	}
	if l.limit > 0 && int64(len(rows)) > l.limit {
		rows = rows[:l.limit]
	}
	return rows
}

func (l *lookup[T]) compare(a, b *T) int {
	for _, o := range l.sort {
		x, y := o.by.get(a), o.by.get(b)
		n := cmp.Compare(x, y)
		if o.by.number {
			n = compareNumbers(x, y)
		}
		if o.falling {
			n = -n
		}
		if n != 0 {
			return n
		}
	}
	return 0
}

func compareNumbers(x, y string) int {
	a, errA := strconv.ParseUint(x, 10, 64)
	b, errB := strconv.ParseUint(y, 10, 64)
	if errA != nil || errB != nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

func (l *lookup[T]) fits(k *kind[T], row *T) bool {
	for name, values := range l.filter {
		if !slices.Contains(values, k.filtered(name).get(row)) {
			return false
		}
	}
	if len(l.search) == 0 {
		return true
	}
	return l.found(k, row) != l.exclude
}

// found reports whether a search fits: all its texts, or with any one of them.
func (l *lookup[T]) found(k *kind[T], row *T) bool {
	for name, patterns := range l.search {
		value := strings.ToLower(k.field(name).get(row))
		for _, pattern := range patterns {
			if l.contains(value, strings.ToLower(pattern)) == l.any {
				return l.any
			}
		}
	}
	return !l.any
}

// contains reports whether a text has a pattern in it, or at its start; both in lower case. With wildcards * stands for anything, and
// the whole text must fit.
func (l *lookup[T]) contains(value, pattern string) bool {
	switch {
	case l.wildcard && strings.Contains(pattern, "*"):
		if l.start {
			pattern += "*"
		}
		return matchWildcard(value, pattern)
	case l.start:
		return strings.HasPrefix(value, pattern)
	case l.wildcard:
		return value == pattern
	}
	return strings.Contains(value, pattern)
}

// matchWildcard reports whether a text fits a pattern in which * stands for any text.
func matchWildcard(value, pattern string) bool {
	parts := strings.Split(pattern, "*")
	value, ok := strings.CutPrefix(value, parts[0])
	if !ok || len(parts) == 1 {
		return ok && value == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(value, part)
		if i < 0 {
			return false
		}
		value = value[i+len(part):]
	}
	return strings.HasSuffix(value, parts[len(parts)-1])
}

// answer takes the objects that fit the call's parameters and encodes them.
func answer[T any](c *call, k *kind[T], rows []T) ([]byte, error) {
	l, err := readLookup(c, k)
	if err != nil {
		return nil, err
	}
	return l.encode(c, k, l.take(k, rows))
}

func (l *lookup[T]) encode(c *call, k *kind[T], rows []T) ([]byte, error) {
	if l.count && l.grouped {
		return countGroups(k.groupings, rows)
	}
	if l.count {
		return encodeJSON(strconv.Itoa(len(rows)))
	}
	keys := l.preserve && len(rows) > 0 // PHP writes an empty array for an empty object
	out := []byte{'['}
	if keys {
		out[0] = '{'
	}
	for i := range rows {
		if i > 0 {
			out = append(out, ',')
		}
		if keys {
			out = append(appendText(out, k.field(k.id).get(&rows[i])), ':')
		}
		var err error
		if out, err = l.appendRow(c, k, out, &rows[i]); err != nil {
			return nil, err
		}
		if len(out) > c.room {
			return nil, errTooLarge
		}
		if i%1024 == 1023 && c.ctx.Err() != nil {
			return nil, c.ctx.Err()
		}
	}
	if c.failed != nil { // by what was read for the answer
		return nil, c.failed
	}
	if keys {
		return append(out, '}'), nil
	}
	return append(out, ']'), nil
}

func (l *lookup[T]) appendRow(c *call, k *kind[T], out []byte, row *T) ([]byte, error) {
	out = append(out, '{')
	for i, f := range l.fields {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, f.name), ':')
		out = appendText(out, f.get(row))
	}
	for i, s := range k.selects {
		if !l.selected[i].given {
			continue
		}
		value, err := json.Marshal(s.get(c, l.selected[i], row))
		if err != nil {
			panic("zabbix: an answer cannot be encoded: " + err.Error())
		}
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = append(append(appendText(out, s.name), ':'), value...)
	}
	return append(out, '}'), nil
}

// pick returns the members of an object that are asked for, for answers inside answers.
func pick[T any](o output, k *kind[T], row *T) map[string]string {
	members := make(map[string]string)
	for i := range k.fields {
		if f := &k.fields[i]; o.all || f.name == k.id && !o.count || slices.Contains(o.names, f.name) {
			members[f.name] = f.get(row)
		}
	}
	return members
}

// pickAll is pick for a list; a count is a text.
func pickAll[T any](o output, k *kind[T], rows []T) any {
	if o.count {
		return strconv.Itoa(len(rows))
	}
	list := make([]map[string]string, 0, len(rows))
	for i := range rows {
		list = append(list, pick(o, k, &rows[i]))
	}
	return list
}

// appendText writes a JSON string. Plain text is copied, everything else goes the long way.
func appendText(out []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			text, err := json.Marshal(s)
			if err != nil {
				panic("zabbix: a text cannot be encoded: " + err.Error())
			}
			return append(out, text...)
		}
	}
	return append(append(append(out, '"'), s...), '"')
}

func encodeJSON(value any) ([]byte, error) {
	out, err := json.Marshal(value)
	if err != nil {
		panic("zabbix: an answer cannot be encoded: " + err.Error())
	}
	return out, nil
}

func formatID[T ~uint64](id T) string { return strconv.FormatUint(uint64(id), 10) }

func formatInt(n int) string { return strconv.Itoa(n) }

// formatBool writes the number that Zabbix has for yes and no.
func formatBool(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// seconds writes the whole seconds of Unix nanoseconds, nanos the rest.
func seconds(at int64) string { return strconv.FormatInt(floorSeconds(at), 10) }

func nanos(at int64) string { return strconv.FormatInt(at-floorSeconds(at)*1e9, 10) }

func floorSeconds(at int64) int64 {
	s := at / 1e9
	if at%1e9 < 0 {
		s--
	}
	return s
}
