package agent

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tidemark/internal/vfs"
)

// spillAfter is how long a row may wait in memory for the server before it goes to disk. It is also what a kill -9 of
// the agent costs while the server answers.
const spillAfter = 2 * time.Second

// maxMemoryRows bounds the rows in memory. Far fewer are there unless the disk fails.
const maxMemoryRows = 1 << 16

// spillRows is how many rows may wait in memory however young they are.
const spillRows = 8192

type bufferOptions struct {
	fs         vfs.FS
	log        *slog.Logger
	limitBytes int64
	sync       bool
	dropped    *atomic.Uint64
}

// buffer holds rows until the server has taken them: the newest in memory, and in files what had to wait. The oldest
// rows go first, in the order of their ids. Its methods may be called from several goroutines.
type buffer struct {
	options bufferOptions
	state   *state

	mu       sync.Mutex
	memory   []row
	since    time.Time // when the first row of memory came
	next     uint64    // the id of the next row
	reserved uint64    // ids below need no write of the state file
	taken    uint64    // the server has taken all rows up to this id
	disk     disk
	failing  bool // the last write failed
	closed   bool
}

// openBuffer reads what earlier runs left. Damaged files cost their damaged part only.
func openBuffer(dir string, s *state, o bufferOptions) (*buffer, error) {
	b := &buffer{options: o, state: s}
	was := s.get()
	b.taken = was.Taken
	b.disk = disk{fs: o.fs, log: o.log, dir: dir, segmentBytes: max(o.limitBytes/16, 64<<10)}
	if o.sync {
		b.disk.keepBytes = b.disk.segmentBytes / 4
	}
	if err := b.disk.open(); err != nil {
		return nil, fmt.Errorf("open agent buffer: %w", err)
	}
	b.next = max(was.NextID, b.disk.lastID()+1)
	b.reserved = b.next
	b.disk.drop(b.taken)
	return b, nil
}

// put gives the rows their ids and keeps them.
func (b *buffer) put(rows []row) {
	if len(rows) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next+uint64(len(rows)) > b.reserved {
		reserved, err := b.state.reserve(b.next)
		if err != nil {
			b.report(err)
			reserved = b.next + uint64(len(rows)) // Tried again with the next rows.
		}
		b.reserved = reserved
	}
	if len(b.memory) == 0 {
		b.since = time.Now()
	}
	for i := range rows {
		rows[i].id = b.next
		b.next++
	}
	b.memory = append(b.memory, rows...)
	if excess := len(b.memory) - maxMemoryRows; excess > 0 {
		b.options.dropped.Add(uint64(excess))
		b.trim(excess)
	}
}

// trim removes the first n rows of memory.
func (b *buffer) trim(n int) {
	kept := copy(b.memory, b.memory[n:])
	clear(b.memory[kept:])
	b.memory = b.memory[:kept]
}

// take appends the oldest rows to dst, at most limit and some 4 MiB of them. They stay in the buffer until done.
func (b *buffer) take(dst []row, limit int) []row {
	b.mu.Lock()
	defer b.mu.Unlock()
	const maxBytes = 4 << 20
	rows := b.disk.oldest(b.taken, limit)
	if len(rows) == 0 {
		rows = b.memory
	}
	size := 0
	for i := range rows {
		size += rows[i].sizeBytes()
		if i == limit || i > 0 && size > maxBytes {
			break
		}
		dst = append(dst, rows[i])
	}
	return dst
}

// done forgets the rows up to id, which the server has taken.
func (b *buffer) done(id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken = max(b.taken, id)
	b.disk.drop(b.taken)
	n := 0
	for n < len(b.memory) && b.memory[n].id <= b.taken {
		n++
	}
	if n > 0 {
		b.trim(n)
		b.since = time.Now()
	}
}

// tick is called after each tick's rows: it spills what has waited too long. With BufferSync it always does.
func (b *buffer) tick() {
	b.mu.Lock()
	waits := len(b.memory) > 0 && (b.options.sync || len(b.memory) > spillRows || time.Since(b.since) >= spillAfter)
	b.mu.Unlock()
	if waits {
		b.spill() //nolint:errcheck // It was reported; the rows stay in memory and are tried again.
	}
}

// spill moves the rows of memory to disk.
func (b *buffer) spill() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	for len(b.memory) > 0 && err == nil {
		var count int
		count, err = b.disk.append(b.memory)
		b.trim(count)
	}
	if lost := b.disk.shrink(b.options.limitBytes, b.taken); lost > 0 {
		b.options.dropped.Add(lost)
		b.options.log.Warn("the agent's buffer is full; the oldest values were dropped",
			"values", lost, "limit_bytes", b.options.limitBytes)
	}
	b.report(err)
	return err
}

// report logs the first of a row of failures, and that they ended.
func (b *buffer) report(err error) {
	switch {
	case err != nil && !b.failing:
		b.options.log.Error("the agent's buffer cannot be written; values wait in memory", "error", err)
	case err == nil && b.failing:
		b.options.log.Info("the agent's buffer can be written again")
	}
	b.failing = err != nil
}

// bufferStats say what waits.
type bufferStats struct {
	rows      uint64
	diskBytes int64
}

func (b *buffer) stats() bufferStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bufferStats{rows: uint64(len(b.memory)) + b.disk.rows(b.taken), diskBytes: b.disk.sizeBytes()}
}

// close writes what is in memory and the true ids.
func (b *buffer) close() error {
	err := b.spill()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	if err == nil {
		err = b.state.settle(b.next, b.taken)
	}
	if closeErr := b.disk.close(b.taken); err == nil {
		err = closeErr
	}
	return err
}
