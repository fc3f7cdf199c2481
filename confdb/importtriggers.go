package confdb

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

const triggerColumns = "uuid, name, event_name, opdata, expression, recovery, recovery_mode, severity, enabled, multiple, " +
	"manual_close, comments, url, tags, extra"

func (f *triggerFields) pointers() []any {
	return []any{
		&f.uuid, &f.name, &f.eventName, &f.opdata, &f.expression, &f.recovery, &f.recoveryMode, &f.severity, &f.enabled,
		&f.multiple, &f.manual, &f.comments, &f.url, &f.tags, &f.extra,
	}
}

func (f *triggerFields) values() []any {
	return []any{
		f.uuid, f.name, f.eventName, f.opdata, f.expression, f.recovery, f.recoveryMode, f.severity, f.enabled,
		f.multiple, f.manual, f.comments, f.url, f.tags, f.extra,
	}
}

// triggers writes the triggers of an owner, or the trigger prototypes of one of its discovery rules.
func (i *importer) triggers(ctx context.Context, w owner, rule int64, list []triggerDef, path string) error {
	kind := kindTrigger
	if rule != 0 {
		kind = kindTriggerProto
	}
	have, err := i.existingTriggers(ctx, w, rule)
	if err != nil {
		return err
	}
	list = i.distinctTriggers(list, kind, path)
	found := have.take(list)
	for n := range list {
		def := &list[n]
		what, err := i.trigger(ctx, w, rule, def, found[n], path)
		if err != nil {
			return fmt.Errorf("trigger %s: %w", def.name, err)
		}
		if what != unchanged {
			i.mark(w)
		}
		i.report.count(kind, what)
		i.report.object(kind, i.owning, def.name, what)
	}
	for _, r := range have.rows {
		if i.options.DeleteMissing && !r.taken {
			if err := i.delete(ctx, w, "triggers", r.id, kind, r.fields.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// distinctTriggers leaves out and remarks triggers that have the name and expressions, or the uuid, of an earlier one.
func (i *importer) distinctTriggers(list []triggerDef, kind, path string) []triggerDef {
	seen := make(map[string]int, len(list))
	kept := list[:0:0]
	for _, def := range list {
		key := triggerKey(def.name, def.expression, def.recovery)
		line := seen["key "+key]
		if line == 0 && def.uuid != "" {
			line = seen["uuid "+def.uuid]
		}
		if line != 0 {
			i.report.remark(path+", "+strings.TrimSuffix(kind, "s")+" "+def.name, def.line,
				"the one at line %d has the same uuid, or the same name and expressions; not taken", line)
			i.report.count(kind, refused)
			continue
		}
		seen["key "+key], seen["uuid "+def.uuid] = def.line, def.line
		kept = append(kept, def)
	}
	return kept
}

// existingTriggers are the triggers of an owner, also by name alone.
type existingTriggers struct {
	*existing[triggerFields]
	byName map[string][]*row[triggerFields]
}

func triggerKey(name, expression, recovery string) string {
	return name + "\x00" + expression + "\x00" + recovery
}

func (i *importer) existingTriggers(ctx context.Context, w owner, rule int64) (*existingTriggers, error) {
	have := &existingTriggers{existing: newExisting[triggerFields](), byName: make(map[string][]*row[triggerFields])}
	err := i.query(ctx, func(r *sql.Rows) error {
		e := &row[triggerFields]{}
		if err := r.Scan(append([]any{&e.id}, e.fields.pointers()...)...); err != nil {
			return err
		}
		have.add(e, e.fields.uuid, triggerKey(e.fields.name, e.fields.expression, e.fields.recovery))
		have.byName[e.fields.name] = append(have.byName[e.fields.name], e)
		return nil
	}, "SELECT id, "+triggerColumns+" FROM triggers WHERE "+w.where()+" AND coalesce(rule_id, 0) = ? AND def_id IS NULL",
		w.id, rule)
	return have, err
}

// take matches triggers by uuid, else by name and expressions, else by name alone when that is unique: so an edited
// expression changes the trigger and makes no second one.
func (e *existingTriggers) take(list []triggerDef) []*row[triggerFields] {
	found := e.existing.take(len(list), func(n int) (string, string) {
		return list[n].uuid, triggerKey(list[n].name, list[n].expression, list[n].recovery)
	})
	names := make(map[string]int)
	for i := range list {
		names[list[i].name]++
	}
	for i := range list {
		same := e.byName[list[i].name]
		if found[i] == nil && names[list[i].name] == 1 && len(same) == 1 && !same[0].taken {
			same[0].taken = true
			found[i] = same[0]
		}
	}
	return found
}

func (i *importer) trigger(ctx context.Context, w owner, rule int64, def *triggerDef, e *row[triggerFields], path string) (outcome, error) {
	what := unchanged
	var id int64
	var err error
	switch {
	case e == nil:
		what = created
		host, template := w.columns()
		id, err = i.insert(ctx, `INSERT INTO triggers (host_id, template_id, rule_id, `+triggerColumns+`)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			append([]any{host, template, nullable(rule)}, def.values()...)...)
	case e.fields != def.triggerFields:
		what, id = updated, e.id
		err = i.exec(ctx, `UPDATE triggers SET (`+triggerColumns+`) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE id = ?`,
			append(def.values(), id)...)
	default:
		id = e.id
	}
	if err != nil {
		return what, err
	}
	changed, err := i.dropDependencies(ctx, id, def, what == created)
	if changed && what == unchanged {
		what = updated
	}
	kind := kindTrigger
	if rule != 0 {
		kind = kindTriggerProto
	}
	same := what == unchanged
	for _, on := range def.depends {
		i.depends = append(i.depends, pendingDependency{
			trigger: id, unchanged: &same, kind: kind, owner: w, technical: i.owning, name: def.name, on: on, path: path + ", " + strings.TrimSuffix(kind, "s") + " " + def.name,
		})
	}
	return what, err
}

// dropDependencies removes the dependencies that the file no longer has. New ones are stored at the end of the import,
// because they may name a trigger that comes later in the file.
func (i *importer) dropDependencies(ctx context.Context, id int64, def *triggerDef, fresh bool) (bool, error) {
	if fresh {
		return false, nil
	}
	var gone []int64
	err := i.query(ctx, func(r *sql.Rows) error {
		var on int64
		var name, expression, recovery string
		if err := r.Scan(&on, &name, &expression, &recovery); err != nil {
			return err
		}
		for _, d := range def.depends {
			if triggerKey(d.name, d.expression, d.recovery) == triggerKey(name, expression, recovery) {
				return nil
			}
		}
		gone = append(gone, on)
		return nil
	}, `SELECT t.id, t.name, t.expression, t.recovery FROM trigger_dependencies d JOIN triggers t ON t.id = d.depends_on
		WHERE d.trigger_id = ?`, id)
	for _, on := range gone {
		if err == nil {
			err = i.exec(ctx, "DELETE FROM trigger_dependencies WHERE trigger_id = ? AND depends_on = ?", id, on)
		}
	}
	return len(gone) > 0, err
}

// dependencies stores the queued dependencies, when every trigger has its row.
func (i *importer) dependencies(ctx context.Context) error {
	for _, p := range i.depends {
		on, err := i.findTrigger(ctx, p.on)
		if err != nil {
			return err
		}
		if on == 0 || on == p.trigger {
			i.report.remark(p.path, p.on.line, "depends on trigger %q, which is neither in the file nor known; dependency not taken", p.on.name)
			continue
		}
		have, err := i.id(ctx, "SELECT 1 FROM trigger_dependencies WHERE trigger_id = ? AND depends_on = ?", p.trigger, on)
		if err != nil {
			return err
		}
		if have != 0 {
			continue
		}
		i.mark(p.owner)
		if *p.unchanged {
			*p.unchanged = false
			i.report.promote(p.kind)
			i.report.object(p.kind, p.technical, p.name, updated)
		}
		if err := i.exec(ctx, "INSERT INTO trigger_dependencies (trigger_id, depends_on) VALUES (?, ?)", p.trigger, on); err != nil {
			return err
		}
	}
	return nil
}

// findTrigger finds a trigger by name and expressions: among those of the owner that the expression names first.
func (i *importer) findTrigger(ctx context.Context, d dependDef) (int64, error) {
	w, err := i.ownerOf(ctx, d.expression)
	if err != nil || w.id == 0 {
		return 0, err
	}
	return i.id(ctx, `SELECT id FROM triggers WHERE `+w.where()+` AND name = ? AND expression = ? AND recovery = ?
		AND def_id IS NULL ORDER BY id LIMIT 1`, w.id, d.name, d.expression, d.recovery)
}

// ownerOf returns the template or host that an expression names first; zero when there is none.
func (i *importer) ownerOf(ctx context.Context, expression string) (owner, error) {
	refs, err := itemRefs(expression)
	if err != nil || len(refs) == 0 {
		return owner{}, nil //nolint:nilerr // an unreadable expression names nobody
	}
	return i.ownerNamed(ctx, expression[refs[0].hostAt:refs[0].hostEnd])
}

// loose writes the triggers of owners that are not in the file, each under the first host that it names.
func (i *importer) loose(ctx context.Context, list []triggerDef) error {
	var owners []owner
	groups := make(map[owner][]triggerDef)
	for _, t := range list {
		w, err := i.ownerOf(ctx, t.expression)
		if err != nil {
			return err
		}
		if w.id == 0 {
			i.report.remark("export, trigger "+t.name, t.line, "the first host of its expression is neither in the file nor known; not taken")
			i.report.count(kindTrigger, refused)
			continue
		}
		if groups[w] == nil {
			owners = append(owners, w)
		}
		groups[w] = append(groups[w], t)
	}
	// Their owners are not in the file, so what is missing there says nothing.
	i.options.DeleteMissing, i.owning = false, ""
	for _, w := range owners {
		if err := i.triggers(ctx, w, 0, groups[w], "export"); err != nil {
			return err
		}
	}
	return nil
}
