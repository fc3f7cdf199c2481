package sniff

import (
	"encoding/binary"
	"io"
	"testing"

	"github.com/klauspost/compress/s2"
	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/sniff/capture"
	"tidemark/sniff/packet"
	"tidemark/wire/mongo"
)

var le, be = binary.LittleEndian, binary.BigEndian

// The TCP flags, shorter.
const (
	fin = packet.FIN
	syn = packet.SYN
	psh = packet.PSH | packet.ACK
	ack = packet.ACK
)

// wireFrame is one frame of a built or read capture.
type wireFrame struct {
	data []byte
	wire int
	at   int64
	link packet.LinkType
}

// memory is a capture in memory.
type memory struct {
	frames []wireFrame
	next   int
}

func (m *memory) Next(f *capture.Frame) error {
	if m.next == len(m.frames) {
		return io.EOF
	}
	w := m.frames[m.next]
	m.next++
	*f = capture.Frame{Data: w.data, WireBytes: w.wire, At: w.at, Link: w.link}
	return nil
}

func (m *memory) Stats() (capture.Stats, error) { return capture.Stats{}, nil }
func (m *memory) Close() error                  { return nil }

// wire builds a conversation between one client and one server, frame by frame.
type wire struct {
	t              testing.TB
	frames         []wireFrame
	client, server [4]byte
	clientPort     uint16
	serverPort     uint16
	sequence       [2]uint32 // next of client and server
	now            int64
	six            bool
	tags           int
	most           int // largest segment
	first          int // size of a message's first segment, if not 0
}

func newWire(t testing.TB) *wire {
	return &wire{
		t: t, client: [4]byte{10, 0, 0, 1}, server: [4]byte{10, 0, 0, 2}, clientPort: 40000, serverPort: 27017,
		sequence: [2]uint32{1000, 5000}, now: 1_700_000_000_000_000_000,
		most: 60_000,
	}
}

// segment appends one TCP segment of a side (0: client), 100 µs after the one before.
func (w *wire) segment(side int, flags uint8, payload []byte) {
	w.now += 100_000
	tcp := make([]byte, 20)
	ports, seq := [2]uint16{w.clientPort, w.serverPort}, w.sequence
	be.PutUint16(tcp, ports[side])
	be.PutUint16(tcp[2:], ports[1-side])
	be.PutUint32(tcp[4:], seq[side])
	be.PutUint32(tcp[8:], seq[1-side])
	tcp[12], tcp[13] = 5<<4, flags
	tcp = append(tcp, payload...)
	w.sequence[side] += uint32(len(payload))
	if flags&(syn|fin) != 0 {
		w.sequence[side]++
	}
	ends := [2][4]byte{w.client, w.server}
	var ip []byte
	etherType := uint16(0x0800)
	if w.six {
		etherType = 0x86DD
		ip = make([]byte, 40)
		ip[0], ip[6] = 0x60, 6
		be.PutUint16(ip[4:], uint16(len(tcp)))
		copy(ip[20:], ends[side][:])
		copy(ip[36:], ends[1-side][:])
	} else {
		ip = make([]byte, 20)
		ip[0], ip[9] = 0x45, 6
		be.PutUint16(ip[2:], uint16(20+len(tcp)))
		copy(ip[12:], ends[side][:])
		copy(ip[16:], ends[1-side][:])
	}
	frame := make([]byte, 12)
	for range w.tags {
		frame = append(frame, 0x81, 0x00, 0, 5)
	}
	frame = be.AppendUint16(frame, etherType)
	frame = append(append(frame, ip...), tcp...)
	w.frames = append(w.frames, wireFrame{data: frame, wire: len(frame), at: w.now, link: packet.Ethernet})
}

func (w *wire) open() *wire {
	w.segment(0, syn, nil)
	w.segment(1, syn|ack, nil)
	w.segment(0, ack, nil)
	return w
}

func (w *wire) close() *wire {
	w.segment(0, fin|ack, nil)
	w.segment(1, fin|ack, nil)
	return w
}

// send appends a message of a side, cut into segments.
func (w *wire) send(side int, message []byte) *wire {
	if w.first > 0 && w.first < len(message) {
		w.segment(side, psh, message[:w.first])
		message = message[w.first:]
	}
	for len(message) > w.most {
		w.segment(side, psh, message[:w.most])
		message = message[w.most:]
	}
	w.segment(side, psh, message)
	return w
}

// ask sends a command and its reply.
func (w *wire) ask(id uint32, command, reply bson.D, sequences ...[]byte) *wire {
	w.send(0, msg(w.t, id, 0, 0, append([][]byte{kind0(w.t, command)}, sequences...)...))
	return w.send(1, msg(w.t, id+1<<20, id, 0, kind0(w.t, reply)))
}

func doc(t testing.TB, d any) []byte {
	t.Helper()
	b, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func message(op mongo.Op, id, to uint32, body []byte) []byte {
	b := le.AppendUint32(nil, uint32(mongo.HeaderBytes+len(body)))
	b = le.AppendUint32(b, id)
	b = le.AppendUint32(b, to)
	b = le.AppendUint32(b, uint32(op))
	return append(b, body...)
}

func kind0(t testing.TB, d bson.D) []byte { return append([]byte{0}, doc(t, d)...) }

func kind1(t testing.TB, name string, docs ...bson.D) []byte {
	inner := append([]byte(name), 0)
	for _, d := range docs {
		inner = append(inner, doc(t, d)...)
	}
	return append(append([]byte{1}, le.AppendUint32(nil, uint32(4+len(inner)))...), inner...)
}

// The flags of OP_MSG.
const (
	checksum   = 1
	moreToCome = 2
	exhaust    = 1 << 16
)

func msg(_ testing.TB, id, to, flags uint32, sections ...[]byte) []byte {
	b := le.AppendUint32(nil, flags)
	for _, s := range sections {
		b = append(b, s...)
	}
	if flags&checksum != 0 {
		b = append(b, 1, 2, 3, 4)
	}
	return message(mongo.OpMsg, id, to, b)
}

func snappy(plain []byte) []byte {
	body := plain[mongo.HeaderBytes:]
	b := append([]byte(nil), plain[12:16]...)
	b = le.AppendUint32(b, uint32(len(body)))
	b = append(b, 1)
	return message(mongo.OpCompressed, le.Uint32(plain[4:]), le.Uint32(plain[8:]), append(b, s2.EncodeSnappy(nil, body)...))
}

// legacy builds the body of an operation with a namespace.
func legacy(first uint32, ns string, rest ...[]byte) []byte {
	b := append(append(le.AppendUint32(nil, first), ns...), 0)
	for _, r := range rest {
		b = append(b, r...)
	}
	return b
}

func numbers(v ...uint32) (b []byte) {
	for _, n := range v {
		b = le.AppendUint32(b, n)
	}
	return b
}

// sniffed runs frames through a sniffer and returns it.
func sniffed(t testing.TB, frames []wireFrame, ports ...uint16) *Sniffer {
	t.Helper()
	s, err := New(Options{Ports: ports})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ReadAll(&memory{frames: frames}); err != nil {
		t.Fatal(err)
	}
	return s
}

// counts turns a report's commands into "namespace command": [requests, errors, unacknowledged].
func counts(r Report) map[string][3]uint64 {
	out := map[string][3]uint64{}
	for _, c := range r.Commands {
		out[c.Namespace+" "+c.Command] = [3]uint64{c.Requests, c.Errors, c.Unacknowledged}
	}
	return out
}

var ok = bson.D{{Key: "ok", Value: 1.0}}

func find(collection string, filter bson.D) bson.D {
	if filter == nil {
		filter = bson.D{}
	}
	return bson.D{{Key: "find", Value: collection}, {Key: "filter", Value: filter}, {Key: "$db", Value: "shop"}}
}

// cursorReply is the reply that opens a cursor, or goes on with it.
func cursorReply(id int64, batch string, docs int) bson.D {
	var b bson.A
	for i := range docs {
		b = append(b, bson.D{{Key: "_id", Value: i}})
	}
	return bson.D{{Key: "cursor", Value: bson.D{{Key: batch, Value: b}, {Key: "id", Value: id}, {Key: "ns", Value: "shop.users"}}}, {Key: "ok", Value: 1.0}}
}

// decodeFrame decodes a frame into the sniffer's packet.
func decodeFrame(f wireFrame, s *Sniffer) bool {
	return packet.Decode(f.link, f.data, f.wire, &s.packet) == packet.TCP
}

// decoded returns a built frame as a source gives it.
func decoded(f wireFrame) capture.Frame {
	return capture.Frame{Data: f.data, WireBytes: f.wire, At: f.at, Link: f.link}
}
