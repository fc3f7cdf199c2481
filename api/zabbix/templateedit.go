package zabbix

import (
	"encoding/json"
	"slices"
	"strings"
)

// changeTemplates makes templates, or with update changes what they are; items and triggers come with configuration.import.
func changeTemplates(c *call, update bool) ([]byte, error) {
	if c.visible != nil { // a template is of all hosts that are linked to it
		return nil, errNotAllowed
	}
	made, err := c.eachObject(func(p *params) (string, error) {
		o, err := c.templateOwner(p, update)
		if err != nil {
			return "", err
		}
		if err := c.editTemplate(p, o); err != nil {
			return "", err
		}
		return o.name, nil
	}, c.putAll)
	if err != nil {
		return nil, err
	}
	c.templateList = nil
	known, err := c.templates()
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, name := range made {
		if i := slices.IndexFunc(known, func(t Template) bool { return t.Template == name }); i >= 0 {
			ids = append(ids, templateID(known[i].ID))
		}
	}
	return encodeJSON(map[string]any{"templateids": ids})
}

func createTemplates(c *call) ([]byte, error) { return changeTemplates(c, false) }

func updateTemplates(c *call) ([]byte, error) { return changeTemplates(c, true) }

// templateOwner reads the template that is to be changed, or begins a new one.
func (c *call) templateOwner(p *params, update bool) (*owner, error) {
	known, err := c.templates()
	if err != nil {
		return nil, err
	}
	if update {
		p.require("templateid")
		id := p.text("templateid")
		i := slices.IndexFunc(known, func(t Template) bool { return templateID(t.ID) == id })
		if i < 0 {
			return nil, errNotAllowed
		}
		if err := p.keepsName("host", known[i].Template); err != nil {
			return nil, err
		}
		return c.edit("template", known[i].Template)
	}
	for _, member := range []string{"host", "groups"} {
		p.require(member)
	}
	name := p.text("host")
	if p.failed != nil {
		return nil, p.failed
	}
	same := func(o *owner) bool { return o.name == name }
	if slices.ContainsFunc(known, func(t Template) bool { return t.Template == name }) || slices.ContainsFunc(c.pending, same) {
		return nil, invalidParams("Template with the same name %q already exists.", name)
	}
	o := newOwner("template", name)
	c.made(o)
	if err := o.set("template", name); err != nil {
		return nil, err
	}
	return o, o.set("name", name)
}

// editTemplate sets what is given.
func (c *call) editTemplate(p *params, o *owner) error {
	if err := p.common(o, 0); err != nil {
		return err
	}
	if ids, ok := p.references("groups", "groupid", "groupids"); ok {
		groups, err := c.options.Objects.TemplateGroups(c.ctx)
		if err != nil {
			return err
		}
		next := []exportName{}
		for _, g := range groups {
			if ids[g.ID] {
				next = append(next, exportName{g.Name})
			}
		}
		if len(next) != len(ids) || len(next) == 0 {
			return errNotAllowed
		}
		if err := o.set("groups", next); err != nil {
			return err
		}
	}
	if link, ok := c.templateRefs(p, "templates"); ok {
		next := []exportName{}
		for _, t := range link {
			next = append(next, exportName{t.Template})
		}
		if err := o.set("templates", next); err != nil {
			return err
		}
	}
	return p.done()
}

// deleteTemplates deletes templates with all that hosts inherit from them.
func deleteTemplates(c *call) ([]byte, error) {
	if c.visible != nil {
		return nil, errNotAllowed
	}
	return deleteNamed(c, removal[Template]{
		answer: "templateids", what: "template", all: c.templates,
		id: func(t *Template) string { return templateID(t.ID) }, name: func(t *Template) string { return t.Template },
		remove: func(names []string) error { return c.options.Objects.DeleteTemplates(c.ctx, names) },
	})
}

// createTemplateGroups makes template groups.
func createTemplateGroups(c *call) ([]byte, error) {
	return c.createGroupsOf("template_groups", "Template group", c.options.Objects.TemplateGroups)
}

// mayHave reports whether an export may have objects of a kind of rules. Without some it is no matter what a rule says.
func mayHave(source, kind string) bool {
	members := map[string]string{
		"valueMaps": "valuemaps", "httptests": "httptests", "graphs": "graph", "triggers": "trigger", "discoveryRules": "discovery_rules", "items": "items",
		"templateLinkage": "templates", "templates": "templates", "hosts": "hosts", "host_groups": "groups", "template_groups": "groups",
		"images": "images", "maps": "maps", "mediaTypes": "media_types", "templateDashboards": "dashboards", "dashboards": "dashboards",
	}
	return members[kind] == "" || strings.Contains(source, members[kind])
}

// readRules reads the rules of an import and what it may delete.
func (c *call) readRules(source string) (deletes Deletes, err error) {
	rules := make(map[string]map[string]bool)
	if v, ok := c.get("rules"); ok {
		if err := json.Unmarshal(v, &rules); err != nil {
			c.fail("rules", "an object of objects with createMissing, updateExisting and deleteMissing is expected")
		}
	}
	for kind, rule := range rules {
		for name, on := range rule {
			if name != "deleteMissing" && !on && mayHave(source, kind) {
				return deletes, invalidParams(`Invalid parameter "/rules/%.50s/%.50s": value must be true; an import here creates what is missing and updates what there is.`, kind, name)
			}
		}
	}
	contents := []string{"items", "triggers", "discoveryRules", "graphs"}
	for _, kind := range contents {
		deletes.Contents = deletes.Contents || rules[kind]["deleteMissing"]
	}
	for _, kind := range contents {
		if deletes.Contents && !rules[kind]["deleteMissing"] {
			return deletes, invalidParams(`Invalid parameter "/rules/%s": deleteMissing is for %s together, or for none of them.`, kind, strings.Join(contents, ", "))
		}
	}
	deletes.Links, deletes.ValueMaps = rules["templateLinkage"]["deleteMissing"], rules["valueMaps"]["deleteMissing"]
	return deletes, nil
}

// Deletes says what an import deletes of the hosts and templates in it: what the file does not have.
type Deletes struct {
	// Contents are items, triggers, discovery rules and graphs.
	Contents         bool
	Links, ValueMaps bool
}

// Difference is something that an import would change.
type Difference struct {
	// What is created, updated or deleted; Kind is in the plural, "trigger prototypes".
	What, Kind string
	// Owner is the host or template, empty for groups.
	Owner, Name string
}

// compareImport answers what an import would change, by kind. What is answered of an object is its name and whose it is.
func compareImport(c *call) ([]byte, error) {
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
	list, err := c.options.Objects.Compare(c.ctx, []byte(source), format == "json", deletes)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return []byte("[]"), nil
	}
	out := make(map[string]map[string][]any)
	for _, d := range list {
		kind := strings.ReplaceAll(d.Kind, " ", "_")
		if out[kind] == nil {
			out[kind] = make(map[string][]any)
		}
		object := map[string]string{"name": d.Name}
		if d.Owner != "" {
			object["owner"] = d.Owner
		}
		switch d.What {
		case "created":
			out[kind]["added"] = append(out[kind]["added"], map[string]any{"after": object})
		case "deleted":
			out[kind]["removed"] = append(out[kind]["removed"], map[string]any{"before": object})
		default:
			out[kind]["updated"] = append(out[kind]["updated"], map[string]any{"before": object, "after": object})
		}
	}
	return encodeJSON(out)
}
