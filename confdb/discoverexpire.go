package confdb

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"tidemark/model"
)

// RuleFailed keeps why the last value of a rule could not be used; what it made before stays as it is. An empty text takes an
// earlier one away.
// The value with that order, and those before it, are no longer kept.
func (d *DB) RuleFailed(ctx context.Context, item model.ItemID, order int64, reason string) error {
	if len(reason) > maxNameBytes {
		reason = strings.ToValidUTF8(reason[:maxNameBytes], "")
	}
	return d.change(ctx, "keep the error of a discovery rule", func(c *change) error {
		return c.ended(ctx, item, order, "error = ?", reason)
	})
}

// ExpireDiscovered disables and deletes what was lost and whose time has come. It returns how many objects.
func (d *DB) ExpireDiscovered(ctx context.Context, now time.Time) (disabled, deleted int, err error) {
	err = d.change(ctx, "expire discovered objects", func(c *change) error {
		disabled, deleted = 0, 0
		for _, t := range []table{itemTable, triggerTable, hostTable} {
			off, gone, err := c.expire(ctx, t, now.Unix())
			if err != nil {
				return err
			}
			disabled, deleted = disabled+off, deleted+gone
		}
		return nil
	})
	return disabled, deleted, err
}

func (c *change) expire(ctx context.Context, t table, now int64) (disabled, deleted int, err error) {
	type due struct {
		id   int64
		host model.HostID
	}
	list := func(where string) ([]due, error) {
		var rows []due
		err := c.query(ctx, func(r *sql.Rows) error {
			var x due
			err := r.Scan(&x.id, &x.host)
			rows = append(rows, x)
			return err
		}, "SELECT "+t.id+", host_id FROM "+t.name+" WHERE lost_at > 0 AND "+where, now)
		return rows, err
	}
	gone, err := list("delete_at > 0 AND delete_at <= ?")
	if err != nil {
		return 0, 0, err
	}
	for _, x := range gone {
		if t == hostTable {
			err = c.deleteHost(ctx, x.host)
		} else {
			c.touch(x.host)
			err = c.exec(ctx, "DELETE FROM "+t.name+" WHERE "+t.id+" = ?", x.id)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	off, err := list("disabled = 0 AND disable_at > 0 AND disable_at <= ?")
	if err != nil {
		return 0, 0, err
	}
	for _, x := range off {
		c.touch(x.host)
		if err := c.exec(ctx, "UPDATE "+t.name+" SET disabled = 1 WHERE "+t.id+" = ?", x.id); err != nil {
			return 0, 0, err
		}
		if t == hostTable {
			if err := c.exec(ctx, "UPDATE hosts SET enabled = 0 WHERE id = ?", x.host); err != nil {
				return 0, 0, err
			}
		}
	}
	return len(off), len(gone), nil
}
