package confdb

import (
	"context"
	"database/sql"
	"fmt"

	"tidemark/model"
)

// inherit brings the identities of what hosts inherit in line with their templates: one row for each item and trigger,
// with its ItemID or TriggerID and the template's row that defines it. What a template defines is stored once.
//
// A host's own item hides an inherited one with the same key, and a nearer template hides a farther one. When an item
// with the same key comes from another template after a change of links, it keeps its ItemID and so its values.
func (c *change) inherit(ctx context.Context, hosts []model.HostID) error {
	cache := make(map[int64]*templateRows)
	chains := make(map[string][]int64)
	for _, h := range hosts {
		chain, err := c.chain(ctx, h, chains)
		if err != nil {
			return err
		}
		for _, t := range chain {
			if cache[t] == nil {
				if cache[t], err = c.templateRows(ctx, t); err != nil {
					return err
				}
			}
		}
		if err := c.inheritItems(ctx, h, chain, cache); err != nil {
			return fmt.Errorf("inherit items of host %d: %w", h, err)
		}
		if err := c.inheritTriggers(ctx, h, chain, cache); err != nil {
			return fmt.Errorf("inherit triggers of host %d: %w", h, err)
		}
		if err := c.inheritRules(ctx, h, chain); err != nil {
			return fmt.Errorf("inherit discovery rules of host %d: %w", h, err)
		}
		if err := c.instantiate(ctx, h, chain); err != nil {
			return fmt.Errorf("triggers of declared items of host %d: %w", h, err)
		}
	}
	return nil
}

// templateRows are the rows of one template that hosts inherit.
type templateRows struct {
	items    []keyedRow
	triggers []int64
}

type keyedRow struct {
	id  int64
	key string
}

func (c *change) templateRows(ctx context.Context, template int64) (*templateRows, error) {
	t := &templateRows{}
	err := c.query(ctx, func(r *sql.Rows) error {
		var k keyedRow
		err := r.Scan(&k.id, &k.key)
		t.items = append(t.items, k)
		return err
	}, "SELECT id, key FROM items WHERE template_id = ? AND rule_id IS NULL ORDER BY id", template)
	if err != nil {
		return nil, err
	}
	err = c.query(ctx, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		t.triggers = append(t.triggers, id)
		return err
	}, "SELECT id FROM triggers WHERE template_id = ? AND rule_id IS NULL ORDER BY id", template)
	return t, err
}

// chain returns the templates of a host, nearest first. Hosts with the same templates share the work.
func (c *change) chain(ctx context.Context, h model.HostID, chains map[string][]int64) ([]int64, error) {
	var direct []int64
	err := c.query(ctx, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		direct = append(direct, id)
		return err
	}, "SELECT template_id FROM host_templates WHERE host_id = ? ORDER BY template_id", h)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(direct)
	if chain, ok := chains[key]; ok {
		return chain, nil
	}
	chain, err := c.ancestors(ctx, direct)
	chains[key] = chain
	return chain, err
}

func (c *change) inheritItems(ctx context.Context, h model.HostID, chain []int64, cache map[int64]*templateRows) error {
	wanted := make(map[string]int64) // key → the template's row
	var order []string
	for _, t := range chain {
		for _, k := range cache[t].items {
			if _, taken := wanted[k.key]; !taken {
				wanted[k.key] = k.id
				order = append(order, k.key)
			}
		}
	}
	type have struct{ id, def int64 }
	rows := make(map[string]have)
	var stale []int64
	err := c.query(ctx, func(r *sql.Rows) error {
		var e have
		var key string
		if err := r.Scan(&e.id, &e.def, &key); err != nil {
			return err
		}
		if e.def == 0 {
			delete(wanted, key)
		} else if wanted[key] != 0 && rows[key].id == 0 {
			rows[key] = e
		} else {
			stale = append(stale, e.id)
		}
		return nil
	}, `SELECT i.id, coalesce(i.def_id, 0), coalesce(d.key, i.key) FROM items i LEFT JOIN items d ON d.id = i.def_id
		WHERE i.host_id = ? AND i.rule_id IS NULL ORDER BY coalesce(i.def_id, 0)`, h)
	if err != nil {
		return err
	}
	for _, id := range stale {
		c.touch(h)
		if err := c.exec(ctx, "DELETE FROM items WHERE id = ?", id); err != nil {
			return err
		}
	}
	for _, key := range order {
		def, ok := wanted[key]
		e := rows[key]
		if !ok || e.def == def {
			continue
		}
		c.touch(h)
		if e.id != 0 {
			err = c.exec(ctx, "UPDATE items SET def_id = ? WHERE id = ?", def, e.id)
		} else {
			err = c.insertIdentity(ctx, h, def)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *change) insertIdentity(ctx context.Context, h model.HostID, def int64) error {
	id, err := c.nextItemID()
	if err != nil {
		return err
	}
	return c.exec(ctx, "INSERT INTO items (item_id, host_id, def_id) VALUES (?, ?, ?)", int64(id), h, def)
}

func (c *change) inheritTriggers(ctx context.Context, h model.HostID, chain []int64, cache map[int64]*templateRows) error {
	wanted := make(map[int64]bool)
	for _, t := range chain {
		for _, id := range cache[t].triggers {
			wanted[id] = true
		}
	}
	have := make(map[int64]bool)
	var stale []int64
	err := c.query(ctx, func(r *sql.Rows) error {
		var id, def int64
		if err := r.Scan(&id, &def); err != nil {
			return err
		}
		if have[def] = true; !wanted[def] {
			stale = append(stale, id)
		}
		return nil
	}, "SELECT id, def_id FROM triggers WHERE host_id = ? AND def_id IS NOT NULL AND instance = ''", h)
	if err != nil {
		return err
	}
	for _, id := range stale {
		c.touch(h)
		if err := c.exec(ctx, "DELETE FROM triggers WHERE id = ?", id); err != nil {
			return err
		}
	}
	for _, t := range chain {
		for _, def := range cache[t].triggers {
			if have[def] {
				continue
			}
			c.touch(h)
			if err := c.exec(ctx, "INSERT INTO triggers (host_id, def_id) VALUES (?, ?)", h, def); err != nil {
				return err
			}
		}
	}
	return nil
}
