package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"tidemark/sniff/packet"
	"tidemark/test/fuzztest"
)

// pcapFile builds a classic file with the given order, magic and packets.
func pcapFile(order binary.AppendByteOrder, magic uint32, frames ...[]byte) []byte {
	b := order.AppendUint32(nil, magic)
	b = order.AppendUint16(b, 2)
	b = order.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...)
	b = order.AppendUint32(b, 262144)
	b = order.AppendUint32(b, uint32(packet.Ethernet))
	for i, f := range frames {
		b = order.AppendUint32(b, uint32(100+i))
		b = order.AppendUint32(b, 5)
		b = order.AppendUint32(b, uint32(len(f)))
		b = order.AppendUint32(b, uint32(len(f)+10))
		b = append(b, f...)
	}
	return b
}

func pcapngBlock(kind uint32, body []byte) []byte {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	n := uint32(len(body) + 12)
	b := binary.LittleEndian.AppendUint32(nil, kind)
	b = binary.LittleEndian.AppendUint32(b, n)
	b = append(b, body...)
	return binary.LittleEndian.AppendUint32(b, n)
}

func pcapngFile() []byte {
	le := binary.LittleEndian
	section := le.AppendUint32(nil, sectionByteTest)
	section = append(section, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	micros := append(le.AppendUint16(nil, 1), 0, 0, 0, 0, 0, 0)
	nanos := append(bytes.Clone(micros), 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0)
	var unknown []byte
	unknown = append(le.AppendUint16(unknown, 147), 0, 0, 0, 0, 0, 0)
	frame := func(index uint32, ticks uint64, data string) []byte {
		b := le.AppendUint32(nil, index)
		b = le.AppendUint32(b, uint32(ticks>>32))
		b = le.AppendUint32(b, uint32(ticks))
		b = le.AppendUint32(b, uint32(len(data)))
		b = le.AppendUint32(b, uint32(len(data)))
		return append(b, data...)
	}
	out := pcapngBlock(magicSection, section)
	out = append(out, pcapngBlock(blockInterface, micros)...)
	out = append(out, pcapngBlock(blockInterface, nanos)...)
	out = append(out, pcapngBlock(blockInterface, unknown)...)
	out = append(out, pcapngBlock(99, []byte("passed over"))...)
	out = append(out, pcapngBlock(blockPacket, frame(0, 7_000_005, "abc"))...)
	out = append(out, pcapngBlock(blockPacket, frame(2, 1, "unknown link"))...)
	out = append(out, pcapngBlock(blockPacket, frame(1, 7_000_000_005, "defg"))...)
	return append(out, pcapngBlock(blockSimplePacket, append(le.AppendUint32(nil, 2), "hi"...))...)
}

// drain reads all frames and returns their data and times.
func drain(t *testing.T, file []byte) (data []string, at []int64) {
	t.Helper()
	f, err := NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var frame Frame
	for {
		err := f.Next(&frame)
		if errors.Is(err, io.EOF) {
			return data, at
		}
		if err != nil {
			t.Fatal(err)
		}
		data, at = append(data, string(frame.Data)), append(at, frame.At)
	}
}

func TestFile(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		data, at := drain(t, pcapFile(order, magicMicros, []byte("one"), []byte("two")))
		if len(data) != 2 || data[1] != "two" || at[0] != 100e9+5000 || at[1] != 101e9+5000 {
			t.Errorf("%v microseconds: %q %v", order, data, at)
		}
		if _, at := drain(t, pcapFile(order, magicNanos, []byte("one"))); at[0] != 100e9+5 {
			t.Errorf("%v nanoseconds: %v", order, at)
		}
	}
	data, at := drain(t, pcapngFile())
	if len(data) != 3 || data[0] != "abc" || data[1] != "defg" || data[2] != "hi" {
		t.Errorf("pcapng: %q", data)
	}
	if at[0] != 7_000_005_000 || at[1] != 7_000_000_005 {
		t.Errorf("pcapng times: %v", at)
	}
}

func TestFile_bad(t *testing.T) {
	for name, file := range map[string][]byte{
		"empty": nil, "packed": {0x1f, 0x8b, 8, 0, 0, 0, 0, 0}, "foreign": []byte("GIF89a, not a capture at all"),
		"huge packet": append(pcapFile(binary.LittleEndian, magicMicros)[:24], 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0),
	} {
		f, err := NewFile(bytes.NewReader(file))
		if err == nil {
			err = f.Next(&Frame{})
		}
		if err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add(pcapFile(binary.BigEndian, magicNanos, []byte("one")))
	f.Add(pcapngFile())
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzztest.Within(t, 2<<20, func() {
			file, err := NewFile(bytes.NewReader(b))
			if err != nil {
				return
			}
			var frame Frame
			for range len(b) + 1 {
				if file.Next(&frame) != nil {
					return
				}
			}
			t.Error("more frames than bytes")
		})
	})
}

// TestRing captures a real TCP exchange on loopback, each way and each family, and sees every segment once.
func TestRing(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		for _, device := range []string{"lo", "any"} {
			t.Run(device+" "+address, func(t *testing.T) { captureExchange(t, device, address) })
		}
	}
}

func captureExchange(t *testing.T, device, address string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	r, err := OpenRing(RingOptions{Interface: device, Ports: []uint16{port}, RingBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	body := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	exchange(t, l, body)
	sent, answered := collect(t, r, port)
	if !bytes.Equal(sent, body) {
		t.Errorf("captured %d bytes to the server, want the %d that were sent, once", len(sent), len(body))
	}
	if string(answered) != "thanks" {
		t.Errorf("captured answer %q", answered)
	}
	if s, err := r.Stats(); err != nil || s.Dropped != 0 {
		t.Errorf("stats %+v %v", s, err)
	}
}

func exchange(t *testing.T, l net.Listener, body []byte) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			done <- err
			return
		}
		defer c.Close()
		if _, err = io.ReadFull(c, make([]byte, len(body))); err == nil {
			_, err = c.Write([]byte("thanks"))
		}
		done <- err
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(body); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(c); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// collect reads frames until both ends have closed.
func collect(t *testing.T, r *Ring, port uint16) (sent, answered []byte) {
	t.Helper()
	var frame Frame
	var p packet.Packet
	for fins, idle := 0, 0; fins < 2 && idle < 100; {
		err := r.Next(&frame)
		if errors.Is(err, ErrTimeout) {
			idle++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if v := packet.Decode(frame.Link, frame.Data, frame.WireBytes, &p); v != packet.TCP {
			t.Fatalf("a frame that is %s passed the filter", v)
		}
		switch port {
		case p.DestinationPort:
			sent = append(sent, p.Payload...)
		case p.SourcePort:
			answered = append(answered, p.Payload...)
		default:
			t.Fatalf("ports %d and %d passed the filter for %d", p.SourcePort, p.DestinationPort, port)
		}
		if p.Flags&packet.FIN != 0 {
			fins++
		}
	}
	return sent, answered
}

func TestOpenRing_unknownInterface(t *testing.T) {
	if _, err := OpenRing(RingOptions{Interface: "nosuch0"}); err == nil {
		t.Error("no error for an unknown interface")
	}
	if os.Geteuid() != 0 {
		t.Error("the capture tests need root")
	}
}
