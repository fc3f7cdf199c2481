package confdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"tidemark/model"
)

// maxReasons bounds how many refused objects a discovery names.
const maxReasons = 5

// Discover makes what a discovery rule found, in one transaction: new objects get their identities, known ones keep theirs, and what is
// not in x any more is lost, and goes when its lifetime is over. Finding the same again writes nothing but the rule's time.
//
// The error ErrNotFound says that the rule is gone. Objects that cannot be made are counted and named in the answer.
func (d *DB) Discover(ctx context.Context, x *model.Discovery) (*model.Discovered, error) {
	var out model.Discovered
	err := d.change(ctx, "discover by "+x.Rule.Key, func(c *change) error {
		out = model.Discovered{}
		a := &discoverer{change: c, x: x, out: &out}
		return a.run(ctx)
	})
	if err != nil {
		return nil, err
	}
	err = d.sql.QueryRowContext(ctx, "SELECT revision FROM hosts WHERE id = ?", x.Rule.HostID).Scan(&out.HostRevision)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("host %d: %w", x.Rule.HostID, ErrNotFound)
	}
	return &out, d.wrap("discover by "+x.Rule.Key, err)
}

// discoverer applies one discovery.
type discoverer struct {
	*change
	x    *model.Discovery
	out  *model.Discovered
	defs *definitions
	host string
	// present are the canonical keys of the host's items, with those that the rule makes.
	present map[string]bool
}

func (a *discoverer) run(ctx context.Context) error {
	rule := a.x.Rule
	err := a.query(ctx, func(r *sql.Rows) error { return r.Scan(&a.host, &a.out.RevisionBefore) },
		"SELECT h.host, h.revision FROM rule_items i JOIN hosts h ON h.id = i.host_id WHERE i.item_id = ? AND i.rule_id = ?", rule.ItemID, rule.ID)
	if err != nil {
		return err
	}
	if a.host == "" {
		return fmt.Errorf("discovery rule %s of host %d: %w", rule.Key, rule.HostID, ErrNotFound)
	}
	if a.defs, err = a.db.define(ctx, a.tx); err != nil {
		return err
	}
	var kinds [4][]model.Instance
	for _, i := range a.x.Instances {
		kind, _ := prototypeRow(i.Prototype)
		kinds[kind] = append(kinds[kind], i)
	}
	for _, step := range []struct {
		apply func(context.Context, []model.Instance) error
		list  []model.Instance
	}{{a.items, kinds[model.ItemPrototype]}, {a.triggers, kinds[model.TriggerPrototype]}, {a.hosts, kinds[model.HostPrototype]}} {
		if err := step.apply(ctx, step.list); err != nil {
			return err
		}
	}
	if a.x.Beyond > 0 {
		a.refuse("one rule may make at most %d objects, and %d are beyond that", a.x.Limit, a.x.Beyond)
		a.out.Refused += a.x.Beyond - 1
	}
	return a.ended(ctx, rule.ItemID, a.x.Order, "at = ?, error = ?", a.x.At.Unix(), discoveredError(a.out))
}

// discoveredError is the text that a rule shows for objects that could not be made.
func discoveredError(o *model.Discovered) string {
	if o.Refused == 0 {
		return ""
	}
	text := fmt.Sprintf("%d found objects cannot be made: %s", o.Refused, strings.Join(o.Reasons, "; "))
	return text
}

func (a *discoverer) refuse(format string, args ...any) {
	if a.out.Refused++; len(a.out.Reasons) < maxReasons {
		a.out.Reasons = append(a.out.Reasons, fmt.Sprintf(format, args...))
	}
}

// found is a row of something that the rule made before.
type found struct {
	id                          int64
	def                         int64
	instance, changes           string
	lostAt, disableAt, deleteAt int64
	disabled, kept              bool
}

const foundColumns = "def_id, instance, changes, lost_at, disable_at, delete_at, disabled"

func (a *discoverer) foundRows(ctx context.Context, table, id, where string, args ...any) ([]*found, error) {
	var list []*found
	err := a.query(ctx, func(r *sql.Rows) error {
		f := &found{}
		err := r.Scan(&f.id, &f.def, &f.instance, &f.changes, &f.lostAt, &f.disableAt, &f.deleteAt, &f.disabled)
		list = append(list, f)
		return err
	}, "SELECT "+id+", "+foundColumns+" FROM "+table+" WHERE "+where+" ORDER BY "+id, args...)
	return list, err
}

// wish is an object that the rule asks for.
type wish struct {
	def               int64
	instance, changes string
	macros            map[string]string
	// identity is equal for what must be one object, also when the macros in its other texts changed.
	identity string
}

// match finds the rows of wishes: by prototype and macros, else by identity. Wishes without a row have nil.
func match(wishes []wish, rows []*found, identity func(*found) string) []*found {
	type exact struct {
		def      int64
		instance string
	}
	byInstance := make(map[exact]*found, len(rows))
	for _, f := range rows {
		byInstance[exact{f.def, f.instance}] = f
	}
	out := make([]*found, len(wishes))
	left := 0
	for i := range wishes {
		if f := byInstance[exact{wishes[i].def, wishes[i].instance}]; f != nil && !f.kept {
			f.kept, out[i] = true, f
			continue
		}
		left++
	}
	if left == 0 {
		return out
	}
	byIdentity := make(map[string]*found)
	for _, f := range rows {
		if !f.kept {
			byIdentity[identity(f)] = f
		}
	}
	for i := range wishes {
		if f := byIdentity[wishes[i].identity]; out[i] == nil && f != nil && !f.kept {
			f.kept, out[i] = true, f
		}
	}
	return out
}

// table says where objects of one kind are.
type table struct{ name, id string }

var (
	itemTable    = table{"discovered_items", "item_id"}
	triggerTable = table{"triggers", "id"}
	hostTable    = table{"discovered_hosts", "host_id"}
)

// keep brings a row in line with what was found and reports whether something that counts changed.
func (a *discoverer) keep(ctx context.Context, t table, f *found, w *wish) (bool, error) {
	if f.instance == w.instance && f.changes == w.changes && f.lostAt == 0 && !f.disabled && f.def == w.def {
		return false, nil
	}
	visible := f.instance != w.instance || f.changes != w.changes || f.disabled
	if visible {
		a.out.Updated++
	}
	return visible, a.exec(ctx, "UPDATE "+t.name+` SET def_id = ?, instance = ?, changes = ?, lost_at = 0, disable_at = 0, delete_at = 0,
		disabled = 0 WHERE `+t.id+" = ?", w.def, w.instance, w.changes, f.id)
}

// fate is what becomes of an object that is not found any more.
type fate struct {
	delete, disable     bool
	disableAt, deleteAt int64
}

// fateOf computes times from the rule's lifetimes, counted from when the object was lost.
func fateOf(rule *model.Rule, lostAt, now int64) fate {
	when := func(l model.Lifetime) (at int64, due bool) {
		switch l.Kind {
		case model.LifetimeNever:
			return 0, false
		case model.LifetimeImmediately:
			return lostAt, true
		}
		at = lostAt + int64(l.After/time.Second)
		return at, at <= now
	}
	var f fate
	f.deleteAt, f.delete = when(rule.Deletes)
	f.disableAt, f.disable = when(rule.Disables)
	return f
}

// lose marks the rows that were not found, and deletes or disables those whose time has come. It reports whether hosts must be told.
func (a *discoverer) lose(ctx context.Context, t table, rows []*found, gone func(*found) error, off func(*found) error) error {
	now := a.x.At.Unix()
	for _, f := range rows {
		if f.kept {
			continue
		}
		lostAt := f.lostAt
		if lostAt == 0 {
			lostAt = now
			a.out.Lost++
		}
		w := fateOf(a.x.Rule, lostAt, now)
		if w.delete {
			a.out.Deleted++
			if err := gone(f); err != nil {
				return err
			}
			continue
		}
		if w.disable && !f.disabled {
			if err := off(f); err != nil {
				return err
			}
		}
		if f.lostAt == lostAt && f.disableAt == w.disableAt && f.deleteAt == w.deleteAt && f.disabled == w.disable {
			continue
		}
		err := a.exec(ctx, "UPDATE "+t.name+" SET lost_at = ?, disable_at = ?, delete_at = ?, disabled = ? WHERE "+t.id+" = ?",
			lostAt, w.disableAt, w.deleteAt, w.disable, f.id)
		if err != nil {
			return err
		}
	}
	return nil
}

// macrosFor returns those macros of an element that a prototype uses, and the first that the element lacks.
func macrosFor(used []string, macros map[string]string) (mine map[string]string, missing string) {
	mine = make(map[string]string, len(used))
	for _, name := range used {
		value, ok := macros[name]
		if !ok {
			if missing == "" {
				missing = name
			}
			continue
		}
		mine[name] = value
	}
	return mine, missing
}
