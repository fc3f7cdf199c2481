package zabbix

import (
	"slices"
	"strconv"

	"tidemark/model"
)

const scenariosOfDocument = "httptests"

// The members of web scenarios and of their steps that calls and documents have alike, and those that are numbers in calls.
var (
	scenarioTexts   = []string{"name", "delay", "agent", "http_proxy", "http_user", "http_password", "ssl_cert_file", "ssl_key_file", "ssl_key_password"}
	scenarioNumbers = map[string][]string{"status": enabledNames, "authentication": httpAuthNames, "verify_peer": noYes, "verify_host": noYes}
	webStepTexts    = []string{"name", "url", "required", "status_codes", "timeout"}
	webStepNumbers  = map[string][]string{"follow_redirects": noYes, "retrieve_mode": retrieveNames}
)

func scenarioKind() kind[part] {
	k := kind[part]{name: "web scenario", id: "httptestid", fields: []field[part]{
		{name: "httptestid", number: true, get: func(r *part) string { return formatID(r.id) }},
		{name: "hostid", number: true, get: func(r *part) string { return formatID(r.holder.ID) }},
		{name: "templateid", number: true, get: func(r *part) string { return formatID(r.inherited) }},
		{name: "nextcheck", number: true, get: func(*part) string { return "0" }},
		partText("delay", "delay", "1m"), partText("agent", "agent", "Zabbix"), partText("retries", "attempts", "1"),
		partNumber("authentication", "authentication", httpAuthNames, 0),
	}}
	k.fields = append(k.fields, partTexts("name", "uuid", "http_proxy", "http_user", "http_password", "ssl_cert_file", "ssl_key_file", "ssl_key_password")...)
	for _, member := range []string{"status", "verify_peer", "verify_host"} {
		k.fields = append(k.fields, partNumber(member, member, scenarioNumbers[member], 0))
	}
	k.selects = append(partSelects(), pairsOf("variables"), pairsOf("headers"),
		selection[part]{"selectSteps", "steps", func(_ *call, o output, r *part) any { return webStepsOf(o, r) }})
	return k
}

// webStepsOf answers the steps of a scenario.
func webStepsOf(o output, r *part) any {
	steps := r.list("steps")
	if o.count {
		return strconv.Itoa(len(steps))
	}
	list := []object{}
	for i, one := range steps {
		step := part{object: one, edits: r.edits}
		all := object{
			"httpstepid": webStepID(r, i), "httptestid": formatID(r.id), "no": strconv.Itoa(i + 1), "url": "", "posts": "",
			"follow_redirects": formatInt(indexOf(noYes, step.text("follow_redirects", ""), 1)), "retrieve_mode": formatInt(indexOf(retrieveNames, step.text("retrieve_mode", ""), 0)),
			"name": step.text("name", ""), "required": step.text("required", ""), "status_codes": step.text("status_codes", ""), "timeout": step.text("timeout", "15s"),
		}
		for _, member := range []string{"variables", "headers", "query_fields"} {
			all[member] = []object{}
			if r.edits {
				all[member] = pairList(one, member)
			}
		}
		if r.edits {
			all["url"], all["posts"] = step.text("url", ""), step.text("posts", "")
			if _, pairs := one["posts"].([]any); pairs {
				all["posts"] = pairList(one, "posts")
			}
		}
		list = append(list, o.only(all, "httpstepid"))
	}
	return list
}

// webStepID is the id of a step by its place.
func webStepID(r *part, i int) string {
	return stableID(r.id, "httpstep "+strconv.Itoa(i))
}

// documentScenarios are the web scenarios in a document.
func documentScenarios(o *owner) []object { return o.objects(scenariosOfDocument) }

// scenariosOf returns the web scenarios of a host or template.
func (c *call) scenariosOf(h *model.Host) []*part {
	var list []*part
	edits := c.editsOn(h)
	if isTemplate(h.ID) {
		for _, one := range documentScenarios(c.document(h)) {
			list = append(list, &part{object: one, id: partID(h, "httptest "+textOf(one, "name", "")), holder: h, source: h, edits: edits})
		}
		return list
	}
	for _, id := range c.options.Catalog.HostItems(h.ID) {
		item, ok := c.configuration.Item(id)
		if !ok || item.Type != model.WebTest {
			continue
		}
		source := h
		if item.TemplateID != 0 {
			if source = c.sourceOf(item.TemplateID); source == nil {
				continue
			}
		}
		for _, one := range documentScenarios(c.document(source)) {
			name := textOf(one, "name", "")
			if model.WebScenarioKey(name) != item.Key {
				continue
			}
			p := &part{object: one, id: uint64(id), holder: h, source: source, edits: edits}
			if source != h {
				p.inherited = partID(source, "httptest "+name)
			}
			list = append(list, p)
		}
	}
	return list
}

// getScenarios lists the web scenarios of hosts and templates.
func getScenarios(c *call) ([]byte, error) {
	ids, a := c.ids("httptestids"), c.asked()
	c.accept("expandName", "expandStepName")
	conditions, either := c.tags()
	holders, err := c.holders(&a, ids)
	if err != nil {
		return nil, err
	}
	var rows []part
	for _, h := range holders {
		for _, s := range c.scenariosOf(h) {
			if ids.has(s.id) && a.fitsPart(s) && matchTags(conditions, either, s.tags()) {
				rows = append(rows, *s)
			}
		}
	}
	k := scenarioKind()
	k.filters = partFilters()
	return answer(c, &k, rows)
}

// fillScenario sets what is given of a web scenario, in the form of documents. old are the steps that there were, whose ids a call may name.
func (p *params) fillScenario(scenario object, old *part) error {
	p.fillTexts(scenario, scenarioTexts)
	p.fillNumbers(scenario, scenarioNumbers)
	if _, ok := p.get("retries"); ok {
		if n := p.number("retries", 1, 10); n < 1 {
			p.fail("retries", "a number from 1 to 10 is expected")
		}
		scenario["attempts"] = p.text("retries")
	}
	p.fillTags(scenario)
	p.fillPairs(scenario, "variables")
	p.fillPairs(scenario, "headers")
	if given, ok := p.children("steps"); ok {
		if len(given) == 0 {
			p.fail("steps", "cannot be empty")
		}
		numbers := make([]int64, len(given))
		steps := make([]object, len(given))
		var ids []string
		for i, one := range given {
			numbers[i] = one.number("no", int64(i+1), 1<<31)
			if id := one.text("httpstepid"); id != "" && slices.Contains(ids, id) {
				p.keep(invalidParams(`Invalid parameter "/%ssteps/%d": value (httpstepid)=(%s) already exists.`, p.place, i+1, id))
			} else {
				ids = append(ids, id)
			}
			steps[i] = one.fillWebStep(old)
			p.keep(one.done())
			name := textOf(steps[i], "name", "")
			if slices.ContainsFunc(steps[:i], func(s object) bool { return textOf(s, "name", "") == name }) {
				p.keep(invalidParams(`Invalid parameter "/%ssteps/%d": value (name)=(%s) already exists.`, p.place, i+1, name))
			}
		}
		order := make([]int, len(given))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return int(numbers[a] - numbers[b]) })
		sorted := []object{}
		for _, i := range order {
			sorted = append(sorted, steps[i])
		}
		scenario["steps"] = sorted
	}
	p.accept("hostid", "uuid", "templateid", "nextcheck")
	return p.done()
}

// fillWebStep reads a step: one that there was, if its id is given, or a new one.
func (p *params) fillWebStep(old *part) object {
	step := object{}
	if id := p.text("httpstepid"); id != "" {
		at := -1
		if old != nil {
			for i, one := range old.list("steps") {
				if webStepID(old, i) == id {
					at, step = i, one
				}
			}
		}
		if at < 0 {
			p.keep(errNotAllowed)
		}
	} else {
		p.require("name")
		p.require("url")
	}
	p.accept("httptestid")
	p.fillTexts(step, webStepTexts)
	p.fillNumbers(step, webStepNumbers)
	for _, member := range []string{"variables", "headers", "query_fields"} {
		p.fillPairs(step, member)
	}
	if v, ok := p.get("posts"); ok && v[0] == '[' {
		p.fillPairs(step, "posts")
	} else if ok {
		p.fillTexts(step, []string{"posts"})
	}
	return step
}

// ownScenario finds a web scenario that the caller may change, and its host or template.
func (c *call) ownScenario(id string) (*model.Host, *part, error) {
	n, err := strconv.ParseUint(id, 10, 64)
	h, ok := c.ownerOfPart(n)
	if err != nil || !ok {
		return nil, nil, errNotAllowed
	}
	if h, err = c.editable(h.ID); err != nil {
		return nil, nil, err
	}
	for _, s := range c.scenariosOf(h) {
		switch {
		case s.id != n:
		case s.inherited != 0:
			return nil, nil, invalidParams("Cannot change templated web scenario %q: change it on its template.", s.text("name", ""))
		default:
			return h, s, nil
		}
	}
	return nil, nil, errNotAllowed
}

func createScenarios(c *call) ([]byte, error) {
	return c.createOnHosts("httptestids", func(p *params, o *owner, h *model.Host) (string, error) {
		for _, member := range []string{"name", "steps"} {
			p.require(member)
		}
		known := documentScenarios(o)
		name := p.text("name")
		same := func(s *part) bool { return s.text("name", "") == name }
		if slices.ContainsFunc(c.scenariosOf(h), same) || slices.ContainsFunc(known, func(s object) bool { return s["name"] == name }) {
			return "", invalidParams("Web scenario %q already exists.", name)
		}
		scenario := object{}
		if err := p.fillScenario(scenario, nil); err != nil {
			return "", err
		}
		return name, o.set(scenariosOfDocument, append(known, scenario))
	}, func(h *model.Host, name string) []string { return idsOf(c.scenariosOf(h), "name", name) })
}

func updateScenarios(c *call) ([]byte, error) {
	find := func(id string) (*model.Host, error) {
		h, _, err := c.ownScenario(id)
		return h, err
	}
	return c.updateOnHosts("httptestids", "httptestid", find, func(p *params, o *owner, _ *model.Host) (string, error) {
		id := p.text("httptestid")
		_, s, err := c.ownScenario(id)
		if err != nil {
			return "", err
		}
		name := s.text("name", "")
		if p.keepsName("name", name) != nil {
			return "", invalidParams(`Invalid parameter "/%sname": the name stays, because values belong to it; make another web scenario.`, p.place)
		}
		known := documentScenarios(o)
		i := slices.IndexFunc(known, func(k object) bool { return k["name"] == name })
		if i < 0 {
			return "", errNotAllowed
		}
		if err := p.fillScenario(known[i], s); err != nil {
			return "", err
		}
		return id, o.set(scenariosOfDocument, known)
	})
}

func deleteScenarios(c *call) ([]byte, error) {
	find := func(id string) (*model.Host, error) {
		h, _, err := c.ownScenario(id)
		return h, err
	}
	return c.deleteEach("httptestids", find, func(id string, o *owner, _ *model.Host) error {
		_, s, err := c.ownScenario(id)
		if err != nil {
			return err
		}
		known := documentScenarios(o)
		return o.set(scenariosOfDocument, slices.DeleteFunc(known, func(k object) bool { return k["name"] == s.object["name"] }))
	})
}
