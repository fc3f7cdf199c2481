package zabbix

import (
	"slices"
	"strconv"

	"tidemark/model"
)

const hostsOfRule = "host_prototypes"

// inventoryModes are the names of documents for the modes of an inventory, which begin at -1 in calls.
var inventoryModes = []string{"DISABLED", "MANUAL", "AUTOMATIC"}

func hostPrototypes(rule *part) []part { return rule.children(hostsOfRule, "host") }

// hostPrototypeKind are the members of host prototypes; hostid is the prototype's own id.
func hostPrototypeKind() kind[part] {
	k := kind[part]{name: "host prototype", id: "hostid", strict: true, fields: prototypeFields("hostid")}
	own := false
	k.fields = slices.DeleteFunc(k.fields, func(f field[part]) bool { // the second is that of the host with the rule
		second := f.name == "hostid" && own
		own = own || f.name == "hostid"
		return second
	})
	k.fields = append(k.fields, partText("host", "host", ""),
		field[part]{name: "name", get: func(r *part) string { return cmpOr(r.text("name", ""), r.text("host", "")) }},
		partNumber("status", "status", enabledNames, 0), partNumber("custom_interfaces", "custom_interfaces", noYes, 0),
		field[part]{name: "inventory_mode", number: true, get: func(r *part) string { return formatInt(indexOf(inventoryModes, r.text("inventory_mode", ""), 0) - 1) }})
	k.selects = append(prototypeSelects(), []selection[part]{
		{"selectParentHost", "parentHost", func(c *call, o output, r *part) any { return pick(o, &hostKind, &r.holder) }},
		{"selectGroupLinks", "groupLinks", func(c *call, o output, r *part) any { return c.pickGroupLinks(o, r) }},
		{"selectGroupPrototypes", "groupPrototypes", func(_ *call, o output, r *part) any {
			k := kind[part]{name: "group prototype", id: "group_prototypeid", fields: []field[part]{
				{name: "group_prototypeid", number: true, get: func(g *part) string { return formatID(g.id) }},
				partText("name", "name", ""),
				{name: "templateid", number: true, get: func(*part) string { return "0" }},
			}}
			return pickParts(o, k, r.children("group_prototypes", "name"))
		}},
		{"selectMacros", "macros", func(_ *call, o output, r *part) any { return pickAll(o, &macroKind, r.prototypeMacros()) }},
		{"selectTemplates", "templates", func(c *call, o output, r *part) any {
			known, err := c.templates()
			if err != nil {
				return []object{}
			}
			named := r.list("templates")
			return pickAll(o, &templateKind, slices.DeleteFunc(slices.Clone(known), func(t Template) bool {
				return !slices.ContainsFunc(named, func(n object) bool { return n["name"] == t.Template })
			}))
		}},
		{"selectInterfaces", "interfaces", func(_ *call, o output, r *part) any { return prototypeInterfaces(o, r) }},
	}...)
	return k
}

// pickGroupLinks answers the host groups of a host prototype.
func (c *call) pickGroupLinks(o output, r *part) any {
	groups, err := c.groups()
	if err != nil {
		return []object{}
	}
	links := r.list("group_links")
	return pickAll(o, &groupKind, slices.DeleteFunc(slices.Clone(groups), func(g Group) bool {
		return !slices.ContainsFunc(links, func(l object) bool {
			group, _ := l["group"].(object)
			return group["name"] == g.Name
		})
	}))
}

// secretText is the type of secret macros in documents.
const secretText = "SECRET_TEXT"

// prototypeMacros are the macros of a host prototype.
func (r *part) prototypeMacros() []hostMacro {
	var list []hostMacro
	for _, m := range r.list("macros") {
		list = append(list, hostMacro{
			model.Macro{Name: textOf(m, "macro", ""), Value: textOf(m, "value", ""), Secret: textOf(m, "type", "") == secretText},
			model.HostID(r.id),
			textOf(m, "description", ""),
		})
	}
	return list
}

// prototypeInterfaces answers the interfaces that hosts of a prototype have in place of those of the rule's host.
func prototypeInterfaces(o output, r *part) any {
	faces := r.list("interfaces")
	if o.count {
		return strconv.Itoa(len(faces))
	}
	list := []object{}
	for _, one := range faces {
		kind := "1"
		for number, name := range interfaceTypes {
			if name == textOf(one, "type", "") {
				kind = strconv.FormatInt(number, 10)
			}
		}
		all := object{
			"type": kind, "main": formatInt(indexOf(noYes, textOf(one, "default", ""), 1)), "useip": formatInt(indexOf(noYes, textOf(one, "useip", ""), 1)),
			"ip": textOf(one, "ip", ""), "dns": textOf(one, "dns", ""), "port": textOf(one, "port", ""),
		}
		list = append(list, o.only(all))
	}
	return list
}

func getHostPrototypes(c *call) ([]byte, error) {
	return getPrototypes(c, "hostid", hostPrototypeKind(), hostPrototypes)
}

// fillHostPrototype sets what is given of a host prototype, in the form of documents.
func (c *call) fillHostPrototype(p *params, host object) error {
	p.fillTexts(host, []string{"name"})
	p.fillNumbers(host, map[string][]string{"status": enabledNames, "discover": discoverNames, "custom_interfaces": noYes})
	if mode := p.text("inventory_mode"); mode != "" {
		n, err := strconv.Atoi(mode)
		if err != nil || n < -1 || n > 1 {
			p.fail("inventory_mode", "value must be one of -1, 0, 1")
			n = -1
		}
		host["inventory_mode"] = inventoryModes[n+1]
	}
	p.fillTags(host)
	if err := c.fillGroupLinks(p, host); err != nil {
		return err
	}
	if given, ok := p.children("groupPrototypes"); ok {
		list := []object{}
		for _, one := range given {
			one.require("name")
			if name := one.text("name"); !discoveryMacro.MatchString(name) {
				one.fail("name", "must contain at least one low-level discovery macro")
			}
			one.accept("group_prototypeid", "templateid")
			list = append(list, object{"name": one.text("name")})
			p.keep(one.done())
		}
		host["group_prototypes"] = list
	}
	if link, ok := c.templateRefs(p, "templates"); ok {
		list := []object{}
		for _, t := range link {
			list = append(list, object{"name": t.Template})
		}
		host["templates"] = list
	}
	p.fillPrototypeMacros(host)
	if given, ok := p.children("interfaces"); ok {
		list := []object{}
		for _, one := range given {
			face := object{}
			p.keep(one.fillInterface(face, true))
			list = append(list, face)
		}
		host["interfaces"] = list
	}
	if custom, faces := host["custom_interfaces"] == "YES", objectsIn(host, "interfaces"); custom && len(faces) == 0 {
		p.fail("interfaces", "cannot be empty when custom_interfaces is 1")
	} else if !custom && len(faces) > 0 && p.has("interfaces") {
		p.fail("interfaces", "should be empty when custom_interfaces is 0")
	} else if !custom {
		delete(host, "interfaces")
	}
	p.accept("flags", "templateid", "uuid")
	return p.done()
}

// fillGroupLinks sets the groups of the hosts that will be made; they must be the caller's.
func (c *call) fillGroupLinks(p *params, host object) error {
	ids, ok := p.references("groupLinks", "groupid", "")
	if !ok {
		return nil
	}
	groups, err := c.groups()
	if err != nil {
		return err
	}
	links := []object{}
	for _, g := range groups {
		if !ids[g.ID] {
			continue
		}
		if c.who.OnHost([]string{g.Name}) < model.Editor {
			return errNotAllowed
		}
		links = append(links, object{"group": object{"name": g.Name}})
	}
	if len(links) != len(ids) {
		return errNotAllowed
	}
	if len(links) == 0 {
		p.fail("groupLinks", "cannot be empty")
	}
	host["group_links"] = links
	return nil
}

// fillPrototypeMacros sets the macros of the hosts that will be made. A secret one without a value keeps what it had.
func (p *params) fillPrototypeMacros(host object) {
	given, ok := p.children("macros")
	if !ok {
		return
	}
	known, list := objectsIn(host, "macros"), []exportMacro{}
	for _, one := range given {
		one.require("macro")
		one.accept("hostmacroid", "automatic")
		m := exportMacro{Macro: one.text("macro"), Value: one.text("value"), Description: one.text("description")}
		was := ""
		if i := slices.IndexFunc(known, func(k object) bool { return k["macro"] == m.Macro }); i >= 0 {
			was = textOf(known[i], "type", "")
		}
		if !model.IsMacroName(m.Macro) {
			one.fail("macro", "incorrect syntax near "+strconv.Quote(m.Macro))
		}
		if kind := one.text("type"); kind == "" {
			m.Type = was
		} else if one.number("type", 0, 1) == 1 {
			m.Type = secretText
		}
		if m.Type == "" && was == secretText || m.Type == secretText && was == "" {
			one.require("value") // what was secret is never shown
		}
		p.keep(one.done())
		list = append(list, m)
	}
	host["macros"] = list
}

func createHostPrototypes(c *call) ([]byte, error) {
	return c.onHosts("hostids", c.ruleInParams, func(p *params, o *owner, h *model.Host) (string, error) {
		for _, member := range []string{"host", "groupLinks"} {
			p.require(member)
		}
		_, rule, err := c.ownRule(p.text("ruleid"))
		if err != nil {
			return "", err
		}
		rules, at, err := o.rule(rule.text("key", ""))
		if err != nil {
			return "", err
		}
		name := p.text("host")
		if p.failed == nil && !discoveryMacro.MatchString(name) {
			p.fail("host", "must contain at least one low-level discovery macro")
		}
		known := objectsIn(rules[at], hostsOfRule)
		if slices.ContainsFunc(known, func(one object) bool { return one["host"] == name }) {
			return "", invalidParams("Host prototype with host name %q already exists in discovery rule %q.", name, rule.text("name", ""))
		}
		host := object{"host": name}
		if err := c.fillHostPrototype(p, host); err != nil {
			return "", err
		}
		if host["name"] == nil {
			host["name"] = name
		}
		rules[at][hostsOfRule] = append(known, host)
		return formatID(childID(h, rules[at], hostsOfRule, name)), o.set(rulesOfDocument, rules)
	})
}

func updateHostPrototypes(c *call) ([]byte, error) {
	return c.updateOnHosts("hostids", "hostid", c.holderOfPrototype(hostPrototypes), func(p *params, o *owner, _ *model.Host) (string, error) {
		id := p.text("hostid")
		_, r, err := c.ownPrototype(id, hostPrototypes)
		if err != nil {
			return "", err
		}
		name := r.text("host", "")
		if p.keepsName("host", name) != nil {
			return "", invalidParams(`Invalid parameter "/%shost": the technical name stays, because hosts are made of it; make another prototype.`, p.place)
		}
		p.accept("ruleid")
		rules, at, err := o.rule(r.rule.text("key", ""))
		if err != nil {
			return "", err
		}
		known := objectsIn(rules[at], hostsOfRule)
		i := slices.IndexFunc(known, func(one object) bool { return one["host"] == name })
		if i < 0 {
			return "", errNotAllowed
		}
		if err := c.fillHostPrototype(p, known[i]); err != nil {
			return "", err
		}
		rules[at][hostsOfRule] = known
		return id, o.set(rulesOfDocument, rules)
	})
}

func deleteHostPrototypes(c *call) ([]byte, error) {
	return c.deleteChildren("hostids", hostsOfRule, "host")
}
