package flow

import (
	"encoding/binary"
	"hash/maphash"

	"tidemark/sniff/packet"
	"tidemark/wire/bson"
	"tidemark/wire/mongo"
)

const (
	defaultHeadBytes   = 16 << 10
	defaultMaxFlows    = 1 << 16
	defaultBufferBytes = 32 << 20
	defaultIdleNanos   = 600e9

	// maxTries is how many segments of an unknown flow are looked at before it counts as foreign.
	maxTries = 16
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

	index map[flowKey]*Flow
	flows []*Flow
	last  *Flow // the flow of the previous segment
	sweep int   // where Expire goes on

	free        [][]byte
	bufferLeft  int
	bufferLimit int
	counters    Counters
	seed        maphash.Seed
	recent      [recentSize]recentHead
}

// recentHead is the trace of a message start, by which NATed copies are found.
type recentHead struct {
	hash uint64
	at   int64
	flow *Flow
}

// New returns an empty table.
func New(o Options, h Handler) *Table {
	t := &Table{
		handler: h, detect: len(o.Ports) == 0, headBytes: o.HeadBytes, maxFlows: o.MaxFlows, idleNanos: o.IdleNanos,
		index: map[flowKey]*Flow{}, seed: maphash.MakeSeed(),
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
	t.bufferLimit = o.MaxBufferBytes
	if t.bufferLimit <= 0 {
		t.bufferLimit = defaultBufferBytes
	}
	t.bufferLeft = t.bufferLimit
	return t
}

// Counters returns what was met so far.
func (t *Table) Counters() Counters { return t.counters }

// Len returns the number of flows that are followed, and BufferBytes what they hold.
func (t *Table) Len() (flows, bufferBytes int) { return len(t.flows), t.bufferLimit - t.bufferLeft }

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
	f := t.find(key, p, known)
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
func (t *Table) find(key flowKey, p *packet.Packet, known bool) *Flow {
	if t.last != nil && t.last.key == key {
		return t.last
	}
	f := t.index[key]
	if f == nil {
		if p.Flags&(packet.RST|packet.FIN) != 0 && p.PayloadBytes == 0 {
			return nil
		}
		f = t.add(key)
		if known {
			f.orient(false)
		}
	}
	t.last = f
	return f
}

func (t *Table) add(key flowKey) *Flow {
	if len(t.flows) >= t.maxFlows {
		t.evict()
	}
	f := &Flow{key: key, slot: len(t.flows)}
	t.index[key] = f
	t.flows = append(t.flows, f)
	return f
}

// evict forgets the longest idle of a few flows: near enough to the longest idle of all, at a fixed price.
func (t *Table) evict() {
	victim := t.flows[t.sweep%len(t.flows)]
	for i := range 16 {
		if f := t.flows[(t.sweep+i)%len(t.flows)]; f.lastAt < victim.lastAt {
			victim = f
		}
	}
	t.sweep += 16
	t.counters.Evicted++
	t.remove(victim, true)
}

// remove forgets a flow.
func (t *Table) remove(f *Flow, lost bool) {
	for i := range f.streams {
		t.release(&f.streams[i])
	}
	delete(t.index, f.key)
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
	n := max(len(t.flows)/8, 64)
	for range min(n, len(t.flows)) {
		if len(t.flows) == 0 {
			return
		}
		f := t.flows[t.sweep%len(t.flows)]
		t.sweep++
		if now-f.lastAt > t.idleNanos {
			t.remove(f, true)
		}
	}
}

// Close forgets every flow.
func (t *Table) Close() {
	for len(t.flows) > 0 {
		t.remove(t.flows[len(t.flows)-1], true)
	}
}

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
			t.payload(f, side, p, at)
		case copyProtocol:
			t.counters.Duplicates++
		}
	}
	if p.Flags&packet.RST != 0 {
		t.remove(f, true)
		return
	}
	if p.Flags&packet.FIN != 0 {
		f.closing |= 1 << side
		if f.closing == 3 {
			t.remove(f, false)
		}
	}
}

// open begins a stream at a SYN. A SYN on a used flow is a new connection with the same ports, unless it is a repetition.
func (t *Table) open(f *Flow, side int, p *packet.Packet) {
	s := &f.streams[side]
	if s.started && s.next != p.Sequence+1 && p.Flags&packet.ACK == 0 {
		oriented, flipped := f.oriented, f.flipped
		t.remove(f, true)
		f = t.add(f.key)
		if oriented {
			f.orient(flipped)
		}
		s = &f.streams[side]
	}
	if s.started {
		return
	}
	s.started, s.synced, s.next = true, true, p.Sequence+1
	f.Handshake = true
	if !f.oriented {
		f.orient((side == 1) == (p.Flags&packet.ACK == 0))
	}
}

// recognise decides what an unknown flow speaks from the start of a segment that may begin a message. It returns false while
// the answer is open or the flow is of no interest.
func (t *Table) recognise(f *Flow, side int, payload []byte) bool {
	if len(payload) >= 3 && payload[0] == 0x16 && payload[1] == 3 && payload[2] <= 4 {
		if t.serves(f.key.a.Port) || t.serves(f.key.b.Port) || t.detect && mongoPort(f.key) {
			t.counters.Encrypted++
			f.protocol = encryptedProtocol
		} else {
			f.protocol = foreignProtocol
		}
		return false
	}
	if f.Handshake && f.oriented && t.serves(f.Server.Port) {
		// The connection's first bytes on a known port: a header even when the segment is too short to tell.
		f.protocol = mongoProtocol
		t.counters.Flows++
		return true
	}
	h, err := mongo.DecodeHeader(payload)
	if err != nil || !mongo.Plausible(h, payload) {
		f.tries++
		if t.detect && f.tries >= maxTries {
			f.protocol = foreignProtocol
		}
		return false
	}
	if !f.oriented {
		fromServer, known := senderIsServer(h, payload)
		if !known {
			return false
		}
		f.orient((side == 1) != fromServer)
	}
	f.protocol = mongoProtocol
	t.counters.Flows++
	return true
}

// mongoPort reports whether one end has a port that MongoDB uses by default.
func mongoPort(k flowKey) bool {
	usual := func(p uint16) bool { return p >= 27017 && p <= 27020 }
	return usual(k.a.Port) || usual(k.b.Port)
}

// senderIsServer tells from a message which end sent it.
func senderIsServer(h mongo.Header, payload []byte) (server, known bool) {
	switch h.Op {
	case mongo.OpReply, mongo.OpCommandReply:
		return true, true
	case mongo.OpCompressed:
		return h.ResponseTo != 0, true
	case mongo.OpMsg:
		var m mongo.Message
		if mongo.Decode(payload, &m) != nil || m.Body == nil {
			return false, m.SequenceCount > 0
		}
		var e bson.Element
		if bson.Lookup(m.Body, "$db", &e) {
			return false, true
		}
		if bson.Lookup(m.Body, "ok", &e) || bson.Lookup(m.Body, "cursor", &e) {
			return true, true
		}
		return false, false
	}
	return false, true
}

// isCopy reports whether the message at the start of payload was just seen on another flow: the same sequence number and bytes
// under other addresses, as NAT and bridges show them.
func (t *Table) isCopy(f *Flow, sequence uint32, payload []byte, at int64) bool {
	if f.checked >= copyChecks {
		return false
	}
	f.checked++
	var head [64]byte
	binary.LittleEndian.PutUint32(head[:], sequence)
	n := copy(head[4:], payload)
	hash := maphash.Bytes(t.seed, head[:4+n])
	slot := &t.recent[hash%recentSize]
	if slot.hash == hash && slot.flow != f && at-slot.at < copyWindow && at >= slot.at {
		return true
	}
	*slot = recentHead{hash: hash, at: at, flow: f}
	return false
}
