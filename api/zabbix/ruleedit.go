package zabbix

import (
	"slices"
	"strconv"

	"tidemark/model"
)

// The members of discovery rules that calls and documents have alike, and those that are numbers in calls.
var (
	ruleTexts = []string{
		"name", "delay", "description", "params", "snmp_oid", "ipmi_sensor", "jmx_endpoint", "username", "password", "url", "timeout", "posts", "status_codes", "http_proxy",
		"lifetime", "enabled_lifetime",
	}
	ruleNumbers = map[string][]string{
		"type": itemTypes, "status": enabledNames, "request_method": methodNames, "retrieve_mode": retrieveNames, "post_type": postNames, "follow_redirects": noYes,
		"verify_peer": noYes, "verify_host": noYes, "allow_traps": noYes, "authtype": httpAuthNames, "lifetime_type": lifetimeNames, "enabled_lifetime_type": disablingNames,
	}
)

// fillRule sets what is given of a discovery rule, in the form of documents.
func (c *call) fillRule(p *params, rule object, h *model.Host, o *owner) error {
	p.fillTexts(rule, ruleTexts)
	p.fillNumbers(rule, ruleNumbers)
	if rule["lifetime_type"] == "DELETE_NEVER" || rule["lifetime_type"] == "DELETE_IMMEDIATELY" {
		delete(rule, "lifetime")
	}
	if _, ok := p.get("trapper_hosts"); ok {
		rule["allowed_hosts"] = p.text("trapper_hosts")
	}
	for _, member := range itemPairs {
		p.fillPairs(rule, member)
	}
	p.fillSteps(rule)
	if f, ok := p.child("filter"); ok {
		p.keep(f.fillFilter(rule))
	}
	if given, ok := p.children("lld_macro_paths"); ok {
		paths := []object{}
		for _, one := range given {
			one.require("lld_macro")
			one.require("path")
			paths = append(paths, object{"lld_macro": one.text("lld_macro"), "path": one.text("path")})
			p.keep(one.done())
		}
		rule["lld_macro_paths"] = paths
	}
	if given, ok := p.children("overrides"); ok {
		overrides := []object{}
		for i, one := range given {
			override, err := c.readOverride(one, i+1)
			p.keep(err)
			overrides = append(overrides, override)
		}
		rule["overrides"] = overrides
	}
	if err := c.fillItemRefs(p, rule, h, o); err != nil {
		return err
	}
	p.accept("flags", "templateid", "uuid")
	return p.done()
}

// fillFilter sets the filter of a rule or override.
func (p *params) fillFilter(into object) error {
	filter := object{}
	p.fillNumbers(filter, map[string][]string{"evaltype": filterNames})
	p.fillTexts(filter, []string{"formula"})
	p.accept("eval_formula")
	conditions := []object{}
	given, _ := p.children("conditions")
	for i, one := range given {
		one.require("macro")
		condition := object{"macro": one.text("macro"), "value": one.text("value"), "formulaid": cmpOr(one.text("formulaid"), formulaID(i))}
		one.fillNumbers(condition, map[string][]string{"operator": conditionNames})
		p.keep(one.done())
		conditions = append(conditions, condition)
	}
	if len(conditions) == 0 {
		delete(into, "filter")
		return p.done()
	}
	filter["conditions"] = conditions
	into["filter"] = filter
	return p.done()
}

// formulaID is the name of the condition at a place: A, B … Z, AA, AB …
func formulaID(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return formulaID(i/26-1) + formulaID(i%26)
}

// operationParts are the members of an operation that calls have inside objects of their own: the object, and the member in it.
var operationParts = []struct {
	in, member string
	names      []string
}{
	{"opstatus", "status", enabledNames},
	{"opdiscover", "discover", discoverNames},
	{"opperiod", "delay", nil},
	{"ophistory", "history", nil},
	{"optrends", "trends", nil},
	{"opseverity", "severity", triggerNumbers["priority"]},
	{"opinventory", "inventory_mode", inventoryNames},
}

// readOverride reads an override; step is its place where none is given.
func (c *call) readOverride(p *params, step int) (object, error) {
	p.require("name")
	override := object{"name": p.text("name"), "step": cmpOr(p.text("step"), strconv.Itoa(step))}
	p.fillNumbers(override, map[string][]string{"stop": stopNames})
	if f, ok := p.child("filter"); ok {
		p.keep(f.fillFilter(override))
	}
	operations := []object{}
	given, _ := p.children("operations")
	for _, one := range given {
		one.require("operationobject")
		operation := object{}
		one.fillNumbers(operation, map[string][]string{"operationobject": operationNames, "operator": nameNames})
		one.fillTexts(operation, []string{"value"})
		for _, of := range operationParts {
			if inner, ok := one.child(of.in); ok {
				inner.fillOperation(operation, of.member, of.names)
				p.keep(inner.done())
			}
		}
		if tags, ok := one.children("optag"); ok {
			list := []exportTag{}
			for _, t := range tags {
				list = append(list, exportTag{Tag: t.text("tag"), Value: t.text("value")})
				p.keep(t.done())
			}
			operation["tags"] = list
		}
		if link, ok := c.templateRefs(one, "optemplate"); ok {
			list := []exportName{}
			for _, t := range link {
				list = append(list, exportName{t.Template})
			}
			operation["templates"] = list
		}
		p.keep(one.done())
		operations = append(operations, operation)
	}
	override["operations"] = operations
	return override, p.done()
}

func (p *params) fillOperation(into object, member string, names []string) {
	if names == nil {
		p.fillTexts(into, []string{member})
		return
	}
	p.fillNumbers(into, map[string][]string{member: names})
}

// overridesOf answers overrides as calls have them.
func (c *call) overridesOf(r *part) []object {
	list := []object{}
	for _, one := range r.list("overrides") {
		operations := []object{}
		for _, op := range objectsIn(one, "operations") {
			operations = append(operations, c.operationOf(op))
		}
		list = append(list, object{
			"name": textOf(one, "name", ""), "step": textOf(one, "step", ""), "stop": formatInt(indexOf(stopNames, textOf(one, "stop", ""), 0)),
			"filter": filterOf(one["filter"]), "operations": operations,
		})
	}
	return list
}

func (c *call) operationOf(op object) object {
	out := object{
		"operationobject": formatInt(indexOf(operationNames, textOf(op, "operationobject", ""), 0)), "value": textOf(op, "value", ""),
		"operator": formatInt(indexOf(nameNames, textOf(op, "operator", ""), 0)),
	}
	for _, of := range operationParts {
		text := textOf(op, of.member, "")
		switch {
		case text == "":
		case of.names == nil:
			out[of.in] = object{of.member: text}
		default:
			out[of.in] = object{of.member: formatInt(indexOf(of.names, text, 0))}
		}
	}
	if op["tags"] != nil {
		p := part{object: op}
		out["optag"] = pickTags(output{all: true}, p.tags())
	}
	if known, err := c.templates(); err == nil && op["templates"] != nil {
		links := []object{}
		for _, one := range objectsIn(op, "templates") {
			if i := slices.IndexFunc(known, func(t Template) bool { return t.Template == one["name"] }); i >= 0 {
				links = append(links, object{"templateid": templateID(known[i].ID)})
			}
		}
		out["optemplate"] = links
	}
	return out
}

// ownRule finds a rule that the caller may change, and its host or template.
func (c *call) ownRule(id string) (*model.Host, *part, error) {
	n, err := strconv.ParseUint(id, 10, 64)
	h, ok := c.ownerOfPart(n)
	if err != nil || !ok {
		return nil, nil, errNotAllowed
	}
	if h, err = c.editable(h.ID); err != nil {
		return nil, nil, err
	}
	for _, r := range c.rulesOf(h) {
		if r.id != n {
			continue
		}
		if r.inherited != 0 {
			return nil, nil, invalidParams("Cannot change templated discovery rule %q: change it on its template.", r.text("name", ""))
		}
		return h, r, nil
	}
	return nil, nil, errNotAllowed
}

// rule finds the rule with a key in the document that is being changed.
func (o *owner) rule(key string) (rules []object, at int, err error) {
	if rules, err = list[object](o, rulesOfDocument); err != nil {
		return nil, 0, err
	}
	at = slices.IndexFunc(rules, func(r object) bool { return textOf(r, "key", "") == key })
	if at < 0 {
		return nil, 0, errNotAllowed
	}
	return rules, at, nil
}

func createRules(c *call) ([]byte, error) {
	return c.createOnHosts("itemids", func(p *params, o *owner, h *model.Host) (string, error) {
		for _, name := range []string{"name", "key_", "type"} {
			p.require(name)
		}
		rules, err := list[object](o, rulesOfDocument)
		if err != nil {
			return "", err
		}
		rule := object{"key": p.text("key_")}
		same := func(r *part) bool { return r.text("key", "") == rule["key"] }
		if slices.ContainsFunc(c.rulesOf(h), same) || slices.ContainsFunc(rules, func(r object) bool { return r["key"] == rule["key"] }) {
			return "", invalidParams("An LLD rule with key %q already exists on the %s %q.", rule["key"], kindOf(h), h.Host)
		}
		if err := c.fillRule(p, rule, h, o); err != nil {
			return "", err
		}
		return p.text("key_"), o.set(rulesOfDocument, append(rules, rule))
	}, func(h *model.Host, key string) []string { return idsOf(c.rulesOf(h), "key", key) })
}

func updateRules(c *call) ([]byte, error) {
	find := func(id string) (*model.Host, error) {
		h, _, err := c.ownRule(id)
		return h, err
	}
	return c.updateOnHosts("itemids", "itemid", find, func(p *params, o *owner, h *model.Host) (string, error) {
		id := p.text("itemid")
		_, r, err := c.ownRule(id)
		if err != nil {
			return "", err
		}
		key := r.text("key", "")
		if p.keepsName("key_", key) != nil {
			return "", invalidParams(`Invalid parameter "/%skey_": the key stays, because what was discovered belongs to it; make another rule.`, p.place)
		}
		p.accept("hostid")
		rules, at, err := o.rule(key)
		if err != nil {
			return "", err
		}
		if err := c.fillRule(p, rules[at], h, o); err != nil {
			return "", err
		}
		return id, o.set(rulesOfDocument, rules)
	})
}

// deleteRules deletes rules with their prototypes and all that they discovered.
func deleteRules(c *call) ([]byte, error) {
	find := func(id string) (*model.Host, error) {
		h, _, err := c.ownRule(id)
		return h, err
	}
	return c.deleteEach("ruleids", find, func(id string, o *owner, _ *model.Host) error {
		_, r, err := c.ownRule(id)
		if err != nil {
			return err
		}
		rules, at, err := o.rule(r.text("key", ""))
		if err != nil {
			return err
		}
		return o.set(rulesOfDocument, slices.Delete(rules, at, at+1))
	})
}
