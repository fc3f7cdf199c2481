package zabbix

import (
	"cmp"
	"slices"
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

var groupKind = kind[Group]{
	name: "host group", id: "groupid", strict: true,
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
		{name: "proxyid", number: true, get: func(h **model.Host) string { return formatID((*h).Proxy) }},
		{name: "monitored_by", number: true, get: func(h **model.Host) string { return formatBool((*h).Proxy != 0) }},
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
func (c *call) hostSelects() []selection[*model.Host] {
	notes := c.notes()
	groups := func(c *call, o output, h **model.Host) any { return pickAll(o, &groupKind, c.groupsOf(*h)) }
	return []selection[*model.Host]{
		{"selectHostGroups", "hostgroups", groups},
		{"selectGroups", "groups", groups},
		{"selectTags", "tags", func(_ *call, o output, h **model.Host) any { return pickTags(o, (*h).Tags) }},
		{"selectInheritedTags", "inheritedTags", func(_ *call, _ output, _ **model.Host) any { return []string{} }},
		{"selectInterfaces", "interfaces", func(c *call, o output, h **model.Host) any { return c.pickInterfaces(o, *h) }},
		{"selectMacros", "macros", func(_ *call, o output, h **model.Host) any { return pickAll(o, &macroKind, macrosOf(*h, notes())) }},
		{"selectParentTemplates", "parentTemplates", func(c *call, o output, h **model.Host) any { return pickAll(o, &templateKind, c.templatesOf(*h)) }},
		{"selectInventory", "inventory", func(_ *call, o output, h **model.Host) any {
			return inventoryMembers(o, *h, notes()[(*h).ID].InventoryMode)
		}},
		{"selectItems", "items", func(c *call, o output, h **model.Host) any { return pickAll(o, &itemKind, c.itemsOf(*h)) }},
		{"selectTriggers", "triggers", func(c *call, o output, h **model.Host) any { return pickAll(o, &triggerKind, c.triggersOf(*h)) }},
	}
}

// inventoryMembers answers the fields of an inventory, those without a value too; an empty list for a host that has none, as PHP writes it.
func inventoryMembers(o output, h *model.Host, mode string) any {
	if mode != "MANUAL" && !h.AutomaticInventory && len(h.Inventory) == 0 {
		return []string{}
	}
	members := make(map[string]string)
	for _, name := range model.InventoryFields() {
		if o.has(name) {
			members[name] = ""
		}
	}
	for _, l := range h.Inventory {
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
	hosts, groups, templates, items, triggers := c.ids("hostids"), c.ids("groupids"), c.templateIDs("templateids"), c.ids("itemids"), c.ids("triggerids")
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
			(!monitored || h.Enabled) && proxied.has(uint64(h.Proxy)) && matchTags(tags, either, h.Tags) &&
			(interfaces == nil || slices.ContainsFunc(interfacesOf(h), func(i hostInterface) bool { return interfaces[i.id] })) &&
			(!withItems || len(c.options.Catalog.HostItems(h.ID)) > 0) && (!withTriggers || len(c.configuration.TriggersOf(h.ID)) > 0)
		if ok {
			rows = append(rows, h)
		}
	}
	k := c.maintainedHosts()
	k.selects = c.hostSelects()
	k.groupings = []grouping[*model.Host]{
		{"groupid", groups, func(h **model.Host) []uint64 { return c.countedGroups(*h) }},
		{"proxyid", proxied, func(h **model.Host) []uint64 { return []uint64{uint64((*h).Proxy)} }},
	}
	return answer(c, &k, rows)
}

// maintainedHosts is hostKind with the maintenances that hosts are in now.
func (c *call) maintainedHosts() kind[*model.Host] {
	k, list, now := hostKind, c.options.Objects.Alerting().Maintenances, c.options.Now()
	k.fields = slices.Clone(k.fields)
	k.field("maintenance_status").get = func(h **model.Host) string { return formatBool(maintenanceOf(list, *h, now) != nil) }
	k.field("maintenanceid").get = func(h **model.Host) string {
		if m := maintenanceOf(list, *h, now); m != nil {
			return maintenanceID(m)
		}
		return "0"
	}
	c.notedHosts(&k)
	k.fields = append(k.fields, field[*model.Host]{name: "maintenance_type", number: true, get: func(h **model.Host) string {
		m := maintenanceOf(list, *h, now)
		return formatBool(m != nil && m.NoData)
	}})
	return k
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
	// state is only there where it is answered.
	state InterfaceState
}

// interfaceBits is how many bits of an interface's id count the interfaces of its host.
const interfaceBits = 10

func interfacesOf(h *model.Host) []hostInterface {
	var list []hostInterface
	for i, face := range h.Interfaces {
		if i+1 < 1<<interfaceBits {
			list = append(list, hostInterface{Interface: face, host: h.ID, id: uint64(h.ID)<<interfaceBits | uint64(i+1)})
		}
	}
	return list
}

// interfaces returns the interfaces of a host with whether they answer.
func (c *call) interfaces(h *model.Host) []hostInterface {
	list := interfacesOf(h)
	if len(list) == 0 {
		return list
	}
	states := c.options.Objects.InterfaceStates(h)
	for i := range list[:min(len(list), len(states))] {
		list[i].state = states[i]
	}
	return list
}

// details are how an SNMP interface is asked; an empty list for others, as PHP writes it.
func (c *call) details(i *hostInterface) any {
	if i.SNMP == nil {
		return []string{}
	}
	_, err := c.editable(i.host)
	return snmpMembers(i.SNMP, err == nil)
}

// pickInterfaces answers the interfaces of a host, with what is no text of them.
func (c *call) pickInterfaces(o output, h *model.Host) any {
	rows := c.interfaces(h)
	if o.count {
		return formatInt(len(rows))
	}
	list := []object{}
	for i := range rows {
		one := object{}
		for name, value := range pick(o, &interfaceKind, &rows[i]) {
			one[name] = value
		}
		if o.has("details") {
			one["details"] = c.details(&rows[i])
		}
		list = append(list, one)
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
		{name: "available", number: true, get: func(i *hostInterface) string { return formatInt(i.state.Available) }},
		{name: "error", get: func(i *hostInterface) string { return i.state.Error }},
	},
}

func getInterfaces(c *call) ([]byte, error) {
	ids, hosts := c.ids("interfaceids"), c.ids("hostids")
	var rows []hostInterface
	for _, h := range c.hosts() {
		if !hosts.has(uint64(h.ID)) {
			continue
		}
		for _, i := range c.interfaces(h) {
			if ids.has(i.id) {
				rows = append(rows, i)
			}
		}
	}
	k := interfaceKind
	k.selects = []selection[hostInterface]{
		{"selectHosts", "hosts", func(c *call, o output, i *hostInterface) any { return c.pickHosts(o, i.host) }},
		{"", "details", func(c *call, _ output, i *hostInterface) any { return c.details(i) }},
	}
	return answer(c, &k, rows)
}

// pickHosts answers the hosts of an object that the caller may see.
func (c *call) pickHosts(o output, ids ...model.HostID) any {
	var list []*model.Host
	for _, id := range ids {
		if h, ok := c.holder(id); ok {
			list = append(list, h)
		}
	}
	if c.hostKind == nil {
		k := c.maintainedHosts()
		c.hostKind = &k
	}
	return pickAll(o, c.hostKind, list)
}
