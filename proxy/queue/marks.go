package queue

import (
	"encoding/binary"
	"errors"
	"fmt"

	"tidemark/model"
	"tidemark/storage"
)

// writeMarks keeps the facts of records that are about to be removed. The form, little-endian: for each mark its time as int64, then key and value,
// each behind one byte of length.
func (q *Queue) writeMarks() error {
	q.mu.Lock()
	var body []byte
	for _, m := range q.marks {
		body = binary.LittleEndian.AppendUint64(body, uint64(m.At))
		for _, text := range []string{m.Key, m.Value} {
			text = text[:min(len(text), 255)]
			body = append(append(body, byte(len(text))), text...)
		}
	}
	q.mu.Unlock()
	if err := WriteFile(q.o.FS, q.path("marks"), body); err != nil {
		return fmt.Errorf("keep the marks of the queue: %w", err)
	}
	return nil
}

func (q *Queue) readMarks() error {
	body, err := ReadFile(q.o.FS, q.path("marks"))
	if err = q.bearable("marks", err); err != nil {
		return err
	}
	list, err := decodeMarks(body)
	if err != nil {
		return q.bearable("marks", &storage.CorruptionError{File: q.path("marks"), Want: err.Error()})
	}
	q.mark(list)
	return nil
}

var errMarks = errors.New("expected a time, a key and a value for each mark")

func decodeMarks(p []byte) ([]model.Mark, error) {
	var list []model.Mark
	for len(p) > 0 {
		if len(p) < 8 {
			return nil, errMarks
		}
		m := model.Mark{At: int64(binary.LittleEndian.Uint64(p))}
		p = p[8:]
		for _, to := range []*string{&m.Key, &m.Value} {
			if len(p) == 0 || len(p) < 1+int(p[0]) {
				return nil, errMarks
			}
			*to = string(p[1 : 1+int(p[0])])
			p = p[1+int(p[0]):]
		}
		list = append(list, m)
	}
	return list, nil
}
