package zabbixdb

import (
	"context"
	"strconv"
	"strings"
)

// rules are the parts of discovery rules of some hosts and templates.
type rules struct {
	conditions, paths, overrides map[int64][]row
	// By override and by operation.
	overrideConditions, operations, optags, optemplates map[int64][]row
	// settings are the tables of single settings of operations.
	settings map[string]map[int64][]row
	// parents are the rules of prototypes.
	parents map[int64]int64
	*hostPrototypes
}

// operationSettings are the tables with one setting of an operation: column, field, names.
var operationSettings = []struct {
	table, column, field string
	names                map[string]string
}{
	{"lld_override_opstatus", "status", "status", enabledNames},
	{"lld_override_opdiscover", "discover", "discover", discoverNames},
	{"lld_override_opperiod", "delay", "delay", nil},
	{"lld_override_ophistory", "history", "history", nil},
	{"lld_override_optrends", "trends", "trends", nil},
	{"lld_override_opseverity", "severity", "severity", severities},
	{"lld_override_opinventory", "inventory_mode", "inventory_mode", inventoryModes},
}

func (s *Source) ruleParts(ctx context.Context, owners []int64) (*rules, error) {
	p := &rules{settings: make(map[string]map[int64][]row), parents: make(map[int64]int64)}
	in := " WHERE itemid IN (SELECT itemid FROM items WHERE " + within(owners) + ")"
	overrides := " WHERE lld_overrideid IN (SELECT lld_overrideid FROM lld_override" + in + ")"
	operations := " WHERE lld_override_operationid IN (SELECT lld_override_operationid FROM lld_override_operation" + overrides + ")"
	reads := []struct {
		into      *map[int64][]row
		by, query string
	}{
		{&p.conditions, "itemid", "SELECT * FROM item_condition" + in + " ORDER BY item_conditionid"},
		{&p.paths, "itemid", "SELECT * FROM lld_macro_path" + in + " ORDER BY lld_macro_pathid"},
		{&p.overrides, "itemid", "SELECT * FROM lld_override" + in + " ORDER BY itemid, step"},
		{&p.overrideConditions, "lld_overrideid", "SELECT * FROM lld_override_condition" + overrides + " ORDER BY lld_override_conditionid"},
		{&p.operations, "lld_overrideid", "SELECT * FROM lld_override_operation" + overrides + " ORDER BY lld_override_operationid"},
		{&p.optags, "lld_override_operationid", "SELECT * FROM lld_override_optag" + operations + " ORDER BY lld_override_optagid"},
		{&p.optemplates, "lld_override_operationid", "SELECT o.lld_override_operationid, h.host FROM lld_override_optemplate o JOIN hosts h ON h.hostid = o.templateid" +
			strings.Replace(operations, "WHERE lld_override_operationid", "WHERE o.lld_override_operationid", 1) + " ORDER BY o.lld_override_optemplateid"},
	}
	for _, r := range reads {
		var err error
		if *r.into, err = s.grouped(ctx, r.by, r.query); err != nil {
			return nil, err
		}
	}
	for _, o := range operationSettings {
		m, err := s.grouped(ctx, "lld_override_operationid", "SELECT * FROM "+o.table+operations)
		if err != nil {
			return nil, err
		}
		p.settings[o.table] = m
	}
	err := s.each(ctx, "SELECT itemid, parent_itemid FROM item_discovery"+in, func(r row) error {
		p.parents[r.id("itemid")] = r.id("parent_itemid")
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.hostPrototypes, err = s.hostPrototypes(ctx, in)
	return p, err
}

// rule adds to a discovery rule what only rules have.
func (s *Source) rule(o object, r row, p *rules) object {
	id := r.id("itemid")
	delete(o, "units")
	o.put("lifetime", r["lifetime"], "")
	if s.mandatory >= 7000000 {
		o["lifetime_type"] = enum(deleteKinds, r["lifetime_type"])
		o["enabled_lifetime_type"] = enum(disableKinds, r["enabled_lifetime_type"])
		o.put("enabled_lifetime", r["enabled_lifetime"], "")
	} else if r["lifetime"] == "" {
		o["lifetime"] = "0"
	}
	if f := filter(r, p.conditions[id], "item_conditionid"); f != nil {
		o["filter"] = f
	}
	var paths, overrides []object
	for _, path := range p.paths[id] {
		paths = append(paths, object{"lld_macro": path["lld_macro"], "path": path["path"]})
	}
	o.putList("lld_macro_paths", paths)
	for _, v := range p.overrides[id] {
		overrides = append(overrides, p.override(v))
	}
	o.putList("overrides", overrides)
	o.putList("host_prototypes", p.made(id))
	return o
}

func (p *rules) override(v row) object {
	id := v.id("lld_overrideid")
	o := object{"name": v["name"], "step": orZero(v["step"])}
	o.put("stop", enum(yesNames, v["stop"]), "NO")
	if f := filter(v, p.overrideConditions[id], "lld_override_conditionid"); f != nil {
		o["filter"] = f
	}
	var operations []object
	for _, r := range p.operations[id] {
		op := object{"operationobject": enum(prototypeKinds, r["operationobject"])}
		op.put("operator", enum(nameOperators, r["operator"]), "EQUAL")
		op.put("value", r["value"], "")
		operation := r.id("lld_override_operationid")
		for _, set := range operationSettings {
			for _, value := range p.settings[set.table][operation] {
				if op[set.field] = value[set.column]; set.names != nil {
					op[set.field] = enum(set.names, value[set.column])
				}
			}
		}
		op.putList("tags", tags(p.optags[operation]))
		var templates []object
		for _, t := range p.optemplates[operation] {
			templates = append(templates, object{"name": t["host"]})
		}
		op.putList("templates", templates)
		operations = append(operations, op)
	}
	o.putList("operations", operations)
	return o
}

// filter makes the filter of a rule or override. The database's formula names conditions by {id}, exports by letters.
func filter(r row, conditions []row, key string) object {
	if len(conditions) == 0 {
		return nil
	}
	formula := r["formula"]
	f := object{}
	f.put("evaltype", enum(filterKinds, r["evaltype"]), "AND_OR")
	var list []object
	for i, c := range conditions {
		label := letters(i)
		formula = strings.ReplaceAll(formula, "{"+c[key]+"}", label)
		o := object{"macro": c["macro"], "formulaid": label}
		o.put("value", c["value"], "")
		o.put("operator", enum(filterOperators, c["operator"]), "MATCHES_REGEX")
		list = append(list, o)
	}
	if f["evaltype"] == "FORMULA" {
		f["formula"] = formula
	}
	f["conditions"] = list
	return f
}

// letters names conditions A to Z, AA, AB and so on.
func letters(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return letters(i/26-1) + string(rune('A'+i%26))
}

// hostPrototypes are the host prototypes of discovery rules.
type hostPrototypes struct {
	byRule                          map[int64][]row
	groups, templates, tagged, vars map[int64][]row
	source                          *Source
}

func (s *Source) hostPrototypes(ctx context.Context, in string) (*hostPrototypes, error) {
	p := &hostPrototypes{source: s}
	found := " FROM host_discovery d JOIN hosts h ON h.hostid = d.hostid WHERE h.flags = 2 AND h.templateid IS NULL AND d.parent_itemid IN (SELECT itemid FROM items" +
		strings.TrimPrefix(in, " WHERE itemid IN (SELECT itemid FROM items")
	ids := " WHERE hostid IN (SELECT h.hostid" + found + ")"
	for _, read := range []struct {
		into      *map[int64][]row
		by, query string
	}{
		{&p.byRule, "rule", "SELECT d.parent_itemid AS rule, h.*" + found + " ORDER BY h.hostid"},
		{&p.groups, "hostid", "SELECT p.hostid, p.name, g.name AS groupname FROM group_prototype p LEFT JOIN hstgrp g ON g.groupid = p.groupid" +
			strings.Replace(ids, "hostid IN", "p.hostid IN", 1) + " ORDER BY p.group_prototypeid"},
		{&p.templates, "hostid", "SELECT l.hostid, h.host FROM hosts_templates l JOIN hosts h ON h.hostid = l.templateid" +
			strings.Replace(ids, "hostid IN", "l.hostid IN", 1) + " ORDER BY l.hosttemplateid"},
		{&p.tagged, "hostid", "SELECT * FROM host_tag" + ids + " ORDER BY hosttagid"},
		{&p.vars, "hostid", "SELECT * FROM hostmacro" + ids + " ORDER BY hostmacroid"},
	} {
		var err error
		if *read.into, err = s.grouped(ctx, read.by, read.query); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// made are the host prototypes of one rule.
func (p *hostPrototypes) made(rule int64) []object {
	var out []object
	for _, r := range p.byRule[rule] {
		id := r.id("hostid")
		o := object{"host": r["host"], "name": r["name"]}
		o.put("uuid", r["uuid"], "")
		o.put("status", enum(enabledNames, r["status"]), "ENABLED")
		o.put("discover", enum(discoverNames, r["discover"]), "DISCOVER")
		var links, made, templates []object
		for _, g := range p.groups[id] {
			if g["groupname"] != "" {
				links = append(links, object{"group": object{"name": g["groupname"]}})
			} else {
				made = append(made, object{"name": g["name"]})
			}
		}
		for _, t := range p.templates[id] {
			templates = append(templates, object{"name": t["host"]})
		}
		o.putList("group_links", links)
		o.putList("group_prototypes", made)
		o.putList("templates", templates)
		o.putList("tags", tags(p.tagged[id]))
		o.putList("macros", p.source.macros(p.vars[id]))
		if n, err := strconv.Atoi(r["custom_interfaces"]); err == nil && n != 0 {
			p.source.leave("interfaces of host prototypes", 1, "custom interfaces of host prototypes are not read; made hosts get those of the rule's host")
		}
		out = append(out, o)
	}
	return out
}
