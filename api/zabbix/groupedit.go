package zabbix

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"tidemark/access"
)

// groupChanges is how one kind of groups is changed.
type groupChanges struct {
	// what and member are what errors and the audit log call them.
	what, member string
	list         func(context.Context) ([]Group, error)
	rename       func(ctx context.Context, list []Group) error
	remove       func(ctx context.Context, ids []uint64) error
}

func (c *call) hostGroups() groupChanges {
	o := c.options.Objects
	return groupChanges{"Host group", "host_groups", o.Groups, o.RenameGroups, o.DeleteGroups}
}

func (c *call) templateGroups() groupChanges {
	o := c.options.Objects
	return groupChanges{"Template group", "template_groups", o.TemplateGroups, o.RenameTemplateGroups, o.DeleteTemplateGroups}
}

// updateGroups gives host groups other names.
func updateGroups(c *call) ([]byte, error) { return c.renameGroups(c.hostGroups()) }

func updateTemplateGroups(c *call) ([]byte, error) { return c.renameGroups(c.templateGroups()) }

func (c *call) renameGroups(of groupChanges) ([]byte, error) {
	given, err := c.objects()
	if err != nil {
		return nil, err
	}
	return c.eachGroup(of, func(known []Group) ([]string, error) {
		ids, before, next, seen := []string{}, []string{}, []Group{}, make(map[string]bool)
		for _, p := range given {
			p.require("groupid")
			id, name := p.text("groupid"), ""
			if p.has("name") {
				name = p.groupName(strings.ToLower(of.what))
			}
			p.once(seen, "groupid")
			if err := p.done(); err != nil {
				return nil, err
			}
			i := slices.IndexFunc(known, func(g Group) bool { return strconv.FormatUint(g.ID, 10) == id })
			if i < 0 {
				return nil, errNotAllowed
			}
			if slices.ContainsFunc(known, func(g Group) bool { return g.Name == name && g.ID != known[i].ID }) {
				return nil, invalidParams("%s %q already exists.", of.what, name)
			}
			if ids = append(ids, id); name == "" || name == known[i].Name {
				continue
			}
			before, next = append(before, known[i].Name), append(next, Group{ID: known[i].ID, Name: name})
			known[i].Name = name
		}
		if len(next) == 0 {
			return ids, nil
		}
		if err := of.rename(c.ctx, next); err != nil {
			return nil, notAllowed(err)
		}
		for i, g := range next {
			access.Changed(c.ctx, of.member+" "+before[i], before[i], g.Name)
		}
		return ids, nil
	})
}

// maxGroupName bounds the name of a group, in bytes.
const maxGroupName = 255

// groupName reads the name of a group; what is host group or template group.
func (p *params) groupName(what string) string {
	name := p.text("name")
	switch {
	case name == "":
		p.fail("name", "cannot be empty")
	case len(name) > maxGroupName:
		p.fail("name", "value is too long")
	case strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.Contains(name, "//"):
		p.fail("name", "invalid "+what+" name")
	}
	return name
}

// deleteGroups deletes host groups without which every host still has one.
func deleteGroups(c *call) ([]byte, error) { return c.removeGroups(c.hostGroups()) }

// deleteTemplateGroups deletes template groups without which every template still has one.
func deleteTemplateGroups(c *call) ([]byte, error) { return c.removeGroups(c.templateGroups()) }

func (c *call) removeGroups(of groupChanges) ([]byte, error) {
	wanted := c.listIDs()
	if err := c.done(); err != nil {
		return nil, err
	}
	return c.eachGroup(of, func(known []Group) ([]string, error) {
		known = slices.DeleteFunc(known, func(g Group) bool { return !wanted.has(g.ID) })
		if len(known) != len(wanted) {
			return nil, errNotAllowed
		}
		if err := of.remove(c.ctx, sortedIDs(wanted)); err != nil {
			return nil, notAllowed(err)
		}
		ids := []string{}
		for _, g := range known {
			access.Changed(c.ctx, of.member+" "+g.Name, g.Name, nil)
			ids = append(ids, strconv.FormatUint(g.ID, 10))
		}
		slices.SortFunc(ids, compareNumbers)
		return ids, nil
	})
}

// eachGroup changes host groups for somebody who sees all hosts, because a group has hosts of everybody.
func (c *call) eachGroup(of groupChanges, change func(known []Group) ([]string, error)) ([]byte, error) {
	if c.visible != nil {
		return nil, errNotAllowed
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	known, err := of.list(c.ctx)
	if err != nil {
		return nil, err
	}
	ids, err := change(known)
	if err != nil {
		return nil, err
	}
	return encodeJSON(map[string]any{"groupids": ids})
}

// propagateGroups answers the groups: what a user group may do in a group it may do in those below it always.
func propagateGroups(c *call) ([]byte, error) {
	ids, _ := c.references("groups", "groupid", "groupids")
	c.accept("permissions", "tag_filters")
	if err := c.done(); err != nil {
		return nil, err
	}
	texts := []string{}
	for _, id := range sortedIDs(ids) {
		texts = append(texts, strconv.FormatUint(id, 10))
	}
	return encodeJSON(map[string]any{"groupids": texts})
}
