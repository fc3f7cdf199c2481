package confdb

import (
	"context"
	"database/sql"

	"tidemark/model"
)

// HostNotes is what a host has for people alone, which the snapshot of the configuration leaves out.
type HostNotes struct {
	Description string
	// InventoryMode is DISABLED, MANUAL or AUTOMATIC; empty for DISABLED as well.
	InventoryMode string
	// Macros are the descriptions of the macros that have one, by the macros' names.
	Macros map[string]string
}

// HostNotes reads the notes of all hosts that have some. The map is the caller's.
func (d *DB) HostNotes(ctx context.Context) (map[model.HostID]HostNotes, error) {
	rows, err := d.sql.QueryContext(ctx, "SELECT id, description, macros, extra FROM hosts")
	if err != nil {
		return nil, d.wrap("list what is noted of hosts", err)
	}
	notes := make(map[model.HostID]HostNotes)
	err = each(rows, func(r *sql.Rows) error {
		var id model.HostID
		var n HostNotes
		var macros, extra string
		if err := r.Scan(&id, &n.Description, &macros, &extra); err != nil {
			return err
		}
		list, err := unpack[packedMacro](macros)
		if err != nil {
			return err
		}
		for _, m := range list {
			if m.Description == "" {
				continue
			}
			if n.Macros == nil {
				n.Macros = make(map[string]string)
			}
			n.Macros[m.Name] = m.Description
		}
		n.InventoryMode, _ = unpackObject(extra)["inventory_mode"].(string)
		if n.Description != "" || n.InventoryMode != "" || n.Macros != nil {
			notes[id] = n
		}
		return nil
	})
	return notes, d.wrap("list what is noted of hosts", err)
}
