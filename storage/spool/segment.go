package spool

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
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

// recordCRC is the checksum of a record at lsn.
func recordCRC(lsn model.LSN, payload []byte) uint32 {
	var at [8]byte
	binary.LittleEndian.PutUint64(at[:], uint64(lsn))
	return crc32.Update(crc32.Checksum(at[:], castagnoli), castagnoli, payload)
}

// read calls fn for each record from LSN from on that ends at or before limit, with the LSN behind it. It returns the LSN behind the
// last valid one; what follows there is torn or damaged.
func (s *segment) read(from, limit model.LSN, fn func(end model.LSN, payload []byte) error) (model.LSN, error) {
	at := s.base
	var header [recordHeaderBytes]byte
	var payload []byte
	for at < limit {
		offset := segmentHeaderBytes + int64(at-s.base)
		if n, _ := s.file.ReadAt(header[:], offset); n < len(header) {
			return at, nil
		}
		size := int64(binary.LittleEndian.Uint32(header[:]))
		end := at + model.LSN(recordHeaderBytes+size)
		if size < payloadHeaderBytes || size > maxPayloadBytes || end > limit {
			return at, nil
		}
		if end > from {
			if int64(cap(payload)) < size {
				payload = make([]byte, size)
			}
			payload = payload[:size]
			if n, _ := s.file.ReadAt(payload, offset+recordHeaderBytes); int64(n) < size {
				return at, nil
			}
			if recordCRC(at, payload) != binary.LittleEndian.Uint32(header[4:]) {
				return at, nil
			}
			if err := fn(end, payload); err != nil {
				return at, err
			}
		}
		at = end
	}
	return at, nil
}

func isSegment(name string) bool { return strings.HasSuffix(name, suffix) }
