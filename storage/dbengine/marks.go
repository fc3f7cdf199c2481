package dbengine

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"tidemark/model"
	"tidemark/storage/dbengine/header"
)

// maxMarks bounds the marks that are kept; when an eighth more have come, the oldest are forgotten down to it.
const maxMarks = 100_000

// maxMarksBytes bounds the file of marks.
const maxMarksBytes = 128 << 20

// marks are the newest values of all keys.
type marks struct {
	mu    sync.Mutex
	byKey map[string]model.Mark
	// changed means that there are marks in the log which the file does not hold.
	changed bool
}

// put takes marks over; mu is held.
func (m *marks) put(marks []model.Mark) {
	if len(marks) == 0 {
		return
	}
	if m.byKey == nil {
		m.byKey = map[string]model.Mark{}
	}
	for _, mark := range marks {
		m.byKey[mark.Key] = mark
	}
	m.changed = true
	if len(m.byKey) > maxMarks+maxMarks/8 {
		m.forget(maxMarks)
	}
}

// forget drops the oldest marks until n are left.
func (m *marks) forget(n int) {
	all := m.list()
	slices.SortFunc(all, func(a, b model.Mark) int { return cmp.Compare(a.At, b.At) })
	for _, mark := range all[:max(len(all)-n, 0)] {
		delete(m.byKey, mark.Key)
	}
}

func (m *marks) list() []model.Mark {
	all := make([]model.Mark, 0, len(m.byKey))
	for _, mark := range m.byKey {
		all = append(all, mark)
	}
	return all
}

// Marks calls fn for every mark that is kept, in no order.
func (db *DB) Marks(fn func(model.Mark)) {
	db.marks.mu.Lock()
	all := db.marks.list()
	db.marks.mu.Unlock()
	for _, mark := range all {
		fn(mark)
	}
}

// The file of marks is a header, whose LSN says up to where its marks go, then for each mark the length and bytes of key and
// value and the time (8 bytes), then their number (8 bytes) and the CRC-32C (4 bytes) of everything before it.

// encodeMarks returns the bytes of a file of marks.
func encodeMarks(lsn model.LSN, all []model.Mark) []byte {
	h := header.Header{Magic: header.Marks, LSN: lsn}
	b := h.Append(nil)
	for _, m := range all {
		b = append(append(b, byte(len(m.Key))), m.Key...)
		b = append(append(b, byte(len(m.Value))), m.Value...)
		b = binary.LittleEndian.AppendUint64(b, uint64(m.At))
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(len(all)))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// decodeMarks reads a file of marks.
func decodeMarks(b []byte) (model.LSN, []model.Mark, error) {
	h, err := header.Decode(b, header.Marks)
	if err != nil {
		return 0, nil, err
	}
	end := len(b) - 12
	if end < header.Bytes || binary.LittleEndian.Uint32(b[end+8:]) != crc32.Checksum(b[:end+8], crc32.MakeTable(crc32.Castagnoli)) {
		return 0, nil, fmt.Errorf("%w: the checksum at its end does not match", header.ErrHeader)
	}
	count := binary.LittleEndian.Uint64(b[end:])
	var all []model.Mark
	rest := b[header.Bytes:end]
	short := func() (string, bool) {
		if len(rest) == 0 || len(rest) < 1+int(rest[0]) {
			return "", false
		}
		s := string(rest[1 : 1+int(rest[0])])
		rest = rest[1+int(rest[0]):]
		return s, true
	}
	for len(rest) > 0 {
		key, ok := short()
		value, ok2 := short()
		if !ok || !ok2 || len(rest) < 8 {
			return 0, nil, fmt.Errorf("%w: mark %d is cut off", header.ErrHeader, len(all))
		}
		all = append(all, model.Mark{Key: key, Value: value, At: int64(binary.LittleEndian.Uint64(rest))})
		rest = rest[8:]
	}
	if uint64(len(all)) != count {
		return 0, nil, fmt.Errorf("%w: %d marks, expected %d", header.ErrHeader, len(all), count)
	}
	return h.LSN, all, nil
}

// saveMarks writes the marks to their file, so that the log records that brought them can go. db.flushing is held.
func (db *DB) saveMarks(ctx context.Context) error {
	db.marks.mu.Lock()
	if !db.marks.changed {
		db.marks.mu.Unlock()
		return nil
	}
	all, lsn := db.marks.list(), db.log.End()
	db.marks.changed = false
	db.marks.mu.Unlock()
	err := db.log.Wait(ctx, lsn) // marks never promise more than is durable
	if err == nil {
		err = db.writeMarks(encodeMarks(lsn, all))
	}
	if err != nil {
		db.marks.mu.Lock()
		db.marks.changed = true
		db.marks.mu.Unlock()
	}
	return err
}

func (db *DB) writeMarks(b []byte) error {
	size := roundUp(int64(len(b)))
	if err := db.reserve(size); err != nil {
		return err
	}
	db.growing.Lock()
	defer db.growing.Unlock()
	if err := db.replaceFile(marksName, b); err != nil {
		db.space.release(size)
		return err
	}
	db.space.release(db.marksBytes)
	db.marksBytes = size
	return nil
}

// loadMarks reads the file of marks.
func (db *DB) loadMarks() (model.LSN, error) {
	b, err := readAll(db, marksName, maxMarksBytes)
	if isNotExist(err) {
		return 0, nil
	}
	lsn, all := model.LSN(0), []model.Mark(nil)
	if err == nil {
		lsn, all, err = decodeMarks(b)
	}
	if errors.Is(err, header.ErrHeader) {
		db.quarantine(marksName, err)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	db.marksBytes = roundUp(int64(len(b)))
	db.marks.put(all)
	db.marks.changed = false
	return lsn, nil
}
