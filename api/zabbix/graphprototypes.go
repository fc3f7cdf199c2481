package zabbix

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"

	"tidemark/model"
)

const graphsOfRule = "graph_prototypes"

// The members of graphs that are numbers in calls and names in documents, and those that are texts in both with what they are when left out.
var (
	graphTypes     = []string{"NORMAL", "STACKED", "PIE", "EXPLODED"}
	graphAxes      = []string{"CALCULATED", "FIXED", "ITEM"}
	graphTexts     = map[string]string{"width": "900", "height": "200", "yaxismin": "0", "yaxismax": "100", "percent_left": "0", "percent_right": "0"}
	graphLineNames = map[string][]string{
		"drawtype":  {"SINGLE_LINE", "FILLED_REGION", "BOLD_LINE", "DOTTED_LINE", "DASHED_LINE", "GRADIENT_LINE"},
		"yaxisside": {"LEFT", "RIGHT"}, "calc_fnc": {1: "MIN", 2: "AVG", 4: "MAX", 7: "ALL", 9: "LAST"}, "type": {0: "SIMPLE", 2: "GRAPH_SUM"},
	}
	// graphRenamed are the names that documents have for members of calls.
	graphRenamed = map[string]string{"graphtype": "type", "ymin_type": "ymin_type_1", "ymax_type": "ymax_type_1"}
	graphNumbers = map[string][]string{"graphtype": graphTypes, "ymin_type": graphAxes, "ymax_type": graphAxes}
	graphShows   = []string{"show_work_period", "show_triggers", "show_legend", "show_3d"}
	graphColour  = regexp.MustCompile(`^[0-9A-Fa-f]{6}$`)
)

func graphPrototypes(rule *part) []part { return rule.children(graphsOfRule, "name") }

// graphPrototypeKind are the members of graph prototypes.
func graphPrototypeKind() kind[part] {
	k := kind[part]{name: "graph prototype", id: "graphid", fields: append(prototypeFields("graphid"), partText("name", "name", ""))}
	for _, member := range []string{"width", "height", "yaxismin", "yaxismax", "percent_left", "percent_right"} {
		k.fields = append(k.fields, partText(member, member, graphTexts[member]))
	}
	for _, member := range []string{"graphtype", "ymin_type", "ymax_type"} {
		k.fields = append(k.fields, partNumber(member, graphRenamed[member], graphNumbers[member], 0))
	}
	for _, member := range graphShows {
		otherwise := 1
		if member == "show_3d" {
			otherwise = 0
		}
		k.fields = append(k.fields, partNumber(member, member, noYes, otherwise))
	}
	k.selects = append(slices.DeleteFunc(prototypeSelects(), func(s selection[part]) bool { return s.param == "selectTags" }),
		selection[part]{"selectGraphItems", "gitems", func(c *call, o output, r *part) any { return c.graphLines(o, r) }},
		selection[part]{"selectItems", "items", func(c *call, o output, r *part) any {
			keys := make(map[string]bool)
			for _, one := range r.list("graph_items") {
				item, _ := one["item"].(object)
				keys[textOf(item, "key", "")] = true
			}
			return pickParts(o, itemPrototypeKind(), slices.DeleteFunc(c.itemPrototypes(r.rule), func(i part) bool { return !keys[i.text("key", "")] }))
		}})
	return k
}

// withAxes adds what looks at the items of a call.
func (c *call) withAxes(k kind[part]) kind[part] {
	for _, axis := range []string{"ymin", "ymax"} {
		k.fields = append(k.fields, field[part]{name: axis + "_itemid", number: true, get: func(r *part) string {
			item, _ := r.object[axis+"_item_1"].(object)
			return formatID(c.graphItemID(r, textOf(item, "key", "")))
		}})
	}
	return k
}

// graphItemID is the id of an item prototype of a graph prototype's rule, or of an item of its host, by its key; 0 for none.
func (c *call) graphItemID(r *part, key string) uint64 {
	if key == "" {
		return 0
	}
	for _, i := range c.itemPrototypes(r.rule) {
		if i.text("key", "") == key {
			return i.id
		}
	}
	return c.itemByKey(r.holder, key)
}

func graphLineID(graph uint64, i int) string { return stableID(graph, "gitem "+strconv.Itoa(i)) }

// graphLines answers the lines of a graph prototype.
func (c *call) graphLines(o output, r *part) any {
	lines := r.list("graph_items")
	if o.count {
		return strconv.Itoa(len(lines))
	}
	list := []object{}
	for i, one := range lines {
		item, _ := one["item"].(object)
		all := object{
			"gitemid": graphLineID(r.id, i), "graphid": formatID(r.id), "itemid": formatID(c.graphItemID(r, textOf(item, "key", ""))),
			"color": textOf(one, "color", ""), "sortorder": textOf(one, "sortorder", "0"),
		}
		for member, names := range graphLineNames {
			otherwise := 0
			if member == "calc_fnc" {
				otherwise = 2
			}
			all[member] = formatInt(indexOf(names, textOf(one, member, ""), otherwise))
		}
		list = append(list, o.only(all))
	}
	return list
}

func getGraphPrototypes(c *call) ([]byte, error) {
	return getPrototypes(c, "graphid", c.withAxes(graphPrototypeKind()), graphPrototypes)
}

// graphRule is the rule in the document that is changed to which a graph prototype belongs, and where the keys of its items come from.
type graphRule struct {
	rule   object
	holder *model.Host
}

// key finds the item prototype of the rule, or the item of its host, with an id.
func (c *call) graphKey(g *graphRule, id uint64) (key string, prototype, ok bool) {
	for _, one := range objectsIn(g.rule, "item_prototypes") {
		key := textOf(one, "key", "")
		if partID(g.holder, itemPrototypeName(textOf(g.rule, "key", ""), key)) == id {
			return key, true, true
		}
	}
	r, found := c.itemRow(model.ItemID(id))
	return r.Key, false, found && r.HostID == g.holder.ID
}

// fillGraph sets what is given of a graph prototype, in the form of documents. id is that of one that exists.
func (c *call) fillGraph(p *params, graph object, g *graphRule, id uint64) error {
	p.fillTexts(graph, []string{"name", "width", "height", "yaxismin", "yaxismax", "percent_left", "percent_right"})
	for _, member := range []string{"width", "height"} {
		if p.number(member, 20, math.MaxUint16) < 20 {
			p.fail(member, "a number from 20 to 65535 is expected")
		}
	}
	named := object{}
	p.fillNumbers(named, graphNumbers)
	for member, of := range graphRenamed {
		if name, ok := named[member]; ok {
			graph[of] = name
		}
	}
	p.fillNumbers(graph, map[string][]string{"show_work_period": noYes, "show_triggers": noYes, "show_legend": noYes, "show_3d": noYes, "discover": discoverNames})
	for _, axis := range []string{"ymin", "ymax"} {
		if item := p.number(axis+"_itemid", 0, math.MaxInt64); item != 0 {
			key, _, ok := c.graphKey(g, uint64(item)) //nolint:gosec // number gives none below 0
			if !ok {
				return errNotAllowed
			}
			graph[axis+"_item_1"] = object{"host": g.holder.Host, "key": key}
		}
	}
	if given, ok := p.children("gitems"); ok {
		lines, err := c.fillGraphLines(given, objectsIn(graph, "graph_items"), g, id)
		p.keep(err)
		graph["graph_items"] = lines
		if p.failed == nil && !slices.ContainsFunc(lines, func(l object) bool { return isPrototypeOf(g, l) }) {
			return invalidParams("Graph prototype %q must have at least one item prototype.", textOf(graph, "name", ""))
		}
	}
	p.accept("flags", "templateid", "uuid")
	return p.done()
}

// isPrototypeOf says whether a line is of an item prototype of the rule.
func isPrototypeOf(g *graphRule, line object) bool {
	item, _ := line["item"].(object)
	return slices.ContainsFunc(objectsIn(g.rule, "item_prototypes"), func(i object) bool { return i["key"] == item["key"] })
}

// fillGraphLines reads the lines of a graph; those whose id is given keep what is not given of them.
func (c *call) fillGraphLines(given []*params, old []object, g *graphRule, id uint64) ([]object, error) {
	lines := []object{}
	for i, p := range given {
		line := object{"sortorder": strconv.Itoa(i)}
		if gitem := p.text("gitemid"); gitem != "" {
			at := 0
			for at < len(old) && graphLineID(id, at) != gitem {
				at++
			}
			if at == len(old) {
				return nil, errNotAllowed
			}
			line = maps.Clone(old[at])
		} else {
			p.require("itemid")
			p.require("color")
		}
		if item := p.number("itemid", 0, math.MaxInt64); item != 0 {
			key, _, ok := c.graphKey(g, uint64(item)) //nolint:gosec // number gives none below 0
			if !ok {
				return nil, errNotAllowed
			}
			line["item"] = object{"host": g.holder.Host, "key": key}
		}
		if colour := p.text("color"); colour != "" && !graphColour.MatchString(colour) {
			p.fail("color", "a hexadecimal color code (6 symbols) is expected")
		}
		p.fillTexts(line, []string{"color", "sortorder"})
		p.fillNumbers(line, graphLineNames)
		p.accept("graphid")
		if err := p.done(); err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// holderOfLines finds the host or template of a new graph prototype by the item prototypes in its lines.
func (c *call) holderOfLines(p *params) (*model.Host, error) {
	p.require("name")
	given, _ := p.children("gitems")
	if p.failed != nil {
		return nil, p.failed
	}
	if len(given) == 0 {
		return nil, invalidParams("Missing items for graph prototype %q.", p.text("name"))
	}
	first := given[0]
	first.require("itemid")
	if first.failed != nil {
		return nil, first.failed
	}
	h, ok := c.ownerOfPart(uint64(first.number("itemid", 0, math.MaxInt64))) //nolint:gosec // number gives none below 0
	if !ok {
		return nil, errNotAllowed
	}
	return c.editable(h.ID)
}

func createGraphPrototypes(c *call) ([]byte, error) {
	return c.onHosts("graphids", c.holderOfLines, func(p *params, o *owner, h *model.Host) (string, error) {
		rules, err := list[object](o, rulesOfDocument)
		if err != nil {
			return "", err
		}
		given, _ := p.children("gitems")
		at := slices.IndexFunc(rules, func(rule object) bool {
			return slices.ContainsFunc(given, func(one *params) bool {
				_, prototype, _ := c.graphKey(&graphRule{rule, h}, uint64(one.number("itemid", 0, math.MaxInt64))) //nolint:gosec // number gives none below 0
				return prototype
			})
		})
		name := p.text("name")
		if at < 0 {
			return "", invalidParams("Graph prototype %q must have at least one item prototype.", name)
		}
		known := objectsIn(rules[at], graphsOfRule)
		if slices.ContainsFunc(known, func(g object) bool { return g["name"] == name }) {
			return "", invalidParams("Graph prototype with name %q already exists in graph prototypes.", name)
		}
		graph := object{}
		if err := c.fillGraph(p, graph, &graphRule{rules[at], h}, 0); err != nil {
			return "", err
		}
		rules[at][graphsOfRule] = append(known, graph)
		return formatID(childID(h, rules[at], graphsOfRule, name)), o.set(rulesOfDocument, rules)
	})
}

// childID is the id that children gives a prototype of a rule.
func childID(h *model.Host, rule object, member, name string) uint64 {
	return partID(h, childName(member, textOf(rule, "key", ""), name))
}

func childName(member, rule, name string) string { return member + " " + rule + "\x00" + name }

func updateGraphPrototypes(c *call) ([]byte, error) {
	return c.updateOnHosts("graphids", "graphid", c.holderOfPrototype(graphPrototypes), func(p *params, o *owner, h *model.Host) (string, error) {
		_, r, err := c.ownPrototype(p.text("graphid"), graphPrototypes)
		if err != nil {
			return "", err
		}
		rules, at, err := o.rule(r.rule.text("key", ""))
		if err != nil {
			return "", err
		}
		known := objectsIn(rules[at], graphsOfRule)
		i := slices.IndexFunc(known, func(g object) bool { return g["name"] == r.object["name"] })
		if i < 0 {
			return "", errNotAllowed
		}
		if name := p.text("name"); name != known[i]["name"] && slices.ContainsFunc(known, func(g object) bool { return g["name"] == name }) {
			return "", invalidParams("Graph prototype with name %q already exists in graph prototypes.", name)
		}
		if err := c.fillGraph(p, known[i], &graphRule{rules[at], h}, r.id); err != nil {
			return "", err
		}
		rules[at][graphsOfRule] = known
		return formatID(childID(h, rules[at], graphsOfRule, textOf(known[i], "name", ""))), o.set(rulesOfDocument, rules)
	})
}

// deleteChildren deletes prototypes that are known by a member among those of their rule.
func (c *call) deleteChildren(answer, member, name string) ([]byte, error) {
	of := func(rule *part) []part { return rule.children(member, name) }
	return c.deleteEach(answer, c.holderOfPrototype(of), func(id string, o *owner, _ *model.Host) error {
		_, r, err := c.ownPrototype(id, of)
		if err != nil {
			return err
		}
		rules, at, err := o.rule(r.rule.text("key", ""))
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(objectsIn(rules[at], member), func(g object) bool { return g[name] == r.object[name] })
		if rules[at][member] = left; len(left) == 0 {
			delete(rules[at], member)
		}
		return o.set(rulesOfDocument, rules)
	})
}

func deleteGraphPrototypes(c *call) ([]byte, error) {
	return c.deleteChildren("graphids", graphsOfRule, "name")
}
