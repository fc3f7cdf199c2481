package confdb

import (
	"context"
	"database/sql"

	"tidemark/model"
)

// bodies writes the graphs of an owner, or the graph and host prototypes of one of its discovery rules.
func (i *importer) bodies(ctx context.Context, w owner, rule int64, list []bodyDef, path string) error {
	table, where, id := "graphs", w.where(), w.id
	if rule != 0 {
		table, where, id = "rule_prototypes", "rule_id = ?", rule
	}
	have := newExisting[bodyFields]()
	err := i.query(ctx, func(r *sql.Rows) error {
		e := &row[bodyFields]{}
		err := r.Scan(&e.id, &e.fields.kind, &e.fields.uuid, &e.fields.name, &e.fields.body)
		have.add(e, e.fields.uuid, bodyKey(&e.fields))
		return err
	}, "SELECT id, "+kindColumn(rule)+", uuid, name, body FROM "+table+" WHERE "+where, id)
	if err != nil {
		return err
	}
	list = i.distinctBodies(list, rule != 0, path)
	found := have.take(len(list), func(n int) (string, string) { return list[n].uuid, bodyKey(&list[n].bodyFields) })
	for n := range list {
		what, err := i.body(ctx, w, rule, &list[n].bodyFields, found[n])
		if err != nil {
			return err
		}
		if what != unchanged {
			i.mark(w)
		}
		i.report.count(bodyKind(list[n].kind, rule != 0), what)
		i.report.object(bodyKind(list[n].kind, rule != 0), i.owning, list[n].name, what)
	}
	for _, r := range have.rows {
		if i.options.DeleteMissing && !r.taken {
			if err := i.delete(ctx, w, table, r.id, bodyKind(r.fields.kind, rule != 0), r.fields.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// kindColumn is where the kind of a body stands; graphs are all of one kind.
func kindColumn(rule int64) string {
	if rule == 0 {
		return "2"
	}
	return "kind"
}

func bodyKey(f *bodyFields) string { return string(rune('0'+f.kind)) + f.name }

// distinctBodies leaves out and remarks objects whose name or uuid an earlier one has.
func (i *importer) distinctBodies(list []bodyDef, prototype bool, path string) []bodyDef {
	seen := make(map[string]int, len(list))
	kept := list[:0:0]
	for _, b := range list {
		key := "key " + bodyKey(&b.bodyFields)
		line := seen[key]
		if line == 0 && b.uuid != "" {
			line = seen["uuid "+b.uuid]
		}
		if line != 0 {
			i.report.remark(path+", "+b.name, b.line, "the name or uuid is taken by the one at line %d; not taken", line)
			i.report.count(bodyKind(b.kind, prototype), refused)
			continue
		}
		seen[key], seen["uuid "+b.uuid] = b.line, b.line
		kept = append(kept, b)
	}
	return kept
}

func (i *importer) body(ctx context.Context, w owner, rule int64, b *bodyFields, e *row[bodyFields]) (outcome, error) {
	table := "graphs"
	if rule != 0 {
		table = "rule_prototypes"
	}
	if b.kind == model.HostPrototype {
		old := ""
		if e != nil {
			old = e.fields.body
		}
		var err error
		if b.body, err = i.db.secrets.sealPrototype(b.body, old); err != nil {
			return unchanged, err
		}
	}
	switch {
	case e != nil && e.fields == *b:
		return unchanged, nil
	case e != nil:
		return updated, i.exec(ctx, "UPDATE "+table+" SET uuid = ?, name = ?, body = ? WHERE id = ?", b.uuid, b.name, b.body, e.id)
	case rule != 0:
		return created, i.exec(ctx, "INSERT INTO rule_prototypes (rule_id, kind, uuid, name, body) VALUES (?, ?, ?, ?, ?)",
			rule, b.kind, b.uuid, b.name, b.body)
	}
	host, template := w.columns()
	return created, i.exec(ctx, "INSERT INTO graphs (host_id, template_id, uuid, name, body) VALUES (?, ?, ?, ?, ?)",
		host, template, b.uuid, b.name, b.body)
}

// looseGraphs writes the graphs that stand beside hosts and templates, each under the host of its first item.
func (i *importer) looseGraphs(ctx context.Context, x *export) error {
	var owners []owner
	groups := make(map[owner][]bodyDef)
	for _, g := range x.graphs {
		w, err := i.ownerNamed(ctx, graphHost(g.body))
		if err != nil {
			return err
		}
		if w.id == 0 {
			i.report.remark("export, graph "+g.name, g.line, "the host of its first item is neither in the file nor known; not taken")
			i.report.count(kindGraph, refused)
			continue
		}
		if groups[w] == nil {
			owners = append(owners, w)
		}
		groups[w] = append(groups[w], g)
	}
	for _, w := range owners {
		if err := i.bodies(ctx, w, 0, groups[w], "export"); err != nil {
			return err
		}
	}
	return nil
}

// ownerNamed finds a template or host by its technical name; zero when there is none.
func (i *importer) ownerNamed(ctx context.Context, name string) (owner, error) {
	for _, kind := range []ownerKind{templateOwner, hostOwner} {
		if id := i.owners[ownerKey{kind, name}]; id != 0 {
			return owner{kind, id}, nil
		}
	}
	if id, err := i.id(ctx, "SELECT id FROM templates WHERE template = ?", name); err != nil || id != 0 {
		return owner{templateOwner, id}, err
	}
	id, err := i.id(ctx, "SELECT id FROM hosts WHERE host = ?", name)
	return owner{hostOwner, id}, err
}
