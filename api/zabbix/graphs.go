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
