package zabbix

import (
	"slices"
	"strings"

	"tidemark/access"
)

// eachObject reads the objects of a call one after the other, while no other call changes anything, and then has finish make all changes.
func (c *call) eachObject(read func(*params) (id string, err error), finish func() error) ([]string, error) {
	given, err := c.objects()
	if err != nil {
		return nil, err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	ids := []string{}
	for _, p := range given {
		id, err := read(p)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if err := finish(); err != nil {
		return nil, err
	}
	return ids, nil
}

// once refuses an object that another one of the same call has the value of a member with, its id or name. It does not make the members known.
func (p *params) once(seen map[string]bool, members ...string) {
	for _, member := range members {
		value, ok := scalar(p.object[member])
		if !ok || value == "" {
			continue
		}
		key := member + "=" + value
		if seen[key] && p.failed == nil {
			p.failed = invalidParams(`Invalid parameter "/%s": value (%s)=(%.100s) already exists.`, strings.TrimSuffix(p.place, "/"), member, value)
		}
		seen[key] = true
	}
}

// removal says how objects of one kind, which are known by their names, are deleted.
type removal[T any] struct {
	// answer is the member with the ids; what names an object in the audit log: "proxy" for "proxy branch-1".
	answer, what string
	// all returns the objects that the caller may delete.
	all      func() ([]T, error)
	id, name func(*T) string
	// remove deletes some of them, by their names: all or, with an error, none.
	remove func(names []string) error
	// check, if not nil, says of each why it cannot be deleted.
	check func(*T) error
	// before, if not nil, is what the audit log has of an object that was there; else its name.
	before func(*T) any
}

// deleteNamed deletes the objects whose ids a call lists: all of them or, when one is not there, none.
func deleteNamed[T any](c *call, r removal[T]) ([]byte, error) {
	ids := c.listIDs()
	if err := c.done(); err != nil {
		return nil, err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	all, err := r.all()
	if err != nil {
		return nil, err
	}
	gone := slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !ids.hasText(r.id(&one)) })
	if len(gone) != len(ids) || len(gone) > maxObjects {
		return nil, errNotAllowed
	}
	texts, names := []string{}, []string{}
	for i := range gone {
		if r.check != nil {
			if err := r.check(&gone[i]); err != nil {
				return nil, err
			}
		}
		names = append(names, r.name(&gone[i]))
	}
	if err := r.remove(names); err != nil {
		return nil, notAllowed(err)
	}
	for i, name := range names {
		var before any = name
		if r.before != nil {
			before = r.before(&gone[i])
		}
		access.Changed(c.ctx, r.what+" "+name, before, nil)
		texts = append(texts, r.id(&gone[i]))
	}
	return encodeJSON(map[string]any{r.answer: texts})
}
