package confdb

import (
	"context"
	"database/sql"
	"time"

	"tidemark/model"
)

// DiscoveryRule is what is known of a discovery rule of a host.
type DiscoveryRule struct {
	ItemID model.ItemID
	HostID model.HostID
	// Error is what the last value met; empty for nothing.
	Error string
	// At is when a value was last applied; zero for never.
	At time.Time
	// Items, Triggers and Hosts count what the rule made, of which Lost is no longer found.
	Items, Triggers, Hosts, Lost int
}

// DiscoveryRules lists the rules of a host in order of their items; host 0 stands for all hosts.
func (d *DB) DiscoveryRules(ctx context.Context, host model.HostID) ([]DiscoveryRule, error) {
	rows, err := d.sql.QueryContext(ctx, `SELECT item_id, host_id, error, at,
		(SELECT count(*) FROM discovered_items x WHERE x.rule_item = r.item_id),
		(SELECT count(*) FROM triggers x WHERE x.rule_item = r.item_id),
		(SELECT count(*) FROM discovered_hosts x WHERE x.rule_item = r.item_id),
		(SELECT count(*) FROM discovered_items x WHERE x.rule_item = r.item_id AND x.lost_at > 0) +
		(SELECT count(*) FROM triggers x WHERE x.rule_item = r.item_id AND x.lost_at > 0) +
		(SELECT count(*) FROM discovered_hosts x WHERE x.rule_item = r.item_id AND x.lost_at > 0)
		FROM rule_items r WHERE host_id = ? OR ? = 0 ORDER BY item_id`, host, host)
	if err != nil {
		return nil, d.wrap("list discovery rules", err)
	}
	var list []DiscoveryRule
	err = each(rows, func(r *sql.Rows) error {
		var x DiscoveryRule
		var at int64
		err := r.Scan(&x.ItemID, &x.HostID, &x.Error, &at, &x.Items, &x.Triggers, &x.Hosts, &x.Lost)
		if at > 0 {
			x.At = time.Unix(at, 0)
		}
		list = append(list, x)
		return err
	})
	return list, d.wrap("list discovery rules", err)
}

// LostObject is something that its rule no longer finds.
type LostObject struct {
	// Kind is item, trigger or host; ID its id.
	Kind string
	ID   uint64
	// LostAt is when it was first missing; DisableAt and DeleteAt are zero for never.
	LostAt, DisableAt, DeleteAt time.Time
	Disabled                    bool
}

// LostObjects lists what a rule made and no longer finds, at most limit of each kind.
func (d *DB) LostObjects(ctx context.Context, rule model.ItemID, limit int) ([]LostObject, error) {
	var list []LostObject
	when := func(seconds int64) time.Time {
		if seconds == 0 {
			return time.Time{}
		}
		return time.Unix(seconds, 0)
	}
	for _, t := range []struct {
		table
		kind string
	}{{itemTable, "item"}, {triggerTable, "trigger"}, {hostTable, "host"}} {
		rows, err := d.sql.QueryContext(ctx, "SELECT "+t.id+", lost_at, disable_at, delete_at, disabled FROM "+t.name+
			" WHERE rule_item = ? AND lost_at > 0 ORDER BY "+t.id+" LIMIT ?", rule, limit)
		if err != nil {
			return nil, d.wrap("list lost objects", err)
		}
		err = each(rows, func(r *sql.Rows) error {
			o := LostObject{Kind: t.kind}
			var lost, off, gone int64
			err := r.Scan(&o.ID, &lost, &off, &gone, &o.Disabled)
			o.LostAt, o.DisableAt, o.DeleteAt = when(lost), when(off), when(gone)
			list = append(list, o)
			return err
		})
		if err != nil {
			return nil, d.wrap("list lost objects", err)
		}
	}
	return list, nil
}
