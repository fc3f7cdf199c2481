package vfs

import (
	"io"
	"io/fs"
	"syscall"
)

// memFile is an open file of a Mem.
type memFile struct {
	fs       *Mem
	node     *inode
	name     string
	writable bool
	direct   bool
	closed   bool
}

func (f *memFile) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

// usable says why the file cannot be used now; the file system's lock is held.
func (f *memFile) usable(op string, write bool) error {
	if f.closed {
		return f.fail(op, fs.ErrClosed)
	}
	if write && !f.writable {
		return f.fail(op, syscall.EBADF)
	}
	return nil
}

// ReadAt reads at an offset.
func (f *memFile) ReadAt(p []byte, offset int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.usable("read", false); err != nil {
		return 0, err
	}
	if offset < 0 || f.direct && !isAligned(p, offset) {
		return 0, f.fail("read", syscall.EINVAL)
	}
	if offset >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[offset:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes at an offset; what does not fit the capacity is not written.
func (f *memFile) WriteAt(p []byte, offset int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.usable("write", true); err != nil {
		return 0, err
	}
	if offset < 0 || f.direct && !isAligned(p, offset) {
		return 0, f.fail("write", syscall.EINVAL)
	}
	end := offset + int64(len(p))
	if err := f.grow("write", end); err != nil {
		return 0, err
	}
	f.node.remember(offset, end)
	return copy(f.node.data[offset:], p), nil
}

// grow makes the file at least size bytes long.
func (f *memFile) grow(op string, size int64) error {
	more := size - int64(len(f.node.data))
	if more <= 0 {
		return nil
	}
	if f.fs.capacity > 0 && f.fs.used()+more > f.fs.capacity {
		return f.fail(op, syscall.ENOSPC)
	}
	f.node.data = append(f.node.data, make([]byte, more)...)
	return nil
}

// remember keeps the content that the sectors of a range had at the last sync.
func (n *inode) remember(from, to int64) {
	for s := from / sectorBytes; s*sectorBytes < to; s++ {
		if _, ok := n.old[s]; ok {
			continue
		}
		var sector [sectorBytes]byte
		if at := s * sectorBytes; at < n.synced {
			copy(sector[:], n.data[at:min(n.synced, int64(len(n.data)))])
		}
		n.old[s] = sector
	}
}

// Sync makes bytes and length durable.
func (f *memFile) Sync() error {
	f.fs.mu.Lock()
	if err := f.usable("sync", false); err != nil {
		f.fs.mu.Unlock()
		return err
	}
	clear(f.node.old)
	f.node.synced = int64(len(f.node.data))
	f.fs.mu.Unlock()
	f.fs.synced()
	return nil
}

// SyncData is Sync: the length counts as data when it grew.
func (f *memFile) SyncData() error { return f.Sync() }

// Size returns the length.
func (f *memFile) Size() (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.usable("stat", false); err != nil {
		return 0, err
	}
	return int64(len(f.node.data)), nil
}

// Truncate sets the length.
func (f *memFile) Truncate(sizeBytes int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.usable("truncate", true); err != nil {
		return err
	}
	if sizeBytes > int64(len(f.node.data)) {
		return f.grow("truncate", sizeBytes)
	}
	f.node.remember(sizeBytes, int64(len(f.node.data)))
	clear(f.node.data[sizeBytes:])
	f.node.data = f.node.data[:sizeBytes]
	return nil
}

// Allocate extends the file.
func (f *memFile) Allocate(sizeBytes int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.usable("allocate", true); err != nil {
		return err
	}
	return f.grow("allocate", sizeBytes)
}

// Close closes the file; a second call fails as it does on the operating system.
func (f *memFile) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return f.fail("close", fs.ErrClosed)
	}
	f.closed = true
	return nil
}

// loseUnsynced does what Linux may do after a failed sync: what was not yet on disk is dropped from memory, and a later
// sync succeeds without it.
func (f *memFile) loseUnsynced() {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	for s, old := range f.node.old {
		if at := s * sectorBytes; at < int64(len(f.node.data)) {
			copy(f.node.data[at:], old[:])
		}
	}
	clear(f.node.old)
}
