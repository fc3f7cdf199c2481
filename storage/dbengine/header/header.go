// Package header is the first 64 bytes of every file of the engine.
//
//	 0  magic         4 bytes: TMLG log, TMDF datafile, TMJF journalfile, TMMK marks
//	 4  version       uint16, 1
//	 6  reserved      uint16, 0
//	 8  compatible    uint32, feature bits that an older program may ignore
//	12  incompatible  uint32, feature bits that an older program must refuse
//	16  generation    uint32, of a datafile and journalfile; else 0
//	20  number        uint32, as in the file's name; else 0
//	24  lsn           uint64, of a log segment: its first; of marks: up to which they go; else 0
//	32  tier          uint32, of a datafile; else 0
//	36  source        uint32, of a datafile of a tier: the number of the pair that it sums up; else 0
//	40  first         uint32, of a joined datafile: the least number that it stands for; else 0
//	44  members       uint32, of a joined datafile: for how many pairs it stands; else 0
//	48  zeros         12 bytes
//	60  CRC-32C       uint32, of the bytes before it
//
// All numbers are little-endian.
package header

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"tidemark/model"
)

// Bytes is the size of a header.
const Bytes = 64

// Version is the version that this program writes, and the newest that it reads.
const Version = 1

// Magic opens a file and says what it is.
type Magic [4]byte

// The kinds of files.
var (
	Log         = Magic{'T', 'M', 'L', 'G'}
	Datafile    = Magic{'T', 'M', 'D', 'F'}
	Journalfile = Magic{'T', 'M', 'J', 'F'}
	Marks       = Magic{'T', 'M', 'M', 'K'}
)

// Decimals is the incompatible feature of log files whose batches may use the packed forms 3 and 4.
const Decimals uint32 = 1

// Joined is the incompatible feature of a datafile that stands for a run of neighbouring pairs of values, or of a tier that sums up such a
// one: for those from First to its number, or its source. What is left of them in older generations is not used.
const Joined uint32 = 1

// Lean is the incompatible feature of a datafile of values without those rows of hours that follow from its values: they are in the tier of hours,
// and where that is not there, are made again.
const Lean uint32 = 2

// Repeats is the incompatible feature of a datafile of values with columns of the scheme for repetitions, which package page had not at first.
const Repeats uint32 = 4

// known are the incompatible features that this program reads.
func (m Magic) known() uint32 {
	switch m {
	case Log:
		return Decimals
	case Datafile:
		return Joined | Lean | Repeats
	}
	return 0
}

// Closed is the compatible feature of a journalfile that holds a sorted index.
const Closed uint32 = 1

// Merged is the compatible feature of a datafile of a tier that holds what all binary values merge to, but those that do not merge.
const Merged uint32 = 1

// Header is what stands at the start of a file.
type Header struct {
	Magic                    Magic
	Compatible, Incompatible uint32
	Generation, Number       uint32
	LSN                      model.LSN
	// Tier says what the pair of a datafile holds, and Source, for tiers, which pair's number it sums up.
	Tier   Tier
	Source uint32
	// First and Members are those of a joined datafile.
	First, Members uint32
}

// Last is the number of the last pair of values that a datafile stands for, or that it sums up.
func (h *Header) Last() uint32 {
	if h.Tier != Raw {
		return h.Source
	}
	return h.Number
}

// Run says for which pairs of values a datafile stands, or which it sums up: those with numbers from first to last that are not in other
// pairs, as many as members.
func (h *Header) Run() (first, last, members uint32) {
	if h.Incompatible&Joined == 0 {
		return h.Last(), h.Last(), 1
	}
	return h.First, h.Last(), h.Members
}

// Join makes a header that of a joined datafile, if there are several members.
func (h *Header) Join(first, members uint32) {
	h.Incompatible, h.First, h.Members = h.Incompatible&^Joined, 0, 0
	if members > 1 {
		h.Incompatible, h.First, h.Members = h.Incompatible|Joined, first, members
	}
}

// Tier says what a pair holds. The numbers are stored.
type Tier uint8

// The tiers.
const (
	Raw    Tier = 0 // values, and their hours as they were when the values were sealed
	Minute Tier = 1 // summaries of one minute each, of the values of another pair
	Hour   Tier = 2 // the hours of another pair

	// TierCount is how many there are.
	TierCount = 3
)

// String names the tier.
func (t Tier) String() string {
	switch t {
	case Raw:
		return "values"
	case Minute:
		return "minute"
	case Hour:
		return "hour"
	}
	return fmt.Sprintf("tier %d", uint8(t))
}

// ErrNewer means that a newer program wrote the file; it must not be touched.
var ErrNewer = errors.New("written by a newer version of tidemark")

// ErrHeader means that the bytes are no intact header of the kind expected.
var ErrHeader = errors.New("damaged header")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append appends the 64 bytes of h to dst.
func (h *Header) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, h.Magic[:]...)
	dst = binary.LittleEndian.AppendUint16(dst, Version)
	dst = binary.LittleEndian.AppendUint16(dst, 0)
	dst = binary.LittleEndian.AppendUint32(dst, h.Compatible)
	dst = binary.LittleEndian.AppendUint32(dst, h.Incompatible)
	dst = binary.LittleEndian.AppendUint32(dst, h.Generation)
	dst = binary.LittleEndian.AppendUint32(dst, h.Number)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.LSN))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(h.Tier))
	dst = binary.LittleEndian.AppendUint32(dst, h.Source)
	dst = binary.LittleEndian.AppendUint32(dst, h.First)
	dst = binary.LittleEndian.AppendUint32(dst, h.Members)
	dst = append(dst, make([]byte, 12)...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// Decode reads the header at the start of b and checks that it is of the kind that is wanted. A header of a newer
// version is ErrNewer; everything else that is not as expected is ErrHeader.
func Decode(b []byte, want Magic) (Header, error) {
	var h Header
	if len(b) < Bytes {
		return h, fmt.Errorf("%w: %d bytes, expected at least %d", ErrHeader, len(b), Bytes)
	}
	b = b[:Bytes]
	if copy(h.Magic[:], b); h.Magic != want {
		return h, fmt.Errorf("%w: starts with % x, expected %s", ErrHeader, b[:4], want[:])
	}
	if binary.LittleEndian.Uint32(b[60:]) != crc32.Checksum(b[:60], castagnoli) {
		return h, fmt.Errorf("%w: its checksum does not match", ErrHeader)
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v > Version {
		return h, fmt.Errorf("%w: format version %d, and this program reads up to %d", ErrNewer, v, Version)
	} else if v == 0 {
		return h, fmt.Errorf("%w: format version 0", ErrHeader)
	}
	h.Compatible = binary.LittleEndian.Uint32(b[8:])
	h.Incompatible = binary.LittleEndian.Uint32(b[12:])
	h.Generation = binary.LittleEndian.Uint32(b[16:])
	h.Number = binary.LittleEndian.Uint32(b[20:])
	h.LSN = model.LSN(binary.LittleEndian.Uint64(b[24:]))
	h.Tier, h.Source = Tier(b[32]), binary.LittleEndian.Uint32(b[36:])
	if known := want.known(); h.Incompatible&^known != 0 {
		return h, fmt.Errorf("%w: it uses feature bits %#x, and this program knows %#x", ErrNewer, h.Incompatible, known)
	}
	if want == Datafile && h.Incompatible&Joined != 0 {
		h.First, h.Members = binary.LittleEndian.Uint32(b[40:]), binary.LittleEndian.Uint32(b[44:])
		if h.First >= h.Last() || h.Members < 2 || h.Members-1 > h.Last()-h.First {
			return h, fmt.Errorf("%w: it stands for %d pairs from %d to %d", ErrHeader, h.Members, h.First, h.Last())
		}
	}
	return h, nil
}
