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

// GroupName is a group that is to have another name.
type GroupName struct {
	ID   uint64
	Name string
}

// RenameHostGroups gives host groups other names: all of them or, with an error, none. What knows one by its name, such as rights, does not follow.
func (d *DB) RenameHostGroups(ctx context.Context, list ...GroupName) error {
	return d.change(ctx, "rename host groups", func(c *change) error {
		for _, g := range list {
			if err := c.renameHostGroup(ctx, g); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *change) renameHostGroup(ctx context.Context, g GroupName) error {
	if err := c.checkGroupName(ctx, hostGroup, "host group", g, c.freeGroup); err != nil {
		return err
	}
	if err := c.touchGroup(ctx, g.ID); err != nil {
		return err
	}
	return c.execNow(ctx, "UPDATE object_groups SET name = ? WHERE id = ?", g.Name, int64(g.ID))
}

// checkGroupName refuses a name that a group cannot have; known refuses a group that is not there or cannot be changed.
func (c *change) checkGroupName(ctx context.Context, kind int, what string, g GroupName, known func(context.Context, uint64) error) error {
	if g.Name == "" || len(g.Name) > maxGroupNameBytes {
		return fmt.Errorf("%w name of a %s: it has %d bytes, expected 1 to %d", ErrInvalid, what, len(g.Name), maxGroupNameBytes)
	}
	if err := known(ctx, g.ID); err != nil {
		return err
	}
	other, err := c.id(ctx, "SELECT id FROM object_groups WHERE kind = ? AND name = ? AND id <> ?", kind, g.Name, int64(g.ID))
	if err == nil && other != 0 {
		err = fmt.Errorf("%w name of a %s: there is another one %q", ErrInvalid, what, g.Name)
	}
	return err
}

// DeleteHostGroups deletes host groups, all of them or, with an error, none, and takes their hosts out of them, unless one would be in no group then.
func (d *DB) DeleteHostGroups(ctx context.Context, ids ...uint64) error {
	return d.change(ctx, "delete host groups", func(c *change) error {
		for _, id := range ids {
			if err := c.deleteHostGroup(ctx, id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *change) deleteHostGroup(ctx context.Context, id uint64) error {
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

// RenameTemplateGroups gives template groups other names: all of them or, with an error, none.
func (d *DB) RenameTemplateGroups(ctx context.Context, list ...GroupName) error {
	return d.change(ctx, "rename template groups", func(c *change) error {
		for _, g := range list {
			if err := c.checkGroupName(ctx, templateGroup, "template group", g, c.knownTemplateGroup); err != nil {
				return err
			}
			if err := c.execNow(ctx, "UPDATE object_groups SET name = ? WHERE id = ?", g.Name, int64(g.ID)); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteTemplateGroups deletes template groups, all of them or, with an error, none, and takes their templates out of them, unless one would be in
// no group then.
func (d *DB) DeleteTemplateGroups(ctx context.Context, ids ...uint64) error {
	return d.change(ctx, "delete template groups", func(c *change) error {
		for _, id := range ids {
			if err := c.deleteTemplateGroup(ctx, id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *change) deleteTemplateGroup(ctx context.Context, id uint64) error {
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
}

func (c *change) knownTemplateGroup(ctx context.Context, id uint64) error {
	found, err := c.id(ctx, "SELECT id FROM object_groups WHERE kind = ? AND id = ?", templateGroup, int64(id))
	if err == nil && found == 0 {
		err = fmt.Errorf("template group %d: %w", id, ErrNotFound)
	}
	return err
}
