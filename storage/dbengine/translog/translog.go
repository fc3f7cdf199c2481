// Package translog is the engine's durable log: what was acknowledged is in it until it stands in a datafile.
//
//	log-0000000007.nlg   header 4096 B | record | record | … | leftovers
//	record               CRC-32C | length | kind, magic | lag | payload
//
// Records are numbered by their position (LSN), which only grows and does not count headers. Writers add records to a
// shared buffer; one goroutine writes the buffer and syncs it, for all who wait (group commit). A file is allocated in full
// before its first record and used again after its last one is no longer needed; the checksum of a record starts from
// its LSN, so that bytes of the earlier life do not pass. format/log.md documents every byte.
package translog

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
)

const (
	// MaxPayloadBytes bounds one record.
	MaxPayloadBytes = 768 << 10
	// MinSegmentBytes is the smallest segment that Open takes. One that cannot hold a record of MaxPayloadBytes is for tests,
	// which know that their records are small.
	MinSegmentBytes = 32 << 10
	// MaxSegmentBytes bounds what recovery reads at once.
	MaxSegmentBytes = 64 << 20
	// maxBufferBytes is how much may wait for the disk before Room blocks.
	maxBufferBytes = 8 << 20
	// keptBufferBytes of a buffer are kept however little is written.
	keptBufferBytes = 128 << 10
	// relaxedDelay is how long relaxed durability leaves written bytes without fdatasync.
	relaxedDelay = time.Second
	// maxSpares is how many allocated files wait: the reserve for a disk that others have filled.
	maxSpares = 2

	// kindClosed is the record of an orderly end. Its lag shows that everything before it was on disk.
	kindClosed byte = 0
)

// Options say where and how the log is kept. All fields but Metrics are required.
type Options struct {
	FS           vfs.FS
	Dir          string
	SegmentBytes int64
	// GroupDelay is the least time between two syncs while several batches wait for each.
	GroupDelay time.Duration
	// Relaxed finishes completions after the write, and syncs at most a second later.
	Relaxed bool
	// RetryDelay is the time between attempts to write after a failure.
	RetryDelay time.Duration
	// Reserve asks for room before a file is allocated; Released gives it back.
	Reserve  func(sizeBytes int64) error
	Released func(sizeBytes int64)
	// Pinned, if not nil, is told of a removed file that has other names, and reports whether its room stays taken.
	Pinned func(name string, sizeBytes int64) bool
	// Durable is told how far the log is on disk; called by the commit goroutine.
	Durable func(model.LSN)
	// Synced is told of every write with a sync: bytes and time.
	Synced func(sizeBytes int, took time.Duration)
	Logger *slog.Logger
}

// Log is an open log.
type Log struct {
	o Options

	mu sync.Mutex
	// buf holds records from LSN bufFrom up to end that nobody has written yet.
	buf     []byte
	bufFrom model.LSN
	end     model.LSN
	// written and durable are how far the log is in the file and on the disk.
	written, durable model.LSN
	waiting          []waiter
	// room is closed and replaced when the buffer was taken or the state changed.
	room   chan struct{}
	failed error
	closed bool

	replication replication
	// asked says that somebody waits for the disk, so that relaxed durability syncs at once.
	asked bool

	segments    []*segment
	spares      []string
	nextNumber  uint32
	spareNumber uint32
	replays     int

	wake chan struct{}
	stop chan struct{}
	done chan struct{}

	// What follows belongs to the commit goroutine.
	current     *segment
	file        vfs.File
	tail        []byte // written or not, but not synced yet
	tailFrom    model.LSN
	groupSize   int
	groupBegan  time.Time
	lastSync    time.Time
	taken       []waiter
	needsRepair bool
}

// waiter is a batch that waits for its record.
type waiter struct {
	lsn  model.LSN
	done []*model.Completion
}

// Append adds a record to the buffer and returns the LSN behind it. It does no I/O and cannot fail: ask Room first. The
// payload is at most MaxPayloadBytes and is copied.
func (l *Log) Append(kind byte, payload []byte) model.LSN {
	if len(payload) > MaxPayloadBytes {
		panic(fmt.Sprintf("translog: a record of %d bytes, expected at most %d", len(payload), MaxPayloadBytes))
	}
	l.mu.Lock()
	l.buf = appendRecord(l.buf, l.end, l.durable, kind, payload)
	l.end = l.bufFrom + model.LSN(len(l.buf))
	end := l.end
	l.mu.Unlock()
	l.poke()
	return end
}

// Notify finishes the completions when the log is durable up to lsn. It takes the slice over.
func (l *Log) Notify(lsn model.LSN, done []*model.Completion) {
	if len(done) == 0 {
		return
	}
	l.mu.Lock()
	reached := l.durable
	if l.o.Relaxed {
		reached = l.written
	}
	reached = l.replication.bound(reached)
	err := l.replication.refusal
	if reached < lsn && err == nil {
		if l.failed == nil && !l.closed {
			l.waiting = append(l.waiting, waiter{lsn: lsn, done: done})
			l.mu.Unlock()
			l.poke()
			return
		}
		if err = l.failed; err == nil {
			err = errClosed
		}
	}
	l.mu.Unlock()
	finish(done, err)
}

func finish(done []*model.Completion, err error) {
	for _, c := range done {
		c.Finish(err)
	}
}

// Room waits until the buffer can take sizeBytes more. It fails when the log cannot be written, and when ctx ends.
func (l *Log) Room(ctx context.Context, sizeBytes int) error {
	for {
		l.mu.Lock()
		err, closed, wait := l.failed, l.closed, l.room
		if l.replication.refusal != nil {
			err = l.replication.refusal
		}
		full := len(l.buf) > 0 && len(l.buf)+sizeBytes > maxBufferBytes
		l.mu.Unlock()
		switch {
		case closed:
			return errClosed
		case err != nil:
			return err
		case !full:
			return ctx.Err()
		}
		l.poke()
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Wait returns when the log is durable up to lsn, or cannot become so now. With relaxed durability it has the log synced at once.
func (l *Log) Wait(ctx context.Context, lsn model.LSN) error {
	for {
		l.mu.Lock()
		err, durable, closed, wait := l.failed, l.durable, l.closed, l.room
		l.asked = l.asked || durable < lsn
		l.mu.Unlock()
		switch {
		case durable >= lsn:
			return nil
		case err != nil:
			return err
		case closed:
			return errClosed
		}
		l.poke()
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// End is the LSN behind the last record, on disk or not.
func (l *Log) End() model.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// Durable is the LSN up to which everything is on disk.
func (l *Log) Durable() model.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable
}

// First is the LSN of the oldest record that is kept.
func (l *Log) First() model.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.segments) == 0 {
		return l.end
	}
	return l.segments[0].first
}

// SizeBytes is what the log's files take on disk, spare ones included.
func (l *Log) SizeBytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	total := int64(len(l.spares)) * l.o.SegmentBytes
	for _, s := range l.segments {
		total += s.size
	}
	return total
}

// LiveBytes is what the log's records take, with the room that is lost in files that are no longer written to.
func (l *Log) LiveBytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.segments) == 0 {
		return int64(l.end - l.written)
	}
	total := int64(0)
	for _, s := range l.segments[:len(l.segments)-1] {
		total += s.size
	}
	return total + headerBytes + int64(l.end-l.segments[len(l.segments)-1].first)
}

// KeepFrom returns the LSN from which on the log's files take at most sizeBytes; the file being written always counts as kept.
func (l *Log) KeepFrom(sizeBytes int64) model.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.end
	for i := len(l.segments) - 1; i >= 0; i-- {
		if sizeBytes -= l.segments[i].size; sizeBytes < 0 && i < len(l.segments)-1 {
			break
		}
		from = l.segments[i].first
	}
	return from
}

// Err says why the log cannot be written now; nil if it can.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// Recycle tells that records before lsn are no longer needed. Files that hold no others become spare or go.
func (l *Log) Recycle(lsn model.LSN) {
	l.mu.Lock()
	var retired []*segment
	for l.replays == 0 && len(l.segments) > 1 && l.segments[1].first <= lsn && l.segments[0].end <= l.durable {
		retired = append(retired, l.segments[0])
		l.segments = l.segments[1:]
	}
	l.mu.Unlock()
	for _, s := range retired {
		l.retire(s)
	}
}

// poke wakes the commit goroutine.
func (l *Log) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
