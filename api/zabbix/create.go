package zabbix

import (
	"slices"
	"strings"

	"tidemark/model"
)

// What an export has for a host.
type (
	exportTag struct {
		Tag   string `json:"tag"`
		Value string `json:"value"`
	}
	exportName struct {
		Name string `json:"name"`
	}
	exportMacro struct {
		Macro       string `json:"macro"`
		Value       string `json:"value"`
		Type        string `json:"type,omitempty"`
		Description string `json:"description,omitempty"`
	}
)

// createHosts makes one host, or several from an array.
func createHosts(c *call) ([]byte, error) {
	given, err := c.objects()
	if err != nil {
		return nil, err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	c.renew() // a call that held the lock may have made a host of the same name
	var names []string
	for _, p := range given {
		name, err := c.createHost(p)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, name) {
			return nil, invalidParams(`Invalid parameter "/%s": value (host)=(%s) already exists.`, strings.TrimSuffix(p.place, "/"), name)
		}
		names = append(names, name)
	}
	if err := c.putAll(); err != nil {
		return nil, err
	}
	ids := make([]string, len(names))
	for h := range c.options.Configuration().Hosts() {
		if i := slices.Index(names, h.Host); i >= 0 {
			ids[i] = formatID(h.ID)
		}
	}
	return encodeJSON(map[string]any{"hostids": ids})
}

// createHost reads a host, checks that it may be made and adds it to what the call changes.
func (c *call) createHost(p *params) (string, error) {
	name := p.text("host")
	if name == "" {
		p.require("host")
		p.fail("host", "cannot be empty")
	}
	if !p.has("groupids") {
		p.require("groups")
	}
	if p.failed != nil {
		return "", p.failed
	}
	for h := range c.configuration.Hosts() {
		if h.Host == name {
			return "", invalidParams("Host with the same name %q already exists.", name)
		}
	}
	o := newOwner("host", name)
	if err := o.set("host", name); err != nil {
		return "", err
	}
	if err := c.editHost(p, o, &model.Host{Host: name}); err != nil {
		return "", err
	}
	if err := o.set("name", cmpOr(p.text("name"), name)); err != nil {
		return "", err
	}
	if err := c.placeHost(p, o); err != nil {
		return "", err
	}
	c.made(o)
	return name, p.done()
}

// placeHost gives a new host its state, templates and proxy.
func (c *call) placeHost(p *params, o *owner) error {
	if p.number("status", 0, 1) == 1 {
		if err := o.set("status", "DISABLED"); err != nil {
			return err
		}
	}
	templates := []exportName{}
	known, _ := c.templateRefs(p, "templates")
	for _, t := range known {
		templates = append(templates, exportName{t.Template})
	}
	if err := o.set("templates", templates); err != nil {
		return err
	}
	proxy, _, err := c.proxyOf(p, &model.Host{})
	if err != nil || proxy == "" {
		return err
	}
	return o.set("proxy", exportName{proxy})
}
