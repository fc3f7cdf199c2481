package flow

import (
	"tidemark/sniff/packet"
	"tidemark/wire/mongo"
)

// stream is one direction of a flow.
type stream struct {
	// next is the sequence number that is expected.
	next uint32
	// started is set once next is known; synced while the place of the next message is known.
	started, synced bool
	// end is the sequence number behind the last byte, once ended.
	end   uint32
	ended bool
	// skip is how many bytes lie before the next byte of interest: the rest of a message, or the way to resume.
	skip int
	// The message at hand when it is spread over segments. buffer holds its bytes from offset on, until it has want of them.
	buffer []byte
	want   int
	offset int
	header mongo.Header
	at     int64
	inside bool // skip leads to more of the message at hand, not to the next one
	// probing is set while buffer holds the start of what may be a message, too little to tell.
	probing bool
	// late holds a segment that came too early, until the missing one comes.
	late lateSegment
}

// lateSegment is one segment out of order. One per direction is enough for the usual swap of two neighbours.
type lateSegment struct {
	sequence uint32
	wire     int
	data     []byte
	at       int64
}

// payload brings a segment's payload into order and consumes it. It returns the flow, which is another one when the segment can only
// belong to a new connection between the same ends.
func (t *Table) payload(f *Flow, side int, p *packet.Packet, at int64) *Flow {
	if o := &f.streams[1-side]; o.late.data != nil && p.Flags&packet.ACK != 0 && int32(p.Acknowledgement-o.late.sequence) > 0 {
		// The peer has what is missing here: it will not come any more.
		t.gap(f, 1-side, o.late.sequence)
		t.replay(f, 1-side)
	}
	s := &f.streams[side]
	if !s.started {
		s.started, s.next = true, p.Sequence
	}
	data, wire := p.Payload, p.PayloadBytes
	distance := int32(p.Sequence - s.next)
	if distance != 0 {
		switch {
		case distance > farAway || distance < -farAway:
			t.counters.Gaps++
			f = t.restart(f)
			s = &f.streams[side]
			s.started, s.next = true, p.Sequence
		case distance < 0:
			if int(-distance) >= wire {
				t.counters.Duplicates++
				return f
			}
			wire += int(distance)
			data = data[min(len(data), int(-distance)):]
		default:
			if t.hold(s, p, at) {
				return f
			}
			t.gap(f, side, p.Sequence)
			if behind := int(int32(s.next - p.Sequence)); behind > 0 {
				// The held segment reached into this one.
				if behind >= wire {
					return f
				}
				wire -= behind
				data = data[min(len(data), behind):]
			}
		}
	}
	t.advance(f, side, data, wire, at)
	if s.late.data != nil {
		t.replay(f, side)
	}
	return f
}

// hold keeps a segment that came too early, if none is held and the table may still copy. It returns false when the gap has to
// be taken as one.
func (t *Table) hold(s *stream, p *packet.Packet, at int64) bool {
	if s.late.data != nil || !s.synced || len(p.Payload) != p.PayloadBytes || len(p.Payload) > t.headBytes {
		return false
	}
	buffer := t.take()
	if buffer == nil {
		return false
	}
	s.late = lateSegment{sequence: p.Sequence, wire: p.PayloadBytes, data: append(buffer, p.Payload...), at: at}
	return true
}

// replay consumes the held segment when its turn has come, or drops it when its bytes came by themselves.
func (t *Table) replay(f *Flow, side int) {
	s := &f.streams[side]
	distance := int32(s.late.sequence - s.next)
	if s.late.data == nil || distance > 0 {
		return
	}
	late := s.late
	s.late = lateSegment{}
	if int(-distance) < late.wire {
		t.counters.Reordered++
		t.advance(f, side, late.data[-distance:], late.wire+int(distance), late.at)
	}
	t.give(late.data)
}

// gap notes that the bytes up to sequence are missing. The held segment stands in the gap or at its end: it shortens the loss.
func (t *Table) gap(f *Flow, side int, sequence uint32) {
	s := &f.streams[side]
	if s.late.data != nil && int32(sequence-s.late.sequence) > 0 {
		late := s.late
		s.late = lateSegment{}
		t.jump(f, side, late.sequence)
		t.advance(f, side, late.data, late.wire, late.at)
		t.give(late.data)
	}
	t.jump(f, side, sequence)
}

// jump moves to sequence over missing bytes. A gap within bytes that would be skipped anyway costs nothing; one that ends before the
// message at hand costs the rest of it; any other loses the place.
func (t *Table) jump(f *Flow, side int, sequence uint32) {
	s := &f.streams[side]
	missing := int(int32(sequence - s.next))
	if missing <= 0 {
		return
	}
	t.counters.Gaps++
	s.next = sequence
	if s.buffer != nil {
		t.cut(f, side)
	}
	if s.synced && s.inside && s.skip < missing {
		t.abandon(f, side)
	}
	if s.synced && s.skip >= missing {
		s.skip -= missing
		return
	}
	t.lose(s)
}

// cut hands on what is there of the message at hand, the rest of which will not come, and goes on behind it.
func (t *Table) cut(f *Flow, side int) {
	s := &f.streams[side]
	if s.probing || s.offset == 0 && len(s.buffer) < mongo.HeaderBytes {
		t.lose(s)
		return
	}
	buffer := s.buffer
	s.buffer = nil
	t.deliver(f, side, s.offset, buffer)
	t.give(buffer)
}

// abandon tells the handler that the part it asked for does not come, and goes on behind the message.
func (t *Table) abandon(f *Flow, side int) {
	s := &f.streams[side]
	left := s.header.Length - s.offset
	t.handler.Piece(&Piece{Flow: f, Direction: f.direction(side), At: s.at, Header: s.header, Offset: s.offset})
	s.inside, s.offset, s.skip = false, 0, s.skip+left
}

// lose forgets the message at hand and the place.
func (t *Table) lose(s *stream) {
	if s.buffer != nil {
		t.give(s.buffer)
	}
	s.buffer, s.synced, s.probing, s.skip, s.offset, s.inside = nil, false, false, 0, 0, false
}

// advance consumes payload in order; wire is its length on the wire, of which data may be the start.
func (t *Table) advance(f *Flow, side int, data []byte, wire int, at int64) {
	s := &f.streams[side]
	sequence := s.next
	s.next += uint32(wire)
	if f.protocol == unknownProtocol || !s.synced {
		used, found := t.search(f, side, sequence, data, at)
		if !found {
			if s.probing && wire > len(data) {
				t.lose(s)
			}
			return
		}
		data, sequence, wire = data[used:], sequence+uint32(used), wire-used
	}
	t.consume(f, side, sequence, data, at)
	if missing := wire - len(data); missing > 0 {
		// The capture cut the segment; its end counts like a gap.
		s.next -= uint32(missing)
		t.jump(f, side, s.next+uint32(missing))
	}
}

// search looks for a message at the start of a segment while the place is not known. It returns how many bytes of data it took
// into the copy, and whether a message begins.
func (t *Table) search(f *Flow, side int, sequence uint32, data []byte, at int64) (used int, found bool) {
	s := &f.streams[side]
	if s.probing {
		n := min(probeBytes-len(s.buffer), len(data))
		s.buffer = append(s.buffer, data[:n]...)
		switch t.judge(f, side, s.buffer) {
		case tooShort:
			return n, false
		case isMessage:
			return n, t.found(f, side, sequence+uint32(n-len(s.buffer)))
		}
		t.lose(s)
		if f.protocol != unknownProtocol && f.protocol != mongoProtocol {
			return 0, false
		}
	}
	switch t.judge(f, side, data) {
	case isMessage:
		s.synced = true
		return 0, true
	case tooShort:
		if buffer := t.take(); buffer != nil {
			s.buffer, s.probing, s.at = append(buffer, data...), true, at
			return len(data), false
		}
		t.counters.NoBuffer++
	}
	s.synced = false
	t.counters.Unsynced++
	return 0, false
}

// found goes on with the message whose start was gathered while probing.
func (t *Table) found(f *Flow, side int, sequence uint32) bool {
	s := &f.streams[side]
	h, _ := mongo.DecodeHeader(s.buffer)
	if t.isCopy(f, sequence, s.buffer, s.at) {
		t.copied(f)
		return false
	}
	s.probing, s.synced, s.header, s.offset, s.want = false, true, h, 0, min(h.Length, t.headBytes)
	return true
}

// copied marks a flow as the copy of another.
func (t *Table) copied(f *Flow) {
	f.protocol = copyProtocol
	t.counters.Duplicates++
	t.counters.Flows--
	for i := range f.streams {
		t.release(&f.streams[i])
	}
}

// consume walks the messages in data.
func (t *Table) consume(f *Flow, side int, sequence uint32, data []byte, at int64) {
	s := &f.streams[side]
	for len(data) > 0 && f.protocol == mongoProtocol && s.synced {
		if s.skip > 0 {
			n := min(s.skip, len(data))
			s.skip -= n
			data, sequence = data[n:], sequence+uint32(n)
			continue
		}
		var n int
		if s.buffer != nil {
			n = t.fill(f, side, data)
		} else {
			n = t.begin(f, side, sequence, data, at)
		}
		data, sequence = data[n:], sequence+uint32(n)
	}
}

// begin handles the start of a message, or of a later part that was asked for, at the start of data. It returns how many bytes
// it used.
func (t *Table) begin(f *Flow, side int, sequence uint32, data []byte, at int64) int {
	s := &f.streams[side]
	if s.inside {
		return t.beginPart(f, side, data)
	}
	if len(data) < mongo.HeaderBytes {
		return t.collect(s, data, mongo.HeaderBytes, 0, at)
	}
	h, err := mongo.DecodeHeader(data)
	if err != nil {
		t.counters.BadHeader++
		t.lose(s)
		return 0
	}
	if t.isCopy(f, sequence, data, at) {
		t.copied(f)
		return 0
	}
	s.header, s.at = h, at
	want := min(h.Length, t.headBytes)
	if len(data) < want {
		return t.collect(s, data, want, 0, at)
	}
	head := data[:min(len(data), h.Length)]
	t.deliver(f, side, 0, head)
	return len(head)
}

// beginPart handles the start of a later part of a message.
func (t *Table) beginPart(f *Flow, side int, data []byte) int {
	s := &f.streams[side]
	left := s.header.Length - s.offset
	want := min(left, t.headBytes)
	if len(data) < want {
		return t.collect(s, data, want, s.offset, s.at)
	}
	part := data[:min(len(data), left)]
	t.deliver(f, side, s.offset, part)
	return len(part)
}

// collect starts to copy a message or part that is spread over segments.
func (t *Table) collect(s *stream, data []byte, want, offset int, at int64) int {
	buffer := t.take()
	if buffer == nil {
		t.counters.NoBuffer++
		t.lose(s)
		return 0
	}
	s.buffer, s.want, s.offset, s.at = append(buffer, data...), want, offset, at
	return len(data)
}

// fill adds to the copy until it has what is wanted.
func (t *Table) fill(f *Flow, side int, data []byte) int {
	s := &f.streams[side]
	n := min(s.want-len(s.buffer), len(data))
	s.buffer = append(s.buffer, data[:n]...)
	if len(s.buffer) < s.want {
		return n
	}
	if s.offset == 0 && s.want == mongo.HeaderBytes {
		h, err := mongo.DecodeHeader(s.buffer)
		if err != nil {
			t.counters.BadHeader++
			t.lose(s)
			return 0
		}
		s.header = h
		if s.want = min(h.Length, t.headBytes); s.want > len(s.buffer) {
			return n
		}
	}
	buffer := s.buffer
	s.buffer = nil
	t.deliver(f, side, s.offset, buffer)
	t.give(buffer)
	return n
}

// deliver hands a piece to the handler and sets how the stream goes on.
func (t *Table) deliver(f *Flow, side int, offset int, data []byte) {
	s := &f.streams[side]
	if offset == 0 {
		t.counters.Messages++
	}
	end := offset + len(data)
	t.piece = Piece{Flow: f, Direction: f.direction(side), At: s.at, Header: s.header, Offset: offset, Data: data}
	more := t.handler.Piece(&t.piece)
	t.piece.Data = nil
	if more >= end && more < s.header.Length {
		s.inside, s.offset, s.skip = true, more, more-end
		return
	}
	s.inside, s.offset, s.skip = false, 0, s.header.Length-end
}

// direction says which way the messages of a side go.
func (f *Flow) direction(side int) Direction {
	if (side == 1) != f.flipped {
		return ToClient
	}
	return ToServer
}

// take returns an empty buffer of headBytes, or nil when the limit is reached.
func (t *Table) take() []byte {
	if t.bufferLeft < t.headBytes {
		return nil
	}
	t.bufferLeft -= t.headBytes
	if n := len(t.free); n > 0 {
		b := t.free[n-1]
		t.free = t.free[:n-1]
		return b
	}
	return make([]byte, 0, t.headBytes)
}

// give takes a buffer back. What it held is overwritten: values must not outlive their packet.
func (t *Table) give(b []byte) {
	clear(b)
	t.bufferLeft += t.headBytes
	if len(t.free) < 256 {
		t.free = append(t.free, b[:0])
	}
}

// release gives back what a stream holds.
func (t *Table) release(s *stream) {
	if s.buffer != nil {
		t.give(s.buffer)
		s.buffer = nil
	}
	if s.late.data != nil {
		t.give(s.late.data)
		s.late = lateSegment{}
	}
}
