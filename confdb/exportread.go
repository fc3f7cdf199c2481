package confdb

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"tidemark/model"
)

// ExportOptions say what is exported.
type ExportOptions struct {
	// Version is the form of the export: "6.0" or "7.0".
	Version string
	// Templates and Hosts are technical names; All stands for everything.
	Templates, Hosts []string
	All              bool
	// JSON says that the same is written as JSON.
	JSON bool
}

// Export writes templates and hosts in Zabbix's export format, as YAML or JSON. What hosts inherit and what rules discovered is not part of it. The
// values of secret macros are left out. The same objects give the same bytes, whatever their ids: imported elsewhere and exported again, an
// export is the same. A name that does not exist is ErrNotFound.
func (d *DB) Export(ctx context.Context, o ExportOptions) ([]byte, error) {
	tree, err := d.exportTree(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.JSON {
		var b bytes.Buffer
		emitJSON(&b, tree)
		return b.Bytes(), nil
	}
	return emitYAML(tree), nil
}

func (d *DB) exportTree(ctx context.Context, o ExportOptions) (*node, error) {
	if o.Version != "6.0" && o.Version != "7.0" {
		return nil, fmt.Errorf("export version %.20q: %w; expected 6.0 or 7.0", o.Version, ErrInvalid)
	}
	tx, err := d.sql.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, d.wrap("export", err)
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	r := &exportReader{tx: tx}
	x := &export{version: o.Version}
	if x.templates, err = r.owners(ctx, templateOwner, o.Templates, o.All); err == nil {
		x.hosts, err = r.owners(ctx, hostOwner, o.Hosts, o.All)
	}
	if err == nil {
		err = r.groups(ctx, x)
	}
	if err != nil {
		return nil, d.wrap("export", err)
	}
	return encodeExport(x), nil
}

// exportReader reads what an import decodes.
type exportReader struct{ tx *sql.Tx }

// owners reads hosts or templates in order of their names.
func (r *exportReader) owners(ctx context.Context, kind ownerKind, names []string, all bool) ([]*ownerDef, error) {
	query := "SELECT id, host, name, uuid, description, enabled, tags, macros, interfaces, extra FROM hosts ORDER BY host"
	if kind == templateOwner {
		query = "SELECT id, template, name, uuid, description, 1, tags, macros, '', extra FROM templates ORDER BY template"
	}
	wanted := make(map[string]bool)
	for _, n := range names {
		wanted[n] = true
	}
	var list []*ownerDef
	var ids []int64
	err := rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var id int64
		o := &ownerDef{kind: kind}
		f := &o.ownerFields
		err := rows.Scan(&id, &f.technical, &f.name, &f.uuid, &f.description, &f.enabled, &f.tags, &f.macros, &f.interfaces, &f.extra)
		if all || wanted[f.technical] {
			delete(wanted, f.technical)
			list, ids = append(list, o), append(ids, id)
		}
		return err
	}, query)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if wanted[n] {
			return nil, fmt.Errorf("%s %.130q: %w", kind, n, ErrNotFound)
		}
	}
	for n, o := range list {
		if err := r.owner(ctx, o, owner{kind, ids[n]}); err != nil {
			return nil, fmt.Errorf("%s %s: %w", kind, o.technical, err)
		}
	}
	return list, nil
}

// owner reads what a host or template has.
func (r *exportReader) owner(ctx context.Context, o *ownerDef, w owner) error {
	links, groups := "template_links l JOIN templates t ON t.id = l.parent_id WHERE l.template_id", "template_groups g JOIN object_groups o ON o.id = g.group_id WHERE g.template_id"
	if w.kind == hostOwner {
		links, groups = "host_templates l JOIN templates t ON t.id = l.template_id WHERE l.host_id", "host_groups g JOIN object_groups o ON o.id = g.group_id WHERE g.host_id"
	}
	var err error
	if o.templates, err = r.texts(ctx, "SELECT t.template FROM "+links+" = ? ORDER BY 1", w.id); err != nil {
		return err
	}
	if o.groups, err = r.texts(ctx, "SELECT o.name FROM "+groups+" = ? ORDER BY 1", w.id); err != nil {
		return err
	}
	err = rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var v valueMapDef
		err := rows.Scan(&v.uuid, &v.name, &v.mappings)
		o.valueMaps = append(o.valueMaps, v)
		return err
	}, "SELECT uuid, name, mappings FROM value_maps WHERE "+w.where()+" ORDER BY name", w.id)
	if err != nil {
		return err
	}
	if o.items, err = r.items(ctx, w.where()+" AND rule_id IS NULL AND def_id IS NULL", w.id); err != nil {
		return err
	}
	if o.triggers, err = r.triggers(ctx, w.where()+" AND rule_id IS NULL AND def_id IS NULL", w.id); err != nil {
		return err
	}
	if o.graphs, err = r.bodies(ctx, "SELECT 2, uuid, name, body FROM graphs WHERE "+w.where()+" ORDER BY name, id", w.id); err != nil {
		return err
	}
	o.items = slices.DeleteFunc(o.items, func(i itemDef) bool { return i.ofScenario() })
	return r.rules(ctx, o, w)
}

func (r *exportReader) texts(ctx context.Context, query string, args ...any) ([]string, error) {
	var list []string
	err := rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var s string
		err := rows.Scan(&s)
		list = append(list, s)
		return err
	}, query, args...)
	return list, err
}

func (r *exportReader) items(ctx context.Context, where string, id int64) ([]itemDef, error) {
	var list []itemDef
	err := rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var i itemDef
		err := rows.Scan(i.pointers()...)
		list = append(list, i)
		return err
	}, "SELECT "+itemColumns+" FROM items WHERE "+where+" ORDER BY key, id", id)
	return list, err
}

func (r *exportReader) triggers(ctx context.Context, where string, owner int64) ([]triggerDef, error) {
	var list []triggerDef
	places := make(map[int64]int)
	err := rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var id int64
		var t triggerDef
		err := rows.Scan(append([]any{&id}, t.pointers()...)...)
		places[id] = len(list)
		list = append(list, t)
		return err
	}, "SELECT id, "+triggerColumns+" FROM triggers WHERE "+where, owner)
	if err != nil {
		return nil, err
	}
	err = rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var id int64
		var on dependDef
		err := rows.Scan(&id, &on.name, &on.expression, &on.recovery)
		if n, ok := places[id]; ok {
			list[n].depends = append(list[n].depends, on)
		}
		return err
	}, `SELECT d.trigger_id, t.name, t.expression, t.recovery FROM trigger_dependencies d JOIN triggers t ON t.id = d.depends_on
		WHERE d.trigger_id IN (SELECT id FROM triggers WHERE `+where+`)`, owner)
	slices.SortFunc(list, func(a, b triggerDef) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.expression, b.expression), cmp.Compare(a.recovery, b.recovery), cmp.Compare(a.uuid, b.uuid))
	})
	for i := range list {
		slices.SortFunc(list[i].depends, func(a, b dependDef) int {
			return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.expression, b.expression), cmp.Compare(a.recovery, b.recovery))
		})
	}
	return list, err
}

func (r *exportReader) bodies(ctx context.Context, query string, id int64) ([]bodyDef, error) {
	var list []bodyDef
	err := rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var b bodyDef
		err := rows.Scan(&b.kind, &b.uuid, &b.name, &b.body)
		list = append(list, b)
		return err
	}, query, id)
	return list, err
}

func (r *exportReader) rules(ctx context.Context, o *ownerDef, w owner) error {
	var ids []int64
	err := rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var id int64
		var x ruleDef
		err := rows.Scan(&id, &x.uuid, &x.key, &x.name, &x.body)
		o.rules, ids = append(o.rules, x), append(ids, id)
		return err
	}, "SELECT id, uuid, key, name, body FROM discovery_rules WHERE "+w.where()+" ORDER BY key, id", w.id)
	for n := range ids {
		x := &o.rules[n]
		if err == nil {
			x.items, err = r.items(ctx, "rule_id = ?", ids[n])
		}
		if err == nil {
			x.triggers, err = r.triggers(ctx, "rule_id = ?", ids[n])
		}
		if err == nil {
			x.others, err = r.bodies(ctx, "SELECT kind, uuid, name, body FROM rule_prototypes WHERE rule_id = ? ORDER BY kind, name, id", ids[n])
		}
	}
	return err
}

// groups reads the groups of what is exported, also those that host prototypes name.
func (r *exportReader) groups(ctx context.Context, x *export) error {
	used := make(map[int]map[string]bool)
	for kind, owners := range map[int][]*ownerDef{templateGroup: x.templates, hostGroup: x.hosts} {
		used[kind] = make(map[string]bool)
		for _, o := range owners {
			for _, g := range o.groups {
				used[kind][g] = true
			}
		}
	}
	return rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var kind int
		g := groupDef{}
		err := rows.Scan(&kind, &g.name, &g.uuid)
		if used[kind][g.name] {
			g.host, g.template = kind == hostGroup, kind == templateGroup
			x.groups = append(x.groups, g)
		}
		return err
	}, "SELECT kind, name, uuid FROM object_groups ORDER BY name, kind DESC")
}

// model's numbers as exports name them; the name of the first in alphabetical order that is not an older spelling.
func nameOf[T comparable](names map[string]T, v T, older ...string) string {
	found := ""
	for name, n := range names {
		if n == v && name != "" && !slices.Contains(older, name) && (found == "" || name < found) {
			found = name
		}
	}
	return found
}

func exportTypeName(t model.ItemType, version string) string {
	if t == browserItem {
		return "ITEM_TYPE_BROWSER"
	}
	return nameOf(itemTypes, t, "ITEM_TYPE_SCRIPT", "BROWSER")
}
