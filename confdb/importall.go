package confdb

import (
	"context"
	"fmt"
	"slices"

	"tidemark/model"
)

// File is one of several exports that are imported together.
type File struct {
	// Name is what its report calls it.
	Name string
	Src  []byte
	// Options are those of Import without Plan; Strict is taken as set.
	Options ImportOptions
}

// ImportAll is Import of several files, one after the other, in one transaction: all of them are taken whole or, when there is an error, nothing
// is changed. Then, in the same transaction, hosts get the states of the list. The reports are in the order of the files.
func (d *DB) ImportAll(ctx context.Context, files []File, states ...HostState) ([]*Report, error) {
	list := make([]*incoming, 0, len(files))
	for _, f := range files {
		f.Options.Strict, f.Options.Plan = true, false
		in, err := readIncoming(f.Name, f.Src, f.Options)
		if err != nil {
			return nil, err
		}
		list = append(list, in)
	}
	var refused *incoming
	err := d.change(ctx, fmt.Sprintf("import %d files", len(files)), func(c *change) error {
		for _, in := range list {
			if err := in.write(ctx, c, nil); err != nil {
				return err
			}
			if in.report.lost() {
				refused = in
				return errPlanned
			}
		}
		for i := range states {
			if err := c.setHostState(ctx, &states[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if refused != nil {
		return nil, refused.finish()
	}
	if err != nil {
		return nil, err
	}
	reports := make([]*Report, 0, len(list))
	for _, in := range list {
		if err := in.finish(); err != nil {
			return nil, err
		}
		d.imports.Inc()
		reports = append(reports, in.report)
	}
	return reports, nil
}

// incoming is a file that was read and is to be written.
type incoming struct {
	export  *export
	tree    *node
	report  *Report
	options ImportOptions
}

// readIncoming reads a file and checks that it is what the options ask for.
func readIncoming(name string, src []byte, o ImportOptions) (*incoming, error) {
	r := &Report{File: name, Remarks: []Remark{}, Plan: o.Plan}
	x, tree, err := decodeExport(src, r, &o)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", name, err)
	}
	if n := len(x.hosts) + len(x.templates); o.Plan && n > maxPlanOwners {
		return nil, fmt.Errorf("import %s: %w", name, fileError{fmt.Errorf("%d hosts and templates, and a plan takes at most %d; plan the file in parts", n, maxPlanOwners)})
	}
	if o.Exact {
		o.DeleteMissing = true
	}
	x.foreign(r, o.Only)
	// An owner with a mistake was left out; the report says more than that it is missing.
	if !r.lost() {
		if err := x.only(o.Only); err != nil {
			return nil, err
		}
	}
	if list := slices.Concat(x.hosts, x.templates); len(list) == 1 {
		r.Owner = list[0].technical
	}
	return &incoming{x, tree, r, o}, nil
}

// write writes the file, and calls then, if not nil.
func (in *incoming) write(ctx context.Context, c *change, then func(*change) error) error {
	i := &importer{
		change: c, report: in.report, options: in.options, groupUUIDs: make(map[string]string),
		owners: make(map[ownerKey]int64), unchanged: make(map[ownerKey]bool), replaced: make(map[ownerKey]bool), affected: make(map[model.TemplateID]bool), relink: make(map[model.HostID]bool),
	}
	if in.options.Builtin {
		if err := i.keepOthers(ctx, in.export); err != nil {
			return err
		}
	}
	if err := i.run(ctx, in.export); err != nil {
		return err
	}
	if err := i.noteChanged(ctx); err != nil {
		return err
	}
	if err := i.checkItems(ctx, in.export); err != nil {
		return err
	}
	if then != nil {
		return then(c)
	}
	return nil
}

// finish completes the report; the error says that the file is not taken.
func (in *incoming) finish() error {
	in.report.finish(in.tree)
	if in.options.Strict && in.report.lost() {
		return &RefusedError{in.report}
	}
	return nil
}
