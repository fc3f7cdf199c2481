package zabbix

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"tidemark/model"
)

// maxDocuments bounds the hosts and templates whose documents one call reads.
const maxDocuments = 1000

// document reads the document of a host or, as asHost, of a template, once for a call. Nil is for one that was deleted meanwhile, and for what is
// beyond maxDocuments, which fails the call.
func (c *call) document(h *model.Host) *owner {
	if o, ok := c.documents[h.ID]; ok {
		return o
	}
	if len(c.documents) >= maxDocuments {
		if c.failed == nil {
			c.failed = applicationError(fmt.Sprintf("The call looks at more than %d hosts and templates that have such objects of their own; ask for less with hostids.", maxDocuments))
		}
		return nil
	}
	o, err := c.readOwner(kindOf(h), h.Host)
	if err != nil {
		o = nil
	}
	if c.documents == nil {
		c.documents = make(map[model.HostID]*owner)
	}
	c.documents[h.ID] = o
	return o
}

// Ids of what hosts have in their documents are made as those of templates, with another bit.
const (
	hostContentBit   = 51
	hostContentShift = 29
	hostContentMask  = 1<<(hostContentBit-hostContentShift) - 1
)

// partID is the id of something in the document of a host or template, by its name.
func partID(h *model.Host, name string) uint64 {
	if isTemplate(h.ID) {
		return contentID(model.TemplateID(uint64(h.ID)-templateBase), name)
	}
	f := fnv.New64a()
	_, _ = f.Write([]byte(name))
	return 1<<hostContentBit | (uint64(h.ID)&hostContentMask)<<hostContentShift | f.Sum64()>>(64-hostContentShift)
}

// ownerOfPart returns the host or template of an id of partID or of an item, if the caller may see it.
func (c *call) ownerOfPart(id uint64) (*model.Host, bool) {
	if t, ok := templateOfContent(id); ok {
		return c.holder(model.HostID(templateBase + uint64(t)))
	}
	if id>>hostContentBit == 1 {
		return c.holder(model.HostID(id >> hostContentShift & hostContentMask))
	}
	item, ok := c.configuration.Item(model.ItemID(id))
	if !ok {
		return nil, false
	}
	return c.holder(item.HostID)
}

// part is an object of a document: a discovery rule, a prototype, a web scenario.
type part struct {
	// object is as the document has it.
	object object
	id     uint64
	// holder is the host or template that has it, source the one whose document it is in: holder, or a template that it comes from.
	holder, source *model.Host
	// inherited is the id that it has in source, 0 when that is holder.
	inherited uint64
	// masterItem is the item that a rule of a host takes its values from, 0 for none.
	masterItem uint64
	// rule is that of a prototype.
	rule *part
	// edits says that the caller may change the holder, and so see what may hold secrets.
	edits bool
}

func (r *part) text(member, otherwise string) string {
	if text, ok := r.object[member].(string); ok {
		return text
	}
	return otherwise
}

// list returns a member that is a list of objects.
func (r *part) list(member string) []object { return objectsIn(r.object, member) }

// objectsIn returns a member that is a list of objects, as it was decoded or as it was set.
func objectsIn(o object, member string) []object {
	if set, ok := o[member].([]object); ok {
		return set
	}
	all, _ := o[member].([]any)
	list := make([]object, 0, len(all))
	for _, one := range all {
		if o, ok := one.(object); ok {
			list = append(list, o)
		}
	}
	return list
}

func (r *part) tags() []model.Tag {
	var tags []model.Tag
	for _, t := range r.list("tags") {
		name, _ := t["tag"].(string)
		value, _ := t["value"].(string)
		tags = append(tags, model.Tag{Name: name, Value: value})
	}
	return tags
}

// The fields that parts have alike.
var (
	// secretMembers are never answered, guardedMembers to those who may change the holder: addresses and scripts may hold secrets too.
	secretMembers  = []string{"password", "privatekey", "http_password", "ssl_key_password"}
	guardedMembers = []string{"url", "posts", "params", "username", "publickey", "http_user", "http_proxy", "query_fields", "headers", "variables", "parameters"}
)

func (r *part) shows(member string) bool {
	return !slices.Contains(secretMembers, member) && (r.edits || !slices.Contains(guardedMembers, member))
}

// partText is a member that calls and documents have alike.
func partText(member, of, otherwise string) field[part] {
	return field[part]{name: member, get: func(r *part) string {
		if !r.shows(of) {
			return ""
		}
		return r.text(of, otherwise)
	}}
}

// partTexts are members of the same name in both, empty when documents leave them out.
func partTexts(members ...string) []field[part] {
	fields := make([]field[part], 0, len(members))
	for _, m := range members {
		fields = append(fields, partText(m, m, ""))
	}
	return fields
}

// partNumber is a member that is a number in calls and a name in documents.
func partNumber(member, of string, names []string, otherwise int) field[part] {
	return field[part]{name: member, number: true, get: func(r *part) string { return formatInt(indexOf(names, r.text(of, ""), otherwise)) }}
}

// partIDs are the ids of a part and of its holder.
func partIDs(id, flags string) []field[part] {
	return []field[part]{
		{name: id, number: true, get: func(r *part) string { return formatID(r.id) }},
		{name: "hostid", number: true, get: func(r *part) string { return formatID(r.holder.ID) }},
		{name: "templateid", number: true, get: func(r *part) string { return formatID(r.inherited) }},
		{name: "flags", number: true, get: func(*part) string { return flags }},
		{name: "uuid", get: func(r *part) string { return r.text("uuid", "") }},
	}
}

// partFilters are members of filter alone: of the host or template, and whether it is a template.
func partFilters() []field[part] {
	return []field[part]{
		{name: "host", get: func(r *part) string { return r.holder.Host }},
		{name: "templated", get: func(r *part) string { return formatBool(isTemplate(r.holder.ID)) }},
	}
}

// partSelects are what all kinds of parts have.
func partSelects() []selection[part] {
	return []selection[part]{
		{"selectHosts", "hosts", func(c *call, o output, r *part) any { return c.pickHosts(o, r.holder.ID) }},
		{"selectTags", "tags", func(_ *call, o output, r *part) any { return pickTags(o, r.tags()) }},
	}
}

// pairsOf is a member that is a list of names with values, for a kind's members that are no texts.
func pairsOf(member string) selection[part] {
	return selection[part]{"", member, func(_ *call, _ output, r *part) any {
		if !r.shows(member) {
			return []object{}
		}
		return pairList(r.object, member)
	}}
}

func pairList(o object, member string) []object {
	list := []object{}
	for _, one := range objectsIn(o, member) {
		list = append(list, object{"name": textOf(one, "name", ""), "value": textOf(one, "value", "")})
	}
	return list
}

func textOf(o object, member, otherwise string) string {
	text, ok := o[member].(string)
	if !ok {
		return otherwise
	}
	return text
}

// stepsOf answers preprocessing steps as calls have them.
func stepsOf(o object) []object {
	list := []object{}
	for _, one := range objectsIn(o, "preprocessing") {
		var params []string
		all, _ := one["parameters"].([]any)
		for _, p := range all {
			text, _ := p.(string)
			params = append(params, text)
		}
		list = append(list, object{
			"type": formatInt(indexOf(stepTypes, textOf(one, "type", ""), 0)), "params": strings.Join(params, "\n"),
			"error_handler": formatInt(indexOf(stepFailures, textOf(one, "error_handler", ""), 0)), "error_handler_params": textOf(one, "error_handler_params", ""),
		})
	}
	return list
}

// sourceOf is a template as asHost, whether or not the caller may see it by itself: a host's objects come from it.
func (c *call) sourceOf(id model.TemplateID) *model.Host {
	list, err := c.templates()
	if i := slices.IndexFunc(list, func(t Template) bool { return t.ID == id }); err == nil && i >= 0 {
		return asHost(&list[i])
	}
	return nil
}

// editsOn says whether the caller may change a host or template.
func (c *call) editsOn(h *model.Host) bool {
	_, err := c.editable(h.ID)
	return err == nil
}

// asked is which hosts and templates a call asks for by their ids and groups; nil sets stand for all.
type asked struct {
	hosts, groups, templates idSet
	// monitored leaves out templates and what is disabled, templated leaves out hosts; inherited is "" for all, "0" for one's own.
	monitored, templated bool
	inherited            string
	// names are the technical names of filter on host, nil for all.
	names []string
}

func (c *call) asked() asked {
	return asked{c.ids("hostids"), c.ids("groupids"), c.templateIDs("templateids"), c.flag("monitored"), c.flag("templated"), c.text("inherited"), c.filterTexts("host")}
}

func (a *asked) fits(h *model.Host) bool {
	return (!a.monitored || h.Enabled && !isTemplate(h.ID)) && (!a.templated || isTemplate(h.ID)) && (a.names == nil || slices.Contains(a.names, h.Host))
}

func (a *asked) fitsPart(r *part) bool {
	return (a.inherited == "" || (r.inherited != 0) == (a.inherited != "0")) && (!a.monitored || r.text("status", "") != "DISABLED")
}

// holders returns the hosts and templates whose parts a call asks for: those of the ids, or those of which hosts, groups and templates are given.
func (c *call) holders(a *asked, ids idSet) (list []*model.Host, err error) {
	names, err := c.groupNames(a.groups)
	if err != nil {
		return nil, err
	}
	if ids != nil {
		for _, id := range sortedIDs(ids) {
			h, ok := c.ownerOfPart(id)
			if ok && askedHolder(a.hosts, a.templates, h.ID) && inGroups(names, h) && a.fits(h) && !slices.ContainsFunc(list, func(o *model.Host) bool { return o.ID == h.ID }) {
				list = append(list, h)
			}
		}
		return list, nil
	}
	if list, err = c.templatesAsked(a.templates, a.hosts, a.names, a.templated); err != nil {
		return nil, err
	}
	if a.templates == nil {
		list = append(c.hosts(), list...)
	}
	return slices.DeleteFunc(list, func(h *model.Host) bool {
		return !isTemplate(h.ID) && (!a.hosts.has(uint64(h.ID)) || !inGroups(names, h)) || !a.fits(h)
	}), nil
}

// objects are a member that is a list of objects, decoded once; nil for a document that is gone.
func (o *owner) objects(member string) []object {
	if o == nil {
		return nil
	}
	all, ok := o.decoded[member]
	if !ok {
		if o.decoded == nil {
			o.decoded = make(map[string][]object)
		}
		if text := o.members[member]; text != nil && json.Unmarshal(text, &all) != nil {
			all = nil
		}
		o.decoded[member] = all
	}
	return all
}

// documentRules are the discovery rules in the document of a host or template.
func documentRules(o *owner) []object { return o.objects(rulesOfDocument) }
