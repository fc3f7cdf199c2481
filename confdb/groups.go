package confdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"tidemark/model"
)

// HostGroup is a host group as lists show it.
type HostGroup struct {
	ID         uint64
	Name, UUID string
}

// HostGroups lists the host groups by name, those without hosts too.
func (d *DB) HostGroups(ctx context.Context) ([]HostGroup, error) {
	return d.listGroups(ctx, hostGroup, "list host groups")
}

// TemplateGroups is HostGroups for those of templates.
func (d *DB) TemplateGroups(ctx context.Context) ([]HostGroup, error) {
	return d.listGroups(ctx, templateGroup, "list template groups")
}

func (d *DB) listGroups(ctx context.Context, kind int, what string) ([]HostGroup, error) {
	rows, err := d.sql.QueryContext(ctx, "SELECT id, name, uuid FROM object_groups WHERE kind = ? ORDER BY name", kind)
	if err != nil {
		return nil, d.wrap(what, err)
	}
	var list []HostGroup
	err = each(rows, func(r *sql.Rows) error {
		var g HostGroup
		err := r.Scan(&g.ID, &g.Name, &g.UUID)
		list = append(list, g)
		return err
	})
	return list, d.wrap(what, err)
}

// maxGroupNameBytes bounds the name of a group.
const maxGroupNameBytes = 255

// RenameHostGroup gives a host group another name. What knows it by its name, such as rights, does not follow.
func (d *DB) RenameHostGroup(ctx context.Context, id uint64, name string) error {
	return d.change(ctx, "rename a host group", func(c *change) error {
		if name == "" || len(name) > maxGroupNameBytes {
			return fmt.Errorf("%w name of a host group: it has %d bytes, expected 1 to %d", ErrInvalid, len(name), maxGroupNameBytes)
		}
		if err := c.freeGroup(ctx, id); err != nil {
			return err
		}
		other, err := c.id(ctx, "SELECT id FROM object_groups WHERE kind = ? AND name = ? AND id <> ?", hostGroup, name, int64(id))
		if err != nil {
			return err
		}
		if other != 0 {
			return fmt.Errorf("%w name of a host group: there is another one %q", ErrInvalid, name)
		}
		if err := c.touchGroup(ctx, id); err != nil {
			return err
		}
		return c.exec(ctx, "UPDATE object_groups SET name = ? WHERE id = ?", name, int64(id))
	})
}

// DeleteHostGroup deletes a host group and takes its hosts out of it, unless one would be in no group then.
func (d *DB) DeleteHostGroup(ctx context.Context, id uint64) error {
	return d.change(ctx, "delete a host group", func(c *change) error {
		if err := c.freeGroup(ctx, id); err != nil {
			return err
		}
		var alone string
		err := c.query(ctx, func(r *sql.Rows) error { return r.Scan(&alone) }, `SELECT min(h.host) FROM host_groups g JOIN hosts h ON h.id = g.host_id
			WHERE g.group_id = ? AND NOT EXISTS (SELECT 1 FROM host_groups o WHERE o.host_id = g.host_id AND o.group_id <> g.group_id) HAVING count(*) > 0`, int64(id))
		if err != nil {
			return err
		}
		if alone != "" {
			return fmt.Errorf("%w change: the host %q would be in no host group; put it into another first", ErrInvalid, alone)
		}
		if err := c.touchGroup(ctx, id); err != nil {
			return err
		}
		if err := c.exec(ctx, "DELETE FROM host_groups WHERE group_id = ?", int64(id)); err != nil {
			return err
		}
		return c.exec(ctx, "DELETE FROM object_groups WHERE id = ?", int64(id))
	})
}

// freeGroup refuses a host group that is not there, or that a host prototype names: discovery would make it again.
func (c *change) freeGroup(ctx context.Context, id uint64) error {
	var name string
	err := c.query(ctx, func(r *sql.Rows) error { return r.Scan(&name) }, "SELECT name FROM object_groups WHERE kind = ? AND id = ?", hostGroup, int64(id))
	if err != nil {
		return err
	}
	if name == "" {
		return fmt.Errorf("host group %d: %w", id, ErrNotFound)
	}
	return c.query(ctx, func(r *sql.Rows) error {
		var body string
		if err := r.Scan(&body); err != nil {
			return err
		}
		var p hostPrototype
		if json.Unmarshal([]byte(body), &p) != nil {
			return nil // discovery says so
		}
		for _, link := range p.Links {
			if link.Group.Name == name {
				return fmt.Errorf("%w change: the host prototype %q puts hosts into %q; change that first", ErrInvalid, p.Host, name)
			}
		}
		return nil
	}, "SELECT body FROM rule_prototypes WHERE kind = ?", int(model.HostPrototype))
}

// touchGroup gives the hosts of a group a new revision.
func (c *change) touchGroup(ctx context.Context, id uint64) error {
	var hosts []model.HostID
	err := c.query(ctx, func(r *sql.Rows) error {
		var h model.HostID
		err := r.Scan(&h)
		hosts = append(hosts, h)
		return err
	}, "SELECT host_id FROM host_groups WHERE group_id = ?", int64(id))
	for h := range slices.Values(hosts) {
		c.touch(h)
	}
	return err
}

// RenameTemplateGroup gives a template group another name.
func (d *DB) RenameTemplateGroup(ctx context.Context, id uint64, name string) error {
	return d.change(ctx, "rename a template group", func(c *change) error {
		if name == "" || len(name) > maxGroupNameBytes {
			return fmt.Errorf("%w name of a template group: it has %d bytes, expected 1 to %d", ErrInvalid, len(name), maxGroupNameBytes)
		}
		if err := c.knownTemplateGroup(ctx, id); err != nil {
			return err
		}
		other, err := c.id(ctx, "SELECT id FROM object_groups WHERE kind = ? AND name = ? AND id <> ?", templateGroup, name, int64(id))
		if err != nil {
			return err
		}
		if other != 0 {
			return fmt.Errorf("%w name of a template group: there is another one %q", ErrInvalid, name)
		}
		return c.exec(ctx, "UPDATE object_groups SET name = ? WHERE id = ?", name, int64(id))
	})
}

// DeleteTemplateGroup deletes a template group and takes its templates out of it, unless one would be in no group then.
func (d *DB) DeleteTemplateGroup(ctx context.Context, id uint64) error {
	return d.change(ctx, "delete a template group", func(c *change) error {
		if err := c.knownTemplateGroup(ctx, id); err != nil {
			return err
		}
		var alone string
		err := c.query(ctx, func(r *sql.Rows) error { return r.Scan(&alone) }, `SELECT min(t.template) FROM template_groups g JOIN templates t ON t.id = g.template_id
			WHERE g.group_id = ? AND NOT EXISTS (SELECT 1 FROM template_groups o WHERE o.template_id = g.template_id AND o.group_id <> g.group_id) HAVING count(*) > 0`, int64(id))
		if err != nil {
			return err
		}
		if alone != "" {
			return fmt.Errorf("%w change: the template %q would be in no template group; put it into another first", ErrInvalid, alone)
		}
		if err := c.exec(ctx, "DELETE FROM template_groups WHERE group_id = ?", int64(id)); err != nil {
			return err
		}
		return c.exec(ctx, "DELETE FROM object_groups WHERE id = ?", int64(id))
	})
}

func (c *change) knownTemplateGroup(ctx context.Context, id uint64) error {
	found, err := c.id(ctx, "SELECT id FROM object_groups WHERE kind = ? AND id = ?", templateGroup, int64(id))
	if err == nil && found == 0 {
		err = fmt.Errorf("template group %d: %w", id, ErrNotFound)
	}
	return err
}
