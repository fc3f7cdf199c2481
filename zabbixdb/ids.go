package zabbixdb

import "context"

// Kinds of objects with ids that scripts name.
const (
	KindGroup    = "host group"
	KindTemplate = "template"
	KindHost     = "host"
	KindItem     = "item"
	KindTrigger  = "trigger"
)

// Object is something that has an id in Zabbix, and what it is found by here: hosts by their technical name, items by host and key, triggers by a host that
// they read and their name.
type Object struct {
	Kind       string
	ID         int64
	Host, Name string
}

// objectQueries are in the order in which objects are handed over. What discovery made is among them, what only templates or prototypes have is not.
var objectQueries = []struct{ kind, query string }{
	{KindGroup, "SELECT groupid AS id, '' AS host, name FROM hstgrp"},
	{KindTemplate, "SELECT hostid AS id, '' AS host, host AS name FROM hosts WHERE status = 3 ORDER BY hostid"},
	{KindHost, "SELECT hostid AS id, '' AS host, host AS name FROM hosts WHERE status IN (0,1) AND flags IN (0,4) ORDER BY hostid"},
	{KindItem, `SELECT i.itemid AS id, h.host, i.key_ AS name FROM items i JOIN hosts h ON h.hostid = i.hostid
		WHERE h.status IN (0,1) AND h.flags IN (0,4) AND i.flags IN (0,4) ORDER BY i.itemid`},
	{KindTrigger, `SELECT t.triggerid AS id, min(h.host) AS host, t.description AS name FROM triggers t JOIN functions f ON f.triggerid = t.triggerid
		JOIN items i ON i.itemid = f.itemid JOIN hosts h ON h.hostid = i.hostid
		WHERE h.status IN (0,1) AND h.flags IN (0,4) AND t.flags IN (0,4) GROUP BY t.triggerid, t.description ORDER BY t.triggerid`},
}

// Objects hands over what scripts may have ids of. An error of fn ends it.
func (s *Source) Objects(ctx context.Context, fn func(Object) error) error {
	for _, q := range objectQueries {
		query := q.query
		if q.kind == KindGroup {
			if s.mandatory >= 6020000 { // before, one kind for hosts and templates
				query += " WHERE type = 0"
			}
			query += " ORDER BY groupid"
		}
		err := s.each(ctx, query, func(r row) error {
			return fn(Object{Kind: q.kind, ID: r.id("id"), Host: r["host"], Name: r["name"]})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
