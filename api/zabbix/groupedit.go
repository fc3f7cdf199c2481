package zabbix

import (
	"slices"
	"strconv"

	"tidemark/access"
)

// updateGroups gives host groups other names.
func updateGroups(c *call) ([]byte, error) {
	given, err := c.objects()
	if err != nil {
		return nil, err
	}
	return c.eachGroup(func(known []Group) ([]string, error) {
		ids, before, after := []string{}, []string{}, []string{}
		for _, p := range given {
			p.require("groupid")
			id, name := p.text("groupid"), p.text("name")
			if err := p.done(); err != nil {
				return nil, err
			}
			i := slices.IndexFunc(known, func(g Group) bool { return strconv.FormatUint(g.ID, 10) == id })
			if i < 0 {
				return nil, errNotAllowed
			}
			if slices.ContainsFunc(known, func(g Group) bool { return g.Name == name && g.ID != known[i].ID }) {
				return nil, invalidParams("Host group %q already exists.", name)
			}
			if ids = append(ids, id); name == "" || name == known[i].Name {
				continue
			}
			if err := c.options.Objects.RenameGroup(c.ctx, known[i].ID, name); err != nil {
				return nil, notAllowed(err)
			}
			before, after = append(before, known[i].Name), append(after, name)
			known[i].Name = name
			access.Changed(c.ctx, "host_groups", before, after)
		}
		return ids, nil
	})
}

// deleteGroups deletes host groups without which every host still has one.
func deleteGroups(c *call) ([]byte, error) {
	wanted := c.listIDs()
	if err := c.done(); err != nil {
		return nil, err
	}
	return c.eachGroup(func(known []Group) ([]string, error) {
		known = slices.DeleteFunc(known, func(g Group) bool { return !wanted.has(g.ID) })
		if len(known) != len(wanted) {
			return nil, errNotAllowed
		}
		ids, names := []string{}, []string{}
		for _, g := range known {
			if err := c.options.Objects.DeleteGroup(c.ctx, g.ID); err != nil {
				return nil, notAllowed(err)
			}
			ids, names = append(ids, strconv.FormatUint(g.ID, 10)), append(names, g.Name)
			access.Changed(c.ctx, "host_groups", names, nil)
		}
		slices.SortFunc(ids, compareNumbers)
		return ids, nil
	})
}

// eachGroup changes host groups for somebody who sees all hosts, because a group has hosts of everybody.
func (c *call) eachGroup(change func(known []Group) ([]string, error)) ([]byte, error) {
	if c.visible != nil {
		return nil, errNotAllowed
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	known, err := c.options.Objects.Groups(c.ctx)
	if err != nil {
		return nil, err
	}
	ids, err := change(known)
	if err != nil {
		return nil, err
	}
	return encodeJSON(map[string]any{"groupids": ids})
}
