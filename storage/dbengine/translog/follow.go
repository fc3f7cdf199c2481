package translog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"tidemark/model"
)

// ErrPosition says that no record that is kept starts at an LSN: it was recycled, is damaged, or is not of this log.
var ErrPosition = errors.New("the log has no record at this position any more")

// ErrRecords is wrapped by the errors of Records.
var ErrRecords = errors.New("damaged records")

// ReadRecords returns the bytes of whole durable records from LSN from on: at most maxBytes, but at least one record; none when the log is
// durable up to there only. Records gives them back.
func (l *Log) ReadRecords(from model.LSN, maxBytes int) ([]byte, error) {
	l.mu.Lock()
	durable := l.durable
	var s *segment
	limit := durable
	for _, one := range l.segments { // of two that have the LSN the later counts
		switch {
		case one.first <= from:
			s, limit = one, durable
		case one.first < limit:
			limit = one.first
		}
	}
	l.replays++
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.replays--
		l.mu.Unlock()
	}()
	switch {
	case from == durable:
		return nil, nil
	case from > durable || s == nil || from >= limit:
		return nil, fmt.Errorf("%w: asked for LSN %d, durable up to %d", ErrPosition, from, durable)
	}
	b, err := l.readAt(s, from, min(int64(limit-from), int64(max(maxBytes, recordHeaderBytes+MaxPayloadBytes))))
	if err != nil {
		return nil, err
	}
	return wholeRecords(b, from, maxBytes)
}

// readAt reads a stretch of a segment.
func (l *Log) readAt(s *segment, from model.LSN, size int64) ([]byte, error) {
	f, err := l.o.FS.Open(filepath.Join(l.o.Dir, s.file))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, size)
	n, err := f.ReadAt(b, headerBytes+int64(from-s.first))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", s.file, err)
	}
	return b[:n], nil
}

// wholeRecords cuts b behind the last record that is whole, or that passes maxBytes.
func wholeRecords(b []byte, from model.LSN, maxBytes int) ([]byte, error) {
	n := 0
	for n < len(b) {
		r, ok := readRecord(b[n:], from+model.LSN(n))
		size := int(r.end - r.start)
		if !ok || n > 0 && n+size > maxBytes {
			break
		}
		n += size
	}
	if n == 0 {
		return nil, fmt.Errorf("%w: what stands at LSN %d is no record", ErrPosition, from)
	}
	return b[:n], nil
}

// Records calls fn for the records in b, of which the first starts at LSN from, and returns the LSN behind the last. Payloads are valid
// while b is. Other bytes than whole records are an error.
func Records(b []byte, from model.LSN, fn func(end model.LSN, kind byte, payload []byte) error) (model.LSN, error) {
	at := from
	for n := 0; n < len(b); {
		r, ok := readRecord(b[n:], at)
		if !ok {
			return at, fmt.Errorf("%w: no record at LSN %d, byte %d of %d", ErrRecords, at, n, len(b))
		}
		if len(r.payload) > MaxPayloadBytes {
			return at, fmt.Errorf("%w: a record of %d bytes at LSN %d, expected at most %d", ErrRecords, binary.LittleEndian.Uint32(b[n+4:]), at, MaxPayloadBytes)
		}
		n += int(r.end - r.start)
		at = r.end
		if r.kind == kindClosed {
			continue
		}
		if err := fn(r.end, r.kind, r.payload); err != nil {
			return at, err
		}
	}
	return at, nil
}

// WaitBehind returns when the log is durable beyond lsn.
func (l *Log) WaitBehind(ctx context.Context, lsn model.LSN) error {
	for {
		l.mu.Lock()
		durable, closed, wait := l.durable, l.closed, l.room
		l.mu.Unlock()
		switch {
		case durable > lsn:
			return nil
		case closed:
			return errClosed
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
