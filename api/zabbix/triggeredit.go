package zabbix

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
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
	written := t.AsWritten()
	same := func(one object) bool { return one["name"] == written.Name }
	count := len(slices.DeleteFunc(slices.Clone(several), func(one object) bool { return !same(one) }))
	for _, item := range items {
		nested, _ := item["triggers"].([]any)
		for _, one := range nested {
			if trigger, ok := one.(object); ok && same(trigger) {
				count++
			}
		}
	}
	if count > 1 { // names are not unique, names with expressions are
		same = func(one object) bool { return one["name"] == written.Name && one["expression"] == written.Expression }
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

// eachTrigger changes the triggers of a document.
func (o *owner) eachTrigger(change func(trigger object)) error {
	items, several, err := o.triggers()
	if err != nil {
		return err
	}
	for _, trigger := range several {
		change(trigger)
	}
	for _, item := range items {
		nested, _ := item["triggers"].([]any)
		for _, one := range nested {
			if trigger, ok := one.(object); ok {
				change(trigger)
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
	for _, member := range []string{"expression", "recovery_expression"} {
		if text := p.text(member); text != "" {
			if _, err := parseWritten(text); err != nil {
				p.fail(member, fmt.Sprintf("incorrect expression: %v", err))
			}
		}
	}
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
				dependencies = append(dependencies, c.dependency(t))
			}
			p.keep(one.done())
		}
		trigger["dependencies"] = dependencies
	}
	p.accept("flags", "templateid", "uuid")
	return p.done()
}

// dependency names a trigger as documents do, and as it is after the call.
func (c *call) dependency(t *model.Trigger) object {
	written := t.AsWritten()
	on := object{"name": written.Name, "expression": written.Expression}
	if written.Recovery != "" {
		on["recovery_expression"] = written.Recovery
	}
	if now, ok := c.renamed[t.ID]; ok {
		on["name"] = now["name"]
		for _, member := range []string{"expression", "recovery_expression"} {
			if delete(on, member); textOf(now, member, "") != "" {
				on[member] = now[member]
			}
		}
	}
	return on
}

// countMacro is a macro in the place of the number of values, which has a value only on a host.
var countMacro = regexp.MustCompile(`#\{\$[A-Z0-9_.]+(:[^}]*)?\}`)

// parseWritten parses an expression whose macros are not expanded.
func parseWritten(text string) (*expr.Expression, error) {
	return expr.Parse(countMacro.ReplaceAllString(text, "#1"))
}

// hostOfExpression is the host of the first item in an expression, to which its trigger belongs.
func (c *call) hostOfExpression(p *params) (*model.Host, error) {
	for _, name := range []string{"description", "expression"} {
		p.require(name)
	}
	if p.failed != nil {
		return nil, p.failed
	}
	e, err := parseWritten(p.text("expression"))
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

// checkItems refuses expressions of items that there are not, in Zabbix's words. known says of a reference that it is there for another reason.
func (c *call) checkItems(p *params, known func(expr.Ref) bool) error {
	for _, member := range []string{"expression", "recovery_expression"} {
		text := p.text(member)
		if text == "" {
			continue
		}
		e, err := parseWritten(text)
		if err != nil {
			continue // fillTrigger says so
		}
		for _, ref := range e.Refs {
			if known != nil && known(ref) {
				continue
			}
			if err := c.checkItem(ref); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *call) checkItem(ref expr.Ref) error {
	h, ok := c.hostNamed(ref.Host)
	if !ok {
		return invalidParams(`Incorrect trigger expression. Host %q does not exist or you have no access to this host.`, ref.Host)
	}
	if isTemplate(h.ID) {
		ok = c.templateHas(h, ref.Key, maxLinked)
	} else {
		_, ok = c.configuration.ItemOf(h.Host, ref.Key)
	}
	if !ok {
		return invalidParams("Incorrect item key %q provided for trigger expression on %q.", ref.Key, ref.Host)
	}
	return nil
}

// maxLinked bounds how far links of templates are followed.
const maxLinked = 10

// templateHas reports whether a template, or one that it is linked to, has an item.
func (c *call) templateHas(h *model.Host, key string, depth int) bool {
	if slices.ContainsFunc(c.contentsOf(h).items, func(r itemRow) bool { return r.Key == key }) {
		return true
	}
	o, err := c.readOwner("template", h.Host)
	if err != nil || depth == 0 {
		return false
	}
	links, _ := list[exportName](o, "templates") // what cannot be read has no items
	return slices.ContainsFunc(links, func(link exportName) bool {
		t, ok := c.hostNamed(link.Name)
		return ok && isTemplate(t.ID) && c.templateHas(t, key, depth-1)
	})
}

// hostNamed finds a host that the caller may see, or a template as asHost, by its technical name.
func (c *call) hostNamed(name string) (*model.Host, bool) {
	hosts := c.hosts()
	if i := slices.IndexFunc(hosts, func(h *model.Host) bool { return h.Host == name }); i >= 0 {
		return hosts[i], true
	}
	known, err := c.templates()
	i := slices.IndexFunc(known, func(t Template) bool { return t.Template == name })
	if err != nil || i < 0 || !c.mayLink(known[i].ID) {
		return nil, false
	}
	return asHost(&known[i]), true
}

// triggerChange is a trigger whose id is looked for when all is done: it has another one when its name or expression changed.
type triggerChange struct {
	host             model.HostID
	name, expression string
	id               string
}

// changedTriggers answers the ids of triggers: those that were not there before, by name and, where there are several, by expression.
func (c *call) changedTriggers(all []triggerChange, before map[model.TriggerID]bool) ([]byte, error) {
	c.renew()
	ids := make([]string, 0, len(all))
	for _, one := range all {
		var found *model.Trigger
		list := c.triggersIn(one.host)
		for i := range list {
			t, written := &list[i], list[i].AsWritten()
			if written.Name == one.name && !before[t.ID] && (found == nil || written.Expression == one.expression) {
				found = t
			}
		}
		if found != nil {
			before[found.ID] = true
			one.id = formatID(found.ID)
		}
		ids = append(ids, one.id)
	}
	return encodeJSON(map[string]any{"triggerids": ids})
}

func createTriggers(c *call) ([]byte, error) {
	var all []triggerChange
	before := make(map[model.TriggerID]bool)
	_, err := c.eachOnHosts(c.hostOfExpression, func(p *params, o *owner, h *model.Host) (string, error) {
		trigger := object{}
		if err := c.fillTrigger(p, trigger); err != nil {
			return "", err
		}
		if err := c.checkItems(p, nil); err != nil {
			return "", err
		}
		for _, t := range c.triggersIn(h.ID) {
			before[t.ID] = true
			if written := t.AsWritten(); written.Name == trigger["name"] && written.Expression == trigger["expression"] {
				return "", invalidParams("Trigger %q already exists on %q.", t.Name, h.Host)
			}
		}
		if known, err := o.hasTrigger(trigger); err != nil || known {
			return "", cmp.Or(err, invalidParams("Trigger %q already exists on %q.", trigger["name"], h.Host))
		}
		all = append(all, triggerChange{host: h.ID, name: p.text("description"), expression: p.text("expression")})
		return "", o.addTrigger(trigger)
	})
	if err != nil {
		return nil, err
	}
	return c.changedTriggers(all, before)
}

// hasTrigger reports whether there is a trigger with the name and expressions of another one.
func (o *owner) hasTrigger(trigger object) (found bool, err error) {
	_, several, err := o.triggers()
	return slices.ContainsFunc(several, func(one object) bool { return triggerPrototypeName("", one) == triggerPrototypeName("", trigger) }), err
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

// holderOfTrigger finds the host or template of a trigger that the caller may change.
func (c *call) holderOfTrigger(id string) (*model.Host, error) {
	h, _, err := c.ownTrigger(id)
	return h, err
}

func updateTriggers(c *call) ([]byte, error) {
	var all []triggerChange
	before := make(map[model.TriggerID]bool)
	_, err := c.eachOnHosts(c.foundBy("triggerid", c.holderOfTrigger), func(p *params, o *owner, h *model.Host) (string, error) {
		id := p.text("triggerid")
		_, t, err := c.ownTrigger(id)
		if err != nil {
			return "", err
		}
		trigger, err := o.takeTrigger(t)
		if err != nil {
			return "", err
		}
		was := maps.Clone(trigger)
		for _, t := range c.triggersIn(h.ID) {
			before[t.ID] = true
		}
		if err := c.fillTrigger(p, trigger); err != nil {
			return "", err
		}
		if err := c.checkItems(p, nil); err != nil {
			return "", err
		}
		all = append(all, triggerChange{h.ID, textOf(trigger, "name", ""), textOf(trigger, "expression", ""), id})
		if c.renamed == nil {
			c.renamed = make(map[model.TriggerID]object)
		}
		c.renamed[t.ID] = trigger
		if err := o.eachTrigger(func(other object) { renameDependency(other, was, trigger) }); err != nil {
			return "", err
		}
		return id, o.addTrigger(trigger)
	})
	if err != nil {
		return nil, err
	}
	return c.changedTriggers(all, before)
}

func deleteTriggers(c *call) ([]byte, error) {
	return c.deleteEach("triggerids", c.holderOfTrigger, func(id string, o *owner, _ *model.Host) error {
		_, t, err := c.ownTrigger(id)
		if err != nil {
			return err
		}
		gone, err := o.takeTrigger(t)
		if err != nil {
			return err
		}
		return o.eachTrigger(func(other object) { dropDependency(other, gone) })
	})
}
