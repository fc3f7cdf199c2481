package zabbix

import (
	"fmt"

	"tidemark/api/rest"
	"tidemark/model"
)

// graphRow is a graph as it is on a host.
type graphRow struct {
	rest.DrawnGraph
	host  model.HostID
	stack bool
}

// graphID is the id of a graph, made of its host and name.
func graphID(r *graphRow) string { return stableID(uint64(r.host), "graph "+r.Name) }

var graphKind = kind[graphRow]{
	name: "graph", id: "graphid",
	fields: []field[graphRow]{
		{name: "graphid", number: true, get: graphID},
		{name: "name", get: func(r *graphRow) string { return r.Name }},
		{name: "graphtype", number: true, get: func(r *graphRow) string { return formatBool(r.stack) }},
	},
}

// maxGraphHosts bounds the hosts whose graphs are read by one call.
const maxGraphHosts = 1000

// getGraphs lists the graphs of hosts that have items on them, those that discovery made too.
func getGraphs(c *call) ([]byte, error) {
	ids, hosts, groups, items := c.ids("graphids"), c.ids("hostids"), c.ids("groupids"), c.ids("itemids")
	names, err := c.groupNames(groups)
	if err != nil {
		return nil, err
	}
	k := graphKind
	k.selects = []selection[graphRow]{
		{"selectHosts", "hosts", func(c *call, o output, r *graphRow) any { return c.pickHosts(o, r.host) }},
		{"selectItems", "items", func(c *call, o output, r *graphRow) any { return pickAll(o, &itemKind, c.itemsIn(r)) }},
		{"selectGraphItems", "gitems", func(_ *call, o output, r *graphRow) any { return graphItems(o, r) }},
	}
	l, err := readLookup(c, &k)
	if err != nil {
		return nil, err
	}
	owners := c.ownersOf(items, nil)
	read := 0
	var rows []graphRow
	for _, h := range c.hosts() {
		if !hosts.has(uint64(h.ID)) || !inGroups(names, h) || owners != nil && !owners[h.ID] {
			continue
		}
		if read++; read > maxGraphHosts {
			return nil, applicationError(fmt.Sprintf("The call looks at the graphs of more than %d hosts; ask for less with hostids or groupids.", maxGraphHosts))
		}
		drawn, err := c.graphsOf(h.ID)
		if err != nil {
			return nil, err
		}
		for _, r := range drawn {
			if ids.hasText(graphID(&r)) && (items == nil || draws(&r, items)) {
				rows = append(rows, r)
			}
		}
	}
	return l.encode(c, &k, l.take(&k, rows))
}

func draws(r *graphRow, items idSet) bool {
	for _, e := range r.Entries {
		if items[uint64(e.ID)] {
			return true
		}
	}
	return false
}

func (c *call) graphsOf(host model.HostID) (rows []graphRow, err error) {
	list, err := c.options.Objects.Graphs(c.ctx, host)
	if err != nil {
		return nil, err
	}
	entries := make(map[string]model.Entry)
	for _, id := range c.options.Catalog.HostItems(host) {
		if e, ok := c.options.Catalog.Item(id); ok {
			entries[e.Key] = e
		}
	}
	for i := range list {
		for _, d := range rest.DrawGraph(&list[i], entries) {
			if len(d.Entries) > 0 {
				rows = append(rows, graphRow{d, host, list[i].Stack})
			}
		}
	}
	return rows, nil
}

func (c *call) itemsIn(r *graphRow) (rows []itemRow) {
	for _, e := range r.Entries {
		if row, ok := c.itemRow(e.ID); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// graphItem is one line of a graph.
type graphItem struct {
	item  model.ItemID
	order int
}

func graphItems(o output, r *graphRow) any {
	k := kind[graphItem]{name: "graph item", id: "itemid", fields: []field[graphItem]{
		{name: "itemid", number: true, get: func(g *graphItem) string { return formatID(g.item) }},
		{name: "sortorder", number: true, get: func(g *graphItem) string { return formatInt(g.order) }},
	}}
	rows := make([]graphItem, 0, len(r.Entries))
	for i, e := range r.Entries {
		rows = append(rows, graphItem{e.ID, i})
	}
	return pickAll(o, &k, rows)
}

var ruleKind = kind[ruleRow]{
	name: "discovery rule", id: "itemid",
	fields: []field[ruleRow]{
		{name: "itemid", number: true, get: func(r *ruleRow) string { return formatID(r.ItemID) }},
		{name: "hostid", number: true, get: func(r *ruleRow) string { return formatID(r.HostID) }},
		{name: "name", get: func(r *ruleRow) string { return r.Name }},
		{name: "key_", get: func(r *ruleRow) string { return r.Key }},
		{name: "type", number: true, get: func(r *ruleRow) string { return formatInt(int(r.item.Type)) }},
		{name: "delay", get: func(r *ruleRow) string { return cmpOr(r.item.Delay, "0") }},
		{name: "status", number: true, get: func(r *ruleRow) string { return status(r.item.Enabled) }},
		{name: "templateid", number: true, get: func(r *ruleRow) string { return templateItemIDText(&r.item) }},
		{name: "master_itemid", number: true, get: func(r *ruleRow) string { return formatID(r.item.MasterID) }},
		{name: "flags", number: true, get: func(*ruleRow) string { return "1" }},
	},
}

// ruleRow is a discovery rule of a host with its item.
type ruleRow struct {
	model.Rule
	item model.Item
}

// getRules lists the discovery rules of hosts; those of templates are in their exports.
func getRules(c *call) ([]byte, error) {
	ids, hosts, groups, templates := c.ids("itemids"), c.ids("hostids"), c.ids("groupids"), c.templateIDs("templateids")
	monitored := c.flag("monitored")
	names, err := c.groupNames(groups)
	if err != nil {
		return nil, err
	}
	var rows []ruleRow
	for _, h := range c.hosts() {
		if !hosts.has(uint64(h.ID)) || !inGroups(names, h) || !hasAny(templates, h.Templates) || monitored && !h.Enabled {
			continue
		}
		for _, r := range c.configuration.Rules(h.ID) {
			item, ok := c.configuration.Item(r.ItemID)
			if ok && ids.has(uint64(r.ItemID)) && (!monitored || item.Enabled) {
				rows = append(rows, ruleRow{r, *item})
			}
		}
	}
	k := ruleKind
	k.selects = []selection[ruleRow]{
		{"selectHosts", "hosts", func(c *call, o output, r *ruleRow) any { return c.pickHosts(o, r.HostID) }},
		{"selectItems", "items", func(_ *call, o output, r *ruleRow) any { return prototypesOf(o, r, model.ItemPrototype) }},
		{"selectTriggers", "triggers", func(_ *call, o output, r *ruleRow) any { return prototypesOf(o, r, model.TriggerPrototype) }},
		{"selectGraphs", "graphs", func(_ *call, o output, r *ruleRow) any { return prototypesOf(o, r, model.GraphPrototype) }},
		{"selectHostPrototypes", "hostPrototypes", func(_ *call, o output, r *ruleRow) any { return prototypesOf(o, r, model.HostPrototype) }},
	}
	return answer(c, &k, rows)
}

// prototypesOf answers what a rule makes, of one kind.
func prototypesOf(o output, r *ruleRow, of model.PrototypeKind) any {
	id := map[model.PrototypeKind]string{model.ItemPrototype: "itemid", model.TriggerPrototype: "triggerid", model.GraphPrototype: "graphid", model.HostPrototype: "hostid"}[of]
	text := "name"
	if of == model.TriggerPrototype {
		text = "description"
	}
	k := kind[model.Prototype]{name: "prototype", id: id, fields: []field[model.Prototype]{
		{name: id, number: true, get: func(p *model.Prototype) string { return formatID(p.ID) }},
		{name: text, get: func(p *model.Prototype) string { return p.Name }},
		{name: "discover", number: true, get: func(p *model.Prototype) string { return status(p.Discovers) }},
	}}
	var rows []model.Prototype
	for _, p := range r.Prototypes {
		if p.Kind == of {
			rows = append(rows, p)
		}
	}
	return pickAll(o, &k, rows)
}
