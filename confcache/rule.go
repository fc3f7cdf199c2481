package confcache

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tidemark/expr"
	"tidemark/model"
)

// defaultLifetime is for discovery rules whose lifetime cannot be read: rather too long than too short.
const defaultLifetime = 30 * 24 * time.Hour

// rule expands the macros of a discovery rule: in conditions, in what overrides set, and in lifetimes. A lifetime that cannot be used is a
// fault, and the object is kept longer.
func (h *hostBuilder) rule(r model.Rule) model.Rule {
	r.Filter = h.filter(r.Key, r.Filter)
	if len(r.Overrides) > 0 {
		r.Overrides = slices.Clone(r.Overrides)
		for i := range r.Overrides {
			r.Overrides[i] = h.override(r.Key, r.Overrides[i])
		}
	}
	h.lifetime(r.Key, "lifetime", &r.Deletes)
	h.lifetime(r.Key, "enabled_lifetime", &r.Disables)
	return r
}

func (h *hostBuilder) filter(key string, f model.Filter) model.Filter {
	uses := func(c model.Condition) bool {
		return strings.Contains(c.Value, "{$") || strings.HasPrefix(c.Value, "@")
	}
	if !slices.ContainsFunc(f.Conditions, uses) {
		return f
	}
	f.Conditions = slices.Clone(f.Conditions)
	for i := range f.Conditions {
		var err error
		if f.Conditions[i].Value, err = h.macros.expand(f.Conditions[i].Value); err != nil {
			h.fault(key, fmt.Errorf("filter on %s: %w", f.Conditions[i].Macro, err))
		}
		f.Conditions[i].Value = h.next.regexps.of(f.Conditions[i].Value)
	}
	return f
}

func (h *hostBuilder) override(key string, o model.Override) model.Override {
	o.Filter = h.filter(key, o.Filter)
	o.Operations = slices.Clone(o.Operations)
	for i := range o.Operations {
		op := &o.Operations[i]
		op.Value, _ = h.macros.expand(op.Value) // an unknown macro fits no name
		if op.Operator == model.NameMatches || op.Operator == model.NameMatchesNot {
			op.Value = h.next.regexps.of(op.Value)
		}
	}
	return o
}

func (h *hostBuilder) lifetime(key, what string, l *model.Lifetime) {
	if l.Kind != model.LifetimeAfter {
		return
	}
	text, err := h.macros.expand(l.Text)
	d, ok := expr.ParseRetention(text)
	switch {
	case err != nil:
	case !ok:
		err = fmt.Errorf("%s %q; expected 0 or up to 25 years, such as 7d", what, text)
	case d == 0:
		l.Kind = model.LifetimeImmediately
		return
	default:
		l.After = d
		return
	}
	h.fault(key, err)
	l.After = defaultLifetime
}
