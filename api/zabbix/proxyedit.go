package zabbix

import (
	"net"
	"slices"
	"strconv"

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
	given, err := c.objects()
	if err != nil {
		return nil, err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	ids := []string{}
	for _, p := range given {
		change, err := p.readProxy(c.options.Objects.Proxies(), update)
		if err != nil {
			return nil, err
		}
		id, err := c.options.Objects.PutProxy(c.ctx, model.Proxy{Name: change.name, Description: change.description, Address: change.address})
		if err != nil {
			return nil, err
		}
		access.Changed(c.ctx, "proxy "+change.name, nil, map[string]string{"description": change.description, "ask_at": change.address})
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
	ids := c.listIDs()
	if err := c.done(); err != nil {
		return nil, err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	gone := slices.DeleteFunc(c.options.Objects.Proxies(), func(p Proxy) bool { return !ids[uint64(p.ID)] })
	if len(gone) != len(ids) {
		return nil, errNotAllowed
	}
	texts := []string{}
	for _, p := range gone {
		if err := c.options.Objects.DeleteProxy(c.ctx, p.Name); err != nil {
			return nil, notAllowed(err)
		}
		access.Changed(c.ctx, "proxy "+p.Name, p.Name, nil)
		texts = append(texts, strconv.FormatUint(uint64(p.ID), 10))
	}
	return encodeJSON(map[string]any{"proxyids": texts})
}
