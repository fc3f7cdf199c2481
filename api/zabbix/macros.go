package zabbix

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"tidemark/model"
)

// stableID makes an id of what has none of its own: of its host and its name. It fits 53 bits, so that scripts can hold it as a number.
func stableID(host uint64, name string) string {
	h := fnv.New64a()
	_, _ = h.Write(strconv.AppendUint(nil, host, 10))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(name))
	return strconv.FormatUint(h.Sum64()>>11|1, 10)
}

// hostMacro is a macro of a host, or with host zero of all.
type hostMacro struct {
	model.Macro
	host        model.HostID
	description string
}

// macrosOf are the macros of a host with their descriptions of notes.
func macrosOf(h *model.Host, notes map[model.HostID]HostNotes) []hostMacro {
	list := make([]hostMacro, 0, len(h.Macros))
	for _, m := range h.Macros {
		list = append(list, hostMacro{m, h.ID, notes[h.ID].Macros[m.Name]})
	}
	return list
}

// macroKind leaves the values of secrets out.
var macroKind = macroFields("hostmacroid")

func macroFields(id string) kind[hostMacro] {
	return kind[hostMacro]{
		name: "user macro", id: id,
		fields: []field[hostMacro]{
			{name: id, number: true, get: func(m *hostMacro) string { return stableID(uint64(m.host), m.Name) }},
			{name: "hostid", number: true, get: func(m *hostMacro) string { return formatID(m.host) }},
			{name: "macro", get: func(m *hostMacro) string { return m.Name }},
			{name: "value", get: func(m *hostMacro) string {
				if m.Secret {
					return ""
				}
				return m.Value
			}},
			{name: "type", number: true, get: func(m *hostMacro) string { return formatBool(m.Secret) }},
			{name: "description", get: func(m *hostMacro) string { return m.description }},
			{name: "automatic", number: true, get: func(*hostMacro) string { return "0" }},
		},
	}
}

func getMacros(c *call) ([]byte, error) {
	c.accept("selectSteps") // playbooks send it, and Zabbix passes it over
	global, hosts, groups := c.flag("globalmacro"), c.ids("hostids"), c.ids("groupids")
	name := "hostmacroids"
	if global {
		name = "globalmacroids"
	}
	ids := c.ids(name)
	names, err := c.groupNames(groups)
	if err != nil {
		return nil, err
	}
	var rows []hostMacro
	if global {
		list, err := c.options.Objects.GlobalMacros(c.ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			rows = append(rows, hostMacro{Macro: m})
		}
	} else {
		notes := c.notes()()
		for _, h := range c.hosts() {
			if hosts.has(uint64(h.ID)) && inGroups(names, h) {
				rows = append(rows, macrosOf(h, notes)...)
			}
		}
	}
	k := macroFields(strings.TrimSuffix(name, "s"))
	if global {
		k.fields = slices.DeleteFunc(k.fields, func(f field[hostMacro]) bool { return f.name == "hostid" || f.name == "automatic" })
	}
	if ids != nil {
		rows = slices.DeleteFunc(rows, func(m hostMacro) bool {
			id, err := strconv.ParseUint(stableID(uint64(m.host), m.Name), 10, 64)
			return err != nil || !ids[id]
		})
	}
	if !global {
		k.selects = []selection[hostMacro]{{"selectHosts", "hosts", func(c *call, o output, m *hostMacro) any { return c.pickHosts(o, m.host) }}}
	}
	return answer(c, &k, rows)
}
