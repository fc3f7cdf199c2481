package shape

import (
	"encoding/binary"

	"tidemark/wire/bson"
	"tidemark/wire/mongo"
)

// Most traffic is a few statements again and again. A command whose structure, names and flags were met before is found by one walk over
// its bytes and one look into a small table; nothing of it is read a second time.

// known is a command that was met before.
type known struct {
	hash    uint64
	command Command // without its statements
	// shape is nil for writes, whose statements are looked at one by one.
	shape *Shape
	// template is made when the command was found so often that it will come again.
	template []step
	hits     uint8
}

// templateHits is after how many times a command gets a template; maxTemplates bounds them.
const (
	templateHits = 16
	maxTemplates = 2048
)

// knownSlots is the size of the table; a command stands in one of two slots. A lost place costs one slow reading.
const knownSlots = 1 << 13

// marks gathers the fields that are no part of a shape but say where and how the command goes.
type marks struct {
	seed, sum uint64
	named     bool // the database is known
	// statements is the list of a write's statements, if it is in the command itself.
	statements []byte
}

// field takes one of markFields.
func (m *marks) field(key, value []byte, kind bson.Kind) {
	switch len(key) {
	case 3: // $db
		if kind == bson.String {
			m.sum ^= foldBytes(m.seed, value[4:len(value)-1], markText)
			m.named = true
		}
	case 7: // updates, deletes
		if kind == bson.Array {
			m.statements = value
		}
	case 8: // tailable
		e := bson.Element{Kind: kind, Value: value}
		if e.Truthy() {
			m.sum ^= foldBytes(m.seed, key, markScalar)
		}
	default:
		m.sum ^= foldBytes(m.seed, key, markScalar)
	}
}

// quickFind finds a command that was met before. hash is 0 when the command cannot be found this way at all.
func (f *Finder) quickFind(m *mongo.Message, c *Command) (hash uint64, found bool) {
	body := m.Body
	if len(body) < 16 || int(binary.LittleEndian.Uint32(body)) != len(body) || bson.Kind(body[4]) != bson.String {
		return 0, false
	}
	zero := zeroAt(body, 5)
	if zero < 0 {
		return 0, false
	}
	l := frequentLayout(body[5:zero])
	if l == nil {
		return 0, false
	}
	end := valueEnd(body[:len(body)-1], bson.String, zero+1)
	if end < 0 {
		return 0, false
	}
	h := foldBytes(f.seed, body[5:zero], markText)
	h = foldBytes(h, body[zero+5:end-1], markText)
	fields := marks{seed: f.seed}
	h, whole := foldParts(h, body, l, &fields)
	if !whole || !fields.named {
		return 0, false
	}
	h = fold(h, fields.sum)
	h |= 1
	for i := range uint64(2) {
		k := f.known[(h>>8^i)%knownSlots]
		if k == nil || k.hash != h {
			continue
		}
		statements := c.Statements[:0]
		*c = k.command
		c.Statements = statements
		if k.shape != nil {
			c.Statements = append(statements, Statement{Shape: k.shape, Count: 1})
			f.prefer(k, body, l)
			return h, true
		}
		f.write(m, l, fields.statements, c)
		return h, true
	}
	return h, false
}

// remember puts a command that was read the slow way into the table.
func (f *Finder) remember(hash uint64, c *Command) {
	k := &known{hash: hash, command: *c}
	if c.Name != "update" && c.Name != "delete" {
		if len(c.Statements) != 1 || c.Statements[0].Count != 1 || c.Statements[0].Shape == f.other {
			return
		}
		k.shape = c.Statements[0].Shape
	}
	k.command.Statements = nil
	slot := hash >> 8 % knownSlots
	if f.known[slot] != nil {
		slot ^= 1
	}
	f.known[slot] = k
}

// message reads the command of an OP_MSG.
func (f *Finder) message(m *mongo.Message, c *Command) bool {
	if f.byTemplate(m, c) {
		return true
	}
	hash, found := f.quickFind(m, c)
	if found {
		return true
	}
	if !f.command(m, m.Body, nil, c) {
		return false
	}
	if hash != 0 {
		f.remember(hash, c)
	}
	return true
}
