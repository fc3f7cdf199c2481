package zabbix

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"tidemark/access"
	"tidemark/model"
)

// maxHosts bounds the hosts that one call changes.
const maxHosts = 100

// deleteHosts deletes hosts with their items; the history of their items goes with its retention.
func deleteHosts(c *call) ([]byte, error) {
	ids := c.listIDs()
	if err := c.done(); err != nil {
		return nil, err
	}
	if len(ids) > maxHosts {
		return nil, invalidParams(`Invalid parameter "/": maximum number of ids is %d.`, maxHosts)
	}
	texts, names := []string{}, []string{}
	for id := range ids {
		h, ok := c.host(model.HostID(id))
		if !ok || !c.mayOnHost(h.ID, model.Editor) {
			return nil, errNotAllowed
		}
		texts, names = append(texts, strconv.FormatUint(id, 10)), append(names, h.Host)
	}
	slices.SortFunc(texts, compareNumbers)
	slices.Sort(names)
	access.Changed(c.ctx, "hosts", map[string]any{"hosts": names}, nil)
	for id := range ids {
		if err := c.options.Objects.DeleteHost(c.ctx, model.HostID(id)); err != nil {
			return nil, notAllowed(err)
		}
	}
	return encodeJSON(map[string]any{"hostids": texts})
}

// templateRefs reads [{"templateid":…}, …]; false when it is not given.
func (c *call) templateRefs(name string) ([]Template, bool) {
	v, given := c.get(name)
	if !given {
		return nil, false
	}
	var refs []struct {
		ID json.RawMessage `json:"templateid"`
	}
	if err := json.Unmarshal(v, &refs); err != nil {
		c.fail(name, "an array of objects with templateid is expected")
		return nil, true
	}
	known, err := c.templates()
	if err != nil && c.failed == nil {
		c.failed = err
	}
	var list []Template
	for _, r := range refs {
		id, _ := scalar(r.ID)
		i := slices.IndexFunc(known, func(t Template) bool { return formatID(t.ID) == id })
		if i < 0 || !c.mayLink(known[i].ID) {
			if c.failed == nil {
				c.failed = errNotAllowed
			}
			return nil, true
		}
		list = append(list, known[i])
	}
	return list, true
}

// mayLink reports whether the caller may see a template: with all hosts every one, else those of visible hosts.
func (c *call) mayLink(id model.TemplateID) bool {
	return c.visible == nil || slices.ContainsFunc(c.hosts(), func(h *model.Host) bool { return slices.Contains(h.Templates, id) })
}

// updateHost switches a host on and off, and links and unlinks templates.
func updateHost(c *call) ([]byte, error) {
	id := model.HostID(c.number("hostid", 0, 1<<62))
	enable := c.text("status")
	link, replaced := c.templateRefs("templates")
	unlink, _ := c.templateRefs("templates_clear")
	if err := c.done(); err != nil {
		return nil, err
	}
	h, ok := c.host(id)
	if !ok || !c.mayOnHost(id, model.Editor) {
		return nil, errNotAllowed
	}
	if enable != "" && enable != "0" && enable != "1" {
		return nil, invalidParams(`Invalid parameter "/status": value must be one of 0, 1.`)
	}
	linked := func(list []Template, id model.TemplateID) bool {
		return slices.ContainsFunc(list, func(t Template) bool { return t.ID == id })
	}
	for _, t := range h.Templates {
		if replaced && !linked(link, t) && !linked(unlink, t) {
			return nil, invalidParams(`Invalid parameter "/templates": template %d is linked and not in the list; what is unlinked here takes its items along, so name it in templates_clear.`, t)
		}
	}
	link = slices.DeleteFunc(link, func(t Template) bool { return slices.Contains(h.Templates, t.ID) })
	unlink = slices.DeleteFunc(unlink, func(t Template) bool { return !slices.Contains(h.Templates, t.ID) })
	access.Changed(c.ctx, "host "+h.Host, map[string]any{"enabled": h.Enabled, "templates": h.Templates},
		map[string]any{"enabled": enable == "0" || enable == "" && h.Enabled, "link": names(link), "unlink": names(unlink)})
	if err := c.applyHost(h, enable, link, unlink); err != nil {
		return nil, notAllowed(err)
	}
	return encodeJSON(map[string]any{"hostids": []string{formatID(id)}})
}

func names(list []Template) []string {
	texts := make([]string, 0, len(list))
	for _, t := range list {
		texts = append(texts, t.Template)
	}
	return texts
}

func (c *call) applyHost(h *model.Host, enable string, link, unlink []Template) error {
	if enable != "" && (enable == "0") != h.Enabled {
		if err := c.options.Objects.SetHostEnabled(c.ctx, h.ID, enable == "0"); err != nil {
			return err
		}
	}
	for _, t := range unlink {
		if err := c.options.Objects.UnlinkTemplate(c.ctx, h.ID, t.Template); err != nil {
			return err
		}
	}
	for _, t := range link {
		if err := c.options.Objects.LinkTemplate(c.ctx, h.ID, t.Template); err != nil {
			return err
		}
	}
	return nil
}

// exportConfiguration answers hosts and templates as a text in the form of Zabbix's exports.
func exportConfiguration(c *call) ([]byte, error) {
	format := c.text("format")
	c.accept("prettyprint")
	var options struct {
		Hosts     []json.RawMessage `json:"hosts"`
		Templates []json.RawMessage `json:"templates"`
	}
	if v, ok := c.get("options"); ok {
		if err := decodeStrict(v, &options); err != nil {
			c.fail("options", "an object with hosts and templates, arrays of ids, is expected")
		}
	}
	if err := c.done(); err != nil {
		return nil, err
	}
	if format != "yaml" {
		return nil, invalidParams(`Invalid parameter "/format": value must be "yaml".`)
	}
	if c.visible != nil {
		return nil, errNotAllowed
	}
	templates, hosts, err := c.exported(options.Templates, options.Hosts)
	if err != nil {
		return nil, err
	}
	text, err := c.options.Objects.Export(c.ctx, templates, hosts)
	if err != nil {
		return nil, notAllowed(err)
	}
	return encodeJSON(string(text))
}

// exported returns the technical names of what is to be exported.
func (c *call) exported(templateIDs, hostIDs []json.RawMessage) (templates, hosts []string, err error) {
	known, err := c.templates()
	if err != nil {
		return nil, nil, err
	}
	for _, v := range templateIDs {
		id, _ := scalar(v)
		i := slices.IndexFunc(known, func(t Template) bool { return formatID(t.ID) == id })
		if i < 0 {
			return nil, nil, errNotAllowed
		}
		templates = append(templates, known[i].Template)
	}
	for _, v := range hostIDs {
		text, _ := scalar(v)
		id, err := strconv.ParseUint(text, 10, 64)
		h, ok := c.host(model.HostID(id))
		if err != nil || !ok {
			return nil, nil, errNotAllowed
		}
		hosts = append(hosts, h.Host)
	}
	if len(templates)+len(hosts) == 0 {
		return nil, nil, invalidParams(`Invalid parameter "/options": cannot be empty.`)
	}
	return templates, hosts, nil
}

// importConfiguration takes over an export. It creates what is missing and updates what there is, so other rules are refused.
func importConfiguration(c *call) ([]byte, error) {
	format, source := c.text("format"), c.text("source")
	rules := make(map[string]map[string]bool)
	if v, ok := c.get("rules"); ok {
		if err := json.Unmarshal(v, &rules); err != nil {
			c.fail("rules", "an object of objects with createMissing, updateExisting and deleteMissing is expected")
		}
	}
	if err := c.done(); err != nil {
		return nil, err
	}
	if format != "yaml" && format != "json" {
		return nil, invalidParams(`Invalid parameter "/format": value must be one of "yaml", "json".`)
	}
	if c.visible != nil {
		return nil, errNotAllowed
	}
	for kind, rule := range rules {
		for name, on := range rule {
			if on == (name == "deleteMissing") {
				return nil, invalidParams(`Invalid parameter "/rules/%.50s/%.50s": value must be %v; an import here creates what is missing, updates what there is, and deletes nothing.`, kind, name, !on)
			}
		}
	}
	access.Changed(c.ctx, "import", nil, map[string]any{"bytes": len(source), "format": format})
	if err := c.options.Objects.Import(c.ctx, []byte(source), format == "json"); err != nil {
		return nil, err
	}
	return []byte("true"), nil
}

// decodeStrict refuses members that are not known.
func decodeStrict(text json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}
