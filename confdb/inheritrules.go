package confdb

import (
	"context"
	"database/sql"

	"tidemark/model"
)

// inheritRules brings the items of a host's discovery rules in line with its own rules and those of its templates, nearest first. A rule that
// goes takes with it what it made.
func (c *change) inheritRules(ctx context.Context, h model.HostID, chain []int64) error {
	wanted := make(map[string]int64) // key → rule
	var order []string
	for _, w := range append([]owner{{hostOwner, int64(h)}}, templateOwners(chain)...) {
		err := c.query(ctx, func(r *sql.Rows) error {
			var id int64
			var key string
			if err := r.Scan(&id, &key); err != nil {
				return err
			}
			if _, taken := wanted[key]; !taken {
				wanted[key] = id
				order = append(order, key)
			}
			return nil
		}, "SELECT id, key FROM discovery_rules WHERE "+w.where()+" ORDER BY id", w.id)
		if err != nil {
			return err
		}
	}
	have := make(map[int64]bool)
	var stale []int64
	err := c.query(ctx, func(r *sql.Rows) error {
		var item, rule int64
		var key string
		if err := r.Scan(&item, &rule, &key); err != nil {
			return err
		}
		if have[rule] = wanted[key] == rule; !have[rule] {
			stale = append(stale, item)
		}
		return nil
	}, "SELECT i.item_id, i.rule_id, r.key FROM rule_items i JOIN discovery_rules r ON r.id = i.rule_id WHERE i.host_id = ?", h)
	if err != nil {
		return err
	}
	for _, item := range stale {
		if err := c.dropRuleItem(ctx, h, item); err != nil {
			return err
		}
	}
	for _, key := range order {
		if have[wanted[key]] {
			continue
		}
		id, err := c.nextItemID()
		if err != nil {
			return err
		}
		c.touch(h)
		if err := c.exec(ctx, "INSERT INTO rule_items (item_id, host_id, rule_id) VALUES (?, ?, ?)", int64(id), h, wanted[key]); err != nil {
			return err
		}
	}
	return nil
}

// dropRuleItem removes a host's rule and what it made.
func (c *change) dropRuleItem(ctx context.Context, h model.HostID, item int64) error {
	c.touch(h)
	made, err := c.madeHosts(ctx, "i.item_id = ?", item)
	if err != nil {
		return err
	}
	for _, m := range made {
		if err := c.deleteHost(ctx, m); err != nil {
			return err
		}
	}
	return c.exec(ctx, "DELETE FROM rule_items WHERE item_id = ?", item)
}

// EnsureRules gives the hosts of a database that an earlier version wrote the items of their discovery rules. It does its work once.
func (d *DB) EnsureRules(ctx context.Context) error {
	return d.change(ctx, "inherit discovery rules", func(c *change) error {
		done, err := c.id(ctx, "SELECT value FROM meta WHERE name = 'rules_inherited'")
		if err != nil || done != 0 {
			return err
		}
		var hosts []model.HostID
		err = c.query(ctx, func(r *sql.Rows) error {
			var h model.HostID
			err := r.Scan(&h)
			hosts = append(hosts, h)
			return err
		}, "SELECT id FROM hosts ORDER BY id")
		if err != nil {
			return err
		}
		chains := make(map[string][]int64)
		for _, h := range hosts {
			chain, err := c.chain(ctx, h, chains)
			if err != nil {
				return err
			}
			if err := c.inheritRules(ctx, h, chain); err != nil {
				return err
			}
		}
		return c.exec(ctx, "UPDATE meta SET value = 1 WHERE name = 'rules_inherited'")
	})
}
