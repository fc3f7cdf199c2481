package confdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"tidemark/model"
)

// maxDiscoveryObjects bounds rules and actions together.
const maxDiscoveryObjects = 10_000

// discoveryPlace names where a sealed object belongs.
func discoveryPlace(kind, name string) string { return "discovery_objects/" + kind + "/" + name }

// DiscoveryObjects reads what PutDiscoveryObjects stored, by kind and name.
func (d *DB) DiscoveryObjects(ctx context.Context) ([]model.AlertObject, error) {
	rows, err := d.sql.QueryContext(ctx, "SELECT kind, name, body FROM discovery_objects ORDER BY kind, name")
	if err != nil {
		return nil, d.wrap("read discovery objects", err)
	}
	var list []model.AlertObject
	err = each(rows, func(r *sql.Rows) error {
		var o model.AlertObject
		var body string
		if err := r.Scan(&o.Kind, &o.Name, &body); err != nil {
			return err
		}
		// One whose secrets cannot be read is left out and logged; the others go on.
		if o.Body = []byte(d.secrets.shown(body, discoveryPlace(o.Kind, o.Name))); len(o.Body) > 0 {
			list = append(list, o)
		}
		return nil
	})
	return list, d.wrap("read discovery objects", err)
}

// PutDiscoveryObjects stores objects over those with the same kind and name and deletes others, in one transaction. What deleted rules
// found is forgotten; the hosts that were made of it stay.
func (d *DB) PutDiscoveryObjects(ctx context.Context, puts, deletes []model.AlertObject) error {
	return d.change(ctx, "store discovery objects", func(c *change) error {
		for _, o := range deletes {
			if err := c.exec(ctx, "DELETE FROM discovery_objects WHERE kind = ? AND name = ?", o.Kind, o.Name); err != nil {
				return err
			}
			if o.Kind != "rule" {
				continue
			}
			for _, query := range []string{"DELETE FROM net_hosts WHERE rule = ?", "DELETE FROM net_rules WHERE rule = ?"} {
				if err := c.exec(ctx, query, o.Name); err != nil {
					return err
				}
			}
		}
		for _, o := range puts {
			if err := d.putObject(ctx, c, "discovery_objects", discoveryPlace(o.Kind, o.Name), o); err != nil {
				return err
			}
		}
		n, err := c.id(ctx, "SELECT count(*) FROM discovery_objects")
		if err == nil && n > maxDiscoveryObjects {
			err = fmt.Errorf("%w; %d rules and actions, at most %d", ErrInvalid, n, maxDiscoveryObjects)
		}
		return err
	})
}

// NetHosts reads what a rule found, by ident, and when it was last worked off, Unix seconds; zero for never.
func (d *DB) NetHosts(ctx context.Context, rule string) (list []model.NetHost, scannedAt int64, err error) {
	rows, err := d.sql.QueryContext(ctx, "SELECT id, ident, coalesce(host_id, 0), up, changed_at, services FROM net_hosts WHERE rule = ? ORDER BY ident", rule)
	if err != nil {
		return nil, 0, d.wrap("read found hosts", err)
	}
	err = each(rows, func(r *sql.Rows) error {
		h := model.NetHost{Rule: rule}
		var services string
		err := r.Scan(&h.ID, &h.Ident, &h.HostID, &h.Up, &h.ChangedAt, &services)
		if err == nil {
			err = json.Unmarshal([]byte(services), &h.Services)
		}
		list = append(list, h)
		return err
	})
	if err == nil {
		err = d.sql.QueryRowContext(ctx, "SELECT coalesce(max(scanned_at), 0) FROM net_rules WHERE rule = ?", rule).Scan(&scannedAt)
	}
	return list, scannedAt, d.wrap("read found hosts", err)
}

// RecordNetHost stores what a rule found under one ident and returns its id.
func (d *DB) RecordNetHost(ctx context.Context, h *model.NetHost) (id int64, err error) {
	services, err := json.Marshal(h.Services)
	if err != nil {
		return 0, d.wrap("record found host", err)
	}
	err = d.change(ctx, "record found host", func(c *change) error {
		// The rule may have been deleted during its look.
		if rule, err := c.id(ctx, "SELECT 1 FROM discovery_objects WHERE kind = 'rule' AND name = ?", h.Rule); err != nil || rule == 0 {
			return err
		}
		var host any
		// The host may have been deleted a moment ago.
		if have, err := c.id(ctx, "SELECT id FROM hosts WHERE id = ?", h.HostID); err != nil {
			return err
		} else if have != 0 {
			host = have
		}
		err := c.exec(ctx, `INSERT INTO net_hosts (rule, ident, host_id, up, changed_at, services) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (rule, ident) DO UPDATE SET host_id = excluded.host_id, up = excluded.up, changed_at = excluded.changed_at, services = excluded.services`,
			h.Rule, h.Ident, host, h.Up, h.ChangedAt, string(services))
		if err != nil {
			return err
		}
		id, err = c.id(ctx, "SELECT id FROM net_hosts WHERE rule = ? AND ident = ?", h.Rule, h.Ident)
		return err
	})
	return id, err
}

// EndNetScan remembers when a rule was worked off, Unix seconds, and forgets what has been down since before.
func (d *DB) EndNetScan(ctx context.Context, rule string, at, before int64) error {
	return d.change(ctx, "end of a network discovery", func(c *change) error {
		if have, err := c.id(ctx, "SELECT 1 FROM discovery_objects WHERE kind = 'rule' AND name = ?", rule); err != nil || have == 0 {
			return err
		}
		if err := c.exec(ctx, "DELETE FROM net_hosts WHERE rule = ? AND up = 0 AND changed_at < ?", rule, before); err != nil {
			return err
		}
		return c.exec(ctx, "INSERT INTO net_rules (rule, scanned_at) VALUES (?, ?) ON CONFLICT (rule) DO UPDATE SET scanned_at = excluded.scanned_at", rule, at)
	})
}
