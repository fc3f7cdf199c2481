package zabbix

import (
	"cmp"
	"encoding/json"
	"slices"

	"tidemark/model"
)

// triggerRow is a trigger with its state.
type triggerRow struct {
	*model.Trigger
	state model.TriggerState
	// host is the technical name of the host or template.
	host string
}

func (c *call) triggerRow(t *model.Trigger) triggerRow {
	r := triggerRow{Trigger: t}
	if h, ok := c.holder(t.HostID); ok {
		r.host = h.Host
	}
	if !isTemplate(t.HostID) {
		r.state, _ = c.options.Problems.State(t.ID)
	}
	return r
}

func (c *call) triggersOf(h *model.Host) []triggerRow {
	list := c.triggersIn(h.ID)
	rows := make([]triggerRow, 0, len(list))
	for i := range list {
		rows = append(rows, c.triggerRow(&list[i]))
	}
	return rows
}

// triggersWith returns the triggers of a host whose expression has an item.
func (c *call) triggersWith(host model.HostID, item model.ItemID) []triggerRow {
	var rows []triggerRow
	list := c.configuration.TriggersOf(host)
	for i := range list {
		if slices.Contains(c.options.Problems.Items(list[i].ID), item) {
			rows = append(rows, c.triggerRow(&list[i]))
		}
	}
	return rows
}

// triggerItems returns the items in the expressions of triggers; nil when no triggers were asked for.
func (c *call) triggerItems(ids idSet) map[model.ItemID]bool {
	if ids == nil {
		return nil
	}
	items := make(map[model.ItemID]bool)
	for id := range ids {
		if t, ok := c.trigger(model.TriggerID(id)); ok {
			for _, item := range c.options.Problems.Items(t.ID) {
				items[item] = true
			}
		}
	}
	return items
}

// trigger returns a trigger that the caller may see.
func (c *call) trigger(id model.TriggerID) (*model.Trigger, bool) {
	if t, ok := templateOfContent(uint64(id)); ok {
		return c.templateTrigger(t, id)
	}
	t, ok := c.configuration.Trigger(id)
	return t, ok && c.visible.Has(t.HostID)
}

var triggerKind = kind[triggerRow]{
	name: "trigger", id: "triggerid",
	fields: []field[triggerRow]{
		{name: "triggerid", number: true, get: func(r *triggerRow) string { return formatID(r.ID) }},
		{name: "description", get: func(r *triggerRow) string { return r.Name }},
		{name: "event_name", get: func(r *triggerRow) string { return r.EventName }},
		{name: "opdata", get: func(r *triggerRow) string { return r.OpData }},
		{name: "expression", get: func(r *triggerRow) string { expression, _ := r.Shown(); return expression }},
		{name: "recovery_mode", number: true, get: func(r *triggerRow) string { return formatInt(int(r.RecoveryMode)) }},
		{name: "recovery_expression", get: func(r *triggerRow) string { _, recovery := r.Shown(); return recovery }},
		{name: "priority", number: true, get: func(r *triggerRow) string { return formatInt(int(r.Severity)) }},
		{name: "status", number: true, get: func(r *triggerRow) string { return status(r.Enabled) }},
		{name: "value", number: true, get: func(r *triggerRow) string { return formatBool(r.state.Problem) }},
		{name: "lastchange", number: true, get: func(r *triggerRow) string { return seconds(r.state.ChangedAt) }},
		{name: "state", number: true, get: func(r *triggerRow) string { return formatBool(r.state.Error != "") }},
		{name: "error", get: func(r *triggerRow) string { return r.state.Error }},
		{name: "comments", get: func(r *triggerRow) string { return r.Comments }},
		{name: "url", get: func(r *triggerRow) string { return r.URL }},
		{name: "url_name", get: func(*triggerRow) string { return "" }},
		{name: "type", number: true, get: func(r *triggerRow) string { return formatBool(r.MultipleEvents) }},
		{name: "manual_close", number: true, get: func(r *triggerRow) string { return formatBool(r.ManualClose) }},
		{name: "correlation_mode", number: true, get: func(r *triggerRow) string { return formatBool(r.CorrelationTag != "") }},
		{name: "correlation_tag", get: func(r *triggerRow) string { return r.CorrelationTag }},
		{name: "flags", number: true, get: func(r *triggerRow) string { return flags(r.DiscoveredBy) }},
		{name: "templateid", number: true, get: func(r *triggerRow) string { return templateID(r.TemplateID) }},
		{name: "uuid", get: func(r *triggerRow) string { return r.UUID }},
	},
	filters: []field[triggerRow]{
		{name: "host", get: func(r *triggerRow) string { return r.host }},
		{name: "hostid", get: func(r *triggerRow) string { return formatID(r.HostID) }},
	},
}

// triggerHosts returns the hosts whose items are in a trigger's expression.
func (c *call) triggerHosts(t *model.Trigger) []model.HostID {
	hosts := []model.HostID{t.HostID}
	for _, id := range c.options.Problems.Items(t.ID) {
		if e, ok := c.options.Catalog.Item(id); ok && !slices.Contains(hosts, e.HostID) {
			hosts = append(hosts, e.HostID)
		}
	}
	return hosts
}

func triggerSelects() []selection[triggerRow] {
	groups := func(c *call, o output, r *triggerRow) any {
		var list []Group
		for _, id := range c.triggerHosts(r.Trigger) {
			if h, ok := c.host(id); ok {
				list = append(list, c.groupsOf(h)...)
			}
		}
		slices.SortFunc(list, func(a, b Group) int { return cmp.Compare(a.ID, b.ID) })
		return pickAll(o, &groupKind, slices.Compact(list))
	}
	return []selection[triggerRow]{
		{"selectHosts", "hosts", func(c *call, o output, r *triggerRow) any { return c.pickHosts(o, c.triggerHosts(r.Trigger)...) }},
		{"selectHostGroups", "hostgroups", groups},
		{"selectGroups", "groups", groups},
		{"selectTags", "tags", func(_ *call, o output, r *triggerRow) any { return pickTags(o, r.Tags) }},
		{"selectItems", "items", func(c *call, o output, r *triggerRow) any { return pickAll(o, &itemKind, c.itemRows(r.ID)) }},
		{"selectLastEvent", "lastEvent", selectLastEvent},
		{"selectDependencies", "dependencies", func(c *call, o output, r *triggerRow) any {
			var rows []triggerRow
			for _, id := range r.DependsOn {
				if t, ok := c.trigger(id); ok {
					rows = append(rows, c.triggerRow(t))
				}
			}
			return pickAll(o, &triggerKind, rows)
		}},
	}
}

// itemRows returns the items of a trigger with their last values.
func (c *call) itemRows(id model.TriggerID) []itemRow {
	var rows []itemRow
	for _, item := range c.options.Problems.Items(id) {
		if r, ok := c.itemRow(item); ok {
			rows = append(rows, r)
		}
	}
	if err := c.readLast(rows); err != nil {
		return nil
	}
	return rows
}

// selectLastEvent answers the problem that is open.
func selectLastEvent(c *call, o output, r *triggerRow) any {
	for _, p := range c.openOf(r.ID) {
		row := c.eventRow(&p)
		return pick(o, &eventKind, &row)
	}
	return []string{}
}

// openOf returns the open problems of a trigger, the newest first.
func (c *call) openOf(id model.TriggerID) []model.Problem {
	if c.open == nil {
		c.open = make(map[model.TriggerID][]model.Problem)
		for _, p := range c.options.Problems.Open() {
			c.open[p.TriggerID] = append(c.open[p.TriggerID], p)
		}
		for _, list := range c.open {
			slices.SortFunc(list, func(a, b model.Problem) int { return cmp.Compare(b.ID, a.ID) })
		}
	}
	return c.open[id]
}

// triggerFilter is what trigger.get asks for besides the common parameters.
type triggerFilter struct {
	triggers, hosts, groups, items, templates idSet
	monitored, active, independent, problems  bool
	unacknowledged, templated, maintained     bool
	least                                     int64
	since, till                               int64
	tags                                      []tagFilter
	either                                    bool
	names                                     map[string]bool
}

func (c *call) triggerFilter() (f triggerFilter, err error) {
	const most = 1 << 40
	f = triggerFilter{
		triggers: c.ids("triggerids"), hosts: c.ids("hostids"), groups: c.ids("groupids"), items: c.ids("itemids"), templates: c.templateIDs("templateids"),
		monitored: c.flag("monitored"), active: c.flag("active"), independent: c.flag("skipDependent"), problems: c.flag("only_true"),
		least: c.number("min_severity", 0, int64(model.Disaster)), since: c.number("lastChangeSince", 0, most), till: c.number("lastChangeTill", most, most),
		unacknowledged: c.flag("withLastEventUnacknowledged"),
	}
	if c.flag("withUnacknowledgedEvents") {
		f.unacknowledged = true
	}
	f.tags, f.either = c.tags()
	c.accept("expandDescription", "expandComment", "expandExpression", "expandData")
	c.noApplications()
	f.maintained = c.flag("maintenance")
	f.templated = c.flag("templated")
	f.names, err = c.groupNames(f.groups)
	return f, err
}

func (f *triggerFilter) fits(c *call, h *model.Host, r *triggerRow) bool {
	changed := floorSeconds(r.state.ChangedAt)
	open := c.openOf(r.ID)
	return f.triggers.has(uint64(r.ID)) && askedHolder(f.hosts, f.templates, h.ID) && inGroups(f.names, h) &&
		(!f.monitored || h.Enabled && r.Enabled) && (!f.active || h.Enabled && r.Enabled) && (!f.problems || r.state.Problem) &&
		int64(r.Severity) >= f.least && changed >= f.since && changed <= f.till &&
		(!f.unacknowledged || len(open) > 0 && !open[0].Acknowledged) && (!f.independent || !c.depends(r.Trigger)) &&
		(f.items == nil || hasAny(f.items, c.options.Problems.Items(r.ID))) && (!f.maintained || c.maintained(h)) && matchTags(f.tags, f.either, r.Tags)
}

// depends reports whether a trigger that this one depends on is in PROBLEM.
func (c *call) depends(t *model.Trigger) bool {
	return slices.ContainsFunc(t.DependsOn, func(id model.TriggerID) bool {
		s, ok := c.options.Problems.State(id)
		return ok && s.Problem
	})
}

// triggerHolders returns the hosts and templates whose triggers are looked at.
func (c *call) triggerHolders(f *triggerFilter) ([]*model.Host, error) {
	var names []string
	if v, ok := c.get("filter"); ok {
		var members struct{ Host json.RawMessage }
		if json.Unmarshal(v, &members) == nil && members.Host != nil {
			names, _ = scalars(members.Host)
		}
	}
	hosts := make(idSet)
	for id := range f.triggers {
		if t, ok := templateOfContent(id); ok {
			hosts[templateBase+uint64(t)] = true
		}
	}
	for id := range f.hosts {
		hosts[id] = true
	}
	if f.hosts == nil && len(hosts) == 0 {
		hosts = nil
	}
	holders, err := c.templatesAsked(f.templates, hosts, names, f.templated)
	switch {
	case err != nil:
		return nil, err
	case f.monitored || f.active:
		return c.hosts(), nil
	case f.templates == nil && !f.templated:
		return append(c.hosts(), holders...), nil
	}
	return holders, nil
}

func getTriggers(c *call) ([]byte, error) {
	f, err := c.triggerFilter()
	if err != nil {
		return nil, err
	}
	holders, err := c.triggerHolders(&f)
	if err != nil {
		return nil, err
	}
	var rows []triggerRow
	for _, h := range holders {
		for _, r := range c.triggersOf(h) {
			if f.fits(c, h, &r) {
				rows = append(rows, r)
			}
		}
	}
	slices.SortFunc(rows, func(a, b triggerRow) int { return cmp.Compare(a.ID, b.ID) })
	k := triggerKind
	k.selects = triggerSelects()
	k.groupings = []grouping[triggerRow]{
		{"hostid", f.hosts, func(r *triggerRow) []uint64 { return []uint64{uint64(r.HostID)} }},
		{"groupid", f.groups, func(r *triggerRow) []uint64 { return c.countedGroupsOf(r.HostID) }},
	}
	return answer(c, &k, rows)
}
