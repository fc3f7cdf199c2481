package confdb

import (
	"context"
	"database/sql"
	"fmt"
)

// A template that ships with the program is noted in meta under builtinMark and its uuid: 0 as it was shipped, 1 once somebody changed it.
// Only those that are as they were shipped are brought up to date at a start, and give way whole to another of the same name.
const builtinMark = "builtin template "

// builtinState returns the note on a template, and whether there is one.
func (c *change) builtinState(ctx context.Context, uuid string) (state int64, known bool, err error) {
	err = c.query(ctx, func(r *sql.Rows) error {
		known = true
		return r.Scan(&state)
	}, "SELECT value FROM meta WHERE name = ?", builtinMark+uuid)
	return state, known, err
}

// keepOthers takes those templates out of a file that ships with the program that somebody has changed here, or whose name another
// template has, and notes the rest as shipped. The report names what is kept.
func (i *importer) keepOthers(ctx context.Context, x *export) error {
	var taken []*ownerDef
	for _, o := range x.templates {
		reason, err := i.whyKept(ctx, o)
		if err != nil {
			return err
		}
		if reason == "" {
			taken = append(taken, o)
			continue
		}
		i.report.Kept = append(i.report.Kept, fmt.Sprintf("template %s %s", o.technical, reason))
	}
	if len(taken) < len(x.templates) {
		x.templates, x.groups, x.triggers, x.graphs = taken, nil, nil, nil
	}
	for _, o := range taken {
		state, known, err := i.builtinState(ctx, o.uuid)
		if err == nil && (!known || state != 0) {
			err = i.exec(ctx, "INSERT INTO meta (name, value) VALUES (?, 0) ON CONFLICT (name) DO UPDATE SET value = 0", builtinMark+o.uuid)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// whyKept is why a template that ships with the program does not replace what is here; empty when it does.
func (i *importer) whyKept(ctx context.Context, o *ownerDef) (string, error) {
	id, old, err := i.findOwner(ctx, o)
	if err != nil || id == 0 {
		return "", err
	}
	if old.uuid != o.uuid {
		return "was imported or made here under this name", nil
	}
	state, _, err := i.builtinState(ctx, o.uuid)
	if err != nil || state == 0 {
		return "", err
	}
	return "was changed here", nil
}

// replaces reports whether a template takes the place of one that ships with the program and has its name, old. Then nothing of that one may
// stay: its triggers would name macros that are gone.
func (i *importer) replaces(ctx context.Context, o *ownerDef, old string) (bool, error) {
	if i.options.Builtin || o.kind != templateOwner || old == "" || old == o.uuid {
		return false, nil
	}
	_, known, err := i.builtinState(ctx, old)
	return known, err
}

// replaceWhole notes that a template takes the place of one that ships with the program.
func (i *importer) replaceWhole(o *ownerDef) {
	i.replaced[ownerKey{o.kind, o.technical}] = true
	i.report.remark(o.kind.String()+" "+o.technical, o.line,
		"replaces the template of this name that comes with the program, with its items, triggers and macros; it stays so when the server starts again")
}

// noteChanged notes that templates which ship with the program are not as they were shipped any more.
func (i *importer) noteChanged(ctx context.Context) error {
	if i.options.Builtin || i.options.Plan {
		return nil
	}
	for id := range i.affected {
		err := i.exec(ctx, "UPDATE meta SET value = 1 WHERE name IN (SELECT '"+builtinMark+"' || uuid FROM templates WHERE id = ?)", int64(id))
		if err != nil {
			return err
		}
	}
	return nil
}

// whole returns the options for the contents of a host or template.
func (i *importer) whole(o *ownerDef) ImportOptions {
	options := i.options
	if i.replaced[ownerKey{o.kind, o.technical}] {
		options.DeleteMissing, options.DeleteValueMaps, options.DeleteLinks = true, true, true
	}
	return options
}
