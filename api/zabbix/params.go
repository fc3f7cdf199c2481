package zabbix

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// params are the parameters of a call. Accessors keep the first mistake, which done returns; what no accessor asked for is a mistake too.
type params struct {
	object map[string]json.RawMessage
	// list is set for calls whose parameters are an array.
	list   []json.RawMessage
	asked  map[string]bool
	failed error
	// place is where the parameters are in the call's own, with a slash at its end; empty for these.
	place string
}

func newParams(text json.RawMessage) (*params, error) {
	p := &params{asked: make(map[string]bool)}
	var err error
	switch {
	case text == nil || string(text) == "null":
	case text[0] == '[':
		err = json.Unmarshal(text, &p.list)
	default:
		err = json.Unmarshal(text, &p.object)
	}
	if err != nil {
		return nil, errParse
	}
	return p, nil
}

// get returns a parameter; false for one that is not given or null.
func (p *params) get(name string) (json.RawMessage, bool) {
	p.asked[name] = true
	v, ok := p.object[name]
	return v, ok && string(v) != "null"
}

// has reports whether a parameter is given.
func (p *params) has(name string) bool {
	_, ok := p.object[name]
	return ok
}

// accept lets parameters pass that change nothing here.
func (p *params) accept(names ...string) {
	for _, n := range names {
		p.asked[n] = true
	}
}

func (p *params) fail(name, expected string) {
	if p.failed == nil {
		p.failed = invalidParams(`Invalid parameter "/%.100s": %s.`, p.place+name, expected)
	}
}

// done returns the first mistake.
func (p *params) done() error {
	if p.failed != nil {
		return p.failed
	}
	var unknown []string
	for name := range p.object {
		if !p.asked[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return invalidParams(`Invalid parameter "/%s": unexpected parameter "%.100s".`, strings.TrimSuffix(p.place, "/"), unknown[0])
	}
	return nil
}

// scalar reads a string, number or boolean as text; booleans are 1 and 0.
func scalar(v json.RawMessage) (string, bool) {
	switch {
	case len(v) == 0:
		return "", false
	case v[0] == '"':
		var s string
		return s, json.Unmarshal(v, &s) == nil
	case string(v) == "true":
		return "1", true
	case string(v) == "false":
		return "0", true
	case v[0] == '-' || v[0] >= '0' && v[0] <= '9':
		return string(v), true
	}
	return "", false
}

// scalars reads one or several texts.
func scalars(v json.RawMessage) ([]string, bool) {
	if s, ok := scalar(v); ok {
		return []string{s}, true
	}
	var list []json.RawMessage
	if v[0] == '{' { // PHP's arrays with keys
		var object map[string]json.RawMessage
		if json.Unmarshal(v, &object) != nil {
			return nil, false
		}
		for _, one := range object {
			list = append(list, one)
		}
	} else if json.Unmarshal(v, &list) != nil {
		return nil, false
	}
	texts := make([]string, 0, len(list))
	for _, one := range list {
		s, ok := scalar(one)
		if !ok {
			return nil, false
		}
		texts = append(texts, s)
	}
	return texts, true
}

func (p *params) text(name string) string {
	v, ok := p.get(name)
	if !ok {
		return ""
	}
	s, ok := scalar(v)
	if !ok {
		p.fail(name, "a character string is expected")
	}
	return s
}

func (p *params) texts(name string) []string {
	v, ok := p.get(name)
	if !ok {
		return nil
	}
	list, ok := scalars(v)
	if !ok {
		p.fail(name, "an array is expected")
	}
	return list
}

// flag reads a boolean; numbers but zero are true.
func (p *params) flag(name string) bool {
	v, ok := p.get(name)
	if !ok {
		return false
	}
	s, ok := scalar(v)
	if !ok {
		p.fail(name, "a boolean is expected")
	}
	return s != "" && s != "0"
}

// noApplications takes a filter by applications that is empty, which Grafana sends: there are none.
func (p *params) noApplications() {
	if len(p.texts("applicationids")) > 0 {
		p.fail("applicationids", "there are no applications, as in Zabbix since 5.4; ask by tags")
	}
}

// number reads an integer from zero on; otherwise is what it is when not given.
func (p *params) number(name string, otherwise, most int64) int64 {
	s := p.text(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > most {
		p.fail(name, fmt.Sprintf("a number from 0 to %d is expected", most))
		return otherwise
	}
	return n
}

// idSet is ids that were asked for; nil stands for all.
type idSet map[uint64]bool

func (s idSet) has(id uint64) bool { return s == nil || s[id] }

// hasText is has for an id that is a text.
func (s idSet) hasText(id string) bool {
	n, err := strconv.ParseUint(id, 10, 64)
	return s == nil || err == nil && s[n]
}

// hasAny reports whether one of the ids was asked for.
func hasAny[T ~uint64](s idSet, ids []T) bool {
	return s == nil || slices.ContainsFunc(ids, func(id T) bool { return s[uint64(id)] })
}

// ids reads one or several ids.
func (p *params) ids(name string) idSet {
	v, ok := p.get(name)
	if !ok {
		return nil
	}
	texts, ok := scalars(v)
	if !ok {
		p.fail(name, "an array is expected")
	}
	return p.parseIDs(name, texts)
}

func (p *params) parseIDs(name string, texts []string) idSet {
	set := make(idSet, len(texts))
	for i, s := range texts {
		id, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			p.fail(name+"/"+strconv.Itoa(i+1), "a number is expected")
			continue
		}
		set[id] = true
	}
	return set
}

// listIDs reads parameters that are an array of ids.
func (p *params) listIDs() idSet {
	var texts []string
	for _, v := range p.list {
		s, ok := scalar(v)
		if !ok {
			p.fail("", "an array of ids is expected")
			return nil
		}
		texts = append(texts, s)
	}
	if len(texts) == 0 {
		p.fail("", "cannot be empty")
		return nil
	}
	return p.parseIDs("", texts)
}

// output says which members of an object are wanted.
type output struct {
	given, all, count bool
	names             []string
}

func (o *output) has(name string) bool { return o.all || slices.Contains(o.names, name) }

// only returns the members of an object that were asked for, and those that are always answered.
func (o *output) only(all object, always ...string) object {
	shown := object{}
	for name, value := range all {
		if o.has(name) || slices.Contains(always, name) {
			shown[name] = value
		}
	}
	return shown
}

func (p *params) output(name string) output {
	v, ok := p.get(name)
	if !ok {
		return output{}
	}
	o := output{given: true}
	texts, ok := scalars(v)
	switch {
	case !ok:
		p.fail(name, "an array or a character string is expected")
	case v[0] == '"' && texts[0] == "extend" || string(v) == "true":
		o.all = true
	case v[0] == '"' && texts[0] == "count":
		o.count = true
	case v[0] == '"' && texts[0] == "shorten" || string(v) == "false":
	case v[0] == '"' && name == "selectInventory": // not checked by Zabbix, and playbooks send a name
		o.names = texts
	case v[0] == '"':
		p.fail(name, `value must be one of "extend", "count"`)
	default:
		o.all, o.names = slices.Contains(texts, "extend"), texts
	}
	return o
}

// tagFilter is a condition on tags.
type tagFilter struct {
	Tag      string          `json:"tag"`
	Value    string          `json:"value"`
	Operator json.RawMessage `json:"operator"`
	operator string
}

// tags reads conditions on tags; either is true when one is enough.
func (p *params) tags() (list []tagFilter, either bool) {
	either = p.text("evaltype") == "2"
	v, ok := p.get("tags")
	if !ok {
		return nil, either
	}
	if err := json.Unmarshal(v, &list); err != nil {
		p.fail("tags", "an array of objects with tag, value and operator is expected")
		return nil, either
	}
	for i := range list {
		list[i].operator, _ = scalar(bytes.TrimSpace(list[i].Operator))
		if !slices.Contains([]string{"", "0", "1", "2", "3", "4", "5"}, list[i].operator) {
			p.fail("tags/"+strconv.Itoa(i+1)+"/operator", "value must be one of 0-5")
		}
	}
	return list, either
}

// objects returns the objects of a call that takes one or an array of them, each to be read and ended with done.
func (p *params) objects() ([]*params, error) {
	if p.list == nil {
		one := *p
		one.place = "1/"
		return []*params{&one}, nil
	}
	if len(p.list) == 0 {
		return nil, invalidParams(`Invalid parameter "/": cannot be empty.`)
	}
	if len(p.list) > maxObjects {
		return nil, invalidParams(`Invalid parameter "/": maximum number of objects is %d.`, maxObjects)
	}
	return p.inside("", p.list)
}

// inside reads a list of objects at a place.
func (p *params) inside(place string, texts []json.RawMessage) ([]*params, error) {
	list := make([]*params, 0, len(texts))
	for i, text := range texts {
		at := p.place + place + strconv.Itoa(i+1) + "/"
		if text[0] != '{' {
			return nil, invalidParams(`Invalid parameter "/%s": an object is expected.`, strings.TrimSuffix(at, "/"))
		}
		one, err := newParams(text)
		if err != nil {
			return nil, err
		}
		one.place = at
		list = append(list, one)
	}
	return list, nil
}

// maxObjects bounds the objects that one call makes or changes.
const maxObjects = 100

// children reads a member that is an array of objects; a single object is taken for one. False is for one that is not given.
func (p *params) children(name string) ([]*params, bool) {
	v, ok := p.get(name)
	if !ok {
		return nil, false
	}
	var texts []json.RawMessage
	if v[0] == '{' {
		texts = []json.RawMessage{v}
	} else if json.Unmarshal(v, &texts) != nil {
		p.fail(name, "an array is expected")
		return nil, true
	}
	list, err := p.inside(name+"/", texts)
	if err != nil && p.failed == nil {
		p.failed = err
	}
	return list, true
}

// child reads a member that is an object; an empty array, as PHP writes an empty object, is one too. False is for one that is not given.
func (p *params) child(name string) (*params, bool) {
	v, ok := p.get(name)
	if !ok {
		return nil, false
	}
	if string(v) == "[]" {
		v = json.RawMessage("{}")
	}
	if v[0] != '{' {
		p.fail(name, "an object is expected")
		return nil, false
	}
	one, err := newParams(v)
	if err != nil {
		p.keep(err)
		return nil, false
	}
	one.place = p.place + name + "/"
	return one, true
}

// require fails when a member is not given.
func (p *params) require(name string) {
	if _, ok := p.get(name); !ok && p.failed == nil {
		p.failed = invalidParams(`Invalid parameter "/%s": the parameter "%s" is missing.`, strings.TrimSuffix(p.place, "/"), name)
	}
}

// references reads ids of others, in objects as releases from 6.0 on have them, or as the list of ids that was there before.
func (p *params) references(name, member, older string) (idSet, bool) {
	if _, ok := p.get(older); ok {
		return p.ids(older), true
	}
	list, ok := p.children(name)
	if !ok {
		return nil, false
	}
	ids := make(idSet, len(list))
	for _, one := range list {
		for id := range one.ids(member) {
			ids[id] = true
		}
		if err := one.done(); err != nil && p.failed == nil {
			p.failed = err
		}
	}
	return ids, true
}

// sortedKeys returns the names of a set.
func sortedKeys(names map[string]bool) []string { return slices.Sorted(maps.Keys(names)) }
