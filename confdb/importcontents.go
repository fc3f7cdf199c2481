package confdb

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tidemark/model"
)

// contents creates, updates and, if asked to, deletes what a host or template owns.
func (i *importer) contents(ctx context.Context, o *ownerDef) error {
	w := owner{o.kind, i.owners[ownerKey{o.kind, o.technical}]}
	path := o.kind.String() + " " + o.technical
	i.owning = o.technical
	options := i.options
	defer func() { i.options = options }()
	i.options = i.whole(o)
	if err := i.valueMaps(ctx, w, o.valueMaps); err != nil {
		return err
	}
	if err := i.items(ctx, w, 0, o.items, path); err != nil {
		return err
	}
	if err := i.triggers(ctx, w, 0, o.triggers, path); err != nil {
		return err
	}
	if err := i.bodies(ctx, w, 0, o.graphs, path); err != nil {
		return err
	}
	return i.rules(ctx, w, o.rules, path)
}

func (i *importer) valueMaps(ctx context.Context, w owner, list []valueMapDef) error {
	ids := make(map[string]int64)
	have := make(map[string]valueMapFields)
	err := i.query(ctx, func(r *sql.Rows) error {
		var id int64
		var f valueMapFields
		err := r.Scan(&id, &f.uuid, &f.name, &f.mappings)
		ids[f.name], have[f.name] = id, f
		return err
	}, "SELECT id, uuid, name, mappings FROM value_maps WHERE "+w.where(), w.id)
	if err != nil {
		return err
	}
	for _, v := range list {
		what := unchanged
		id, known := ids[v.name]
		switch {
		case !known:
			what = created
			host, template := w.columns()
			id, err = i.insert(ctx, "INSERT INTO value_maps (host_id, template_id, uuid, name, mappings) VALUES (?, ?, ?, ?, ?)",
				host, template, v.uuid, v.name, v.mappings)
		case have[v.name] != v.valueMapFields:
			what = updated
			err = i.exec(ctx, "UPDATE value_maps SET uuid = ?, mappings = ? WHERE id = ?", v.uuid, v.mappings, id)
		}
		if err != nil {
			return err
		}
		ids[v.name], have[v.name] = id, v.valueMapFields
		if what != unchanged {
			i.mark(w)
		}
		i.report.count(kindValueMap, what)
		i.report.object(kindValueMap, i.owning, v.name, what)
	}
	if !i.options.Exact && !i.options.DeleteValueMaps {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		if !slices.ContainsFunc(list, func(v valueMapDef) bool { return v.name == name }) {
			if err := i.delete(ctx, w, "value_maps", ids[name], kindValueMap, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// existing are rows of one owner, found by uuid or key.
type existing[F any] struct {
	byUUID, byKey map[string]*row[F]
	rows          []*row[F]
}

type row[F any] struct {
	id     int64
	fields F
	// inherited rows carry only an identity.
	inherited bool
	// taken is set when an object of the file was matched to the row.
	taken bool
}

func newExisting[F any]() *existing[F] {
	return &existing[F]{byUUID: make(map[string]*row[F]), byKey: make(map[string]*row[F])}
}

func (e *existing[F]) add(r *row[F], uuid, key string) {
	e.rows = append(e.rows, r)
	if uuid != "" {
		e.byUUID[uuid] = r
	}
	// A template may just have got an item with the key of the host's own one; the inherited row goes when links are
	// brought in line, so the own row counts.
	if have := e.byKey[key]; have == nil || have.inherited {
		e.byKey[key] = r
	}
}

// take finds the rows of n objects, of which identity gives uuid and key, and marks them as taken: first by uuid for all
// objects, then by key for the others, so that objects that swap their keys keep their rows. Objects without a row have
// nil.
func (e *existing[F]) take(n int, identity func(int) (uuid, key string)) []*row[F] {
	found := make([]*row[F], n)
	for i := range n {
		uuid, _ := identity(i)
		if r := e.byUUID[uuid]; uuid != "" && r != nil && !r.taken {
			r.taken = true
			found[i] = r
		}
	}
	for i := range n {
		_, key := identity(i)
		if r := e.byKey[key]; found[i] == nil && r != nil && !r.taken {
			r.taken = true
			found[i] = r
		}
	}
	return found
}

// displaced returns the row whose key an object takes over although the object was matched to another row, or nil.
func (e *existing[F]) displaced(mine *row[F], key string) *row[F] {
	if r := e.byKey[key]; r != nil && r != mine && !r.taken && !r.inherited {
		return r
	}
	return nil
}

const itemColumns = "uuid, key, name, type, value_type, enabled, delay, history, trends, units, description, steps, tags, extra"

func (f *itemFields) pointers() []any {
	return []any{
		&f.uuid, &f.key, &f.name, &f.kind, &f.valueType, &f.enabled, &f.delay, &f.history, &f.trends, &f.units,
		&f.description, &f.steps, &f.tags, &f.extra,
	}
}

func (f *itemFields) values() []any {
	return []any{
		f.uuid, f.key, f.name, f.kind, f.valueType, f.enabled, f.delay, f.history, f.trends, f.units,
		f.description, f.steps, f.tags, f.extra,
	}
}

// items writes the items of an owner, or the item prototypes of one of its discovery rules.
func (i *importer) items(ctx context.Context, w owner, rule int64, list []itemDef, path string) error {
	kind := kindItem
	if rule != 0 {
		kind = kindItemProto
	}
	have, err := i.existingItems(ctx, w, rule)
	if err != nil {
		return err
	}
	list = i.distinctItems(list, kind, path)
	found := have.take(len(list), func(n int) (string, string) { return list[n].uuid, list[n].key })
	for n := range list {
		def := &list[n]
		if r := have.displaced(found[n], def.key); r != nil {
			r.taken = true
			if err := i.delete(ctx, w, "items", r.id, kind, r.fields.key); err != nil {
				return err
			}
		}
		what, err := i.item(ctx, w, rule, def, found[n])
		if err != nil {
			return fmt.Errorf("item %s: %w", def.key, err)
		}
		if what != unchanged {
			i.mark(w)
		}
		if r := found[n]; w.kind == hostOwner && rule == 0 && r != nil && r.fields.key != def.key {
			i.relink[model.HostID(w.id)] = true // an item of a template may have either key
		}
		if kind := def.reportedAs(kind); kind != "" {
			i.report.count(kind, what)
			i.report.object(kind, i.owning, def.key, what)
		}
	}
	for _, r := range have.rows {
		// A scenario is replaced whole, as the field of its owner is.
		if (i.options.DeleteMissing || r.fields.ofScenario()) && !r.taken && !r.inherited {
			if w.kind == hostOwner && rule == 0 {
				i.relink[model.HostID(w.id)] = true // of an item of a template that had this key
			}
			if err := i.delete(ctx, w, "items", r.id, r.fields.reportedAs(kind), r.fields.key); err != nil {
				return err
			}
		}
	}
	return nil
}

// distinctItems leaves out and remarks items whose key or uuid an earlier one has.
func (i *importer) distinctItems(list []itemDef, kind, path string) []itemDef {
	keys, uuids := make(map[string]int, len(list)), make(map[string]int, len(list))
	kept := list[:0:0]
	for _, def := range list {
		at := path + ", " + strings.TrimSuffix(kind, "s") + " " + def.key
		if line := keys[def.key]; line != 0 {
			i.report.remark(at, def.line, "the key is taken by the one at line %d; not taken", line)
		} else if line := uuids[def.uuid]; line != 0 && def.uuid != "" {
			i.report.remark(at, def.line, "the uuid is taken by the one at line %d; not taken", line)
		} else {
			keys[def.key], uuids[def.uuid] = def.line, def.line
			kept = append(kept, def)
			continue
		}
		i.report.count(kind, refused)
	}
	return kept
}

func (i *importer) existingItems(ctx context.Context, w owner, rule int64) (*existing[itemFields], error) {
	have := newExisting[itemFields]()
	const own = "i.uuid, coalesce(d.key, i.key), i.name, i.type, i.value_type, i.enabled, i.delay, i.history, i.trends, " +
		"i.units, i.description, i.steps, i.tags, i.extra"
	err := i.query(ctx, func(r *sql.Rows) error {
		e := &row[itemFields]{}
		if err := r.Scan(append([]any{&e.id, &e.inherited}, e.fields.pointers()...)...); err != nil {
			return err
		}
		have.add(e, e.fields.uuid, e.fields.key)
		return nil
	}, "SELECT i.id, i.def_id IS NOT NULL, "+own+" FROM items i LEFT JOIN items d ON d.id = i.def_id WHERE i."+w.where()+
		" AND coalesce(i.rule_id, 0) = ?", w.id, rule)
	return have, err
}

func (i *importer) item(ctx context.Context, w owner, rule int64, def *itemDef, e *row[itemFields]) (outcome, error) {
	if e != nil {
		if e.fields == def.itemFields && !e.inherited {
			return unchanged, nil
		}
		// An inherited item becomes the host's own and keeps its values.
		return updated, i.exec(ctx, `UPDATE items SET (`+itemColumns+`, def_id) =
			(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL) WHERE id = ?`, append(def.values(), e.id)...)
	}
	var id any
	if w.kind == hostOwner && rule == 0 {
		n, err := i.nextItemID()
		if err != nil {
			return created, err
		}
		id = int64(n)
	}
	host, template := w.columns()
	return created, i.exec(ctx, `INSERT INTO items (item_id, host_id, template_id, rule_id, `+itemColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		append([]any{id, host, template, nullable(rule)}, def.values()...)...)
}

// nextItemID asks the catalog for an id.
func (c *change) nextItemID() (model.ItemID, error) {
	if c.db.ids == nil {
		return 0, fmt.Errorf("%w: no source of item ids", ErrInvalid)
	}
	id, err := c.db.ids.NextItemID()
	if err != nil {
		return 0, fmt.Errorf("next item id: %w", err)
	}
	return id, nil
}

// nullable makes zero NULL.
func nullable(id int64) any {
	if id == 0 {
		return nil
	}
	return id
}

// delete removes a row of the owner; what depends on it goes by foreign key.
func (i *importer) delete(ctx context.Context, w owner, table string, id int64, kind, name string) error {
	i.mark(w)
	if kind != "" {
		i.report.count(kind, deleted)
		i.report.object(kind, i.owning, name, deleted)
	}
	return i.exec(ctx, "DELETE FROM "+table+" WHERE id = ?", id)
}

func (i *importer) rules(ctx context.Context, w owner, list []ruleDef, path string) error {
	have := newExisting[ruleFields]()
	err := i.query(ctx, func(r *sql.Rows) error {
		e := &row[ruleFields]{}
		if err := r.Scan(&e.id, &e.fields.uuid, &e.fields.key, &e.fields.name, &e.fields.body); err != nil {
			return err
		}
		have.add(e, e.fields.uuid, e.fields.key)
		return nil
	}, "SELECT id, uuid, key, name, body FROM discovery_rules WHERE "+w.where(), w.id)
	if err != nil {
		return err
	}
	if len(list)+len(have.rows) > 0 {
		i.templates = true // the decoded definitions hold prototypes, also those of hosts
	}
	list = i.distinctRules(list, path)
	found := have.take(len(list), func(n int) (string, string) { return list[n].uuid, list[n].key })
	for n := range list {
		def := &list[n]
		if r := have.displaced(found[n], def.key); r != nil {
			r.taken = true
			if err := i.delete(ctx, w, "discovery_rules", r.id, kindRule, r.fields.key); err != nil {
				return err
			}
		}
		id, what, err := i.rule(ctx, w, def, found[n])
		if err != nil {
			return fmt.Errorf("discovery rule %s: %w", def.key, err)
		}
		if what != unchanged {
			i.mark(w)
		}
		i.report.count(kindRule, what)
		i.report.object(kindRule, i.owning, def.key, what)
		at := path + ", discovery rule " + def.key
		if err := i.items(ctx, w, id, def.items, at); err != nil {
			return err
		}
		if err := i.triggers(ctx, w, id, def.triggers, at); err != nil {
			return err
		}
		if err := i.bodies(ctx, w, id, def.others, at); err != nil {
			return err
		}
	}
	if w.kind == hostOwner && len(list)+len(have.rows) > 0 {
		i.relink[model.HostID(w.id)] = true
	}
	for _, r := range have.rows {
		if i.options.DeleteMissing && !r.taken {
			if err := i.delete(ctx, w, "discovery_rules", r.id, kindRule, r.fields.key); err != nil {
				return err
			}
		}
	}
	return nil
}

// distinctRules leaves out and remarks discovery rules whose key or uuid an earlier one has.
func (i *importer) distinctRules(list []ruleDef, path string) []ruleDef {
	seen := make(map[string]int, len(list))
	kept := list[:0:0]
	for _, def := range list {
		line := seen["key "+def.key]
		if line == 0 && def.uuid != "" {
			line = seen["uuid "+def.uuid]
		}
		if line != 0 {
			i.report.remark(path+", discovery rule "+def.key, def.line, "the key or uuid is taken by the one at line %d; not taken", line)
			i.report.count(kindRule, refused)
			continue
		}
		seen["key "+def.key], seen["uuid "+def.uuid] = def.line, def.line
		kept = append(kept, def)
	}
	return kept
}

func (i *importer) rule(ctx context.Context, w owner, def *ruleDef, e *row[ruleFields]) (int64, outcome, error) {
	if e == nil {
		host, template := w.columns()
		id, err := i.insert(ctx, `INSERT INTO discovery_rules (host_id, template_id, uuid, key, name, body)
			VALUES (?, ?, ?, ?, ?, ?)`, host, template, def.uuid, def.key, def.name, def.body)
		return id, created, err
	}
	if e.fields == def.ruleFields {
		return e.id, unchanged, nil
	}
	return e.id, updated, i.exec(ctx, "UPDATE discovery_rules SET uuid = ?, key = ?, name = ?, body = ? WHERE id = ?",
		def.uuid, def.key, def.name, def.body, e.id)
}
