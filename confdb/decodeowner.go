package confdb

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tidemark/expr"
	"tidemark/model"
)

func (d *decoder) owner(x *export, n *node, kind ownerKind) {
	d.bad, d.path, d.idle = false, kind.String(), make(map[string]int)
	technical := d.name(n, kind.String())
	if d.path += " " + technical; !validHostName(technical) {
		d.fault(n, "%q is no %s name; expected letters, digits, spaces, '.', '_' and '-'; not taken", technical, kind)
	}
	o := &ownerDef{kind: kind, line: n.line}
	o.ownerFields = ownerFields{
		technical: technical, name: d.text(n, "name", technical), uuid: d.text(n, "uuid", ""),
		description: d.text(n, "description", ""),
		enabled:     choose(d, n, "status", enabledNames, true),
		tags:        d.tags(n), macros: d.macros(n),
	}
	o.groups, o.templates = d.names(n, "groups"), d.names(n, "templates")
	if kind == hostOwner {
		o.interfaces = keep(n, "interfaces")
	}
	o.extra = keep(n, "httptests", "dashboards", "vendor", "wizard_ready", "readme", "proxy", "proxy_group", "monitored_by", "inventory", "inventory_mode",
		"ipmi_authtype", "ipmi_privilege", "ipmi_username", "ipmi_password")
	o.valueMaps = d.valueMaps(n)
	if d.bad {
		d.report.count(kind.String()+"s", refused)
		return
	}
	path := d.path
	for _, i := range d.objects(n, "items") {
		o.items = d.item(o.items, i, path, kindItem, &o.triggers)
	}
	o.items = append(o.items, d.scenarios(n, path)...)
	for _, r := range d.objects(n, "discovery_rules") {
		d.rule(o, r, path)
	}
	d.path = path
	d.leaveOut(n, "screens", "applications")
	d.unknown(n)
	for _, what := range slices.Sorted(maps.Keys(d.idle)) {
		d.report.remark(path, n.line, "%s (%d), which has no collector yet; kept, but not collected", what, d.idle[what])
	}
	if kind == hostOwner {
		if d.checkKey != nil {
			d.checkInterfaces(o)
		}
		x.hosts = append(x.hosts, o)
		return
	}
	x.templates = append(x.templates, o)
}

// validHostName accepts Zabbix's technical names.
func validHostName(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("._- ", r) {
			return false
		}
	}
	return s != "" && len(s) <= 128 && strings.TrimSpace(s) == s
}

func (d *decoder) macros(n *node) string { return pack(d.macroList(n, "macros")) }

func (d *decoder) macroList(n *node, key string) []packedMacro {
	var list []packedMacro
	for _, o := range d.objects(n, key) {
		m := packedMacro{
			Name: d.name(o, "macro"), Value: d.text(o, "value", ""), Description: d.text(o, "description", ""),
		}
		switch kind := d.text(o, "type", "TEXT"); kind {
		case "TEXT":
		case "SECRET_TEXT":
			m.Secret = true
		default:
			d.report.remark(d.path, o.line, "macro %s has type %s; expected TEXT or SECRET_TEXT; not taken", m.Name, kind)
			continue
		}
		if !strings.HasPrefix(m.Name, "{$") || !strings.HasSuffix(m.Name, "}") {
			d.report.remark(d.path, o.line, "macro %q; expected the form {$NAME} or {$NAME:context}; not taken", m.Name)
			continue
		}
		list = append(list, m)
	}
	slices.SortStableFunc(list, func(a, b packedMacro) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (d *decoder) valueMaps(n *node) []valueMapDef {
	var list []valueMapDef
	for _, o := range d.objects(n, "valuemaps") {
		v := valueMapDef{line: o.line}
		v.name, v.uuid, v.mappings = d.name(o, "name"), d.text(o, "uuid", ""), keep(o, "mappings")
		list = append(list, v)
	}
	return list
}

// itemExtra are the fields of items that only some collectors need; they are kept as they are.
var itemExtra = []string{
	"snmp_oid", "allowed_hosts", "params", "ipmi_sensor", "authtype", "username", "password", "publickey", "privatekey",
	"port", "inventory_link", "valuemap", "logtimefmt", "jmx_endpoint", "timeout", "url", "query_fields", "posts",
	"status_codes", "follow_redirects", "post_type", "http_proxy", "headers", "retrieve_mode", "request_method",
	"output_format", "allow_traps", "ssl_cert_file", "ssl_key_file", "ssl_key_password", "verify_peer", "verify_host",
	"parameters", "master_item", "interface_ref", "discover",
}

// item decodes an item or an item prototype and the triggers inside it, and returns list with it.
func (d *decoder) item(list []itemDef, n *node, owner, kind string, triggers *[]triggerDef) []itemDef {
	d.bad, d.path = false, owner+", "+strings.TrimSuffix(kind, "s")
	key := d.text(n, "key", "")
	d.path += " " + key
	i := itemDef{line: n.line}
	i.itemFields = itemFields{
		uuid: d.text(n, "uuid", ""), key: key, name: d.text(n, "name", key),
		kind:      choose(d, n, "type", itemTypes, model.PassiveAgent),
		valueType: choose(d, n, "value_type", valueTypes, model.Uint),
		enabled:   choose(d, n, "status", enabledNames, true),
		history:   d.text(n, "history", defaultHistory(d.report.Version)), trends: d.text(n, "trends", "365d"),
		units: d.text(n, "units", ""), description: d.text(n, "description", ""),
		steps: d.steps(n), tags: d.tags(n), extra: keep(n, itemExtra...),
	}
	i.delay = d.text(n, "delay", defaultDelay(i.kind))
	d.checkItem(n, &i.itemFields)
	if d.checkKey != nil {
		d.checkWork(n, &i.itemFields)
	}
	if err := CheckKey(key); err != nil {
		d.fault(n, "%v; not taken", err)
	}
	d.leaveOut(n, "applications")
	bad := d.bad
	field, of := "triggers", kindTrigger
	if kind == kindItemProto {
		field, of = "trigger_prototypes", kindTriggerProto
	}
	inner := d.objects(n, field)
	d.unknown(n)
	for _, t := range inner {
		if t, ok := d.trigger(t, owner, of); ok {
			*triggers = append(*triggers, t)
		}
	}
	if bad {
		d.report.count(kind, refused)
		return list
	}
	if !d.collected[i.kind] {
		d.idle[kind+" of type "+typeName(i.kind)]++
	}
	return append(list, i)
}

// typeName is the name of an item type in exports.
func typeName(t model.ItemType) string {
	for _, name := range slices.Sorted(maps.Keys(itemTypes)) {
		if itemTypes[name] == t {
			return name
		}
	}
	return fmt.Sprint(uint8(t))
}

// defaultHistory is what an item without history field keeps: 7.0 lowered it.
func defaultHistory(version string) string {
	if strings.HasPrefix(version, "7") {
		return "31d"
	}
	return "90d"
}

// defaultDelay is the interval of an item without delay field; types that are not asked have none.
func defaultDelay(t model.ItemType) string {
	switch t {
	case model.Trapper, model.SNMPTrap, model.Dependent:
		return "0"
	}
	return "1m"
}

func (d *decoder) steps(n *node) string {
	list := d.objects(n, "preprocessing")
	if len(list) > maxSteps {
		d.fault(n, "%d preprocessing steps; at most %d are taken; not taken", len(list), maxSteps)
		return ""
	}
	steps := make([]packedStep, 0, len(list))
	for _, o := range list {
		s := packedStep{
			Type:   choose(d, o, "type", stepTypes, model.StepMultiplier),
			OnFail: choose(d, o, "error_handler", failActions, model.FailUnsupported),
			Value:  d.text(o, "error_handler_params", ""),
		}
		if p := o.field("parameters"); p != nil {
			for _, kid := range p.kids {
				s.Params = append(s.Params, kid.text)
			}
		} else if p := d.text(o, "params", ""); p != "" {
			s.Params = strings.Split(p, "\n") // exports before 5.4
		}
		if o.field("type") == nil {
			d.fault(o, "preprocessing step without type; not taken")
		}
		d.unknown(o)
		steps = append(steps, s)
	}
	return pack(steps)
}

func (d *decoder) rule(o *ownerDef, n *node, owner string) {
	d.bad, d.path = false, owner+", discovery rule"
	key := d.text(n, "key", "")
	d.path += " " + key
	path := d.path
	r := ruleDef{line: n.line}
	r.ruleFields = ruleFields{uuid: d.text(n, "uuid", ""), key: key, name: d.text(n, "name", key)}
	d.checkRule(n)
	body := fieldsOf(n, append([]string{
		"type", "delay", "status", "description", "filter", "lifetime", "lifetime_type", "enabled_lifetime",
		"enabled_lifetime_type", "lld_macro_paths", "preprocessing", "overrides",
	}, itemExtra...))
	d.lifetimes(body)
	r.body = packObject(body)
	if err := CheckKey(key); err != nil {
		d.fault(n, "%v; not taken", err)
	}
	d.leaveOut(n, "discovery_prototypes")
	if d.bad {
		d.report.count(kindRule, refused)
		return
	}
	prototypes, triggers := d.objects(n, "item_prototypes"), d.objects(n, "trigger_prototypes")
	graphs, hosts := d.objects(n, "graph_prototypes"), d.objects(n, "host_prototypes")
	d.unknown(n)
	for _, i := range prototypes {
		r.items = d.item(r.items, i, path, kindItemProto, &r.triggers)
	}
	for _, t := range triggers {
		if t, ok := d.trigger(t, path, kindTriggerProto); ok {
			r.triggers = append(r.triggers, t)
		}
	}
	for _, g := range graphs {
		r.others = d.body(r.others, g, path, model.GraphPrototype)
	}
	for _, h := range hosts {
		r.others = d.body(r.others, h, path, model.HostPrototype)
	}
	if kind := itemTypes[d.text(n, "type", "ZABBIX_PASSIVE")]; !d.collected[kind] {
		d.idle[kindRule+" of type "+typeName(kind)]++
	}
	o.rules = append(o.rules, r)
}

func (d *decoder) trigger(n *node, owner, kind string) (triggerDef, bool) {
	d.bad, d.path = false, owner+", "+strings.TrimSuffix(kind, "s")
	name := d.name(n, "name")
	d.path += " " + name
	t := triggerDef{line: n.line}
	t.triggerFields = triggerFields{
		uuid: d.text(n, "uuid", ""), name: name,
		eventName: d.text(n, "event_name", ""), opdata: d.text(n, "opdata", ""),
		expression: d.text(n, "expression", ""), recovery: d.text(n, "recovery_expression", ""),
		recoveryMode: choose(d, n, "recovery_mode", recoveryModes, model.RecoverByExpression),
		severity:     choose(d, n, "priority", severities, model.NotClassified),
		enabled:      choose(d, n, "status", enabledNames, true),
		multiple:     choose(d, n, "type", multipleName, false),
		manual:       choose(d, n, "manual_close", yesNames, false),
		comments:     d.text(n, "description", ""), url: d.text(n, "url", ""), tags: d.tags(n),
		extra: keep(n, "correlation_mode", "correlation_tag", "url_name", "discover"),
	}
	for _, o := range d.objects(n, "dependencies") {
		t.depends = append(t.depends, dependDef{
			name: d.name(o, "name"), expression: d.text(o, "expression", ""),
			recovery: d.text(o, "recovery_expression", ""), line: o.line,
		})
	}
	d.expression(n, t.expression, "expression")
	if t.recoveryMode == model.RecoverByRecoveryExpression {
		d.expression(n, t.recovery, "recovery_expression")
	}
	d.unknown(n)
	if d.bad {
		d.report.count(kind, refused)
	}
	return t, !d.bad
}

// expression checks what can be seen without evaluating: that it names an item and that its quotes and brackets close.
func (d *decoder) expression(n *node, text, field string) {
	if f := n.field(field); f != nil {
		n = f
	}
	if len(text) > maxExpressionBytes {
		d.fault(n, "%s has %d bytes; at most %d are taken; not taken", field, len(text), maxExpressionBytes)
		return
	}
	refs, err := itemRefs(text)
	switch {
	case err != nil:
		d.fault(n, "%s: %v; not taken", field, err)
	case len(refs) == 0:
		d.fault(n, "%s %q names no item; expected a function of /host/key; not taken", field, text)
	default:
		if _, err := expr.Parse(withoutMacros(text)); err != nil {
			d.report.remark(d.path, n.line, "%s: %v; kept, but its state will be unknown", field, err)
		}
	}
}

// withoutMacros puts a 1 where an expression has a macro, so that its form can be checked before the macros are known.
func withoutMacros(text string) string {
	if !strings.ContainsRune(text, '{') {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		if text[i] == '{' {
			if end := macroEnd(text, i); end > 0 {
				b.WriteByte('1')
				i = end
				continue
			}
		}
		b.WriteByte(text[i])
		i++
	}
	return b.String()
}
