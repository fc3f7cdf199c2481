package flow

import "tidemark/sniff/packet"

// The copies of bytes that wait for others. They come in a few sizes, because most of what waits is short: a segment that overtook another, a
// header in a segment of its own. All of them together are bounded, and overwritten when they are given back.

const (
	smallBytes  = 512
	mediumBytes = 4 << 10
	// maxFreeBytes bounds the buffers that are kept for the next use, maxFreeHeld what streams hold.
	maxFreeBytes = 1 << 20
	maxFreeHeld  = 256
)

// buffers hands out buffers of three sizes.
type buffers struct {
	sizes     [3]int
	free      [3][][]byte
	freeBytes int
	left      int // how much may still be handed out
	limit     int
}

func newBuffers(largest, limit int) buffers {
	return buffers{sizes: [3]int{min(smallBytes, largest), min(mediumBytes, largest), largest}, left: limit, limit: limit}
}

// take returns an empty buffer for at least n bytes, at most the largest size, or nil when the limit is reached.
func (b *buffers) take(n int) []byte {
	class := 0
	for class < 2 && b.sizes[class] < n {
		class++
	}
	size := b.sizes[class]
	if b.left < size {
		return nil
	}
	b.left -= size
	if free := b.free[class]; len(free) > 0 {
		buffer := free[len(free)-1]
		b.free[class] = free[:len(free)-1]
		b.freeBytes -= size
		return buffer
	}
	return make([]byte, 0, size)
}

// give takes a buffer back. What it held is overwritten: values must not outlive their packet.
func (b *buffers) give(buffer []byte) {
	clear(buffer)
	size := cap(buffer)
	b.left += size
	if b.freeBytes+size > maxFreeBytes {
		return
	}
	for class := range b.sizes {
		if b.sizes[class] == size {
			b.free[class] = append(b.free[class], buffer[:0])
			b.freeBytes += size
			return
		}
	}
}

func (t *Table) take(n int) []byte  { return t.buffers.take(n) }
func (t *Table) give(buffer []byte) { t.buffers.give(buffer) }

// enlarge gives a copy room for n bytes more; false when there is none.
func (t *Table) enlarge(h *held, n int) bool {
	larger := t.take(len(h.buffer) + n)
	if larger == nil {
		return false
	}
	larger = append(larger, h.buffer...)
	t.give(h.buffer)
	h.buffer = larger
	return true
}

// holding returns where a stream keeps what it holds.
func (t *Table) holding(s *stream) *held {
	if s.held == nil {
		if n := len(t.freeHeld); n > 0 {
			s.held = t.freeHeld[n-1]
			t.freeHeld = t.freeHeld[:n-1]
		} else {
			s.held = &held{}
		}
	}
	return s.held
}

// tidy gives that back once it is empty.
func (t *Table) tidy(s *stream) {
	h := s.held
	if h == nil || h.buffer != nil || h.late.data != nil || s.inside {
		return
	}
	s.held = nil
	if len(t.freeHeld) < maxFreeHeld {
		*h = held{}
		t.freeHeld = append(t.freeHeld, h)
	}
}

// release gives back what a stream holds.
func (t *Table) release(s *stream) {
	h := s.held
	if h == nil {
		return
	}
	if h.buffer != nil {
		t.give(h.buffer)
	}
	if h.late.data != nil {
		t.give(h.late.data)
	}
	h.buffer, h.late, s.inside = nil, lateSegment{}, false
	t.tidy(s)
}

// hold keeps a segment that came too early, if none is held and the table may still copy. It returns false when the gap has to
// be taken as one.
func (t *Table) hold(s *stream, p *packet.Packet, at int64) bool {
	if s.isLate() || !s.synced || len(p.Payload) != p.PayloadBytes || len(p.Payload) > t.headBytes {
		return false
	}
	buffer := t.take(len(p.Payload))
	if buffer == nil {
		return false
	}
	t.holding(s).late = lateSegment{sequence: p.Sequence, wire: p.PayloadBytes, data: append(buffer, p.Payload...), at: at}
	return true
}

// passLate takes the gap before the held segment as one, and goes on with that segment.
func (t *Table) passLate(f *Flow, side int) {
	s := &f.streams[side]
	t.gap(f, side, s.held.late.sequence)
	t.replay(f, side)
	t.tidy(s)
}

// replay consumes the held segment when its turn has come, or drops it when its bytes came by themselves.
func (t *Table) replay(f *Flow, side int) {
	s := &f.streams[side]
	if !s.isLate() || int32(s.held.late.sequence-s.next) > 0 {
		return
	}
	late := s.held.late
	s.held.late = lateSegment{}
	if behind := int(int32(s.next - late.sequence)); behind < late.wire {
		t.counters.Reordered++
		t.advance(f, side, late.data[behind:], late.wire-behind, late.at)
	}
	t.give(late.data)
}

// settle gives up what a flow holds that fell silent in the middle: the missing bytes were not captured.
func (t *Table) settle(f *Flow) {
	for side := range f.streams {
		s := &f.streams[side]
		if s.held == nil {
			continue
		}
		if s.isLate() {
			t.passLate(f, side)
		}
		if s.isPartial() {
			t.cut(f, side)
		}
		if s.inside {
			t.abandon(f, side)
		}
		t.tidy(s)
	}
}
