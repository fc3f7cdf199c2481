package confdb

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tidemark/model"
)

// encodeExport makes the tree of an export, the reverse of decodeExport. Triggers over one item stand in the item, others beside the
// templates.
func encodeExport(x *export) *node {
	e := &encoder{version: x.version}
	top := newOut()
	top.text("version", x.version, "")
	e.groups(top, x)
	var triggers, graphs []*node
	for _, side := range []struct {
		key    string
		owners []*ownerDef
	}{{"templates", x.templates}, {"hosts", x.hosts}} {
		var list []*node
		for _, o := range side.owners {
			n, more := e.owner(o)
			list, triggers = append(list, n), append(triggers, more...)
			for i := range o.graphs {
				graphs = append(graphs, e.body(&o.graphs[i]))
			}
		}
		top.list(side.key, list)
	}
	top.list("triggers", triggers)
	top.list("graphs", graphs)
	root := newOut()
	root.put("zabbix_export", &top.node)
	return &root.node
}

type encoder struct{ version string }

func (e *encoder) old() bool { return strings.HasPrefix(e.version, "6") }

// groups writes the groups. Exports of 6.0 do not tell the two kinds apart.
func (e *encoder) groups(top *out, x *export) {
	var host, template, both []*node
	seen := make(map[string]bool)
	for _, g := range x.groups {
		o := newOut()
		o.text("uuid", g.uuid, "")
		o.text("name", g.name, "")
		if g.template {
			template = append(template, &o.node)
		} else {
			host = append(host, &o.node)
		}
		if !seen[g.name] {
			both = append(both, &o.node)
		}
		seen[g.name] = true
	}
	if e.old() {
		top.list("groups", both)
		return
	}
	top.list("template_groups", template)
	top.list("host_groups", host)
}

func named(names []string) []*node {
	var list []*node
	for _, n := range names {
		o := newOut()
		o.text("name", n, "")
		list = append(list, &o.node)
	}
	return list
}

// owner writes a host or template, and returns the triggers that stand beside it.
func (e *encoder) owner(o *ownerDef) (*node, []*node) {
	n := newOut()
	n.text("uuid", o.uuid, "")
	n.text(o.kind.String(), o.technical, "")
	n.text("name", o.name, "")
	n.text("description", o.description, "")
	extra := unpackObject(o.extra)
	take(n, extra, "vendor", "wizard_ready", "readme", "proxy", "proxy_group", "monitored_by", "ipmi_authtype", "ipmi_privilege", "ipmi_username", "ipmi_password")
	if !o.enabled {
		n.text("status", "DISABLED", "")
	}
	n.list("templates", named(o.templates))
	n.list("groups", named(o.groups))
	take(n, unpackObject(o.interfaces), "interfaces")
	within, beside := split(o.items, o.triggers)
	n.list("items", e.items(o.items, within, "triggers"))
	var rules []*node
	for i := range o.rules {
		rules = append(rules, e.rule(&o.rules[i]))
	}
	n.list("discovery_rules", rules)
	take(n, extra, "httptests")
	n.list("tags", tagNodes(o.tags))
	n.list("macros", macroNodes(o.macros))
	take(n, extra, "inventory", "inventory_mode", "dashboards")
	var valueMaps []*node
	for _, v := range o.valueMaps {
		m := newOut()
		m.text("uuid", v.uuid, "")
		m.text("name", v.name, "")
		take(m, unpackObject(v.mappings), "mappings")
		valueMaps = append(valueMaps, &m.node)
	}
	n.list("valuemaps", valueMaps)
	take(n, extra)
	return &n.node, e.triggers(beside)
}

// split gives triggers whose expressions name only one item, of the owner, to that item.
func split(items []itemDef, triggers []triggerDef) (within map[string][]triggerDef, beside []triggerDef) {
	keys := make(map[string]bool, len(items))
	for i := range items {
		keys[items[i].key] = true
	}
	within = make(map[string][]triggerDef)
	for _, t := range triggers {
		refs, hosts := refKeys(t.expression, t.recovery), refHosts(t.expression, t.recovery)
		if len(refs) == 1 && len(hosts) == 1 && keys[refs[0]] {
			within[refs[0]] = append(within[refs[0]], t)
			continue
		}
		beside = append(beside, t)
	}
	return within, beside
}

// refHosts returns the hosts that expressions name, each once.
func refHosts(expressions ...string) []string {
	var hosts []string
	for _, text := range expressions {
		refs, err := itemRefs(text)
		if err != nil {
			continue
		}
		for _, r := range refs {
			if host := text[r.hostAt:r.hostEnd]; !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}

// unpackObject reads a JSON object that keep wrote.
func unpackObject(text string) map[string]any {
	if text == "" {
		return nil
	}
	var all map[string]any
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		panic(fmt.Sprintf("confdb: export: %v", err)) // the import wrote it
	}
	return all
}

// take moves fields to an object: the named ones in their order, or all that are left, in alphabetical order.
func take(o *out, from map[string]any, keys ...string) {
	if len(keys) == 0 {
		keys = slices.Sorted(maps.Keys(from))
	}
	for _, k := range keys {
		if v, ok := from[k]; ok {
			o.any(k, v)
			delete(from, k)
		}
	}
}

func tagNodes(packed string) []*node {
	tags, err := unpackTags(packed)
	if err != nil {
		panic("confdb: export: " + err.Error()) // the import wrote it
	}
	var list []*node
	for _, t := range tags {
		o := newOut()
		o.text("tag", t.Name, "")
		o.text("value", t.Value, "")
		list = append(list, &o.node)
	}
	return list
}

func macroNodes(packed string) []*node {
	macros, err := unpack[packedMacro](packed)
	if err != nil {
		panic("confdb: export: " + err.Error()) // the import wrote it
	}
	var list []*node
	for _, m := range macros {
		o := newOut()
		o.text("macro", m.Name, "")
		if m.Secret {
			o.text("type", "SECRET_TEXT", "")
		} else {
			o.text("value", m.Value, "")
		}
		o.text("description", m.Description, "")
		list = append(list, &o.node)
	}
	return list
}

func (e *encoder) items(items []itemDef, within map[string][]triggerDef, key string) []*node {
	var list []*node
	for i := range items {
		n := e.item(&items[i].itemFields)
		n.list(key, e.triggers(within[items[i].key]))
		list = append(list, &n.node)
	}
	return list
}

func (e *encoder) item(f *itemFields) *out {
	n, extra := newOut(), unpackObject(f.extra)
	n.text("uuid", f.uuid, "")
	n.text("name", f.name, "")
	n.text("type", exportTypeName(f.kind, e.version), "ZABBIX_PASSIVE")
	take(n, extra, "snmp_oid")
	n.text("key", f.key, "")
	n.text("delay", f.delay, defaultDelay(f.kind))
	n.text("history", f.history, defaultHistory(e.version))
	n.text("trends", f.trends, "365d")
	if !f.enabled {
		n.text("status", "DISABLED", "")
	}
	take(n, extra, "discover")
	n.text("value_type", nameOf(valueTypes, f.valueType), "UNSIGNED")
	take(n, extra, "allowed_hosts")
	n.text("units", f.units, "")
	take(n, extra, "params", "ipmi_sensor", "authtype", "username", "password", "publickey", "privatekey")
	n.text("description", f.description, "")
	take(n, extra, "inventory_link", "valuemap", "logtimefmt")
	n.list("preprocessing", stepNodes(f.steps))
	take(n, extra, "jmx_endpoint", "master_item", "timeout", "url", "query_fields", "parameters", "posts", "status_codes", "follow_redirects",
		"post_type", "http_proxy", "headers", "retrieve_mode", "request_method", "output_format", "allow_traps")
	take(n, extra)
	n.list("tags", tagNodes(f.tags))
	return n
}

func stepNodes(packed string) []*node {
	steps, err := unpack[packedStep](packed)
	if err != nil {
		panic("confdb: export: " + err.Error()) // the import wrote it
	}
	var list []*node
	for _, s := range steps {
		o := newOut()
		o.text("type", nameOf(stepTypes, s.Type), "")
		var params []*node
		for _, p := range s.Params {
			params = append(params, scalarOf(p))
		}
		o.list("parameters", params)
		o.text("error_handler", nameOf(failActions, s.OnFail), "ORIGINAL_ERROR")
		o.text("error_handler_params", s.Value, "")
		list = append(list, &o.node)
	}
	return list
}

func (e *encoder) rule(r *ruleDef) *node {
	n, body := newOut(), unpackObject(r.body)
	if e.old() {
		oldLifetimes(body)
	}
	n.text("uuid", r.uuid, "")
	n.text("name", r.name, "")
	take(n, body, "type", "snmp_oid")
	n.text("key", r.key, "")
	take(n, body, "delay", "status", "allowed_hosts", "params", "ipmi_sensor", "authtype", "username", "password", "publickey", "privatekey", "filter",
		"lifetime_type", "lifetime", "enabled_lifetime_type", "enabled_lifetime", "description")
	within, beside := split(r.items, r.triggers)
	n.list("item_prototypes", e.items(r.items, within, "trigger_prototypes"))
	n.list("trigger_prototypes", e.triggers(beside))
	var graphs, hosts []*node
	for i := range r.others {
		b := e.body(&r.others[i])
		if r.others[i].kind == model.HostPrototype {
			hosts = append(hosts, b)
		} else {
			graphs = append(graphs, b)
		}
	}
	n.list("graph_prototypes", graphs)
	n.list("host_prototypes", hosts)
	take(n, body, "jmx_endpoint", "master_item", "timeout", "url", "query_fields", "parameters", "posts", "status_codes", "headers", "request_method",
		"lld_macro_paths", "preprocessing", "overrides")
	take(n, body)
	return &n.node
}

// oldLifetimes writes lifetimes as 6.0 has them: "0" deletes at once, and never is 25 years, the longest.
func oldLifetimes(body map[string]any) {
	switch body["lifetime_type"] {
	case "DELETE_IMMEDIATELY":
		body["lifetime"] = "0"
	case "DELETE_NEVER":
		body["lifetime"] = "9125d"
	default:
		if body["lifetime"] == nil && body["lifetime_type"] != nil || body["enabled_lifetime_type"] == nil && body["lifetime"] == nil {
			body["lifetime"] = "7d"
		}
	}
	if body["lifetime"] == "30d" {
		delete(body, "lifetime")
	}
	for _, k := range []string{"lifetime_type", "enabled_lifetime", "enabled_lifetime_type"} {
		delete(body, k)
	}
}

// body writes a graph, a graph prototype or a host prototype.
func (e *encoder) body(b *bodyDef) *node {
	text := b.body
	if b.kind == model.HostPrototype {
		var err error
		if text, err = changeSecrets(text, func(string, string) (string, error) { return "", nil }); err != nil {
			panic("confdb: export: " + err.Error()) // the import wrote it
		}
	}
	n, fields := newOut(), unpackObject(text)
	n.text("uuid", b.uuid, "")
	if b.kind == model.HostPrototype {
		take(n, fields, "host", "name")
	} else {
		n.text("name", b.name, "")
		delete(fields, "name")
	}
	take(n, fields)
	return &n.node
}

func (e *encoder) triggers(list []triggerDef) []*node {
	var nodes []*node
	for i := range list {
		nodes = append(nodes, e.trigger(&list[i]))
	}
	return nodes
}

func (e *encoder) trigger(t *triggerDef) *node {
	n, extra := newOut(), unpackObject(t.extra)
	n.text("uuid", t.uuid, "")
	n.text("expression", t.expression, "")
	n.text("recovery_mode", nameOf(recoveryModes, t.recoveryMode), "EXPRESSION")
	n.text("recovery_expression", t.recovery, "")
	take(n, extra, "correlation_mode", "correlation_tag")
	n.text("name", t.name, "")
	n.text("event_name", t.eventName, "")
	n.text("opdata", t.opdata, "")
	take(n, extra, "url_name")
	n.text("url", t.url, "")
	if !t.enabled {
		n.text("status", "DISABLED", "")
	}
	take(n, extra, "discover")
	n.text("priority", nameOf(severities, t.severity), "NOT_CLASSIFIED")
	n.text("description", t.comments, "")
	if t.multiple {
		n.text("type", "MULTIPLE", "")
	}
	if t.manual {
		n.text("manual_close", "YES", "")
	}
	var depends []*node
	for _, d := range t.depends {
		o := newOut()
		o.text("name", d.name, "")
		o.text("expression", d.expression, "")
		o.text("recovery_expression", d.recovery, "")
		depends = append(depends, &o.node)
	}
	n.list("dependencies", depends)
	n.list("tags", tagNodes(t.tags))
	take(n, extra)
	return &n.node
}
