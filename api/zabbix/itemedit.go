package zabbix

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"tidemark/model"
)

// The names of exports for Zabbix's numbers.
var (
	itemTypes = []string{
		"ZABBIX_PASSIVE", "", "TRAP", "SIMPLE", "", "INTERNAL", "", "ZABBIX_ACTIVE", "", "", "EXTERNAL", "ODBC", "IPMI", "SSH", "TELNET", "CALCULATED", "JMX",
		"SNMP_TRAP", "DEPENDENT", "HTTP_AGENT", "SNMP_AGENT", "SCRIPT", "BROWSER",
	}
	itemValueTypes = []string{"FLOAT", "CHAR", "LOG", "UNSIGNED", "TEXT", "BINARY"}
	stepTypes      = []string{
		"", "MULTIPLIER", "RTRIM", "LTRIM", "TRIM", "REGEX", "BOOL_TO_DECIMAL", "OCTAL_TO_DECIMAL", "HEX_TO_DECIMAL", "SIMPLE_CHANGE", "CHANGE_PER_SECOND",
		"XMLPATH", "JSONPATH", "IN_RANGE", "MATCHES_REGEX", "NOT_MATCHES_REGEX", "CHECK_JSON_ERROR", "CHECK_XML_ERROR", "CHECK_REGEX_ERROR",
		"DISCARD_UNCHANGED", "DISCARD_UNCHANGED_HEARTBEAT", "JAVASCRIPT", "PROMETHEUS_PATTERN", "PROMETHEUS_TO_JSON", "CSV_TO_JSON", "STR_REPLACE",
		"CHECK_NOT_SUPPORTED", "XML_TO_JSON", "SNMP_WALK_VALUE", "SNMP_WALK_TO_JSON", "SNMP_GET_VALUE",
	}
	stepFailures = []string{"ORIGINAL_ERROR", "DISCARD_VALUE", "CUSTOM_VALUE", "CUSTOM_ERROR"}
	enabledNames = []string{"ENABLED", "DISABLED"}
	noYes        = []string{"NO", "YES"}
	// itemNumbers are the members that are numbers in calls and names in exports.
	itemNumbers = map[string][]string{
		"type": itemTypes, "value_type": itemValueTypes, "status": enabledNames, "request_method": methodNames, "retrieve_mode": retrieveNames,
		"post_type": postNames, "output_format": {"RAW", "JSON"}, "follow_redirects": noYes, "verify_peer": noYes, "verify_host": noYes, "allow_traps": noYes,
		"authtype": httpAuthNames,
	}
	// itemTexts are the members that are the same in both.
	itemTexts = []string{
		"name", "delay", "units", "history", "trends", "description", "params", "snmp_oid", "ipmi_sensor", "jmx_endpoint", "username", "password", "url", "timeout", "posts",
		"status_codes", "allowed_hosts", "logtimefmt", "http_proxy",
	}
	itemPairs = []string{"headers", "query_fields", "parameters"}
)

// object is an object of a document.
type object = map[string]any

// fillNumbers sets members that are numbers in calls and names in documents.
func (p *params) fillNumbers(into object, numbers map[string][]string) {
	for member, names := range numbers {
		if _, ok := p.get(member); !ok {
			continue
		}
		n := p.number(member, 0, int64(len(names)-1))
		if names[n] == "" {
			p.fail(member, "value must be one of those that the documentation of the API lists")
			continue
		}
		into[member] = names[n]
	}
}

// fillTexts sets members that are the same in calls and documents; empty ones are left out of documents.
func (p *params) fillTexts(into object, members []string) {
	for _, member := range members {
		if _, ok := p.get(member); !ok {
			continue
		}
		if text := p.text(member); text != "" {
			into[member] = text
		} else {
			delete(into, member)
		}
	}
}

// fillTags sets tags that are given.
func (p *params) fillTags(into object) {
	given, ok := p.children("tags")
	if !ok {
		return
	}
	tags := []exportTag{}
	for _, t := range given {
		t.require("tag")
		tags = append(tags, exportTag{Tag: t.text("tag"), Value: t.text("value")})
		p.keep(t.done())
	}
	into["tags"] = tags
}

// keep notes the first mistake.
func (p *params) keep(err error) {
	if err != nil && p.failed == nil {
		p.failed = err
	}
}

// fillItem sets what is given of an item, in the form of documents.
func (c *call) fillItem(p *params, item object, h *model.Host, o *owner) error {
	p.fillTexts(item, itemTexts)
	p.fillNumbers(item, itemNumbers)
	p.fillTags(item)
	for _, member := range itemPairs {
		p.fillPairs(item, member)
	}
	p.fillSteps(item)
	if err := c.fillItemRefs(p, item, h, o); err != nil {
		return err
	}
	if _, ok := p.get("trapper_hosts"); ok {
		item["allowed_hosts"] = p.text("trapper_hosts")
	}
	p.accept("inventory_link", "flags", "templateid", "uuid")
	return p.done()
}

// fillPairs sets a list of names with values.
func (p *params) fillPairs(into object, member string) {
	given, ok := p.children(member)
	if !ok {
		return
	}
	pairs := []object{}
	for _, one := range given {
		one.accept("sortorder")
		pairs = append(pairs, object{"name": one.text("name"), "value": one.text("value")})
		p.keep(one.done())
	}
	into[member] = pairs
}

// fillItemRefs sets the interface, the master item and the value map, which calls name by id.
func (c *call) fillItemRefs(p *params, item object, h *model.Host, o *owner) error {
	if id := p.text("interfaceid"); id != "" && id != "0" {
		faces, err := list[object](o, "interfaces")
		if err != nil {
			return err
		}
		of, err := c.hostOfInterface(id)
		if err != nil || of.ID != h.ID {
			return errNotAllowed
		}
		i, err := interfaceAt(id, len(faces))
		if err != nil {
			return err
		}
		item["interface_ref"] = faces[i]["interface_ref"]
	}
	if id := p.number("master_itemid", 0, math.MaxInt64); id != 0 {
		key, ok := c.masterKey(uint64(id), h, o)
		if !ok {
			return errNotAllowed
		}
		item["master_item"] = object{"key": key}
	}
	if id := p.text("valuemapid"); id == "0" {
		delete(item, "valuemap")
	} else if id != "" {
		maps, err := list[exportName](o, "valuemaps")
		if err != nil {
			return err
		}
		i := slices.IndexFunc(maps, func(m exportName) bool { return formatID(valueMapID(h, m.Name)) == id })
		if i < 0 {
			return errNotAllowed
		}
		item["valuemap"] = maps[i]
	}
	return nil
}

// masterKey is the key of an item of the host, or of a prototype in its document, that another takes its values from.
func (c *call) masterKey(id uint64, h *model.Host, o *owner) (string, bool) {
	if r, ok := c.itemRow(model.ItemID(id)); ok && r.HostID == h.ID {
		items, err := list[object](o, "items")
		if err != nil {
			return "", false
		}
		if i := slices.IndexFunc(items, func(item object) bool { return c.isItem(h, &r, item) }); i >= 0 {
			return textOf(items[i], "key", ""), true // as it was written
		}
		return r.Key, true
	}
	for _, rule := range documentRules(o) {
		for _, one := range objectsIn(rule, "item_prototypes") {
			key := textOf(one, "key", "")
			if partID(h, itemPrototypeName(textOf(rule, "key", ""), key)) == id {
				return key, true
			}
		}
	}
	return "", false
}

// fillSteps sets preprocessing steps that are given.
func (p *params) fillSteps(item object) {
	given, ok := p.children("preprocessing")
	if !ok {
		return
	}
	steps := []object{}
	for _, one := range given {
		one.require("type")
		one.accept("sortorder")
		step := object{}
		one.fillNumbers(step, map[string][]string{"type": stepTypes, "error_handler": stepFailures})
		if text := one.text("params"); text != "" {
			step["parameters"] = strings.Split(text, "\n")
			if step["type"] == "JAVASCRIPT" {
				step["parameters"] = []string{text}
			}
		}
		one.fillTexts(step, []string{"error_handler_params"})
		p.keep(one.done())
		steps = append(steps, step)
	}
	item["preprocessing"] = steps
}

// createItems makes items of hosts and templates.
func createItems(c *call) ([]byte, error) {
	return c.createOnHosts("itemids", func(p *params, o *owner, h *model.Host) (string, error) {
		for _, name := range []string{"name", "key_", "type", "value_type"} {
			p.require(name)
		}
		items, err := list[object](o, "items")
		if err != nil {
			return "", err
		}
		item := object{"key": p.text("key_")}
		same := func(r itemRow) bool { return r.item != nil && r.Key == item["key"] }
		if slices.ContainsFunc(c.itemsOf(h), same) || slices.ContainsFunc(items, func(i object) bool { return i["key"] == item["key"] }) {
			return "", invalidParams("An item with key %q already exists on the %s %q.", item["key"], kindOf(h), h.Host)
		}
		if err := c.fillItem(p, item, h, o); err != nil {
			return "", err
		}
		return p.text("key_"), o.set("items", append(items, item))
	}, func(h *model.Host, key string) (ids []string) {
		for _, r := range c.itemsOf(h) {
			if c.isItem(h, &r, object{"key": key}) {
				ids = append(ids, formatID(r.ID))
			}
		}
		return ids
	})
}

// ownItem returns an item of a host's own, which the caller may change, and the host; what comes from templates and discovery is changed there.
func (c *call) ownItem(id string) (*model.Host, itemRow, error) {
	n, err := strconv.ParseUint(id, 10, 64)
	r, ok := c.itemRow(model.ItemID(n))
	if err != nil || !ok || r.item == nil {
		return nil, r, errNotAllowed
	}
	h, err := c.editable(r.HostID)
	switch {
	case err != nil:
		return nil, r, err
	case r.item.TemplateID != 0:
		return nil, r, invalidParams("Cannot change templated item %q on the host %q: change it on its template.", r.Key, h.Host)
	case r.item.DiscoveredBy != 0:
		return nil, r, invalidParams("Cannot change discovered item %q on the host %q: change its prototype.", r.Key, h.Host)
	}
	return h, r, nil
}

// holderOfItem finds the host or template of an item that the caller may change. Items of web scenarios and discovery rules are none of the document's.
func (c *call) holderOfItem(id string) (*model.Host, error) {
	h, r, err := c.ownItem(id)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(c.document(h).objects("items"), func(item object) bool { return c.isItem(h, &r, item) }) {
		return nil, errNotAllowed
	}
	return h, nil
}

// isItem reports whether an item of a host's or template's document is the one of a row, whose key has its macros expanded.
func (c *call) isItem(h *model.Host, r *itemRow, item object) bool {
	key := textOf(item, "key", "")
	if key == r.Key || isTemplate(h.ID) {
		return key == r.Key
	}
	i, ok := c.configuration.ItemOf(h.Host, key)
	return ok && i.ID == r.ID
}

func (c *call) updateItem(p *params, o *owner, h *model.Host) (string, error) {
	id := p.text("itemid")
	_, r, err := c.ownItem(id)
	if err != nil {
		return "", err
	}
	p.accept("hostid")
	items, err := list[object](o, "items")
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(items, func(item object) bool { return c.isItem(h, &r, item) })
	if i < 0 {
		return "", errNotAllowed
	}
	if key := p.text("key_"); key != "" && key != r.Key && key != items[i]["key"] {
		return "", invalidParams(`Invalid parameter "/%skey_": the key stays, because values belong to it; make another item.`, p.place)
	}
	if err := c.fillItem(p, items[i], h, o); err != nil {
		return "", err
	}
	return id, o.set("items", items)
}

func updateItems(c *call) ([]byte, error) {
	return c.updateOnHosts("itemids", "itemid", c.holderOfItem, c.updateItem)
}

func deleteItems(c *call) ([]byte, error) {
	return c.deleteEach("itemids", c.holderOfItem, func(id string, o *owner, h *model.Host) error {
		_, r, err := c.ownItem(id)
		if err != nil {
			return err
		}
		items, err := list[object](o, "items")
		if err != nil {
			return err
		}
		i := slices.IndexFunc(items, func(item object) bool { return c.isItem(h, &r, item) })
		if i < 0 {
			return nil // it went with its master
		}
		return o.set("items", withoutItem(items, textOf(items[i], "key", "")))
	})
}

// withoutItem returns items without one, those that are made of its values, and so on.
func withoutItem(items []object, key string) []object {
	gone := map[any]bool{key: true}
	for before := 0; before != len(gone); {
		before = len(gone)
		for _, item := range items {
			if master, ok := item["master_item"].(object); ok && gone[master["key"]] {
				gone[item["key"]] = true
			}
		}
	}
	return slices.DeleteFunc(items, func(item object) bool { return gone[item["key"]] })
}
