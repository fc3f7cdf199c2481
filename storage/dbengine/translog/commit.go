package translog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"tidemark/model"
	"tidemark/storage"
)

var errClosed = errors.New("the log is closed")

// run is the commit goroutine.
func (l *Log) run() {
	defer close(l.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if delay, ok := l.nextDue(); ok {
			timer.Reset(delay)
			due = timer.C
		}
		select {
		case <-l.wake:
			if !l.pace(timer) {
				return
			}
		case <-due:
		case <-l.stop:
			return
		}
		l.commit(l.mustSync())
	}
}

// mustSync says whether what is written next must be on disk at once.
func (l *Log) mustSync() bool {
	l.mu.Lock()
	asked := l.asked
	l.asked = false
	l.mu.Unlock()
	return asked || !l.o.Relaxed || time.Since(l.lastSync) >= relaxedDelay || len(l.tail) > maxBufferBytes
}

// nextDue says when something must happen without being asked: a retry, or the sync of relaxed durability.
func (l *Log) nextDue() (time.Duration, bool) {
	if l.needsRepair {
		return l.o.RetryDelay, true
	}
	if len(l.tail) > 0 {
		return max(relaxedDelay-time.Since(l.lastSync), 0), true
	}
	return 0, false
}

// pace waits before a group if the one before it served several batches and began less than GroupDelay ago. It
// reports false when the log is closing.
func (l *Log) pace(timer *time.Timer) bool {
	wait := l.o.GroupDelay - time.Since(l.groupBegan)
	if l.groupSize < 2 || wait <= 0 {
		return true
	}
	timer.Reset(wait)
	select {
	case <-timer.C:
		return true
	case <-l.stop:
		return false
	}
}

// take moves the buffer behind the tail and the waiters to l.taken, and returns the LSN behind them.
func (l *Log) take() model.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tail) == 0 {
		l.tailFrom = l.bufFrom
		l.tail, l.buf = l.buf, l.tail
	} else {
		l.tail = append(l.tail, l.buf...)
	}
	l.buf = emptied(l.buf, len(l.tail))
	l.bufFrom = l.end
	l.taken = append(l.taken, l.waiting...)
	clear(l.waiting)
	l.waiting = l.waiting[:0]
	l.announce()
	return l.end
}

// emptied returns the room of a buffer for the next group, or none if that was for a burst: the group now had used bytes.
func emptied(b []byte, used int) []byte {
	if cap(b) > 2*maxBufferBytes || cap(b) > keptBufferBytes && used < cap(b)/16 {
		return nil
	}
	return b[:0]
}

// announce wakes who waits for room or durability; l.mu is held.
func (l *Log) announce() {
	close(l.room)
	l.room = make(chan struct{})
}

// commit writes what waits, syncs it if sync, and finishes completions.
func (l *Log) commit(sync bool) {
	began := time.Now()
	from := len(l.tail)
	end := l.take()
	l.groupBegan, l.groupSize = began, len(l.taken)
	if len(l.tail) == 0 && !l.needsRepair {
		l.settle(end, end, nil)
		return
	}
	if l.needsRepair {
		from, sync = 0, true
	}
	err := l.flush(from, sync)
	if err != nil {
		l.o.Logger.Warn("the log could not be written; what is not on disk goes to a new file", "error", err)
		l.abandon()
		err = l.flush(0, true)
		sync = true
	}
	if err != nil {
		l.abandon()
		l.needsRepair = true
		err = fmt.Errorf("the log cannot be written: %w", err)
		if IsFull(err) && !errors.Is(err, storage.ErrFull) {
			err = fmt.Errorf("%w: %w", storage.ErrFull, err)
		}
		l.settle(0, 0, err)
		return
	}
	l.needsRepair = false
	durable := model.LSN(0)
	if sync {
		durable = end
		l.o.Synced(len(l.tail), time.Since(began))
		l.tail = emptied(l.tail, len(l.tail))
		l.lastSync = time.Now()
	}
	l.settle(end, durable, nil)
}

// flush writes the tail from byte offset from on, and syncs if sync.
func (l *Log) flush(from int, sync bool) error {
	for from < len(l.tail) {
		start := l.tailFrom + model.LSN(from)
		if l.current == nil {
			if err := l.rotate(start); err != nil {
				return err
			}
		}
		offset := headerBytes + int64(start-l.current.first)
		n := fitting(l.tail[from:], l.current.size-offset)
		if n == 0 && offset == headerBytes {
			return fmt.Errorf("a record is larger than a segment of %d bytes", l.current.size)
		}
		if n == 0 {
			if err := l.file.SyncData(); err != nil {
				return err
			}
			// What went to the full segment is on disk; should the next one fail, it is not written again.
			l.tail, l.tailFrom, from = l.tail[:copy(l.tail, l.tail[from:])], start, 0
			if err := l.rotate(start); err != nil {
				return err
			}
			continue
		}
		if _, err := l.file.WriteAt(l.tail[from:from+n], offset); err != nil {
			return err
		}
		from += n
		l.mu.Lock()
		l.current.end = l.tailFrom + model.LSN(from)
		l.mu.Unlock()
	}
	if sync && l.file != nil {
		return l.file.SyncData()
	}
	return nil
}

// IsFull reports whether an error means that the disk, the user's share of it, or the quota is full.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, storage.ErrFull)
}

// fitting returns how many bytes of whole records at the start of b fit into room.
func fitting(b []byte, room int64) int {
	if int64(len(b)) <= room {
		return len(b)
	}
	n := 0
	for n < len(b) {
		size := recordHeaderBytes + int(binary.LittleEndian.Uint32(b[n+4:]))
		if int64(n+size) > room {
			break
		}
		n += size
	}
	return n
}

// rotate closes the current segment, which is synced or abandoned, and starts one at LSN first.
func (l *Log) rotate(first model.LSN) error {
	l.abandon()
	s, f, err := l.startSegment(first)
	if err != nil {
		return err
	}
	l.current, l.file = s, f
	l.mu.Lock()
	l.segments = append(l.segments, s)
	l.mu.Unlock()
	return nil
}

// abandon lets go of the current segment. What it holds stays; nothing more is written to it.
func (l *Log) abandon() {
	if l.file != nil {
		if err := l.file.Close(); err != nil {
			l.o.Logger.Warn("close a log file", "error", err)
		}
	}
	l.current, l.file = nil, nil
}

// settle publishes how far the log is and finishes the completions that this reaches, or all if err is set.
func (l *Log) settle(written, durable model.LSN, err error) {
	l.mu.Lock()
	l.failed = err
	l.written = max(l.written, written)
	l.durable = max(l.durable, durable)
	reached := l.durable
	if l.o.Relaxed {
		reached = l.written
	}
	reached = l.replication.bound(reached)
	if err == nil {
		err = l.replication.refusal
	}
	l.announce()
	durable = l.durable
	l.mu.Unlock()
	l.o.Durable(durable)
	rest := l.taken[:0]
	for _, w := range l.taken {
		if err == nil && w.lsn > reached {
			rest = append(rest, w)
			continue
		}
		finish(w.done, err)
	}
	clear(l.taken[len(rest):])
	l.taken = rest
}

// Reserve allocates spare files up to the log's reserve. It is called from time to time by the log's owner.
func (l *Log) Reserve() error {
	for {
		l.mu.Lock()
		enough := len(l.spares) >= maxSpares || l.closed
		l.mu.Unlock()
		if enough {
			return nil
		}
		name, err := l.makeSpare()
		if err != nil {
			return err
		}
		l.giveSpare(name)
	}
}

// retire makes a segment's file spare, or removes it.
func (l *Log) retire(s *segment) {
	path := filepath.Join(l.o.Dir, s.file)
	links, err := l.o.FS.Links(path)
	linked := err == nil && links > 1 // a snapshot has it: what is in it must stay
	l.mu.Lock()
	keep := err == nil && !linked && len(l.spares) < maxSpares && s.size == l.o.SegmentBytes
	l.spareNumber++
	name := spareName(l.spareNumber)
	l.mu.Unlock()
	if keep && l.o.FS.Rename(path, filepath.Join(l.o.Dir, name)) == nil {
		l.giveSpare(name)
		return
	}
	if err := l.o.FS.Remove(path); err != nil {
		l.o.Logger.Warn("remove a log file", "file", s.file, "error", err)
		l.mu.Lock() // try again with the next one
		l.segments = append([]*segment{s}, l.segments...)
		l.mu.Unlock()
		return
	}
	if linked && l.o.Pinned != nil && l.o.Pinned(s.file, s.size) {
		return
	}
	l.o.Released(s.size)
}

// Close writes and syncs what waits, and ends the commit goroutine. Completions that cannot be kept are finished with the error.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.announce()
	l.mu.Unlock()
	close(l.stop)
	<-l.done
	l.commit(true)
	err := l.Err()
	if err == nil && l.current != nil {
		// The end's lag tells the next start that the records before it were on disk: damage is then not taken for a torn write.
		l.mu.Lock()
		l.buf = appendRecord(l.buf, l.end, l.durable, kindClosed, nil)
		l.end = l.bufFrom + model.LSN(len(l.buf))
		l.mu.Unlock()
		l.commit(true)
	}
	l.mu.Lock()
	left := append(l.taken, l.waiting...)
	l.taken, l.waiting = nil, nil
	l.mu.Unlock()
	for _, w := range left {
		finish(w.done, errClosed)
	}
	l.abandon()
	return err
}
