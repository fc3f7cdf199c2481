package confdb

import (
	"context"
	"database/sql"
	"fmt"

	"tidemark/model"
)

// items makes the items.
func (a *discoverer) items(ctx context.Context, list []model.Instance) error {
	if err := a.presentKeys(ctx); err != nil {
		return err
	}
	wishes := make([]wish, 0, len(list))
	for _, i := range list {
		_, row := prototypeRow(i.Prototype)
		p := a.defs.prototypes[row]
		if p == nil {
			continue // the template changed since the rule was read
		}
		macros, _ := macrosFor(p.macros, i.Macros)
		key := expandKey(p.fields.key, macros)
		if err := wholeKey(key); err != nil {
			a.refuse("%v", err)
			continue
		}
		canonical := canonicalKey(key)
		if a.present[canonical] {
			a.refuse("an item with the key %.200s exists already", key)
			continue
		}
		a.present[canonical] = true
		wishes = append(wishes, wish{row, packInstance(macros), packChange(i.Change), macros, canonical})
	}
	rows, err := a.foundRows(ctx, itemTable.name, itemTable.id, "rule_item = ?", a.x.Rule.ItemID)
	if err != nil {
		return err
	}
	host := a.x.Rule.HostID
	for n, f := range match(wishes, rows, a.itemIdentity) {
		w := &wishes[n]
		if f != nil {
			changed, err := a.keep(ctx, itemTable, f, w)
			if err != nil {
				return err
			}
			if changed {
				a.touch(host)
			}
			continue
		}
		id, err := a.nextItemID()
		if err != nil {
			return err
		}
		a.out.Created++
		a.touch(host)
		err = a.exec(ctx, "INSERT INTO discovered_items (item_id, host_id, rule_item, def_id, instance, changes) VALUES (?, ?, ?, ?, ?, ?)",
			int64(id), host, a.x.Rule.ItemID, w.def, w.instance, w.changes)
		if err != nil {
			return err
		}
	}
	return a.lose(ctx, itemTable, rows, a.deleteRow(ctx, itemTable), a.touchHost)
}

// wholeKey reports a key that still has discovery macros or is none.
func wholeKey(key string) error {
	if names := macroNames(key); len(names) > 0 {
		return fmt.Errorf("the value has no %s, which the key %.200s needs", names[0], key)
	}
	return CheckKey(key)
}

// touchHost notes that the rule's host changed.
func (a *discoverer) touchHost(*found) error {
	a.touch(a.x.Rule.HostID)
	return nil
}

func (a *discoverer) deleteRow(ctx context.Context, t table) func(*found) error {
	return func(f *found) error {
		a.touch(a.x.Rule.HostID)
		return a.exec(ctx, "DELETE FROM "+t.name+" WHERE "+t.id+" = ?", f.id)
	}
}

func (a *discoverer) itemIdentity(f *found) string {
	p := a.defs.prototypes[f.def]
	macros, err := unpackInstance(f.instance)
	if p == nil || err != nil {
		return ""
	}
	return canonicalKey(expandKey(p.fields.key, macros))
}

// presentKeys collects the keys of the host's items that other things than the rule made.
func (a *discoverer) presentKeys(ctx context.Context) error {
	host := a.x.Rule.HostID
	var err error
	if a.present, err = a.configuredKeys(ctx, host, true); err != nil {
		return err
	}
	err = a.query(ctx, func(r *sql.Rows) error {
		var key string
		err := r.Scan(&key)
		a.present[canonicalKey(key)] = true
		return err
	}, "SELECT r.key FROM rule_items i JOIN discovery_rules r ON r.id = i.rule_id WHERE i.host_id = ?", host)
	if err != nil {
		return err
	}
	return a.query(ctx, func(r *sql.Rows) error {
		f := &found{}
		err := r.Scan(&f.def, &f.instance)
		a.present[a.itemIdentity(f)] = true
		return err
	}, "SELECT def_id, instance FROM discovered_items WHERE host_id = ? AND rule_item <> ?", host, a.x.Rule.ItemID)
}
