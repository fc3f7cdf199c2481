package zabbix

import (
	"slices"
	"strconv"

	"tidemark/model"
)

// grouping is a member by which groupCount counts, when its ids were asked for.
type grouping[T any] struct {
	member string
	asked  idSet
	// of returns the ids that a row counts for.
	of func(*T) []uint64
}

// countGroups answers groupCount: how many rows there are for each of the ids that were asked for, and all together when none were. Ids
// without a row are left out, as in Zabbix.
func countGroups[T any](groupings []grouping[T], rows []T) ([]byte, error) {
	i := slices.IndexFunc(groupings, func(g grouping[T]) bool { return g.asked != nil })
	if i < 0 {
		return encodeJSON([]map[string]string{{"rowscount": strconv.Itoa(len(rows))}})
	}
	by := &groupings[i]
	counts := make(map[uint64]int)
	for n := range rows {
		for _, id := range by.of(&rows[n]) {
			if by.asked.has(id) {
				counts[id]++
			}
		}
	}
	list := []map[string]string{}
	for id, n := range counts {
		list = append(list, map[string]string{"rowscount": strconv.Itoa(n), by.member: strconv.FormatUint(id, 10)})
	}
	slices.SortFunc(list, func(a, b map[string]string) int { return compareNumbers(a[by.member], b[by.member]) })
	return encodeJSON(list)
}

// countedGroups returns the ids of a host's groups.
func (c *call) countedGroups(h *model.Host) []uint64 {
	if c.groupsByName == nil {
		c.groupsByName = make(map[string]uint64)
		list, err := c.groups()
		if err != nil {
			return nil // the groups that were asked for could not have been read before
		}
		for _, g := range list {
			c.groupsByName[g.Name] = g.ID
		}
	}
	var ids []uint64
	for _, name := range h.Groups {
		if id, ok := c.groupsByName[name]; ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// countedGroupsOf is countedGroups by the id of a host.
func (c *call) countedGroupsOf(id model.HostID) []uint64 {
	h, ok := c.host(id)
	if !ok {
		return nil
	}
	return c.countedGroups(h)
}
