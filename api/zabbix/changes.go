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
	texts, gone := []string{}, []*model.Host{}
	for _, id := range sortedIDs(ids) {
		h, ok := c.host(model.HostID(id))
		if !ok || !c.mayOnHost(h.ID, model.Editor) {
			return nil, errNotAllowed
		}
		texts, gone = append(texts, strconv.FormatUint(id, 10)), append(gone, h)
	}
	list := make([]model.HostID, 0, len(gone))
	for _, h := range gone {
		list = append(list, h.ID)
	}
	if err := c.options.Objects.DeleteHosts(c.ctx, list); err != nil {
		return nil, notAllowed(err)
	}
	for _, h := range gone {
		access.Changed(c.ctx, "host "+h.Host, h.Host, nil)
	}
	return encodeJSON(map[string]any{"hostids": texts})
}

// templateRefs reads [{"templateid":…}, …]; false when it is not given.
func (c *call) templateRefs(p *params, name string) ([]Template, bool) {
	asked, given := p.references(name, "templateid", name+"ids")
	if !given || len(asked) == 0 {
		return nil, given
	}
	ids := templateSet(asked)
	known, err := c.templates()
	if len(ids) != len(asked) {
		err = errNotAllowed
	}
	if err == nil {
		known = slices.DeleteFunc(known, func(t Template) bool { return !ids[uint64(t.ID)] })
		if len(known) != len(ids) || slices.ContainsFunc(known, func(t Template) bool { return !c.mayLink(t.ID) }) {
			err = errNotAllowed
		}
	}
	if err != nil {
		if p.failed == nil {
			p.failed = err
		}
		return nil, true
	}
	return known, true
}

// mayLink reports whether the caller may see a template: with all hosts every one, else those of visible hosts.
func (c *call) mayLink(id model.TemplateID) bool {
	return c.visible == nil || slices.ContainsFunc(c.hosts(), func(h *model.Host) bool { return slices.Contains(h.Templates, id) })
}

func names(list []Template) []string {
	texts := make([]string, 0, len(list))
	for _, t := range list {
		texts = append(texts, t.Template)
	}
	return texts
}

// stateOf adds what is to become of a host's state and links to what the call changes. enable is 0 for on, 1 for off, and empty for as it is.
func (c *call) stateOf(h *model.Host, enable string, link, unlink []Template) *hostState {
	s := &hostState{HostState: HostState{Host: h.ID, Link: names(link), Unlink: names(unlink)}, host: h}
	if on := enable == "0"; enable != "" && on != h.Enabled {
		s.Enabled = &on
	}
	c.states = append(c.states, s)
	return s
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
	if format != "yaml" && format != "json" {
		return nil, invalidParams(`Invalid parameter "/format": value must be one of "yaml", "json".`)
	}
	if c.visible != nil {
		return nil, errNotAllowed
	}
	templates, hosts, err := c.exported(options.Templates, options.Hosts)
	if err != nil {
		return nil, err
	}
	text, err := c.options.Objects.Export(c.ctx, templates, hosts, format == "json")
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
		i := slices.IndexFunc(known, func(t Template) bool { return templateID(t.ID) == id })
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

// importConfiguration takes over an export. It creates what is missing, updates what there is, and deletes what the rules say.
func importConfiguration(c *call) ([]byte, error) {
	format, source := c.text("format"), c.text("source")
	deletes, err := c.readRules(source)
	if err != nil {
		return nil, err
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
	if err := c.options.Objects.Import(c.ctx, []byte(source), format == "json", deletes); err != nil {
		return nil, err
	}
	access.Changed(c.ctx, "import", nil, map[string]any{"bytes": len(source), "format": format, "deletes": deletes})
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
