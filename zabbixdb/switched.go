package zabbixdb

import (
	"context"
	"slices"
)

// idsAtOnce is how many identifiers one statement names.
const idsAtOnce = 1000

// countSwitched counts what is on or off on its host other than in its template. What is off is few, so it is read and looked up by key: one
// statement with joins over all items takes minutes in a database without statistics.
func (s *Source) countSwitched(ctx context.Context, byID map[int64]*owner) error {
	items, err := s.otherThanTemplate(ctx, "items", "itemid", "flags IN (0,1)")
	if err != nil {
		return err
	}
	n, err := s.countOnHosts(ctx, items, byID, "SELECT itemid AS id, hostid FROM items WHERE itemid IN ")
	if err != nil {
		return err
	}
	s.leave("inherited items that are off on their host", n, "items are as their template says; unlink, or change the template")
	triggers, err := s.otherThanTemplate(ctx, "triggers", "triggerid", "flags = 0")
	if err != nil {
		return err
	}
	n, err = s.countOnHosts(ctx, triggers, byID, "SELECT f.triggerid AS id, i.hostid FROM functions f JOIN items i ON i.itemid = f.itemid WHERE f.triggerid IN ")
	if err != nil {
		return err
	}
	s.leave("inherited triggers that are off on their host", n, "triggers are as their template says; make the template's trigger depend on a macro")
	return nil
}

// otherThanTemplate returns the rows of a table that are on or off other than those that they inherit from.
func (s *Source) otherThanTemplate(ctx context.Context, table, key, which string) ([]int64, error) {
	off := make(map[int64]bool)
	parents := make(map[int64]int64)
	err := s.each(ctx, "SELECT "+key+" AS id, templateid FROM "+table+" WHERE status = 1 AND "+which, func(r row) error {
		off[r.id("id")] = true
		if parent := r.id("templateid"); parent != 0 {
			parents[r.id("id")] = parent
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var other, all []int64
	for id := range off {
		all = append(all, id)
		if parent, inherited := parents[id]; inherited && !off[parent] {
			other = append(other, id)
		}
	}
	for chunk := range slices.Chunk(all, idsAtOnce) {
		err := s.each(ctx, "SELECT "+key+" AS id FROM "+table+" WHERE templateid IN "+list(chunk)+" AND status <> 1 AND "+which, func(r row) error {
			other = append(other, r.id("id"))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return other, nil
}

// countOnHosts counts those that are on a host, not on a template; query gives id and hostid.
func (s *Source) countOnHosts(ctx context.Context, ids []int64, byID map[int64]*owner, query string) (int, error) {
	found := make(map[int64]bool)
	for chunk := range slices.Chunk(ids, idsAtOnce) {
		err := s.each(ctx, query+list(chunk), func(r row) error {
			if o := byID[r.id("hostid")]; o != nil && !o.template {
				found[r.id("id")] = true
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return len(found), nil
}
