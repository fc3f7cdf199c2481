package zabbix

import (
	"tidemark/model"
)

// The members of discovery rules that are numbers in calls and names in documents.
var (
	filterNames     = []string{"AND_OR", "AND", "OR", "FORMULA"}
	conditionNames  = []string{8: "MATCHES_REGEX", 9: "NOT_MATCHES_REGEX", 12: "EXISTS", 13: "NOT_EXISTS"}
	lifetimeNames   = []string{"DELETE_AFTER", "DELETE_NEVER", "DELETE_IMMEDIATELY"}
	disablingNames  = []string{"DISABLE_AFTER", "DISABLE_NEVER", "DISABLE_IMMEDIATELY"}
	operationNames  = []string{"ITEM_PROTOTYPE", "TRIGGER_PROTOTYPE", "GRAPH_PROTOTYPE", "HOST_PROTOTYPE"}
	nameNames       = []string{0: "EQUAL", 1: "NOT_EQUAL", 2: "LIKE", 3: "NOT_LIKE", 8: "REGEXP", 9: "NOT_REGEXP"}
	discoverNames   = []string{"DISCOVER", "NO_DISCOVER"}
	inventoryNames  = []string{"MANUAL", "AUTOMATIC"}
	stopNames       = []string{"NO_STOP", "STOP"}
	methodNames     = []string{"GET", "POST", "PUT", "HEAD"}
	retrieveNames   = []string{"BODY", "HEADERS", "BOTH"}
	postNames       = []string{"RAW", "", "JSON", "XML"}
	httpAuthNames   = []string{"NONE", "BASIC", "NTLM", "KERBEROS", "DIGEST"}
	rulesOfDocument = "discovery_rules"
)

// itemPartFields are what discovery rules and item prototypes have alike.
func itemPartFields() []field[part] {
	fields := []field[part]{
		partText("name", "name", ""), partText("key_", "key", ""), partNumber("type", "type", itemTypes, 0), partText("delay", "delay", "1m"),
		partNumber("status", "status", enabledNames, 0), partNumber("request_method", "request_method", methodNames, 0),
		partNumber("retrieve_mode", "retrieve_mode", retrieveNames, 0), partNumber("post_type", "post_type", postNames, 0),
		partNumber("follow_redirects", "follow_redirects", noYes, 1), partNumber("authtype", "authtype", httpAuthNames, 0),
		partText("trapper_hosts", "allowed_hosts", ""), partNumber("allow_traps", "allow_traps", noYes, 0), partNumber("verify_peer", "verify_peer", noYes, 0), partNumber("verify_host", "verify_host", noYes, 0),
	}
	return append(fields, partTexts("description", "params", "snmp_oid", "ipmi_sensor", "jmx_endpoint", "username", "password", "url", "timeout", "posts", "status_codes",
		"http_proxy")...)
}

// itemPartSelects are the members of both that are no texts.
func itemPartSelects() []selection[part] {
	return append(partSelects(), pairsOf("headers"), pairsOf("query_fields"), pairsOf("parameters"), selection[part]{
		"selectPreprocessing", "preprocessing", func(_ *call, _ output, r *part) any {
			if !r.edits { // steps may be scripts
				return []object{}
			}
			return stepsOf(r.object)
		},
	})
}

func ruleKind() kind[part] {
	k := kind[part]{name: "discovery rule", id: "itemid", fields: append(partIDs("itemid", "1"), itemPartFields()...)}
	k.fields = append(k.fields, partText("lifetime", "lifetime", "7d"), partNumber("lifetime_type", "lifetime_type", lifetimeNames, 0),
		partText("enabled_lifetime", "enabled_lifetime", "0"), partNumber("enabled_lifetime_type", "enabled_lifetime_type", disablingNames, 2),
		field[part]{name: "master_itemid", number: true, get: func(r *part) string { return formatID(r.master()) }})
	k.selects = append(itemPartSelects(), []selection[part]{
		{"selectFilter", "filter", func(_ *call, _ output, r *part) any { return filterOf(r.object["filter"]) }},
		{"selectLLDMacroPaths", "lld_macro_paths", func(_ *call, _ output, r *part) any { return macroPathsOf(r) }},
		{"selectOverrides", "overrides", func(c *call, _ output, r *part) any { return c.overridesOf(r) }},
		{"selectItems", "items", func(c *call, o output, r *part) any { return pickParts(o, itemPrototypeKind(), c.itemPrototypes(r)) }},
		{"selectTriggers", "triggers", func(c *call, o output, r *part) any {
			return pickParts(o, triggerPrototypeKind(), c.triggerPrototypes(r))
		}},
		{"selectGraphs", "graphs", func(_ *call, o output, r *part) any { return pickParts(o, graphPrototypeKind(), graphPrototypes(r)) }},
		{"selectHostPrototypes", "hostPrototypes", func(_ *call, o output, r *part) any { return pickParts(o, hostPrototypeKind(), hostPrototypes(r)) }},
	}...)
	return k
}

func pickParts(o output, k kind[part], rows []part) any { return pickAll(o, &k, rows) }

// children are prototypes of a rule that are a member of its own, by name.
func (r *part) children(member, name string) []part {
	var rows []part
	for _, one := range r.list(member) {
		rows = append(rows, r.child(one, childName(member, r.text("key", ""), textOf(one, name, ""))))
	}
	return rows
}

// child is a prototype of a rule, by a name that no other of its host has.
func (r *part) child(one object, name string) part {
	p := part{object: one, id: partID(r.holder, name), holder: r.holder, source: r.source, rule: r, edits: r.edits}
	if r.source != r.holder {
		p.inherited = partID(r.source, name)
	}
	return p
}

// master is the id of the item that a dependent one takes its values from, 0 for others.
func (r *part) master() uint64 {
	item, _ := r.object["master_item"].(object)
	key := textOf(item, "key", "")
	switch {
	case key == "":
		return 0
	case isTemplate(r.holder.ID):
		return partID(r.holder, "item "+key)
	}
	return r.masterItem
}

// rulesOf returns the discovery rules of a host or template.
func (c *call) rulesOf(h *model.Host) []*part {
	var list []*part
	if isTemplate(h.ID) {
		for _, one := range documentRules(c.document(h)) {
			list = append(list, &part{object: one, id: partID(h, "rule "+textOf(one, "key", "")), holder: h, source: h, edits: c.editsOn(h)})
		}
		return list
	}
	edits := c.editsOn(h)
	for _, r := range c.configuration.Rules(h.ID) {
		item, ok := c.configuration.Item(r.ItemID)
		if !ok {
			continue
		}
		source := h
		if item.TemplateID != 0 {
			if source = c.sourceOf(item.TemplateID); source == nil {
				continue
			}
		}
		for _, one := range documentRules(c.document(source)) {
			if textOf(one, "key", "") != r.Key {
				continue
			}
			p := &part{object: one, id: uint64(r.ItemID), holder: h, source: source, edits: edits, masterItem: uint64(item.MasterID)}
			if source != h {
				p.inherited = partID(source, "rule "+r.Key)
			}
			list = append(list, p)
		}
	}
	return list
}

// getRules lists the discovery rules of hosts and templates.
func getRules(c *call) ([]byte, error) {
	ids, a := c.ids("itemids"), c.asked()
	holders, err := c.holders(&a, ids)
	if err != nil {
		return nil, err
	}
	var rows []part
	for _, h := range holders {
		for _, r := range c.rulesOf(h) {
			if ids.has(r.id) && a.fitsPart(r) {
				rows = append(rows, *r)
			}
		}
	}
	k := ruleKind()
	k.filters = partFilters()
	met := c.ruleErrors()
	k.fields = append(k.fields,
		field[part]{name: "state", number: true, get: func(r *part) string { return formatBool(met(r) != "") }}, field[part]{name: "error", get: met})
	return answer(c, &k, rows)
}

// ruleErrors returns what rules met with their last values, which it reads when it is asked for a rule of a host first.
func (c *call) ruleErrors() func(*part) string {
	known := make(map[model.HostID]map[model.ItemID]string)
	return func(r *part) string {
		if isTemplate(r.holder.ID) {
			return ""
		}
		errors, ok := known[r.holder.ID]
		if !ok {
			var err error
			if errors, err = c.options.Objects.RuleErrors(c.ctx, r.holder.ID); err != nil && c.failed == nil {
				c.failed = err
			}
			known[r.holder.ID] = errors
		}
		return errors[model.ItemID(r.id)]
	}
}

// filterOf answers a filter as calls have it.
func filterOf(v any) object {
	f, _ := v.(object)
	conditions := []object{}
	for _, one := range objectsIn(f, "conditions") {
		conditions = append(conditions, object{
			"macro": textOf(one, "macro", ""), "value": textOf(one, "value", ""), "formulaid": textOf(one, "formulaid", ""),
			"operator": formatInt(indexOf(conditionNames, textOf(one, "operator", ""), 8)),
		})
	}
	formula := textOf(f, "formula", "")
	return object{"evaltype": formatInt(indexOf(filterNames, textOf(f, "evaltype", ""), 0)), "formula": formula, "eval_formula": formula, "conditions": conditions}
}

func macroPathsOf(r *part) []object {
	list := []object{}
	for _, one := range r.list("lld_macro_paths") {
		list = append(list, object{"lld_macro": textOf(one, "lld_macro", ""), "path": textOf(one, "path", "")})
	}
	return list
}
