package confdb

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"

	"tidemark/model"
)

// DiscoveredGroup is the group of hosts that network discovery made and that no action puts into another.
const DiscoveredGroup = "Discovered hosts"

// maxNameTries bounds the numbers that are tried behind a name that is taken.
const maxNameTries = 10_000

// ChangeHost does what actions say with a host, in one transaction. A host that is gone and may not be made is ErrNotFound. Doing the same
// again changes nothing.
func (d *DB) ChangeHost(ctx context.Context, h *model.HostChange) (*model.HostChanged, error) {
	out := &model.HostChanged{}
	err := d.change(ctx, "change host "+h.Host, func(c *change) error {
		*out = model.HostChanged{}
		return c.changeHost(ctx, h, out)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c *change) changeHost(ctx context.Context, h *model.HostChange, out *model.HostChanged) error {
	err := c.query(ctx, func(r *sql.Rows) error { return r.Scan(&out.HostID, &out.Host) }, "SELECT id, host FROM hosts WHERE id = ?", h.HostID)
	switch {
	case err != nil:
		return err
	case out.HostID != 0 && h.Delete:
		out.Deleted = true
		return c.deleteHost(ctx, out.HostID)
	case out.HostID == 0 && h.Delete:
		return nil
	case out.HostID == 0 && !h.Make:
		return fmt.Errorf("host %d: %w", h.HostID, ErrNotFound)
	case out.HostID == 0:
		if err := c.makeHost(ctx, h, out); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context, *model.HostChange, *model.HostChanged) error{
		c.changeGroups, c.changeTemplates, c.changeColumns, c.addInterfaces,
	} {
		if err := step(ctx, h, out); err != nil {
			return err
		}
	}
	return nil
}

// makeHost makes the host under a name that is free.
func (c *change) makeHost(ctx context.Context, h *model.HostChange, out *model.HostChanged) error {
	if !validHostName(h.Host) {
		return fmt.Errorf("host name %.130q: %w; expected 1 to 128 letters, digits, spaces, '.', '_' and '-'", h.Host, ErrInvalid)
	}
	host, err := c.freeName(ctx, h.Host, "SELECT 1 FROM hosts WHERE host = ?")
	if err != nil {
		return err
	}
	name, err := c.freeName(ctx, cmp.Or(h.Name, host), "SELECT 1 FROM hosts WHERE name = ?")
	if err != nil {
		return err
	}
	id, err := c.insert(ctx, "INSERT INTO hosts (host, name, metadata, interfaces) VALUES (?, ?, '', '')", host, name)
	if err != nil {
		return err
	}
	out.HostID, out.Host, out.Made = model.HostID(id), host, true
	c.touch(out.HostID)
	if h.Proxy == "" {
		return nil
	}
	proxy, err := c.id(ctx, "SELECT id FROM proxies WHERE name = ?", h.Proxy)
	if err == nil && proxy == 0 {
		err = fmt.Errorf("proxy %q: %w", h.Proxy, ErrInvalid)
	}
	if err != nil {
		return err
	}
	return c.assign(ctx, out.HostID, model.ProxyID(proxy), h.Proxy)
}

// freeName is a name, or the name with a number from 2 on.
func (c *change) freeName(ctx context.Context, name, query string) (string, error) {
	for n := 1; n <= maxNameTries; n++ {
		free := name
		if n > 1 {
			number := "_" + strconv.Itoa(n)
			free = name[:min(len(name), maxHostNameBytes-len(number))] + number
		}
		taken, err := c.id(ctx, query, free)
		if err != nil || taken == 0 {
			return free, err
		}
	}
	return "", fmt.Errorf("host name %s: %w; it is taken with %d numbers", name, ErrInvalid, maxNameTries)
}

func (c *change) changeGroups(ctx context.Context, h *model.HostChange, out *model.HostChanged) error {
	add := h.AddGroups
	if out.Made && len(add) == 0 {
		add = []string{cmp.Or(h.Group, DiscoveredGroup)}
	}
	for _, name := range add {
		group, _, err := c.group(ctx, hostGroup, name, "")
		if err != nil {
			return err
		}
		have, err := c.id(ctx, "SELECT 1 FROM host_groups WHERE host_id = ? AND group_id = ?", out.HostID, group)
		if err != nil {
			return err
		}
		if have == 0 {
			c.touch(out.HostID)
			if err := c.exec(ctx, "INSERT INTO host_groups (host_id, group_id) VALUES (?, ?)", out.HostID, group); err != nil {
				return err
			}
		}
	}
	for _, name := range h.RemoveGroups {
		// The last group stays: without one nobody but administrators would see the host.
		group, err := c.id(ctx, `SELECT g.id FROM object_groups g JOIN host_groups l ON l.group_id = g.id WHERE g.kind = ? AND g.name = ? AND l.host_id = ?
			AND (SELECT count(*) FROM host_groups WHERE host_id = ?) > 1`, hostGroup, name, out.HostID, out.HostID)
		if err != nil {
			return err
		}
		if group != 0 {
			c.touch(out.HostID)
			if err := c.exec(ctx, "DELETE FROM host_groups WHERE host_id = ? AND group_id = ?", out.HostID, group); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *change) changeTemplates(ctx context.Context, h *model.HostChange, out *model.HostChanged) error {
	changed := false
	for _, name := range h.DropTemplates {
		linked, err := c.id(ctx, "SELECT t.id FROM templates t JOIN host_templates l ON l.template_id = t.id WHERE t.template = ? AND l.host_id = ?", name, out.HostID)
		if err != nil {
			return err
		}
		if linked != 0 {
			changed = true
			c.touch(out.HostID)
			if err := c.exec(ctx, "DELETE FROM host_templates WHERE host_id = ? AND template_id = ?", out.HostID, linked); err != nil {
				return err
			}
		}
	}
	for _, name := range h.LinkTemplates {
		template, err := c.id(ctx, "SELECT id FROM templates WHERE template = ?", name)
		if err != nil {
			return err
		}
		if template == 0 {
			out.Missing = append(out.Missing, name)
			continue
		}
		made, err := c.linkHost(ctx, out.HostID, template)
		if err != nil {
			return err
		}
		changed = changed || made
	}
	if !changed {
		return nil
	}
	return c.inherit(ctx, []model.HostID{out.HostID})
}

// changeColumns sets what is in the host's own row.
func (c *change) changeColumns(ctx context.Context, h *model.HostChange, out *model.HostChanged) error {
	var enabled bool
	var tags, extra string
	err := c.query(ctx, func(r *sql.Rows) error { return r.Scan(&enabled, &tags, &extra) }, "SELECT enabled, tags, extra FROM hosts WHERE id = ?", out.HostID)
	if err != nil {
		return err
	}
	wantEnabled, wantTags, wantExtra := enabled, tags, extra
	if h.Enabled != nil {
		wantEnabled = *h.Enabled
	}
	if len(h.Tags) > 0 {
		have, err := unpackTags(tags)
		if err != nil {
			return err
		}
		wantTags = packTags(withTags(have, h.Tags))
	}
	if h.InventoryMode != "" {
		kept := unpackObject(extra)
		if kept == nil {
			kept = map[string]any{}
		}
		kept["inventory_mode"] = h.InventoryMode
		wantExtra = packObject(kept)
	}
	if wantEnabled == enabled && wantTags == tags && wantExtra == extra {
		return nil
	}
	c.touch(out.HostID)
	return c.exec(ctx, "UPDATE hosts SET enabled = ?, tags = ?, extra = ? WHERE id = ?", wantEnabled, wantTags, wantExtra, out.HostID)
}

// addInterfaces adds the interfaces that the host does not have. The first of a type is the main one.
func (c *change) addInterfaces(ctx context.Context, h *model.HostChange, out *model.HostChanged) error {
	if len(h.Interfaces) == 0 {
		return nil
	}
	var text string
	if err := c.query(ctx, func(r *sql.Rows) error { return r.Scan(&text) }, "SELECT interfaces FROM hosts WHERE id = ?", out.HostID); err != nil {
		return err
	}
	have, err := unpackInterfaces(text)
	if err != nil {
		return err
	}
	object := unpackObject(text)
	if object == nil {
		object = map[string]any{}
	}
	list, _ := object["interfaces"].([]any)
	changed := false
	for i := range h.Interfaces {
		add := &h.Interfaces[i]
		known, first := false, true
		for n := range have {
			if have[n].Type == add.Type {
				first = false
				known = known || have[n].Address == add.Address && have[n].Port == add.Port
			}
		}
		if known {
			continue
		}
		changed = true
		have, list = append(have, *add), append(list, exportInterface(add, first, len(list)+1))
	}
	if !changed {
		return nil
	}
	object["interfaces"] = list
	packed, err := json.Marshal(object)
	if err != nil {
		return err
	}
	c.touch(out.HostID)
	return c.exec(ctx, "UPDATE hosts SET interfaces = ? WHERE id = ?", string(packed), out.HostID)
}

// exportInterface is an interface as exports have it.
func exportInterface(i *model.Interface, main bool, number int) map[string]any {
	types := map[model.InterfaceType]string{
		model.AgentInterface: "ZABBIX", model.SNMPInterface: "SNMP", model.IPMIInterface: "IPMI", model.JMXInterface: "JMX",
	}
	out := map[string]any{"type": types[i.Type], "ip": i.IP, "dns": i.DNS, "port": i.Port, "interface_ref": "if" + strconv.Itoa(number)}
	if !main {
		out["default"] = "NO"
	}
	if i.IP == "" || i.Address != i.IP {
		out["useip"] = "NO"
	}
	if s := i.SNMP; s != nil {
		out["details"] = snmpDetails(s)
	}
	return out
}

func snmpDetails(s *model.SNMPAccess) map[string]any {
	out := map[string]any{}
	for key, value := range map[string]string{
		"version": s.Version, "community": s.Community, "contextname": s.Context, "securityname": s.SecurityName, "securitylevel": s.SecurityLevel,
		"authprotocol": s.AuthProtocol, "authpassphrase": s.AuthPassphrase, "privprotocol": s.PrivProtocol, "privpassphrase": s.PrivPassphrase,
	} {
		if value != "" {
			out[key] = value
		}
	}
	return out
}
