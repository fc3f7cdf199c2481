package zabbix

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"tidemark/model"
)

// hosts returns the hosts that the caller may see, by id.
func (c *call) hosts() []*model.Host {
	var list []*model.Host
	for h := range c.configuration.Hosts() {
		if c.visible.Has(h.ID) {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b *model.Host) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// host returns a host that the caller may see.
func (c *call) host(id model.HostID) (*model.Host, bool) {
	if !c.visible.Has(id) {
		return nil, false
	}
	return c.configuration.HostByID(id)
}

// groups returns the host groups that the caller may see: all, or those of visible hosts.
func (c *call) groups() ([]Group, error) {
	if c.groupList != nil {
		return slices.Clone(c.groupList), nil
	}
	list, err := c.options.Objects.Groups(c.ctx)
	if err != nil || c.visible == nil {
		c.groupList = list
		return slices.Clone(list), err
	}
	seen := make(map[string]bool)
	for _, h := range c.hosts() {
		for _, g := range h.Groups {
			seen[g] = true
		}
	}
	c.groupList = slices.DeleteFunc(list, func(g Group) bool { return !seen[g.Name] })
	return slices.Clone(c.groupList), nil
}

// groupNames returns the names of groups that were asked for; nil stands for all.
func (c *call) groupNames(ids idSet) (map[string]bool, error) {
	if ids == nil {
		return nil, nil
	}
	list, err := c.groups()
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool, len(ids))
	for _, g := range list {
		if ids[g.ID] {
			names[g.Name] = true
		}
	}
	return names, nil
}

// inGroups reports whether a host is in one of the groups; nil stands for all.
func inGroups(names map[string]bool, h *model.Host) bool {
	return names == nil || slices.ContainsFunc(h.Groups, func(g string) bool { return names[g] })
}

// stableID makes an id of what has none of its own: of its host and its name. It fits 53 bits, so that scripts can hold it as a number.
func stableID(host uint64, name string) string {
	h := fnv.New64a()
	_, _ = h.Write(strconv.AppendUint(nil, host, 10))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(name))
	return strconv.FormatUint(h.Sum64()>>11|1, 10)
}

var groupKind = kind[Group]{
	name: "host group", id: "groupid",
	fields: []field[Group]{
		{name: "groupid", number: true, get: func(g *Group) string { return formatID(g.ID) }},
		{name: "name", get: func(g *Group) string { return g.Name }},
		{name: "flags", number: true, get: func(*Group) string { return "0" }},
		{name: "uuid", get: func(g *Group) string { return strings.ReplaceAll(g.UUID, "-", "") }},
	},
}

// groupsOf returns the groups of a host with their ids.
func (c *call) groupsOf(h *model.Host) []Group {
	list, err := c.groups()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(list, func(g Group) bool { return !slices.Contains(h.Groups, g.Name) })
}

func getGroups(c *call) ([]byte, error) {
	ids, hosts := c.ids("groupids"), c.ids("hostids")
	used := c.flag("with_hosts") || c.flag("real_hosts") || c.flag("with_monitored_hosts") || c.flag("monitored_hosts") ||
		c.flag("with_items") || c.flag("with_monitored_items") || c.flag("with_triggers") || c.flag("with_monitored_triggers") ||
		c.flag("with_simple_graph_items") || c.flag("with_historical_items") || hosts != nil
	c.accept("real_hosts", "with_monitored_hosts", "monitored_hosts", "with_items", "with_monitored_items", "with_triggers", "with_monitored_triggers",
		"with_simple_graph_items", "with_historical_items")
	list, err := c.groups()
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	if used {
		for _, h := range c.hosts() {
			if hosts.has(uint64(h.ID)) {
				for _, g := range h.Groups {
					names[g] = true
				}
			}
		}
	}
	list = slices.DeleteFunc(list, func(g Group) bool { return !ids.has(g.ID) || used && !names[g.Name] })
	return answer(c, &groupKind, list)
}

var tagKind = kind[model.Tag]{
	name: "tag", id: "tag",
	fields: []field[model.Tag]{
		{name: "tag", get: func(t *model.Tag) string { return t.Name }},
		{name: "value", get: func(t *model.Tag) string { return t.Value }},
	},
}

func pickTags(o output, tags []model.Tag) any { return pickAll(o, &tagKind, tags) }

// matchTags reports whether tags fit conditions: all of them, or with any one of them. Conditions on the same tag are alternatives.
func matchTags(conditions []tagFilter, either bool, tags []model.Tag) bool {
	if len(conditions) == 0 {
		return true
	}
	results := make(map[string]bool)
	for _, f := range conditions {
		ok := matchTag(f, tags)
		if either && ok {
			return true
		}
		results[f.Tag] = results[f.Tag] || ok
	}
	if either {
		return false
	}
	for _, ok := range results {
		if !ok {
			return false
		}
	}
	return true
}

// matchTag compares as the operator says: 0 contains, 1 equals, 2 contains not, 3 differs, 4 exists, 5 is not there.
func matchTag(f tagFilter, tags []model.Tag) bool {
	found := slices.ContainsFunc(tags, func(t model.Tag) bool {
		if t.Name != f.Tag {
			return false
		}
		switch f.operator {
		case "1", "3":
			return t.Value == f.Value
		case "4", "5":
			return true
		}
		return strings.Contains(strings.ToLower(t.Value), strings.ToLower(f.Value))
	})
	if f.operator == "2" || f.operator == "3" || f.operator == "5" {
		return !found
	}
	return found
}

// status is 0 for enabled.
func status(enabled bool) string { return formatBool(!enabled) }

var hostKind = kind[*model.Host]{
	name: "host", id: "hostid",
	fields: []field[*model.Host]{
		{name: "hostid", number: true, get: func(h **model.Host) string { return formatID((*h).ID) }},
		{name: "host", get: func(h **model.Host) string { return (*h).Host }},
		{name: "name", get: func(h **model.Host) string { return (*h).Name }},
		{name: "status", number: true, get: func(h **model.Host) string { return status((*h).Enabled) }},
		{name: "description", get: func(**model.Host) string { return "" }},
		{name: "flags", number: true, get: func(h **model.Host) string { return flags((*h).DiscoveredBy) }},
		{name: "inventory_mode", number: true, get: func(h **model.Host) string { return formatBool((*h).AutomaticInventory) }},
		{name: "maintenance_status", number: true, get: func(**model.Host) string { return "0" }},
		{name: "maintenanceid", number: true, get: func(**model.Host) string { return "0" }},
		{name: "proxyid", number: true, get: func(**model.Host) string { return "0" }},
		{name: "monitored_by", number: true, get: func(**model.Host) string { return "0" }},
		{name: "uuid", get: func(h **model.Host) string { return strings.ReplaceAll((*h).UUID, "-", "") }},
	},
}

// flags is 4 for what a discovery rule made.
func flags(by model.ItemID) string {
	if by != 0 {
		return "4"
	}
	return "0"
}

// hostSelects are the members of hosts that have parameters of their own.
func hostSelects() []selection[*model.Host] {
	groups := func(c *call, o output, h **model.Host) any { return pickAll(o, &groupKind, c.groupsOf(*h)) }
	return []selection[*model.Host]{
		{"selectHostGroups", "hostgroups", groups},
		{"selectGroups", "groups", groups},
		{"selectTags", "tags", func(_ *call, o output, h **model.Host) any { return pickTags(o, (*h).Tags) }},
		{"selectInheritedTags", "inheritedTags", func(_ *call, _ output, _ **model.Host) any { return []string{} }},
		{"selectInterfaces", "interfaces", func(_ *call, o output, h **model.Host) any { return pickAll(o, &interfaceKind, interfacesOf(*h)) }},
		{"selectMacros", "macros", func(_ *call, o output, h **model.Host) any { return pickAll(o, &macroKind, macrosOf(*h)) }},
		{"selectParentTemplates", "parentTemplates", func(c *call, o output, h **model.Host) any { return pickAll(o, &templateKind, c.templatesOf(*h)) }},
		{"selectInventory", "inventory", selectInventory},
		{"selectItems", "items", func(c *call, o output, h **model.Host) any { return pickAll(o, &itemKind, c.itemsOf(*h)) }},
		{"selectTriggers", "triggers", func(c *call, o output, h **model.Host) any { return pickAll(o, &triggerKind, c.triggersOf(*h)) }},
	}
}

func selectInventory(_ *call, o output, h **model.Host) any {
	members := make(map[string]string)
	for _, l := range (*h).Inventory {
		if o.has(l.Name) {
			members[l.Name] = l.Value
		}
	}
	if len(members) == 0 {
		return []string{}
	}
	return members
}

func getHosts(c *call) ([]byte, error) {
	hosts, groups, templates, items, triggers := c.ids("hostids"), c.ids("groupids"), c.ids("templateids"), c.ids("itemids"), c.ids("triggerids")
	interfaces := c.ids("interfaceids")
	monitored := c.flag("monitored_hosts") || c.flag("with_monitored_items")
	proxied := c.ids("proxyids")
	withItems := c.flag("with_items")
	withTriggers := c.flag("with_triggers")
	c.accept("with_monitored_items", "templated_hosts")
	tags, either := c.tags()
	names, err := c.groupNames(groups)
	if err != nil {
		return nil, err
	}
	owners := c.ownersOf(items, triggers)
	var rows []*model.Host
	for _, h := range c.hosts() {
		ok := hosts.has(uint64(h.ID)) && inGroups(names, h) && hasAny(templates, h.Templates) && (owners == nil || owners[h.ID]) &&
			(!monitored || h.Enabled) && (proxied == nil || proxied[0]) && matchTags(tags, either, h.Tags) &&
			(interfaces == nil || slices.ContainsFunc(interfacesOf(h), func(i hostInterface) bool { return interfaces[i.id] })) &&
			(!withItems || len(c.options.Catalog.HostItems(h.ID)) > 0) && (!withTriggers || len(c.configuration.TriggersOf(h.ID)) > 0)
		if ok {
			rows = append(rows, h)
		}
	}
	k := hostKind
	k.selects = hostSelects()
	return answer(c, &k, rows)
}

// ownersOf returns the hosts of items and triggers; nil when neither was asked for.
func (c *call) ownersOf(items, triggers idSet) map[model.HostID]bool {
	if items == nil && triggers == nil {
		return nil
	}
	owners := make(map[model.HostID]bool)
	for id := range items {
		if e, ok := c.options.Catalog.Item(model.ItemID(id)); ok {
			owners[e.HostID] = true
		}
	}
	for id := range triggers {
		if t, ok := c.configuration.Trigger(model.TriggerID(id)); ok {
			owners[t.HostID] = true
		}
	}
	return owners
}

// hostInterface is an interface with its host.
type hostInterface struct {
	model.Interface
	host model.HostID
	id   uint64
}

// interfaceBits is how many bits of an interface's id count the interfaces of its host.
const interfaceBits = 10

func interfacesOf(h *model.Host) []hostInterface {
	var list []hostInterface
	for i, face := range h.Interfaces {
		if i+1 < 1<<interfaceBits {
			list = append(list, hostInterface{face, h.ID, uint64(h.ID)<<interfaceBits | uint64(i+1)})
		}
	}
	return list
}

var interfaceKind = kind[hostInterface]{
	name: "host interface", id: "interfaceid",
	fields: []field[hostInterface]{
		{name: "interfaceid", number: true, get: func(i *hostInterface) string { return formatID(i.id) }},
		{name: "hostid", number: true, get: func(i *hostInterface) string { return formatID(i.host) }},
		{name: "main", number: true, get: func(i *hostInterface) string { return formatBool(i.Main) }},
		{name: "type", number: true, get: func(i *hostInterface) string { return formatInt(int(i.Type)) }},
		{name: "useip", number: true, get: func(i *hostInterface) string { return formatBool(i.Address == i.IP) }},
		{name: "ip", get: func(i *hostInterface) string { return i.IP }},
		{name: "dns", get: func(i *hostInterface) string { return i.DNS }},
		{name: "port", get: func(i *hostInterface) string { return i.Port }},
		{name: "available", number: true, get: func(*hostInterface) string { return "0" }},
		{name: "error", get: func(*hostInterface) string { return "" }},
	},
}

func getInterfaces(c *call) ([]byte, error) {
	ids, hosts := c.ids("interfaceids"), c.ids("hostids")
	var rows []hostInterface
	for _, h := range c.hosts() {
		if !hosts.has(uint64(h.ID)) {
			continue
		}
		for _, i := range interfacesOf(h) {
			if ids.has(i.id) {
				rows = append(rows, i)
			}
		}
	}
	k := interfaceKind
	k.selects = []selection[hostInterface]{{"selectHosts", "hosts", func(c *call, o output, i *hostInterface) any { return c.pickHosts(o, i.host) }}}
	return answer(c, &k, rows)
}

// pickHosts answers the hosts of an object that the caller may see.
func (c *call) pickHosts(o output, ids ...model.HostID) any {
	var list []*model.Host
	for _, id := range ids {
		if h, ok := c.host(id); ok {
			list = append(list, h)
		}
	}
	return pickAll(o, &hostKind, list)
}

// hostMacro is a macro of a host, or with host zero of all.
type hostMacro struct {
	model.Macro
	host model.HostID
}

func macrosOf(h *model.Host) []hostMacro {
	list := make([]hostMacro, 0, len(h.Macros))
	for _, m := range h.Macros {
		list = append(list, hostMacro{m, h.ID})
	}
	return list
}

// macroKind leaves the values of secrets out.
var macroKind = macroFields("hostmacroid")

func macroFields(id string) kind[hostMacro] {
	return kind[hostMacro]{
		name: "user macro", id: id,
		fields: []field[hostMacro]{
			{name: id, number: true, get: func(m *hostMacro) string { return stableID(uint64(m.host), m.Name) }},
			{name: "hostid", number: true, get: func(m *hostMacro) string { return formatID(m.host) }},
			{name: "macro", get: func(m *hostMacro) string { return m.Name }},
			{name: "value", get: func(m *hostMacro) string {
				if m.Secret {
					return ""
				}
				return m.Value
			}},
			{name: "type", number: true, get: func(m *hostMacro) string { return formatBool(m.Secret) }},
			{name: "description", get: func(*hostMacro) string { return "" }},
			{name: "automatic", number: true, get: func(*hostMacro) string { return "0" }},
		},
	}
}

func getMacros(c *call) ([]byte, error) {
	global, hosts, groups := c.flag("globalmacro"), c.ids("hostids"), c.ids("groupids")
	name := "hostmacroids"
	if global {
		name = "globalmacroids"
	}
	ids := c.ids(name)
	names, err := c.groupNames(groups)
	if err != nil {
		return nil, err
	}
	var rows []hostMacro
	if global {
		list, err := c.options.Objects.GlobalMacros(c.ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			rows = append(rows, hostMacro{Macro: m})
		}
	} else {
		for _, h := range c.hosts() {
			if hosts.has(uint64(h.ID)) && inGroups(names, h) {
				rows = append(rows, macrosOf(h)...)
			}
		}
	}
	k := macroFields(strings.TrimSuffix(name, "s"))
	if global {
		k.fields = slices.DeleteFunc(k.fields, func(f field[hostMacro]) bool { return f.name == "hostid" || f.name == "automatic" })
	}
	if ids != nil {
		rows = slices.DeleteFunc(rows, func(m hostMacro) bool {
			id, err := strconv.ParseUint(stableID(uint64(m.host), m.Name), 10, 64)
			return err != nil || !ids[id]
		})
	}
	if !global {
		k.selects = []selection[hostMacro]{{"selectHosts", "hosts", func(c *call, o output, m *hostMacro) any { return c.pickHosts(o, m.host) }}}
	}
	return answer(c, &k, rows)
}

var templateKind = kind[Template]{
	name: "template", id: "templateid",
	fields: []field[Template]{
		{name: "templateid", number: true, get: func(t *Template) string { return formatID(t.ID) }},
		{name: "host", get: func(t *Template) string { return t.Template }},
		{name: "name", get: func(t *Template) string { return t.Name }},
		{name: "status", number: true, get: func(*Template) string { return "3" }},
		{name: "description", get: func(*Template) string { return "" }},
	},
}

// templates returns all templates, read once for a call.
func (c *call) templates() ([]Template, error) {
	if c.templateList == nil {
		list, err := c.options.Objects.Templates(c.ctx)
		if err != nil {
			return nil, err
		}
		c.templateList = list
	}
	return slices.Clone(c.templateList), nil
}

func (c *call) templatesOf(h *model.Host) []Template {
	list, err := c.templates()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(list, func(t Template) bool { return !slices.Contains(h.Templates, t.ID) })
}

// getTemplates lists templates: all, or for somebody who sees only some hosts those of these hosts.
func getTemplates(c *call) ([]byte, error) {
	ids, hosts := c.ids("templateids"), c.ids("hostids")
	list, err := c.templates()
	if err != nil {
		return nil, err
	}
	used := make(map[model.TemplateID][]model.HostID)
	for _, h := range c.hosts() {
		for _, t := range h.Templates {
			used[t] = append(used[t], h.ID)
		}
	}
	list = slices.DeleteFunc(list, func(t Template) bool {
		return !ids.has(uint64(t.ID)) || hosts != nil && !hasAny(hosts, used[t.ID]) || c.visible != nil && len(used[t.ID]) == 0
	})
	k := templateKind
	k.selects = []selection[Template]{{"selectHosts", "hosts", func(c *call, o output, t *Template) any { return c.pickHosts(o, used[t.ID]...) }}}
	return answer(c, &k, list)
}
