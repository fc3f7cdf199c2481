package confdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
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
	return a.exec(ctx, "UPDATE rule_items SET at = ?, error = ? WHERE item_id = ?", a.x.At.Unix(), discoveredError(a.out), rule.ItemID)
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

// items makes the items.
func (a *discoverer) items(ctx context.Context, list []model.Instance) error {
	if err := a.presentKeys(ctx); err != nil {
		return err
	}
	wishes := make([]wish, 0, len(list))
	for _, i := range list {
		_, row := prototypeRow(i.Prototype)
		p := a.defs.prototypes[row]
		if p == nil {
			continue // the template changed since the rule was read
		}
		macros, _ := macrosFor(p.macros, i.Macros)
		key := expandKey(p.fields.key, macros)
		if err := wholeKey(key); err != nil {
			a.refuse("%v", err)
			continue
		}
		canonical := canonicalKey(key)
		if a.present[canonical] {
			a.refuse("an item with the key %.200s exists already", key)
			continue
		}
		a.present[canonical] = true
		wishes = append(wishes, wish{row, packInstance(macros), packChange(i.Change), macros, canonical})
	}
	rows, err := a.foundRows(ctx, itemTable.name, itemTable.id, "rule_item = ?", a.x.Rule.ItemID)
	if err != nil {
		return err
	}
	host := a.x.Rule.HostID
	for n, f := range match(wishes, rows, a.itemIdentity) {
		w := &wishes[n]
		if f != nil {
			changed, err := a.keep(ctx, itemTable, f, w)
			if err != nil {
				return err
			}
			if changed {
				a.touch(host)
			}
			continue
		}
		id, err := a.nextItemID()
		if err != nil {
			return err
		}
		a.out.Created++
		a.touch(host)
		err = a.exec(ctx, "INSERT INTO discovered_items (item_id, host_id, rule_item, def_id, instance, changes) VALUES (?, ?, ?, ?, ?, ?)",
			int64(id), host, a.x.Rule.ItemID, w.def, w.instance, w.changes)
		if err != nil {
			return err
		}
	}
	return a.lose(ctx, itemTable, rows, a.deleteRow(ctx, itemTable), a.touchHost)
}

// wholeKey reports a key that still has discovery macros or is none.
func wholeKey(key string) error {
	if names := macroNames(key); len(names) > 0 {
		return fmt.Errorf("the value has no %s, which the key %.200s needs", names[0], key)
	}
	return CheckKey(key)
}

// touchHost notes that the rule's host changed.
func (a *discoverer) touchHost(*found) error {
	a.touch(a.x.Rule.HostID)
	return nil
}

func (a *discoverer) deleteRow(ctx context.Context, t table) func(*found) error {
	return func(f *found) error {
		a.touch(a.x.Rule.HostID)
		return a.exec(ctx, "DELETE FROM "+t.name+" WHERE "+t.id+" = ?", f.id)
	}
}

func (a *discoverer) itemIdentity(f *found) string {
	p := a.defs.prototypes[f.def]
	macros, err := unpackInstance(f.instance)
	if p == nil || err != nil {
		return ""
	}
	return canonicalKey(expandKey(p.fields.key, macros))
}

// presentKeys collects the keys of the host's items that other things than the rule made.
func (a *discoverer) presentKeys(ctx context.Context) error {
	host := a.x.Rule.HostID
	var err error
	if a.present, err = a.configuredKeys(ctx, host, true); err != nil {
		return err
	}
	err = a.query(ctx, func(r *sql.Rows) error {
		var key string
		err := r.Scan(&key)
		a.present[canonicalKey(key)] = true
		return err
	}, "SELECT r.key FROM rule_items i JOIN discovery_rules r ON r.id = i.rule_id WHERE i.host_id = ?", host)
	if err != nil {
		return err
	}
	return a.query(ctx, func(r *sql.Rows) error {
		f := &found{}
		err := r.Scan(&f.def, &f.instance)
		a.present[a.itemIdentity(f)] = true
		return err
	}, "SELECT def_id, instance FROM discovered_items WHERE host_id = ? AND rule_item <> ?", host, a.x.Rule.ItemID)
}

// triggers makes the triggers whose items are there.
func (a *discoverer) triggers(ctx context.Context, list []model.Instance) error {
	wishes := make([]wish, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, i := range list {
		_, row := prototypeRow(i.Prototype)
		p := a.defs.triggers[row]
		if p == nil {
			continue
		}
		macros, _ := macrosFor(p.macros, i.Macros)
		if !a.complete(p.keys, macros) {
			continue // an override or a refusal left one of its items out
		}
		w := wish{row, packInstance(macros), packChange(i.Change), macros, triggerIdentity(p, row, macros)}
		if seen[w.identity] {
			a.refuse("a trigger %q with the same expression exists already", expandText(p.Name, macros))
			continue
		}
		seen[w.identity] = true
		wishes = append(wishes, w)
	}
	rule, host := a.x.Rule.ItemID, a.x.Rule.HostID
	// Triggers of declared items have no rule; when a rule finds the same, they become the rule's and keep their state.
	rows, err := a.foundRows(ctx, triggerTable.name, triggerTable.id, "rule_item = ? OR host_id = ? AND rule_item IS NULL AND instance <> ''", rule, host)
	if err != nil {
		return err
	}
	declared, err := a.declaredTriggers(ctx)
	if err != nil {
		return err
	}
	for n, f := range match(wishes, rows, a.triggerIdentity) {
		w := &wishes[n]
		if f == nil {
			a.out.Created++
			a.touch(host)
			err = a.exec(ctx, "INSERT INTO triggers (host_id, def_id, instance, rule_item, changes) VALUES (?, ?, ?, ?, ?)",
				host, w.def, w.instance, rule, w.changes)
		} else if err = a.keepTrigger(ctx, f, w, declared[f.id]); err == nil {
			delete(declared, f.id)
		}
		if err != nil {
			return err
		}
	}
	rows = slices.DeleteFunc(rows, func(f *found) bool { return declared[f.id] })
	return a.lose(ctx, triggerTable, rows, a.deleteRow(ctx, triggerTable), a.touchHost)
}

func (a *discoverer) keepTrigger(ctx context.Context, f *found, w *wish, declared bool) error {
	changed, err := a.keep(ctx, triggerTable, f, w)
	if err == nil && declared {
		changed = true
		err = a.exec(ctx, "UPDATE triggers SET rule_item = ? WHERE id = ?", a.x.Rule.ItemID, f.id)
	}
	if changed {
		a.touch(a.x.Rule.HostID)
	}
	return err
}

func (a *discoverer) declaredTriggers(ctx context.Context) (map[int64]bool, error) {
	ids := make(map[int64]bool)
	err := a.query(ctx, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		ids[id] = true
		return err
	}, "SELECT id FROM triggers WHERE host_id = ? AND rule_item IS NULL AND instance <> ''", a.x.Rule.HostID)
	return ids, err
}

// complete reports whether the host has all items with the keys.
func (a *discoverer) complete(keys []string, macros map[string]string) bool {
	for _, key := range keys {
		if !a.present[canonicalKey(expandKey(key, macros))] {
			return false
		}
	}
	return true
}

func triggerIdentity(p *triggerDefinition, row int64, macros map[string]string) string {
	return fmt.Sprint(row, " ", expandExpression(p.Expression, macros), "\x00", expandExpression(p.Recovery, macros))
}

func (a *discoverer) triggerIdentity(f *found) string {
	p := a.defs.triggers[f.def]
	macros, err := unpackInstance(f.instance)
	if p == nil || err != nil {
		return ""
	}
	return triggerIdentity(p, f.def, macros)
}

// RuleFailed keeps why the last value of a rule could not be used; what it made before stays as it is. An empty text takes an
// earlier one away.
func (d *DB) RuleFailed(ctx context.Context, item model.ItemID, reason string) error {
	if len(reason) > maxNameBytes {
		reason = strings.ToValidUTF8(reason[:maxNameBytes], "")
	}
	return d.change(ctx, "keep the error of a discovery rule", func(c *change) error {
		return c.exec(ctx, "UPDATE rule_items SET error = ? WHERE item_id = ? AND error <> ?", reason, item, reason)
	})
}

// ExpireDiscovered disables and deletes what was lost and whose time has come. It returns how many objects.
func (d *DB) ExpireDiscovered(ctx context.Context, now time.Time) (disabled, deleted int, err error) {
	err = d.change(ctx, "expire discovered objects", func(c *change) error {
		disabled, deleted = 0, 0
		for _, t := range []table{itemTable, triggerTable, hostTable} {
			off, gone, err := c.expire(ctx, t, now.Unix())
			if err != nil {
				return err
			}
			disabled, deleted = disabled+off, deleted+gone
		}
		return nil
	})
	return disabled, deleted, err
}

func (c *change) expire(ctx context.Context, t table, now int64) (disabled, deleted int, err error) {
	type due struct {
		id   int64
		host model.HostID
	}
	list := func(where string) ([]due, error) {
		var rows []due
		err := c.query(ctx, func(r *sql.Rows) error {
			var x due
			err := r.Scan(&x.id, &x.host)
			rows = append(rows, x)
			return err
		}, "SELECT "+t.id+", host_id FROM "+t.name+" WHERE lost_at > 0 AND "+where, now)
		return rows, err
	}
	gone, err := list("delete_at > 0 AND delete_at <= ?")
	if err != nil {
		return 0, 0, err
	}
	for _, x := range gone {
		if t == hostTable {
			err = c.deleteHost(ctx, x.host)
		} else {
			c.touch(x.host)
			err = c.exec(ctx, "DELETE FROM "+t.name+" WHERE "+t.id+" = ?", x.id)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	off, err := list("disabled = 0 AND disable_at > 0 AND disable_at <= ?")
	if err != nil {
		return 0, 0, err
	}
	for _, x := range off {
		c.touch(x.host)
		if err := c.exec(ctx, "UPDATE "+t.name+" SET disabled = 1 WHERE "+t.id+" = ?", x.id); err != nil {
			return 0, 0, err
		}
		if t == hostTable {
			if err := c.exec(ctx, "UPDATE hosts SET enabled = 0 WHERE id = ?", x.host); err != nil {
				return 0, 0, err
			}
		}
	}
	return len(off), len(gone), nil
}
