package zabbix

import (
	"maps"
	"regexp"
	"slices"
	"strconv"

	"tidemark/expr"
	"tidemark/model"
)

// ruleInParams finds the host or template of the rule that ruleid names.
func (c *call) ruleInParams(p *params) (*model.Host, error) {
	p.require("ruleid")
	if p.failed != nil {
		return nil, p.failed
	}
	h, _, err := c.ownRule(p.text("ruleid"))
	return h, err
}

// ownPrototype finds a prototype that the caller may change, and its host or template.
func (c *call) ownPrototype(id string, of func(*part) []part) (*model.Host, *part, error) {
	n, err := strconv.ParseUint(id, 10, 64)
	h, ok := c.ownerOfPart(n)
	if err != nil || !ok {
		return nil, nil, errNotAllowed
	}
	if h, err = c.editable(h.ID); err != nil {
		return nil, nil, err
	}
	for _, r := range c.rulesOf(h) {
		for _, p := range of(r) {
			switch {
			case p.id != n:
			case p.inherited != 0:
				return nil, nil, invalidParams("Cannot change templated prototype %q: change it on its template.", p.text("name", ""))
			default:
				return h, &p, nil
			}
		}
	}
	return nil, nil, errNotAllowed
}

// holderOfPrototype finds the host or template of a prototype that the caller may change.
func (c *call) holderOfPrototype(of func(*part) []part) func(id string) (*model.Host, error) {
	return func(id string) (*model.Host, error) {
		h, _, err := c.ownPrototype(id, of)
		return h, err
	}
}

// fillItemPrototype is fillItem with what only prototypes have.
func (c *call) fillItemPrototype(p *params, item object, h *model.Host, o *owner) error {
	p.fillNumbers(item, map[string][]string{"discover": discoverNames})
	p.accept("hostid", "ruleid")
	return c.fillItem(p, item, h, o)
}

// discoveryMacro is what makes the keys of a prototype's items different from one another.
var discoveryMacro = regexp.MustCompile(`\{#[A-Z0-9_.]+\}`)

func createItemPrototypes(c *call) ([]byte, error) {
	return c.onHosts("itemids", c.ruleInParams, func(p *params, o *owner, h *model.Host) (string, error) {
		for _, name := range []string{"name", "key_", "type", "value_type"} {
			p.require(name)
		}
		_, rule, err := c.ownRule(p.text("ruleid"))
		if err != nil {
			return "", err
		}
		if id := p.text("hostid"); id != "" && id != formatID(h.ID) {
			return "", errNotAllowed
		}
		rules, at, err := o.rule(rule.text("key", ""))
		if err != nil {
			return "", err
		}
		key := p.text("key_")
		if !discoveryMacro.MatchString(key) {
			return "", invalidParams(`Invalid parameter "/%skey_": must contain at least one low-level discovery macro.`, p.place)
		}
		list := objectsIn(rules[at], "item_prototypes")
		if slices.ContainsFunc(list, func(i object) bool { return textOf(i, "key", "") == key }) {
			return "", invalidParams("An item prototype with key %q already exists on the %s %q.", key, kindOf(h), h.Host)
		}
		item := object{"key": key}
		if err := c.fillItemPrototype(p, item, h, o); err != nil {
			return "", err
		}
		rules[at]["item_prototypes"] = append(list, item)
		return formatID(partID(h, itemPrototypeName(rule.text("key", ""), key))), o.set(rulesOfDocument, rules)
	})
}

func updateItemPrototypes(c *call) ([]byte, error) {
	return c.updateOnHosts("itemids", "itemid", c.holderOfPrototype(c.itemPrototypes), func(p *params, o *owner, h *model.Host) (string, error) {
		id := p.text("itemid")
		_, r, err := c.ownPrototype(id, c.itemPrototypes)
		if err != nil {
			return "", err
		}
		key := r.text("key", "")
		if p.keepsName("key_", key) != nil {
			return "", invalidParams(`Invalid parameter "/%skey_": the key stays, because the values of its items belong to it; make another prototype.`, p.place)
		}
		rules, at, err := o.rule(r.rule.text("key", ""))
		if err != nil {
			return "", err
		}
		list := objectsIn(rules[at], "item_prototypes")
		i := slices.IndexFunc(list, func(i object) bool { return textOf(i, "key", "") == key })
		if i < 0 {
			return "", errNotAllowed
		}
		if err := c.fillItemPrototype(p, list[i], h, o); err != nil {
			return "", err
		}
		return id, o.set(rulesOfDocument, rules)
	})
}

// deleteItemPrototypes deletes item prototypes, what was made of them, and the prototypes that take their values from them.
func deleteItemPrototypes(c *call) ([]byte, error) {
	return c.deleteEach("prototypeids", c.holderOfPrototype(c.itemPrototypes), func(id string, o *owner, _ *model.Host) error {
		_, r, err := c.ownPrototype(id, c.itemPrototypes)
		if err != nil {
			return err
		}
		rules, at, err := o.rule(r.rule.text("key", ""))
		if err != nil {
			return err
		}
		rules[at]["item_prototypes"] = withoutItem(objectsIn(rules[at], "item_prototypes"), r.text("key", ""))
		return o.set(rulesOfDocument, rules)
	})
}

// takeTriggerPrototype takes a trigger prototype out of its rule and returns it.
func takeTriggerPrototype(rule object, r *part) object {
	var found object
	take := func(of object) {
		list := slices.DeleteFunc(objectsIn(of, "trigger_prototypes"), func(t object) bool {
			if found != nil || triggerPrototypeName("", t) != triggerPrototypeName("", r.object) {
				return false
			}
			found = t
			return true
		})
		of["trigger_prototypes"] = list
		if len(list) == 0 {
			delete(of, "trigger_prototypes")
		}
	}
	for _, item := range objectsIn(rule, "item_prototypes") {
		take(item)
	}
	take(rule)
	return found
}

// ruleOfExpression finds the rule whose item prototypes an expression names: ruleid, or the first rule of its host that has one of them.
func (c *call) ruleOfExpression(p *params, h *model.Host) (*part, error) {
	if id := p.text("ruleid"); id != "" {
		_, r, err := c.ownRule(id)
		return r, err
	}
	probe := part{object: object{"expression": p.text("expression")}}
	for _, r := range c.rulesOf(h) {
		for _, i := range c.itemPrototypes(r) {
			if r.inherited == 0 && probe.names(h, i.text("key", "")) {
				return r, nil
			}
		}
	}
	return nil, invalidParams("Trigger prototype %q must contain at least one item prototype.", p.text("description"))
}

// fillTriggerPrototype is fillTrigger with what only prototypes have.
func (c *call) fillTriggerPrototype(p *params, trigger object, rule *part) error {
	p.fillNumbers(trigger, map[string][]string{"discover": discoverNames})
	p.accept("ruleid")
	if given, ok := p.children("dependencies"); ok {
		known := c.triggerPrototypes(rule)
		dependencies := []object{}
		for _, one := range given {
			for id := range one.ids("triggerid") {
				i := slices.IndexFunc(known, func(t part) bool { return t.id == id })
				if i < 0 {
					return errNotAllowed
				}
				on := object{"name": known[i].text("name", ""), "expression": known[i].text("expression", "")}
				if text := known[i].text("recovery_expression", ""); text != "" {
					on["recovery_expression"] = text
				}
				dependencies = append(dependencies, on)
			}
			p.keep(one.done())
		}
		trigger["dependencies"] = dependencies
		delete(p.object, "dependencies")
	}
	if err := c.fillTrigger(p, trigger); err != nil {
		return err
	}
	prototypes := c.itemPrototypes(rule)
	return c.checkItems(p, func(ref expr.Ref) bool {
		return ref.Host == rule.holder.Host && slices.ContainsFunc(prototypes, func(i part) bool { return i.text("key", "") == ref.Key })
	})
}

func createTriggerPrototypes(c *call) ([]byte, error) {
	return c.onHosts("triggerids", c.hostOfExpression, func(p *params, o *owner, h *model.Host) (string, error) {
		rule, err := c.ruleOfExpression(p, h)
		if err != nil {
			return "", err
		}
		trigger := object{}
		if err := c.fillTriggerPrototype(p, trigger, rule); err != nil {
			return "", err
		}
		key := rule.text("key", "")
		rules, at, err := o.rule(key)
		if err != nil {
			return "", err
		}
		name := triggerPrototypeName(key, trigger)
		named := func(t object) bool { return triggerPrototypeName(key, t) == name }
		if slices.ContainsFunc(c.triggerPrototypes(rule), func(t part) bool { return t.id == partID(h, name) }) || slices.ContainsFunc(objectsIn(rules[at], "trigger_prototypes"), named) {
			return "", invalidParams("Trigger prototype %q already exists on %q.", p.text("description"), h.Host)
		}
		rules[at]["trigger_prototypes"] = append(objectsIn(rules[at], "trigger_prototypes"), trigger)
		return formatID(partID(h, name)), o.set(rulesOfDocument, rules)
	})
}

func updateTriggerPrototypes(c *call) ([]byte, error) {
	return c.updateOnHosts("triggerids", "triggerid", c.holderOfPrototype(c.triggerPrototypes), func(p *params, o *owner, h *model.Host) (string, error) {
		_, r, err := c.ownPrototype(p.text("triggerid"), c.triggerPrototypes)
		if err != nil {
			return "", err
		}
		key := r.rule.text("key", "")
		rules, at, err := o.rule(key)
		if err != nil {
			return "", err
		}
		trigger := takeTriggerPrototype(rules[at], r)
		if trigger == nil {
			return "", errNotAllowed
		}
		before := maps.Clone(trigger)
		if err := c.fillTriggerPrototype(p, trigger, r.rule); err != nil {
			return "", err
		}
		for _, item := range append(objectsIn(rules[at], "item_prototypes"), rules[at]) {
			for _, t := range objectsIn(item, "trigger_prototypes") {
				renameDependency(t, before, trigger)
			}
		}
		rules[at]["trigger_prototypes"] = append(objectsIn(rules[at], "trigger_prototypes"), trigger)
		return formatID(partID(h, triggerPrototypeName(key, trigger))), o.set(rulesOfDocument, rules)
	})
}

func deleteTriggerPrototypes(c *call) ([]byte, error) {
	return c.deleteEach("triggerids", c.holderOfPrototype(c.triggerPrototypes), func(id string, o *owner, _ *model.Host) error {
		_, r, err := c.ownPrototype(id, c.triggerPrototypes)
		if err != nil {
			return err
		}
		rules, at, err := o.rule(r.rule.text("key", ""))
		if err != nil {
			return err
		}
		gone := takeTriggerPrototype(rules[at], r)
		for _, item := range append(objectsIn(rules[at], "item_prototypes"), rules[at]) {
			for _, t := range objectsIn(item, "trigger_prototypes") {
				dropDependency(t, gone)
			}
		}
		return o.set(rulesOfDocument, rules)
	})
}
