package zbx

import "math"

// Field says which members a row has.
type Field uint16

// The members of a row whose absence means something.
const (
	HasHost Field = 1 << iota
	HasKey
	HasItemID
	HasValue
	HasClock
	HasNS
	HasLastLogSize
	HasMTime
)

// Row is one element of `data`. Its slices lie in the body and stay valid as long as that does.
type Row struct {
	Has Field
	// Bad says why the row cannot be taken; empty for a good row. The other fields are then meaningless.
	Bad string
	// Unsupported is set for `state:1`; Value is then the reason.
	Unsupported bool
	// Host, Key, ItemID name the item; see Has.
	Host, Key []byte
	ItemID    uint64
	// ID orders the values of a session; zero for none.
	ID    uint64
	Value []byte
	// Clock is Unix seconds below 2³¹, NS nanoseconds below 10⁹.
	Clock, NS uint32
	// LastLogSize and MTime are how far the agent has read a log file, and that file's time in Unix seconds.
	LastLogSize, MTime uint64
	// Timestamp is the time in the log line, Unix seconds; Source, Severity, EventID come from Windows event logs.
	Timestamp         int64
	Source            []byte
	Severity, EventID uint32
}

// NotSupported is the value that says that an item cannot be measured, in old agents and senders.
const NotSupported = "ZBX_NOTSUPPORTED"

// maxNanos is one more than the largest part of a second.
const maxNanos = 1_000_000_000

// Rows walks the rows of `data`.
type Rows struct {
	s     scanner
	first bool
	err   error
}

// NewRows walks the array that Request.Data holds. It unescapes strings in place, so that the same text must not be
// walked twice.
func NewRows(data []byte) Rows { return Rows{s: scanner{b: data}, first: true} }

// Err returns the syntax error that ended the walk; always nil for the Data of a decoded Request.
func (r *Rows) Err() error { return r.err }

// Next reads the next row into row and reports whether there was one. A row that is no object, or has members of a
// wrong form, comes with Bad set and does not end the walk.
func (r *Rows) Next(row *Row) bool {
	*row = Row{}
	if r.err != nil || len(r.s.b) == 0 {
		return false
	}
	if r.first && r.s.peek() != '[' {
		r.err = r.s.fail("'['")
		return false
	}
	more, err := r.s.next(&r.first, ']')
	if err == nil && more && !row.plain(&r.s) {
		*row = Row{}
		err = row.decode(&r.s)
	}
	r.err = err
	return err == nil && more
}

func (row *Row) decode(s *scanner) error {
	if s.peek() != '{' {
		row.Bad = "row is no object"
		return s.skip(0)
	}
	first := true
	for {
		more, err := s.next(&first, '}')
		if err != nil || !more {
			return err
		}
		k, err := s.key()
		if err != nil {
			return err
		}
		text, kind, err := s.scalar()
		if err != nil {
			return err
		}
		if kind != kindNone {
			row.member(k, text)
		} else if string(k) == "value" && s.b[s.p-1] != 'l' {
			row.Bad = "value is an object or array, expected text or a number"
		}
	}
}

func (row *Row) member(k, text []byte) {
	switch string(k) {
	case "value":
		row.Has |= HasValue
		row.Value = text
	case "itemid":
		row.Has |= HasItemID
		row.uint(&row.ItemID, text, math.MaxUint64, "itemid is no unsigned integer")
	case "id":
		row.uint(&row.ID, text, math.MaxUint64, "id is no unsigned integer")
	case "clock":
		row.Has |= HasClock
		row.uint32(&row.Clock, text, math.MaxInt32, "clock is no integer below 2147483648")
	case "ns":
		row.Has |= HasNS
		row.uint32(&row.NS, text, maxNanos-1, "ns is no integer below 1000000000")
	case "host":
		row.Has |= HasHost
		row.name(&row.Host, text, "host is longer than 8192 bytes")
	case "key":
		row.Has |= HasKey
		row.name(&row.Key, text, "key is longer than 8192 bytes")
	case "state":
		row.Unsupported = string(text) == "1"
	default:
		row.logMember(k, text)
	}
}

func (row *Row) logMember(k, text []byte) {
	switch string(k) {
	case "lastlogsize":
		row.Has |= HasLastLogSize
		row.uint(&row.LastLogSize, text, math.MaxUint64, "lastlogsize is no unsigned integer")
	case "mtime":
		row.Has |= HasMTime
		row.uint(&row.MTime, text, math.MaxInt64, "mtime is no unsigned integer")
	case "timestamp":
		var n uint64
		row.uint(&n, text, math.MaxInt64, "timestamp is no unsigned integer")
		row.Timestamp = int64(n)
	case "severity":
		row.uint32(&row.Severity, text, math.MaxUint32, "severity is no unsigned integer")
	case "eventid":
		row.uint32(&row.EventID, text, math.MaxUint32, "eventid is no unsigned integer")
	case "source":
		row.name(&row.Source, text, "source is longer than 8192 bytes")
	}
}

func (row *Row) uint(dst *uint64, text []byte, limit uint64, bad string) {
	n, ok := parseUint(text)
	if !ok || n > limit {
		row.Bad = bad
		return
	}
	*dst = n
}

func (row *Row) uint32(dst *uint32, text []byte, limit uint64, bad string) {
	var n uint64
	row.uint(&n, text, limit, bad)
	*dst = uint32(n)
}

func (row *Row) name(dst *[]byte, text []byte, bad string) {
	if len(text) > MaxNameBytes {
		row.Bad = bad
		return
	}
	*dst = text
}
