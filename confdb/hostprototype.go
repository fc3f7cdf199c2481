package confdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tidemark/model"
)

// rulePrototype is a graph or host prototype.
type rulePrototype struct {
	kind       model.PrototypeKind
	name, body string
	host       hostPrototype
	macros     []string
}

// hostPrototype is the body of a host prototype in the words of exports.
type hostPrototype struct {
	Host   string `json:"host"`
	Name   string `json:"name"`
	Status string `json:"status"`
	// Links are groups that exist, Groups names of groups with discovery macros.
	Links []struct {
		Group struct {
			Name string `json:"name"`
		} `json:"group"`
	} `json:"group_links"`
	Groups []struct {
		Name string `json:"name"`
	} `json:"group_prototypes"`
	Templates []struct {
		Name string `json:"name"`
	} `json:"templates"`
	Macros []struct {
		Macro       string `json:"macro"`
		Value       string `json:"value"`
		Type        string `json:"type"`
		Description string `json:"description"`
	} `json:"macros"`
	Tags []struct {
		Tag   string `json:"tag"`
		Value string `json:"value"`
	} `json:"tags"`
	Custom     string          `json:"custom_interfaces"`
	Interfaces json.RawMessage `json:"interfaces"`
}

func (p *rulePrototype) decodeHost(secrets *sealer) (err error) {
	if p.body == "" {
		p.body = "{}"
	}
	if p.body, err = secrets.openPrototype(p.body); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(p.body), &p.host); err != nil {
		return fmt.Errorf("host prototype %s: %w", p.name, err)
	}
	p.macros = usedMacros(p.body)
	return nil
}

// madeHost is what a host prototype asks for.
type madeHost struct {
	host, name, tags, macros, interfaces string
	enabled                              bool
	groups, templates                    []string
}

// make expands the prototype. parent is the JSON of the interfaces of the rule's host, which its hosts take over unless the prototype has
// its own.
func (p *hostPrototype) make(macros map[string]string, c *model.Change, parent string) madeHost {
	m := madeHost{host: expandText(p.Host, macros), name: expandText(p.Name, macros), enabled: p.Status != "DISABLED", interfaces: parent}
	if m.name == "" {
		m.name = m.host
	}
	var tags []model.Tag
	for _, t := range p.Tags {
		tags = append(tags, model.Tag{Name: expandText(t.Tag, macros), Value: expandText(t.Value, macros)})
	}
	for _, t := range p.Templates {
		m.templates = append(m.templates, t.Name)
	}
	if c != nil {
		if c.Enabled != nil {
			m.enabled = *c.Enabled
		}
		tags = withTags(tags, c.Tags)
		m.templates = append(m.templates, c.Templates...)
	}
	m.tags = packTags(tags)
	var list []packedMacro
	for _, x := range p.Macros {
		list = append(list, packedMacro{Name: expandText(x.Macro, macros), Value: expandEventText(x.Value, macros), Secret: x.Type == "SECRET_TEXT", Description: x.Description})
	}
	slices.SortStableFunc(list, func(a, b packedMacro) int { return strings.Compare(a.Name, b.Name) })
	m.macros = pack(list)
	for _, l := range p.Links {
		m.groups = append(m.groups, l.Group.Name)
	}
	for _, g := range p.Groups {
		m.groups = append(m.groups, expandText(g.Name, macros))
	}
	if p.Custom == "YES" && len(p.Interfaces) > 0 {
		var own any
		if json.Unmarshal(p.Interfaces, &own) == nil {
			if b, err := json.Marshal(map[string]any{"interfaces": expandAny(own, macros)}); err == nil {
				m.interfaces = string(b)
			}
		}
	}
	return m
}

// itemBegins is where an expression names an item.
var itemBegins = regexp.MustCompile(`\(\s*/`)

// plain reports whether the values of discovery macros bring no item of an expression into user macros, which may stand in expressions.
func (p *hostPrototype) plain(macros map[string]string) bool {
	for _, x := range p.Macros {
		if len(itemBegins.FindAllString(expandText(x.Value, macros), -1)) > len(itemBegins.FindAllString(x.Value, -1)) {
			return false
		}
	}
	return true
}

// hosts makes the hosts.
func (a *discoverer) hosts(ctx context.Context, list []model.Instance) error {
	rule := a.x.Rule
	rows, err := a.foundRows(ctx, hostTable.name, hostTable.id, "rule_item = ?", rule.ItemID)
	if err != nil || len(rows) == 0 && len(list) == 0 {
		return err
	}
	var parent string
	err = a.query(ctx, func(r *sql.Rows) error { return r.Scan(&parent) }, "SELECT interfaces FROM hosts WHERE id = ?", rule.HostID)
	if err != nil {
		return err
	}
	wishes, made := a.hostWishes(list, parent)
	matched := match(wishes, rows, func(f *found) string {
		p := a.defs.others[f.def]
		macros, err := unpackInstance(f.instance)
		if p == nil || err != nil {
			return ""
		}
		return expandText(p.host.Host, macros)
	})
	for n, f := range matched {
		if err := a.host1(ctx, f, &wishes[n], &made[n]); err != nil {
			return err
		}
	}
	return a.lose(ctx, hostTable, rows,
		func(f *found) error { return a.deleteHost(ctx, model.HostID(f.id)) },
		func(f *found) error {
			a.touch(model.HostID(f.id))
			return a.exec(ctx, "UPDATE hosts SET enabled = 0 WHERE id = ?", f.id)
		})
}

func (a *discoverer) hostWishes(list []model.Instance, parent string) ([]wish, []madeHost) {
	var wishes []wish
	var made []madeHost
	seen := make(map[string]bool)
	for _, i := range list {
		_, row := prototypeRow(i.Prototype)
		p := a.defs.others[row]
		if p == nil || p.kind != model.HostPrototype {
			continue
		}
		macros, _ := macrosFor(p.macros, i.Macros)
		m := p.host.make(macros, i.Change, parent)
		sealed, err := a.db.secrets.sealMacros(m.macros)
		if err != nil {
			a.refuse("secret macros of host %.130q cannot be stored: %v", m.host, err)
			continue
		}
		m.macros = sealed
		switch {
		case !p.host.plain(macros):
			a.refuse("values of the discovery macros of host %.130q would make a user macro an expression that reads other items", m.host)
			continue
		case !validHostName(m.host):
			a.refuse("%.130q is no host name", m.host)
			continue
		case seen[m.host]:
			a.refuse("a host %s was found twice", m.host)
			continue
		}
		seen[m.host] = true
		wishes = append(wishes, wish{row, packInstance(macros), packChange(i.Change), macros, m.host})
		made = append(made, m)
	}
	return wishes, made
}

// host1 creates one host or brings it up to date.
func (a *discoverer) host1(ctx context.Context, f *found, w *wish, m *madeHost) error {
	id := model.HostID(0)
	if f != nil {
		id = model.HostID(f.id)
		changed, err := a.keep(ctx, hostTable, f, w)
		if err != nil {
			return err
		}
		same, err := a.id(ctx, `SELECT 1 FROM hosts WHERE id = ? AND host = ? AND name = ? AND tags = ? AND macros = ? AND interfaces = ?`,
			id, m.host, m.name, m.tags, m.macros, m.interfaces)
		if err != nil || !changed && same != 0 {
			return err
		}
		a.touch(id)
		err = a.exec(ctx, "UPDATE hosts SET host = ?, name = ?, enabled = ?, tags = ?, macros = ?, interfaces = ? WHERE id = ?",
			m.host, m.name, m.enabled, m.tags, m.macros, m.interfaces, id)
		if err != nil {
			return err
		}
		return a.hostLinks(ctx, id, m)
	}
	taken, err := a.id(ctx, "SELECT id FROM hosts WHERE host = ?", m.host)
	if err != nil {
		return err
	}
	if taken != 0 {
		a.refuse("a host %s exists already", m.host)
		return nil
	}
	n, err := a.insert(ctx, "INSERT INTO hosts (host, name, enabled, tags, macros, interfaces) VALUES (?, ?, ?, ?, ?, ?)",
		m.host, m.name, m.enabled, m.tags, m.macros, m.interfaces)
	if err != nil {
		return err
	}
	a.out.Created++
	id = model.HostID(n)
	a.touch(id)
	err = a.exec(ctx, "INSERT INTO discovered_hosts (host_id, rule_item, def_id, instance, changes) VALUES (?, ?, ?, ?, ?)",
		id, a.x.Rule.ItemID, w.def, w.instance, w.changes)
	if err != nil {
		return err
	}
	return a.hostLinks(ctx, id, m)
}

// hostLinks puts a host into its groups and links its templates.
func (a *discoverer) hostLinks(ctx context.Context, id model.HostID, m *madeHost) error {
	for _, name := range m.groups {
		if name == "" || len(name) > maxNameBytes {
			a.refuse("host %s: %.130q is no group name", m.host, name)
			continue
		}
		group, _, err := a.group(ctx, hostGroup, name, "")
		if err == nil {
			err = a.exec(ctx, "INSERT INTO host_groups (host_id, group_id) VALUES (?, ?) ON CONFLICT DO NOTHING", id, group)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range m.templates {
		template, err := a.id(ctx, "SELECT id FROM templates WHERE template = ?", name)
		if err != nil {
			return err
		}
		if template == 0 {
			a.refuse("host %s: there is no template %s", m.host, name)
			continue
		}
		if _, err := a.linkHost(ctx, id, template); err != nil {
			return err
		}
	}
	return a.inherit(ctx, []model.HostID{id})
}

// deleteHost deletes a host and the hosts that its rules made.
func (c *change) deleteHost(ctx context.Context, id model.HostID) error {
	made, err := c.madeHosts(ctx, "i.host_id = ?", int64(id))
	if err != nil {
		return err
	}
	for _, h := range made {
		if err := c.deleteHost(ctx, h); err != nil {
			return err
		}
	}
	if err := c.exec(ctx, "DELETE FROM hosts WHERE id = ?", id); err != nil {
		return err
	}
	// touch raises the revision at commit; the row is gone, so only the deletion carries it.
	c.touch(id)
	c.deleted = append(c.deleted, id)
	return c.exec(ctx, `INSERT INTO deleted_hosts (host_id, revision)
		VALUES (?, (SELECT value + 1 FROM meta WHERE name = 'revision'))`, id)
}

// madeHosts lists hosts that rules made; where is a condition on their rules' items.
func (c *change) madeHosts(ctx context.Context, where string, args ...any) ([]model.HostID, error) {
	var made []model.HostID
	err := c.query(ctx, func(r *sql.Rows) error {
		var h model.HostID
		err := r.Scan(&h)
		made = append(made, h)
		return err
	}, "SELECT h.host_id FROM discovered_hosts h JOIN rule_items i ON i.item_id = h.rule_item WHERE "+where, args...)
	return made, err
}
