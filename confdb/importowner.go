package confdb

import (
	"context"
	"database/sql"
	"slices"

	"tidemark/model"
)

// owner creates or updates the row of a host or template and its groups.
func (i *importer) owner(ctx context.Context, o *ownerDef) error {
	id, old, err := i.findOwner(ctx, o)
	if err != nil {
		return err
	}
	if id != 0 && i.options.Create {
		i.report.remark(o.kind.String()+" "+o.technical, o.line, "%s: a %s with this name exists already; choose another name; not taken", o.kind, o.kind)
	}
	if replaces, err := i.replaces(ctx, o, old.uuid); err != nil {
		return err
	} else if id != 0 && replaces {
		i.replaceWhole(o)
	}
	if id != 0 {
		o.macros = keepSecrets(o.macros, old.macros)
	}
	if o.macros, err = i.db.secrets.sealMacros(o.macros); err != nil {
		return err
	}
	what := unchanged
	switch {
	case id == 0:
		what = created
		id, err = i.insertOwner(ctx, o)
	case old != o.ownerFields:
		what = updated
		err = i.updateOwner(ctx, id, o)
	}
	if err != nil {
		return err
	}
	i.owners[ownerKey{o.kind, o.technical}] = id
	if o.kind == hostOwner {
		moved, err := i.importProxy(ctx, id, o)
		if err != nil {
			return err
		}
		if moved && what == unchanged {
			what = updated
		}
	}
	grouped, err := i.ownerGroups(ctx, owner{o.kind, id}, o.groups)
	if err != nil {
		return err
	}
	if grouped && what == unchanged {
		what = updated
	}
	if i.unchanged[ownerKey{o.kind, o.technical}] = what == unchanged; what != unchanged {
		i.mark(owner{o.kind, id})
	}
	if what == created && o.kind == hostOwner {
		i.relink[model.HostID(id)] = true
	}
	i.report.count(o.kind.String()+"s", what)
	i.report.object(o.kind.String()+"s", "", o.technical, what)
	return nil
}

// keepSecrets gives secret macros without a value, as exports have them, the value that they had.
func keepSecrets(macros, old string) string {
	list, err := unpack[packedMacro](macros)
	have, oldErr := unpack[packedMacro](old)
	if err != nil || oldErr != nil {
		return macros
	}
	for i := range list {
		for _, m := range have {
			if list[i].Secret && list[i].Value == "" && m.Secret && m.Name == list[i].Name {
				list[i].Value = m.Value
			}
		}
	}
	return pack(list)
}

// findOwner finds the object by its uuid, else by its technical name.
func (i *importer) findOwner(ctx context.Context, o *ownerDef) (int64, ownerFields, error) {
	query := `SELECT id, host, name, uuid, description, enabled, tags, macros, interfaces, extra FROM hosts`
	name := "host"
	if o.kind == templateOwner {
		query = `SELECT id, template, name, uuid, description, 1, tags, macros, '', extra FROM templates`
		name = "template"
	}
	var id int64
	var f ownerFields
	scan := func(r *sql.Rows) error {
		return r.Scan(&id, &f.technical, &f.name, &f.uuid, &f.description, &f.enabled, &f.tags, &f.macros, &f.interfaces, &f.extra)
	}
	if o.uuid != "" && o.kind == templateOwner {
		if err := i.query(ctx, scan, query+" WHERE uuid = ?", o.uuid); err != nil || id != 0 {
			return id, f, err
		}
	}
	err := i.query(ctx, scan, query+" WHERE "+name+" = ?", o.technical)
	return id, f, err
}

func (i *importer) insertOwner(ctx context.Context, o *ownerDef) (int64, error) {
	if o.kind == templateOwner {
		return i.insert(ctx, `INSERT INTO templates (template, name, uuid, description, tags, macros, extra)
			VALUES (?, ?, ?, ?, ?, ?, ?)`, o.technical, o.name, o.uuid, o.description, o.tags, o.macros, o.extra)
	}
	return i.insert(ctx, `INSERT INTO hosts (host, name, uuid, description, enabled, tags, macros, interfaces, extra)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, o.technical, o.name, o.uuid, o.description, o.enabled, o.tags, o.macros,
		o.interfaces, o.extra)
}

func (i *importer) updateOwner(ctx context.Context, id int64, o *ownerDef) error {
	if o.kind == templateOwner {
		return i.exec(ctx, `UPDATE templates SET template = ?, name = ?, uuid = ?, description = ?, tags = ?, macros = ?,
			extra = ? WHERE id = ?`, o.technical, o.name, o.uuid, o.description, o.tags, o.macros, o.extra, id)
	}
	return i.exec(ctx, `UPDATE hosts SET host = ?, name = ?, uuid = ?, description = ?, enabled = ?, tags = ?, macros = ?,
		interfaces = ?, extra = ? WHERE id = ?`, o.technical, o.name, o.uuid, o.description, o.enabled, o.tags, o.macros,
		o.interfaces, o.extra, id)
}

// ownerGroups adds the groups that the object is not in yet.
func (i *importer) ownerGroups(ctx context.Context, o owner, names []string) (bool, error) {
	kind, table, column := hostGroup, "host_groups", "host_id"
	if o.kind == templateOwner {
		kind, table, column = templateGroup, "template_groups", "template_id"
	}
	added := false
	for _, name := range names {
		group, made, err := i.group(ctx, kind, name, i.groupUUIDs[name])
		if err != nil {
			return false, err
		}
		if made {
			i.report.count(kindGroup, created)
		}
		have, err := i.id(ctx, "SELECT 1 FROM "+table+" WHERE "+column+" = ? AND group_id = ?", o.id, group)
		if err != nil {
			return false, err
		}
		if have != 0 {
			continue
		}
		added = true
		if err := i.exec(ctx, "INSERT INTO "+table+" ("+column+", group_id) VALUES (?, ?)", o.id, group); err != nil {
			return false, err
		}
	}
	if !i.options.Exact {
		return added, nil
	}
	left, err := i.leave(ctx, "SELECT m.group_id, g.name FROM "+table+" m JOIN object_groups g ON g.id = m.group_id WHERE m."+column+" = ?", o.id, names,
		"DELETE FROM "+table+" WHERE "+column+" = ? AND group_id = ?")
	return added || left, err
}

// leave ends memberships or links that a file does not name: list gives their ids and names for an owner, end takes the owner and an id.
func (i *importer) leave(ctx context.Context, list string, owner int64, names []string, end string) (bool, error) {
	var gone []int64
	err := i.query(ctx, func(r *sql.Rows) error {
		var id int64
		var name string
		err := r.Scan(&id, &name)
		if !slices.Contains(names, name) {
			gone = append(gone, id)
		}
		return err
	}, list, owner)
	for _, id := range gone {
		if err == nil {
			err = i.exec(ctx, end, owner, id)
		}
	}
	return len(gone) > 0, err
}

// links links hosts and templates to the templates they name.
func (i *importer) links(ctx context.Context, x *export) error {
	for _, o := range slices.Concat(x.templates, x.hosts) {
		id := i.owners[ownerKey{o.kind, o.technical}]
		if err := i.unlinkOthers(ctx, o, id); err != nil {
			return err
		}
		for _, name := range o.templates {
			template, err := i.id(ctx, "SELECT id FROM templates WHERE template = ?", name)
			if err != nil {
				return err
			}
			path := o.kind.String() + " " + o.technical
			if template == 0 {
				i.report.remark(path, o.line, "template %s is neither in the file nor known; not linked", name)
				continue
			}
			linked, err := i.link(ctx, owner{o.kind, id}, template)
			if err != nil {
				return err
			}
			key := ownerKey{o.kind, o.technical}
			switch {
			case linked == loop:
				i.report.remark(path, o.line, "linking template %s would make a loop; not linked", name)
			case linked == linkedNow && i.unchanged[key]:
				i.relinked(o)
			}
		}
	}
	return nil
}

// relinked counts an owner as updated of which only the links changed.
func (i *importer) relinked(o *ownerDef) {
	key := ownerKey{o.kind, o.technical}
	if !i.unchanged[key] {
		return
	}
	i.unchanged[key] = false
	i.report.promote(o.kind.String() + "s")
	i.report.object(o.kind.String()+"s", "", o.technical, updated)
}

// unlinkOthers ends the links to templates that an exact file does not name.
func (i *importer) unlinkOthers(ctx context.Context, o *ownerDef, id int64) error {
	if options := i.whole(o); !options.Exact && !options.DeleteLinks {
		return nil
	}
	table, column, template := "host_templates", "host_id", "template_id"
	if o.kind == templateOwner {
		table, column, template = "template_links", "template_id", "parent_id"
	}
	left, err := i.leave(ctx, "SELECT l."+template+", t.template FROM "+table+" l JOIN templates t ON t.id = l."+template+" WHERE l."+column+" = ?", id, o.templates,
		"DELETE FROM "+table+" WHERE "+column+" = ? AND "+template+" = ?")
	if err != nil || !left {
		return err
	}
	i.relinked(o)
	i.mark(owner{o.kind, id})
	if o.kind == hostOwner {
		i.relink[model.HostID(id)] = true
	}
	return nil
}

type linking uint8

const (
	linkedBefore linking = iota
	linkedNow
	loop
)

func (i *importer) link(ctx context.Context, o owner, template int64) (linking, error) {
	if o.kind == hostOwner {
		made, err := i.linkHost(ctx, model.HostID(o.id), template)
		if made {
			i.relink[model.HostID(o.id)] = true
			return linkedNow, err
		}
		return linkedBefore, err
	}
	have, err := i.id(ctx, "SELECT 1 FROM template_links WHERE template_id = ? AND parent_id = ?", o.id, template)
	if err != nil || have != 0 {
		return linkedBefore, err
	}
	above, err := i.ancestors(ctx, []int64{template})
	if err != nil {
		return linkedBefore, err
	}
	if slices.Contains(above, o.id) {
		return loop, nil
	}
	i.mark(o)
	return linkedNow, i.exec(ctx, "INSERT INTO template_links (template_id, parent_id) VALUES (?, ?)", o.id, template)
}

// linkHost links a template to a host and reports whether it was not linked before.
func (c *change) linkHost(ctx context.Context, h model.HostID, template int64) (bool, error) {
	have, err := c.id(ctx, "SELECT 1 FROM host_templates WHERE host_id = ? AND template_id = ?", h, template)
	if err != nil || have != 0 {
		return false, err
	}
	c.touch(h)
	return true, c.exec(ctx, "INSERT INTO host_templates (host_id, template_id) VALUES (?, ?)", h, template)
}

// ancestors returns the templates and those that they are linked to, nearest first and on each level in order of id.
func (c *change) ancestors(ctx context.Context, templates []int64) ([]int64, error) {
	slices.Sort(templates)
	seen := slices.Clone(templates)
	for level := templates; len(level) > 0; {
		var next []int64
		for _, id := range level {
			err := c.query(ctx, func(r *sql.Rows) error {
				var parent int64
				if err := r.Scan(&parent); err != nil {
					return err
				}
				if !slices.Contains(seen, parent) {
					seen, next = append(seen, parent), append(next, parent)
				}
				return nil
			}, "SELECT parent_id FROM template_links WHERE template_id = ? ORDER BY parent_id", id)
			if err != nil {
				return nil, err
			}
		}
		level = next
	}
	return seen, nil
}

// hostsOf returns the hosts that are linked to any of the templates, also through other templates.
func (c *change) hostsOf(ctx context.Context, templates map[model.TemplateID]bool) ([]model.HostID, error) {
	hosts := make(map[model.HostID]bool)
	seen := make(map[model.TemplateID]bool)
	var walk func(model.TemplateID) error
	walk = func(t model.TemplateID) error {
		if seen[t] {
			return nil
		}
		seen[t] = true
		err := c.query(ctx, func(r *sql.Rows) error {
			var h model.HostID
			err := r.Scan(&h)
			hosts[h] = true
			return err
		}, "SELECT host_id FROM host_templates WHERE template_id = ?", t)
		if err != nil {
			return err
		}
		var children []model.TemplateID
		err = c.query(ctx, func(r *sql.Rows) error {
			var child model.TemplateID
			err := r.Scan(&child)
			children = append(children, child)
			return err
		}, "SELECT template_id FROM template_links WHERE parent_id = ?", t)
		for _, child := range children {
			if err == nil {
				err = walk(child)
			}
		}
		return err
	}
	for t := range templates {
		if err := walk(t); err != nil {
			return nil, err
		}
	}
	list := make([]model.HostID, 0, len(hosts))
	for h := range hosts {
		list = append(list, h)
	}
	slices.Sort(list)
	return list, nil
}
