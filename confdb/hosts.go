package confdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tidemark/model"
)

// The names of the built-in templates that agents are linked to when they register.
const (
	// TidemarkAgentTemplate is for our own agent.
	TidemarkAgentTemplate = "Linux by Tidemark agent"
	// ZabbixAgentTemplate is for Zabbix agents with active checks.
	ZabbixAgentTemplate = "Linux by Zabbix agent"
	// ServerTemplate is for the machine that the server runs on.
	ServerTemplate = "Tidemark server"
	// DatabaseTemplate is for the same machine when values are in PostgreSQL.
	DatabaseTemplate = "Tidemark server on PostgreSQL"
	// RegisteredGroup is the group of hosts that registered themselves.
	RegisteredGroup = "Registered agents"
)

// Interface is where a host can be reached.
type Interface struct {
	IP, DNS string
	// Port from 1 to 65535; zero stands for 10050.
	Port int
}

// RegisterHost makes sure that the host exists, creates it if it does not, links the template that fits, and returns its
// id. Metadata is what the agent says of itself; one whose words hold "tidemark" is our own agent. The metadata of a known
// host is brought up to date; its templates are left alone. A name that no host can have is ErrInvalid.
func (d *DB) RegisterHost(ctx context.Context, name, metadata string, interfaces ...Interface) (id model.HostID, made bool, err error) {
	return d.RegisterProxied(ctx, "", name, metadata, interfaces...)
}

// Registration is an agent that registers itself.
type Registration struct {
	// Proxy is what the agent speaks to; a host that is made is assigned to it. Empty for the server.
	Proxy, Host, Metadata string
	Interfaces            []Interface
	// Change is what actions ask for; nil for none, and then a host that is made gets the template that fits.
	Change *model.HostChange
}

// RegisterProxied is RegisterHost for an agent that speaks to a proxy: a host that is made is assigned to it.
func (d *DB) RegisterProxied(ctx context.Context, proxy, name, metadata string, interfaces ...Interface) (id model.HostID, made bool, err error) {
	out, err := d.Register(ctx, Registration{Proxy: proxy, Host: name, Metadata: metadata, Interfaces: interfaces})
	if err != nil {
		return 0, false, err
	}
	return out.HostID, out.Made, nil
}

// Register makes sure that the host of an agent exists, and does with it what actions ask for. A known host is changed only when its
// metadata did.
func (d *DB) Register(ctx context.Context, x Registration) (*model.HostChanged, error) {
	name, metadata, out := x.Host, x.Metadata, &model.HostChanged{}
	if !validHostName(name) {
		return nil, fmt.Errorf("host name %.130q: %w; expected 1 to 128 letters, digits, spaces, '.', '_' and '-'", name, ErrInvalid)
	}
	if len(metadata) > maxTextBytes {
		metadata = metadata[:maxTextBytes]
	}
	metadata = strings.ToValidUTF8(metadata, "?")
	err := d.change(ctx, "register host "+name, func(c *change) error {
		*out = model.HostChanged{Host: name}
		var old string
		err := c.query(ctx, func(r *sql.Rows) error { return r.Scan(&out.HostID, &old) },
			"SELECT id, metadata FROM hosts WHERE host = ?", name)
		if err != nil {
			return err
		}
		if out.HostID != 0 {
			if old == metadata {
				return nil
			}
			c.touch(out.HostID)
			if err := c.exec(ctx, "UPDATE hosts SET metadata = ? WHERE id = ?", metadata, out.HostID); err != nil || x.Change == nil {
				return err
			}
			return c.act(ctx, x.Change, out)
		}
		out.Made = true
		if out.HostID, err = c.register(ctx, name, metadata, &x); err != nil {
			return err
		}
		if x.Change != nil {
			if err := c.act(ctx, x.Change, out); err != nil {
				return err
			}
		}
		if x.Proxy == "" {
			return nil
		}
		by, err := c.proxy(ctx, x.Proxy)
		if err != nil {
			return err
		}
		return c.assign(ctx, out.HostID, by, x.Proxy)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// act does with a host that is there what actions ask for.
func (c *change) act(ctx context.Context, asked *model.HostChange, out *model.HostChanged) error {
	h := *asked
	h.HostID, h.Group = out.HostID, RegisteredGroup
	did := *out
	if err := c.changeHost(ctx, &h, &did); err != nil {
		return err
	}
	out.Missing = did.Missing
	return nil
}

func (c *change) register(ctx context.Context, name, metadata string, x *Registration) (model.HostID, error) {
	n, err := c.insert(ctx, "INSERT INTO hosts (host, name, metadata, interfaces) VALUES (?, ?, ?, ?)",
		name, name, metadata, packInterfaces(x.Interfaces))
	if err != nil {
		return 0, err
	}
	id := model.HostID(n)
	c.touch(id)
	if x.Change != nil {
		return id, nil
	}
	group, _, err := c.group(ctx, hostGroup, RegisteredGroup, "")
	if err != nil {
		return 0, err
	}
	if err := c.exec(ctx, "INSERT INTO host_groups (host_id, group_id) VALUES (?, ?)", id, group); err != nil {
		return 0, err
	}
	fitting := ZabbixAgentTemplate
	if strings.Contains(strings.ToLower(metadata), "tidemark") {
		fitting = TidemarkAgentTemplate
	}
	template, err := c.id(ctx, "SELECT id FROM templates WHERE template = ?", fitting)
	if err != nil {
		return 0, err
	}
	if template == 0 {
		c.db.log.Warn("registered a host without a template", "host", name, "missing", fitting)
		return id, nil
	}
	if _, err := c.linkHost(ctx, id, template); err != nil {
		return 0, err
	}
	return id, c.inherit(ctx, []model.HostID{id})
}

// packInterfaces writes interfaces in the shape that exports have.
func packInterfaces(list []Interface) string {
	var out []map[string]string
	for _, i := range list {
		port := i.Port
		if port == 0 {
			port = 10050
		}
		use := "YES"
		if i.IP == "" {
			use = "NO"
		}
		out = append(out, map[string]string{"type": "ZABBIX", "useip": use, "ip": i.IP, "dns": i.DNS, "port": fmt.Sprint(port)})
	}
	if len(out) == 0 {
		return ""
	}
	b, err := json.Marshal(map[string]any{"interfaces": out})
	if err != nil {
		panic(fmt.Sprintf("confdb: interfaces: %v", err)) // a map of strings
	}
	return string(b)
}

// DeleteHost removes hosts with their items and triggers: all of them or, with an error, none. Their events stay. ErrNotFound says that there is none
// with an id; one that discovery made for another of the list goes with that one.
func (d *DB) DeleteHost(ctx context.Context, ids ...model.HostID) error {
	return d.change(ctx, "delete hosts", func(c *change) error {
		for _, id := range ids {
			if slices.Contains(c.deleted, id) {
				continue
			}
			have, err := c.id(ctx, "SELECT id FROM hosts WHERE id = ?", id)
			if err != nil {
				return err
			}
			if have == 0 {
				return fmt.Errorf("host %d: %w", id, ErrNotFound)
			}
			if err := c.deleteHost(ctx, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// HostNamed returns the id of the host with a technical name; ErrNotFound if there is none.
func (d *DB) HostNamed(ctx context.Context, name string) (id model.HostID, err error) {
	err = d.sql.QueryRowContext(ctx, "SELECT id FROM hosts WHERE host = ?", name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("host %q: %w", name, ErrNotFound)
	}
	return id, d.wrap("find a host", err)
}

// SetHostEnabled switches a host on or off.
func (d *DB) SetHostEnabled(ctx context.Context, id model.HostID, enabled bool) error {
	return d.change(ctx, "switch host", func(c *change) error {
		c.touch(id)
		return c.exec(ctx, "UPDATE hosts SET enabled = ? WHERE id = ?", enabled, id)
	})
}

// LinkTemplate links a template to a host, which inherits its items and triggers.
func (d *DB) LinkTemplate(ctx context.Context, id model.HostID, template string) error {
	return d.change(ctx, "link template "+template, func(c *change) error { return c.relink(ctx, id, []string{template}, nil) })
}

// UnlinkTemplate takes a template away from a host together with the items and triggers that it inherited from it.
func (d *DB) UnlinkTemplate(ctx context.Context, id model.HostID, template string) error {
	return d.change(ctx, "unlink template "+template, func(c *change) error { return c.relink(ctx, id, nil, []string{template}) })
}

// relink takes templates away from a host and then links others.
func (c *change) relink(ctx context.Context, id model.HostID, link, unlink []string) error {
	for _, template := range unlink {
		err := c.exec(ctx, `DELETE FROM host_templates WHERE host_id = ?
			AND template_id = (SELECT id FROM templates WHERE template = ?)`, id, template)
		if err != nil {
			return err
		}
		c.touch(id)
	}
	for _, template := range link {
		t, err := c.id(ctx, "SELECT id FROM templates WHERE template = ?", template)
		if err != nil {
			return err
		}
		if t == 0 {
			return fmt.Errorf("template %s: %w", template, ErrNotFound)
		}
		if _, err := c.linkHost(ctx, id, t); err != nil {
			return err
		}
	}
	return c.inherit(ctx, []model.HostID{id})
}

// HostState is what is to become of a host that exists, besides what its document says.
type HostState struct {
	Host model.HostID
	// Enabled and Proxy stay when they are nil; the empty Proxy is the server itself.
	Enabled *bool
	Proxy   *string
	// Unlink and Link are technical names of templates; those of Unlink go first, with what the host inherited from them.
	Unlink, Link []string
}

func (c *change) setHostState(ctx context.Context, s *HostState) error {
	if s.Proxy != nil {
		if err := c.setHostProxy(ctx, s.Host, *s.Proxy); err != nil {
			return err
		}
	}
	if s.Enabled != nil {
		c.touch(s.Host)
		if err := c.exec(ctx, "UPDATE hosts SET enabled = ? WHERE id = ?", *s.Enabled, s.Host); err != nil {
			return err
		}
	}
	if len(s.Link)+len(s.Unlink) == 0 {
		return nil
	}
	return c.relink(ctx, s.Host, s.Link, s.Unlink)
}

// SetGlobalMacros replaces the macros that hold for all hosts.
func (d *DB) SetGlobalMacros(ctx context.Context, macros []model.Macro) error {
	have, err := d.GlobalMacros(ctx)
	if err != nil {
		return err
	}
	sorted := slices.Clone(macros)
	slices.SortFunc(sorted, func(a, b model.Macro) int { return strings.Compare(a.Name, b.Name) })
	if slices.Equal(have, sorted) {
		return nil
	}
	return d.change(ctx, "set global macros", func(c *change) error {
		c.all = true
		if err := c.exec(ctx, "DELETE FROM global_macros"); err != nil {
			return err
		}
		for _, m := range sorted {
			if !slices.Contains(have, m) { // what is there stays, however it came
				if err := checkGlobalMacro(&m); err != nil {
					return err
				}
			}
			if m.Secret {
				sealed, err := d.secrets.seal(m.Value, macroPlace(m.Name))
				if err != nil {
					return err
				}
				m.Value = sealed
			}
			if err := c.exec(ctx, "INSERT INTO global_macros (name, value, secret) VALUES (?, ?, ?)", m.Name, m.Value, m.Secret); err != nil {
				return err
			}
		}
		return nil
	})
}

// Template is a template as lists show it.
type Template struct {
	ID             model.TemplateID
	Template, Name string
	Description    string
	Items          int
	Triggers       int
	Hosts          int
}

// Templates lists the templates by name.
func (d *DB) Templates(ctx context.Context) ([]Template, error) {
	rows, err := d.sql.QueryContext(ctx, `SELECT id, template, name, description,
		(SELECT count(*) FROM items i WHERE i.template_id = t.id AND i.rule_id IS NULL),
		(SELECT count(*) FROM triggers g WHERE g.template_id = t.id AND g.rule_id IS NULL),
		(SELECT count(*) FROM host_templates h WHERE h.template_id = t.id)
		FROM templates t ORDER BY template`)
	if err != nil {
		return nil, d.wrap("list templates", err)
	}
	var list []Template
	err = each(rows, func(r *sql.Rows) error {
		var t Template
		err := r.Scan(&t.ID, &t.Template, &t.Name, &t.Description, &t.Items, &t.Triggers, &t.Hosts)
		list = append(list, t)
		return err
	})
	return list, d.wrap("list templates", err)
}
