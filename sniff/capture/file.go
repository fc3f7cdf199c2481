package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"tidemark/sniff/packet"
)

// The magic numbers of capture files: pcap with microseconds and nanoseconds, pcapng's section header block.
const (
	magicMicros     = 0xA1B2C3D4
	magicNanos      = 0xA1B23C4D
	magicSection    = 0x0A0D0D0A
	sectionByteTest = 0x1A2B3C4D
)

// File reads a pcap or pcapng file. Sources: the pcap-savefile manual page and draft-ietf-opsawg-pcapng.
type File struct {
	in     *bufio.Reader
	closer io.Closer
	order  binary.ByteOrder
	buffer []byte
	offset int64

	// Classic pcap.
	link      packet.LinkType
	tickNanos int64

	// pcapng; nil for classic files.
	interfaces []captureInterface
	next       bool // true for pcapng
}

// captureInterface is one interface description block.
type captureInterface struct {
	link packet.LinkType
	// snap is how much of a frame was captured at most; 0 is without limit.
	snap uint32
	// ticks per second of its time stamps, and the seconds to add to them.
	ticks  uint64
	offset int64
}

// NewFile reads the header of a capture file. It closes r with Close if r is an io.Closer.
func NewFile(r io.Reader) (*File, error) {
	f := &File{in: bufio.NewReaderSize(r, 1<<20)}
	f.closer, _ = r.(io.Closer)
	head, err := f.take(4)
	if err != nil {
		return nil, fmt.Errorf("capture file: %w", noHeader(err))
	}
	little, big := binary.LittleEndian.Uint32(head), binary.BigEndian.Uint32(head)
	switch {
	case little == magicSection:
		f.next = true
		return f, f.section()
	case little == magicMicros || little == magicNanos:
		f.order = binary.LittleEndian
		return f, f.classicHeader(little)
	case big == magicMicros || big == magicNanos:
		f.order = binary.BigEndian
		return f, f.classicHeader(big)
	}
	if head[0] == 0x1f && head[1] == 0x8b {
		return nil, errors.New("capture file: it is packed with gzip; unpack it first: gzip -dc FILE | tidemark mongo report --pcap -")
	}
	return nil, fmt.Errorf("capture file: the first bytes are %x; expected a pcap or pcapng file", head)
}

func noHeader(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("shorter than a header")
	}
	return err
}

// take returns the next n bytes, valid until the next take.
func (f *File) take(n int) ([]byte, error) {
	if n > cap(f.buffer) {
		f.buffer = make([]byte, max(n, 64<<10))
	}
	b := f.buffer[:n]
	read, err := io.ReadFull(f.in, b)
	f.offset += int64(read)
	return b, err
}

// cut names the place where a file ends too early.
func (f *File) cut(what string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("capture file: ends within %s at byte %d: %w", what, f.offset, io.ErrUnexpectedEOF)
	}
	return err
}

func (f *File) classicHeader(magic uint32) error {
	f.tickNanos = 1000
	if magic == magicNanos {
		f.tickNanos = 1
	}
	b, err := f.take(20)
	if err != nil {
		return f.cut("the header", err)
	}
	// The upper bits say whether frames end in a check sequence, and how long it is.
	f.link = packet.LinkType(f.order.Uint32(b[16:]) & 0xffff)
	if !f.link.Known() {
		return fmt.Errorf("capture file: link type %d is not understood; expected Ethernet (1), Linux cooked (113, 276), loopback (0, 108) or raw IP (101)", f.link)
	}
	return nil
}

// Next implements Source.
func (f *File) Next(out *Frame) error {
	if f.next {
		return f.nextBlock(out)
	}
	b, err := f.take(16)
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err != nil {
		return f.cut("a packet header", err)
	}
	captured := f.order.Uint32(b[8:])
	out.At = int64(f.order.Uint32(b))*1e9 + int64(f.order.Uint32(b[4:]))*f.tickNanos
	out.WireBytes = int(f.order.Uint32(b[12:]))
	if captured > MaxFrameBytes {
		return fmt.Errorf("capture file: a packet of %d bytes at byte %d; the limit is %d", captured, f.offset, MaxFrameBytes)
	}
	data, err := f.take(int(captured))
	if err != nil {
		return f.cut("a packet", err)
	}
	out.Data, out.Link = data, f.link
	out.WireBytes = max(out.WireBytes, len(data))
	return nil
}

// Stats implements Source; a file loses nothing.
func (f *File) Stats() (Stats, error) { return Stats{}, nil }

// Close closes the reader.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}
