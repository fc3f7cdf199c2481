package server

import (
	"context"
	"slices"

	"tidemark/access"
	"tidemark/confdb"
)

const (
	// maxImportedOwners is of how many hosts and templates an import is written into the audit log with how they were and are; of a larger one it has the
	// counts and the names of what was changed.
	maxImportedOwners = 20
	// maxImportedBytes is how large a file may be for that: it is read twice.
	maxImportedBytes = 4 << 20
)

// importAudit writes into the audit log how the hosts and templates were that an import changes, and how they are after it.
type importAudit struct {
	db     *confdb.DB
	owners []importedOwner
}

// importedOwner is a host or a template; before is nil when it did not exist.
type importedOwner struct {
	name   string
	before any
	kind   string
}

// newImportAudit reads what an import will change. What cannot be read is not in the log: the import itself says what is wrong.
func newImportAudit(ctx context.Context, db *confdb.DB, name string, content []byte, options confdb.ImportOptions) *importAudit {
	a := &importAudit{db: db}
	if len(content) > maxImportedBytes {
		return a
	}
	options.Plan = true
	plan, err := db.Import(ctx, name, content, options)
	if err != nil {
		return a
	}
	for _, o := range plan.Objects {
		owner := o.Owner
		if owner == "" && (o.Kind == "host" || o.Kind == "template") {
			owner = o.Name
		}
		if owner != "" && !slices.ContainsFunc(a.owners, func(k importedOwner) bool { return k.name == owner }) {
			a.owners = append(a.owners, importedOwner{name: owner})
		}
	}
	if len(a.owners) > maxImportedOwners {
		a.owners = nil
	}
	for i := range a.owners {
		a.owners[i].kind, a.owners[i].before = a.read(ctx, a.owners[i].name)
	}
	return a
}

// read returns a host or template as it is now; nil for none of that name. No two have the same technical name.
func (a *importAudit) read(ctx context.Context, name string) (kind string, document any) {
	if d, err := a.db.HostDocument(ctx, name); err == nil {
		return "host", inside(d.JSON, "host")
	}
	if d, err := a.db.TemplateDocument(ctx, name); err == nil {
		return "template", inside(d.JSON, "template")
	}
	return "", nil
}

// done says what was changed.
func (a *importAudit) done(ctx context.Context) {
	for _, o := range a.owners {
		kind, after := a.read(ctx, o.name)
		if kind == "" {
			kind = o.kind
		}
		if o.before != nil || after != nil {
			access.Changed(ctx, kind+" "+o.name, o.before, after)
		}
	}
}
