package zabbix

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"

	"tidemark/model"
)

// Zabbix has one space of ids for hosts and templates, and gives their items and triggers ids too. Here hosts and templates are counted each
// for themselves, and what a template has is known by its name in the template's document. So the ids of templates are moved up, and those of
// their items and triggers are made of the template and the name. All fit 53 bits, so that scripts can hold them as numbers.
const (
	templateBase = 1 << 40
	contentBit   = 52
	contentShift = 30
	templateMask = 1<<(contentBit-contentShift) - 1
)

// templateID is the id of a template as clients see it.
func templateID(id model.TemplateID) string {
	if id == 0 {
		return "0"
	}
	return strconv.FormatUint(templateBase+uint64(id), 10)
}

// contentID is the id of an item or trigger of a template.
func contentID(t model.TemplateID, name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return 1<<contentBit | (uint64(t)&templateMask)<<contentShift | h.Sum64()>>(64-contentShift)
}

func templateItemID(t model.TemplateID, key string) uint64 { return contentID(t, "item "+key) }

// templateOfContent returns the template of an id of contentID.
func templateOfContent(id uint64) (model.TemplateID, bool) {
	return model.TemplateID(id >> contentShift & templateMask), id>>contentBit == 1
}

// templateSet is ids of templates that were asked for as they are counted here.
func templateSet(ids idSet) idSet {
	if ids == nil {
		return nil
	}
	own := make(idSet, len(ids))
	for id := range ids {
		if id > templateBase {
			own[id-templateBase] = true
		}
	}
	return own
}

// templateIDs reads one or several ids of templates.
func (p *params) templateIDs(name string) idSet { return templateSet(p.ids(name)) }

func isTemplate(id model.HostID) bool { return id > templateBase }

// kindOf is what a document of a host or of asHost calls it.
func kindOf(h *model.Host) string {
	if isTemplate(h.ID) {
		return "template"
	}
	return "host"
}

// asHost gives a template the form of a host, so that items and triggers of both are read and changed alike.
func asHost(t *Template) *model.Host {
	return &model.Host{ID: model.HostID(templateBase + uint64(t.ID)), Host: t.Template, Name: t.Name, Enabled: true}
}

// holder returns a host that the caller may see, or a template as asHost.
func (c *call) holder(id model.HostID) (*model.Host, bool) {
	if !isTemplate(id) {
		return c.host(id)
	}
	list, err := c.templates()
	i := slices.IndexFunc(list, func(t Template) bool { return uint64(t.ID) == uint64(id)-templateBase })
	if err != nil || i < 0 || !c.mayLink(list[i].ID) {
		return nil, false
	}
	return asHost(&list[i]), true
}

// templatesAsked returns the templates, as hosts, that ids of templates or of hosts name, or names; with all every one that the caller may see.
func (c *call) templatesAsked(templates, hosts idSet, names []string, all bool) ([]*model.Host, error) {
	asked := slices.ContainsFunc(sortedIDs(hosts), func(id uint64) bool { return id > templateBase })
	if templates == nil && !asked && len(names) == 0 && !all {
		return nil, nil
	}
	list, err := c.templates()
	if err != nil {
		return nil, err
	}
	var found []*model.Host
	for i := range list {
		t := &list[i]
		named := templates[uint64(t.ID)] || hosts[templateBase+uint64(t.ID)] || templates == nil && hosts == nil && (all || slices.Contains(names, t.Template))
		if named && c.mayLink(t.ID) {
			found = append(found, asHost(t))
		}
	}
	return found, nil
}

// askedHolder reports whether a host or template was asked for; nil stands for not given.
func askedHolder(hosts, templates idSet, id model.HostID) bool {
	if templates == nil {
		return hosts.has(uint64(id))
	}
	return hosts[uint64(id)] || isTemplate(id) && templates[uint64(id)-templateBase]
}

func sortedIDs(ids idSet) []uint64 {
	list := make([]uint64, 0, len(ids))
	for id := range ids {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// contents are the items and triggers of a template.
type contents struct {
	items    []itemRow
	triggers []model.Trigger
}

// What documents have of items and triggers, as far as calls show it.
type (
	documentItem struct {
		UUID, Name, Type, Key, Delay, History, Trends, Units, Description, Status string

		ValueType string      `json:"value_type"`
		Tags      []exportTag `json:"tags"`
		Master    struct {
			Key string `json:"key"`
		} `json:"master_item"`
		Triggers []documentTrigger `json:"triggers"`
		ValueMap exportName        `json:"valuemap"`
	}
	documentTrigger struct {
		UUID, Expression, Name, OpData, URL, Priority, Description, Type, Status string

		EventName string      `json:"event_name"`
		Mode      string      `json:"recovery_mode"`
		Recovery  string      `json:"recovery_expression"`
		Tag       string      `json:"correlation_tag"`
		Close     string      `json:"manual_close"`
		Tags      []exportTag `json:"tags"`
	}
)

// contentsOf reads the items and triggers of a template, once for a call.
func (c *call) contentsOf(h *model.Host) *contents {
	if known := c.content[h.ID]; known != nil {
		return known
	}
	out := &contents{}
	o, err := c.readOwner("template", h.Host)
	if err != nil {
		return out // it was deleted meanwhile
	}
	items, err := list[documentItem](o, "items")
	if err != nil {
		return out
	}
	var triggers []documentTrigger
	if text := o.document.Export["triggers"]; text != nil && json.Unmarshal(text, &triggers) != nil {
		return out
	}
	t := model.TemplateID(uint64(h.ID) - templateBase)
	for i := range items {
		out.items = append(out.items, items[i].row(t, h))
		triggers = append(triggers, items[i].Triggers...)
	}
	for i := range triggers {
		out.triggers = append(out.triggers, triggers[i].trigger(t, h))
	}
	if c.content == nil {
		c.content = make(map[model.HostID]*contents)
	}
	c.content[h.ID] = out
	return out
}

// indexOf is the number of a name in a list; otherwise when it is not in it.
func indexOf(names []string, name string, otherwise int) int {
	if i := slices.Index(names, name); i >= 0 && name != "" {
		return i
	}
	return otherwise
}

func modelTags(tags []exportTag) []model.Tag {
	var out []model.Tag
	for _, t := range tags {
		out = append(out, model.Tag{Name: t.Tag, Value: t.Value})
	}
	return out
}

// row is an item of a template as a row; documents leave out what is the default.
func (d *documentItem) row(t model.TemplateID, h *model.Host) itemRow {
	valueType := model.ValueType(indexOf(itemValueTypes, d.ValueType, int(model.Uint)))
	item := &model.Item{
		ID: model.ItemID(templateItemID(t, d.Key)), HostID: h.ID, Type: model.ItemType(indexOf(itemTypes, d.Type, 0)), UUID: d.UUID, Key: d.Key, Name: d.Name,
		Description: d.Description, ValueType: valueType, Units: d.Units, Delay: cmpOr(d.Delay, "1m"), Enabled: d.Status != "DISABLED", Tags: modelTags(d.Tags),
	}
	if d.ValueMap.Name != "" {
		item.TemplateID, item.ValueMap = t, &model.ValueMap{Name: d.ValueMap.Name}
	}
	if d.Master.Key != "" {
		item.MasterID = model.ItemID(templateItemID(t, d.Master.Key))
	}
	entry := model.Entry{ID: item.ID, HostID: h.ID, Host: h.Host, Key: d.Key, Name: d.Name, Units: d.Units, Help: d.Description, ValueType: valueType}
	return itemRow{Entry: entry, item: item, tags: item.Tags, history: cmpOr(d.History, "31d"), trends: cmpOr(d.Trends, "365d")}
}

func (d *documentTrigger) trigger(t model.TemplateID, h *model.Host) model.Trigger {
	mode := indexOf(triggerNumbers["recovery_mode"], d.Mode, 0)
	return model.Trigger{
		ID:     model.TriggerID(contentID(t, "trigger "+d.Name+"\x00"+d.Expression+"\x00"+d.Recovery)),
		HostID: h.ID, UUID: d.UUID, Name: d.Name, EventName: d.EventName, OpData: d.OpData, Expression: d.Expression, Recovery: d.Recovery,
		RecoveryMode: model.RecoveryMode(mode), Severity: model.Severity(indexOf(triggerNumbers["priority"], d.Priority, 0)), Enabled: d.Status != "DISABLED",
		MultipleEvents: d.Type == "MULTIPLE", ManualClose: d.Close == "YES", CorrelationTag: d.Tag, Tags: modelTags(d.Tags), Comments: d.Description, URL: d.URL,
	}
}

// templateItem finds an item of a template by its id; two whose ids are the same are not found.
func (c *call) templateItem(t model.TemplateID, id model.ItemID) (itemRow, bool) {
	h, ok := c.holder(model.HostID(templateBase + uint64(t)))
	if !ok {
		return itemRow{}, false
	}
	return single(c.contentsOf(h).items, func(r *itemRow) bool { return r.ID == id })
}

// templateTrigger is templateItem for a trigger.
func (c *call) templateTrigger(t model.TemplateID, id model.TriggerID) (*model.Trigger, bool) {
	h, ok := c.holder(model.HostID(templateBase + uint64(t)))
	if !ok {
		return nil, false
	}
	found, ok := single(c.contentsOf(h).triggers, func(r *model.Trigger) bool { return r.ID == id })
	return &found, ok
}

// single returns the only element that fits.
func single[T any](all []T, fits func(*T) bool) (found T, ok bool) {
	count := 0
	for i := range all {
		if fits(&all[i]) {
			found = all[i]
			count++
		}
	}
	return found, count == 1
}

// triggersIn returns the triggers of a host or, as asHost, of a template; shared, must not be changed.
func (c *call) triggersIn(id model.HostID) []model.Trigger {
	if !isTemplate(id) {
		return c.configuration.TriggersOf(id)
	}
	h, ok := c.holder(id)
	if !ok {
		return nil
	}
	return c.contentsOf(h).triggers
}

// renew takes the configuration as it is now.
func (c *call) renew() {
	c.configuration, c.content, c.documents, c.templateList = c.options.Configuration(), nil, nil, nil
}
