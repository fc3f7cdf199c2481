package confdb

import (
	"context"
	"database/sql"
	"fmt"

	"tidemark/model"
)

const (
	// maxGlobalMacros bounds the macros that hold for all hosts, maxMacroNameBytes and maxMacroValueBytes one of them as Zabbix does.
	maxGlobalMacros    = 10_000
	maxMacroNameBytes  = 255
	maxMacroValueBytes = 2048
)

// PutGlobalMacro stores a macro that holds for all hosts over one of the same name, and returns the one that there was, nil for none. With keep a
// secret macro keeps its value, whatever is given. ErrInvalid says what is wrong with it.
func (d *DB) PutGlobalMacro(ctx context.Context, m model.Macro, keep bool) (before *model.Macro, err error) {
	err = d.change(ctx, "store a global macro", func(c *change) error {
		before, err = c.globalMacro(ctx, m.Name)
		if err != nil {
			return err
		}
		if keep {
			if before == nil || !before.Secret || !m.Secret {
				return fmt.Errorf("macro %s: %w; a value is missing, which only a secret macro that is there and stays secret keeps", m.Name, ErrInvalid)
			}
			m.Value = before.Value
		}
		if err := checkGlobalMacro(&m); err != nil {
			return err
		}
		value := m.Value
		if m.Secret {
			if value, err = d.secrets.seal(value, macroPlace(m.Name)); err != nil {
				return err
			}
		}
		c.all = true
		err := c.execNow(ctx, "INSERT INTO global_macros (name, value, secret) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value, secret = excluded.secret",
			m.Name, value, m.Secret)
		if err != nil {
			return err
		}
		n, err := c.id(ctx, "SELECT count(*) FROM global_macros")
		if err == nil && n > maxGlobalMacros {
			err = fmt.Errorf("%w; more than %d global macros", ErrInvalid, maxGlobalMacros)
		}
		return err
	})
	return before, err
}

// DeleteGlobalMacro removes a macro that holds for all hosts and returns it; ErrNotFound says that there is none of the name.
func (d *DB) DeleteGlobalMacro(ctx context.Context, name string) (before *model.Macro, err error) {
	err = d.change(ctx, "delete a global macro", func(c *change) error {
		before, err = c.globalMacro(ctx, name)
		if err != nil {
			return err
		}
		if before == nil {
			return fmt.Errorf("global macro %.255q: %w", name, ErrNotFound)
		}
		c.all = true
		return c.execNow(ctx, "DELETE FROM global_macros WHERE name = ?", name)
	})
	return before, err
}

// globalMacro reads a macro; nil for one that is not there.
func (c *change) globalMacro(ctx context.Context, name string) (found *model.Macro, err error) {
	err = c.query(ctx, func(r *sql.Rows) error {
		m := model.Macro{Name: name}
		err := r.Scan(&m.Value, &m.Secret)
		if m.Secret {
			m.Value = c.db.secrets.shown(m.Value, macroPlace(m.Name))
		}
		found = &m
		return err
	}, "SELECT value, secret FROM global_macros WHERE name = ?", name)
	return found, err
}

func checkGlobalMacro(m *model.Macro) error {
	switch {
	case !model.IsMacroName(m.Name):
		return fmt.Errorf("macro %.255q: %w; expected the form {$NAME} or {$NAME:context} with capital letters, digits, _ and . in the name", m.Name, ErrInvalid)
	case len(m.Name) > maxMacroNameBytes:
		return fmt.Errorf("macro %.40q…: %w; its name has %d bytes, at most %d", m.Name, ErrInvalid, len(m.Name), maxMacroNameBytes)
	case len(m.Value) > maxMacroValueBytes:
		return fmt.Errorf("macro %s: %w; its value has %d bytes, at most %d", m.Name, ErrInvalid, len(m.Value), maxMacroValueBytes)
	}
	return nil
}
