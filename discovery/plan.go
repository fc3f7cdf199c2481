package discovery

import (
	"slices"
	"strings"

	"tidemark/internal/macrofunc"
	"tidemark/internal/pcre"
	"tidemark/model"
)

// plan is a compiled rule.
type plan struct {
	rule      *model.Rule
	paths     []macroPath
	filter    *filter
	overrides []override
}

type override struct {
	stops      bool
	filter     *filter
	operations []operation
}

type operation struct {
	*model.Operation
	re *pcre.Regexp
}

func compile(rule *model.Rule) (*plan, error) {
	p := &plan{rule: rule}
	var err error
	if p.paths, err = compilePaths(rule.Paths); err != nil {
		return nil, err
	}
	if p.filter, err = compileFilter(&rule.Filter); err != nil {
		return nil, err
	}
	for i := range rule.Overrides {
		o := &rule.Overrides[i]
		c := override{stops: o.Stops}
		if c.filter, err = compileFilter(&o.Filter); err != nil {
			return nil, refuse("override %s: %v", o.Name, err)
		}
		for n := range o.Operations {
			op := operation{Operation: &o.Operations[n]}
			if (op.Operator == model.NameMatches || op.Operator == model.NameMatchesNot) && op.Value != "" {
				if op.re, err = pcre.Compile(op.Value); err != nil {
					return nil, refuse("override %s: %v", o.Name, err)
				}
			}
			c.operations = append(c.operations, op)
		}
		p.overrides = append(p.overrides, c)
	}
	return p, nil
}

// instances returns the objects that an element asks for; none when the filter does not take it.
func (p *plan) instances(row map[string]string) ([]model.Instance, error) {
	ok, err := p.filter.takes(row)
	if err != nil || !ok {
		return nil, err
	}
	active, err := p.active(row)
	if err != nil {
		return nil, err
	}
	list := make([]model.Instance, 0, len(p.rule.Prototypes))
	for i := range p.rule.Prototypes {
		proto := &p.rule.Prototypes[i]
		change, err := changeOf(proto, active, row)
		if err != nil {
			return nil, err
		}
		discovers := proto.Discovers
		if change != nil && change.Discover != nil {
			discovers = *change.Discover
		}
		if !discovers || proto.Kind == model.GraphPrototype {
			continue // nothing is made of graph prototypes, they are kept for export
		}
		if change != nil {
			change.Discover = nil
		}
		list = append(list, model.Instance{Prototype: proto.ID, Macros: row, Change: change})
	}
	return list, nil
}

// active returns the operations of the overrides that take an element.
func (p *plan) active(row map[string]string) ([]*operation, error) {
	var active []*operation
	for i := range p.overrides {
		o := &p.overrides[i]
		ok, err := o.filter.takes(row)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		for n := range o.operations {
			active = append(active, &o.operations[n])
		}
		if o.stops {
			break
		}
	}
	return active, nil
}

// changeOf joins what operations change of a prototype; later ones go before earlier ones. Nil is for nothing.
func changeOf(proto *model.Prototype, active []*operation, row map[string]string) (*model.Change, error) {
	var change *model.Change
	name := ""
	for _, op := range active {
		if op.Kind != proto.Kind {
			continue
		}
		if name == "" {
			name = Expand(proto.Name, row)
		}
		ok, err := op.fits(name)
		if err != nil {
			return nil, refuse("an override: %v", err)
		}
		if !ok {
			continue
		}
		if change == nil {
			change = &model.Change{}
		}
		merge(change, &op.Change)
	}
	return change, nil
}

// fits compares a name. An empty value fits every name, as an operation without condition in Zabbix.
func (op *operation) fits(name string) (bool, error) {
	if op.Value == "" {
		return true, nil
	}
	switch op.Operator {
	case model.NameDiffers:
		return name != op.Value, nil
	case model.NameContains:
		return strings.Contains(name, op.Value), nil
	case model.NameContainsNot:
		return !strings.Contains(name, op.Value), nil
	case model.NameMatches:
		return op.re.Match([]byte(name))
	case model.NameMatchesNot:
		ok, err := op.re.Match([]byte(name))
		return !ok && err == nil, err
	}
	return name == op.Value, nil
}

func merge(into, from *model.Change) {
	if from.Discover != nil {
		into.Discover = from.Discover
	}
	if from.Enabled != nil {
		into.Enabled = from.Enabled
	}
	if from.Severity != nil {
		into.Severity = from.Severity
	}
	for _, f := range []struct{ to, from *string }{
		{&into.Delay, &from.Delay}, {&into.History, &from.History}, {&into.Trends, &from.Trends}, {&into.Inventory, &from.Inventory},
	} {
		if *f.from != "" {
			*f.to = *f.from
		}
	}
	into.Tags = slices.Concat(into.Tags, from.Tags)
	into.Templates = slices.Concat(into.Templates, from.Templates)
}

// Expand replaces the discovery macros of a text, also those with a macro function. Unknown ones stay.
func Expand(text string, row map[string]string) string {
	return macrofunc.Expand(text, row, nil)
}
