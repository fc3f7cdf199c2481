package spool

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strconv"
	"strings"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
)

// A segment is a header and records. Header, little-endian: magic, version uint32, CRC-32C of the rest uint32, folder's id uint64,
// LSN of the first byte behind the header uint64. Record: payload length uint32, CRC-32C uint32 over the record's LSN (uint64)
// and the payload, payload. The LSN in the checksum keeps bytes of an older use from being taken for a record.
const (
	magic              = "TDMSPOOL"
	version            = 1
	segmentHeaderBytes = 8 + 4 + 4 + 8 + 8
	recordHeaderBytes  = 8
	suffix             = ".spool"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type segment struct {
	name string
	id   uint64
	// base is the LSN of the first record's first byte, end that behind the last valid record.
	base, end model.LSN
	file      vfs.File
	// gaps are the damaged places that were told of.
	gaps []gap
	// unread counts how often in a row the disk did not answer at unreadAt.
	unreadAt model.LSN
	unread   int
	// salvaged says that the header was damaged and is to be written again.
	salvaged bool
}

func segmentName(dir string, base model.LSN) string {
	return filepath.Join(dir, fmt.Sprintf("%016x%s", uint64(base), suffix))
}

func appendSegmentHeader(dst []byte, id uint64, base model.LSN) []byte {
	var rest [16]byte
	binary.LittleEndian.PutUint64(rest[:], id)
	binary.LittleEndian.PutUint64(rest[8:], uint64(base))
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(rest[:], castagnoli))
	return append(dst, rest[:]...)
}

// openSegment opens a file and reads its header.
func openSegment(fs vfs.FS, name string) (*segment, error) {
	file, err := fs.OpenReadWrite(name)
	if err != nil {
		return nil, err
	}
	var h [segmentHeaderBytes]byte
	n, _ := file.ReadAt(h[:], 0) // a short read is a damaged header
	damaged := func(want string) error {
		return joinClose(file, &storage.CorruptionError{File: name, Want: want})
	}
	switch {
	case n < len(h) || string(h[:8]) != magic:
		return nil, damaged("expected the header of a spool segment")
	case binary.LittleEndian.Uint32(h[8:]) > version:
		return nil, joinClose(file, fmt.Errorf("%s: version %d, and this program knows up to %d; use a newer program",
			name, binary.LittleEndian.Uint32(h[8:]), version))
	case binary.LittleEndian.Uint32(h[12:]) != crc32.Checksum(h[16:], castagnoli):
		return nil, damaged("the header's checksum is wrong")
	}
	s := &segment{name: name, id: binary.LittleEndian.Uint64(h[16:]), base: model.LSN(binary.LittleEndian.Uint64(h[24:])), file: file}
	s.end = s.base
	return s, nil
}

// salvageSegment opens a file whose header is damaged; nil when it has no valid record. The file's name has the LSN of the first one.
func salvageSegment(fs vfs.FS, name string, limit model.LSN) (*segment, error) {
	base, err := segmentBase(name)
	if err != nil {
		return nil, nil // a file of another name is nothing to salvage
	}
	file, err := fs.OpenReadWrite(name)
	if err != nil {
		return nil, err
	}
	s := &segment{name: name, base: base, end: base, file: file, salvaged: true}
	var id [8]byte
	if n, _ := file.ReadAt(id[:], 16); n == len(id) {
		s.id = binary.LittleEndian.Uint64(id[:]) // unless this is what is damaged; other segments know better
	}
	var search searcher
	if _, found := search.next(s, base, limit); !found {
		return nil, file.Close()
	}
	return s, nil
}

// segmentBase is the LSN in a segment's name.
func segmentBase(name string) (model.LSN, error) {
	n, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(name), suffix), 16, 64)
	return model.LSN(n), err
}

func isSegment(name string) bool { return strings.HasSuffix(name, suffix) }
