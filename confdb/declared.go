package confdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tidemark/model"
)

// Declared tells which items the host's agent declares now; it replaces what an earlier call told. A trigger prototype
// of the host's templates becomes a trigger for each declared item that has the key it names, if all other items that it
// names are there too: the discovery macros are the item's labels, in capitals ({#FSNAME} is the label fsname). Triggers
// whose items are no longer declared go. Calling it again with the same items changes nothing.
//
// What is declared is kept in memory only, so that a change of templates makes the right triggers at once; after a start
// the triggers stay as they were until the first call for their host.
func (d *DB) Declared(ctx context.Context, host model.HostID, items []model.Item) error {
	list := make([]model.Item, len(items))
	for i := range items {
		list[i] = model.Item{Key: items[i].Key, Labels: items[i].Labels}
	}
	return d.change(ctx, "declare items", func(c *change) error {
		have, err := c.id(ctx, "SELECT id FROM hosts WHERE id = ?", host)
		if err != nil {
			return err
		}
		if have == 0 {
			return fmt.Errorf("host %d: %w", host, ErrNotFound)
		}
		d.mu.Lock()
		d.declared[host] = list
		d.mu.Unlock()
		chain, err := c.chain(ctx, host, make(map[string][]int64))
		if err != nil {
			return err
		}
		return c.instantiate(ctx, host, chain)
	})
}

// triggerPrototype is a trigger prototype with the item keys that it needs; those with discovery macros come first.
type triggerPrototype struct {
	id     int64
	keys   []string
	macros []string
}

// instance is one trigger that a prototype asks for.
type instance struct {
	prototype int64
	macros    string
}

// instantiate makes and removes the triggers of declared items.
func (c *change) instantiate(ctx context.Context, host model.HostID, chain []int64) error {
	var prototypes []triggerPrototype
	for _, w := range append([]owner{{hostOwner, int64(host)}}, templateOwners(chain)...) {
		if err := c.prototypes(ctx, w, &prototypes); err != nil {
			return err
		}
	}
	have := make(map[instance]int64)
	err := c.query(ctx, func(r *sql.Rows) error {
		var id int64
		var i instance
		err := r.Scan(&id, &i.prototype, &i.macros)
		have[i] = id
		return err
	}, "SELECT id, def_id, instance FROM triggers WHERE host_id = ? AND def_id IS NOT NULL AND instance <> '' AND rule_item IS NULL ORDER BY id", host)
	if err != nil {
		return err
	}
	discovered := make(map[instance]bool)
	err = c.query(ctx, func(r *sql.Rows) error {
		var i instance
		err := r.Scan(&i.prototype, &i.macros)
		discovered[i] = true
		return err
	}, "SELECT def_id, instance FROM triggers WHERE host_id = ? AND rule_item IS NOT NULL", host)
	if err != nil {
		return err
	}
	c.db.mu.Lock()
	items, told := c.db.declared[host]
	c.db.mu.Unlock()
	configured, err := c.configuredKeys(ctx, host, len(prototypes) > 0 && told)
	if err != nil {
		return err
	}
	wanted := instances(prototypes, items, configured)
	for i, id := range have {
		keep := wanted[i]
		if !told { // not yet known what is declared: only what lost its template goes
			keep = slices.ContainsFunc(prototypes, func(p triggerPrototype) bool { return p.id == i.prototype })
		}
		if keep {
			continue
		}
		c.touch(host)
		if err := c.exec(ctx, "DELETE FROM triggers WHERE id = ?", id); err != nil {
			return err
		}
	}
	for _, i := range sortedInstances(wanted) {
		if have[i] != 0 || discovered[i] {
			continue
		}
		c.touch(host)
		if err := c.exec(ctx, "INSERT INTO triggers (host_id, def_id, instance) VALUES (?, ?, ?)", host, i.prototype, i.macros); err != nil {
			return err
		}
	}
	return nil
}

// configuredKeys returns the keys of a host's configured items in canonical form.
func (c *change) configuredKeys(ctx context.Context, host model.HostID, needed bool) (map[string]bool, error) {
	keys := make(map[string]bool)
	if !needed {
		return keys, nil
	}
	err := c.query(ctx, func(r *sql.Rows) error {
		var key string
		err := r.Scan(&key)
		keys[canonicalKey(key)] = true
		return err
	}, `SELECT coalesce(d.key, i.key) FROM items i LEFT JOIN items d ON d.id = i.def_id
		WHERE i.host_id = ? AND i.rule_id IS NULL`, host)
	return keys, err
}

func templateOwners(chain []int64) []owner {
	list := make([]owner, len(chain))
	for i, t := range chain {
		list[i] = owner{templateOwner, t}
	}
	return list
}

// prototypes appends the trigger prototypes of an owner.
func (c *change) prototypes(ctx context.Context, w owner, list *[]triggerPrototype) error {
	return c.query(ctx, func(r *sql.Rows) error {
		p := triggerPrototype{}
		var expression, recovery, texts string
		if err := r.Scan(&p.id, &expression, &recovery, &texts); err != nil {
			return err
		}
		for _, text := range []string{expression, recovery} {
			refs, err := itemRefs(text)
			if err != nil {
				return err
			}
			for _, ref := range refs {
				if key := text[ref.keyAt:ref.keyEnd]; !slices.Contains(p.keys, key) {
					p.keys = append(p.keys, key)
				}
			}
		}
		p.macros = macroNames(expression + recovery + texts)
		slices.Sort(p.macros)
		p.macros = slices.Compact(p.macros)
		slices.SortStableFunc(p.keys, func(a, b string) int {
			return strings.Count(b, "{#") - strings.Count(a, "{#")
		})
		*list = append(*list, p)
		return nil
	}, "SELECT id, expression, recovery, name || event_name || opdata || tags || comments || url FROM triggers WHERE "+
		w.where()+" AND rule_id IS NOT NULL ORDER BY id", w.id)
}

// instances finds the triggers that the declared items ask for: one for each declared item that has the first key of
// a prototype, if the prototype's other keys are there too, declared or configured.
func instances(prototypes []triggerPrototype, items []model.Item, present map[string]bool) map[instance]bool {
	wanted := make(map[instance]bool)
	byName := make(map[string][]*model.Item)
	for i := range items {
		present[canonicalKey(items[i].Key)] = true
		name, _ := keyParams(items[i].Key)
		byName[name] = append(byName[name], &items[i])
	}
	for n := range prototypes {
		p := &prototypes[n]
		if !strings.Contains(p.keys[0], "{#") {
			if p.fits(nil, present) {
				wanted[instance{p.id, noMacros}] = true
			}
			continue
		}
		name, _ := keyParams(p.keys[0])
		for _, item := range byName[name] {
			macros := p.macrosOf(item.Labels)
			if canonicalKey(expandKey(p.keys[0], macros)) == canonicalKey(item.Key) && p.fits(macros, present) {
				wanted[instance{p.id, packInstance(macros)}] = true
			}
		}
	}
	return wanted
}

// noMacros is the instance of a prototype without discovery macros.
const noMacros = "{}"

func packInstance(macros map[string]string) string {
	b, err := json.Marshal(macros)
	if err != nil {
		panic(fmt.Sprintf("confdb: macros: %v", err)) // a map of strings
	}
	return string(b)
}

// fits reports whether all items are there that the prototype names.
func (p *triggerPrototype) fits(macros map[string]string, present map[string]bool) bool {
	for _, key := range p.keys {
		if !present[canonicalKey(expandKey(key, macros))] {
			return false
		}
	}
	return true
}

// macrosOf returns the labels that the prototype uses, as discovery macros.
func (p *triggerPrototype) macrosOf(labels model.Labels) map[string]string {
	macros := make(map[string]string, len(p.macros))
	for _, l := range labels {
		name := "{#" + strings.ToUpper(l.Name) + "}"
		if _, used := slices.BinarySearch(p.macros, name); used {
			macros[name] = l.Value
		}
	}
	return macros
}

func sortedInstances(set map[instance]bool) []instance {
	list := make([]instance, 0, len(set))
	for i := range set {
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b instance) int {
		if a.prototype != b.prototype {
			return int(a.prototype - b.prototype)
		}
		return strings.Compare(a.macros, b.macros)
	})
	return list
}
