package confdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"tidemark/model"
)

// readRules decodes the discovery rules and the prototypes that are not triggers.
func (f *definitions) readRules(ctx context.Context, tx *sql.Tx) error {
	err := rowsOf(ctx, tx, func(r *sql.Rows) error {
		var id int64
		var t model.TemplateID
		var fields ruleFields
		if err := r.Scan(&id, &t, &fields.uuid, &fields.key, &fields.name, &fields.body); err != nil {
			return err
		}
		d, err := defineRule(id, &fields)
		if err != nil {
			return err
		}
		d.item.TemplateID = t
		f.rules[id] = d
		return nil
	}, "SELECT id, coalesce(template_id, 0), uuid, key, name, body FROM discovery_rules")
	if err != nil {
		return err
	}
	err = rowsOf(ctx, tx, func(r *sql.Rows) error {
		var id, rule int64
		var t model.TemplateID
		var fields itemFields
		if err := r.Scan(append([]any{&id, &rule, &t}, fields.pointers()...)...); err != nil {
			return err
		}
		p, err := newItemPrototype(&fields)
		if err != nil {
			return err
		}
		p.item.TemplateID, p.item.ValueMap = t, f.valueMaps[t][p.item.ValueMapName]
		f.prototypes[id] = p
		f.offer(rule, model.Prototype{ID: prototypeID(model.ItemPrototype, id), Kind: model.ItemPrototype, Name: fields.name, Discovers: discovers(fields.extra)})
		return nil
	}, "SELECT id, rule_id, coalesce(template_id, 0), "+itemColumns+" FROM items WHERE rule_id IS NOT NULL ORDER BY id")
	if err != nil {
		return err
	}
	return rowsOf(ctx, tx, func(r *sql.Rows) error {
		var id, rule int64
		p := &rulePrototype{}
		if err := r.Scan(&id, &rule, &p.kind, &p.name, &p.body); err != nil {
			return err
		}
		if p.kind == model.HostPrototype {
			if err := p.decodeHost(f.secrets); err != nil {
				return err
			}
		}
		f.others[id] = p
		f.offer(rule, model.Prototype{ID: prototypeID(p.kind, id), Kind: p.kind, Name: p.name, Discovers: discovers(p.body)})
		return nil
	}, "SELECT id, rule_id, kind, name, body FROM rule_prototypes ORDER BY id")
}

// offer gives a rule a prototype.
func (f *definitions) offer(rule int64, p model.Prototype) {
	if d := f.rules[rule]; d != nil {
		d.rule.Prototypes = append(d.rule.Prototypes, p)
	}
}

// discovers reads the field discover of a prototype.
func discovers(extra string) bool {
	if extra == "" {
		return true
	}
	var f struct {
		Discover string `json:"discover"`
	}
	return json.Unmarshal([]byte(extra), &f) != nil || f.Discover != "NO_DISCOVER"
}

// readRuleItems gives hosts the items of their discovery rules, and the rules.
func (r *hostReader) readRuleItems(ctx context.Context, span idRange) error {
	return rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var host model.HostID
		var item model.ItemID
		var rule int64
		if err := rows.Scan(&host, &item, &rule); err != nil {
			return err
		}
		h, d := r.host(host), r.defs.rules[rule]
		if h == nil || d == nil {
			return nil
		}
		h.Items = append(h.Items, d.item)
		i := &h.Items[len(h.Items)-1]
		i.ID, i.HostID = item, host
		h.Rules = append(h.Rules, d.rule)
		x := &h.Rules[len(h.Rules)-1]
		x.ItemID, x.HostID = item, host
		return nil
	}, "SELECT host_id, item_id, rule_id FROM rule_items WHERE host_id BETWEEN ? AND ? ORDER BY host_id, item_id", span.from, span.to)
}

// readDiscovered gives hosts the items that their rules made.
func (r *hostReader) readDiscovered(ctx context.Context, span idRange) error {
	err := rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var host model.HostID
		var item, by model.ItemID
		var def int64
		var instance, changes string
		var disabled bool
		if err := rows.Scan(&host, &item, &by, &def, &instance, &changes, &disabled); err != nil {
			return err
		}
		h, p := r.host(host), r.defs.prototypes[def]
		if h == nil || p == nil {
			return nil
		}
		macros, err := unpackInstance(instance)
		if err != nil {
			return fmt.Errorf("item %d: %w", item, err)
		}
		change, err := unpackChange(changes)
		if err != nil {
			return fmt.Errorf("item %d: %w", item, err)
		}
		h.Items = append(h.Items, model.ItemConfig{})
		i := &h.Items[len(h.Items)-1]
		if err := p.make(i, macros); err != nil {
			return err
		}
		if change != nil {
			changeItem(i, change)
		}
		if i.ValueMap == nil && i.ValueMapName != "" {
			i.ValueMap = r.valueMaps[host][i.ValueMapName]
		}
		i.ID, i.HostID, i.DiscoveredBy, i.Enabled = item, host, by, i.Enabled && !disabled
		return nil
	}, `SELECT host_id, item_id, rule_item, def_id, instance, changes, disabled FROM discovered_items
		WHERE host_id BETWEEN ? AND ? ORDER BY host_id, item_id`, span.from, span.to)
	if err != nil {
		return err
	}
	return rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var host model.HostID
		var by model.ItemID
		err := rows.Scan(&host, &by)
		if h := r.host(host); h != nil {
			h.Host.DiscoveredBy = by
		}
		return err
	}, "SELECT host_id, rule_item FROM discovered_hosts WHERE host_id BETWEEN ? AND ?", span.from, span.to)
}
