package confdb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"tidemark/model"
)

// triggers makes the triggers whose items are there.
func (a *discoverer) triggers(ctx context.Context, list []model.Instance) error {
	wishes := make([]wish, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, i := range list {
		_, row := prototypeRow(i.Prototype)
		p := a.defs.triggers[row]
		if p == nil {
			continue
		}
		macros, _ := macrosFor(p.macros, i.Macros)
		if !a.complete(p.keys, macros) {
			continue // an override or a refusal left one of its items out
		}
		if !p.readsOwn(macros) {
			a.refuse("values of the discovery macros of trigger %q would make its expression read other items", p.Name)
			continue
		}
		w := wish{row, packInstance(macros), packChange(i.Change), macros, triggerIdentity(p, row, macros)}
		if seen[w.identity] {
			a.refuse("a trigger %q with the same expression exists already", expandText(p.Name, macros))
			continue
		}
		seen[w.identity] = true
		wishes = append(wishes, w)
	}
	rule, host := a.x.Rule.ItemID, a.x.Rule.HostID
	// Triggers of declared items have no rule; when a rule finds the same, they become the rule's and keep their state.
	rows, err := a.foundRows(ctx, triggerTable.name, triggerTable.id, "rule_item = ? OR host_id = ? AND rule_item IS NULL AND instance <> ''", rule, host)
	if err != nil {
		return err
	}
	declared, err := a.declaredTriggers(ctx)
	if err != nil {
		return err
	}
	for n, f := range match(wishes, rows, a.triggerIdentity) {
		w := &wishes[n]
		if f == nil {
			a.out.Created++
			a.touch(host)
			err = a.exec(ctx, "INSERT INTO triggers (host_id, def_id, instance, rule_item, changes) VALUES (?, ?, ?, ?, ?)",
				host, w.def, w.instance, rule, w.changes)
		} else if err = a.keepTrigger(ctx, f, w, declared[f.id]); err == nil {
			delete(declared, f.id)
		}
		if err != nil {
			return err
		}
	}
	rows = slices.DeleteFunc(rows, func(f *found) bool { return declared[f.id] })
	return a.lose(ctx, triggerTable, rows, a.deleteRow(ctx, triggerTable), a.touchHost)
}

func (a *discoverer) keepTrigger(ctx context.Context, f *found, w *wish, declared bool) error {
	changed, err := a.keep(ctx, triggerTable, f, w)
	if err == nil && declared {
		changed = true
		err = a.exec(ctx, "UPDATE triggers SET rule_item = ? WHERE id = ?", a.x.Rule.ItemID, f.id)
	}
	if changed {
		a.touch(a.x.Rule.HostID)
	}
	return err
}

func (a *discoverer) declaredTriggers(ctx context.Context) (map[int64]bool, error) {
	ids := make(map[int64]bool)
	err := a.query(ctx, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		ids[id] = true
		return err
	}, "SELECT id FROM triggers WHERE host_id = ? AND rule_item IS NULL AND instance <> ''", a.x.Rule.HostID)
	return ids, err
}

// complete reports whether the host has all items with the keys.
func (a *discoverer) complete(keys []string, macros map[string]string) bool {
	for _, key := range keys {
		if !a.present[canonicalKey(expandKey(key, macros))] {
			return false
		}
	}
	return true
}

// readsOwn reports whether the expressions name the same hosts with the values of discovery macros as without.
func (p *triggerDefinition) readsOwn(macros map[string]string) bool {
	_, first := expandSafely(p.Expression, macros)
	_, second := expandSafely(p.Recovery, macros)
	return first && second
}

func triggerIdentity(p *triggerDefinition, row int64, macros map[string]string) string {
	return fmt.Sprint(row, " ", expandExpression(p.Expression, macros), "\x00", expandExpression(p.Recovery, macros))
}

func (a *discoverer) triggerIdentity(f *found) string {
	p := a.defs.triggers[f.def]
	macros, err := unpackInstance(f.instance)
	if p == nil || err != nil {
		return ""
	}
	return triggerIdentity(p, f.def, macros)
}
