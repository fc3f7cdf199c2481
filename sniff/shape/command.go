package shape

import (
	"bytes"
	"strings"

	"tidemark/wire/bson"
	"tidemark/wire/mongo"
)

// Statement is one distinct statement of a command and how often the command holds it.
type Statement struct {
	Shape *Shape
	Count int
}

// Command is what a request says of itself. It is reused from request to request; Statements is valid until the next one.
type Command struct {
	// Name is the command's name in its usual spelling.
	Name string
	// Database and Collection; the second is empty where a command has none.
	Database, Collection string
	// Monitoring is set for hello and heartbeats, Silent for authentication, Cluster for what members send each other.
	Monitoring, Silent, Cluster bool
	// Internal is set on the handshake of a member of the cluster or a router.
	Internal bool
	// Awaits is set when the cursor that the command opens waits for data on purpose (tailable, change streams).
	Awaits bool
	// CursorID is the cursor that a getMore goes on with.
	CursorID int64
	// Statements are the distinct statements; none for getMore, whose shape is that of the command that opened the cursor.
	Statements []Statement
	// Application is the name that the client gives in its handshake.
	Application string
	// Nameless is set when the database is not known: the command cannot be attributed.
	Nameless bool
}

// Finder finds the shapes of commands. It belongs to one goroutine.
type Finder struct {
	seed   uint64
	quick  map[uint64]*Shape
	shapes map[Fingerprint]*Shape
	limit  int
	names  map[string]string
	fields fieldSet
	other  *Shape
	kind   commandKind // of the command at hand
	known  []*known
	// templates are the commands that are compared first, templated how many have a template.
	templates [][2]*known
	templated int
	// Overflow counts statements that went under "other" because the limit was reached.
	Overflow uint64
}

// commandKind says what the first value of a command is.
type commandKind uint8

const (
	plainCommand     commandKind = iota // a collection, if it is a string
	bareCommand                         // no collection
	qualifiedCommand                    // "database.collection"
)

// DefaultShapes is the limit of live shapes when Options give none.
const DefaultShapes = 2000

// maxQuick and maxNames bound the tables in front of the shapes.
const (
	maxQuick = 1 << 15
	maxNames = 1 << 14
	// maxNameBytes bounds one database, collection or command name.
	maxNameBytes = 255
	// maxStatements bounds the distinct statements of one command; further ones count for the last.
	maxStatements = 64
)

// OtherText is the text of the shape under which those over the limit are counted.
const OtherText = "other"

// NewFinder returns a finder that keeps at most limit shapes; 0 means DefaultShapes. seed makes the private hash unpredictable.
func NewFinder(limit int, seed uint64) *Finder {
	if limit <= 0 {
		limit = DefaultShapes
	}
	return &Finder{
		seed: seed | 1, limit: limit, quick: map[uint64]*Shape{}, shapes: map[Fingerprint]*Shape{}, names: map[string]string{}, known: make([]*known, knownSlots),
		templates: make([][2]*known, templateSlots),
		other:     newShape("", "", OtherText, OtherText),
	}
}

// Other is the shape of all that found no room.
func (f *Finder) Other() *Shape { return f.other }

// Len returns the number of shapes that are kept.
func (f *Finder) Len() int { return len(f.shapes) }

// Forget drops shapes, so that others find room.
func (f *Finder) Forget(shapes []*Shape) {
	for _, s := range shapes {
		if f.shapes[s.Fingerprint] == s {
			delete(f.shapes, s.Fingerprint)
			s.dead = true
		}
	}
	clear(f.quick)
	clear(f.known)
	clear(f.templates)
	f.templated = 0
}

// Limit returns how many shapes may live.
func (f *Finder) Limit() int { return f.limit }

// name returns b as a string, from a bounded table of names that were met before. Bytes that do not print are replaced.
func (f *Finder) name(b []byte) string {
	if s, ok := f.names[string(b)]; ok {
		return s
	}
	if len(b) > maxNameBytes {
		b = b[:maxNameBytes]
	}
	s := strings.ToValidUTF8(string(appendPrintable(nil, b)), "?")
	if len(f.names) >= maxNames {
		clear(f.names)
	}
	f.names[string(b)] = s
	return s
}

// Find reads the command of a request. It returns false when the message holds none that can be read.
func (f *Finder) Find(m *mongo.Message, c *Command) bool {
	if m.Op == mongo.OpMsg && m.Body != nil {
		return f.message(m, c)
	}
	*c = Command{Statements: c.Statements[:0]}
	switch m.Op {
	case mongo.OpCommand:
		return m.Body != nil && f.command(m, m.Body, m.Namespace, c)
	}
	return f.legacy(m, c)
}

// command reads a command document; database is given where the document does not name it.
func (f *Finder) command(m *mongo.Message, body, database []byte, c *Command) bool {
	*c = Command{Statements: c.Statements[:0]}
	set := &f.fields
	if !set.read(body) || len(set.list) == 0 {
		return false
	}
	first := &set.list[0]
	l := f.identify(first.Key, c)
	if db := set.get("$db"); db != nil && db.Text() != nil {
		database = db.Text()
	}
	c.Database, c.Nameless = f.name(database), database == nil
	if c.Monitoring {
		f.handshake(c)
		return true
	}
	if c.Silent {
		f.simple(c)
		return true
	}
	f.collection(first, c)
	c.Cluster = c.Cluster || set.inside
	f.flags(c)
	f.statements(m, l, c)
	return true
}

// identify fills in the command's name and kind from its first key.
func (f *Finder) identify(key []byte, c *Command) *layout {
	var room [48]byte
	lower := room[:0]
	for _, b := range key[:min(len(key), len(room))] {
		if b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		lower = append(lower, b)
	}
	c.Silent, c.Monitoring, c.Cluster = silent[string(lower)], monitoring[string(lower)], replication[string(lower)]
	f.kind = plainCommand
	switch {
	case bare[string(lower)]:
		f.kind = bareCommand
	case qualified[string(lower)]:
		f.kind = qualifiedCommand
	}
	if l := layouts[string(lower)]; l != nil {
		c.Name = l.name
		return l
	}
	c.Name = f.name(key)
	return nil
}

// collection applies each command's own rule for the collection it works on.
func (f *Finder) collection(first *bson.Element, c *Command) {
	switch c.Name {
	case "getMore":
		c.CursorID, _ = first.Integer()
		if e := f.fields.get("collection"); e != nil {
			c.Collection = f.name(e.Text())
		}
		return
	case "explain":
		f.explained(first, c)
		return
	case "bulkWrite":
		return
	case "group":
		// Of servers before 4.2: everything is in one document.
		if e := new(bson.Element); first.Kind == bson.Document && bson.Lookup(first.Value, "ns", e) {
			c.Collection = f.name(e.Text())
		}
		return
	}
	t := first.Text()
	switch {
	case t == nil || f.kind == bareCommand:
	case f.kind == qualifiedCommand:
		if dot := bytes.IndexByte(t, '.'); dot > 0 {
			c.Database, c.Collection = f.name(t[:dot]), f.name(t[dot+1:])
		}
	default:
		c.Collection = f.name(t)
	}
}

// explained takes the collection of the command that is explained.
func (f *Finder) explained(first *bson.Element, c *Command) {
	var inner bson.Element
	if first.Kind != bson.Document {
		return
	}
	if r, err := bson.NewReader(first.Value); err == nil {
		if ok, _ := r.Next(&inner); ok && inner.Text() != nil {
			c.Collection = f.name(inner.Text())
		}
	}
}

// flags finds out whether the command's cursor will wait on purpose.
func (f *Finder) flags(c *Command) {
	switch c.Name {
	case "find":
		if e := f.fields.get("tailable"); e != nil && e.Truthy() {
			c.Awaits = true
		}
	case "aggregate":
		e := f.fields.get("pipeline")
		if e == nil {
			return
		}
		var stage, operator bson.Element
		if r, err := bson.NewReader(e.Value); err == nil {
			if ok, _ := r.Next(&stage); ok && stage.Kind == bson.Document {
				if r, err := bson.NewReader(stage.Value); err == nil {
					if ok, _ := r.Next(&operator); ok && string(operator.Key) == "$changeStream" {
						c.Awaits = true
					}
				}
			}
		}
	}
}

// handshake reads the application's name of a hello.
func (f *Finder) handshake(c *Command) {
	var e bson.Element
	c.Internal = f.fields.get("internalClient") != nil
	client := f.fields.get("client")
	if client == nil || client.Kind != bson.Document {
		return
	}
	if bson.Lookup(client.Value, "application", &e) && e.Kind == bson.Document && bson.Lookup(e.Value, "name", &e) {
		c.Application = f.name(e.Text())
	}
	if c.Application == "" && bson.Lookup(client.Value, "driver", &e) && e.Kind == bson.Document && bson.Lookup(e.Value, "name", &e) {
		c.Application = f.name(e.Text())
	}
}

// fieldSet is the top-level fields of one command.
type fieldSet struct {
	list []bson.Element
	// inside is set when a field marks traffic within a cluster.
	inside bool
}

// maxFields bounds the top-level fields that are looked at.
const maxFields = 64

// read fills the set; it returns false when the document is malformed from its start. Of a field that is cut off, what is there is taken.
func (s *fieldSet) read(doc []byte) bool {
	s.list, s.inside = s.list[:0], false
	r, err := bson.NewReader(doc)
	if err != nil {
		return false
	}
	var e bson.Element
	for len(s.list) < maxFields {
		ok, err := r.Next(&e)
		if !ok && (err == nil || len(e.Value) == 0) {
			break
		}
		s.list = append(s.list, e)
		if err != nil {
			break
		}
		s.inside = s.inside || inside(e.Key)
	}
	return len(s.list) > 0
}

// get returns the first field with a name, or nil.
func (s *fieldSet) get(name string) *bson.Element {
	for i := range s.list {
		if string(s.list[i].Key) == name {
			return &s.list[i]
		}
	}
	return nil
}

// Bare gives a command whose shape is not known, a getMore on a cursor opened before the capture, the shape of its name.
func (f *Finder) Bare(c *Command) { f.simple(c) }
