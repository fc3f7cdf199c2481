package flow

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"tidemark/sniff/packet"
	"tidemark/test/fuzztest"
	"tidemark/wire/mongo"
)

var le = binary.LittleEndian

// message builds an OP_MSG of a size whose body document is filled with one byte.
func message(id uint32, size int, fill byte) []byte {
	b := bytes.Repeat([]byte{fill}, size)
	le.PutUint32(b, uint32(size))
	le.PutUint32(b[4:], id)
	le.PutUint32(b[8:], 0)
	le.PutUint32(b[12:], uint32(mongo.OpMsg))
	le.PutUint32(b[16:], 0)
	b[20] = 0
	le.PutUint32(b[21:], uint32(size-21))
	copy(b[25:], "\x02find\x00")
	return b
}

// recorder is a handler that notes what it gets.
type recorder struct {
	ids     []uint32
	lengths []int
	parts   []string // what came for a later part
	more    map[uint32]int
	closed  int
}

func (r *recorder) Piece(p *Piece) int {
	if p.Offset > 0 {
		r.parts = append(r.parts, string(p.Data))
		return 0
	}
	r.ids, r.lengths = append(r.ids, p.Header.RequestID), append(r.lengths, len(p.Data))
	return r.more[p.Header.RequestID]
}

func (r *recorder) Closed(*Flow, bool) { r.closed++ }

// script sends segments of one direction of one connection.
type script struct {
	t        *Table
	r        *recorder
	sequence uint32
	at       int64
}

func newScript(o Options) *script {
	r := &recorder{more: map[uint32]int{}}
	return &script{t: New(o, r), r: r, sequence: 100}
}

func (s *script) packet(flags uint8, sequence uint32, payload []byte) {
	s.at += 1e6
	p := packet.Packet{SourcePort: 40000, DestinationPort: 27017, Sequence: sequence, Flags: flags, Payload: payload, PayloadBytes: len(payload)}
	p.Source[15], p.Destination[15] = 1, 2
	s.t.Segment(&p, s.at)
}

func (s *script) send(payload []byte) {
	s.packet(packet.ACK, s.sequence, payload)
	s.sequence += uint32(len(payload))
}

func known() Options { return Options{Ports: []uint16{27017}} }

func TestTable_skipsBodies(t *testing.T) {
	s := newScript(known())
	big := message(1, 200_000, 'x')
	for len(big) > 0 {
		n := min(len(big), 1448)
		s.send(big[:n])
		big = big[n:]
	}
	s.send(message(2, 100, 'y'))
	if len(s.r.ids) != 2 || s.r.ids[1] != 2 || s.r.lengths[0] != defaultHeadBytes || s.r.lengths[1] != 100 {
		t.Errorf("messages %v of %v bytes", s.r.ids, s.r.lengths)
	}
	if _, buffered := s.t.Len(); buffered != 0 {
		t.Errorf("%d bytes are still held", buffered)
	}
}

func TestTable_laterPart(t *testing.T) {
	s := newScript(known())
	b := message(1, 50_000, 'x')
	copy(b[40_000:], "the part that is wanted")
	s.r.more[1] = 40_000
	for len(b) > 0 {
		n := min(len(b), 1000)
		s.send(b[:n])
		b = b[n:]
	}
	s.send(message(2, 100, 'y'))
	if len(s.r.parts) != 1 || !bytes.HasPrefix([]byte(s.r.parts[0]), []byte("the part that is wanted")) || len(s.r.ids) != 2 {
		t.Errorf("parts %d, messages %v", len(s.r.parts), s.r.ids)
	}
}

// A part that was asked for and is lost is given up, and the next message is found.
func TestTable_laterPartLost(t *testing.T) {
	s := newScript(known())
	b := message(1, 50_000, 'x')
	s.r.more[1] = 40_000
	s.send(b[:20_000])
	s.sequence += 25_000
	s.send(b[45_000:])
	s.send(message(2, 100, 'y'))
	if len(s.r.parts) != 1 || s.r.parts[0] != "" || len(s.r.ids) != 2 {
		t.Errorf("parts %q, messages %v", s.r.parts, s.r.ids)
	}
}

// A gap within a body costs nothing; one in the start costs that message only, because its header told its length.
func TestTable_gaps(t *testing.T) {
	s := newScript(known())
	b := message(1, 60_000, 'x')
	s.send(b[:30_000])
	s.sequence += 10_000
	s.send(b[40_000:])
	b = message(2, 10_000, 'x')
	s.send(b[:1000])
	s.sequence += 8000
	s.send(b[9000:])
	s.send(message(3, 100, 'y'))
	if len(s.r.ids) != 3 || s.r.lengths[1] != 1000 {
		t.Errorf("messages %v of %v bytes", s.r.ids, s.r.lengths)
	}
	if c := s.t.Counters(); c.Gaps != 2 || c.BadHeader != 0 {
		t.Errorf("counters %+v", c)
	}
}

// After a gap that hides where messages begin, document bytes must not pass for a header.
func TestTable_resync(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s := newScript(known())
		s.send(message(1, 100, 'x'))
		s.sequence += 5000
		noise := make([]byte, 1448)
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		// What BSON is full of: small lengths, kinds, zero bytes.
		le.PutUint32(noise, uint32(random.IntN(2000)))
		le.PutUint32(noise[12:], uint32(mongo.OpMsg))
		le.PutUint32(noise[16:], uint32(random.IntN(4)))
		s.send(noise)
		s.send(message(2, 100, 'y'))
		if len(s.r.ids) != 2 || s.r.ids[1] != 2 {
			t.Fatalf("messages %v", s.r.ids)
		}
	}
}

func TestTable_reorderedAndRepeated(t *testing.T) {
	s := newScript(known())
	a, b := message(1, 100, 'x'), message(2, 100, 'y')
	s.packet(packet.SYN, 99, nil)
	s.packet(packet.ACK, 200, b)
	s.packet(packet.SYN, 99, nil) // repeated
	s.packet(packet.ACK, 100, a)
	s.packet(packet.ACK, 100, append(bytes.Clone(a), b...)) // repeated as one
	s.packet(packet.FIN|packet.ACK, 300, nil)
	s.packet(packet.ACK, 200, b) // after the end
	s.sequence = 300
	if len(s.r.ids) != 2 || s.r.ids[0] != 1 {
		t.Errorf("messages %v", s.r.ids)
	}
	if c := s.t.Counters(); c.Duplicates != 2 || c.Gaps != 0 || c.Reordered != 1 || c.Flows != 1 {
		t.Errorf("counters %+v", c)
	}
}

// The server speaks while the client's first header is not whole.
func TestTable_serverBetweenHalfAHeader(t *testing.T) {
	s := newScript(known())
	b := message(1, 100, 'x')
	s.packet(packet.SYN, 99, nil)
	s.send(b[:10])
	p := packet.Packet{SourcePort: 27017, DestinationPort: 40000, Sequence: 7, Flags: packet.ACK, Payload: message(9, 80, 'z'), PayloadBytes: 80}
	p.Source[15], p.Destination[15] = 2, 1
	s.t.Segment(&p, s.at)
	s.send(b[10:])
	s.send(message(2, 100, 'y'))
	if len(s.r.ids) != 3 || s.r.ids[1] != 1 || s.r.ids[2] != 2 {
		t.Errorf("messages %v", s.r.ids)
	}
}

// What a connection began and fell silent over is given up after a while, and what comes later has its place.
func TestTable_silence(t *testing.T) {
	s := newScript(known())
	b := message(1, 30_000, 'x')
	s.send(b[:9000])
	s.t.Expire(s.at + settleNanos + 1)
	if _, buffered := s.t.Len(); buffered != 0 || len(s.r.ids) != 1 || s.r.lengths[0] != 9000 {
		t.Errorf("messages %v of %v bytes, %d bytes are held", s.r.ids, s.r.lengths, buffered)
	}
	s.send(b[9000:])
	s.send(message(2, 100, 'y'))
	s.sequence += 500
	s.send(message(3, 100, 'y')) // early
	s.t.Expire(s.at + settleNanos + 1)
	if _, buffered := s.t.Len(); buffered != 0 || len(s.r.ids) != 3 || s.t.Counters().Gaps != 1 {
		t.Errorf("messages %v, %d bytes are held, %+v", s.r.ids, buffered, s.t.Counters())
	}
	s.packet(packet.FIN|packet.ACK, s.sequence, nil)
	s.t.Expire(s.at + halfNanos + 1)
	if flows, _ := s.t.Len(); flows != 0 {
		t.Error("a connection that one end closed is kept")
	}
}

// A table that fills up forgets silent connections sooner, and only those.
func TestTable_hastens(t *testing.T) {
	table := New(Options{Ports: []uint16{27017}, MaxFlows: 1000}, &recorder{})
	speak := func(client int, at int64) {
		p := packet.Packet{SourcePort: uint16(client), DestinationPort: 27017, Sequence: uint32(client) << 16, Flags: packet.ACK, Payload: message(1, 100, 'x'), PayloadBytes: 100}
		table.Segment(&p, at)
	}
	for i := range 3000 {
		at := int64(i) * 100e6
		for k := range 10 {
			speak(k, at)
		}
		speak(100+i, at)
		if i%10 == 0 {
			table.Expire(at)
		}
	}
	if c := table.Counters(); c.Evicted != 0 || c.Hastened < 2000 || c.Hastened != c.Idle || c.Flows != 3010 {
		t.Errorf("counters %+v", c)
	}
	if flows, _ := table.Len(); flows > 700 {
		t.Errorf("%d connections", flows)
	}
}

// The index finds each of many flows, and none that went.
func TestIndex(t *testing.T) {
	x := newIndex(1)
	var flows []*Flow
	for i := range 5000 {
		k := flowKey{a: Endpoint{Port: uint16(i)}, b: Endpoint{Port: 27017}}
		f := &Flow{Client: k.a, Server: k.b, hash: x.hash(&k)}
		if i%2 == 1 {
			f.orient(true)
		}
		flows = append(flows, f)
		x.add(f, len(flows))
	}
	for i := 0; i < len(flows); i += 3 {
		x.remove(flows[i])
	}
	for i, f := range flows {
		k := flowKey{a: Endpoint{Port: uint16(i)}, b: Endpoint{Port: 27017}}
		want := f
		if i%3 == 0 {
			want = nil
		}
		if got := x.find(&k, x.hash(&k)); got != want {
			t.Fatalf("flow %d: found %v", i, got)
		}
	}
}

// The ports of a connection are used again: by a SYN, and without one being captured.
func TestTable_portsUsedAgain(t *testing.T) {
	for _, first := range []uint32{77, 3_000_000_000} {
		s := newScript(known())
		s.packet(packet.SYN, 1_000_000_000-1, nil)
		s.packet(packet.ACK, 1_000_000_000, message(1, 100, 'x'))
		if first == 77 {
			s.packet(packet.SYN, 76, nil)
		}
		s.packet(packet.ACK, first, message(2, 100, 'y'))
		if len(s.r.ids) != 2 || s.r.closed != 1 {
			t.Errorf("from %d: messages %v, closed %d", first, s.r.ids, s.r.closed)
		}
	}
}

func TestTable_foreignAndEncrypted(t *testing.T) {
	s := newScript(known())
	s.packet(packet.SYN, 99, nil)
	s.send([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3})
	if c := s.t.Counters(); c.Encrypted != 1 || c.Flows != 0 {
		t.Errorf("TLS: %+v", c)
	}
	s = newScript(known())
	s.packet(packet.SYN, 99, nil)
	s.send([]byte("GET / HTTP/1.1\r\nHost: db:27017\r\n\r\n"))
	if c := s.t.Counters(); len(s.r.ids) != 0 || c.Flows != 0 {
		t.Errorf("HTTP: messages %v, %+v", s.r.ids, c)
	}
}

// The same bytes under other addresses are one conversation seen twice.
func TestTable_natCopy(t *testing.T) {
	s := newScript(Options{})
	for _, copyOf := range []byte{0, 9} {
		p := packet.Packet{SourcePort: 40000, DestinationPort: 27017, Sequence: 5, Flags: packet.ACK, Payload: message(1, 200, 'x'), PayloadBytes: 200}
		p.Source[15], p.Destination[15] = 1+copyOf, 2
		// A reply tells the ends apart.
		le.PutUint32(p.Payload[16:], 0)
		s.t.Segment(&p, 1000)
	}
	if c := s.t.Counters(); len(s.r.ids) != 1 || c.Flows != 1 || c.Duplicates != 1 {
		t.Errorf("messages %v, %+v", s.r.ids, c)
	}
}

// However many flows and broken messages there are, memory stays within its bounds.
func TestTable_bounded(t *testing.T) {
	r := &recorder{}
	o := Options{Ports: []uint16{27017}, MaxFlows: 100, MaxBufferBytes: 256 << 10}
	table := New(o, r)
	for i := range 5000 {
		p := packet.Packet{SourcePort: uint16(i), DestinationPort: 27017, Sequence: uint32(i), Flags: packet.ACK, Payload: message(1, 30_000, 'x')[:2000], PayloadBytes: 2000}
		p.Source[14] = byte(i >> 12)
		table.Segment(&p, int64(i)*1e6)
		if flows, buffered := table.Len(); flows > 100 || buffered > 256<<10 {
			t.Fatalf("%d flows, %d bytes", flows, buffered)
		}
	}
	if c := table.Counters(); c.NoBuffer == 0 || c.Evicted == 0 {
		t.Errorf("counters %+v", c)
	}
	table.Expire(1e15)
	for range 10 {
		table.Expire(1e15)
	}
	if flows, buffered := table.Len(); flows != 0 || buffered != 0 {
		t.Errorf("%d flows and %d bytes after all were idle", flows, buffered)
	}
}

// FuzzTable plays segments of which the fuzzer chooses order, overlap and content.
func FuzzTable(f *testing.F) {
	f.Add(append(message(1, 100, 'x'), message(2, 60, 'y')...), []byte{0, 50, 0, 30, 1, 20, 0, 60}, true)
	f.Add(message(1, 3000, 'x'), []byte{0, 200, 5, 200, 0, 200}, false)
	f.Add([]byte{0x16, 3, 1, 0}, []byte{0, 4}, true)
	f.Fuzz(func(t *testing.T, stream, plan []byte, opened bool) {
		fuzztest.Within(t, 4<<20+2*int64(len(stream)), func() {
			o := Options{HeadBytes: 256, MaxBufferBytes: 4096, MaxFlows: 4}
			if opened {
				o.Ports = []uint16{27017}
			}
			s := newScript(o)
			if opened {
				s.packet(packet.SYN, 99, nil)
			}
			s.r.more[1] = 900
			at := 0
			for i := 0; i+1 < len(plan) && i < 400; i += 2 {
				at += int(int8(plan[i]))
				at = max(0, min(at, len(stream)))
				end := min(at+int(plan[i+1]), len(stream))
				s.packet(packet.ACK, 100+uint32(at), stream[at:end])
				at = end
			}
			if _, buffered := s.t.Len(); buffered > 4096 {
				t.Errorf("%d bytes are held", buffered)
			}
			s.t.Close()
			if flows, buffered := s.t.Len(); flows != 0 || buffered != 0 {
				t.Errorf("%d flows and %d bytes after Close", flows, buffered)
			}
			for _, n := range s.r.lengths {
				if n > max(256, len(stream)) {
					t.Errorf("a piece of %d bytes", n)
				}
			}
		})
	})
}
