// Package mongo reads MongoDB's wire messages as they are seen on a network: perhaps cut off, perhaps hostile, never copied.
//
// Sources: the MongoDB specifications OP_MSG and OP_COMPRESSED, and the manual's page on the wire protocol for the legacy
// operations.
package mongo

import (
	"encoding/binary"
	"errors"
)

// Op is an operation code.
type Op uint32

// The operation codes. Those below 2010 were removed from servers in 5.1 but are still met.
const (
	OpReply        Op = 1
	OpUpdate       Op = 2001
	OpInsert       Op = 2002
	OpQuery        Op = 2004
	OpGetMore      Op = 2005
	OpDelete       Op = 2006
	OpKillCursors  Op = 2007
	OpCommand      Op = 2010
	OpCommandReply Op = 2011
	OpCompressed   Op = 2012
	OpMsg          Op = 2013
)

// Known reports whether the code is one that this package reads.
func (o Op) Known() bool {
	switch o {
	case OpReply, OpUpdate, OpInsert, OpQuery, OpGetMore, OpDelete, OpKillCursors, OpCommand, OpCommandReply, OpCompressed, OpMsg:
		return true
	}
	return false
}

const (
	// HeaderBytes is the length of a message header.
	HeaderBytes = 16
	// MaxMessageBytes is the largest message that servers take (maxMessageSizeBytes).
	MaxMessageBytes = 48_000_000
	// CompressedBytes is what stands between the header and the compressed body of OP_COMPRESSED.
	CompressedBytes = 9
)

// ErrShort says that more bytes are needed than are at hand.
var ErrShort = errors.New("mongo: the message is cut off")

// ErrMalformed says that the bytes are no message.
var ErrMalformed = errors.New("mongo: malformed message")

// Header is a message header.
type Header struct {
	// Length counts the whole message, header included.
	Length int
	// RequestID and ResponseTo are compared as unsigned numbers: some clients use all 32 bits.
	RequestID, ResponseTo uint32
	Op                    Op
}

// DecodeHeader reads the header at the start of b. It returns ErrMalformed when the length or the code cannot be.
func DecodeHeader(b []byte) (Header, error) {
	if len(b) < HeaderBytes {
		return Header{}, ErrShort
	}
	h := Header{
		Length:     int(binary.LittleEndian.Uint32(b)),
		RequestID:  binary.LittleEndian.Uint32(b[4:]),
		ResponseTo: binary.LittleEndian.Uint32(b[8:]),
		Op:         Op(binary.LittleEndian.Uint32(b[12:])),
	}
	if h.Length < HeaderBytes || h.Length > MaxMessageBytes || !h.Op.Known() {
		return h, ErrMalformed
	}
	return h, nil
}

// Plausible reports whether b, the start of a message with header h, looks like one inside as well. It is asked when a reader
// has lost its place: document bytes that happen to look like a header must not pass. It is strict where a message has
// fixed parts, and looks only at what is at hand; at least 25 bytes are needed for an answer.
func Plausible(h Header, b []byte) bool {
	if len(b) < HeaderBytes+9 || h.Length < HeaderBytes+9 {
		return false
	}
	body := b[HeaderBytes:]
	u32 := binary.LittleEndian.Uint32
	switch h.Op {
	case OpMsg:
		flags, kind, size := u32(body), body[4], int(u32(body[5:]))
		if flags&^(flagChecksum|flagMoreToCome|flagExhaust) != 0 || size < 5 {
			return false
		}
		left := h.Length - HeaderBytes - 5
		if flags&flagChecksum != 0 {
			left -= 4
		}
		switch kind {
		case 0:
			return (size == left || size+10 < left) && elementStart(size, body[9:])
		case 1:
			return size <= left && namespaceStart(body[9:])
		}
		return false
	case OpReply:
		return h.Length >= HeaderBytes+20 && u32(body)&^0xf == 0 && (h.ResponseTo != 0 || oneDocument(h, body))
	case OpQuery:
		return u32(body)&^0xff == 0 && namespaceStart(body[4:])
	case OpUpdate, OpGetMore, OpDelete:
		return u32(body) == 0 && namespaceStart(body[4:])
	case OpInsert:
		return u32(body)&^1 == 0 && namespaceStart(body[4:])
	case OpKillCursors:
		return u32(body) == 0 && h.Length == HeaderBytes+8+8*int(u32(body[4:]))
	case OpCompressed:
		inner := Op(u32(body))
		return inner.Known() && inner != OpCompressed && u32(body[4:]) <= MaxMessageBytes && body[8] <= maxCompressor
	case OpCommand:
		return namespaceStart(body)
	case OpCommandReply:
		size := int(u32(body))
		return h.ResponseTo != 0 && size >= 5 && size <= h.Length-HeaderBytes && elementStart(size, body[4:])
	}
	return false
}

// oneDocument reports whether the body of an OP_REPLY holds one document and nothing else, as the replies to commands do: the reply to
// request 0 has nothing in its header that tells.
func oneDocument(h Header, body []byte) bool {
	if len(body) < 25 {
		return false
	}
	count, size := binary.LittleEndian.Uint32(body[16:]), int(binary.LittleEndian.Uint32(body[20:]))
	return count == 1 && size == h.Length-HeaderBytes-20 && elementStart(size, body[24:])
}

// elementStart reports whether b may begin the first element of a document of the given size.
func elementStart(size int, b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if size == 5 {
		return b[0] == 0
	}
	if b[0] == 0 || b[0] > 0x13 && b[0] != 0x7f && b[0] != 0xff {
		return false
	}
	return namespaceStart(b[1:]) || len(b) == 1
}

// namespaceStart reports whether b may begin a name: a few bytes that print, perhaps ended by a zero byte.
func namespaceStart(b []byte) bool {
	for i, c := range b[:min(4, len(b))] {
		if c == 0 {
			return i > 0
		}
		if c < 0x20 {
			return false
		}
	}
	return len(b) > 0
}

// The flags of OP_MSG.
const (
	flagChecksum   = 1 << 0
	flagMoreToCome = 1 << 1
	flagExhaust    = 1 << 16
	// flagsKnown are the bits 0–15 that may be set; others there are an error, those above may be ignored.
	flagsKnown = flagChecksum | flagMoreToCome
)

// MaxSequences bounds the document sequences of one message that are looked at; commands have at most two.
const MaxSequences = 4

// Sequence is a section of kind 1: documents beside the command.
type Sequence struct {
	// Identifier is the command's field that the documents belong to: "documents", "updates", "deletes", "ops".
	Identifier []byte
	// Documents are back to back; the last one may be cut.
	Documents []byte
	// SizeBytes is the length that Documents has on the wire.
	SizeBytes int
}

// Message is what the start of one message says. All slices alias the input.
type Message struct {
	Header
	// MoreToCome on a request: no answer follows. On a reply: another reply to this one follows (exhaust).
	MoreToCome bool
	// ExhaustAllowed: the client takes chained replies.
	ExhaustAllowed bool
	// Body is the command or the reply document; nil when it lies behind the bytes at hand. It may be cut.
	Body []byte
	// Sequences are the document sequences of OP_MSG; SequenceCount of them are filled.
	Sequences     [MaxSequences]Sequence
	SequenceCount int
	// Namespace is the "database.collection" of a legacy operation.
	Namespace []byte
	// Second is the update document of OP_UPDATE, the projection of OP_QUERY, or the arguments of OP_COMMAND; it may be cut or nil.
	Second []byte
	// Flags are those of OP_QUERY, OP_UPDATE and OP_DELETE.
	Flags uint32
	// Skip and Limit are the two numbers of OP_QUERY; a negative limit closes the cursor with the first reply.
	Skip, Limit int32
	// CursorID is the cursor of OP_GET_MORE and OP_REPLY.
	CursorID int64
	// ReplyFlags are those of OP_REPLY; ReplyCount is how many documents it carries.
	ReplyFlags uint32
	ReplyCount int
	// BodyAt is, when Body is nil, the offset in the message at which the section with the body begins, if the message tells; 0
	// when it does not.
	BodyAt int
	// Compressed is set when the message came as OP_COMPRESSED; Op is then the inner code.
	Compressed bool
}

// The flags of OP_QUERY, OP_UPDATE and OP_DELETE.
const (
	QueryTailable = 1 << 1
	queryExhaust  = 1 << 6
	UpdateUpsert  = 1 << 0
	UpdateMulti   = 1 << 1
	DeleteSingle  = 1 << 0
)

// The flags of OP_REPLY.
const (
	ReplyCursorNotFound = 1 << 0
	ReplyQueryFailure   = 1 << 1
)

// Decode reads a message of which b is the start. A message that goes on behind b gives what is at hand.
func Decode(b []byte, m *Message) error {
	h, err := DecodeHeader(b)
	if err != nil {
		return err
	}
	if h.Op == OpCompressed {
		return ErrMalformed
	}
	return DecodeBody(h, b[HeaderBytes:min(len(b), h.Length)], m)
}

// DecodeBody is Decode for a body whose header was read before: b begins behind the header. h.Length is that of the plain message.
func DecodeBody(h Header, b []byte, m *Message) error {
	// Field by field: the sequences behind the count need no clearing.
	m.Header, m.MoreToCome, m.ExhaustAllowed, m.Body, m.SequenceCount = h, false, false, nil, 0
	m.Namespace, m.Second, m.CursorID, m.ReplyFlags, m.ReplyCount, m.BodyAt, m.Compressed = nil, nil, 0, 0, 0, 0, false
	m.Flags, m.Skip, m.Limit = 0, 0, 0
	if h.Op == OpMsg {
		return decodeMsg(b, m)
	}
	return decodeLegacy(b, m)
}

// decodeMsg walks the sections of OP_MSG, which come in any order.
func decodeMsg(b []byte, m *Message) error {
	if len(b) < 4 {
		return ErrShort
	}
	flags := binary.LittleEndian.Uint32(b)
	if flags&0xffff&^flagsKnown != 0 {
		return ErrMalformed
	}
	m.MoreToCome = flags&flagMoreToCome != 0
	m.ExhaustAllowed = flags&flagExhaust != 0
	end := m.Length - HeaderBytes
	if flags&flagChecksum != 0 {
		end -= 4
	}
	// at counts in the body on the wire; b may end before it.
	for at := 4; at < end; {
		if at+5 > len(b) {
			m.BodyAt = HeaderBytes + at
			if m.Body != nil {
				return nil
			}
			return ErrShort
		}
		kind, size := b[at], int(binary.LittleEndian.Uint32(b[at+1:]))
		if size < 5 || at+1+size > end {
			return ErrMalformed
		}
		section := b[at+1 : min(len(b), at+1+size)] // its capacity tells where it lies in b
		switch kind {
		case 0:
			if m.Body != nil {
				return ErrMalformed
			}
			m.Body = section
		case 1:
			if err := m.addSequence(section, size); err != nil {
				return err
			}
		case 2: // internal to servers; nothing to learn from it
		default:
			return ErrMalformed
		}
		at += 1 + size
	}
	if m.Body == nil {
		return ErrMalformed
	}
	return nil
}

// addSequence notes a section of kind 1; section begins with its size.
func (m *Message) addSequence(section []byte, size int) error {
	if m.SequenceCount == MaxSequences {
		return nil
	}
	name, rest, ok := cutString(section[4:])
	if !ok {
		if len(section) < size {
			return nil
		}
		return ErrMalformed
	}
	m.Sequences[m.SequenceCount] = Sequence{Identifier: name, Documents: rest, SizeBytes: size - 4 - len(name) - 1}
	m.SequenceCount++
	return nil
}
