// Package spool is a short log in a folder: what was accepted and may not be in the database yet.
//
// Records are appended to segments and synced for all who wait at once. Their position, the LSN, only grows. Segments are removed
// as a whole when nobody needs them any more. A record whose checksum is wrong is skipped: reading goes on
// with the next valid one, and what was lost is counted. A torn tail was never acknowledged.
package spool

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
)

// Options configure a log.
type Options struct {
	// SegmentBytes is where a further segment is begun; zero means 16 MiB.
	SegmentBytes int64
	// Logger is told of damage; nil discards.
	Logger *slog.Logger
}

// Log is an open spool. All methods may be called at the same time.
type Log struct {
	o    Options
	fs   vfs.FS
	dir  string
	id   uint64
	lock io.Closer

	mu       sync.Mutex
	segments []*segment // the last one is written to, if active
	active   bool
	end      model.LSN
	synced   model.LSN
	closed   bool
	buffer   []byte
	lost     []lostRange
	damage   Damage

	// syncing serialises Sync, reading keeps Trim from removing what is read.
	syncing sync.Mutex
	reading sync.RWMutex
}

// lostRange is what a failed sync left undecided: it may be read again after a crash or not.
type lostRange struct{ from, to model.LSN }

// maxLost bounds the ranges that are remembered: who appended asks within moments.
const maxLost = 64

// Open opens the spool in dir, which it creates.
func Open(fs vfs.FS, dir string, o Options) (*Log, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 16 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := fs.MkdirAll(dir); err != nil {
		return nil, err
	}
	lock, err := fs.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("spool in %s: %w", dir, err)
	}
	l := &Log{o: o, fs: fs, dir: dir, lock: lock, id: rand.Uint64()}
	if err := l.recover(); err != nil {
		return nil, errors.Join(fmt.Errorf("spool in %s: %w", dir, err), l.closeFiles(), lock.Close())
	}
	return l, nil
}

func (l *Log) recover() error {
	if err := l.openSegments(); err != nil {
		return err
	}
	for i, s := range l.segments {
		limit, newest := ^model.LSN(0), i+1 == len(l.segments)
		if !newest {
			limit = l.segments[i+1].base
		}
		end, gaps, err := s.read(0, limit, func(model.LSN, []byte) error { return nil })
		if err != nil {
			return err
		}
		s.end = end
		l.note(s, gaps)
		size, err := s.file.Size()
		if err != nil {
			return err
		}
		behind := size - segmentHeaderBytes - int64(end-s.base)
		switch {
		case !newest && end < limit:
			// A segment is whole before the next is begun, but for what a failed sync left undecided.
			l.note(s, []gap{{end, limit}})
		case newest && behind > 0:
			l.damage.TailBytes += behind
			l.o.Logger.Warn("a spool segment has bytes behind its last valid record: a torn tail, which nobody was told of, or damage", "segment", s.name, "bytes", behind)
		}
		if !s.salvaged {
			l.id = s.id
		}
		l.end = end
	}
	l.synced = l.end
	return errors.Join(l.writeHeaders(), l.dropEmpty())
}

// openSegments opens the files. One whose header is damaged is read by its name, and is set aside if it has no valid record: a segment is acknowledged
// only after its header was synced, so this is a torn creation or lost altogether.
func (l *Log) openSegments() error {
	names, err := l.fs.List(l.dir)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !isSegment(name) })
	slices.Sort(names)
	for i, name := range names {
		path := filepath.Join(l.dir, name)
		s, err := openSegment(l.fs, path)
		if damage, ok := errors.AsType[*storage.CorruptionError](err); ok {
			limit := ^model.LSN(0)
			if i+1 < len(names) {
				if next, err := segmentBase(names[i+1]); err == nil {
					limit = next
				}
			}
			if s, err = salvageSegment(l.fs, path, limit); err == nil && s == nil {
				if err := l.setAside(path, damage); err != nil {
					return err
				}
				continue
			}
		}
		if err != nil {
			return err
		}
		l.segments = append(l.segments, s)
	}
	return nil
}

// setAside keeps a damaged segment out of the log.
func (l *Log) setAside(path string, damage error) error {
	file, err := l.fs.Open(path)
	if err != nil {
		return err
	}
	size, err := file.Size()
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	l.o.Logger.Error("set aside a damaged spool segment", "error", damage, "bytes", size)
	if size > segmentHeaderBytes {
		l.damage.Places++
		l.damage.Bytes += size - segmentHeaderBytes
	}
	return l.fs.Rename(path, path+".damaged")
}

// writeHeaders makes the headers of salvaged segments right again.
func (l *Log) writeHeaders() error {
	for _, s := range l.segments {
		if !s.salvaged {
			continue
		}
		if s.id != l.id && len(l.segments) == 1 {
			l.id = s.id
		}
		s.id, s.salvaged = l.id, false
		l.o.Logger.Error("the header of a spool segment was damaged and is written again; check the disk", "segment", s.name)
		if _, err := s.file.WriteAt(appendSegmentHeader(nil, s.id, s.base), 0); err != nil {
			return err
		}
		if err := s.file.SyncData(); err != nil {
			return err
		}
	}
	return nil
}

// dropEmpty removes segments without records, which a restart leaves behind. One that lost them all is set aside.
func (l *Log) dropEmpty() error {
	kept := l.segments[:0]
	for i, s := range l.segments {
		if s.end > s.base || i == 0 {
			kept = append(kept, s)
			continue
		}
		remove := func() error { return l.fs.Remove(s.name) }
		if len(s.gaps) > 0 {
			remove = func() error { return l.fs.Rename(s.name, s.name+".damaged") }
		}
		if err := errors.Join(s.file.Close(), remove()); err != nil {
			return err
		}
	}
	l.segments = kept
	return nil
}

// ID is a random number that names the folder: positions of different folders have nothing to do with each other.
func (l *Log) ID() uint64 { return l.id }

// StartAt makes an empty log begin at lsn; a log with records only moves forward.
func (l *Log) StartAt(lsn model.LSN) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lsn > l.end && !l.active {
		l.end, l.synced = lsn, lsn
	}
}

// End is the LSN behind the last record.
func (l *Log) End() model.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// Synced is the LSN up to which everything is on disk.
func (l *Log) Synced() model.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.synced
}

// Bounds are the LSNs of a segment: of its first record, and behind its last.
type Bounds struct{ From, To model.LSN }

// Segments returns the bounds of the segments, oldest first.
func (l *Log) Segments() []Bounds {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Bounds, len(l.segments))
	for i, s := range l.segments {
		list[i] = Bounds{s.base, s.end}
	}
	return list
}

// SizeBytes is what the segments take.
func (l *Log) SizeBytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := int64(0)
	for _, s := range l.segments {
		size += segmentHeaderBytes + int64(s.end-s.base)
	}
	return size
}

// Append writes r, in several records if it is large, and returns the LSN behind the last. The marks are in the last one. On an error
// nothing that was written will be read again.
func (l *Log) Append(r Record) (model.LSN, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, storage.ErrClosed
	}
	first := l.end
	rows := r.Batch.Len()
	for from := 0; ; {
		to := pieceEnd(r.Batch, from)
		if err := l.write(r, from, to, to == rows); err != nil {
			l.abandon(first)
			return 0, err
		}
		if from = to; to == rows {
			return l.end, nil
		}
	}
}

// write appends one record to the active segment.
func (l *Log) write(r Record, from, to int, marks bool) error {
	if !l.active || int64(l.end-l.last().base) >= l.o.SegmentBytes {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	var header [recordHeaderBytes]byte
	l.buffer = appendPayload(append(l.buffer[:0], header[:]...), r, from, to, marks)
	payload := l.buffer[recordHeaderBytes:]
	if len(payload) > maxPayloadBytes {
		return fmt.Errorf("a record of %d bytes, expected at most %d", len(payload), maxPayloadBytes)
	}
	binary.LittleEndian.PutUint32(l.buffer, uint32(len(payload)))
	binary.LittleEndian.PutUint32(l.buffer[4:], recordCRC(l.end, payload))
	s := l.last()
	if _, err := s.file.WriteAt(l.buffer, segmentHeaderBytes+int64(l.end-s.base)); err != nil {
		return err
	}
	l.end += model.LSN(len(l.buffer))
	s.end = l.end
	if cap(l.buffer) > 2*splitBytes {
		l.buffer = nil
	}
	return nil
}

func (l *Log) last() *segment { return l.segments[len(l.segments)-1] }

// rotate syncs the active segment and begins another.
func (l *Log) rotate() error {
	if l.active {
		if err := l.last().file.SyncData(); err != nil {
			l.fail()
			return err
		}
		l.synced = l.end
	}
	name := segmentName(l.dir, l.end)
	if n := len(l.segments); n > 0 && l.last().base == l.end { // an empty one of the same name
		if err := errors.Join(l.last().file.Close(), l.fs.Remove(name)); err != nil {
			return err
		}
		l.segments = l.segments[:n-1]
	}
	file, err := l.fs.Create(name)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(appendSegmentHeader(nil, l.id, l.end), 0)
	if err = errors.Join(err, file.Sync(), l.fs.SyncDir(l.dir)); err != nil {
		return errors.Join(err, file.Close(), l.fs.Remove(name))
	}
	l.segments = append(l.segments, &segment{name: name, id: l.id, base: l.end, end: l.end, file: file})
	l.active = true
	return nil
}

// abandon forgets what was written behind lsn. The next record goes to a new segment; what is behind lsn in older ones is cut off,
// and if even that fails, their successor's first LSN ends them.
func (l *Log) abandon(lsn model.LSN) {
	for len(l.segments) > 0 && l.last().base > lsn {
		s := l.last()
		if err := errors.Join(s.file.Close(), l.fs.Remove(s.name)); err != nil {
			l.o.Logger.Error("an abandoned spool segment remains", "error", err)
		}
		l.segments = l.segments[:len(l.segments)-1]
	}
	l.end = lsn
	l.active = false
	if len(l.segments) > 0 {
		s := l.last()
		s.end = min(s.end, lsn)
		if err := s.file.Truncate(segmentHeaderBytes + int64(s.end-s.base)); err != nil {
			l.o.Logger.Error("a spool segment could not be cut", "error", err)
		}
	}
}

// Sync makes everything durable that was appended before, and returns the LSN behind it. After an error what was not durable is
// not written again: its senders must be told, and later records go to another segment.
func (l *Log) Sync() (model.LSN, error) {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return 0, storage.ErrClosed
	}
	end := l.end
	if end <= l.synced || !l.active {
		l.mu.Unlock()
		return l.synced, nil
	}
	s := l.last()
	l.mu.Unlock()
	err := s.file.SyncData()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.fail()
		return l.synced, fmt.Errorf("%s: %w", s.name, err)
	}
	l.synced = max(l.synced, end)
	return l.synced, nil
}

// fail gives the active segment up after a failed sync.
func (l *Log) fail() {
	l.lost = append(l.lost, lostRange{from: l.synced, to: l.end})
	l.lost = l.lost[max(len(l.lost)-maxLost, 0):]
	l.synced = l.end
	l.active = false
}

// Lost reports whether the record that ends at lsn was in a segment that could not be synced.
func (l *Log) Lost(lsn model.LSN) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.lost {
		if r.from < lsn && lsn <= r.to {
			return true
		}
	}
	return false
}

// Read calls fn for every record that ends behind LSN from, oldest first, with the LSN behind it. The record belongs to fn. After nil everything
// that was appended before the call was read, or is damaged and counted in Damage. An error is that of fn or ctx, or of a disk that did not answer: then
// a later call may read more.
func (l *Log) Read(ctx context.Context, from model.LSN, fn func(model.LSN, Record) error) error {
	l.reading.RLock()
	defer l.reading.RUnlock()
	l.mu.Lock()
	segments, originals := make([]segment, 0, len(l.segments)), slices.Clone(l.segments)
	for _, s := range l.segments {
		segments = append(segments, *s)
	}
	l.mu.Unlock()
	for i := range segments {
		s := &segments[i]
		if s.end <= from {
			continue
		}
		end, gaps, err := s.read(from, s.end, func(lsn model.LSN, payload []byte) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			r, err := decodePayload(payload)
			if err != nil {
				l.o.Logger.Error("a spool record with an intact checksum cannot be read", "lsn", uint64(lsn), "error", err)
				return nil
			}
			return fn(lsn, r)
		})
		if len(gaps) > 0 {
			l.mu.Lock()
			l.note(originals[i], gaps)
			l.mu.Unlock()
		}
		if err != nil {
			return err
		}
		if end < s.end {
			if err := l.endless(originals[i], end); err != nil {
				return err
			}
		}
	}
	return nil
}

// Trim removes the segments whose records all end at or before lsn, except the one that is written to. While somebody reads it does nothing.
func (l *Log) Trim(lsn model.LSN) error {
	if !l.reading.TryLock() {
		return nil
	}
	defer l.reading.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.segments) > 1 && l.segments[0].end <= lsn {
		s := l.segments[0]
		if err := errors.Join(s.file.Close(), l.fs.Remove(s.name)); err != nil {
			return err
		}
		l.segments = l.segments[1:]
	}
	return nil
}

// Close syncs and closes the files. A second call does nothing.
func (l *Log) Close() error {
	if _, err := l.Sync(); err != nil && !errors.Is(err, storage.ErrClosed) {
		l.o.Logger.Error("the spool could not be synced", "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return errors.Join(l.closeFiles(), l.lock.Close())
}

func (l *Log) closeFiles() error {
	var err error
	for _, s := range l.segments {
		err = errors.Join(err, s.file.Close())
	}
	return err
}

func joinClose(file io.Closer, err error) error { return errors.Join(err, file.Close()) }
