package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"tidemark/sniff/packet"
)

// The bits above the link type say that frames end in a check sequence of 2 or 4 bytes.
func TestFile_checkSequence(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		file := pcapFile(order, magicMicros, []byte("one"))
		link := order.AppendUint32(nil, 2<<28|1<<26|uint32(packet.Ethernet))
		copy(file[20:], link)
		if data, _ := drain(t, file); len(data) != 1 || data[0] != "one" {
			t.Errorf("%v: %q", order, data)
		}
	}
}

// pcapngInterface builds an interface block with options.
func pcapngInterface(snap uint32, options ...[]byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(append(le.AppendUint16(nil, 1), 0, 0), snap)
	for _, o := range options {
		b = append(b, o...)
	}
	return pcapngBlock(blockInterface, append(b, 0, 0, 0, 0))
}

// A simple packet block does not say how much was captured: the least of the frame, the interface's limit and the block.
func TestFile_simplePackets(t *testing.T) {
	le := binary.LittleEndian
	section := pcapngFile()[:28]
	simple := func(wire uint32, data string) []byte {
		return pcapngBlock(blockSimplePacket, append(le.AppendUint32(nil, wire), data...))
	}
	for _, c := range []struct {
		snap, wire uint32
		data, want string
	}{
		{0, 5, "hello", "hello"}, {5, 100, "hello", "hello"}, {5, 5, "hello", "hello"}, {100, 5, "hello", "hello"}, {8, 6, "hello!", "hello!"},
	} {
		file := append(append(bytes.Clone(section), pcapngInterface(c.snap)...), simple(c.wire, c.data)...)
		if data, _ := drain(t, file); len(data) != 1 || data[0] != c.want {
			t.Errorf("limit %d, %d bytes on the wire: %q, want %q", c.snap, c.wire, data, c.want)
		}
	}
}

// Time stamps count in powers of ten or two of a second, and may be moved.
func TestFile_times(t *testing.T) {
	le := binary.LittleEndian
	option := func(code uint16, value ...byte) []byte {
		b := append(le.AppendUint16(le.AppendUint16(nil, code), uint16(len(value))), value...)
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
		return b
	}
	for name, c := range map[string]struct {
		options [][]byte
		ticks   uint64
		want    int64
	}{
		"microseconds":          {nil, 3_000_001, 3_000_001_000},
		"nanoseconds":           {[][]byte{option(optionTicks, 9)}, 3_000_000_001, 3_000_000_001},
		"picoseconds":           {[][]byte{option(optionTicks, 12)}, 3_000_000_001_999, 3_000_000_001},
		"seconds":               {[][]byte{option(optionTicks, 0)}, 3, 3e9},
		"1/1024 of a second":    {[][]byte{option(optionTicks, 0x80|10)}, 3*1024 + 512, 3_500_000_000},
		"2^-32 of a second":     {[][]byte{option(optionTicks, 0x80|32)}, 3<<32 | 1<<31, 3_500_000_000},
		"an hour later":         {[][]byte{option(1, 'x'), option(optionTicks, 3), option(optionTimeOffset, 0x10, 0x0e, 0, 0, 0, 0, 0, 0)}, 1, 3600e9 + 1e6},
		"an hour earlier":       {[][]byte{option(optionTimeOffset, 0xf0, 0xf1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)}, 7200e6, 3600e9},
		"a resolution of never": {[][]byte{option(optionTicks, 0xff)}, 3_000_001, 3_000_001_000},
	} {
		body := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 0), uint32(c.ticks>>32)), uint32(c.ticks))
		body = append(le.AppendUint32(le.AppendUint32(body, 3), 3), "abc"...)
		file := append(append(bytes.Clone(pcapngFile()[:28]), pcapngInterface(0, c.options...)...), pcapngBlock(blockPacket, body)...)
		if data, at := drain(t, file); len(data) != 1 || at[0] != c.want {
			t.Errorf("%s: %q at %v, want %d", name, data, at, c.want)
		}
	}
}

// Blocks that nobody asks for may be longer than any frame.
func TestFile_longBlocks(t *testing.T) {
	file := append(bytes.Clone(pcapngFile()[:28]), pcapngBlock(10, make([]byte, 3<<20))...)
	file = append(file, pcapngFile()[28:]...)
	if data, _ := drain(t, file); len(data) != 3 || data[0] != "abc" {
		t.Errorf("%q", data)
	}
	f, err := NewFile(bytes.NewReader(file[:1<<20]))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Next(&Frame{}); err == nil {
		t.Error("no error where a block is cut off")
	}
}

// A device that went down may come up again; one that is gone, or any other error, ends the capture.
func TestRing_failed(t *testing.T) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		index int
		code  unix.Errno
		waits bool
	}{{lo.Index, unix.ENETDOWN, true}, {0, unix.ENETDOWN, true}, {1 << 30, unix.ENETDOWN, false}, {lo.Index, unix.ENOMEM, false}} {
		r := Ring{index: c.index}
		if err := r.failed(c.code); err == nil || errors.Is(err, ErrTimeout) != c.waits {
			t.Errorf("device %d, %v: %v", c.index, c.code, err)
		}
	}
}
