package shape

import (
	"bytes"
	"strings"

	"tidemark/wire/bson"
	"tidemark/wire/mongo"
)

// simple gives the command the one shape that its name has.
func (f *Finder) simple(c *Command) {
	f.add(c, f.start(c.Database, c.Collection, c.Name), c.Database, c.Collection, func() string { return c.Name })
}

// start begins a quick hash.
func (f *Finder) start(database, collection, command string) uint64 {
	return foldText(foldText(foldText(f.seed, database), collection), command)
}

// add counts the shape with a quick hash for the command; text prints it when it is new.
func (f *Finder) add(c *Command, hash uint64, database, collection string, text func() string) {
	s := f.quick[hash]
	if s == nil {
		s = f.meet(hash, database, collection, c.Name, text())
	}
	for i := range c.Statements {
		if c.Statements[i].Shape == s {
			c.Statements[i].Count++
			return
		}
	}
	if len(c.Statements) >= maxStatements {
		c.Statements[maxStatements-1].Count++
		return
	}
	c.Statements = append(c.Statements, Statement{Shape: s, Count: 1})
}

// meet finds or makes the shape of a text.
func (f *Finder) meet(hash uint64, database, collection, command, text string) *Shape {
	text = strings.ToValidUTF8(text, "?")
	if len(text) > MaxTextBytes {
		cut := MaxTextBytes - len("…")
		for cut > 0 && text[cut]&0xC0 == 0x80 {
			cut--
		}
		text = text[:cut] + "…"
	}
	s := newShape(database, collection, command, text)
	known := f.shapes[s.Fingerprint]
	if known == nil {
		if len(f.shapes) >= f.limit {
			f.Overflow++
			return f.other
		}
		f.shapes[s.Fingerprint] = s
		known = s
	}
	if len(f.quick) >= maxQuick {
		clear(f.quick)
	}
	f.quick[hash] = known
	return known
}

// statements finds the shapes of a command.
func (f *Finder) statements(m *mongo.Message, l *layout, c *Command) {
	switch {
	case c.Name == "getMore":
	case c.Name == "explain":
		f.explain(c)
	case l == nil:
		f.unknown(c)
	case l.statements == "":
		f.parts(l, f.fields.list, c)
	default:
		f.many(m, l, c)
	}
}

// parts finds the shape of a command or statement whose fields are known.
func (f *Finder) parts(l *layout, fields []bson.Element, c *Command) {
	f.partsOn(l, fields, c, c.Database, c.Collection, c.Name)
}

func (f *Finder) partsOn(l *layout, fields []bson.Element, c *Command, database, collection, prefix string) {
	h := f.start(database, collection, prefix)
	for i := range fields {
		e := &fields[i]
		at := l.part(e.Key)
		if at < 0 || l.parts[at].present && !e.Truthy() {
			continue
		}
		h = fold(h, uint64(at)|markText)
		if !l.parts[at].present {
			h = foldPart(h, e.Kind, e.Value, l.parts[at].mode)
		}
	}
	f.add(c, h, database, collection, func() string { return printParts(prefix, l.parts, fields) })
}

// documentOn is partsOn for a statement that is a document; its fields are read only when the statement is new.
func (f *Finder) documentOn(l *layout, doc []byte, c *Command, database, collection, prefix string) {
	h, whole := foldParts(f.start(database, collection, prefix), doc, l, nil)
	if !whole {
		var room [16]bson.Element
		set := fieldSet{list: room[:0]}
		if set.read(doc) {
			f.partsOn(l, set.list, c, database, collection, prefix)
		}
		return
	}
	f.add(c, h, database, collection, func() string {
		var set fieldSet
		set.read(doc)
		return printParts(prefix, l.parts, set.list)
	})
}

// The modes that only parts of commands have.
const (
	// keepName: the value is the name of a field.
	keepName mode = 100 + iota
	// inUpdate: an update document, or a pipeline.
	inUpdate
)

// updateMode tells an update document from a pipeline.
func updateMode(e *bson.Element) mode {
	if e.Kind == bson.Array {
		return inPipeline
	}
	return maskAll
}

func printParts(prefix string, parts []part, fields []bson.Element) string {
	var p printer
	text := []byte(prefix)
	for _, part := range parts {
		for i := range fields {
			e := &fields[i]
			if string(e.Key) == part.field && (!part.present || e.Truthy()) {
				text = p.part(append(text, ' '), e, part)
				break
			}
		}
	}
	return string(text)
}

func (p *printer) part(dst []byte, e *bson.Element, part part) []byte {
	if part.label != "" {
		dst = append(dst, part.label...)
		if part.present {
			return dst
		}
		dst = append(dst, ' ')
	}
	switch part.mode {
	case keepName:
		return appendKey(dst, e.Text())
	case inUpdate:
		return p.value(dst, e, 0, updateMode(e))
	}
	return p.value(dst, e, 0, part.mode)
}

// explain prints the command that is explained.
func (f *Finder) explain(c *Command) {
	inner := f.fields.list[0]
	if inner.Kind != bson.Document {
		f.simple(c)
		return
	}
	var set fieldSet
	if !set.read(inner.Value) {
		f.simple(c)
		return
	}
	var of Command
	l := f.identify(set.list[0].Key, &of)
	if l == nil || of.Silent {
		f.simple(c)
		return
	}
	f.partsOn(l, set.list, c, c.Database, c.Collection, "explain "+of.Name)
}

// unknown finds the shape of a command that has no layout: its name and every field but those that say how.
func (f *Finder) unknown(c *Command) {
	fields := f.fields.list[1:]
	h := f.start(c.Database, c.Collection, c.Name)
	for i := range fields {
		e := &fields[i]
		if counts(e.Key) {
			h = foldPart(foldKey(h, e.Key, 0, len(e.Key), markText), e.Kind, e.Value, maskAll)
		}
	}
	f.add(c, h, c.Database, c.Collection, func() string {
		var p printer
		text := []byte(c.Name)
		for i := range fields {
			if e := &fields[i]; counts(e.Key) {
				text = appendKey(append(text, ' '), e.Key)
				text = p.value(append(text, ' '), e, 0, maskAll)
			}
		}
		return string(text)
	})
}

// counts reports whether a field of an unknown command belongs to its shape.
func counts(key []byte) bool {
	return len(key) > 0 && key[0] != '$' && !ignored[string(key)]
}

// many finds the shape of every statement of a write.
func (f *Finder) many(m *mongo.Message, l *layout, c *Command) {
	var list []byte
	if e := f.fields.get(l.statements); e != nil && e.Kind == bson.Array {
		list = e.Value
	}
	f.write(m, l, list, c)
}

// write finds the shape of every statement of a write: in a list of the command, or in a sequence beside it.
func (f *Finder) write(m *mongo.Message, l *layout, list []byte, c *Command) {
	if list != nil {
		f.array(list, m, c)
	}
	for i := range m.SequenceCount {
		s := &m.Sequences[i]
		if string(s.Identifier) != l.statements {
			continue
		}
		for rest := s.Documents; len(rest) >= 4; {
			n, err := bson.Length(rest)
			if err != nil || n > len(rest) {
				break
			}
			f.statement(rest[:n], m, c)
			rest = rest[n:]
		}
	}
	if len(c.Statements) == 0 {
		f.simple(c)
	}
}

func (f *Finder) array(doc []byte, m *mongo.Message, c *Command) {
	r, err := bson.NewReader(doc)
	if err != nil {
		return
	}
	var e bson.Element
	for {
		ok, err := r.Next(&e)
		if !ok || err != nil {
			return
		}
		if e.Kind == bson.Document {
			f.statement(e.Value, m, c)
		}
	}
}

// statement finds the shape of one statement of a write.
func (f *Finder) statement(doc []byte, m *mongo.Message, c *Command) {
	switch c.Name {
	case "update":
		f.documentOn(updateStatement, doc, c, c.Database, c.Collection, c.Name)
	case "delete":
		f.documentOn(deleteStatement, doc, c, c.Database, c.Collection, c.Name)
	case "bulkWrite":
		f.bulk(doc, m, c)
	}
}

// bulk finds the shape of one operation of bulkWrite, which names its namespace by number in its first field.
func (f *Finder) bulk(doc []byte, m *mongo.Message, c *Command) {
	var first bson.Element
	r, err := bson.NewReader(doc)
	if err != nil {
		return
	}
	if ok, _ := r.Next(&first); !ok {
		return
	}
	database, collection := f.bulkNamespace(m, c, first)
	switch string(first.Key) {
	case "update":
		f.documentOn(bulkUpdate, doc, c, database, collection, "update")
	case "delete":
		f.documentOn(bulkDelete, doc, c, database, collection, "delete")
	case "insert":
		f.documentOn(bulkInsert, doc, c, database, collection, "insert")
	}
	if c.Collection == "" {
		c.Database, c.Collection = database, collection
	}
}

// bulkNamespace finds the namespace that an operation of bulkWrite means, in nsInfo; where that was not captured, it is the command's database.
func (f *Finder) bulkNamespace(m *mongo.Message, c *Command, operation bson.Element) (database, collection string) {
	index, _ := operation.Integer()
	ns := f.nsInfo(m, int(index))
	if dot := bytes.IndexByte(ns, '.'); dot > 0 {
		return f.name(ns[:dot]), f.name(ns[dot+1:])
	}
	return c.Database, ""
}

// nsInfo returns "database.collection" number index of a bulkWrite, or nil.
func (f *Finder) nsInfo(m *mongo.Message, index int) []byte {
	var e bson.Element
	for i := range m.SequenceCount {
		s := &m.Sequences[i]
		if string(s.Identifier) != "nsInfo" {
			continue
		}
		for rest := s.Documents; len(rest) >= 4; index-- {
			n, err := bson.Length(rest)
			if err != nil || n > len(rest) {
				return nil
			}
			if index == 0 && bson.Lookup(rest[:n], "ns", &e) {
				return e.Text()
			}
			rest = rest[n:]
		}
	}
	info := f.fields.get("nsInfo")
	if info == nil || info.Kind != bson.Array {
		return nil
	}
	r, err := bson.NewReader(info.Value)
	if err != nil {
		return nil
	}
	for ; ; index-- {
		ok, err := r.Next(&e)
		if !ok || err != nil {
			return nil
		}
		if index == 0 && e.Kind == bson.Document && bson.Lookup(e.Value, "ns", &e) {
			return e.Text()
		}
	}
}
