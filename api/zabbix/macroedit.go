package zabbix

import (
	"math"
	"slices"
	"strconv"

	"tidemark/model"
)

// onHosts changes documents of hosts and answers ids.
func (c *call) onHosts(answer string, find func(*params) (*model.Host, error), change func(*params, *owner, *model.Host) (string, error)) ([]byte, error) {
	ids, err := c.eachOnHosts(find, change)
	if err != nil {
		return nil, err
	}
	return encodeJSON(map[string]any{answer: ids})
}

// updateOnHosts is onHosts for objects that exist, whose ids a member has: each may be named once.
func (c *call) updateOnHosts(answer, member string, find func(id string) (*model.Host, error), change func(*params, *owner, *model.Host) (string, error)) ([]byte, error) {
	return c.onHosts(answer, c.foundBy(member, find), change)
}

// foundBy finds the host or template of an object by the id that a member has, and refuses one that was named before.
func (c *call) foundBy(member string, find func(id string) (*model.Host, error)) func(*params) (*model.Host, error) {
	seen := make(map[string]bool)
	return func(p *params) (*model.Host, error) {
		p.require(member)
		if p.failed != nil {
			return nil, p.failed
		}
		id := p.text(member)
		if p.once(seen, member); p.failed != nil {
			return nil, p.failed
		}
		return find(id)
	}
}

// eachOnHosts changes documents of hosts, one for each object of the call: find says which host an object is of, change makes the change and
// returns the id of what was changed. All is put at the end, so that a mistake in one object changes nothing.
func (c *call) eachOnHosts(find func(*params) (*model.Host, error), change func(*params, *owner, *model.Host) (string, error)) ([]string, error) {
	renewed := false
	return c.eachObject(func(p *params) (string, error) {
		if !renewed { // a call that held the lock may have changed it
			c.renew()
			renewed = true
		}
		h, err := find(p)
		if err != nil {
			return "", err
		}
		o, err := c.edit(kindOf(h), h.Host)
		if err != nil {
			return "", err
		}
		return change(p, o, h)
	}, c.putAll)
}

// createOnHosts makes parts of hosts and templates, whose ids are known once all are made: create returns the name of what it made, and ids are
// those of what a host or template then has under a name.
func (c *call) createOnHosts(answer string, create func(*params, *owner, *model.Host) (name string, err error), ids func(h *model.Host, name string) []string) ([]byte, error) {
	var holders []model.HostID
	names, err := c.eachOnHosts(c.holderInParams, func(p *params, o *owner, h *model.Host) (string, error) {
		name, err := create(p, o, h)
		holders = append(holders, h.ID)
		return name, err
	})
	if err != nil {
		return nil, err
	}
	c.renew()
	made := []string{}
	for i, name := range names {
		if h, ok := c.holder(holders[i]); ok { // else it was deleted meanwhile
			made = append(made, ids(h, name)...)
		}
	}
	return encodeJSON(map[string]any{answer: made})
}

// idsOf are the ids of the parts with a value in a member.
func idsOf(parts []*part, member, value string) (ids []string) {
	for _, one := range parts {
		if one.text(member, "") == value {
			ids = append(ids, formatID(one.id))
		}
	}
	return ids
}

// holderInParams finds the host or template that hostid names.
func (c *call) holderInParams(p *params) (*model.Host, error) {
	p.require("hostid")
	if p.failed != nil {
		return nil, p.failed
	}
	return c.editable(model.HostID(p.number("hostid", 0, math.MaxInt64)))
}

// hostInParams finds the host that hostid names.
func (c *call) hostInParams(p *params) (*model.Host, error) {
	h, err := c.holderInParams(p)
	if err == nil && isTemplate(h.ID) {
		return nil, invalidParams(`Invalid parameter "/%shostid": this is for hosts; change a template with template.update.`, p.place)
	}
	return h, err
}

// hostOfMacro finds the host of a macro by the macro's id.
func (c *call) hostOfMacro(id string) (*model.Host, error) {
	for _, h := range c.hosts() {
		if slices.ContainsFunc(h.Macros, func(m model.Macro) bool { return stableID(uint64(h.ID), m.Name) == id }) {
			return c.editable(h.ID)
		}
	}
	return nil, errNotAllowed
}

func createMacros(c *call) ([]byte, error) {
	return c.onHosts("hostmacroids", c.hostInParams, func(p *params, o *owner, h *model.Host) (string, error) {
		known, err := list[exportMacro](o, "macros")
		if err != nil {
			return "", err
		}
		m, err := p.macroOf(0, nil)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(known, func(k exportMacro) bool { return k.Macro == m.Macro }) {
			return "", invalidParams("Macro %q already exists on %q.", m.Macro, h.Host)
		}
		return stableID(uint64(h.ID), m.Macro), o.setMacroList(append(known, m))
	})
}

func updateMacros(c *call) ([]byte, error) {
	return c.updateOnHosts("hostmacroids", "hostmacroid", c.hostOfMacro, func(p *params, o *owner, h *model.Host) (string, error) {
		known, err := list[exportMacro](o, "macros")
		if err != nil {
			return "", err
		}
		id := p.text("hostmacroid")
		m, err := p.macroOf(uint64(h.ID), known)
		if err != nil {
			return "", err
		}
		i := slices.IndexFunc(known, func(k exportMacro) bool { return stableID(uint64(h.ID), k.Macro) == id })
		if slices.ContainsFunc(known, func(k exportMacro) bool { return k.Macro == m.Macro && k.Macro != known[i].Macro }) {
			return "", invalidParams("Macro %q already exists on %q.", m.Macro, h.Host)
		}
		known[i] = m
		return stableID(uint64(h.ID), m.Macro), o.setMacroList(known)
	})
}

// deleteEach changes documents for a list of ids, all of them or none.
func (c *call) deleteEach(answer string, find func(id string) (*model.Host, error), change func(id string, o *owner, h *model.Host) error) ([]byte, error) {
	ids := c.listIDs()
	if err := c.done(); err != nil {
		return nil, err
	}
	if len(ids) > maxObjects {
		return nil, invalidParams(`Invalid parameter "/": maximum number of ids is %d.`, maxObjects)
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	texts := make([]string, 0, len(ids))
	for id := range ids {
		texts = append(texts, strconv.FormatUint(id, 10))
	}
	slices.SortFunc(texts, func(a, b string) int { return compareNumbers(b, a) }) // interfaces are counted: the last goes first
	c.renew()
	for _, id := range texts {
		h, err := find(id)
		if err != nil {
			return nil, err
		}
		o, err := c.edit(kindOf(h), h.Host)
		if err != nil {
			return nil, err
		}
		if err := change(id, o, h); err != nil {
			return nil, err
		}
	}
	if err := c.putAll(); err != nil {
		return nil, err
	}
	return encodeJSON(map[string]any{answer: texts})
}

func deleteMacros(c *call) ([]byte, error) {
	return c.deleteEach("hostmacroids", c.hostOfMacro, func(id string, o *owner, h *model.Host) error {
		known, err := list[exportMacro](o, "macros")
		if err != nil {
			return err
		}
		return o.setMacroList(slices.DeleteFunc(known, func(k exportMacro) bool { return stableID(uint64(h.ID), k.Macro) == id }))
	})
}

func createInterfaces(c *call) ([]byte, error) {
	return c.onHosts("interfaceids", c.hostInParams, func(p *params, o *owner, h *model.Host) (string, error) {
		known, err := list[map[string]any](o, "interfaces")
		if err != nil {
			return "", err
		}
		face := map[string]any{"interface_ref": interfaceRef(known)}
		if err := p.fillInterface(face, true); err != nil {
			return "", err
		}
		known = append(known, face)
		return strconv.FormatUint(uint64(h.ID)<<interfaceBits|uint64(len(known)), 10), o.set("interfaces", known)
	})
}

// hostOfInterface finds the host in an interface's id.
func (c *call) hostOfInterface(id string) (*model.Host, error) {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return nil, errNotAllowed
	}
	return c.editable(model.HostID(n >> interfaceBits))
}

// interfaceAt returns where in its host's list an interface is.
func interfaceAt(id string, count int) (int, error) {
	n, err := strconv.ParseUint(id, 10, 64)
	i := int(n&(1<<interfaceBits-1)) - 1
	if err != nil || i < 0 || i >= count {
		return 0, errNotAllowed
	}
	return i, nil
}

func updateInterfaces(c *call) ([]byte, error) {
	return c.updateOnHosts("interfaceids", "interfaceid", c.hostOfInterface, func(p *params, o *owner, _ *model.Host) (string, error) {
		known, err := list[map[string]any](o, "interfaces")
		if err != nil {
			return "", err
		}
		id := p.text("interfaceid")
		i, err := interfaceAt(id, len(known))
		if err != nil {
			return "", err
		}
		if err := p.fillInterface(known[i], false); err != nil {
			return "", err
		}
		return id, o.set("interfaces", known)
	})
}

func deleteInterfaces(c *call) ([]byte, error) {
	return c.deleteEach("interfaceids", c.hostOfInterface, func(id string, o *owner, _ *model.Host) error {
		known, err := list[map[string]any](o, "interfaces")
		if err != nil {
			return err
		}
		i, err := interfaceAt(id, len(known))
		if err != nil {
			return err
		}
		return o.set("interfaces", slices.Delete(known, i, i+1))
	})
}
