package confdb

import (
	"context"
	"errors"
	"slices"
	"strings"

	"tidemark/expr"
	"tidemark/internal/schedule"
)

// checkItem remarks what is taken and cannot work: intervals and times that cannot be read, and steps. Texts with user macros are not looked at,
// because their values are the hosts'.
func (d *decoder) checkItem(n *node, f *itemFields) {
	place := func(field string) int {
		if at := n.field(field); at != nil {
			return at.line
		}
		return n.line
	}
	if err := checkDelay(f.delay); err != nil {
		d.report.remark(d.path, place("delay"), "delay: %v; kept, but not collected", err)
	}
	for _, x := range []struct{ field, text string }{{"history", f.history}, {"trends", f.trends}} {
		if _, ok := expr.ParseRetention(x.text); ok || hasMacro(x.text) {
			continue
		}
		d.report.remark(d.path, place(x.field), "%s %q: expected 0 or up to 25 years, such as 31d; kept, but not collected", x.field, x.text)
	}
	if d.checkSteps == nil || f.steps == "" || hasMacro(f.steps) {
		return
	}
	steps, err := unpackSteps(f.steps)
	if err != nil {
		return // pack wrote it
	}
	at, err := d.checkSteps(steps, f.valueType)
	if err == nil {
		return
	}
	line := n.line
	if list := n.field("preprocessing"); list != nil && at < len(list.kids) {
		line = list.kids[at].line
	}
	d.report.remark(d.path, line, "preprocessing: %v; kept, but the item will be not supported", err)
}

func hasMacro(text string) bool { return strings.Contains(text, "{$") || strings.Contains(text, "{#") }

// checkDelay looks at an update interval with the eyes of the collectors, at all parts but those with macros.
func checkDelay(delay string) error {
	parts := slices.DeleteFunc(strings.Split(delay, ";"), hasMacro)
	if _, err := schedule.Parse(strings.Join(parts, ";")); err != nil && !errors.Is(err, schedule.ErrZero) {
		return err
	}
	return nil
}

// checkItems remarks items that are made of items which are not there, and triggers that name such. The latter is for plans and for changes of
// single objects; a file may come in parts.
func (i *importer) checkItems(ctx context.Context, x *export) error {
	for _, o := range slices.Concat(x.templates, x.hosts) {
		if i.options.CheckKey != nil {
			if err := i.checkSources(ctx, o); err != nil {
				return err
			}
		}
		if i.options.Known == nil {
			continue
		}
		for n := range o.triggers {
			if err := i.checkTrigger(ctx, o, &o.triggers[n]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (i *importer) checkTrigger(ctx context.Context, o *ownerDef, t *triggerDef) error {
	seen := make(map[string]bool)
	for _, text := range []string{t.expression, t.recovery} {
		refs, err := itemRefs(text)
		if err != nil {
			continue // the decoder has refused it
		}
		for _, r := range refs {
			host, key := text[r.hostAt:r.hostEnd], text[r.keyAt:r.keyEnd]
			if seen[host+"\x00"+key] || hasMacro(key) || strings.Contains(host, "{") {
				continue
			}
			seen[host+"\x00"+key] = true
			there, err := i.hasItem(ctx, host, key)
			if err != nil {
				return err
			}
			if !there {
				i.report.remark(o.kind.String()+" "+o.technical+", trigger "+t.name, t.line,
					"expression: there is no item %s on %s; kept, but the state of the trigger will be unknown", key, host)
			}
		}
	}
	return nil
}

// hasItem reports whether a host or template has an item, its own or one that it inherits.
func (i *importer) hasItem(ctx context.Context, name, key string) (bool, error) {
	w, err := i.ownerNamed(ctx, name)
	if err != nil {
		return false, err
	}
	if w.id != 0 && w.kind == hostOwner {
		id, err := i.id(ctx, "SELECT i.id FROM items i LEFT JOIN items d ON d.id = i.def_id WHERE i.host_id = ? AND i.rule_id IS NULL AND coalesce(d.key, i.key) = ?",
			w.id, key)
		if err != nil || id != 0 {
			return id != 0, err
		}
	}
	if w.id == 0 || w.kind == hostOwner {
		return i.options.Known != nil && i.options.Known(name, key), nil
	}
	chain, err := i.ancestors(ctx, []int64{w.id})
	for _, t := range chain {
		if err != nil {
			break
		}
		var id int64
		if id, err = i.id(ctx, "SELECT id FROM items WHERE template_id = ? AND rule_id IS NULL AND key = ?", t, key); id != 0 {
			return true, nil
		}
	}
	return false, err
}
