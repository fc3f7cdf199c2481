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
	rows, err := d.sql.QueryContext(ctx, "SELECT id, name, uuid FROM object_groups WHERE kind = ? ORDER BY name", hostGroup)
	if err != nil {
		return nil, d.wrap("list host groups", err)
	}
	var list []HostGroup
	err = each(rows, func(r *sql.Rows) error {
		var g HostGroup
		err := r.Scan(&g.ID, &g.Name, &g.UUID)
		list = append(list, g)
		return err
	})
	return list, d.wrap("list host groups", err)
}
