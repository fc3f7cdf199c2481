package packet

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"tidemark/test/fuzztest"
)

// tcp builds a TCP segment with the given options and payload.
func tcp(options int, payload []byte) []byte {
	b := make([]byte, 20+options)
	binary.BigEndian.PutUint16(b, 40000)
	binary.BigEndian.PutUint16(b[2:], 27017)
	binary.BigEndian.PutUint32(b[4:], 7)
	binary.BigEndian.PutUint32(b[8:], 9)
	b[12] = byte((20+options)/4) << 4
	b[13] = ACK | PSH
	return append(b, payload...)
}

func ipv4(options int, fragment uint16, payload []byte) []byte {
	b := make([]byte, 20+options)
	b[0] = 0x40 | byte((20+options)/4)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)+len(payload)))
	binary.BigEndian.PutUint16(b[6:], fragment)
	b[9] = protocolTCP
	copy(b[12:], []byte{127, 0, 0, 1})
	copy(b[16:], []byte{127, 0, 0, 2})
	return append(b, payload...)
}

func ipv6(next byte, payload []byte) []byte {
	b := make([]byte, 40)
	b[0] = 0x60
	binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
	b[6] = next
	b[23], b[39] = 1, 2
	return append(b, payload...)
}

func ether(etherType uint16, tags int, payload []byte) []byte {
	b := make([]byte, 12)
	for i := range tags {
		t := uint16(etherVLAN)
		if i == 0 && tags > 1 {
			t = etherQinQ
		}
		b = binary.BigEndian.AppendUint16(b, t)
		b = binary.BigEndian.AppendUint16(b, 100)
	}
	b = binary.BigEndian.AppendUint16(b, etherType)
	return append(b, payload...)
}

func TestDecode(t *testing.T) {
	body := []byte("hello")
	four := ipv4(0, 0, tcp(12, body))
	six := ipv6(protocolTCP, tcp(0, body))
	extended := ipv6(extHopByHop, append([]byte{extDestination, 0, 0, 0, 0, 0, 0, 0, protocolTCP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, tcp(0, body)...))
	wholeFragment := ipv6(extFragment, append([]byte{protocolTCP, 0, 0, 0, 0, 0, 0, 1}, tcp(0, body)...))
	offloaded := ipv4(0, 0, tcp(0, body))
	offloaded[2], offloaded[3] = 0, 0
	sll := append(append([]byte{0, 4, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0}, 8, 0), four...)
	sll2 := append(append([]byte{0x86, 0xDD, 0, 0, 0, 0, 0, 1, 3, 4, 4, 6}, make([]byte, 8)...), six...)
	f := func(name string, link LinkType, frame []byte, want Verdict) {
		t.Helper()
		var p Packet
		if got := Decode(link, frame, len(frame), &p); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
			return
		}
		if want != TCP {
			return
		}
		if !bytes.Equal(p.Payload, body) || p.PayloadBytes != len(body) || p.SourcePort != 40000 || p.DestinationPort != 27017 || p.Sequence != 7 || p.Acknowledgement != 9 || p.Flags != ACK|PSH {
			t.Errorf("%s: decoded %+v", name, p)
		}
		if p.Outgoing != (link == SLL || link == SLL2) {
			t.Errorf("%s: outgoing is %v", name, p.Outgoing)
		}
		if p.Source[15] != 1 || p.Destination[15] != 2 {
			t.Errorf("%s: addresses %v %v", name, p.Source, p.Destination)
		}
	}
	f("plain", Ethernet, ether(etherIPv4, 0, four), TCP)
	f("padded", Ethernet, append(ether(etherIPv4, 0, four), 0, 0, 0, 0), TCP)
	f("VLAN", Ethernet, ether(etherIPv4, 1, four), TCP)
	f("QinQ", Ethernet, ether(etherIPv6, 2, six), TCP)
	f("too many tags", Ethernet, ether(etherIPv6, 9, six), Malformed)
	f("IPv4 options", Ethernet, ether(etherIPv4, 0, ipv4(8, 0, tcp(0, body))), TCP)
	f("offloaded length", Ethernet, ether(etherIPv4, 0, offloaded), TCP)
	f("do not fragment", Ethernet, ether(etherIPv4, 0, ipv4(0, 0x4000, tcp(0, body))), TCP)
	f("first fragment", Ethernet, ether(etherIPv4, 0, ipv4(0, 0x2000, tcp(0, body))), Fragment)
	f("later fragment", Ethernet, ether(etherIPv4, 0, ipv4(0, 0x0010, tcp(0, body))), Fragment)
	f("IPv6", Ethernet, ether(etherIPv6, 0, six), TCP)
	f("IPv6 extensions", Ethernet, ether(etherIPv6, 0, extended), TCP)
	f("IPv6 atomic fragment", Ethernet, ether(etherIPv6, 0, wholeFragment), TCP)
	f("raw", Raw, four, TCP)
	f("null", Null, append([]byte{2, 0, 0, 0}, four...), TCP)
	f("loop", Loop, append([]byte{0, 0, 0, 24}, six...), TCP)
	f("SLL", SLL, sll, TCP)
	f("SLL2", SLL2, sll2, TCP)
	f("ARP", Ethernet, ether(0x0806, 0, four), Other)
	f("short Ethernet", Ethernet, []byte{1, 2, 3}, Truncated)
	f("unknown link", LinkType(9999), four, Other)
	bad := bytes.Clone(four)
	bad[0] = 0x41
	f("bad IPv4 header length", Raw, bad, Malformed)
}

// Every cut of a good frame must give a verdict and never a panic or bytes beyond the cut.
func TestDecode_cut(t *testing.T) {
	frame := ether(etherIPv4, 1, ipv4(8, 0, tcp(12, []byte("payload"))))
	for n := range frame {
		var p Packet
		if v := Decode(Ethernet, frame[:n], len(frame), &p); v == TCP && len(p.Payload) > n {
			t.Fatalf("cut at %d: payload of %d bytes", n, len(p.Payload))
		}
	}
	var p Packet
	if v := Decode(Ethernet, frame[:len(frame)-3], len(frame), &p); v != TCP || p.PayloadBytes != 7 || len(p.Payload) != 4 {
		t.Errorf("snapped frame: %s, %d of %d payload bytes", v, len(p.Payload), p.PayloadBytes)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(uint32(Ethernet), ether(etherIPv4, 1, ipv4(8, 0, tcp(12, []byte("payload")))))
	f.Add(uint32(Raw), ipv6(extHopByHop, append([]byte{protocolTCP, 0, 0, 0, 0, 0, 0, 0}, tcp(0, nil)...)))
	f.Fuzz(func(t *testing.T, link uint32, frame []byte) {
		fuzztest.Within(t, 64<<10, func() {
			var p Packet
			if Decode(LinkType(link), frame, len(frame), &p) == TCP && (len(p.Payload) > len(frame) || p.PayloadBytes < len(p.Payload)) {
				t.Errorf("payload %d of %d bytes in a frame of %d", len(p.Payload), p.PayloadBytes, len(frame))
			}
		})
	})
}

func benchmarkFrame() []byte { return ether(etherIPv4, 0, ipv4(0, 0, tcp(12, make([]byte, 215)))) }

func BenchmarkDecode(b *testing.B) {
	frame := benchmarkFrame()
	var p Packet
	b.ReportAllocs()
	for b.Loop() {
		if Decode(Ethernet, frame, len(frame), &p) != TCP {
			b.Fatal("not TCP")
		}
	}
}

// The two ways of gopacket, for the ratio.
func BenchmarkDecode_gopacketNewPacket(b *testing.B) {
	frame := benchmarkFrame()
	b.ReportAllocs()
	for b.Loop() {
		if gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default).TransportLayer() == nil {
			b.Fatal("not TCP")
		}
	}
}

func BenchmarkDecode_gopacketParser(b *testing.B) {
	frame := benchmarkFrame()
	var (
		eth     layers.Ethernet
		ip      layers.IPv4
		tcp     layers.TCP
		payload gopacket.Payload
		decoded []gopacket.LayerType
	)
	parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &eth, &ip, &tcp, &payload)
	b.ReportAllocs()
	for b.Loop() {
		if err := parser.DecodeLayers(frame, &decoded); err != nil {
			b.Fatal(err)
		}
	}
}
