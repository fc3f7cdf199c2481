package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"tidemark/sniff/packet"
)

// The block types of pcapng that matter here; others are passed over.
const (
	blockInterface    = 1
	blockOldPacket    = 2
	blockSimplePacket = 3
	blockPacket       = 6
)

const (
	// maxBlockBytes bounds one block; maxInterfaces what a section may declare.
	maxBlockBytes = MaxFrameBytes + 64<<10
	maxInterfaces = 4096

	optionEnd        = 0
	optionTicks      = 9  // if_tsresol
	optionTimeOffset = 14 // if_tsoffset
)

// section reads a section header block behind its type.
func (f *File) section() error {
	b, err := f.take(8)
	if err != nil {
		return f.cut("a section header", err)
	}
	switch {
	case binary.LittleEndian.Uint32(b[4:]) == sectionByteTest:
		f.order = binary.LittleEndian
	case binary.BigEndian.Uint32(b[4:]) == sectionByteTest:
		f.order = binary.BigEndian
	default:
		return fmt.Errorf("capture file: the section header at byte %d has byte-order magic %x", f.offset-4, b[4:])
	}
	length := f.order.Uint32(b)
	if length < 28 || length > maxBlockBytes || length%4 != 0 {
		return fmt.Errorf("capture file: the section header has a length of %d bytes", length)
	}
	f.interfaces = f.interfaces[:0]
	if _, err := f.take(int(length) - 12); err != nil {
		return f.cut("a section header", err)
	}
	return nil
}

// nextBlock reads blocks until one holds a frame.
func (f *File) nextBlock(out *Frame) error {
	for {
		b, err := f.take(4)
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		if err != nil {
			return f.cut("a block", err)
		}
		kind := f.order.Uint32(b)
		if kind == magicSection {
			if err := f.section(); err != nil {
				return err
			}
			continue
		}
		if b, err = f.take(4); err != nil {
			return f.cut("a block", err)
		}
		length := f.order.Uint32(b)
		if length < 12 || length%4 != 0 || matters(kind) && length > maxBlockBytes {
			return fmt.Errorf("capture file: the block at byte %d has a length of %d bytes; expected a multiple of 4 up to %d", f.offset-8, length, maxBlockBytes)
		}
		if !matters(kind) {
			// Secrets, names of hosts, notes: as long as they like.
			passed, err := io.CopyN(io.Discard, f.in, int64(length)-8)
			if f.offset += passed; err != nil {
				return f.cut("a block", err)
			}
			continue
		}
		if b, err = f.take(int(length) - 8); err != nil {
			return f.cut("a block", err)
		}
		found, err := f.block(kind, b[:len(b)-4], out)
		if err != nil || found {
			return err
		}
	}
}

func matters(kind uint32) bool {
	return kind == blockInterface || kind == blockPacket || kind == blockOldPacket || kind == blockSimplePacket
}

// block handles one block's body and reports whether it held a frame.
func (f *File) block(kind uint32, body []byte, out *Frame) (bool, error) {
	switch kind {
	case blockInterface:
		return false, f.describe(body)
	case blockPacket, blockOldPacket:
		if len(body) < 20 {
			return false, fmt.Errorf("capture file: a packet block of %d bytes at byte %d", len(body), f.offset)
		}
		index := f.order.Uint32(body)
		if kind == blockOldPacket {
			index = uint32(f.order.Uint16(body))
		}
		ticks := uint64(f.order.Uint32(body[4:]))<<32 | uint64(f.order.Uint32(body[8:]))
		return f.frame(index, ticks, f.order.Uint32(body[12:]), f.order.Uint32(body[16:]), body[20:], out)
	case blockSimplePacket:
		if len(body) < 4 {
			return false, fmt.Errorf("capture file: a simple packet block of %d bytes at byte %d", len(body), f.offset)
		}
		wire := f.order.Uint32(body)
		captured := min(wire, uint32(len(body)-4))
		if len(f.interfaces) > 0 && f.interfaces[0].snap > 0 {
			// Nothing else tells the frame from the padding behind it.
			captured = min(captured, f.interfaces[0].snap)
		}
		return f.frame(0, 0, captured, wire, body[4:], out)
	}
	return false, nil
}

// frame fills out; frames of an interface whose link type is not understood are passed over.
func (f *File) frame(index uint32, ticks uint64, captured, wire uint32, data []byte, out *Frame) (bool, error) {
	if int64(index) >= int64(len(f.interfaces)) {
		return false, fmt.Errorf("capture file: a packet at byte %d names interface %d of %d", f.offset, index, len(f.interfaces))
	}
	if int64(captured) > int64(len(data)) || captured > MaxFrameBytes {
		return false, fmt.Errorf("capture file: a packet of %d bytes at byte %d in a block that holds %d", captured, f.offset, len(data))
	}
	from := f.interfaces[index]
	if !from.link.Known() {
		return false, nil
	}
	high, low := bits.Mul64(ticks%from.ticks, 1e9)
	nanos, _ := bits.Div64(high, low, from.ticks)
	*out = Frame{
		Data: data[:captured], WireBytes: max(int(wire), int(captured)), Link: from.link,
		At: (int64(ticks/from.ticks)+from.offset)*1e9 + int64(nanos),
	}
	return true, nil
}

// describe reads an interface description block.
func (f *File) describe(body []byte) error {
	if len(body) < 8 {
		return fmt.Errorf("capture file: an interface block of %d bytes at byte %d", len(body), f.offset)
	}
	if len(f.interfaces) >= maxInterfaces {
		return fmt.Errorf("capture file: more than %d interfaces in one section", maxInterfaces)
	}
	d := captureInterface{link: packet.LinkType(f.order.Uint16(body)), snap: f.order.Uint32(body[4:]), ticks: 1e6}
	for options := body[8:]; len(options) >= 4; {
		code, size := f.order.Uint16(options), int(f.order.Uint16(options[2:]))
		padded := (size + 3) &^ 3
		if code == optionEnd || 4+padded > len(options) {
			break
		}
		value := options[4 : 4+size]
		if code == optionTicks && size == 1 {
			d.ticks = ticksPerSecond(value[0])
		}
		if code == optionTimeOffset && size == 8 {
			d.offset = int64(f.order.Uint64(value))
		}
		options = options[4+padded:]
	}
	f.interfaces = append(f.interfaces, d)
	return nil
}

// ticksPerSecond decodes if_tsresol: a power of two if the top bit is set, else of ten. Impossible ones give microseconds.
func ticksPerSecond(resolution byte) uint64 {
	power := resolution & 0x7f
	if resolution&0x80 != 0 {
		if power > 62 {
			return 1e6
		}
		return 1 << power
	}
	if power > 18 {
		return 1e6
	}
	ticks := uint64(1)
	for range power {
		ticks *= 10
	}
	return ticks
}
