package zabbix

import (
	"encoding/json"
	"slices"
	"strconv"

	"tidemark/expr"
	"tidemark/model"
)

// The members of a trigger that are numbers in calls and names in documents, and those that are the same.
var (
	triggerNumbers = map[string][]string{
		"priority": {"NOT_CLASSIFIED", "INFO", "WARNING", "AVERAGE", "HIGH", "DISASTER"}, "status": enabledNames, "type": {"SINGLE", "MULTIPLE"},
		"recovery_mode": {"EXPRESSION", "RECOVERY_EXPRESSION", "NONE"}, "correlation_mode": {"DISABLED", "TAG_VALUE"}, "manual_close": noYes,
	}
	triggerTexts = []string{"expression", "recovery_expression", "event_name", "opdata", "url", "url_name", "correlation_tag"}
)

// triggers reads the triggers of a document: those below their items, and those of several items.
func (o *owner) triggers() (items []object, several []object, err error) {
	if items, err = list[object](o, "items"); err != nil {
		return nil, nil, err
	}
	if text := o.document.Export["triggers"]; text != nil {
		err = json.Unmarshal(text, &several)
	}
	return items, several, err
}

// takeTrigger takes a trigger out of a document and returns it.
func (o *owner) takeTrigger(t *model.Trigger) (object, error) {
	items, several, err := o.triggers()
	if err != nil {
		return nil, err
	}
	same := func(one object) bool { return one["name"] == t.Name }
	count := len(slices.DeleteFunc(slices.Clone(several), func(one object) bool { return !same(one) }))
	for _, item := range items {
		nested, _ := item["triggers"].([]any)
		for _, one := range nested {
			if trigger, ok := one.(object); ok && same(trigger) {
				count++
			}
		}
	}
	if count > 1 { // names are not unique, names with expressions are; macros in them are expanded in t
		same = func(one object) bool { return one["name"] == t.Name && one["expression"] == t.Expression }
	}
	var found object
	several = slices.DeleteFunc(several, func(one object) bool {
		if found != nil || !same(one) {
			return false
		}
		found = one
		return true
	})
	for _, item := range items {
		nested, _ := item["triggers"].([]any)
		nested = slices.DeleteFunc(nested, func(one any) bool {
			trigger, ok := one.(object)
			if found != nil || !ok || !same(trigger) {
				return false
			}
			found = trigger
			return true
		})
		if len(nested) == 0 {
			delete(item, "triggers")
		} else {
			item["triggers"] = nested
		}
	}
	if found == nil {
		return nil, invalidParams("Trigger %q cannot be told from others of its name; change it on the page.", t.Name)
	}
	if err := o.set("items", items); err != nil {
		return nil, err
	}
	return found, o.setTriggers(several)
}

// dropDependencies takes a trigger that is deleted out of those on which others depend.
func (o *owner) dropDependencies(gone object) error {
	items, several, err := o.triggers()
	if err != nil {
		return err
	}
	for _, trigger := range several {
		dropDependency(trigger, gone)
	}
	for _, item := range items {
		nested, _ := item["triggers"].([]any)
		for _, one := range nested {
			if trigger, ok := one.(object); ok {
				dropDependency(trigger, gone)
			}
		}
	}
	if err := o.set("items", items); err != nil {
		return err
	}
	return o.setTriggers(several)
}

// dropDependency ends that a trigger depends on one that is deleted.
func dropDependency(trigger, gone object) {
	list, _ := trigger["dependencies"].([]any)
	list = slices.DeleteFunc(list, func(one any) bool {
		on, ok := one.(object)
		return ok && on["name"] == gone["name"] && on["expression"] == gone["expression"]
	})
	if len(list) == 0 {
		delete(trigger, "dependencies")
	} else {
		trigger["dependencies"] = list
	}
}

// renameDependency has a trigger that depends on another one name it as it is now.
func renameDependency(trigger, before, after object) {
	list, _ := trigger["dependencies"].([]any)
	for _, one := range list {
		on, ok := one.(object)
		if !ok || triggerPrototypeName("", on) != triggerPrototypeName("", before) {
			continue
		}
		for _, member := range []string{"name", "expression", "recovery_expression"} {
			if on[member] = after[member]; textOf(after, member, "") == "" {
				delete(on, member)
			}
		}
	}
}

// setTriggers sets the triggers that are not below an item.
func (o *owner) setTriggers(several []object) error {
	text, err := encodeJSON(several)
	if err != nil {
		return err
	}
	if _, ok := o.before["triggers"]; !ok {
		o.before["triggers"] = o.document.Export["triggers"]
	}
	o.after["triggers"] = text
	o.document.Export["triggers"] = text
	if len(several) == 0 {
		delete(o.document.Export, "triggers")
	}
	return nil
}

func (o *owner) addTrigger(trigger object) error {
	_, several, err := o.triggers()
	if err != nil {
		return err
	}
	return o.setTriggers(append(several, trigger))
}

// fillTrigger sets what is given of a trigger, in the form of documents.
func (c *call) fillTrigger(p *params, trigger object) error {
	p.fillTexts(trigger, triggerTexts)
	p.fillNumbers(trigger, triggerNumbers)
	p.fillTags(trigger)
	for member, of := range map[string]string{"description": "name", "comments": "description"} {
		if _, ok := p.get(member); ok {
			trigger[of] = p.text(member)
		}
	}
	if given, ok := p.children("dependencies"); ok {
		dependencies := []object{}
		for _, one := range given {
			for id := range one.ids("triggerid") {
				t, ok := c.trigger(model.TriggerID(id))
				if !ok {
					return errNotAllowed
				}
				dependency := object{"name": t.Name, "expression": t.Expression}
				if t.Recovery != "" {
					dependency["recovery_expression"] = t.Recovery
				}
				dependencies = append(dependencies, dependency)
			}
			p.keep(one.done())
		}
		trigger["dependencies"] = dependencies
	}
	p.accept("flags", "templateid", "uuid")
	return p.done()
}

// hostOfExpression is the host of the first item in an expression, to which its trigger belongs.
func (c *call) hostOfExpression(p *params) (*model.Host, error) {
	for _, name := range []string{"description", "expression"} {
		p.require(name)
	}
	if p.failed != nil {
		return nil, p.failed
	}
	e, err := expr.Parse(p.text("expression"))
	if err != nil {
		return nil, invalidParams(`Invalid parameter "/%sexpression": incorrect expression: %v.`, p.place, err)
	}
	if len(e.Refs) == 0 {
		return nil, invalidParams(`Invalid parameter "/%sexpression": trigger expression must contain at least one /host/key reference.`, p.place)
	}
	for _, h := range c.hosts() {
		if h.Host == e.Refs[0].Host {
			return c.editable(h.ID)
		}
	}
	known, err := c.templates()
	if err != nil {
		return nil, err
	}
	for i := range known {
		if known[i].Template == e.Refs[0].Host {
			return c.editable(asHost(&known[i]).ID)
		}
	}
	return nil, invalidParams(`Incorrect trigger expression. Host %q does not exist or you have no access to this host.`, e.Refs[0].Host)
}

// triggersMade answers the ids of triggers by host and name that were not there before.
func (c *call) triggersMade(before map[model.TriggerID]bool, host model.HostID, name string) (string, bool) {
	c.renew()
	for _, t := range c.triggersIn(host) {
		if t.Name == name && !before[t.ID] {
			before[t.ID] = true
			return formatID(t.ID), true
		}
	}
	return "", false
}

func (c *call) triggersNow(host model.HostID) map[model.TriggerID]bool {
	ids := make(map[model.TriggerID]bool)
	for _, t := range c.triggersIn(host) {
		ids[t.ID] = true
	}
	return ids
}

// change is a trigger whose id is looked for when all is done: it has another one when its name or expression changed.
type triggerChange struct {
	before map[model.TriggerID]bool
	host   model.HostID
	name   string
	id     string
}

func (c *call) changedTriggers(all []triggerChange) ([]byte, error) {
	ids := make([]string, 0, len(all))
	for _, one := range all {
		if id, ok := c.triggersMade(one.before, one.host, one.name); ok {
			one.id = id
		}
		ids = append(ids, one.id)
	}
	return encodeJSON(map[string]any{"triggerids": ids})
}

func createTriggers(c *call) ([]byte, error) {
	var all []triggerChange
	_, err := c.eachOnHosts(c.hostOfExpression, func(p *params, o *owner, h *model.Host) (string, error) {
		trigger := object{}
		if err := c.fillTrigger(p, trigger); err != nil {
			return "", err
		}
		for _, t := range c.triggersIn(h.ID) {
			if t.Name == trigger["name"] && t.Expression == trigger["expression"] {
				return "", invalidParams("Trigger %q already exists on %q.", t.Name, h.Host)
			}
		}
		all = append(all, triggerChange{before: c.triggersNow(h.ID), host: h.ID, name: p.text("description")})
		return "", o.addTrigger(trigger)
	})
	if err != nil {
		return nil, err
	}
	return c.changedTriggers(all)
}

// ownTrigger returns a trigger of a host's own, which the caller may change, and the host.
func (c *call) ownTrigger(id string) (*model.Host, *model.Trigger, error) {
	n, err := strconv.ParseUint(id, 10, 64)
	t, ok := c.trigger(model.TriggerID(n))
	if err != nil || !ok {
		return nil, nil, errNotAllowed
	}
	h, err := c.editable(t.HostID)
	switch {
	case err != nil:
		return nil, nil, err
	case t.TemplateID != 0:
		return nil, nil, invalidParams("Cannot change templated trigger %q: change it on its template.", t.Name)
	case t.DiscoveredBy != 0:
		return nil, nil, invalidParams("Cannot change discovered trigger %q: change its prototype.", t.Name)
	}
	return h, t, nil
}

func updateTriggers(c *call) ([]byte, error) {
	var all []triggerChange
	find := func(p *params) (*model.Host, error) {
		p.require("triggerid")
		if p.failed != nil {
			return nil, p.failed
		}
		h, _, err := c.ownTrigger(p.text("triggerid"))
		return h, err
	}
	_, err := c.eachOnHosts(find, func(p *params, o *owner, h *model.Host) (string, error) {
		id := p.text("triggerid")
		_, t, err := c.ownTrigger(id)
		if err != nil {
			return "", err
		}
		trigger, err := o.takeTrigger(t)
		if err != nil {
			return "", err
		}
		if err := c.fillTrigger(p, trigger); err != nil {
			return "", err
		}
		name, _ := trigger["name"].(string)
		all = append(all, triggerChange{c.triggersNow(h.ID), h.ID, name, id})
		return id, o.addTrigger(trigger)
	})
	if err != nil {
		return nil, err
	}
	return c.changedTriggers(all)
}

func deleteTriggers(c *call) ([]byte, error) {
	find := func(id string) (*model.Host, error) {
		h, _, err := c.ownTrigger(id)
		return h, err
	}
	return c.deleteEach("triggerids", find, func(id string, o *owner, _ *model.Host) error {
		_, t, err := c.ownTrigger(id)
		if err != nil {
			return err
		}
		gone, err := o.takeTrigger(t)
		if err != nil {
			return err
		}
		return o.dropDependencies(gone)
	})
}
