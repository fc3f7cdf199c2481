package zabbix

import (
	"slices"

	"tidemark/access"
	"tidemark/model"
)

// changeGlobals changes the macros that hold for all hosts. Who does must see them all.
func (c *call) changeGlobals(change func(macros []model.Macro) ([]model.Macro, []string, error)) ([]byte, error) {
	if c.visible != nil {
		return nil, errNotAllowed
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	before, err := c.options.Objects.GlobalMacros(c.ctx)
	if err != nil {
		return nil, err
	}
	after, ids, err := change(slices.Clone(before))
	if err != nil {
		return nil, err
	}
	if err := c.options.Objects.SetGlobalMacros(c.ctx, after); err != nil {
		return nil, err
	}
	access.Changed(c.ctx, "global macros", shownMacros(before), shownMacros(after))
	return encodeJSON(map[string]any{"globalmacroids": ids})
}

// shownMacros are macros for the audit log: without the values of secrets.
func shownMacros(macros []model.Macro) map[string]string {
	shown := make(map[string]string, len(macros))
	for _, m := range macros {
		shown[m.Name] = m.Value
		if m.Secret {
			shown[m.Name] = "********"
		}
	}
	return shown
}

func globalMacroID(m *model.Macro) string { return stableID(0, m.Name) }

// fillGlobal sets what is given of a global macro.
func (p *params) fillGlobal(m *model.Macro) error {
	if name := p.text("macro"); name != "" {
		m.Name = name
	}
	if _, ok := p.get("value"); ok {
		m.Value = p.text("value")
	}
	if _, ok := p.get("type"); ok {
		was := m.Secret
		if m.Secret = p.number("type", 0, 1) == 1; was && !m.Secret {
			p.require("value") // what was secret is never shown
		}
	}
	p.accept("description")
	if !model.IsMacroName(m.Name) {
		p.fail("macro", "incorrect syntax near \""+m.Name+"\"")
	}
	return p.done()
}

func createGlobalMacros(c *call) ([]byte, error) {
	given, err := c.objects()
	if err != nil {
		return nil, err
	}
	return c.changeGlobals(func(macros []model.Macro) ([]model.Macro, []string, error) {
		ids := []string{}
		for _, p := range given {
			p.require("macro")
			p.require("value")
			var m model.Macro
			if err := p.fillGlobal(&m); err != nil {
				return nil, nil, err
			}
			if slices.ContainsFunc(macros, func(k model.Macro) bool { return k.Name == m.Name }) {
				return nil, nil, invalidParams("Macro %q already exists.", m.Name)
			}
			macros, ids = append(macros, m), append(ids, globalMacroID(&m))
		}
		return macros, ids, nil
	})
}

func updateGlobalMacros(c *call) ([]byte, error) {
	given, err := c.objects()
	if err != nil {
		return nil, err
	}
	return c.changeGlobals(func(macros []model.Macro) ([]model.Macro, []string, error) {
		ids, seen := []string{}, make(map[string]bool)
		for _, p := range given {
			p.require("globalmacroid")
			id := p.text("globalmacroid")
			p.once(seen, "globalmacroid", "macro")
			i := slices.IndexFunc(macros, func(m model.Macro) bool { return globalMacroID(&m) == id })
			if i < 0 {
				return nil, nil, errNotAllowed
			}
			if err := p.fillGlobal(&macros[i]); err != nil {
				return nil, nil, err
			}
			for n := range macros {
				if n != i && macros[n].Name == macros[i].Name {
					return nil, nil, invalidParams("Macro %q already exists.", macros[i].Name)
				}
			}
			ids = append(ids, globalMacroID(&macros[i]))
		}
		return macros, ids, nil
	})
}

func deleteGlobalMacros(c *call) ([]byte, error) {
	wanted := c.listIDs()
	if err := c.done(); err != nil {
		return nil, err
	}
	return c.changeGlobals(func(macros []model.Macro) ([]model.Macro, []string, error) {
		ids := []string{}
		rest := slices.DeleteFunc(macros, func(m model.Macro) bool {
			gone := wanted.hasText(globalMacroID(&m))
			if gone {
				ids = append(ids, globalMacroID(&m))
			}
			return gone
		})
		if len(ids) != len(wanted) {
			return nil, nil, errNotAllowed
		}
		return rest, ids, nil
	})
}
