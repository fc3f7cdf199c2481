package mongo

import (
	"bytes"
	"encoding/binary"
	"unicode"
	"unicode/utf8"
)

// cutString splits b behind its first zero byte; the string is returned without it.
func cutString(b []byte) (text, rest []byte, ok bool) {
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return nil, nil, false
	}
	return b[:end], b[end+1:], true
}

// document returns the document at the start of b, perhaps cut, and what stands behind it.
func document(b []byte) (doc, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, ErrShort
	}
	size := int(binary.LittleEndian.Uint32(b))
	if size < 5 || size > MaxMessageBytes {
		return nil, nil, ErrMalformed
	}
	if size >= len(b) {
		return b, nil, nil
	}
	return b[:size], b[size:], nil
}

// decodeLegacy reads the operations that came before OP_MSG; b begins behind the header.
func decodeLegacy(b []byte, m *Message) error {
	switch m.Op {
	case OpReply:
		return decodeReply(b, m)
	case OpCommandReply:
		return decodeCommandReply(b, m)
	case OpCommand:
		return decodeCommand(b, m)
	case OpKillCursors:
		if len(b) < 8 {
			return ErrShort
		}
		if n := int(binary.LittleEndian.Uint32(b[4:])); m.Length != HeaderBytes+8+8*n {
			return ErrMalformed
		}
		if len(b) >= 16 {
			m.CursorID = int64(binary.LittleEndian.Uint64(b[8:]))
		}
		return nil
	}
	if len(b) < 4 {
		return ErrShort
	}
	flags := binary.LittleEndian.Uint32(b)
	name, rest, ok := cutString(b[4:])
	if !ok {
		if HeaderBytes+len(b) < m.Length {
			return ErrShort
		}
		return ErrMalformed
	}
	if !isNamespace(name) {
		return ErrMalformed
	}
	m.Namespace = name
	return decodeNamespaced(flags, rest, m)
}

const (
	maxDatabaseBytes  = 64
	maxNamespaceBytes = 320
)

// isNamespace reports whether a server takes a name as database.collection (MongoDB Limits and Thresholds, Naming Restrictions), so that
// garbage with the code of a request is no request.
func isNamespace(name []byte) bool {
	dot := bytes.IndexByte(name, '.')
	if dot < 1 || dot > maxDatabaseBytes || dot == len(name)-1 || len(name) > maxNamespaceBytes || !utf8.Valid(name) {
		return false
	}
	if bytes.ContainsAny(name[:dot], "/\\ \"") {
		return false
	}
	return !bytes.ContainsFunc(name, unicode.IsControl)
}

// decodeNamespaced reads what stands behind the namespace.
func decodeNamespaced(flags uint32, rest []byte, m *Message) (err error) {
	switch m.Op {
	case OpQuery:
		m.Flags, m.ExhaustAllowed = flags, flags&queryExhaust != 0
		if len(rest) < 8 {
			return ErrShort
		}
		m.Skip, m.Limit = int32(binary.LittleEndian.Uint32(rest)), int32(binary.LittleEndian.Uint32(rest[4:]))
		m.Body, rest, err = document(rest[8:])
		if err == nil && len(rest) >= 4 {
			m.Second, _, err = document(rest)
		}
	case OpInsert:
		// The documents are data; only their number and size matter, and the size is the message's.
		m.Body, _, err = document(rest)
		m.MoreToCome = true
	case OpUpdate:
		if len(rest) < 4 {
			return ErrShort
		}
		m.MoreToCome, m.Flags = true, binary.LittleEndian.Uint32(rest)
		m.Body, rest, err = document(rest[4:])
		if err == nil && len(rest) > 0 {
			m.Second, _, err = document(rest)
		}
	case OpDelete:
		if len(rest) < 4 {
			return ErrShort
		}
		m.MoreToCome, m.Flags = true, binary.LittleEndian.Uint32(rest)
		m.Body, _, err = document(rest[4:])
	case OpGetMore:
		if len(rest) < 12 {
			return ErrShort
		}
		m.CursorID = int64(binary.LittleEndian.Uint64(rest[4:]))
	default:
		return ErrMalformed
	}
	return err
}

func decodeReply(b []byte, m *Message) (err error) {
	if m.Length < HeaderBytes+20 {
		return ErrMalformed
	}
	if len(b) < 20 {
		return ErrShort
	}
	m.ReplyFlags = binary.LittleEndian.Uint32(b)
	m.CursorID = int64(binary.LittleEndian.Uint64(b[4:]))
	m.ReplyCount = int(int32(binary.LittleEndian.Uint32(b[16:])))
	if m.ReplyCount < 0 {
		return ErrMalformed
	}
	if m.ReplyCount > 0 && len(b) > 20 {
		m.Body, _, err = document(b[20:])
	}
	return err
}

// decodeCommand reads OP_COMMAND: database, command name, then the command's document and the metadata. The servers that spoke
// it put either first; the command is the one whose first key is the command's name.
func decodeCommand(b []byte, m *Message) error {
	database, rest, ok := cutString(b)
	if !ok {
		return ErrShort
	}
	name, rest, ok := cutString(rest)
	if !ok {
		return ErrShort
	}
	m.Namespace = database
	first, rest, err := document(rest)
	if err != nil {
		return err
	}
	m.Body = first
	if len(rest) == 0 {
		return nil
	}
	second, _, err := document(rest)
	if err != nil {
		return err
	}
	m.Second = second
	if !beginsWithKey(first, name) && beginsWithKey(second, name) {
		m.Body, m.Second = second, first
	}
	return nil
}

// beginsWithKey reports whether the first key of a document is name.
func beginsWithKey(doc, name []byte) bool {
	return len(doc) > 5 && bytes.HasPrefix(doc[5:], name) && len(doc) > 5+len(name) && doc[5+len(name)] == 0
}

// decodeCommandReply reads OP_COMMANDREPLY: two documents, of which the reply is the one with "ok".
func decodeCommandReply(b []byte, m *Message) error {
	first, rest, err := document(b)
	if err != nil {
		return err
	}
	m.Body = first
	if len(rest) == 0 {
		return nil
	}
	m.Second, _, err = document(rest)
	return err
}
