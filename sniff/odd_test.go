package sniff

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"testing"

	"github.com/klauspost/compress/s2"
	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/sniff/capture"
	"tidemark/sniff/packet"
	"tidemark/wire/mongo"
)

// conversation is a little of everything that a capture may hold.
func conversation(t *testing.T, six bool) (frames []wireFrame, want map[string][3]uint64) {
	w := newWire(t)
	w.six = six
	w.open()
	w.ask(1, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}, ok)
	w.ask(2, find("users", bson.D{{Key: "a", Value: 1}}), cursorReply(77, "firstBatch", 2))
	w.ask(3, bson.D{{Key: "getMore", Value: int64(77)}, {Key: "collection", Value: "users"}, {Key: "$db", Value: "shop"}}, cursorReply(0, "nextBatch", 1))
	w.ask(4, bson.D{{Key: "insert", Value: "orders"}, {Key: "$db", Value: "shop"}}, bson.D{{Key: "n", Value: 1}, {Key: "ok", Value: 1}}, kind1(t, "documents", bson.D{{Key: "text", Value: string(make([]byte, 3000))}}))
	plain := msg(t, 5, 0, 0, kind0(t, find("users", bson.D{{Key: "b", Value: 1}})))
	packed := binary.LittleEndian.AppendUint32(nil, uint32(mongo.OpMsg))
	packed = binary.LittleEndian.AppendUint32(packed, uint32(len(plain)-mongo.HeaderBytes))
	packed = append(append(packed, 1), s2.EncodeSnappy(nil, plain[mongo.HeaderBytes:])...)
	w.send(0, message(mongo.OpCompressed, 5, 0, packed))
	w.send(1, msg(t, 6, 5, 0, kind0(t, bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 2}})))
	w.close()
	return w.frames, map[string][3]uint64{"shop.users find": {2, 1, 0}, "shop.users getMore": {1, 0, 0}, "shop.orders insert": {1, 0, 0}}
}

// splice puts bytes into a frame.
func splice(frame []byte, at int, more ...byte) []byte {
	return append(append(bytes.Clone(frame[:at]), more...), frame[at:]...)
}

// The frames of a conversation in other clothes.
var clothes = map[string]struct {
	six  bool
	link packet.LinkType
	wear func(ethernet []byte) []byte
}{
	"SLL": {link: packet.SLL, wear: func(b []byte) []byte {
		return append(append([]byte{0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0}, b[12:14]...), b[14:]...)
	}},
	"SLL2": {link: packet.SLL2, wear: func(b []byte) []byte {
		return append(append(bytes.Clone(b[12:14]), make([]byte, 18)...), b[14:]...)
	}},
	"SLL2 with a tag": {link: packet.SLL2, wear: func(b []byte) []byte {
		head := append([]byte{0x81, 0}, make([]byte, 18)...)
		return append(append(head, 0, 5, b[12], b[13]), b[14:]...)
	}},
	"loopback of a little machine":     {link: packet.Null, wear: func(b []byte) []byte { return append([]byte{2, 0, 0, 0}, b[14:]...) }},
	"loopback of a big machine":        {link: packet.Null, wear: func(b []byte) []byte { return append([]byte{0, 0, 0, 2}, b[14:]...) }},
	"loopback of OpenBSD":              {link: packet.Loop, six: true, wear: func(b []byte) []byte { return append([]byte{0, 0, 0, 24}, b[14:]...) }},
	"raw":                              {link: packet.Raw, wear: func(b []byte) []byte { return b[14:] }},
	"raw IPv6":                         {link: packet.RawIPv6, six: true, wear: func(b []byte) []byte { return b[14:] }},
	"QinQ":                             {link: packet.Ethernet, wear: func(b []byte) []byte { return splice(b, 12, 0x88, 0xA8, 0, 7, 0x81, 0, 0, 8) }},
	"a tag of old":                     {link: packet.Ethernet, six: true, wear: func(b []byte) []byte { return splice(b, 12, 0x91, 0, 0, 7) }},
	"padded, as short Ethernet frames": {link: packet.Ethernet, wear: func(b []byte) []byte { return append(bytes.Clone(b), make([]byte, 6)...) }},
	"IPv4 with options": {link: packet.Ethernet, wear: func(b []byte) []byte {
		b = splice(b, 34, 1, 1, 1, 1, 1, 1, 1, 0)
		b[14] = 0x47
		be.PutUint16(b[16:], be.Uint16(b[16:])+8)
		return b
	}},
	"no length, as offloaded sends": {link: packet.Ethernet, wear: func(b []byte) []byte {
		b = bytes.Clone(b)
		be.PutUint16(b[16:], 0)
		return b
	}},
	"TCP with options": {link: packet.Ethernet, wear: func(b []byte) []byte {
		b = splice(b, 54, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2)
		b[46] = 8 << 4
		be.PutUint16(b[16:], be.Uint16(b[16:])+12)
		return b
	}},
	"IPv6 with extension headers": {link: packet.Ethernet, six: true, wear: func(b []byte) []byte {
		b = splice(b, 54, 43, 0, 1, 4, 0, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		b[20] = 0
		be.PutUint16(b[18:], be.Uint16(b[18:])+32)
		return b
	}},
}

// readFile sniffs a capture file.
func readFile(t *testing.T, file []byte) Report {
	t.Helper()
	source, err := capture.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ReadAll(source); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return s.Report()
}

// classic writes a pcap file.
func classic(order binary.AppendByteOrder, magic uint32, frames []wireFrame) []byte {
	b := order.AppendUint32(nil, magic)
	b = order.AppendUint16(order.AppendUint16(b, 2), 4)
	b = order.AppendUint32(append(b, make([]byte, 8)...), 65535)
	b = order.AppendUint32(b, uint32(frames[0].link))
	tick := int64(1000)
	if magic == 0xA1B23C4D {
		tick = 1
	}
	for _, f := range frames {
		b = order.AppendUint32(order.AppendUint32(b, uint32(f.at/1e9)), uint32(f.at%1e9/tick))
		b = order.AppendUint32(order.AppendUint32(b, uint32(len(f.data))), uint32(f.wire))
		b = append(b, f.data...)
	}
	return b
}

// next writes a pcapng section whose interfaces are the link types of its frames and one more that nobody knows; blocks that matter to nobody stand
// between, and the kind of packet block changes.
func next(order binary.AppendByteOrder, frames []wireFrame) []byte {
	block := func(kind uint32, body []byte) []byte {
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
		b := order.AppendUint32(order.AppendUint32(nil, kind), uint32(len(body)+12))
		return order.AppendUint32(append(b, body...), uint32(len(body)+12))
	}
	section := order.AppendUint32(nil, 0x1A2B3C4D)
	section = order.AppendUint16(order.AppendUint16(section, 1), 0)
	section = append(section, bytes.Repeat([]byte{0xff}, 8)...)
	out := block(0x0A0D0D0A, section)
	index := map[packet.LinkType]uint32{}
	add := func(link packet.LinkType) {
		index[link] = uint32(len(index))
		d := order.AppendUint32(order.AppendUint16(order.AppendUint16(nil, uint16(link)), 0), 0)
		d = append(order.AppendUint16(order.AppendUint16(d, 9), 1), 9, 0, 0, 0) // nanoseconds
		out = append(out, block(1, order.AppendUint32(d, 0))...)
	}
	add(147)
	for i, f := range frames {
		if _, known := index[f.link]; !known {
			add(f.link)
		}
		head := order.AppendUint32(nil, index[f.link])
		kind := uint32(6)
		if i%3 == 2 {
			head = order.AppendUint16(order.AppendUint16(nil, uint16(index[f.link])), 0)
			kind = 2
		}
		body := order.AppendUint32(order.AppendUint32(head, uint32(f.at>>32)), uint32(f.at))
		body = order.AppendUint32(order.AppendUint32(body, uint32(len(f.data))), uint32(f.wire))
		out = append(out, block(kind, append(body, f.data...))...)
		out = append(out, block(4, []byte("names of hosts"))...)
	}
	return append(out, block(5, make([]byte, 12))...)
}

// TestOddCaptures reads one conversation in every clothing from every kind of file.
func TestOddCaptures(t *testing.T) {
	le := binary.LittleEndian
	var mixed []wireFrame
	check := func(name string, file []byte, want map[string][3]uint64) {
		t.Helper()
		r := readFile(t, file)
		if got := counts(r); !maps.Equal(got, want) || r.Gaps != 0 || r.Unmatched.Requests+r.Unmatched.Replies != 0 {
			t.Errorf("%s: %v, %d gaps, unmatched %+v; want %v", name, got, r.Gaps, r.Unmatched, want)
		}
	}
	port := uint16(0)
	for name, c := range clothes {
		plain, want := conversation(t, c.six)
		port++
		var frames []wireFrame
		for _, f := range plain {
			data := bytes.Clone(f.data)
			ip := 14 + 20
			if c.six {
				ip = 14 + 40
			}
			for _, at := range []int{ip, ip + 2} { // Each clothing is a connection of its own.
				if p := be.Uint16(data[at:]); p == 40000 {
					be.PutUint16(data[at:], p+port)
				}
			}
			be.PutUint32(data[ip+4:], be.Uint32(data[ip+4:])+uint32(port)<<20)
			data = c.wear(data)
			frames = append(frames, wireFrame{data: data, wire: len(data), at: f.at, link: c.link})
		}
		check(name+", microseconds", classic(le, 0xA1B2C3D4, frames), want)
		check(name+", big-endian", classic(be, 0xA1B2C3D4, frames), want)
		check(name+", nanoseconds", classic(le, 0xA1B23C4D, frames), want)
		check(name+", big-endian nanoseconds", classic(be, 0xA1B23C4D, frames), want)
		check(name+", pcapng", next(le, frames), want)
		check(name+", big-endian pcapng", next(be, frames), want)
		half := len(frames) / 2
		check(name+", two sections of two machines", append(next(be, frames[:half]), next(le, frames[half:])...), want)
		mixed = append(mixed, frames...)
	}
	n := uint64(len(clothes))
	check("several interfaces", next(le, mixed), map[string][3]uint64{"shop.users find": {2 * n, n, 0}, "shop.users getMore": {n, 0, 0}, "shop.orders insert": {n, 0, 0}})
}
