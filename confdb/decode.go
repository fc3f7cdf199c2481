package confdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"tidemark/model"
)

// Lengths that Zabbix allows, so that what is taken here fits there too.
const (
	maxNameBytes       = 255 * utf8.UTFMax
	maxKeyBytes        = 2048
	maxExpressionBytes = 64 << 10
	maxTextBytes       = 64 << 10
	maxSteps           = 100
	maxTags            = 1000
)

// decoder turns the tree of a file into an export. An object with a mistake is left out and named in the report; the
// others are taken.
type decoder struct {
	report *Report
	// path names the object that is being decoded.
	path string
	// bad is set when the object that is being decoded has a mistake.
	bad bool
	// collected says which item types somebody collects; others are kept and remarked once per owner and type.
	collected map[model.ItemType]bool
	idle      map[string]int
	// checkSteps is ImportOptions.CheckSteps.
	checkSteps func([]model.Step, model.ValueType) (int, error)
	// checkKey is ImportOptions.CheckKey.
	checkKey func(model.ItemType, string) error
}

// decodeExport returns the objects of a file and its tree.
func decodeExport(src []byte, report *Report, o *ImportOptions) (*export, *node, error) {
	root, err := parseTree(src)
	if err != nil {
		return nil, nil, fileError{err}
	}
	x, err := decodeTree(root, report, o)
	if err != nil {
		return nil, nil, fileError{err}
	}
	return x, root, nil
}

// fileError says what is wrong with a file as a whole. It is ErrInvalid without saying so.
type fileError struct{ error }

// Is implements errors.Is.
func (fileError) Is(target error) bool { return target == ErrInvalid }

// Unwrap implements errors.Is and errors.As.
func (e fileError) Unwrap() error { return e.error }

func decodeTree(root *node, report *Report, o *ImportOptions) (*export, error) {
	collected := map[model.ItemType]bool{model.ActiveAgent: true, model.Trapper: true}
	if o.Collected != nil {
		clear(collected)
		for _, t := range o.Collected {
			collected[t] = true
		}
	}
	top := root.field("zabbix_export")
	if top == nil || top.kind != objectNode {
		return nil, errors.New("no zabbix_export at the top; expected a Zabbix export in YAML or JSON")
	}
	d := &decoder{report: report, path: "export", collected: collected, checkSteps: o.CheckSteps, checkKey: o.CheckKey}
	x := &export{version: d.text(top, "version", "")}
	report.Version = x.version
	if !knownVersion(x.version) {
		return nil, fmt.Errorf("line %d: export version %q; expected 5.4 to 7.4", top.line, x.version)
	}
	top.field("date")
	d.globalMacros(x, top)
	d.regexps(x, top)
	d.groups(x, top, "groups", true, true)
	d.groups(x, top, "host_groups", true, false)
	d.groups(x, top, "template_groups", false, true)
	for _, n := range d.objects(top, "templates") {
		d.owner(x, n, templateOwner)
	}
	for _, n := range d.objects(top, "hosts") {
		d.owner(x, n, hostOwner)
	}
	d.path = "export"
	for _, n := range d.objects(top, "triggers") {
		if t, ok := d.trigger(n, "export", kindTrigger); ok {
			x.addTrigger(t)
		}
	}
	for _, n := range d.objects(top, "graphs") {
		for _, g := range d.body(nil, n, "export", model.GraphPrototype) {
			x.addGraph(g)
		}
	}
	d.path = "export"
	d.leaveOut(top, "media_types", "images", "maps", "value_maps")
	d.unknown(top)
	return x, nil
}

// knownVersion accepts the versions whose exports have the shape described here: 5.4, 6.x and 7.x.
func knownVersion(v string) bool {
	major, minor, ok := strings.Cut(v, ".")
	if !ok || minor == "" {
		return false
	}
	switch major {
	case "5":
		return minor == "4"
	case "6", "7":
		return len(minor) == 1 && minor[0] >= '0' && minor[0] <= '9'
	}
	return false
}

func (d *decoder) groups(x *export, top *node, key string, host, template bool) {
	d.path = key
	for _, n := range d.objects(top, key) {
		d.bad = false
		g := groupDef{host: host, template: template, name: d.name(n, "name"), uuid: d.text(n, "uuid", "")}
		d.unknown(n)
		if d.bad {
			d.report.count(kindGroup, refused)
			continue
		}
		x.groups = append(x.groups, g)
	}
}

// fault remarks a mistake of the current object, which will be left out.
func (d *decoder) fault(n *node, format string, args ...any) {
	d.bad = true
	d.report.remark(d.path, n.line, format, args...)
}

// text returns a field that is a text, or a default.
func (d *decoder) text(n *node, key, missing string) string {
	f := n.field(key)
	if f == nil {
		return missing
	}
	if f.kind != scalarNode {
		d.fault(f, "%s is %s; expected a text; not taken", key, f.kind)
		return missing
	}
	if len(f.text) > maxTextBytes {
		d.fault(f, "%s has %d bytes; at most %d are taken; not taken", key, len(f.text), maxTextBytes)
		return missing
	}
	return f.text
}

// name returns a field that must be a text of 1 to 255 characters.
func (d *decoder) name(n *node, key string) string {
	s := d.text(n, key, "")
	switch {
	case s == "":
		d.fault(n, "%s is missing; not taken", key)
	case len(s) > maxNameBytes || utf8.RuneCountInString(s) > 255:
		d.fault(n, "%s is longer than 255 characters; not taken", key)
	}
	return s
}

// choose returns the value that a field's name stands for.
func choose[T any](d *decoder, n *node, key string, names map[string]T, missing T) T {
	f := n.field(key)
	if f == nil {
		return missing
	}
	if v, ok := names[f.text]; ok && f.kind == scalarNode {
		return v
	}
	d.fault(f, "%s is %q; expected one of %s; not taken", key, f.text,
		strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	return missing
}

// objects returns the elements of a field that is a list of objects.
func (d *decoder) objects(n *node, key string) []*node {
	f := n.field(key)
	if f == nil {
		return nil
	}
	if f.kind != listNode {
		// An empty list is written as an empty object or text by some exporters.
		if len(f.kids) > 0 || f.text != "" {
			d.report.remark(d.path, f.line, "%s is %s; expected a list; not taken", key, f.kind)
		}
		return nil
	}
	var list []*node
	for _, kid := range f.kids {
		if kid.kind != objectNode {
			d.report.remark(d.path, kid.line, "%s has %s as element; expected an object; not taken", key, kid.kind)
			continue
		}
		list = append(list, kid)
	}
	return list
}

// names returns the name fields of a list of objects.
func (d *decoder) names(n *node, key string) []string {
	var names []string
	for _, o := range d.objects(n, key) {
		if s := d.name(o, "name"); s != "" && !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return names
}

func (d *decoder) tags(n *node) string {
	list := d.objects(n, "tags")
	if len(list) > maxTags {
		d.fault(n, "%d tags; at most %d are taken; not taken", len(list), maxTags)
		return ""
	}
	tags := make([]model.Tag, 0, len(list))
	for _, o := range list {
		tags = append(tags, model.Tag{Name: d.name(o, "tag"), Value: d.text(o, "value", "")})
	}
	slices.SortStableFunc(tags, func(a, b model.Tag) int {
		return strings.Compare(a.Name+"\x00"+a.Value, b.Name+"\x00"+b.Value)
	})
	return packTags(slices.Compact(tags))
}

// leaveOut remarks fields that are understood and have no counterpart here.
func (d *decoder) leaveOut(n *node, keys ...string) {
	for _, key := range keys {
		if f := n.field(key); f != nil && len(f.kids) > 0 {
			d.report.remark(d.path, f.line, "%s (%d) have no counterpart here; not taken", key, len(f.kids))
		}
	}
}

// unknown remarks the fields that nobody asked for.
func (d *decoder) unknown(n *node) {
	for i, used := range n.used {
		if !used {
			d.report.remark(d.path, n.kids[i].line, "field %s is not known; not taken", n.keys[i])
		}
	}
}

// keep returns the named fields as a JSON object, or "". They are stored for collectors to come and for export.
func keep(n *node, keys ...string) string { return packObject(fieldsOf(n, keys)) }

func fieldsOf(n *node, keys []string) map[string]any {
	kept := make(map[string]any)
	for _, key := range keys {
		if f := n.field(key); f != nil {
			if v := f.plain(); v != nil {
				kept[key] = v
			}
		}
	}
	return kept
}

func packObject(kept map[string]any) string {
	if len(kept) == 0 {
		return ""
	}
	b, err := json.Marshal(kept)
	if err != nil {
		panic(fmt.Sprintf("confdb: keep: %v", err)) // plain gives only texts, lists and maps
	}
	return string(b)
}

// plain is the node as encoding/json takes it. Numbers become texts, as Zabbix writes them; empty lists and nothing are left out.
func (n *node) plain() any {
	switch n.kind {
	case scalarNode:
		return n.text
	case listNode:
		list := make([]any, 0, len(n.kids))
		for _, kid := range n.kids {
			if v := kid.plain(); v != nil {
				list = append(list, v)
			}
		}
		if len(list) == 0 {
			return nil
		}
		return list
	case objectNode:
		object := make(map[string]any, len(n.keys))
		for i, key := range n.keys {
			n.used[i] = true
			if v := n.kids[i].plain(); v != nil {
				object[key] = v
			}
		}
		return object
	}
	return nil
}
