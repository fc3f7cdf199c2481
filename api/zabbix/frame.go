package zabbix

import (
	"slices"

	"tidemark/access"
)

// each changes the objects of a call one after the other, while no other call changes anything, and answers their ids.
func (c *call) each(answer string, change func(*params) (id string, err error)) ([]byte, error) {
	ids, err := c.eachObject(change, nil)
	if err != nil {
		return nil, err
	}
	return encodeJSON(map[string]any{answer: ids})
}

// eachObject is each for calls that find the ids later; finish, which may be nil, is called once all objects are read.
func (c *call) eachObject(change func(*params) (id string, err error), finish func() error) ([]string, error) {
	given, err := c.objects()
	if err != nil {
		return nil, err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	ids := []string{}
	for _, p := range given {
		id, err := change(p)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if finish != nil {
		if err := finish(); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// removal says how objects of one kind, which are known by their names, are deleted.
type removal[T any] struct {
	// answer is the member with the ids; what names an object in the audit log: "proxy" for "proxy branch-1".
	answer, what string
	// all returns the objects that the caller may delete.
	all      func() ([]T, error)
	id, name func(*T) string
	remove   func(*T) error
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
	texts := []string{}
	for i := range gone {
		if err := r.remove(&gone[i]); err != nil {
			return nil, notAllowed(err)
		}
		name := r.name(&gone[i])
		var before any = name
		if r.before != nil {
			before = r.before(&gone[i])
		}
		access.Changed(c.ctx, r.what+" "+name, before, nil)
		texts = append(texts, r.id(&gone[i]))
	}
	return encodeJSON(map[string]any{r.answer: texts})
}
