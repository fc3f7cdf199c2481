package zabbix

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"tidemark/access"
	"tidemark/model"
)

// editable returns a host that the caller may change, or a template as asHost.
func (c *call) editable(id model.HostID) (*model.Host, error) {
	if isTemplate(id) {
		if h, ok := c.holder(id); ok && c.visible == nil {
			return h, nil
		}
		return nil, errNotAllowed
	}
	h, ok := c.host(id)
	if !ok || !c.mayOnHost(id, model.Editor) {
		return nil, errNotAllowed
	}
	return h, nil
}

// updateHosts changes hosts; what is not given stays.
func updateHosts(c *call) ([]byte, error) {
	list, err := c.objects()
	if err != nil {
		return nil, err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	c.renew()
	ids := []string{}
	for _, p := range list {
		p.require("hostid")
		h, err := c.editable(model.HostID(p.number("hostid", 0, math.MaxInt64)))
		if err != nil {
			return nil, err
		}
		id := formatID(h.ID)
		if slices.Contains(ids, id) {
			return nil, invalidParams(`Invalid parameter "/%s": value (hostid)=(%s) already exists.`, strings.TrimSuffix(p.place, "/"), id)
		}
		if err := c.updateHost(p, h); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if err := c.putAll(); err != nil {
		return nil, err
	}
	return encodeJSON(map[string]any{"hostids": ids})
}

// updateHost reads what is to become of one host.
func (c *call) updateHost(p *params, h *model.Host) error {
	o, err := c.edit("host", h.Host)
	if err != nil {
		return err
	}
	enable := p.text("status")
	if enable != "" && enable != "0" && enable != "1" {
		return invalidParams(`Invalid parameter "/%sstatus": value must be one of 0, 1.`, p.place)
	}
	link, replaced := c.templateRefs(p, "templates")
	unlink, _ := c.templateRefs(p, "templates_clear")
	proxy, assign, err := c.proxyOf(p, h)
	if err != nil {
		return err
	}
	if err := c.editHost(p, o, h); err != nil {
		return err
	}
	if err := p.done(); err != nil {
		return err
	}
	linked := func(list []Template, id model.TemplateID) bool {
		return slices.ContainsFunc(list, func(t Template) bool { return t.ID == id })
	}
	for _, t := range h.Templates {
		if replaced && !linked(link, t) && !linked(unlink, t) {
			return invalidParams(`Invalid parameter "/%stemplates": template %d is linked and not in the list; what is unlinked here takes its items along, so name it in templates_clear.`, p.place, t)
		}
	}
	link = slices.DeleteFunc(link, func(t Template) bool { return slices.Contains(h.Templates, t.ID) })
	unlink = slices.DeleteFunc(unlink, func(t Template) bool { return !slices.Contains(h.Templates, t.ID) })
	if s := c.stateOf(h, enable, link, unlink); assign && (proxy != "" || h.Proxy != 0) {
		s.Proxy = &proxy
	}
	return nil
}

// editHost sets what is given in a host's document.
func (c *call) editHost(p *params, o *owner, h *model.Host) error {
	if err := p.keepsName("host", h.Host); err != nil {
		return err
	}
	if err := p.common(o, uint64(h.ID)); err != nil {
		return err
	}
	if ids, ok := p.references("groups", "groupid", "groupids"); ok {
		if err := c.setGroups(o, ids); err != nil {
			return err
		}
	}
	if mode := p.text("inventory_mode"); mode != "" {
		names := map[string]string{"-1": "DISABLED", "0": "MANUAL", "1": "AUTOMATIC"}
		if names[mode] == "" {
			p.fail("inventory_mode", "value must be one of -1, 0, 1")
		}
		if err := o.set("inventory_mode", names[mode]); err != nil {
			return err
		}
	}
	c.keepsTLS(p, h)
	if err := p.setAccess(o); err != nil {
		return err
	}
	return p.setInterfaces(o, uint64(h.ID))
}

// proxyOf reads which proxy a host is asked by; an empty name is the server. Who sees only some hosts may say again that the server asks one.
func (c *call) proxyOf(p *params, h *model.Host) (name string, given bool, err error) {
	_, by := p.get("monitored_by")
	_, of := p.get("proxyid")
	if p.number("proxy_groupid", 0, math.MaxInt64) != 0 {
		p.fail("proxy_groupid", "there are no groups of proxies here")
	}
	if !by && !of {
		return "", false, nil
	}
	id := p.number("proxyid", 0, math.MaxInt64)
	if c.visible != nil && (of || p.text("monitored_by") != "0" || h.Proxy != 0) {
		return "", false, errNotAllowed
	}
	switch p.number("monitored_by", min(id, 1), 1) {
	case 0:
		return "", true, nil
	}
	for _, known := range c.options.Objects.Proxies() {
		if int64(known.ID) == id {
			return known.Name, true, nil
		}
	}
	return "", false, errNotAllowed
}

// eachHost reads the hosts of a mass change and has change say what is to become of each.
func (c *call) eachHost(ids idSet, change func(*owner, *model.Host) error) ([]byte, error) {
	if len(ids) == 0 {
		return nil, invalidParams(`Invalid parameter "/hosts": cannot be empty.`)
	}
	if len(ids) > maxHosts {
		return nil, invalidParams(`Invalid parameter "/hosts": maximum number of hosts is %d.`, maxHosts)
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	c.configuration = c.options.Configuration()
	var hosts []*model.Host
	for id := range ids {
		h, err := c.editable(model.HostID(id))
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, h)
	}
	texts := []string{}
	for _, h := range hosts {
		o, err := c.edit("host", h.Host)
		if err != nil {
			return nil, err
		}
		if err := change(o, h); err != nil {
			return nil, err
		}
		texts = append(texts, formatID(h.ID))
	}
	if err := c.putAll(); err != nil {
		return nil, err
	}
	slices.SortFunc(texts, compareNumbers)
	return encodeJSON(map[string]any{"hostids": texts})
}

// groupIDs returns the ids of the groups that a host is in.
func (c *call) groupIDs(h *model.Host) idSet {
	ids := make(idSet)
	for _, g := range c.groupsOf(h) {
		ids[g.ID] = true
	}
	return ids
}

// massAddHosts adds groups, templates and macros to hosts.
func massAddHosts(c *call) ([]byte, error) {
	hosts, _ := c.references("hosts", "hostid", "hostids")
	groups, _ := c.references("groups", "groupid", "groupids")
	link, _ := c.templateRefs(c.params, "templates")
	added, _ := c.children("macros")
	var macros []exportMacro
	for _, p := range added {
		m, err := p.macroOf(0, nil)
		if err != nil {
			return nil, err
		}
		macros = append(macros, m)
	}
	if err := c.done(); err != nil {
		return nil, err
	}
	return c.eachHost(hosts, func(o *owner, h *model.Host) error {
		if len(groups) > 0 {
			ids := c.groupIDs(h)
			for id := range groups {
				ids[id] = true
			}
			if err := c.setGroups(o, ids); err != nil {
				return err
			}
		}
		if err := o.addMacros(macros); err != nil {
			return err
		}
		more := slices.DeleteFunc(slices.Clone(link), func(t Template) bool { return slices.Contains(h.Templates, t.ID) })
		c.stateOf(h, "", more, nil)
		return nil
	})
}

// addMacros puts macros over those of the same name.
func (o *owner) addMacros(macros []exportMacro) error {
	if len(macros) == 0 {
		return nil
	}
	known, err := list[exportMacro](o, "macros")
	if err != nil {
		return err
	}
	known = slices.DeleteFunc(known, func(k exportMacro) bool {
		return slices.ContainsFunc(macros, func(m exportMacro) bool { return m.Macro == k.Macro })
	})
	return o.setMacroList(append(known, macros...))
}

// massRemoveHosts takes hosts out of groups, unlinks templates with their items, and removes macros by name.
func massRemoveHosts(c *call) ([]byte, error) {
	hosts, groups, templates, macros := c.ids("hostids"), c.ids("groupids"), c.templateIDs("templateids_clear"), c.texts("macros")
	if _, ok := c.get("templateids"); ok {
		c.fail("templateids", "what is unlinked here takes its items along, so name it in templateids_clear")
	}
	if err := c.done(); err != nil {
		return nil, err
	}
	known, err := c.templates()
	if err != nil {
		return nil, err
	}
	return c.eachHost(hosts, func(o *owner, h *model.Host) error {
		if len(groups) > 0 {
			ids := c.groupIDs(h)
			for id := range groups {
				delete(ids, id)
			}
			if err := c.setGroups(o, ids); err != nil {
				return err
			}
		}
		if len(macros) > 0 {
			have, err := list[exportMacro](o, "macros")
			if err != nil {
				return err
			}
			if err := o.setMacroList(slices.DeleteFunc(have, func(m exportMacro) bool { return slices.Contains(macros, m.Macro) })); err != nil {
				return err
			}
		}
		gone := slices.DeleteFunc(slices.Clone(known), func(t Template) bool { return !templates[uint64(t.ID)] || !slices.Contains(h.Templates, t.ID) })
		c.stateOf(h, "", nil, gone)
		return nil
	})
}

// massUpdateHosts makes the same change of several hosts.
func massUpdateHosts(c *call) ([]byte, error) {
	hosts, _ := c.references("hosts", "hostid", "hostids")
	enable := c.text("status")
	return c.eachHost(hosts, func(o *owner, h *model.Host) error {
		p := *c.params // each host reads all of the parameters
		if enable != "" && enable != "0" && enable != "1" {
			p.fail("status", "value must be one of 0, 1")
		}
		if err := c.editHost(&p, o, h); err != nil {
			return err
		}
		c.stateOf(h, enable, nil, nil)
		return p.done()
	})
}

// massGroups puts hosts into groups or takes them out.
func massGroups(c *call, add bool) ([]byte, error) {
	groups, _ := c.references("groups", "groupid", "groupids")
	hosts, _ := c.references("hosts", "hostid", "hostids")
	if err := c.done(); err != nil {
		return nil, err
	}
	_, err := c.eachHost(hosts, func(o *owner, h *model.Host) error {
		ids := c.groupIDs(h)
		for id := range groups {
			if add {
				ids[id] = true
			} else {
				delete(ids, id)
			}
		}
		return c.setGroups(o, ids)
	})
	if err != nil {
		return nil, err
	}
	texts := []string{}
	for id := range groups {
		texts = append(texts, strconv.FormatUint(id, 10))
	}
	slices.SortFunc(texts, compareNumbers)
	return encodeJSON(map[string]any{"groupids": texts})
}

func massAddGroups(c *call) ([]byte, error) { return massGroups(c, true) }

func massRemoveGroups(c *call) ([]byte, error) { return massGroups(c, false) }

// createGroups makes host groups.
func createGroups(c *call) ([]byte, error) {
	return c.createGroupsOf("host_groups", "Host group", c.options.Objects.Groups)
}

// createGroupsOf makes groups of hosts or templates; member is what an export calls them, list returns those that there are.
func (c *call) createGroupsOf(member, what string, list func(context.Context) ([]Group, error)) ([]byte, error) {
	if c.visible != nil {
		return nil, errNotAllowed
	}
	given, err := c.objects()
	if err != nil {
		return nil, err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	known, err := list(c.ctx)
	if err != nil {
		return nil, err
	}
	var made []exportName
	for _, p := range given {
		p.require("name")
		name := p.groupName(strings.ToLower(what))
		if err := p.done(); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(known, func(g Group) bool { return g.Name == name }) || slices.Contains(made, exportName{name}) {
			return nil, invalidParams("%s %q already exists.", what, name)
		}
		made = append(made, exportName{name})
	}
	export, err := encodeJSON(map[string]any{"zabbix_export": map[string]any{"version": "7.0", member: made}})
	if err != nil {
		return nil, err
	}
	if err := c.options.Objects.Import(c.ctx, export, true, Deletes{}); err != nil {
		return nil, err
	}
	for _, n := range made {
		access.Changed(c.ctx, member+" "+n.Name, nil, n)
	}
	if known, err = list(c.ctx); err != nil {
		return nil, err
	}
	ids := []string{}
	for _, n := range made {
		for _, g := range known {
			if g.Name == n.Name {
				ids = append(ids, strconv.FormatUint(g.ID, 10))
			}
		}
	}
	return encodeJSON(map[string]any{"groupids": ids})
}
