package zabbixdb

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// The states of rows of hosts that are hosts or templates.
const statusTemplate = 3

// owner is a host or a template.
type owner struct {
	row
	id       int64
	template bool
	out      object
	parents  []int64
}

// owners reads the hosts and templates, templates first and each behind those it is linked to.
func (s *Source) owners(ctx context.Context) ([]*owner, map[int64]*owner, error) {
	var all []*owner
	byID := make(map[int64]*owner)
	err := s.each(ctx, "SELECT * FROM hosts WHERE status IN (0,1,3) AND flags = 0 ORDER BY hostid", func(r row) error {
		o := &owner{row: r, id: r.id("hostid"), template: r.num("status") == statusTemplate}
		all, byID[o.id] = append(all, o), o
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	err = s.each(ctx, "SELECT * FROM hosts_templates ORDER BY hosttemplateid", func(r row) error {
		if o, parent := byID[r.id("hostid")], byID[r.id("templateid")]; o != nil && parent != nil {
			o.parents = append(o.parents, parent.id)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return sortOwners(all, byID), byID, nil
}

func sortOwners(all []*owner, byID map[int64]*owner) []*owner {
	sorted := make([]*owner, 0, len(all))
	seen := make(map[int64]bool, len(all))
	var add func(*owner)
	add = func(o *owner) {
		if seen[o.id] {
			return
		}
		seen[o.id] = true
		for _, p := range o.parents {
			add(byID[p])
		}
		sorted = append(sorted, o)
	}
	for _, o := range all {
		if o.template {
			add(o)
		}
	}
	for _, o := range all {
		add(o)
	}
	return sorted
}

// ownerParts are the rows around hosts and templates.
type ownerParts struct {
	groups                                         map[int64][]row
	tags, macros, interfaces, valueMaps, inventory map[int64][]row
	mappings, snmp                                 map[int64][]row
	webs                                           *webParts
	// proxies are the names by host.
	proxies map[int64]string
}

// ownerParts reads them but for the proxies, which are read once.
func (s *Source) ownerParts(ctx context.Context, ids []int64) (*ownerParts, error) {
	p := &ownerParts{}
	in := " WHERE hostid IN " + list(ids)
	for _, read := range []struct {
		into      *map[int64][]row
		by, query string
	}{
		{&p.groups, "hostid", "SELECT l.hostid, g.name FROM hosts_groups l JOIN hstgrp g ON g.groupid = l.groupid WHERE l.hostid IN " + list(ids) + " ORDER BY l.hostgroupid"},
		{&p.tags, "hostid", "SELECT * FROM host_tag" + in + " ORDER BY hosttagid"},
		{&p.macros, "hostid", "SELECT * FROM hostmacro" + in + " ORDER BY hostmacroid"},
		{&p.interfaces, "hostid", "SELECT * FROM interface" + in + " ORDER BY interfaceid"},
		{&p.snmp, "interfaceid", "SELECT * FROM interface_snmp WHERE interfaceid IN (SELECT interfaceid FROM interface" + in + ")"},
		{&p.valueMaps, "hostid", "SELECT * FROM valuemap" + in + " ORDER BY valuemapid"},
		{&p.mappings, "valuemapid", "SELECT * FROM valuemap_mapping WHERE valuemapid IN (SELECT valuemapid FROM valuemap" + in + ") ORDER BY valuemapid, sortorder"},
		{&p.inventory, "hostid", "SELECT * FROM host_inventory" + in},
	} {
		var err error
		if *read.into, err = s.grouped(ctx, read.by, read.query); err != nil {
			return nil, err
		}
	}
	var err error
	p.webs, err = s.webParts(ctx, ids)
	return p, err
}

// owner makes a host or template without its items.
func (s *Source) owner(o *owner, p *ownerParts, byID map[int64]*owner) {
	out := object{"name": o.row["name"]}
	o.out = out
	out.put("description", o.row["description"], "")
	var groups, templates []object
	for _, g := range p.groups[o.id] {
		groups = append(groups, object{"name": g["name"]})
	}
	for _, id := range o.parents {
		templates = append(templates, object{"name": byID[id].row["host"]})
	}
	out.putList("groups", groups)
	out.putList("templates", templates)
	out.putList("tags", tags(p.tags[o.id]))
	out.putList("macros", s.macros(p.macros[o.id]))
	out.putList("valuemaps", valueMaps(p.valueMaps[o.id], p.mappings))
	out.putList("httptests", p.webs.of(o.id))
	if o.template {
		out["template"] = o.row["host"]
		out.put("uuid", o.row["uuid"], "")
		return
	}
	out["host"], out["status"] = o.row["host"], enum(enabledNames, o.row["status"])
	out.putList("interfaces", interfaces(p.interfaces[o.id], p.snmp))
	s.inventory(out, p.inventory[o.id])
	if o.row["ipmi_username"]+o.row["ipmi_password"] != "" {
		out["ipmi_authtype"], out["ipmi_privilege"] = enum(ipmiAuthTypes, o.row["ipmi_authtype"]), enum(ipmiPrivileges, o.row["ipmi_privilege"])
		out.put("ipmi_username", o.row["ipmi_username"], "")
		out.put("ipmi_password", o.row["ipmi_password"], "")
	}
	if proxy := p.proxies[o.id]; proxy != "" {
		out["proxy"] = object{"name": proxy}
	}
}

// macros makes those of a host; secrets in a vault are named as left.
func (s *Source) macros(rows []row) []object {
	var out []object
	for _, r := range rows {
		kind := enum(macroTypes, r["type"])
		if kind == "VAULT" {
			s.leave("macros", 1, "their value is in a vault, which is not asked; set the macro here, as a secret")
			continue
		}
		m := object{"macro": r["macro"], "value": r["value"]}
		m.put("type", kind, "TEXT")
		m.put("description", r["description"], "")
		out = append(out, m)
	}
	return out
}

func valueMaps(rows []row, mappings map[int64][]row) []object {
	var out []object
	for _, r := range rows {
		var list []object
		for _, m := range mappings[r.id("valuemapid")] {
			o := object{"newvalue": m["newvalue"]}
			o.put("value", m["value"], "")
			o.put("type", enum(mappingTypes, m["type"]), "EQUAL")
			list = append(list, o)
		}
		v := object{"name": r["name"]}
		v.put("uuid", r["uuid"], "")
		v.putList("mappings", list)
		out = append(out, v)
	}
	return out
}

func interfaces(rows []row, snmp map[int64][]row) []object {
	var out []object
	for _, r := range rows {
		o := object{"interface_ref": "if" + strconv.FormatInt(r.id("interfaceid"), 10), "port": r["port"]}
		o.put("type", enum(interfaceTypes, r["type"]), "ZABBIX")
		o.put("default", enum(yesNames, r["main"]), "YES")
		o.put("useip", enum(yesNames, r["useip"]), "YES")
		o.put("ip", r["ip"], "")
		o.put("dns", r["dns"], "")
		for _, d := range snmp[r.id("interfaceid")] {
			o["details"] = snmpDetails(d)
		}
		out = append(out, o)
	}
	// A type's default interface stands first.
	slices.SortStableFunc(out, func(a, b object) int { return strings.Compare(text(a["default"]), text(b["default"])) })
	return out
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func snmpDetails(r row) object {
	o := object{"version": enum(snmpVersions, r["version"])}
	o.put("bulk", enum(yesNames, r["bulk"]), "YES")
	o.put("community", r["community"], "")
	o.put("max_repetitions", r["max_repetitions"], "10")
	if o["version"] != "SNMPV3" {
		return o
	}
	o.put("contextname", r["contextname"], "")
	o.put("securityname", r["securityname"], "")
	o.put("securitylevel", enum(securityLevels, r["securitylevel"]), "NOAUTHNOPRIV")
	o.put("authprotocol", enum(authProtocols, r["authprotocol"]), "MD5")
	o.put("authpassphrase", r["authpassphrase"], "")
	o.put("privprotocol", enum(privProtocols, r["privprotocol"]), "DES")
	o.put("privpassphrase", r["privpassphrase"], "")
	return o
}

func (s *Source) inventory(out object, rows []row) {
	out["inventory_mode"] = "DISABLED"
	for _, r := range rows {
		out["inventory_mode"] = enum(inventoryModes, r["inventory_mode"])
		fields := object{}
		for _, name := range inventoryFields {
			fields.put(name, r[name], "")
		}
		if len(fields) > 0 {
			out["inventory"] = fields
		}
	}
}
