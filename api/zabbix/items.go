package zabbix

import (
	"math"
	"slices"
	"strconv"

	"tidemark/model"
	"tidemark/query"
)

// itemRow is an item with what is known of it. item is nil for a declared one.
type itemRow struct {
	model.Entry
	item   *model.Item
	values query.LastValues
	tags   []model.Tag
	// history and trends, if not empty, are how long values are kept as text: of items of templates.
	history, trends string
}

// itemRow returns an item that the caller may see.
func (c *call) itemRow(id model.ItemID) (itemRow, bool) {
	if t, ok := templateOfContent(uint64(id)); ok {
		return c.templateItem(t, id)
	}
	e, ok := c.options.Catalog.Item(id)
	if !ok || !c.visible.Has(e.HostID) {
		return itemRow{}, false
	}
	r := itemRow{Entry: e}
	if i, ok := c.configuration.Item(id); ok {
		if i.RuleID != 0 {
			return itemRow{}, false // a discovery rule
		}
		r.item, r.tags = i, i.Tags
	}
	return r, true
}

// itemsOf returns the items of a host or, as asHost, of a template.
func (c *call) itemsOf(h *model.Host) []itemRow {
	if isTemplate(h.ID) {
		return slices.Clone(c.contentsOf(h).items)
	}
	var rows []itemRow
	for _, id := range c.options.Catalog.HostItems(h.ID) {
		if r, ok := c.itemRow(id); ok {
			rows = append(rows, r)
		}
	}
	return rows
}

func (r *itemRow) enabled() bool { return r.item == nil || r.item.Enabled }

// of returns a text of a configured item, and another for a declared one.
func (r *itemRow) of(get func(*model.Item) string, otherwise string) string {
	if r.item == nil {
		return otherwise
	}
	return get(r.item)
}

func (r *itemRow) delay() string {
	if r.item != nil && r.item.Delay != "" {
		return r.item.Delay
	}
	if r.Interval > 0 {
		return strconv.FormatFloat(r.Interval.Seconds(), 'f', -1, 64) + "s"
	}
	return "0"
}

// valueTypeNumber is Zabbix's number; what it has no number for is text.
func valueTypeNumber(t model.ValueType) string {
	if t > model.Binary {
		t = model.Text
	}
	return formatInt(int(t))
}

// formatValue writes a value as Zabbix does: numbers in decimal, of a log the line.
func formatValue(t model.ValueType, bits uint64, text []byte) string {
	switch t {
	case model.Float:
		return strconv.FormatFloat(math.Float64frombits(bits), 'g', -1, 64)
	case model.Uint:
		return strconv.FormatUint(bits, 10)
	case model.LogEntry:
		line, err := model.LogText(text)
		if err != nil {
			return ""
		}
		return string(line)
	}
	return string(text)
}

func lastValue(v *query.Value) string {
	if v == nil {
		return "0"
	}
	return formatValue(v.Type, v.Bits, v.Bytes)
}

func lastTime(v *query.Value, format func(int64) string) string {
	if v == nil {
		return "0"
	}
	return format(v.At)
}

// valueFields are the members for which the last values are read.
var valueFields = []string{"lastvalue", "lastclock", "lastns", "prevvalue", "state", "error"}

var itemKind = kind[itemRow]{
	name: "item", id: "itemid",
	fields: []field[itemRow]{
		{name: "itemid", number: true, get: func(r *itemRow) string { return formatID(r.ID) }},
		{name: "hostid", number: true, get: func(r *itemRow) string { return formatID(r.HostID) }},
		{name: "name", get: func(r *itemRow) string { return r.Name }},
		{name: "key_", get: func(r *itemRow) string { return r.Key }},
		{name: "type", number: true, get: func(r *itemRow) string {
			return r.of(func(i *model.Item) string { return formatInt(int(i.Type)) }, formatInt(int(model.ActiveAgent)))
		}},
		{name: "value_type", number: true, get: func(r *itemRow) string { return valueTypeNumber(r.ValueType) }},
		{name: "units", get: func(r *itemRow) string { return r.Units }},
		{name: "delay", get: func(r *itemRow) string { return r.delay() }},
		{name: "history", get: func(r *itemRow) string {
			return cmpOr(r.history, r.of(func(i *model.Item) string { return strconv.FormatInt(int64(i.History.Seconds()), 10) }, ""))
		}},
		{name: "trends", get: func(r *itemRow) string {
			return cmpOr(r.trends, r.of(func(i *model.Item) string { return strconv.FormatInt(int64(i.Trends.Seconds()), 10) }, ""))
		}},
		{name: "status", number: true, get: func(r *itemRow) string { return status(r.enabled()) }},
		{name: "state", number: true, get: func(r *itemRow) string { return formatBool(r.values.Reason != "") }},
		{name: "error", get: func(r *itemRow) string { return r.values.Reason }},
		{name: "description", get: func(r *itemRow) string { return r.Help }},
		{name: "flags", number: true, get: func(r *itemRow) string {
			return r.of(func(i *model.Item) string { return flags(i.DiscoveredBy) }, "0")
		}},
		{name: "templateid", number: true, get: func(r *itemRow) string {
			return r.of(templateItemIDText, "0")
		}},
		{name: "master_itemid", number: true, get: func(r *itemRow) string {
			return r.of(func(i *model.Item) string { return formatID(i.MasterID) }, "0")
		}},
		{name: "valuemapid", number: true, get: func(r *itemRow) string {
			return r.of(valueMapOfItem, "0")
		}},
		{name: "lastvalue", get: func(r *itemRow) string { return lastValue(r.values.Last) }},
		{name: "lastclock", number: true, get: func(r *itemRow) string { return lastTime(r.values.Last, seconds) }},
		{name: "lastns", number: true, get: func(r *itemRow) string { return lastTime(r.values.Last, nanos) }},
		{name: "prevvalue", get: func(r *itemRow) string { return lastValue(r.values.Previous) }},
		{name: "uuid", get: func(r *itemRow) string { return r.of(func(i *model.Item) string { return i.UUID }, "") }},
	},
	filters: []field[itemRow]{{name: "host", get: func(r *itemRow) string { return r.Host }}},
}

// templateItemIDText is the id of the template's item that an item was inherited from.
func templateItemIDText(i *model.Item) string {
	if i.TemplateID == 0 {
		return "0"
	}
	return strconv.FormatUint(templateItemID(i.TemplateID, i.Key), 10)
}

func itemSelects() []selection[itemRow] {
	return []selection[itemRow]{
		{"selectHosts", "hosts", func(c *call, o output, r *itemRow) any { return c.pickHosts(o, r.HostID) }},
		{"selectTags", "tags", func(_ *call, o output, r *itemRow) any { return pickTags(o, r.tags) }},
		{"selectValueMap", "valuemap", func(_ *call, o output, r *itemRow) any {
			if r.item == nil || r.item.ValueMap == nil {
				return []string{}
			}
			return formatValueMap(o, &valueMapRow{ValueMap: *r.item.ValueMap, owner: valueMapOwner(r.item)})
		}},
		{"selectTriggers", "triggers", func(c *call, o output, r *itemRow) any {
			return pickAll(o, &triggerKind, c.triggersWith(r.HostID, r.ID))
		}},
		{"selectInterfaces", "interfaces", func(c *call, o output, r *itemRow) any {
			h, ok := c.host(r.HostID)
			if !ok || r.item == nil {
				return []string{}
			}
			face := h.InterfaceFor(r.item)
			rows := slices.DeleteFunc(c.interfaces(h), func(i hostInterface) bool { return face == nil || i.Interface != *face })
			return pickAll(o, &interfaceKind, rows)
		}},
	}
}

func getItems(c *call) ([]byte, error) {
	items, hosts, groups, triggers, templates := c.ids("itemids"), c.ids("hostids"), c.ids("groupids"), c.ids("triggerids"), c.templateIDs("templateids")
	monitored, withTriggers, inherited := c.flag("monitored"), c.flag("with_triggers"), c.text("inherited")
	host, group := c.text("host"), c.text("group")
	c.accept("webitems")
	c.noApplications()
	templated, given := c.flag("templated"), c.object["templated"] != nil
	conditions, either := c.tags()
	k := itemKind
	k.selects = itemSelects()
	k.groupings = []grouping[itemRow]{
		{"hostid", hosts, func(r *itemRow) []uint64 { return []uint64{uint64(r.HostID)} }},
		{"groupid", groups, func(r *itemRow) []uint64 { return c.countedGroupsOf(r.HostID) }},
	}
	l, err := readLookup(c, &k)
	if err != nil {
		return nil, err
	}
	names, err := c.groupNames(groups)
	if err != nil {
		return nil, err
	}
	wanted := c.triggerItems(triggers)
	fits := func(h *model.Host) bool {
		return askedHolder(hosts, templates, h.ID) && inGroups(names, h) && (!monitored || h.Enabled) &&
			(host == "" || h.Host == host) && (group == "" || slices.Contains(h.Groups, group))
	}
	holders, err := c.templatesAsked(templates, hosts, l.filter["host"], templated)
	if err != nil {
		return nil, err
	}
	switch {
	case monitored || given && !templated:
		holders = c.hosts()
	case templates == nil && !templated:
		holders = append(c.hosts(), holders...)
	}
	var rows []itemRow
	c.eachItem(items, holders, fits, func(r itemRow) {
		ok := (wanted == nil || wanted[r.ID]) && (!monitored || r.enabled()) && matchTags(conditions, either, r.tags) &&
			(inherited == "" || (r.item != nil && r.item.TemplateID != 0) == (inherited != "0")) && (!withTriggers || len(c.triggersWith(r.HostID, r.ID)) > 0)
		if ok {
			rows = append(rows, r)
		}
	})
	early := slices.ContainsFunc(valueFields, l.compares)
	if early {
		err = c.readLast(rows)
	}
	rows = l.take(&k, rows)
	if err == nil && !early && !l.count && l.needs(valueFields...) {
		err = c.readLast(rows)
	}
	if err != nil {
		return nil, err
	}
	return l.encode(c, &k, rows)
}

// eachItem calls fn with the items that were asked for, of hosts that fit, by host and id.
func (c *call) eachItem(items idSet, holders []*model.Host, fits func(*model.Host) bool, fn func(itemRow)) {
	if items != nil {
		for _, id := range sortedIDs(items) {
			r, ok := c.itemRow(model.ItemID(id))
			if !ok {
				continue
			}
			if h, ok := c.holder(r.HostID); ok && fits(h) {
				fn(r)
			}
		}
		return
	}
	for _, h := range holders {
		if c.ctx.Err() != nil {
			return
		}
		if fits(h) {
			for _, r := range c.itemsOf(h) {
				fn(r)
			}
		}
	}
}

// lastPiece is for how many items the last values are read at a time.
const lastPiece = 10_000

// readLast fills in the last values of items.
func (c *call) readLast(rows []itemRow) error {
	for piece := range slices.Chunk(rows, lastPiece) {
		ids := make([]model.ItemID, len(piece))
		for i := range piece {
			ids[i] = piece[i].ID
		}
		values, err := c.options.Latest.Get(c.ctx, ids)
		if err != nil {
			return err
		}
		for i := range piece {
			piece[i].values = values[i]
		}
	}
	return nil
}
