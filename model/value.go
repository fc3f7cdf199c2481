package model

import (
	"encoding/binary"
	"errors"
	"math"
)

// ValueType says what a value is. The first six have Zabbix's numbers.
type ValueType uint8

// The value types. Raw and Unsupported travel between stages only; no engine stores them.
const (
	Float     ValueType = 0 // IEEE 754 binary64, kept bit for bit
	Character ValueType = 1 // text of at most 255 characters
	LogEntry  ValueType = 2 // text with severity, source, event id and the time in the log
	Uint      ValueType = 3 // unsigned 64-bit integer, exact
	Text      ValueType = 4 // text of any length up to MaxTextBytes
	Binary    ValueType = 5 // bytes with a meaning of their own, such as a latency sketch

	// Raw is text as a collector received it, before preprocessing gives it the item's value type.
	Raw ValueType = 0xF0
	// Unsupported says that the item could not be measured at this moment; the payload is the reason.
	Unsupported ValueType = 0xF1
)

// MaxTextBytes bounds one text, log or binary value; a longer one is cut by preprocessing.
const MaxTextBytes = 64 << 10

// InArena reports whether the payload of values of this type lies in the arena.
func (t ValueType) InArena() bool { return t != Float && t != Uint }

// Numeric reports whether values of this type are numbers.
func (t ValueType) Numeric() bool { return t == Float || t == Uint }

// String returns the type's name as it stands in Zabbix exports, in lower case.
func (t ValueType) String() string {
	switch t {
	case Float:
		return "float"
	case Character:
		return "char"
	case LogEntry:
		return "log"
	case Uint:
		return "unsigned"
	case Text:
		return "text"
	case Binary:
		return "binary"
	case Raw:
		return "raw"
	case Unsupported:
		return "unsupported"
	}
	return "unknown"
}

// Flag says what became of one value of a batch on its way. Engines set flags during Append.
type Flag uint8

// The flags of a value.
const (
	// Duplicate: the same item, instant and value was stored before; it reaches neither triggers nor trends.
	Duplicate Flag = 1 << iota
	// Late: older than the item's newest stored value; stored, and its trend corrected.
	Late
	// Moved: another value held the instant, so this one was stored at the next free nanosecond (At says which).
	Moved
	// Expired: older than the item's retention; counted as processed and not stored.
	Expired
	// FromFuture: was dated more than 10 minutes ahead and got its arrival time.
	FromFuture
)

// Skipped reports whether a value with these flags must not reach triggers and trends.
func (f Flag) Skipped() bool { return f&(Duplicate|Expired) != 0 }

// Log holds the parts of a log value.
type Log struct {
	// At is the time written in the log line, Unix seconds; zero when unknown.
	At int64
	// Severity and EventID come from Windows event logs; zero when unknown.
	Severity uint32
	EventID  uint32
	// Source is the event's source; empty when unknown. At most 65,535 bytes are kept.
	Source string
	// Text is the line.
	Text string
}

// logHeaderBytes is the fixed part of an encoded Log: At, Severity, EventID, length of Source.
const logHeaderBytes = 8 + 4 + 4 + 2

// ErrLog is returned for bytes that are no encoded log value.
var ErrLog = errors.New("log value: shorter than its header says")

// AppendLog appends the encoded form of l to dst: At, Severity, EventID, source length (int64, uint32, uint32,
// uint16, little-endian), source, text.
func AppendLog(dst []byte, l Log) []byte {
	source := l.Source
	if len(source) > math.MaxUint16 {
		source = source[:math.MaxUint16]
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(l.At))
	dst = binary.LittleEndian.AppendUint32(dst, l.Severity)
	dst = binary.LittleEndian.AppendUint32(dst, l.EventID)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(source)))
	dst = append(dst, source...)
	return append(dst, l.Text...)
}

// DecodeLog reads what AppendLog wrote. The strings are copies.
func DecodeLog(b []byte) (Log, error) {
	if len(b) < logHeaderBytes {
		return Log{}, ErrLog
	}
	n := int(binary.LittleEndian.Uint16(b[16:]))
	if len(b) < logHeaderBytes+n {
		return Log{}, ErrLog
	}
	return Log{
		At:       int64(binary.LittleEndian.Uint64(b)),
		Severity: binary.LittleEndian.Uint32(b[8:]),
		EventID:  binary.LittleEndian.Uint32(b[12:]),
		Source:   string(b[logHeaderBytes : logHeaderBytes+n]),
		Text:     string(b[logHeaderBytes+n:]),
	}, nil
}

// LogText returns the line of an encoded log value without copying it.
func LogText(b []byte) ([]byte, error) {
	if len(b) < logHeaderBytes {
		return nil, ErrLog
	}
	n := int(binary.LittleEndian.Uint16(b[16:]))
	if len(b) < logHeaderBytes+n {
		return nil, ErrLog
	}
	return b[logHeaderBytes+n:], nil
}
