package zabbix

import (
	"slices"
	"strconv"

	"tidemark/model"
)

// ValueMap is a value map with the host or template that has it.
type ValueMap struct {
	model.ValueMap
	UUID string
	// HostID or TemplateID is set.
	HostID     model.HostID
	TemplateID model.TemplateID
}

// valueMapRow is a value map with the host or template, as asHost has its id, that has it.
type valueMapRow struct {
	model.ValueMap
	uuid  string
	owner model.HostID
}

// valueMapID is the id of a value map by its name.
func valueMapID(h *model.Host, name string) uint64 { return partID(h, "valuemap "+name) }

func (r *valueMapRow) id() string { return formatID(valueMapID(&model.Host{ID: r.owner}, r.Name)) }

// valueMapOwner is the host, or the template as asHost has its id, whose value map an item uses.
func valueMapOwner(i *model.Item) model.HostID {
	if i.TemplateID != 0 {
		return model.HostID(templateBase + uint64(i.TemplateID))
	}
	return i.HostID
}

func valueMapOfItem(i *model.Item) string {
	if i.ValueMap == nil {
		return "0"
	}
	return formatID(valueMapID(&model.Host{ID: valueMapOwner(i)}, i.ValueMap.Name))
}

var valueMapKind = kind[valueMapRow]{
	name: "value map", id: "valuemapid", strict: true,
	fields: []field[valueMapRow]{
		{name: "valuemapid", number: true, get: (*valueMapRow).id},
		{name: "hostid", number: true, get: func(r *valueMapRow) string { return formatID(r.owner) }},
		{name: "name", get: func(r *valueMapRow) string { return r.Name }},
		{name: "uuid", get: func(r *valueMapRow) string { return r.uuid }},
	},
}

func mappings(o output, r *valueMapRow) any {
	k := kind[model.Mapping]{name: "mapping", id: "value", fields: []field[model.Mapping]{
		{name: "value", get: func(m *model.Mapping) string { return m.Value }},
		{name: "newvalue", get: func(m *model.Mapping) string { return m.Text }},
		{name: "type", number: true, get: func(m *model.Mapping) string { return formatInt(int(m.Kind)) }},
	}}
	return pickAll(o, &k, r.Mappings)
}

func formatValueMap(o output, r *valueMapRow) any {
	object := make(map[string]any)
	for name, text := range pick(o, &valueMapKind, r) {
		object[name] = text
	}
	if o.has("mappings") {
		object["mappings"] = mappings(output{all: true}, r)
	}
	return object
}

// getValueMaps lists the value maps of hosts and templates that the caller may see.
func getValueMaps(c *call) ([]byte, error) {
	ids, hosts := c.ids("valuemapids"), c.ids("hostids")
	all, err := c.options.Objects.ValueMaps(c.ctx)
	if err != nil {
		return nil, err
	}
	var rows []valueMapRow
	for _, m := range all {
		row := valueMapRow{m.ValueMap, m.UUID, m.HostID}
		if m.TemplateID != 0 {
			row.owner = model.HostID(templateBase + uint64(m.TemplateID))
		}
		if !hosts.has(uint64(row.owner)) || !ids.hasText(row.id()) {
			continue
		}
		if _, ok := c.holder(row.owner); ok {
			rows = append(rows, row)
		}
	}
	k := valueMapKind
	k.selects = []selection[valueMapRow]{{"selectMappings", "mappings", func(_ *call, o output, r *valueMapRow) any { return mappings(o, r) }}}
	return answer(c, &k, rows)
}

const mapsOfDocument = "valuemaps"

// mappingNames are the names of documents for the numbers of mappings.
var mappingNames = []string{"EQUAL", "GREATER_OR_EQUAL", "LESS_OR_EQUAL", "IN_RANGE", "REGEXP", "DEFAULT"}

// fillMappings sets the mappings that are given.
func (p *params) fillMappings(into object) {
	given, ok := p.children("mappings")
	if !ok {
		return
	}
	if len(given) == 0 {
		p.fail("mappings", "cannot be empty")
	}
	list := []object{}
	for _, one := range given {
		one.require("newvalue")
		mapping := object{"newvalue": one.text("newvalue"), "type": "EQUAL"}
		one.fillNumbers(mapping, map[string][]string{"type": mappingNames})
		if mapping["type"] != "DEFAULT" {
			one.require("value")
			mapping["value"] = one.text("value")
		} else {
			one.accept("value")
		}
		p.keep(one.done())
		list = append(list, mapping)
	}
	into["mappings"] = list
}

func createValueMaps(c *call) ([]byte, error) {
	return c.onHosts("valuemapids", c.holderInParams, func(p *params, o *owner, h *model.Host) (string, error) {
		for _, name := range []string{"name", "mappings"} {
			p.require(name)
		}
		known, err := list[object](o, mapsOfDocument)
		if err != nil {
			return "", err
		}
		name := p.text("name")
		if slices.ContainsFunc(known, func(m object) bool { return m["name"] == name }) {
			return "", invalidParams("Value map %q already exists.", name)
		}
		m := object{"name": name}
		p.fillMappings(m)
		p.accept("uuid")
		if err := p.done(); err != nil {
			return "", err
		}
		return formatID(valueMapID(h, name)), o.set(mapsOfDocument, append(known, m))
	})
}

// holderOfValueMap finds the host or template whose document has a value map.
func (c *call) holderOfValueMap(id string) (*model.Host, error) {
	n, err := strconv.ParseUint(id, 10, 64)
	h, ok := c.ownerOfPart(n)
	if err != nil || !ok {
		return nil, errNotAllowed
	}
	if h, err = c.editable(h.ID); err != nil {
		return nil, err
	}
	_, _, err = c.document(h).valueMap(h, id)
	return h, err
}

// valueMap finds a value map in a document; nil is for one that is gone.
func (o *owner) valueMap(h *model.Host, id string) (known []object, at int, err error) {
	if o == nil {
		return nil, 0, errNotAllowed
	}
	if known, err = list[object](o, mapsOfDocument); err != nil {
		return nil, 0, err
	}
	at = slices.IndexFunc(known, func(m object) bool { return formatID(valueMapID(h, textOf(m, "name", ""))) == id })
	if at < 0 {
		return nil, 0, errNotAllowed
	}
	return known, at, nil
}

func updateValueMaps(c *call) ([]byte, error) {
	return c.updateOnHosts("valuemapids", "valuemapid", c.holderOfValueMap, func(p *params, o *owner, h *model.Host) (string, error) {
		id := p.text("valuemapid")
		known, at, err := o.valueMap(h, id)
		if err != nil {
			return "", err
		}
		if name := p.text("name"); name != "" && name != known[at]["name"] {
			return "", invalidParams(`Invalid parameter "/%sname": a value map keeps its name, by which items use it; make another one.`, p.place)
		}
		p.fillMappings(known[at])
		if err := p.done(); err != nil {
			return "", err
		}
		return id, o.set(mapsOfDocument, known)
	})
}

// deleteValueMaps deletes value maps; items that use them show their values as they are.
func deleteValueMaps(c *call) ([]byte, error) {
	return c.deleteEach("valuemapids", c.holderOfValueMap, func(id string, o *owner, h *model.Host) error {
		known, at, err := o.valueMap(h, id)
		if err != nil {
			return err
		}
		name := textOf(known[at], "name", "")
		items, err := list[object](o, "items")
		if err != nil {
			return err
		}
		rules := documentRules(o)
		if dropValueMap(items, name) {
			if err := o.set("items", items); err != nil {
				return err
			}
		}
		changed := false
		for _, r := range rules {
			changed = dropValueMap(objectsIn(r, "item_prototypes"), name) || changed
		}
		if changed {
			if err := o.set(rulesOfDocument, rules); err != nil {
				return err
			}
		}
		return o.set(mapsOfDocument, slices.Delete(known, at, at+1))
	})
}

// dropValueMap takes a value map away from items that use it.
func dropValueMap(items []object, name string) (changed bool) {
	for _, i := range items {
		if m, ok := i["valuemap"].(object); ok && m["name"] == name {
			delete(i, "valuemap")
			changed = true
		}
	}
	return changed
}
