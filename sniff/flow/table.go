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
	defaultBufferBytes = 16 << 20
	defaultIdleNanos   = 600e9

	// maxTries is how many segments of an unknown flow are looked at before it counts as foreign. A capture that begins within a
	// large message has to pass over all of it: 48 MB in segments of 1,460 bytes are 33,000, but a look costs next to nothing.
	maxTries = 1 << 15
	// lingerNanos is how long a closed flow is kept, so that repeated segments of it do not count as a new one.
	lingerNanos = 5e9
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

	index map[flowKey]*Flow
	flows []*Flow
	last  *Flow // the flow of the previous segment
	sweep int   // where Expire goes on

	free        [][]byte
	bufferLeft  int
	bufferLimit int
	lastID      uint64
	piece       Piece // what is handed on, kept here so that it is not allocated each time
	counters    Counters
	seed        maphash.Seed
	recent      [recentSize]recentHead
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
	t.lastID++
	f := &Flow{id: t.lastID, key: key, slot: len(t.flows)}
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
		if s := &f.streams[i]; s.ended && f.protocol == mongoProtocol && int32(s.end-s.next) > 0 && int32(s.end-s.next) < farAway {
			// The last bytes of the connection never came.
			t.gap(f, i, s.end)
		}
	}
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
		if f.closing == bothClosed && now-f.lastAt > lingerNanos {
			t.remove(f, false)
		} else if now-f.lastAt > t.idleNanos {
			t.remove(f, true)
		}
	}
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
	t.remove(f, f.closing != bothClosed)
	f = t.add(f.key)
	f.lastAt = at
	if oriented {
		f.orient(flipped)
	}
	t.last = f
	return f
}

// judgement is what the start of a segment says of a message.
type judgement uint8

const (
	noMessage judgement = iota
	tooShort            // it may be a message; more bytes will tell
	isMessage
)

// judge says whether a message begins at the start of head. Of an unknown flow it finds out what it speaks.
func (t *Table) judge(f *Flow, side int, head []byte) judgement {
	s := &f.streams[side]
	fresh := f.protocol == unknownProtocol && f.Handshake && s.synced // the connection's first bytes
	if f.protocol == unknownProtocol && isTLS(head) {
		t.encrypted(f)
		return noMessage
	}
	h, err := mongo.DecodeHeader(head)
	if err == mongo.ErrShort && fresh {
		return tooShort
	}
	if err != nil {
		return t.foreign(f)
	}
	if known := fresh && f.oriented && t.serves(f.Server.Port); !known {
		switch {
		case len(head) < probeBytes && h.Length >= probeBytes:
			return tooShort
		case !mongo.Plausible(h, head):
			return t.foreign(f)
		}
	}
	if f.protocol == mongoProtocol {
		return isMessage
	}
	if !f.oriented {
		fromServer, known := senderIsServer(f, side, h, head)
		if !known {
			return noMessage
		}
		f.orient((side == 1) != fromServer)
	}
	f.protocol = mongoProtocol
	t.counters.Flows++
	return isMessage
}

// foreign counts a segment of an unknown flow that begins no message, and gives the flow up after many.
func (t *Table) foreign(f *Flow) judgement {
	if f.protocol != unknownProtocol {
		return noMessage
	}
	if f.tries++; t.detect && f.tries >= maxTries {
		f.protocol = foreignProtocol
	}
	return noMessage
}

// isTLS reports whether a TLS record of a handshake begins at the start of b.
func isTLS(b []byte) bool { return len(b) >= 3 && b[0] == 0x16 && b[1] == 3 && b[2] <= 4 }

// encrypted notes that a flow speaks TLS; it counts where a MongoDB server is known or likely.
func (t *Table) encrypted(f *Flow) {
	f.protocol = foreignProtocol
	if t.serves(f.key.a.Port) || t.serves(f.key.b.Port) || t.detect && (usualPort(f.key.a.Port) || usualPort(f.key.b.Port)) {
		f.protocol = encryptedProtocol
		t.counters.Encrypted++
	}
}

// usualPort reports whether MongoDB uses a port by default.
func usualPort(p uint16) bool { return p >= 27017 && p <= 27020 }

// senderIsServer tells from a message which end sent it. responseTo says little: old clients set it on requests, and the reply
// to a client's request number 0 has 0.
func senderIsServer(f *Flow, side int, h mongo.Header, payload []byte) (server, known bool) {
	switch h.Op {
	case mongo.OpReply, mongo.OpCommandReply:
		return true, true
	case mongo.OpCompressed:
		if server, known = byPort(f, side); known {
			return server, true
		}
		return h.ResponseTo != 0, true
	case mongo.OpMsg:
	default:
		return false, true
	}
	var m mongo.Message
	_ = mongo.Decode(payload, &m)
	if m.SequenceCount > 0 {
		return false, true
	}
	var e bson.Element
	switch {
	case m.Body == nil:
	case bson.Lookup(m.Body, "$db", &e), bson.Lookup(m.Body, "lsid", &e):
		return false, true
	case bson.Lookup(m.Body, "ok", &e), bson.Lookup(m.Body, "cursor", &e) && e.Kind == bson.Document:
		return true, true
	}
	return byPort(f, side)
}

// byPort tells the server by its port, where one end has a usual one and the other has not.
func byPort(f *Flow, side int) (server, known bool) {
	a, b := usualPort(f.key.a.Port), usualPort(f.key.b.Port)
	return a == (side == 0), a != b
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
	if slot.hash == hash && slot.flow != f.id && at-slot.at < copyWindow && at >= slot.at {
		return true
	}
	*slot = recentHead{hash: hash, at: at, flow: f.id}
	return false
}
