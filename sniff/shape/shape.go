// Package shape finds the shape of a MongoDB command: the command without its literal values.
//
// A shape has a printed normal form, such as "find {status: ?, user: ?} sort {created: -1}", and a 64-bit fingerprint made from it.
// docs/protocol/query-shape.md defines both. Values never leave this package: of a command only field names, operators, sort
// directions and field paths are kept.
package shape

import (
	"encoding/binary"
	"hash/fnv"
	"strconv"
)

// Fingerprint is the stable hash of a shape's printed form together with its namespace: FNV-1a, 64 bits, over the namespace, a
// zero byte, and the text.
type Fingerprint uint64

// String returns the fingerprint as 16 hexadecimal digits.
func (f Fingerprint) String() string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(f))
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 16)
	for _, c := range b {
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}

// ParseFingerprint reads what String wrote.
func ParseFingerprint(s string) (Fingerprint, error) {
	v, err := strconv.ParseUint(s, 16, 64)
	return Fingerprint(v), err
}

// Shape is one distinct statement on one namespace. It is made once; what describes it does not change.
type Shape struct {
	Fingerprint Fingerprint
	// Database and Collection; the second is empty for commands on a database.
	Database, Collection string
	// Command is the command's name in its usual spelling.
	Command string
	// Text is the printed normal form, at most MaxTextBytes.
	Text string

	// Counted belongs to whoever counts the shape; it saves a look-up.
	Counted any

	single []Statement
	dead   bool
}

// Forgotten reports whether the shape was dropped to make room; what still refers to it counts under "other".
func (s *Shape) Forgotten() bool { return s.dead }

// Single is one statement of this shape; the slice is shared and not to be changed.
func (s *Shape) Single() []Statement { return s.single }

// Namespace returns "database.collection", or the bare database.
func (s *Shape) Namespace() string {
	if s.Collection == "" {
		return s.Database
	}
	return s.Database + "." + s.Collection
}

const (
	// MaxTextBytes bounds a printed form; longer ones end in "…".
	MaxTextBytes = 1024
	// maxDepth and maxNodes bound the walk into one statement.
	maxDepth = 24
	maxNodes = 1000
)

// newShape makes the shape of a printed text.
func newShape(database, collection, command, text string) *Shape {
	s := &Shape{Database: database, Collection: collection, Command: command, Text: text}
	h := fnv.New64a()
	h.Write([]byte(s.Namespace()))
	h.Write([]byte{0})
	h.Write([]byte(text))
	s.Fingerprint = Fingerprint(h.Sum64())
	s.single = []Statement{{Shape: s, Count: 1}}
	return s
}
