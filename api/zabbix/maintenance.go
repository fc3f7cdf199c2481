package zabbix

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidemark/access"
	"tidemark/alert"
	"tidemark/model"
)

// localTime is the form of times in the configuration of alerting: those of the server's zone.
const localTime = "2006-01-02T15:04"

// maintenanceID is the id of a maintenance, made of its name.
func maintenanceID(m *alert.Maintenance) string { return stableID(0, "maintenance "+m.Name) }

var maintenanceKind = kind[alert.Maintenance]{
	name: "maintenance", id: "maintenanceid",
	fields: []field[alert.Maintenance]{
		{name: "maintenanceid", number: true, get: maintenanceID},
		{name: "name", get: func(m *alert.Maintenance) string { return m.Name }},
		{name: "maintenance_type", number: true, get: func(m *alert.Maintenance) string { return formatBool(m.NoData) }},
		{name: "description", get: func(m *alert.Maintenance) string { return m.Description }},
		{name: "active_since", number: true, get: func(m *alert.Maintenance) string { return localSeconds(m.From, 0) }},
		{name: "active_till", number: true, get: func(m *alert.Maintenance) string { return localSeconds(m.To, math.MaxInt32) }},
		{name: "tags_evaltype", number: true, get: func(m *alert.Maintenance) string {
			if m.AnyTag {
				return "2"
			}
			return "0"
		}},
	},
	selects: []selection[alert.Maintenance]{
		{"selectHosts", "hosts", func(c *call, o output, m *alert.Maintenance) any { return pickAll(o, &hostKind, c.hostsNamed(m.Hosts)) }},
		{"selectHostGroups", "hostgroups", func(c *call, o output, m *alert.Maintenance) any {
			return pickAll(o, &groupKind, c.groupsNamed(m.Groups))
		}},
		{"selectGroups", "groups", func(c *call, o output, m *alert.Maintenance) any {
			return pickAll(o, &groupKind, c.groupsNamed(m.Groups))
		}},
		{"selectTimeperiods", "timeperiods", func(_ *call, o output, m *alert.Maintenance) any { return pickAll(o, &periodKind, m.Periods) }},
		{"selectTags", "tags", func(_ *call, o output, m *alert.Maintenance) any { return pickAll(o, &maintenanceTagKind, m.Tags) }},
	},
}

var maintenanceTagKind = kind[alert.TagFilter]{
	name: "tag", id: "tag",
	fields: []field[alert.TagFilter]{
		{name: "tag", get: func(t *alert.TagFilter) string { return t.Tag }},
		{name: "operator", get: func(t *alert.TagFilter) string {
			if t.Operator == "equals" {
				return "0"
			}
			return "2"
		}},
		{name: "value", get: func(t *alert.TagFilter) string { return t.Value }},
	},
}

// localSeconds writes a time of the configuration as Unix seconds; otherwise is what an open end is.
func localSeconds(l alert.LocalTime, otherwise int64) string {
	text, err := l.MarshalText()
	if err == nil && len(text) > 0 {
		if t, err := time.ParseInLocation(localTime, string(text), time.Local); err == nil {
			return strconv.FormatInt(t.Unix(), 10)
		}
	}
	return strconv.FormatInt(otherwise, 10)
}

func (c *call) hostsNamed(names []string) []*model.Host {
	return slices.DeleteFunc(c.hosts(), func(h *model.Host) bool { return !slices.Contains(names, h.Host) })
}

func (c *call) groupsNamed(names []string) []Group {
	list, err := c.groups()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(list, func(g Group) bool { return !slices.Contains(names, g.Name) })
}

// maintains reports whether a maintenance is of a host: of itself, or of a group that it is in or below.
func maintains(m *alert.Maintenance, h *model.Host) bool {
	return slices.Contains(m.Hosts, h.Host) || slices.ContainsFunc(h.Groups, func(of string) bool {
		return slices.ContainsFunc(m.Groups, func(g string) bool { return of == g || strings.HasPrefix(of, g+"/") })
	})
}

// mayMaintain reports whether the caller has a role on all hosts and groups of a maintenance.
func (c *call) mayMaintain(m *alert.Maintenance, need model.Role) bool {
	if c.visible == nil {
		return c.who.MostRole() >= need
	}
	seen := c.hosts()
	return !slices.ContainsFunc(m.Hosts, func(name string) bool {
		return !slices.ContainsFunc(seen, func(h *model.Host) bool { return h.Host == name && c.mayOnHost(h.ID, need) })
	}) && !slices.ContainsFunc(m.Groups, func(g string) bool { return c.who.OnHost([]string{g}) < need })
}

// maintenances returns those that the caller may see: of no hosts but visible ones.
func (c *call) maintenances() []alert.Maintenance {
	return slices.DeleteFunc(slices.Clone(c.options.Objects.Alerting().Maintenances), func(m alert.Maintenance) bool { return !c.mayMaintain(&m, model.Viewer) })
}

func getMaintenances(c *call) ([]byte, error) {
	ids, hosts, groups := c.ids("maintenanceids"), c.ids("hostids"), c.ids("groupids")
	names, err := c.groupNames(groups)
	if err != nil {
		return nil, err
	}
	rows := slices.DeleteFunc(c.maintenances(), func(m alert.Maintenance) bool {
		ofHost := hosts == nil || slices.ContainsFunc(c.hosts(), func(h *model.Host) bool { return hosts[uint64(h.ID)] && maintains(&m, h) })
		ofGroup := names == nil || slices.ContainsFunc(m.Groups, func(g string) bool { return names[g] })
		return !ids.hasText(maintenanceID(&m)) || !ofHost || !ofGroup
	})
	return answer(c, &maintenanceKind, rows)
}

// changeMaintenances makes maintenances, or with update changes them.
func changeMaintenances(c *call, update bool) ([]byte, error) {
	list, err := c.objects()
	if err != nil {
		return nil, err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	known := c.options.Objects.Alerting().Maintenances
	var next, before []alert.Maintenance
	ids := []string{}
	for _, p := range list {
		m, old, err := c.readMaintenance(p, known, update)
		if err != nil {
			return nil, err
		}
		if slices.Contains(ids, maintenanceID(&m)) {
			return nil, invalidParams(`Invalid parameter "/%s": maintenance %q is in the call twice.`, strings.TrimSuffix(p.place, "/"), m.Name)
		}
		if old != nil {
			before = append(before, *old)
		}
		next, ids = append(next, m), append(ids, maintenanceID(&m))
	}
	if err := c.options.Objects.ApplyAlerting(c.ctx, &alert.Config{Maintenances: next}); err != nil {
		return nil, err
	}
	for i := range next {
		var old any
		if at := slices.IndexFunc(before, func(m alert.Maintenance) bool { return m.Name == next[i].Name }); at >= 0 {
			old = before[at]
		}
		access.Changed(c.ctx, "maintenance "+next[i].Name, old, next[i])
	}
	return encodeJSON(map[string]any{"maintenanceids": ids})
}

func createMaintenances(c *call) ([]byte, error) { return changeMaintenances(c, false) }

func updateMaintenances(c *call) ([]byte, error) { return changeMaintenances(c, true) }

// readMaintenance reads a maintenance that is to be made or changed; old is what it was.
func (c *call) readMaintenance(p *params, known []alert.Maintenance, update bool) (m alert.Maintenance, old *alert.Maintenance, err error) {
	if update {
		id := p.text("maintenanceid")
		i := slices.IndexFunc(known, func(m alert.Maintenance) bool { return maintenanceID(&m) == id })
		if i < 0 || !c.mayMaintain(&known[i], model.Editor) {
			return m, nil, errNotAllowed
		}
		m, old = known[i], &known[i]
	} else {
		for _, name := range []string{"name", "active_since", "active_till", "timeperiods"} {
			p.require(name)
		}
	}
	if err := c.fillMaintenance(p, &m, update); err != nil {
		return m, nil, err
	}
	if from, to := localSeconds(m.From, 0), localSeconds(m.To, math.MaxInt32); m.To != (alert.LocalTime{}) && compareNumbers(to, from) <= 0 {
		p.fail("active_till", fmt.Sprintf(`cannot be less than or equal to the value of parameter "/%sactive_since"`, p.place))
	}
	if err := p.done(); err != nil {
		return m, nil, err
	}
	if !update && slices.ContainsFunc(known, func(o alert.Maintenance) bool { return o.Name == m.Name }) {
		return m, nil, invalidParams("Maintenance %q already exists.", m.Name)
	}
	if !c.mayMaintain(&m, model.Editor) {
		return m, nil, errNotAllowed
	}
	return m, old, nil
}

// fillMaintenance sets what is given.
func (c *call) fillMaintenance(p *params, m *alert.Maintenance, update bool) error {
	if _, ok := p.get("name"); ok {
		name := p.text("name")
		if update && name != m.Name {
			return invalidParams(`Invalid parameter "/%sname": a maintenance keeps its name here; make another and delete this one.`, p.place)
		}
		m.Name = name
	}
	if _, ok := p.get("maintenance_type"); ok {
		m.NoData = p.number("maintenance_type", 0, 1) == 1
	}
	if _, ok := p.get("description"); ok {
		m.Description = p.text("description")
	}
	if _, ok := p.get("active_since"); ok {
		m.From = p.local("active_since")
	}
	if _, ok := p.get("active_till"); ok {
		m.To = p.local("active_till")
	}
	switch p.number("tags_evaltype", 1, 2) {
	case 0:
		m.AnyTag = false
	case 2:
		m.AnyTag = true
	}
	if tags, ok := p.children("tags"); ok {
		m.Tags = nil
		for _, t := range tags {
			operator := "contains"
			if t.number("operator", 2, 2) == 0 {
				operator = "equals"
			}
			m.Tags = append(m.Tags, alert.TagFilter{Tag: t.text("tag"), Value: t.text("value"), Operator: operator})
			if err := t.done(); err != nil {
				return err
			}
		}
	}
	if periods, ok := p.children("timeperiods"); ok {
		m.Periods = nil
		for _, t := range periods {
			period, err := t.period()
			if err != nil {
				return err
			}
			m.Periods = append(m.Periods, period)
		}
	}
	return c.fillMaintained(p, m)
}

// fillMaintained sets the hosts and groups of a maintenance, as objects or, as clients of older releases name them, as ids.
func (c *call) fillMaintained(p *params, m *alert.Maintenance) error {
	if ids, ok := p.references("hosts", "hostid", "hostids"); ok {
		m.Hosts = nil
		for _, h := range c.hosts() {
			if ids[uint64(h.ID)] {
				m.Hosts = append(m.Hosts, h.Host)
			}
		}
		if len(m.Hosts) != len(ids) {
			return errNotAllowed
		}
	}
	if ids, ok := p.references("groups", "groupid", "groupids"); ok {
		names, err := c.groupNames(ids)
		if err != nil {
			return err
		}
		if len(names) != len(ids) {
			return errNotAllowed
		}
		m.Groups = sortedKeys(names)
	}
	return nil
}

func deleteMaintenances(c *call) ([]byte, error) {
	return deleteNamed(c, removal[alert.Maintenance]{
		answer: "maintenanceids", what: "maintenance", id: maintenanceID, name: func(m *alert.Maintenance) string { return m.Name },
		all: func() ([]alert.Maintenance, error) {
			list := slices.Clone(c.options.Objects.Alerting().Maintenances)
			return slices.DeleteFunc(list, func(m alert.Maintenance) bool { return !c.mayMaintain(&m, model.Editor) }), nil
		},
		remove: func(names []string) error { return c.options.Objects.DeleteAlerting(c.ctx, "maintenance", names) },
		before: func(m *alert.Maintenance) any { return m },
	})
}

// maintained reports whether a host is in maintenance now.
func (c *call) maintained(h *model.Host) bool {
	return maintenanceOf(c.options.Objects.Alerting().Maintenances, h, c.options.Now()) != nil
}

// maintenanceOf returns the maintenance that a host is in now; nil for none.
func maintenanceOf(list []alert.Maintenance, h *model.Host, now time.Time) *alert.Maintenance {
	for i := range list {
		m := &list[i]
		if !maintains(m, h) {
			continue
		}
		if _, ok := m.Until(now); ok {
			return m
		}
	}
	return nil
}
