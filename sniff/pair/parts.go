package pair

import (
	"encoding/binary"

	"tidemark/sniff/flow"
	"tidemark/wire/bson"
	"tidemark/wire/mongo"
)

// A command may be longer than what is looked at of a message: a list of 10,000 values for $in, or documents in front of it. What is
// needed is put together from parts: the start, and what follows behind the long value. The value itself is skipped on the wire; the
// lengths around it are corrected, so that the result is a whole, short command.
type parts struct {
	// message is the shortened message so far, its header included.
	message []byte
	header  mongo.Header
	at      int64
	// wire is the message's length on the wire, removed what was left out of it so far.
	wire, removed int
	// next is the offset in the shortened message at which it goes on, once gap is closed.
	next  int
	round int
	// counted is what the pairer's total holds of this message.
	counted int
}

const (
	// maxRounds bounds the parts of one command; from coarseRound on whole lists are left out.
	maxRounds   = 8
	coarseRound = 3
	// maxPartsBytes bounds what one command may come to.
	maxPartsBytes = 64 << 10
)

// begin starts to put the message of a piece together. It returns false when it cannot be done.
func (p *Pairer) begin(piece *flow.Piece, c *connection) bool {
	p.drop(c)
	if p.heads+len(piece.Data) > maxHeadBytes {
		return false
	}
	c.parts = &parts{message: append([]byte(nil), piece.Data...), header: piece.Header, at: piece.At, wire: piece.Header.Length}
	// Read again in the copy: the gap is found and its lengths are corrected there.
	_ = p.decode(c.parts.header, c.parts.message)
	if !c.parts.gap(&p.message) {
		p.drop(c)
		_ = p.decode(piece.Header, piece.Data)
		return false
	}
	p.count(c.parts)
	return true
}

// count keeps the total of what is held.
func (p *Pairer) count(s *parts) {
	p.heads += len(s.message) - s.counted
	s.counted = len(s.message)
}

// gap leaves out the long value at the end of what is there, and sets where the message goes on.
func (s *parts) gap(m *mongo.Message) bool {
	s.round++
	if s.round > maxRounds || len(s.message) > maxPartsBytes {
		return false
	}
	if m.Body == nil || !bodyCut(m) {
		return s.skipSection(m)
	}
	var g bson.Gap
	body := cap(s.message) - cap(m.Body)
	if !bson.FindGap(m.Body, s.round >= coarseRound, &g) {
		return false
	}
	g.Shorten(s.message, body)
	s.cut(body+g.Keep, body+g.Resume)
	return s.next < s.header.Length
}

// skipSection leaves out the documents at the end of what is there, before the section that is needed.
func (s *parts) skipSection(m *mongo.Message) bool {
	keep := len(s.message)
	if m.BodyAt <= keep {
		// The section's own start is cut: go on right there.
		s.cut(keep, keep)
		return true
	}
	if m.SequenceCount == 0 {
		return false
	}
	last := &m.Sequences[m.SequenceCount-1]
	size := cap(s.message) - cap(last.Identifier) - 4
	if size < mongo.HeaderBytes || size+4 > len(s.message) {
		return false
	}
	n := s.message[size:]
	binary.LittleEndian.PutUint32(n, binary.LittleEndian.Uint32(n)-uint32(m.BodyAt-keep))
	s.cut(keep, m.BodyAt)
	return true
}

// cut leaves out the bytes from keep to resume of the shortened message.
func (s *parts) cut(keep, resume int) {
	clear(s.message[keep:])
	s.message = s.message[:keep]
	s.removed += resume - keep
	s.header.Length -= resume - keep
	s.next = keep
}

// add appends data. An array that has become too small is overwritten before it is given up.
func (s *parts) add(data []byte) {
	if len(s.message)+len(data) > cap(s.message) {
		larger := make([]byte, len(s.message), 2*len(s.message)+len(data))
		copy(larger, s.message)
		clear(s.message)
		s.message = larger
	}
	s.message = append(s.message, data...)
}

// resume returns the offset on the wire at which the message goes on; 0 when that is behind its end.
func (s *parts) resume(wireBytes int) int {
	if at := s.next + s.removed; at < wireBytes {
		return at
	}
	return 0
}

// rest handles a later part of a request. Without data it did not come.
func (p *Pairer) rest(piece *flow.Piece, c *connection) int {
	s := c.parts
	if s == nil {
		return 0
	}
	s.add(piece.Data)
	err := p.decode(s.header, s.message)
	m := &p.message
	if unfinished(m) && len(piece.Data) > 0 && p.heads < maxHeadBytes {
		again := s.gap(m)
		p.count(s)
		if more := s.resume(s.wire); again && more > 0 {
			return more
		}
		err = p.decode(s.header, s.message)
	}
	p.decided(piece, c, err, s.at)
	p.drop(c)
	return 0
}

// drop forgets the parts of a connection. What they held is overwritten: values must not outlive their packet.
func (p *Pairer) drop(c *connection) {
	if c.parts == nil {
		return
	}
	clear(c.parts.message[:cap(c.parts.message)])
	p.heads -= c.parts.counted
	c.parts = nil
}
