package shape

import (
	"bytes"

	"tidemark/wire/bson"
	"tidemark/wire/mongo"
)

// legacy reads the operations that came before OP_MSG. They count under the names of the commands that took their place.
func (f *Finder) legacy(m *mongo.Message, c *Command) bool {
	database, collection := m.Namespace, []byte(nil)
	if dot := bytes.IndexByte(m.Namespace, '.'); dot >= 0 {
		database, collection = m.Namespace[:dot], m.Namespace[dot+1:]
	}
	switch m.Op {
	case mongo.OpQuery:
		if m.Body == nil {
			return false
		}
		if string(collection) == "$cmd" {
			return f.command(m, unwrap(m.Body, "$query", "query"), database, c)
		}
		c.Name = "find"
	case mongo.OpInsert:
		c.Name = "insert"
	case mongo.OpUpdate:
		c.Name = "update"
	case mongo.OpDelete:
		c.Name = "delete"
	case mongo.OpGetMore:
		c.Name, c.CursorID = "getMore", m.CursorID
	case mongo.OpKillCursors:
		c.Name, c.CursorID = "killCursors", m.CursorID
	default:
		return false
	}
	c.Database, c.Collection = f.name(database), f.name(collection)
	f.legacyShape(m, c)
	return true
}

// unwrap returns the command inside a query wrapper, or the document itself.
func unwrap(doc []byte, names ...string) []byte {
	var e bson.Element
	r, err := bson.NewReader(doc)
	if err != nil {
		return doc
	}
	ok, _ := r.Next(&e)
	if !ok || e.Kind != bson.Document {
		return doc
	}
	for _, n := range names {
		if string(e.Key) == n {
			return e.Value
		}
	}
	return doc
}

// yes is the value of a flag that is set.
var yes = []byte{1}

// legacyShape gives a legacy operation the shape of the command that took its place.
func (f *Finder) legacyShape(m *mongo.Message, c *Command) {
	fields := make([]bson.Element, 0, 6)
	document := func(key string, doc []byte) {
		if doc != nil {
			fields = append(fields, bson.Element{Kind: bson.Document, Key: []byte(key), Value: doc})
		}
	}
	flag := func(key string, set bool) {
		if set {
			fields = append(fields, bson.Element{Kind: bson.Boolean, Key: []byte(key), Value: yes})
		}
	}
	switch m.Op {
	case mongo.OpGetMore:
	case mongo.OpQuery:
		inner := unwrap(m.Body, "$query", "query")
		document("filter", inner)
		var sort bson.Element
		if len(inner) != len(m.Body) && (bson.Lookup(m.Body, "$orderby", &sort) || bson.Lookup(m.Body, "orderby", &sort)) {
			sort.Key = []byte("sort")
			fields = append(fields, sort)
		}
		document("projection", m.Second)
		flag("skip", m.Skip != 0)
		flag("limit", m.Limit < 0 || m.Limit == 1)
		c.Awaits = m.Flags&mongo.QueryTailable != 0
		f.parts(layouts["find"], fields, c)
	case mongo.OpUpdate:
		document("q", m.Body)
		document("u", m.Second)
		flag("multi", m.Flags&mongo.UpdateMulti != 0)
		flag("upsert", m.Flags&mongo.UpdateUpsert != 0)
		f.parts(updateStatement, fields, c)
	case mongo.OpDelete:
		document("q", m.Body)
		flag("limit", m.Flags&mongo.DeleteSingle != 0)
		f.parts(deleteStatement, fields, c)
	default:
		f.simple(c)
	}
}
