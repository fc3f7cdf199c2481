package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"tidemark/model"
)

// gap is a damaged place of a segment: from where a record should have begun to where the next valid one does.
type gap struct{ from, to model.LSN }

const (
	// maxGaps bounds what is remembered of a segment's damaged places.
	maxGaps = 1024
	// maxSearchBytes bounds what is searched for the next valid record: a segment, and the record that goes beyond its size.
	maxSearchBytes = 64 << 20
	// maxUnread is how many readings in a row the disk may fail at one place before what is there counts as lost.
	maxUnread = 10
	// maxCheckedBytes bounds the checksums of one search. What looks like a record and is none is rare: its counts must fit its length.
	maxCheckedBytes = 1 << 30
)

// Damage is what was lost to damaged bytes since the log was opened.
type Damage struct {
	// Places is the number of gaps, Bytes what they take. A record takes 16 bytes and 27 for each of its values, texts more.
	Places, Bytes int64
	// TailBytes are behind the last valid record of the newest segment: a write that a crash tore, and that nobody was told of, or damage.
	TailBytes int64
}

// read calls fn for each record from LSN from on that ends at or before limit, with the LSN behind it. What is damaged is skipped: reading goes on with
// the next valid record, whose checksum has its place in it. It returns the LSN behind the last valid one and the gaps before it; what follows
// there is torn or damaged.
func (s *segment) read(from, limit model.LSN, fn func(end model.LSN, payload []byte) error) (model.LSN, []gap, error) {
	var gaps []gap
	var search searcher
	var buffer []byte
	last := s.base
	for at := s.base; at < limit; {
		end, payload, ok := s.record(at, from, limit, &buffer)
		if !ok {
			next, found := search.next(s, at+1, limit)
			if !found {
				break
			}
			if next > from && len(gaps) < maxGaps {
				gaps = append(gaps, gap{at, next})
			}
			at = next
			continue
		}
		if payload != nil {
			if err := fn(end, payload); err != nil {
				return last, gaps, err
			}
		}
		at, last = end, end
	}
	return last, gaps, nil
}

// record reads the record at an LSN. One that ends at or before from is passed over, unchecked and without payload: should its length be damaged, the
// next is none and is searched for.
func (s *segment) record(at, from, limit model.LSN, buffer *[]byte) (model.LSN, []byte, bool) {
	var header [recordHeaderBytes]byte
	offset := segmentHeaderBytes + int64(at-s.base)
	if n, _ := s.file.ReadAt(header[:], offset); n < len(header) {
		return 0, nil, false
	}
	size := int64(binary.LittleEndian.Uint32(header[:]))
	end := at + model.LSN(recordHeaderBytes+size)
	if size < payloadHeaderBytes || size > maxPayloadBytes || end > limit {
		return 0, nil, false
	}
	if end <= from {
		return end, nil, true
	}
	if int64(cap(*buffer)) < size {
		*buffer = make([]byte, size)
	}
	payload := (*buffer)[:size]
	if n, _ := s.file.ReadAt(payload, offset+recordHeaderBytes); int64(n) < size {
		return 0, nil, false
	}
	return end, payload, recordCRC(at, payload) == binary.LittleEndian.Uint32(header[4:])
}

// searcher finds valid records behind damage. It holds the rest of the segment from the first damage on.
type searcher struct {
	bytes   []byte
	at      model.LSN
	checked int64
}

// next returns the LSN of the first valid record at or behind an LSN.
func (x *searcher) next(s *segment, at, limit model.LSN) (model.LSN, bool) {
	if x.bytes == nil {
		size, err := s.file.Size()
		offset := segmentHeaderBytes + int64(at-s.base)
		if err != nil || size <= offset {
			return 0, false
		}
		x.bytes, x.at = make([]byte, min(size-offset, maxSearchBytes)), at
		n, _ := s.file.ReadAt(x.bytes, offset) // a bad sector ends the search
		x.bytes = x.bytes[:n]
	}
	for ; at < limit && at-x.at < model.LSN(len(x.bytes)); at++ {
		if end, ok := x.valid(x.bytes[at-x.at:], at); ok && end <= limit {
			return at, true
		}
	}
	return 0, false
}

// valid reports whether b begins with a record whose LSN is at, and returns the LSN behind it.
func (x *searcher) valid(b []byte, at model.LSN) (model.LSN, bool) {
	if len(b) < recordHeaderBytes+payloadHeaderBytes {
		return 0, false
	}
	size := int64(binary.LittleEndian.Uint32(b))
	if size < payloadHeaderBytes || size > int64(len(b)-recordHeaderBytes) {
		return 0, false
	}
	payload := b[recordHeaderBytes : recordHeaderBytes+size]
	rows, marks := int64(binary.LittleEndian.Uint32(payload)), int64(binary.LittleEndian.Uint32(payload[4:]))
	if rows > (size-payloadHeaderBytes)/rowBytes || marks > size-payloadHeaderBytes-rows*rowBytes || x.checked > maxCheckedBytes {
		return 0, false
	}
	x.checked += size
	return at + model.LSN(recordHeaderBytes+size), recordCRC(at, payload) == binary.LittleEndian.Uint32(b[4:])
}

// recordCRC is the checksum of a record at lsn.
func recordCRC(lsn model.LSN, payload []byte) uint32 {
	var at [8]byte
	binary.LittleEndian.PutUint64(at[:], uint64(lsn))
	return crc32.Update(crc32.Checksum(at[:], castagnoli), castagnoli, payload)
}

// note tells of gaps that were not told of before.
func (l *Log) note(s *segment, gaps []gap) {
	for _, g := range gaps {
		if len(s.gaps) >= maxGaps || s.told(g) {
			continue
		}
		s.gaps = append(s.gaps, g)
		l.damage.Places++
		l.damage.Bytes += int64(g.to - g.from)
		l.o.Logger.Error("values are lost: a spool segment is damaged; check the disk", "segment", s.name,
			"offset", segmentHeaderBytes+int64(g.from-s.base), "bytes", int64(g.to-g.from))
	}
}

// endless takes note that nothing valid follows an LSN in a segment, although records were written there. An error says that the disk did not answer, which
// may pass.
func (l *Log) endless(s *segment, lsn model.LSN) error {
	l.mu.Lock()
	to := s.end // what was read may have been given up meanwhile
	l.mu.Unlock()
	if lsn >= to {
		return nil
	}
	_, err := s.file.ReadAt(make([]byte, min(int64(to-lsn), maxPayloadBytes)), segmentHeaderBytes+int64(lsn-s.base))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && !errors.Is(err, io.EOF) {
		if s.unreadAt != lsn {
			s.unreadAt, s.unread = lsn, 0
		}
		if s.unread++; s.unread < maxUnread {
			return fmt.Errorf("read %s at byte %d: %w", s.name, segmentHeaderBytes+int64(lsn-s.base), err)
		}
	}
	for _, r := range l.lost {
		if r.from <= lsn && to <= r.to {
			return nil // whoever sent it was told that it is not kept
		}
	}
	l.note(s, []gap{{lsn, to}})
	return nil
}

// told reports whether a gap lies within those that are known.
func (s *segment) told(g gap) bool {
	for _, known := range s.gaps {
		if known.from <= g.from && g.to <= known.to {
			return true
		}
	}
	return false
}

// Damage returns what was lost to damaged bytes.
func (l *Log) Damage() Damage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.damage
}
