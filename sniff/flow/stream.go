package flow

import (
	"tidemark/sniff/packet"
	"tidemark/wire/mongo"
)

// stream is one direction of a flow.
type stream struct {
	// next is the sequence number that is expected.
	next uint32
	// end is the sequence number behind the last byte, once ended.
	end uint32
	// skip is how many bytes lie before the next byte of interest: the rest of a message, or the way to resume.
	skip int32
	// started is set once next is known; synced while the place of the next message is known.
	started, synced, ended bool
	// inside is set while skip leads to more of the message at hand, not to the next one.
	inside bool
	// held is what is kept of the stream's bytes, nil for most streams most of the time.
	held *held
}

// held is what a stream keeps while a message is spread over segments, or a segment came too early.
type held struct {
	// The message at hand. buffer holds its bytes from offset on, until it has want of them.
	buffer []byte
	want   int
	offset int
	header mongo.Header
	at     int64
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

// isLate reports whether a stream holds a segment that came too early.
func (s *stream) isLate() bool { return s.held != nil && s.held.late.data != nil }

// isPartial reports whether a stream holds a part of a message.
func (s *stream) isPartial() bool { return s.held != nil && s.held.buffer != nil }

// payload brings a segment's payload into order and consumes it. It returns the flow, which is another one when the segment can only
// belong to a new connection between the same ends.
func (t *Table) payload(f *Flow, side int, p *packet.Packet, at int64) *Flow {
	if o := &f.streams[1-side]; o.isLate() && p.Flags&packet.ACK != 0 && int32(p.Acknowledgement-o.held.late.sequence) > 0 {
		// The peer has what is missing here: it will not come any more.
		t.passLate(f, 1-side)
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
	if s.held != nil {
		if s.held.late.data != nil {
			t.replay(f, side)
		}
		t.tidy(s)
	}
	return f
}

// gap notes that the bytes up to sequence are missing. The held segment stands in the gap or at its end: it shortens the loss.
func (t *Table) gap(f *Flow, side int, sequence uint32) {
	s := &f.streams[side]
	if s.isLate() && int32(sequence-s.held.late.sequence) > 0 {
		late := s.held.late
		s.held.late = lateSegment{}
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
	if s.isPartial() {
		t.cut(f, side)
	}
	if s.synced && s.inside && int(s.skip) < missing {
		t.abandon(f, side)
	}
	if s.synced && int(s.skip) >= missing {
		s.skip -= int32(missing)
		return
	}
	t.lose(s)
}

// cut hands on what is there of the message at hand, the rest of which will not come, and goes on behind it.
func (t *Table) cut(f *Flow, side int) {
	s := &f.streams[side]
	h := s.held
	if h.probing || h.offset == 0 && len(h.buffer) < mongo.HeaderBytes {
		t.lose(s)
		return
	}
	buffer := h.buffer
	h.buffer = nil
	t.deliver(f, side, head{h.header, h.at, h.offset}, buffer)
	t.give(buffer)
}

// abandon tells the handler that the part it asked for does not come, and goes on behind the message.
func (t *Table) abandon(f *Flow, side int) {
	s := &f.streams[side]
	h := s.held
	left := h.header.Length - h.offset
	t.handler.Piece(&Piece{Flow: f, Direction: f.direction(side), At: h.at, Header: h.header, Offset: h.offset})
	s.inside, s.skip, h.offset = false, s.skip+int32(left), 0
}

// lose forgets the message at hand and the place.
func (t *Table) lose(s *stream) {
	if h := s.held; h != nil {
		if h.buffer != nil {
			t.give(h.buffer)
		}
		h.buffer, h.probing, h.offset = nil, false, 0
	}
	s.synced, s.skip, s.inside = false, 0, false
}

// advance consumes payload in order; wire is its length on the wire, of which data may be the start.
func (t *Table) advance(f *Flow, side int, data []byte, wire int, at int64) {
	s := &f.streams[side]
	sequence := s.next
	s.next += uint32(wire)
	if f.protocol == unknownProtocol || !s.synced || s.held != nil && s.held.probing {
		used, found := t.search(f, side, sequence, data, at)
		if !found {
			if s.held != nil && s.held.probing && wire > len(data) {
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
	if h := s.held; h != nil && h.probing {
		n := min(probeBytes-len(h.buffer), len(data))
		h.buffer = append(h.buffer, data[:n]...)
		switch t.judge(f, side, h.buffer) {
		case tooShort:
			return n, false
		case isMessage:
			return n, t.found(f, side, sequence+uint32(n-len(h.buffer)))
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
		if buffer := t.take(probeBytes); buffer != nil {
			h := t.holding(s)
			h.buffer, h.probing, h.at, h.offset = append(buffer, data...), true, at, 0
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
	h := s.held
	header, _ := mongo.DecodeHeader(h.buffer)
	if t.isCopy(f, sequence, h.buffer, h.at) {
		t.copied(f)
		return false
	}
	h.probing, s.synced, h.header, h.offset, h.want = false, true, header, 0, min(header.Length, t.headBytes)
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
			n := min(int(s.skip), len(data))
			s.skip -= int32(n)
			data, sequence = data[n:], sequence+uint32(n)
			continue
		}
		var n int
		if s.isPartial() {
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
		return t.collect(s, data, mongo.HeaderBytes, head{at: at})
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
	want := min(h.Length, t.headBytes)
	if len(data) < want {
		return t.collect(s, data, want, head{header: h, at: at})
	}
	data = data[:min(len(data), h.Length)]
	t.deliver(f, side, head{header: h, at: at}, data)
	return len(data)
}

// beginPart handles the start of a later part of a message.
func (t *Table) beginPart(f *Flow, side int, data []byte) int {
	s := &f.streams[side]
	h := head{s.held.header, s.held.at, s.held.offset}
	left := h.header.Length - h.offset
	want := min(left, t.headBytes)
	if len(data) < want {
		return t.collect(s, data, want, h)
	}
	part := data[:min(len(data), left)]
	t.deliver(f, side, h, part)
	return len(part)
}

// head says what the bytes at hand belong to.
type head struct {
	header mongo.Header
	at     int64
	offset int // in the message
}

// collect starts to copy a message or part that is spread over segments.
func (t *Table) collect(s *stream, data []byte, want int, m head) int {
	buffer := t.take(len(data))
	if buffer == nil {
		t.counters.NoBuffer++
		t.lose(s)
		return 0
	}
	h := t.holding(s)
	h.buffer, h.want, h.header, h.at, h.offset = append(buffer, data...), want, m.header, m.at, m.offset
	return len(data)
}

// fill adds to the copy until it has what is wanted.
func (t *Table) fill(f *Flow, side int, data []byte) int {
	s := &f.streams[side]
	h := s.held
	n := min(h.want-len(h.buffer), len(data))
	if len(h.buffer)+n > cap(h.buffer) && !t.enlarge(h, n) {
		t.counters.NoBuffer++
		t.lose(s)
		return 0
	}
	h.buffer = append(h.buffer, data[:n]...)
	if len(h.buffer) < h.want {
		return n
	}
	if h.offset == 0 && h.want == mongo.HeaderBytes {
		header, err := mongo.DecodeHeader(h.buffer)
		if err != nil {
			t.counters.BadHeader++
			t.lose(s)
			return 0
		}
		h.header = header
		if h.want = min(header.Length, t.headBytes); h.want > len(h.buffer) {
			return n
		}
	}
	buffer := h.buffer
	h.buffer = nil
	t.deliver(f, side, head{h.header, h.at, h.offset}, buffer)
	t.give(buffer)
	return n
}

// deliver hands a piece to the handler and sets how the stream goes on.
func (t *Table) deliver(f *Flow, side int, m head, data []byte) {
	s := &f.streams[side]
	if m.offset == 0 {
		t.counters.Messages++
	}
	end := m.offset + len(data)
	t.piece = Piece{Flow: f, Direction: f.direction(side), At: m.at, Header: m.header, Offset: m.offset, Data: data}
	more := t.handler.Piece(&t.piece)
	t.piece.Data = nil
	if more >= end && more < m.header.Length {
		h := t.holding(s)
		h.header, h.at, h.offset = m.header, m.at, more
		s.inside, s.skip = true, int32(more-end)
		return
	}
	s.inside, s.skip = false, int32(m.header.Length-end)
}

// direction says which way the messages of a side go.
func (f *Flow) direction(side int) Direction {
	if (side == 1) != f.flipped {
		return ToClient
	}
	return ToServer
}
