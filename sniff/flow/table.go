package flow

import (
	"hash/maphash"
	"math/rand/v2"

	"tidemark/sniff/packet"
	"tidemark/wire/mongo"
)

const (
	defaultHeadBytes   = 16 << 10
	defaultMaxFlows    = 1 << 16
	defaultBufferBytes = 8 << 20
	defaultIdleNanos   = 600e9

	// maxTries is how many segments of an unknown flow are looked at before it counts as foreign. A capture that begins within a
	// large message has to pass over all of it: 48 MB in segments of 1,460 bytes are 33,000, but a look costs next to nothing.
	maxTries = 1 << 15
	// lingerNanos is how long a closed flow is kept, so that repeated segments of it do not count as a new one.
	lingerNanos = 5e9
	// settleNanos is after how long of silence the rest of what a flow began will not come.
	settleNanos = 5e9
	// halfNanos is how long a flow is kept that one end has closed: the other end's last segment was not captured.
	halfNanos = 60e9
	// repeatWindow is how far behind the expected sequence number a SYN is still a repetition of the flow's own.
	repeatWindow = 1 << 20
	// farAway is a distance of sequence numbers that no window of the same connection spans: the ports are used again.
	farAway = 1 << 28
	// probeBytes is how much of a message is needed to recognise it.
	probeBytes = mongo.HeaderBytes + 9
	// copyChecks is how many messages of a new flow are compared with other flows.
	copyChecks = 3
	// copyWindow is how far apart a message and its NATed copy may be captured.
	copyWindow = 200e6
	recentSize = 4096
)

// Table follows flows. It belongs to one goroutine.
type Table struct {
	handler   Handler
	ports     [1024]uint64 // a bit for each server port
	detect    bool
	headBytes int
	maxFlows  int
	idleNanos int64

	index index
	flows []*Flow
	last  *Flow // the flow of the previous segment
	sweep int   // where Expire goes on

	buffers  buffers
	freeHeld []*held
	lastID   uint64
	piece    Piece // what is handed on, kept here so that it is not allocated each time
	counters Counters
	seed     maphash.Seed
	recent   [recentSize]recentHead
}

// recentHead is the trace of a message start, by which NATed copies are found.
type recentHead struct {
	hash uint64
	at   int64
	flow uint64 // its id
}

// New returns an empty table.
func New(o Options, h Handler) *Table {
	t := &Table{
		handler: h, detect: len(o.Ports) == 0, headBytes: o.HeadBytes, maxFlows: o.MaxFlows, idleNanos: o.IdleNanos,
		index: newIndex(rand.Uint64()), seed: maphash.MakeSeed(),
	}
	for _, p := range o.Ports {
		t.ports[p>>6] |= 1 << (p & 63)
	}
	if t.headBytes <= 0 {
		t.headBytes = defaultHeadBytes
	}
	if t.maxFlows <= 0 {
		t.maxFlows = defaultMaxFlows
	}
	if t.idleNanos <= 0 {
		t.idleNanos = defaultIdleNanos
	}
	limit := o.MaxBufferBytes
	if limit <= 0 {
		limit = defaultBufferBytes
	}
	t.buffers = newBuffers(t.headBytes, limit)
	return t
}

// Counters returns what was met so far.
func (t *Table) Counters() Counters { return t.counters }

// Len returns the number of flows that are followed, and BufferBytes what they hold.
func (t *Table) Len() (flows, bufferBytes int) { return len(t.flows), t.buffers.limit - t.buffers.left }

func (t *Table) serves(port uint16) bool { return t.ports[port>>6]&(1<<(port&63)) != 0 }

// Segment follows one TCP segment captured at the given time.
func (t *Table) Segment(p *packet.Packet, at int64) {
	if p.PayloadBytes == 0 && p.Flags&(packet.SYN|packet.FIN|packet.RST) == 0 {
		return
	}
	source := Endpoint{p.Source, p.SourcePort}
	destination := Endpoint{p.Destination, p.DestinationPort}
	fromB := t.serves(p.SourcePort)
	known := fromB || t.serves(p.DestinationPort)
	if !known {
		if !t.detect {
			return
		}
		fromB = !source.before(destination)
	} else if fromB && t.serves(p.DestinationPort) {
		fromB = !source.before(destination)
		known = false
	}
	key := flowKey{source, destination}
	if fromB {
		key = flowKey{destination, source}
	}
	f := t.find(&key, p, known)
	if f == nil {
		return
	}
	f.lastAt = at
	side := 0
	if fromB {
		side = 1
	}
	t.follow(f, side, p, at)
}

// find returns the flow of a key, and makes it if the segment may begin one.
func (t *Table) find(key *flowKey, p *packet.Packet, known bool) *Flow {
	if t.last != nil && t.last.is(key) {
		return t.last
	}
	hash := t.index.hash(key)
	f := t.index.find(key, hash)
	if f == nil {
		if p.Flags&(packet.RST|packet.FIN) != 0 && p.PayloadBytes == 0 {
			return nil
		}
		f = t.add(key, hash)
		if known {
			f.orient(false)
		}
	}
	t.last = f
	return f
}

func (t *Table) add(key *flowKey, hash uint32) *Flow {
	if len(t.flows) >= t.maxFlows {
		t.evict()
	}
	t.lastID++
	f := &Flow{id: t.lastID, Client: key.a, Server: key.b, hash: hash, slot: int32(len(t.flows))}
	t.flows = append(t.flows, f)
	t.index.add(f, len(t.flows))
	return f
}

// evict forgets the longest idle of a few flows: near enough to the longest idle of all, at a fixed price.
func (t *Table) evict() {
	victim := t.swept()
	for range 16 {
		t.sweep++
		if f := t.swept(); f.lastAt < victim.lastAt {
			victim = f
		}
	}
	t.counters.Evicted++
	t.remove(victim, true)
}

// swept returns the flow at which the sweep is; there must be one.
func (t *Table) swept() *Flow {
	if t.sweep >= len(t.flows) {
		t.sweep = 0
	}
	return t.flows[t.sweep]
}

// remove forgets a flow.
func (t *Table) remove(f *Flow, lost bool) {
	for i := range f.streams {
		if s := &f.streams[i]; s.ended && f.protocol == mongoProtocol && int32(s.end-s.next) > 0 && int32(s.end-s.next) < farAway {
			// The last bytes of the connection never came.
			t.gap(f, i, s.end)
		}
	}
	for i := range f.streams {
		t.release(&f.streams[i])
	}
	t.index.remove(f)
	last := t.flows[len(t.flows)-1]
	t.flows[f.slot] = last
	last.slot = f.slot
	t.flows[len(t.flows)-1] = nil
	t.flows = t.flows[:len(t.flows)-1]
	if t.last == f {
		t.last = nil
	}
	if f.protocol == mongoProtocol {
		t.handler.Closed(f, lost)
	}
}

// Expire forgets flows that were silent for too long; call it about once a second. It looks at a part of the table each time.
func (t *Table) Expire(now int64) {
	idle := t.patience()
	for range min(max(len(t.flows)/8, 64), len(t.flows)) {
		if len(t.flows) == 0 {
			return
		}
		f := t.swept()
		silent := now - f.lastAt
		switch {
		case f.closing == bothClosed && silent > lingerNanos:
			t.remove(f, false)
		case silent > idle || f.closing != 0 && silent > halfNanos:
			t.counters.Idle++
			if silent <= t.idleNanos {
				t.counters.Hastened++
			}
			t.remove(f, true)
		default:
			if silent > settleNanos {
				t.settle(f)
			}
			t.sweep++ // Where a flow was removed, there is another one now.
		}
	}
}

// patience is how long a silent flow is kept. Where more connections come than the table has room for in ten minutes, most of the silent ones
// are closed in truth and the end of them was not captured; memory is better spent on those that speak.
func (t *Table) patience() int64 {
	switch n := len(t.flows); {
	case n > t.maxFlows/2:
		return t.idleNanos / 60
	case n > t.maxFlows/4:
		return t.idleNanos / 10
	}
	return t.idleNanos
}

// Close forgets every flow.
func (t *Table) Close() {
	for len(t.flows) > 0 {
		f := t.flows[len(t.flows)-1]
		t.remove(f, f.closing != bothClosed)
	}
}

// bothClosed is Flow.closing once both ends have closed.
const bothClosed = 3

// follow handles the segment's flags and payload. side is 0 for the end key.a.
func (t *Table) follow(f *Flow, side int, p *packet.Packet, at int64) {
	if p.Flags&packet.SYN != 0 {
		t.open(f, side, p)
		return
	}
	if p.PayloadBytes > 0 {
		t.counters.Segments++
		switch f.protocol {
		case mongoProtocol, unknownProtocol:
			f = t.payload(f, side, p, at)
		case copyProtocol:
			t.counters.Duplicates++
		}
	}
	// A closed flow stays for a while: segments that come late or twice belong to it, not to a new one.
	if p.Flags&packet.RST != 0 {
		f.closing = bothClosed
	}
	if p.Flags&packet.FIN != 0 {
		f.closing |= 1 << side
		if s := &f.streams[side]; s.started {
			s.ended, s.end = true, p.Sequence+uint32(p.PayloadBytes)
		}
	}
}

// open begins a stream at a SYN. A SYN on a used flow is a new connection with the same ports, unless it is a repetition.
func (t *Table) open(f *Flow, side int, p *packet.Packet) {
	first := p.Sequence + 1
	if s := &f.streams[side]; s.started {
		if behind := int32(s.next - first); behind >= 0 && behind < repeatWindow {
			return
		}
		f = t.restart(f)
	}
	s := &f.streams[side]
	s.started, s.synced, s.next = true, true, first
	f.Handshake = true
	if !f.oriented {
		f.orient((side == 1) == (p.Flags&packet.ACK == 0))
	}
}

// restart begins a new connection between the same ends.
func (t *Table) restart(f *Flow) *Flow {
	oriented, flipped, at := f.oriented, f.flipped, f.lastAt
	key := f.key()
	t.remove(f, f.closing != bothClosed)
	f = t.add(&key, f.hash)
	f.lastAt = at
	if oriented {
		f.orient(flipped)
	}
	t.last = f
	return f
}
