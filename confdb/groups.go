package confdb

import (
	"context"
	"database/sql"
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
