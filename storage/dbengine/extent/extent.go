// Package extent packs pages of several items into one run of bytes that is written and checked together.
//
//	header 48 B | directory, columnar | payload | CRC-32C
//	              one row a page        time columns, then value columns; compressed as a whole, or not
//
// Everything that a reader needs is in the extent itself, so a datafile can be scanned extent by extent without its
// journal. Every checksum but the header's own starts from the extent's Identity: bytes that are intact but stand in the wrong
// place, or are left over from an earlier file, do not pass. format/extent.md documents every byte.
package extent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"tidemark/model"
)

// Identity says where an extent belongs.
type Identity struct {
	// Generation and File are the two numbers in the datafile's name.
	Generation, File uint32
	// Sequence counts the extents of the datafile.
	Sequence uint64
}

// String names the extent for messages.
func (id Identity) String() string {
	return fmt.Sprintf("extent %d of datafile-%d-%010d", id.Sequence, id.Generation, id.File)
}

// Codec compresses the payload of an extent.
type Codec uint8

// The codecs. The numbers are stored.
const (
	None Codec = 0
	LZ4  Codec = 1
	Zstd Codec = 2
)

// String returns the codec's name as it stands in the configuration.
func (c Codec) String() string {
	switch c {
	case None:
		return "none"
	case LZ4:
		return "lz4"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("codec %d", uint8(c))
}

// The kinds of pages. The numbers are stored.
const (
	Values uint8 = 0 // values in rising time order
	Late   uint8 = 1 // values that came late, to be merged with the others on read
	Hourly uint8 = 2 // summaries of one hour each
	Minute uint8 = 3 // summaries of one minute each
	Merged uint8 = 4 // binary values, each merged from those of one step of the pair's tier
)

// Page is one page of one item.
type Page struct {
	Item model.ItemID
	Type model.ValueType
	// From and To are the times of the first and the last value, Unix nanoseconds; From ≤ To.
	From, To int64
	// Count is the number of values, 1 to page.MaxValues.
	Count int
	// Kind says what the values are: Values, Late, Hourly, Minute, Merged.
	Kind uint8
	// Times and Values are encoded columns. Pages of one extent with equal Times share them on disk.
	Times, Values []byte
}

const (
	// HeaderBytes is the size of the fixed part that Peek needs.
	HeaderBytes = 48
	// TrailerBytes is the size of the checksum at the end.
	TrailerBytes = 4
	// MaxPages bounds the pages of one extent.
	MaxPages = 1 << 16
	// MaxBytes bounds one extent, header and trailer included, and its payload before compression.
	MaxBytes = 64 << 20

	version = 1
)

// magic opens every extent.
var magic = [4]byte{'T', 'M', 'E', 'X'}

// castagnoli is the table of CRC-32C, which the CPU computes.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrExtent is wrapped by every error about bytes that are no intact extent of the identity asked for.
var ErrExtent = errors.New("damaged extent")

// seed is the checksum state that stands for the identity.
func (id Identity) seed() uint32 {
	var b [16]byte
	binary.LittleEndian.PutUint32(b[0:], id.Generation)
	binary.LittleEndian.PutUint32(b[4:], id.File)
	binary.LittleEndian.PutUint64(b[8:], id.Sequence)
	return crc32.Update(0, castagnoli, b[:])
}

// pageSum is the checksum of one page: what the directory says of it and both its columns.
func pageSum(seed uint32, p *Page) uint32 {
	var b [38]byte
	binary.LittleEndian.PutUint64(b[0:], uint64(p.Item))
	b[8], b[9] = uint8(p.Type), p.Kind
	binary.LittleEndian.PutUint64(b[10:], uint64(p.From))
	binary.LittleEndian.PutUint64(b[18:], uint64(p.To))
	binary.LittleEndian.PutUint32(b[26:], uint32(p.Count))
	binary.LittleEndian.PutUint32(b[30:], uint32(len(p.Times)))
	binary.LittleEndian.PutUint32(b[34:], uint32(len(p.Values)))
	seed = crc32.Update(seed, castagnoli, b[:])
	seed = crc32.Update(seed, castagnoli, p.Times)
	return crc32.Update(seed, castagnoli, p.Values)
}

// header is the fixed part of an extent.
type header struct {
	codec Codec
	id    Identity
	// pages is the number of directory rows; the others are sizes in bytes. payload is before compression, stored after.
	pages, directory, stored, payload uint32
	// sum is the checksum of the header's first 44 bytes and the directory, from the identity on.
	sum uint32
}

func (h *header) total() int {
	return HeaderBytes + int(h.directory) + int(h.stored) + TrailerBytes
}

// put writes all of h but sum to b.
func (h *header) put(b []byte) {
	copy(b, magic[:])
	b[4], b[5], b[6], b[7] = version, uint8(h.codec), 0, 0
	binary.LittleEndian.PutUint32(b[8:], h.id.Generation)
	binary.LittleEndian.PutUint32(b[12:], h.id.File)
	binary.LittleEndian.PutUint64(b[16:], h.id.Sequence)
	binary.LittleEndian.PutUint32(b[24:], h.pages)
	binary.LittleEndian.PutUint32(b[28:], h.directory)
	binary.LittleEndian.PutUint32(b[32:], h.stored)
	binary.LittleEndian.PutUint32(b[36:], h.payload)
	binary.LittleEndian.PutUint32(b[40:], crc32.Checksum(b[:40], castagnoli))
}

// get reads and checks everything in a header that does not need the identity.
func (h *header) get(b []byte) error {
	switch {
	case len(b) < HeaderBytes:
		return fmt.Errorf("%w: %d bytes where a header of %d was expected", ErrExtent, len(b), HeaderBytes)
	case [4]byte(b[:4]) != magic:
		return fmt.Errorf("%w: starts with % x, not with %s", ErrExtent, b[:4], magic[:])
	case binary.LittleEndian.Uint32(b[40:]) != crc32.Checksum(b[:40], castagnoli):
		return fmt.Errorf("%w: the header's checksum does not match", ErrExtent)
	case b[4] != version:
		return fmt.Errorf("%w: version %d, and this program reads version %d", ErrExtent, b[4], version)
	case b[5] > uint8(Zstd):
		return fmt.Errorf("%w: unknown %v", ErrExtent, Codec(b[5]))
	case b[6] != 0: // byte 7 has the features that a reader need not know
		return fmt.Errorf("%w: feature bits %#x, which this program does not know", ErrExtent, b[6])
	}
	h.codec = Codec(b[5])
	h.id.Generation = binary.LittleEndian.Uint32(b[8:])
	h.id.File = binary.LittleEndian.Uint32(b[12:])
	h.id.Sequence = binary.LittleEndian.Uint64(b[16:])
	h.pages = binary.LittleEndian.Uint32(b[24:])
	h.directory = binary.LittleEndian.Uint32(b[28:])
	h.stored = binary.LittleEndian.Uint32(b[32:])
	h.payload = binary.LittleEndian.Uint32(b[36:])
	h.sum = binary.LittleEndian.Uint32(b[44:])
	switch {
	case h.pages == 0 || h.pages > MaxPages:
		return fmt.Errorf("%w: %d pages, expected 1 to %d", ErrExtent, h.pages, MaxPages)
	case h.directory > MaxBytes || h.stored > MaxBytes || h.payload > MaxBytes || h.total() > MaxBytes:
		return fmt.Errorf("%w: directory of %d and payload of %d (stored %d) bytes, expected at most %d",
			ErrExtent, h.directory, h.payload, h.stored, MaxBytes)
	case h.directory < 4*h.pages:
		return fmt.Errorf("%w: a directory of %d bytes for %d pages", ErrExtent, h.directory, h.pages)
	case h.codec == None && h.stored != h.payload:
		return fmt.Errorf("%w: payload of %d bytes stored plain in %d", ErrExtent, h.payload, h.stored)
	}
	return nil
}

// Peek reads the header at the start of b, which must hold at least HeaderBytes, and returns the length of the whole
// extent and its identity. It does not look at the rest.
func Peek(b []byte) (int, Identity, error) {
	var h header
	if err := h.get(b); err != nil {
		return 0, Identity{}, err
	}
	return h.total(), h.id, nil
}

// HeadBytes returns how many bytes at the start of the extent ParseHead needs, from its header.
func HeadBytes(b []byte) (int, error) {
	var h header
	if err := h.get(b); err != nil {
		return 0, err
	}
	return HeaderBytes + int(h.directory), nil
}
