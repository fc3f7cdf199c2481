// Package capture gives frames to the sniffer: from a network interface through a ring that the kernel fills (TPACKET_V3), or
// from a pcap or pcapng file.
package capture

import (
	"errors"

	"tidemark/sniff/packet"
)

// Frame is one captured frame. Data belongs to the source and is valid until the next call of Next.
type Frame struct {
	Data []byte
	// WireBytes is the frame's length on the wire, at least len(Data).
	WireBytes int
	// At is when it was captured, Unix nanoseconds.
	At   int64
	Link packet.LinkType
}

// Source gives frames in the order of their capture.
type Source interface {
	// Next fills f with the next frame. It returns io.EOF at the end of a file, and ErrTimeout when a live source saw
	// no frame for its poll time, so that the caller can do its periodic work.
	Next(f *Frame) error
	// Stats returns what the source lost so far.
	Stats() (Stats, error)
	Close() error
}

// Stats counts what a live source saw; zero for files.
type Stats struct {
	// Received frames passed the filter; Dropped of them found no room; Freezes is how often the ring was full.
	Received, Dropped, Freezes uint64
	// Outgoing frames were left out because loopback shows every frame twice.
	Outgoing uint64
}

// ErrTimeout says that no frame came for the poll time.
var ErrTimeout = errors.New("capture: no frame for the poll time")

// MaxFrameBytes bounds one frame: 64 KiB of payload, as loopback and offloading give them, with headers.
const MaxFrameBytes = 256 << 10
