package zabbix

import (
	"slices"
	"strconv"

	"tidemark/access"
	"tidemark/discovery"
	"tidemark/discovery/network"
	"tidemark/model"
	"tidemark/wire/proxyconfig"
)

func netRuleID(r *network.Rule) string { return stableID(0, "drule "+r.Name) }

// netCheck is a check with its rule.
type netCheck struct {
	*network.Check
	rule *network.Rule
}

// snmp is how a device is asked; that of other checks is empty.
func (k *netCheck) snmp() *model.SNMPAccess {
	if k.Type != "snmp" {
		return &model.SNMPAccess{}
	}
	return k.SNMP.Access()
}

// place is the number of a name, 0 for none.
func place(names []string, name string) string { return formatInt(max(0, slices.Index(names, name))) }

var netCheckKind = kind[netCheck]{
	name: "discovery check", id: "dcheckid",
	fields: []field[netCheck]{
		{name: "dcheckid", number: true, get: func(k *netCheck) string { return stableID(0, "dcheck "+k.rule.Name+"\x00"+k.Label()) }},
		{name: "druleid", number: true, get: func(k *netCheck) string { return netRuleID(k.rule) }},
		{name: "type", number: true, get: func(k *netCheck) string { return formatInt(proxyconfig.CheckNumber(k.Type, k.snmp().Version)) }},
		{name: "key_", get: func(k *netCheck) string { return k.Key }},
		{name: "ports", get: func(k *netCheck) string { return cmpOr(k.PortList(), "0") }},
		{name: "snmp_community", get: func(k *netCheck) string { return k.snmp().Community }},
		{name: "snmpv3_contextname", get: func(k *netCheck) string { return k.snmp().Context }},
		{name: "snmpv3_securityname", get: func(k *netCheck) string { return k.snmp().SecurityName }},
		{name: "snmpv3_securitylevel", number: true, get: func(k *netCheck) string { return place(snmpLevels, k.snmp().SecurityLevel) }},
		{name: "snmpv3_authprotocol", number: true, get: func(k *netCheck) string { return place(snmpAuth, k.snmp().AuthProtocol) }},
		{name: "snmpv3_privprotocol", number: true, get: func(k *netCheck) string { return place(snmpPrivacy, k.snmp().PrivProtocol) }},
		{name: "uniq", number: true, get: func(k *netCheck) string { return formatBool(k.rule.Unique == k.Label()) }},
		{name: "host_source", number: true, get: func(k *netCheck) string { return sourceNumber(k.rule.HostName, k.Label(), "2") }},
		{name: "name_source", number: true, get: func(k *netCheck) string { return sourceNumber(k.rule.VisibleName, k.Label(), "0") }},
	},
}

// sourceNumber is what names a host: 1 its name in DNS, 2 its address, 3 the value of this check.
func sourceNumber(of, label, otherwise string) string {
	switch of {
	case "dns":
		return "1"
	case "ip":
		return "2"
	case label:
		return "3"
	}
	return otherwise
}

var netRuleKind = kind[network.Rule]{
	name: "discovery rule", id: "druleid",
	fields: []field[network.Rule]{
		{name: "druleid", number: true, get: netRuleID},
		{name: "name", get: func(r *network.Rule) string { return r.Name }},
		{name: "iprange", get: func(r *network.Rule) string { return r.Ranges }},
		{name: "delay", get: func(r *network.Rule) string { return cmpOr(r.Delay, "1h") }},
		{name: "nextcheck", number: true, get: func(*network.Rule) string { return "0" }},
		{name: "status", number: true, get: func(r *network.Rule) string { return status(!r.Disabled) }},
		{name: "concurrency_max", number: true, get: func(r *network.Rule) string { return formatInt(r.AtOnce) }},
	},
}

// getNetRules lists the rules of network discovery.
func getNetRules(c *call) ([]byte, error) {
	ids := c.ids("druleids")
	proxies := map[string]string{}
	for _, p := range c.options.Objects.Proxies() {
		proxies[p.Name] = formatID(p.ID)
	}
	k := netRuleKind
	for _, name := range []string{"proxyid", "proxy_hostid"} {
		k.fields = append(slices.Clone(k.fields), field[network.Rule]{name: name, number: true, get: func(r *network.Rule) string { return cmpOr(proxies[r.Proxy], "0") }})
	}
	k.selects = []selection[network.Rule]{{"selectDChecks", "dchecks", func(_ *call, o output, r *network.Rule) any {
		list := make([]netCheck, len(r.Checks))
		for i := range r.Checks {
			list[i] = netCheck{&r.Checks[i], r}
		}
		return pickAll(o, &netCheckKind, list)
	}}}
	rows := slices.DeleteFunc(slices.Clone(c.options.Objects.NetRules()), func(r network.Rule) bool { return !ids.hasText(netRuleID(&r)) })
	return answer(c, &k, rows)
}

// readNetRule reads a rule that is to be made or changed.
func (c *call) readNetRule(p *params, known []network.Rule, update bool) (r network.Rule, err error) {
	if update {
		p.require("druleid")
		id := p.text("druleid")
		i := slices.IndexFunc(known, func(r network.Rule) bool { return netRuleID(&r) == id })
		if i < 0 {
			return r, errNotAllowed
		}
		if r = known[i]; p.text("name") != "" && p.text("name") != r.Name {
			return r, invalidParams(`Invalid parameter "/%sname": a rule keeps its name; make another one.`, p.place)
		}
	} else {
		for _, name := range []string{"name", "iprange", "dchecks"} {
			p.require(name)
		}
		if r.Name = p.text("name"); slices.ContainsFunc(known, func(k network.Rule) bool { return k.Name == r.Name }) {
			return r, invalidParams("Discovery rule %q already exists.", r.Name)
		}
	}
	for member, to := range map[string]*string{"iprange": &r.Ranges, "delay": &r.Delay} {
		if _, ok := p.get(member); ok {
			*to = p.text(member)
		}
	}
	if _, ok := p.get("status"); ok {
		r.Disabled = p.number("status", 0, 1) == 1
	}
	if _, ok := p.get("concurrency_max"); ok {
		r.AtOnce = int(p.number("concurrency_max", 0, 256))
	}
	for _, member := range []string{"proxyid", "proxy_hostid"} {
		if _, ok := p.get(member); ok {
			id := p.text(member)
			i := slices.IndexFunc(c.options.Objects.Proxies(), func(p Proxy) bool { return formatID(p.ID) == id })
			if r.Proxy = ""; i >= 0 {
				r.Proxy = c.options.Objects.Proxies()[i].Name
			} else if id != "0" && id != "" {
				p.fail(member, "there is no proxy with this id")
			}
		}
	}
	if list, ok := p.children("dchecks"); ok {
		r.Checks, r.Unique, r.HostName, r.VisibleName = nil, "", "", ""
		for _, one := range list {
			if err := one.fillNetCheck(&r); err != nil {
				return r, err
			}
		}
	}
	return r, p.done()
}

// fillNetCheck adds a check to a rule, and what the rule says by it.
func (p *params) fillNetCheck(r *network.Rule) error {
	p.require("type")
	kind, version := proxyconfig.CheckOf(int(p.number("type", 0, 255)))
	if kind == "" {
		p.fail("type", "value must be one of 0-15")
	}
	k := network.Check{Type: kind, Key: p.text("key_"), Ports: p.text("ports")}
	if k.Ports == "0" {
		k.Ports = ""
	}
	p.accept("dcheckid", "druleid", "allow_redirect")
	at := func(member string, names []string) string { return names[p.number(member, 0, int64(len(names)-1))] }
	access := discovery.SNMP{
		Version: version, Community: p.text("snmp_community"), Context: p.text("snmpv3_contextname"), SecurityName: p.text("snmpv3_securityname"), SecurityLevel: at("snmpv3_securitylevel", snmpLevels),
		AuthProtocol: at("snmpv3_authprotocol", snmpAuth), AuthPassphrase: p.text("snmpv3_authpassphrase"), PrivProtocol: at("snmpv3_privprotocol", snmpPrivacy), PrivPassphrase: p.text("snmpv3_privpassphrase"),
	}
	if version != "" {
		k.SNMP = &access
	}
	if slices.ContainsFunc(r.Checks, func(o network.Check) bool { return o.Label() == k.Label() }) {
		k.Name = k.Label() + " " + strconv.Itoa(len(r.Checks)+1)
	}
	if p.flag("uniq") {
		r.Unique = k.Label()
	}
	for member, to := range map[string]*string{"host_source": &r.HostName, "name_source": &r.VisibleName} {
		switch p.number(member, 0, 3) {
		case 1:
			*to = "dns"
		case 3:
			*to = k.Label()
		}
	}
	r.Checks = append(r.Checks, k)
	return p.done()
}

// changeNetRules makes rules or changes them, for administrators: they say which addresses are asked.
func changeNetRules(c *call, update bool) ([]byte, error) {
	if err := c.mustAdminister(); err != nil {
		return nil, err
	}
	next, seen := &network.Config{}, make(map[string]bool)
	known := c.options.Objects.NetRules()
	ids, err := c.eachObject(func(p *params) (string, error) {
		p.once(seen, "name", "druleid")
		r, err := c.readNetRule(p, known, update)
		next.Rules = append(next.Rules, r)
		return netRuleID(&r), err
	}, func() error { // all of them together, or none
		if err := c.options.Objects.ApplyNetRules(c.ctx, next); err != nil {
			return invalidParams("%s", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	shown := next.Hidden().Rules
	for i := range shown {
		var before any
		if at := slices.IndexFunc(known, func(r network.Rule) bool { return r.Name == shown[i].Name }); at >= 0 {
			before = known[at]
		}
		access.Changed(c.ctx, "rule of network discovery "+shown[i].Name, before, shown[i])
	}
	return encodeJSON(map[string]any{"druleids": ids})
}

func createNetRules(c *call) ([]byte, error) { return changeNetRules(c, false) }

func updateNetRules(c *call) ([]byte, error) { return changeNetRules(c, true) }

// deleteNetRules deletes rules; the hosts that were made of their finds stay.
func deleteNetRules(c *call) ([]byte, error) {
	if err := c.mustAdminister(); err != nil {
		return nil, err
	}
	return deleteNamed(c, removal[network.Rule]{
		answer: "druleids", what: "rule of network discovery", id: netRuleID, name: func(r *network.Rule) string { return r.Name },
		all:    func() ([]network.Rule, error) { return c.options.Objects.NetRules(), nil },
		remove: func(names []string) error { return c.options.Objects.DeleteNetRules(c.ctx, names) },
	})
}
