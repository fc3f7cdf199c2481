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

// Declared tells which items the host's agent declares now; it replaces what an earlier call told. Each declared item
// that has the key of an item prototype of the host's templates gets the trigger prototypes over that key as triggers:
// the discovery macros are the item's labels, in capitals ({#FSNAME} is the label fsname). Triggers whose items are no
// longer declared go. Calling it again with the same items changes nothing.
//
// What is declared is kept in memory only, so that a change of templates makes the right triggers at once; after a start
// the triggers stay as they were until the first call for their host.
func (d *DB) Declared(ctx context.Context, host model.HostID, items []model.Item) error {
	labelled := []model.Item{}
	for i := range items {
		if len(items[i].Labels) > 0 {
			labelled = append(labelled, model.Item{Key: items[i].Key, Labels: items[i].Labels})
		}
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
		d.declared[host] = labelled
		d.mu.Unlock()
		chain, err := c.chain(ctx, host, make(map[string][]int64))
		if err != nil {
			return err
		}
		return c.instantiate(ctx, host, chain)
	})
}

// triggerPrototype is a trigger prototype with the item keys that it needs.
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
	}, "SELECT id, def_id, instance FROM triggers WHERE host_id = ? AND def_id IS NOT NULL AND instance <> '' ORDER BY id", host)
	if err != nil {
		return err
	}
	c.db.mu.Lock()
	items, told := c.db.declared[host]
	c.db.mu.Unlock()
	wanted := instances(prototypes, items)
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
		if have[i] != 0 {
			continue
		}
		c.touch(host)
		if err := c.exec(ctx, "INSERT INTO triggers (host_id, def_id, instance) VALUES (?, ?, ?)", host, i.prototype, i.macros); err != nil {
			return err
		}
	}
	return nil
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
				if key := text[ref.keyAt:ref.keyEnd]; strings.Contains(key, "{#") && !slices.Contains(p.keys, key) {
					p.keys = append(p.keys, key)
				}
			}
		}
		p.macros = macroNames(expression + recovery + texts)
		slices.Sort(p.macros)
		p.macros = slices.Compact(p.macros)
		if len(p.keys) > 0 {
			*list = append(*list, p)
		}
		return nil
	}, "SELECT id, expression, recovery, name || event_name || opdata || tags || comments || url FROM triggers WHERE "+
		w.where()+" AND rule_id IS NOT NULL ORDER BY id", w.id)
}

// instances finds the triggers that the declared items ask for: one for each declared item that has the first key of
// a prototype, if the prototype's other keys are declared too.
func instances(prototypes []triggerPrototype, items []model.Item) map[instance]bool {
	wanted := make(map[instance]bool)
	declared := make(map[string]bool, len(items))
	byName := make(map[string][]*model.Item)
	for i := range items {
		declared[canonicalKey(items[i].Key)] = true
		name, _ := keyParams(items[i].Key)
		byName[name] = append(byName[name], &items[i])
	}
	for _, p := range prototypes {
		name, _ := keyParams(p.keys[0])
		for _, item := range byName[name] {
			macros := p.macrosOf(item.Labels)
			fits := canonicalKey(expandKey(p.keys[0], macros)) == canonicalKey(item.Key)
			for _, key := range p.keys[1:] {
				fits = fits && declared[canonicalKey(expandKey(key, macros))]
			}
			if !fits {
				continue
			}
			b, err := json.Marshal(macros)
			if err != nil {
				panic(fmt.Sprintf("confdb: macros: %v", err)) // a map of strings
			}
			wanted[instance{p.id, string(b)}] = true
		}
	}
	return wanted
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
