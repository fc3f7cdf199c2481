package confdb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tidemark/expr"
	"tidemark/model"
)

// needed are the fields without which an item of a type has nothing to do, each with what is expected there.
var needed = map[model.ItemType]struct{ field, expected string }{
	model.HTTPAgent:  {"url", "an address such as http://{HOST.CONN}/status"},
	model.SNMPAgent:  {"snmp_oid", "an OID such as get[1.3.6.1.2.1.1.3.0] or walk[1.3.6.1.2.1.2]"},
	model.Calculated: {"params", "a formula such as last(//net.if.in[eth0]) * 8"},
	model.Script:     {"params", "a script that returns the value"},
	model.SSH:        {"params", "the commands to run"},
	model.Database:   {"params", "an SQL query"},
	model.Dependent:  {"master_item", "the key of the item that it is made of"},
}

// interfaceTypes are the interfaces that items of a type are asked over: the name in exports and in texts.
var interfaceTypes = map[model.ItemType][2]string{
	model.PassiveAgent: {"ZABBIX", "agent"}, model.SNMPAgent: {"SNMP", "SNMP"}, model.IPMI: {"IPMI", "IPMI"}, model.JMX: {"JMX", "JMX"},
}

// checkWork refuses an item that has nothing to do, and remarks one whose key or formula nobody understands.
func (d *decoder) checkWork(n *node, f *itemFields) {
	at := func(field string) *node {
		if k := n.field(field); k != nil {
			return k
		}
		return n
	}
	if need, ok := needed[f.kind]; ok && neededText(f.extra, need.field) == "" {
		d.fault(at(need.field), "%s: missing in an item of type %s; expected %s; not taken", need.field, typeName(f.kind), need.expected)
		return
	}
	if f.kind == model.Calculated {
		if text := neededText(f.extra, "params"); !hasMacro(text) {
			if _, err := expr.ParseFormula(text); err != nil {
				d.report.remark(d.path, at("params").line, "params: formula: %v; kept, but the item will be not supported", err)
			}
		}
	}
	if hasMacro(f.key) || CheckKey(f.key) != nil {
		return
	}
	if err := d.checkKey(f.kind, f.key); err != nil {
		d.report.remark(d.path, at("key").line, "key: %v; kept, but the item will be not supported", err)
	}
}

// neededText is a field of an item's extra fields: a text, or the key of the master item.
func neededText(extra, field string) string {
	var all map[string]any
	if extra == "" || json.Unmarshal([]byte(extra), &all) != nil {
		return ""
	}
	switch v := all[field].(type) {
	case string:
		return strings.TrimSpace(v)
	case map[string]any:
		key, _ := v["key"].(string)
		return key
	}
	return ""
}

// checkInterfaces remarks the items of a host that are asked over an interface which the host does not have.
func (d *decoder) checkInterfaces(o *ownerDef) {
	var list struct {
		Interfaces []struct{ Type string }
	}
	if o.interfaces != "" && json.Unmarshal([]byte(o.interfaces), &list) != nil {
		return
	}
	has := make(map[string]bool)
	for _, i := range list.Interfaces {
		if i.Type == "" {
			i.Type = "ZABBIX"
		}
		has[i.Type] = true
	}
	for n := range o.items {
		i := &o.items[n]
		kind, ok := interfaceTypes[i.kind]
		if !ok || has[kind[0]] {
			continue
		}
		d.report.remark("host "+o.technical+", item "+i.key, i.line,
			"type: the host has no interface of type %s; give it one; kept, but not collected until then", kind[1])
	}
}

// checkSources remarks dependent items whose master item is not there and, where Known tells of all items, formulas that name a missing item.
func (i *importer) checkSources(ctx context.Context, o *ownerDef) error {
	for n := range o.items {
		if err := i.checkSource(ctx, o, &o.items[n], o.items); err != nil {
			return err
		}
	}
	for _, r := range o.rules {
		near := slices.Concat(o.items, r.items)
		for n := range r.items {
			if err := i.checkSource(ctx, o, &r.items[n], near); err != nil {
				return err
			}
		}
	}
	return nil
}

func (i *importer) checkSource(ctx context.Context, o *ownerDef, d *itemDef, near []itemDef) error {
	path := fmt.Sprintf("%s %s, item %s", o.kind, o.technical, d.key)
	missing := func(host, key string) (bool, error) {
		if host == o.technical && slices.ContainsFunc(near, func(other itemDef) bool { return other.key == key }) {
			return false, nil
		}
		there, err := i.hasItem(ctx, host, key)
		return !there, err
	}
	switch d.kind {
	case model.Dependent:
		key := neededText(d.extra, "master_item")
		gone, err := missing(o.technical, key)
		if err != nil || !gone || hasMacro(key) {
			return err
		}
		i.report.remark(path, d.line, "master_item: there is no item %s on %s; kept, but without values until it is there", key, o.technical)
	case model.Calculated:
		if i.options.Known == nil {
			return nil
		}
		return i.checkFormula(neededText(d.extra, "params"), o.technical, func(host, key string) error {
			gone, err := missing(host, key)
			if err == nil && gone {
				i.report.remark(path, d.line, "params: there is no item %s on %s; kept, but not supported until it is there", key, host)
			}
			return err
		})
	}
	return nil
}

// checkFormula calls fn once for each single item that a formula names; an empty host is the own one.
func (i *importer) checkFormula(text, own string, fn func(host, key string) error) error {
	refs, err := itemRefs(text)
	if err != nil {
		return nil //nolint:nilerr // The decoder has remarked it.
	}
	seen := make(map[[2]string]bool)
	for _, r := range refs {
		host, key := text[r.hostAt:r.hostEnd], text[r.keyAt:r.keyEnd]
		if host == "" || host == "{HOST.HOST}" {
			host = own
		}
		if at := [2]string{host, key}; seen[at] || hasMacro(key) || strings.ContainsAny(host, "{*") || strings.Contains(key, "*") {
			continue
		}
		seen[[2]string{host, key}] = true
		if err := fn(host, key); err != nil {
			return err
		}
	}
	return nil
}
