package confdb

import (
	"context"
	"database/sql"
)

// globalMacros reads the macros that hold for all hosts. Zabbix's exports have none; imports from its database do.
func (d *decoder) globalMacros(x *export, top *node) {
	d.path, d.bad = "global macros", false
	if list := d.macroList(top, "global_macros"); !d.bad {
		x.globalMacros = list
	}
}

// globalMacros adds the macros of the file to those that hold for all hosts; others stay. A secret without value keeps the one it had.
func (i *importer) globalMacros(ctx context.Context, macros []packedMacro) error {
	if len(macros) == 0 {
		return nil
	}
	have := make(map[string]packedMacro)
	err := i.query(ctx, func(r *sql.Rows) error {
		var m packedMacro
		err := r.Scan(&m.Name, &m.Value, &m.Secret)
		if m.Secret {
			m.Value = i.db.secrets.shown(m.Value, macroPlace(m.Name))
		}
		have[m.Name] = m
		return err
	}, "SELECT name, value, secret FROM global_macros")
	if err != nil {
		return err
	}
	for _, m := range macros {
		m.Description = "" // not kept
		old, known := have[m.Name]
		if known && m.Secret && old.Secret && m.Value == "" {
			m.Value = old.Value
		}
		if known && old == m {
			i.report.count(kindGlobalMacro, unchanged)
			continue
		}
		what := created
		if known {
			what = updated
		}
		value := m.Value
		if m.Secret {
			if value, err = i.db.secrets.seal(value, macroPlace(m.Name)); err != nil {
				return err
			}
		}
		err := i.exec(ctx, "INSERT INTO global_macros (name, value, secret) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value, secret = excluded.secret",
			m.Name, value, m.Secret)
		if err != nil {
			return err
		}
		have[m.Name] = m
		i.all = true
		i.report.count(kindGlobalMacro, what)
	}
	return nil
}
