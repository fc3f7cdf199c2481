package zabbix

import (
	"slices"

	"tidemark/model"
)

var templateKind = kind[Template]{
	name: "template", id: "templateid",
	fields: []field[Template]{
		{name: "templateid", number: true, get: func(t *Template) string { return templateID(t.ID) }},
		{name: "host", get: func(t *Template) string { return t.Template }},
		{name: "name", get: func(t *Template) string { return t.Name }},
		{name: "status", number: true, get: func(*Template) string { return "3" }},
		{name: "description", get: func(t *Template) string { return t.Description }},
	},
}

// templates returns all templates, read once for a call.
func (c *call) templates() ([]Template, error) {
	if c.templateList == nil {
		list, err := c.options.Objects.Templates(c.ctx)
		if err != nil {
			return nil, err
		}
		c.templateList = list
	}
	return slices.Clone(c.templateList), nil
}

func (c *call) templatesOf(h *model.Host) []Template {
	list, err := c.templates()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(list, func(t Template) bool { return !slices.Contains(h.Templates, t.ID) })
}

// getTemplates lists templates: all, or for somebody who sees only some hosts those of these hosts.
func getTemplates(c *call) ([]byte, error) {
	ids, hosts := c.templateIDs("templateids"), c.ids("hostids")
	list, err := c.templates()
	if err != nil {
		return nil, err
	}
	used := make(map[model.TemplateID][]model.HostID)
	for _, h := range c.hosts() {
		for _, t := range h.Templates {
			used[t] = append(used[t], h.ID)
		}
	}
	list = slices.DeleteFunc(list, func(t Template) bool {
		return !ids.has(uint64(t.ID)) || hosts != nil && !hasAny(hosts, used[t.ID]) || c.visible != nil && len(used[t.ID]) == 0
	})
	k := templateKind
	k.selects = []selection[Template]{{"selectHosts", "hosts", func(c *call, o output, t *Template) any { return c.pickHosts(o, used[t.ID]...) }}}
	return answer(c, &k, list)
}
