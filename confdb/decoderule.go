package confdb

import (
	"encoding/json"
	"fmt"
	"strings"

	"tidemark/internal/pcre"
	"tidemark/model"
	"tidemark/wire/jsonpath"
)

// checkRule remarks what a discovery rule says and cannot be used. The rule is taken all the same: it will show an error.
func (d *decoder) checkRule(n *node) {
	d.steps(n)
	for _, p := range d.objects(n, "lld_macro_paths") {
		if _, err := jsonpath.Compile(d.text(p, "path", "")); err != nil {
			d.report.remark(d.path, p.line, "lld_macro_paths: %v; kept, but the rule will fail", err)
		}
	}
	d.checkFilter(n.field("filter"))
	for _, o := range d.objects(n, "overrides") {
		d.checkFilter(o.field("filter"))
		for _, op := range d.objects(o, "operations") {
			choose(d, op, "operationobject", prototypeKinds, model.ItemPrototype)
			choose(d, op, "operator", nameOperators, model.NameEquals)
		}
	}
}

func (d *decoder) checkFilter(n *node) {
	if n == nil || n.kind != objectNode {
		return
	}
	choose(d, n, "evaltype", filterKinds, model.FilterAndOr)
	for _, c := range d.objects(n, "conditions") {
		choose(d, c, "operator", conditionOperators, model.MatchesRegex)
		value := d.text(c, "value", "")
		if value == "" || strings.HasPrefix(value, "@") || strings.Contains(value, "{$") {
			continue
		}
		if _, err := pcre.Compile(value); err != nil {
			d.report.remark(d.path, c.line, "filter: %v; kept, but the rule will fail", err)
		}
	}
}

// lifetimes brings the lifetimes of a rule into one form. Before 7.0 lost objects are never disabled and kept for 30 days unless the rule says
// otherwise; "0" deletes them at once.
func (d *decoder) lifetimes(body map[string]any) {
	if !strings.HasPrefix(d.report.Version, "7") {
		if body["lifetime"] == nil {
			body["lifetime"] = "30d"
		}
		if body["enabled_lifetime_type"] == nil {
			body["enabled_lifetime_type"] = "DISABLE_NEVER"
		}
	}
	if body["lifetime"] == "0" && body["lifetime_type"] == nil {
		body["lifetime_type"] = "DELETE_IMMEDIATELY"
	}
	if body["lifetime_type"] == "DELETE_IMMEDIATELY" || body["lifetime_type"] == "DELETE_NEVER" {
		delete(body, "lifetime")
	}
}

// The fields of graphs and host prototypes; they are kept as they are.
var (
	graphFields = []string{
		"width", "height", "yaxismin", "yaxismax", "show_work_period", "show_triggers", "type", "show_legend", "show_3d", "percent_left",
		"percent_right", "ymin_type_1", "ymax_type_1", "ymin_item_1", "ymax_item_1", "graph_items", "discover",
	}
	hostPrototypeFields = []string{
		"host", "name", "status", "discover", "group_links", "group_prototypes", "templates", "macros", "tags", "custom_interfaces",
		"interfaces", "inventory_mode",
	}
)

// body decodes a graph, a graph prototype or a host prototype and returns list with it.
func (d *decoder) body(list []bodyDef, n *node, owner string, kind model.PrototypeKind) []bodyDef {
	what, key, fields := "graph", "name", graphFields
	if kind == model.HostPrototype {
		what, key, fields = "host prototype", "host", hostPrototypeFields
	}
	d.bad, d.path = false, owner+", "+what
	b := bodyDef{line: n.line, bodyFields: bodyFields{kind: kind, uuid: d.text(n, "uuid", ""), name: d.name(n, key)}}
	d.path += " " + b.name
	b.body = keep(n, fields...)
	d.unknown(n)
	if d.bad {
		d.report.count(bodyKind(kind, true), refused)
		return list
	}
	return append(list, b)
}

// bodyKind is the word of reports.
func bodyKind(kind model.PrototypeKind, prototype bool) string {
	switch {
	case kind == model.HostPrototype:
		return kindHostProto
	case prototype:
		return kindGraphProto
	}
	return kindGraph
}

// graphHost is the host or template that the first item of a graph belongs to.
func graphHost(body string) string {
	if body == "" {
		return ""
	}
	var g struct {
		Items []struct {
			Item struct {
				Host string `json:"host"`
			} `json:"item"`
		} `json:"graph_items"`
	}
	if err := json.Unmarshal([]byte(body), &g); err != nil {
		panic(fmt.Sprintf("confdb: graph: %v", err)) // keep wrote it
	}
	if len(g.Items) == 0 {
		return ""
	}
	return g.Items[0].Item.Host
}
