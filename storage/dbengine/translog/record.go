package translog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"tidemark/model"
)

const (
	// recordHeaderBytes is checksum, length, kind, magic, zeros, lag.
	recordHeaderBytes = 16
	// recordMagic makes it cheap to see that a place is no record.
	recordMagic = 0xA7
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// recordSum is the checksum of a record that starts at LSN start, without its first four bytes.
func recordSum(start model.LSN, record []byte) uint32 {
	var seed [8]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(start))
	return crc32.Update(crc32.Update(0, castagnoli, seed[:]), castagnoli, record[4:])
}

// appendRecord appends a record that starts at LSN start, written when everything up to durable was on disk.
func appendRecord(dst []byte, start, durable model.LSN, kind byte, payload []byte) []byte {
	mark := len(dst)
	dst = slices.Grow(dst, recordHeaderBytes+len(payload))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(payload)))
	dst = append(dst, kind, recordMagic, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(min(uint64(start-durable), math.MaxUint32)))
	dst = append(dst, payload...)
	binary.LittleEndian.PutUint32(dst[mark:], recordSum(start, dst[mark:]))
	return dst
}

// record is one record in the bytes of a segment.
type record struct {
	start, end model.LSN
	// durable is an LSN that was on disk when the record was made.
	durable model.LSN
	kind    byte
	payload []byte
}

// readRecord reads the record at LSN start at the start of b.
func readRecord(b []byte, start model.LSN) (record, bool) {
	if len(b) < recordHeaderBytes || b[9] != recordMagic || b[10] != 0 || b[11] != 0 {
		return record{}, false
	}
	size := int64(binary.LittleEndian.Uint32(b[4:]))
	if size > int64(len(b)-recordHeaderBytes) {
		return record{}, false
	}
	whole := b[:recordHeaderBytes+size]
	if binary.LittleEndian.Uint32(b) != recordSum(start, whole) {
		return record{}, false
	}
	lag := model.LSN(binary.LittleEndian.Uint32(b[12:]))
	return record{
		start: start, end: start + model.LSN(len(whole)), durable: start - min(lag, start),
		kind: b[8], payload: whole[recordHeaderBytes:],
	}, true
}

// Gap is a stretch of the log that should hold records and does not.
type Gap struct {
	File string
	// Offset is where in the file it starts.
	Offset int64
	// From and To are the LSNs around it.
	From, To model.LSN
}

// String describes the gap.
func (g Gap) String() string {
	return fmt.Sprintf("%s: records from LSN %d to %d (byte %d on) are damaged or missing", g.File, g.From, g.To, g.Offset)
}

// scanner walks the records of one segment.
type scanner struct {
	name string
	// body are the bytes behind the segment's header, first the LSN of the first of them.
	body  []byte
	first model.LSN
	// limit is where the next segment starts; records from there on are leftovers. For the last segment last is
	// true, limit means nothing, and the first unreadable record ends the log unless a later one shows that it was on disk.
	limit model.LSN
	last  bool
	gaps  []Gap
	// leftovers means that behind the end of the last segment there are records which must not come back.
	leftovers bool
}

// scan calls fn for each intact record in order and returns the LSN behind the last.
func (s *scanner) scan(fn func(record) error) (model.LSN, error) {
	at := s.first
	for s.last || at < s.limit {
		r, ok := s.at(at)
		if !ok {
			next, found := s.resume(at)
			if !found {
				break
			}
			s.gaps = append(s.gaps, Gap{File: s.name, Offset: headerBytes + int64(at-s.first), From: at, To: next})
			at = next
			continue
		}
		if err := fn(r); err != nil {
			return at, err
		}
		at = r.end
	}
	if !s.last && at < s.limit {
		s.gaps = append(s.gaps, Gap{File: s.name, Offset: headerBytes + int64(at-s.first), From: at, To: s.limit})
		at = s.limit
	}
	return at, nil
}

// at reads the record at an LSN, if it lies within the segment's part of the log.
func (s *scanner) at(lsn model.LSN) (record, bool) {
	offset := uint64(lsn - s.first)
	if offset > uint64(len(s.body)) {
		return record{}, false
	}
	r, ok := readRecord(s.body[offset:], lsn)
	if !ok || (!s.last && r.end > s.limit) {
		return record{}, false
	}
	return r, true
}

// resume looks for the next record behind a bad one at LSN bad. In the last segment the bad one may be a write that
// a power cut tore: then nothing behind it was acknowledged, and the log ends there. It was not torn but damaged if
// a later record was made when more than it was on disk already.
func (s *scanner) resume(bad model.LSN) (model.LSN, bool) {
	found, next := false, model.LSN(0)
	for lsn := bad + 1; ; {
		var ok bool
		if lsn, ok = s.candidate(lsn); !ok || (!s.last && lsn >= s.limit) {
			break
		}
		r, ok := s.at(lsn)
		if !ok {
			lsn++
			continue
		}
		if !found {
			found, next = true, lsn
		}
		if !s.last || r.durable > bad {
			return next, true
		}
		lsn = r.end
	}
	s.leftovers = found
	return 0, false
}

// candidate returns the first LSN from lsn on at which a record could start.
func (s *scanner) candidate(lsn model.LSN) (model.LSN, bool) {
	const magicAt = 9
	from := uint64(lsn-s.first) + magicAt
	if from >= uint64(len(s.body)) {
		return 0, false
	}
	k := bytes.IndexByte(s.body[from:], recordMagic)
	if k < 0 {
		return 0, false
	}
	return lsn + model.LSN(k), true
}
