package confdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"tidemark/model"
)

// ImportOptions say how an import treats what is already there.
type ImportOptions struct {
	// Collected are the item types that have a collector. Items of other types are kept and remarked. Nil stands for
	// active agent and trapper items.
	Collected []model.ItemType
	// DeleteMissing removes the items, discovery rules and triggers that a host or template of the file has in the
	// database but no more in the file.
	DeleteMissing bool
	// DeleteLinks and DeleteValueMaps end the links to templates, and delete the value maps, that a host or template has in the database but
	// no more in the file.
	DeleteLinks, DeleteValueMaps bool
	// Exact makes hosts and templates as the file has them: besides DeleteMissing it ends memberships in groups, links to templates and
	// value maps that the file does not name.
	Exact bool
	// Builtin says that the file ships with the program: templates of it that were changed here, or whose name another template has, are left
	// alone and named in Report.Kept.
	Builtin bool
	// Strict takes the file whole or not at all: when anything of it would not be taken the error is a *RefusedError and nothing is changed.
	Strict bool
	// Only, if it has a kind, is the one host or template that the file may hold; with a name that one must exist. Else the error is ErrFile.
	Only OwnerName
	// Create refuses hosts and templates that exist.
	Create bool
	// Plan changes nothing: the report says what would be changed.
	Plan bool
	// Known, if not nil, says whether a host has an item that the configuration does not define: discovered and declared ones. With it
	// triggers that name an item which does not exist are remarked.
	Known func(host, key string) bool
	// drafted is the host of Draft.
	drafted string
	// CheckSteps, if not nil, returns the first preprocessing step, from 0, that cannot work and why; steps with user macros are not asked for.
	CheckSteps func(steps []model.Step, t model.ValueType) (int, error)
	// CheckKey, if not nil, returns why nobody understands the key of an item of a type; keys with macros are not asked for. With it items are looked
	// at closely: those that have nothing to do are not taken, those without interface, master item or an item of their formula are remarked.
	CheckKey func(t model.ItemType, key string) error
}

// OwnerName names a host or a template.
type OwnerName struct {
	// Kind is host or template; empty for none.
	Kind, Name string
}

// ErrFile says that a file is not what was asked for.
var ErrFile = errors.New("not the file that is expected here")

// only checks that a file holds nothing but the one owner.
func (x *export) only(want OwnerName) error {
	list := slices.Concat(x.hosts, x.templates)
	switch {
	case want.Kind == "":
		return nil
	case len(list) != 1 || list[0].kind.String() != want.Kind:
		return fmt.Errorf("%w: expected one %s, found %d hosts and %d templates", ErrFile, want.Kind, len(x.hosts), len(x.templates))
	case want.Name != "" && list[0].technical != want.Name:
		return fmt.Errorf("%w: it is of %s %s, expected %s; the technical name cannot be changed, the visible name can", ErrFile, want.Kind, list[0].technical, want.Name)
	}
	return nil
}

// foreign remarks the triggers and graphs that belong to another host than the only one.
func (x *export) foreign(r *Report, want OwnerName) {
	if want.Kind == "" {
		return
	}
	for _, t := range x.triggers {
		r.remark("trigger "+t.name, t.line, "expression: the first item in it is not of this %s, to which the trigger would not belong; not taken", want.Kind)
	}
	for _, g := range x.graphs {
		r.remark("graph "+g.name, g.line, "its first item is not of this %s; not taken", want.Kind)
	}
	x.triggers, x.graphs = nil, nil
}

// RefusedError says that a file was not taken because a part of it cannot be; the report's remarks say which.
type RefusedError struct{ Report *Report }

// Error implements error.
func (e *RefusedError) Error() string {
	for _, r := range e.Report.Remarks {
		if r.Refused {
			return r.Path + ": " + r.Reason
		}
	}
	return e.Report.File + " is not taken"
}

// errPlanned ends the transaction of a plan.
var errPlanned = errors.New("planned only")

// Import takes one Zabbix export (YAML or JSON, versions 5.4 to 7.4) in one transaction. name is what the report calls
// the file. Objects are matched by uuid, else hosts and templates by their technical name, items and rules by key, and
// triggers by name and expression; importing the same file again changes nothing. Groups and linked templates of an
// existing object are added to, all else is replaced.
//
// The error is for files that cannot be read as an export, and for failures of the database; then nothing was changed.
// A mistake in one object leaves that object out and is a remark in the report.
func (d *DB) Import(ctx context.Context, name string, src []byte, o ImportOptions) (*Report, error) {
	if o.Plan && len(src) > maxPlanInPlaceBytes {
		return d.planOnCopy(ctx, name, src, o)
	}
	return d.importThen(ctx, name, src, o, nil)
}

// importThen imports, and before the transaction ends calls then, if not nil.
func (d *DB) importThen(ctx context.Context, name string, src []byte, o ImportOptions, then func(*change) error) (*Report, error) {
	in, err := readIncoming(name, src, o)
	if err != nil {
		return nil, err
	}
	err = d.change(ctx, "import "+name, func(c *change) error {
		if err := in.write(ctx, c, then); err != nil {
			return err
		}
		if o.Plan || in.options.Strict && in.report.lost() {
			return errPlanned
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPlanned) {
		return nil, err
	}
	if err := in.finish(); err != nil {
		return nil, err
	}
	if !o.Plan {
		d.imports.Inc()
	}
	return in.report, nil
}

// Draft is Import with Plan, and returns how a host would be configured then; nil when there would be no such host.
func (d *DB) Draft(ctx context.Context, src []byte, o ImportOptions, host string) (*Report, *model.HostConfig, error) {
	o.Plan, o.drafted = true, host
	var drafted *model.HostConfig
	r, err := d.importThen(ctx, "draft", src, o, func(c *change) error {
		id, err := c.id(ctx, "SELECT id FROM hosts WHERE host = ?", host)
		if err != nil || id == 0 {
			return err
		}
		defs, err := d.readDefinitions(ctx, c.tx)
		if err != nil {
			return err
		}
		list, err := readHosts(ctx, c.tx, defs, []model.HostID{model.HostID(id)})
		if err == nil && len(list) == 1 {
			drafted = list[0]
		}
		return err
	})
	return r, drafted, err
}

// ImportBuiltin imports all YAML files of a folder of templates that ship with the program. They own what they define:
// what a newer version no longer has is deleted. Those that were changed here, or replaced by others of their name, are left alone. It returns a report for each file.
func (d *DB) ImportBuiltin(ctx context.Context, files fs.FS) ([]*Report, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("import built-in templates: %w", err)
	}
	var reports []*Report
	for _, name := range names {
		src, err := fs.ReadFile(files, name)
		if err != nil {
			return reports, fmt.Errorf("import built-in templates: %w", err)
		}
		r, err := d.Import(ctx, name, src, ImportOptions{DeleteMissing: true, Builtin: true, Collected: []model.ItemType{model.PassiveAgent, model.ActiveAgent, model.Trapper, model.Internal}})
		if err != nil {
			return reports, err
		}
		if r.Changed() {
			d.log.Info("imported a built-in template", "file", name)
		}
		for _, m := range r.Remarks {
			d.log.Warn("built-in template", "file", name, "line", m.Line, "object", m.Path, "reason", m.Reason)
		}
		reports = append(reports, r)
	}
	return reports, nil
}

type ownerKey struct {
	kind ownerKind
	name string
}

// importer writes one export.
type importer struct {
	*change
	report     *Report
	options    ImportOptions
	groupUUIDs map[string]string
	// owners are the ids of the file's hosts and templates.
	owners map[ownerKey]int64
	// unchanged are those of them whose own row was as in the file.
	unchanged map[ownerKey]bool
	// replaced are templates of the file that take the place of one that ships with the program.
	replaced map[ownerKey]bool
	// affected are the templates that changed, relink the hosts whose links did.
	affected map[model.TemplateID]bool
	relink   map[model.HostID]bool
	depends  []pendingDependency
	// owning is the technical name of the host or template whose contents are written.
	owning string
}

type pendingDependency struct {
	trigger int64
	// unchanged is shared by the dependencies of one trigger: whether it was counted as unchanged so far.
	unchanged *bool
	kind      string
	owner     owner
	// technical is the owner's name, name the trigger's.
	technical, name string
	on              dependDef
	path            string
}

// owner is a row that has items and triggers.
type owner struct {
	kind ownerKind
	id   int64
}

// columns returns host_id and template_id of a row that belongs to the owner.
func (o owner) columns() (host, template any) {
	if o.kind == hostOwner {
		return o.id, nil
	}
	return nil, o.id
}

// where is the condition on rows of the owner; it has one parameter, the owner's id.
func (o owner) where() string {
	if o.kind == hostOwner {
		return "host_id = ?"
	}
	return "template_id = ?"
}

func (i *importer) run(ctx context.Context, x *export) error {
	if err := i.globalMacros(ctx, x.globalMacros); err != nil {
		return err
	}
	if err := i.regexps(ctx, x.regexps); err != nil {
		return err
	}
	if err := i.groups(ctx, x); err != nil {
		return err
	}
	for _, list := range [][]*ownerDef{x.templates, x.hosts} {
		for _, o := range list {
			if err := i.owner(ctx, o); err != nil {
				return fmt.Errorf("%s %s: %w", o.kind, o.technical, err)
			}
		}
	}
	if err := i.links(ctx, x); err != nil {
		return err
	}
	for _, list := range [][]*ownerDef{x.templates, x.hosts} {
		for _, o := range list {
			if err := i.contents(ctx, o); err != nil {
				return fmt.Errorf("%s %s: %w", o.kind, o.technical, err)
			}
		}
	}
	if err := i.loose(ctx, x.triggers); err != nil {
		return err
	}
	if err := i.looseGraphs(ctx, x); err != nil {
		return err
	}
	if err := i.dependencies(ctx); err != nil {
		return err
	}
	hosts, err := i.hostsOf(ctx, i.affected)
	if err != nil {
		return err
	}
	for _, h := range hosts {
		i.touch(h)
		i.relink[h] = true
	}
	i.templates = i.templates || len(i.affected) > 0
	relink := slices.Sorted(maps.Keys(i.relink))
	if i.options.Plan {
		// A template may be linked to thousands of hosts, and what they inherit is not looked at.
		drafted, err := i.id(ctx, "SELECT id FROM hosts WHERE host = ?", i.options.drafted)
		if err != nil {
			return err
		}
		relink = slices.DeleteFunc(relink, func(h model.HostID) bool {
			return h != model.HostID(drafted) && !slices.ContainsFunc(x.hosts, func(o *ownerDef) bool { return i.owners[ownerKey{hostOwner, o.technical}] == int64(h) })
		})
	}
	return i.inherit(ctx, relink)
}

// mark notes that something of an owner changed.
func (i *importer) mark(o owner) {
	if o.kind == hostOwner {
		i.touch(model.HostID(o.id))
		return
	}
	i.affected[model.TemplateID(o.id)] = true
}

// groups creates the groups that the file lists. Exports before 6.2 do not tell host groups from template groups; theirs
// are created when a host or a template is put into them.
func (i *importer) groups(ctx context.Context, x *export) error {
	for _, g := range x.groups {
		i.groupUUIDs[g.name] = g.uuid
		if g.host && g.template {
			continue
		}
		kind := hostGroup
		if g.template {
			kind = templateGroup
		}
		_, made, err := i.group(ctx, kind, g.name, g.uuid)
		if err != nil {
			return err
		}
		what := unchanged
		if made {
			what = created
		}
		i.report.count(kindGroup, what)
		i.report.object(kindGroup, "", g.name, what)
	}
	return nil
}

// The kinds of groups in object_groups.
const (
	hostGroup     = 0
	templateGroup = 1
)

// group returns the id of a group, which it creates if need be. Groups are matched by name.
func (c *change) group(ctx context.Context, kind int, name, uuid string) (int64, bool, error) {
	id, err := c.id(ctx, "SELECT id FROM object_groups WHERE kind = ? AND name = ?", kind, name)
	if err != nil || id != 0 {
		return id, false, err
	}
	id, err = c.insert(ctx, "INSERT INTO object_groups (kind, name, uuid) VALUES (?, ?, ?)", kind, name, uuid)
	return id, true, err
}
