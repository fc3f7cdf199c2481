package zabbix

import (
	"strings"

	"tidemark/model"
)

// itemPrototypeName and triggerPrototypeName are by what a prototype is known among all parts of its host or template.
func itemPrototypeName(rule, key string) string { return "item prototype " + rule + "\x00" + key }

func triggerPrototypeName(rule string, trigger object) string {
	return "trigger prototype " + rule + "\x00" + textOf(trigger, "name", "") + "\x00" + textOf(trigger, "expression", "") + "\x00" + textOf(trigger, "recovery_expression", "")
}

// prototypeFields are what all kinds of prototypes have.
func prototypeFields(id string) []field[part] {
	return append(partIDs(id, "2"),
		field[part]{name: "ruleid", number: true, get: func(r *part) string { return formatID(r.rule.id) }},
		partNumber("discover", "discover", discoverNames, 0))
}

func prototypeSelects() []selection[part] {
	return append(partSelects(), selection[part]{"selectDiscoveryRule", "discoveryRule", func(_ *call, o output, r *part) any {
		k := ruleKind()
		return pick(o, &k, r.rule)
	}})
}

func itemPrototypeKind() kind[part] {
	k := kind[part]{name: "item prototype", id: "itemid", fields: append(prototypeFields("itemid"), itemPartFields()...)}
	k.fields = append(k.fields, partNumber("value_type", "value_type", itemValueTypes, 3), partText("units", "units", ""), partText("history", "history", "31d"),
		partText("trends", "trends", "365d"), partText("logtimefmt", "logtimefmt", ""),
		field[part]{name: "master_itemid", number: true, get: func(r *part) string { return formatID(r.masterItem) }},
		field[part]{name: "valuemapid", number: true, get: func(r *part) string {
			m, _ := r.object["valuemap"].(object)
			if name := textOf(m, "name", ""); name != "" {
				return formatID(valueMapID(r.source, name))
			}
			return "0"
		}})
	k.selects = append(itemPartSelects(), prototypeSelects()[len(partSelects()):]...)
	k.selects = append(k.selects, selection[part]{"selectTriggers", "triggers", func(c *call, o output, r *part) any {
		var rows []part
		for _, t := range c.triggerPrototypes(r.rule) {
			if t.names(r.source, r.text("key", "")) {
				rows = append(rows, t)
			}
		}
		return pickParts(o, triggerPrototypeKind(), rows)
	}})
	return k
}

// itemPrototypes are those of a rule.
func (c *call) itemPrototypes(rule *part) []part {
	var rows []part
	byKey := make(map[string]uint64)
	for _, one := range rule.list("item_prototypes") {
		key := textOf(one, "key", "")
		p := rule.child(one, itemPrototypeName(rule.text("key", ""), key))
		byKey[key] = p.id
		rows = append(rows, p)
	}
	for i := range rows {
		master, _ := rows[i].object["master_item"].(object)
		if key := textOf(master, "key", ""); key != "" {
			if rows[i].masterItem = byKey[key]; rows[i].masterItem == 0 {
				rows[i].masterItem = c.itemByKey(rule.holder, key)
			}
		}
	}
	return rows
}

// itemByKey is the id of an item of a host or template, 0 for none.
func (c *call) itemByKey(h *model.Host, key string) uint64 {
	if isTemplate(h.ID) {
		return partID(h, "item "+key)
	}
	for _, id := range c.options.Catalog.HostItems(h.ID) {
		if e, ok := c.options.Catalog.Item(id); ok && e.Key == key {
			return uint64(id)
		}
	}
	return 0
}

// names reports whether the expressions of a trigger name an item of a host or template.
func (r *part) names(h *model.Host, key string) bool {
	for _, member := range []string{"expression", "recovery_expression"} {
		e, err := parseWritten(r.text(member, ""))
		if err != nil {
			continue
		}
		for _, ref := range e.Refs {
			if ref.Host == h.Host && ref.Key == key {
				return true
			}
		}
	}
	return false
}

// expressionOf names the holder in an expression, where a template's document names the template.
func expressionOf(member, of string) field[part] {
	return field[part]{name: member, get: func(r *part) string {
		text := r.text(of, "")
		if r.source == r.holder {
			return text
		}
		return strings.ReplaceAll(text, "/"+r.source.Host+"/", "/"+r.holder.Host+"/")
	}}
}

func triggerPrototypeKind() kind[part] {
	k := kind[part]{name: "trigger prototype", id: "triggerid", fields: append(prototypeFields("triggerid"),
		partText("description", "name", ""), expressionOf("expression", "expression"), expressionOf("recovery_expression", "recovery_expression"), partText("comments", "description", ""))}
	k.fields = append(k.fields, partTexts("event_name", "opdata", "url_name", "correlation_tag")...)
	k.fields = append(k.fields, partText("url", "url", ""))
	for _, member := range []string{"priority", "status", "type", "recovery_mode", "correlation_mode", "manual_close"} {
		k.fields = append(k.fields, partNumber(member, member, triggerNumbers[member], 0))
	}
	k.selects = append(prototypeSelects(), []selection[part]{
		{"selectItems", "items", func(c *call, o output, r *part) any {
			var rows []part
			for _, i := range c.itemPrototypes(r.rule) {
				if r.names(r.source, i.text("key", "")) {
					rows = append(rows, i)
				}
			}
			return pickParts(o, itemPrototypeKind(), rows)
		}},
		{"selectDependencies", "dependencies", func(c *call, o output, r *part) any {
			var rows []part
			for _, t := range c.triggerPrototypes(r.rule) {
				for _, d := range r.list("dependencies") {
					if d["name"] == t.object["name"] && d["expression"] == t.object["expression"] {
						rows = append(rows, t)
					}
				}
			}
			return pickParts(o, triggerPrototypeKind(), rows)
		}},
	}...)
	return k
}

// triggerPrototypes are those of a rule: documents have those of one item below it.
func (c *call) triggerPrototypes(rule *part) []part {
	var rows []part
	add := func(list []object) {
		for _, one := range list {
			rows = append(rows, rule.child(one, triggerPrototypeName(rule.text("key", ""), one)))
		}
	}
	for _, item := range rule.list("item_prototypes") {
		add(objectsIn(item, "trigger_prototypes"))
	}
	add(rule.list("trigger_prototypes"))
	return rows
}

// getPrototypes lists the prototypes of one kind that the rules of hosts and templates have.
func getPrototypes(c *call, id string, k kind[part], of func(*part) []part) ([]byte, error) {
	ids, rules, a := c.ids(id+"s"), c.ids("discoveryids"), c.asked()
	if id == "hostid" { // the prototype's own
		a.hosts, a.names = nil, nil
	} else {
		k.filters = append(partFilters(), field[part]{name: "discoveryids", get: func(r *part) string { return formatID(r.rule.id) }}) // as playbooks send it
	}
	from := ids
	if from == nil {
		from = rules
	}
	holders, err := c.holders(&a, from)
	if err != nil {
		return nil, err
	}
	var rows []part
	for _, h := range holders {
		for _, r := range c.rulesOf(h) {
			if !rules.has(r.id) {
				continue
			}
			for _, p := range of(r) {
				if ids.has(p.id) && a.fitsPart(&p) {
					rows = append(rows, p)
				}
			}
		}
	}
	return answer(c, &k, rows)
}

func getItemPrototypes(c *call) ([]byte, error) {
	return getPrototypes(c, "itemid", itemPrototypeKind(), c.itemPrototypes)
}

func getTriggerPrototypes(c *call) ([]byte, error) {
	c.accept("expandExpression") // expressions are always written with hosts and keys
	return getPrototypes(c, "triggerid", triggerPrototypeKind(), c.triggerPrototypes)
}
