package zabbix

import (
	"net"
	"slices"

	"tidemark/access"
	"tidemark/model"
)

// proxyChange is a proxy as calls make and change it. Encryption is set with tidemark proxies and on the page.
type proxyChange struct {
	id                model.ProxyID
	name, description string
	// address is where the server asks a passive one; empty for one that calls the server.
	address string
}

// readProxy reads a proxy.
func (p *params) readProxy(known []Proxy, update bool) (out proxyChange, err error) {
	name := cmpOr(p.text("name"), p.text("host"))
	if update {
		p.require("proxyid")
		id := p.text("proxyid")
		i := slices.IndexFunc(known, func(k Proxy) bool { return formatID(k.ID) == id })
		if i < 0 {
			return out, errNotAllowed
		}
		out = proxyChange{known[i].ID, known[i].Name, known[i].Description, known[i].AskAt}
		if name != "" && name != out.name {
			return out, invalidParams(`Invalid parameter "/%sname": a proxy keeps its name, by which it calls; make another one.`, p.place)
		}
	} else if out.name = name; name == "" {
		p.require("name")
	} else if slices.ContainsFunc(known, func(k Proxy) bool { return k.Name == name }) {
		return out, invalidParams("Proxy %q already exists.", name)
	}
	if _, ok := p.get("description"); ok {
		out.description = p.text("description")
	}
	if _, ok := p.get("operating_mode"); ok {
		if out.address = ""; p.number("operating_mode", 0, 1) == 1 {
			p.require("address")
			out.address = net.JoinHostPort(p.text("address"), cmpOr(p.text("port"), "10051"))
		}
	}
	for _, member := range []string{"tls_connect", "tls_accept"} {
		if p.number(member, 1, 7) != 1 {
			p.fail(member, "value must be 1: encryption is set with tidemark proxies")
		}
	}
	if p.number("proxy_groupid", 0, 1<<53) != 0 {
		p.fail("proxy_groupid", "value must be 0: there are no groups of proxies")
	}
	p.accept("status", "local_address", "local_port", "address", "port", "allowed_addresses", "interface", "custom_timeouts")
	return out, p.done()
}

// changeProxies makes proxies or changes them, for administrators.
func changeProxies(c *call, update bool) ([]byte, error) {
	if err := c.mustAdminister(); err != nil {
		return nil, err
	}
	known := c.options.Objects.Proxies()
	var next []model.Proxy
	var made []model.ProxyID
	seen := make(map[string]bool)
	_, err := c.eachObject(func(p *params) (string, error) {
		p.once(seen, "name", "host", "proxyid")
		change, err := p.readProxy(known, update)
		next = append(next, model.Proxy{Name: change.name, Description: change.description, Address: change.address})
		return "", err
	}, func() (err error) {
		made, err = c.options.Objects.PutProxies(c.ctx, next)
		return err
	})
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for i, id := range made {
		p := &next[i]
		var before any
		if at := slices.IndexFunc(known, func(k Proxy) bool { return k.Name == p.Name }); at >= 0 {
			before = map[string]string{"description": known[at].Description, "ask_at": known[at].AskAt}
		}
		access.Changed(c.ctx, "proxy "+p.Name, before, map[string]string{"description": p.Description, "ask_at": p.Address})
		ids = append(ids, formatID(id))
	}
	return encodeJSON(map[string]any{"proxyids": ids})
}

func createProxies(c *call) ([]byte, error) { return changeProxies(c, false) }

func updateProxies(c *call) ([]byte, error) { return changeProxies(c, true) }

// deleteProxies removes proxies; the server asks their hosts itself then.
func deleteProxies(c *call) ([]byte, error) {
	if err := c.mustAdminister(); err != nil {
		return nil, err
	}
	return deleteNamed(c, removal[Proxy]{
		answer: "proxyids", what: "proxy", id: func(p *Proxy) string { return formatID(p.ID) }, name: func(p *Proxy) string { return p.Name },
		all:    func() ([]Proxy, error) { return c.options.Objects.Proxies(), nil },
		remove: func(names []string) error { return c.options.Objects.DeleteProxies(c.ctx, names) },
	})
}
