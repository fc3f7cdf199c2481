package zabbix

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"tidemark/model"
)

var proxyKind = kind[Proxy]{
	name: "proxy", id: "proxyid", strict: true,
	fields: []field[Proxy]{
		{name: "proxyid", number: true, get: func(p *Proxy) string { return formatID(p.ID) }},
		{name: "name", get: func(p *Proxy) string { return p.Name }},
		{name: "host", get: func(p *Proxy) string { return p.Name }},
		{name: "description", get: func(p *Proxy) string { return p.Description }},
		{name: "operating_mode", number: true, get: func(p *Proxy) string { return formatBool(p.AskAt != "") }}, // 1 is passive
		{name: "address", get: func(p *Proxy) string { host, _, _ := net.SplitHostPort(p.AskAt); return cmpOr(host, "127.0.0.1") }},
		{name: "port", get: func(p *Proxy) string { _, port, _ := net.SplitHostPort(p.AskAt); return cmpOr(port, "10051") }},
		{name: "lastaccess", number: true, get: func(p *Proxy) string { return seconds(p.SeenAt) }},
		{name: "version", number: true, get: func(p *Proxy) string { return proxyVersion(p.Version) }},
		{name: "state", number: true, get: func(p *Proxy) string {
			if p.SeenAt == 0 {
				return "1" // offline
			}
			return "2"
		}},
		{name: "proxy_groupid", number: true, get: func(*Proxy) string { return "0" }},
		{name: "local_address", get: func(*Proxy) string { return "" }},
		{name: "local_port", get: func(*Proxy) string { return "10051" }},
		{name: "allowed_addresses", get: func(*Proxy) string { return "" }},
		{name: "custom_timeouts", number: true, get: func(*Proxy) string { return "0" }},
	},
}

// proxyVersion writes a release, 7.0.3, as Zabbix's number 70003.
func proxyVersion(text string) string {
	n := 0
	parts := strings.SplitN(text, ".", 3)
	for len(parts) < 3 {
		parts = append(parts, "0")
	}
	for _, part := range parts {
		digits := strings.TrimRight(part, "abcdefghijklmnopqrstuvwxyz-+0123456789")
		if digits != "" {
			return "0"
		}
		value, _ := strconv.Atoi(part[:len(part)-len(strings.TrimLeft(part, "0123456789"))])
		n = n*100 + min(value, 99)
	}
	return formatInt(n)
}

// getProxies lists proxies: all, or for somebody who sees only some hosts those of these hosts.
func getProxies(c *call) ([]byte, error) {
	ids := c.ids("proxyids")
	hosts := make(map[model.ProxyID][]model.HostID)
	for _, h := range c.hosts() {
		if h.Proxy != 0 {
			hosts[h.Proxy] = append(hosts[h.Proxy], h.ID)
		}
	}
	rows := slices.DeleteFunc(c.options.Objects.Proxies(), func(p Proxy) bool {
		return !ids.has(uint64(p.ID)) || c.visible != nil && len(hosts[p.ID]) == 0
	})
	k := proxyKind
	k.selects = []selection[Proxy]{
		{"selectHosts", "hosts", func(c *call, o output, p *Proxy) any { return c.pickHosts(o, hosts[p.ID]...) }},
		{"selectAssignedHosts", "assignedHosts", func(c *call, o output, p *Proxy) any { return c.pickHosts(o, hosts[p.ID]...) }},
		{"selectProxyGroup", "proxyGroup", func(*call, output, *Proxy) any { return []string{} }},
		{"selectInterface", "interface", func(*call, output, *Proxy) any { return []string{} }},
	}
	return answer(c, &k, rows)
}

// getTemplateGroups lists the groups of templates. They say nothing of hosts, so that everybody may see them.
func getTemplateGroups(c *call) ([]byte, error) {
	ids := c.ids("groupids")
	list, err := c.options.Objects.TemplateGroups(c.ctx)
	if err != nil {
		return nil, err
	}
	k := groupKind
	k.name = "template group"
	return answer(c, &k, slices.DeleteFunc(list, func(g Group) bool { return !ids.has(g.ID) }))
}
