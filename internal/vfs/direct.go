package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// DirectBytes is the block of direct I/O: offsets, lengths and addresses in memory are multiples of it. Disks and file systems ask for
// 512 or 4,096; one that asks for more is used through the system's cache.
const DirectBytes = 4096

// Buffers are the memory that files share which are read and written directly: a bounded number of buffers of one size at aligned addresses. They are
// made when they are first needed, and kept. All methods may be called at the same time.
type Buffers struct {
	sizeBytes int
	slots     chan struct{}
	mu        sync.Mutex
	idle      [][]byte
	made      int

	readBytes, writtenBytes atomic.Int64
}

// NewBuffers returns room for so many buffers, at least two, of a size that is a multiple of DirectBytes.
func NewBuffers(count, sizeBytes int) *Buffers {
	return &Buffers{sizeBytes: sizeBytes, slots: make(chan struct{}, count)}
}

// LimitBytes is the most memory that the buffers take, HeldBytes what they take now.
func (b *Buffers) LimitBytes() int64 { return int64(cap(b.slots)) * int64(b.sizeBytes+DirectBytes) }

// HeldBytes is the memory that the buffers take now.
func (b *Buffers) HeldBytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(b.made) * int64(b.sizeBytes+DirectBytes)
}

// ReadBytes and WrittenBytes are what was read and written directly, whole blocks.
func (b *Buffers) ReadBytes() int64 { return b.readBytes.Load() }

// WrittenBytes is what was written directly, whole blocks.
func (b *Buffers) WrittenBytes() int64 { return b.writtenBytes.Load() }

// take waits for a buffer. Who has one takes no other before it is given back, or all could wait for one another; writes that are under way
// give theirs back by themselves.
func (b *Buffers) take() []byte {
	b.slots <- struct{}{}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.idle); n > 0 {
		p := b.idle[n-1]
		b.idle = b.idle[:n-1]
		return p
	}
	b.made++
	return aligned(b.sizeBytes)
}

func (b *Buffers) give(p []byte) {
	b.mu.Lock()
	b.idle = append(b.idle, p)
	b.mu.Unlock()
	<-b.slots
}

// aligned returns memory at an address that is a multiple of DirectBytes.
func aligned(size int) []byte {
	p := make([]byte, size+DirectBytes)
	skip := (DirectBytes - int(uintptr(unsafe.Pointer(unsafe.SliceData(p)))%DirectBytes)) % DirectBytes
	return p[skip : skip+size : skip+size]
}

// isAligned reports whether a read or write may be done directly.
func isAligned(p []byte, offset int64) bool {
	return offset%DirectBytes == 0 && len(p)%DirectBytes == 0 && uintptr(unsafe.Pointer(unsafe.SliceData(p)))%DirectBytes == 0
}

func blockDown(n int64) int64 { return n / DirectBytes * DirectBytes }

func blockUp(n int64) int64 { return blockDown(n + DirectBytes - 1) }

// OpenDirectly opens an existing file that is read and written directly, at any offset, in any length. It fails with errors.ErrUnsupported where
// the file system cannot do that.
//
// Reads fetch whole blocks. A file that is opened for writing can only be appended to, and is written by one goroutine: whole blocks are on their way to the disk when WriteAt returns,
// its errors come with the next call at the latest with the next sync, and what does not fill a block waits for the sync, which fills it up with zeros.
// Sync and Close cut these zeros off, SyncData leaves them: until then the file ends at a multiple of DirectBytes. Size never counts them.
func OpenDirectly(fsys FS, name string, writable bool, buffers *Buffers) (File, error) {
	raw, err := fsys.OpenDirect(name, writable)
	if err != nil {
		return nil, err
	}
	if !writable {
		return &directReader{File: raw, buffers: buffers}, nil
	}
	f := &directFile{raw: raw, name: name, buffers: buffers}
	if f.size, err = raw.Size(); err == nil {
		err = f.readTail()
	}
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return f, nil
}

// directReader reads a file directly.
type directReader struct {
	File
	buffers *Buffers
}

// ReadAt reads at an offset.
func (f *directReader) ReadAt(p []byte, offset int64) (int, error) {
	return f.buffers.read(f.File, p, offset)
}

// read reads any range of a file by whole blocks.
func (b *Buffers) read(raw File, p []byte, offset int64) (int, error) {
	if isAligned(p, offset) {
		n, err := raw.ReadAt(p, offset)
		b.readBytes.Add(int64(n))
		return n, err
	}
	buf := b.take()
	defer b.give(buf)
	done := 0
	for done < len(p) {
		at := offset + int64(done)
		first := blockDown(at)
		want := min(blockUp(offset+int64(len(p)))-first, int64(len(buf)))
		n, err := raw.ReadAt(buf[:want], first)
		b.readBytes.Add(int64(n))
		skip := int(at - first)
		if n <= skip {
			return done, err
		}
		done += copy(p[done:], buf[skip:n])
		if err != nil && done < len(p) {
			return done, err
		}
	}
	return done, nil
}

// directFile appends to a file directly.
type directFile struct {
	raw     File
	name    string
	buffers *Buffers

	// mu is held by every call.
	mu sync.Mutex
	// size is the file's length without padding.
	size int64
	// tail is what there is of the last block; waiting means that it is not written. padded means that the file is longer than size.
	tail    []byte
	waiting bool
	padded  bool
	// flying are the writes that are under way, failed the first error of one.
	flying  sync.WaitGroup
	failing sync.Mutex
	failed  error
}

// readTail reads the block that the next write continues.
func (f *directFile) readTail() error {
	f.tail = make([]byte, f.size%DirectBytes, DirectBytes)
	if len(f.tail) == 0 {
		return nil
	}
	if n, err := f.buffers.read(f.raw, f.tail, blockDown(f.size)); n < len(f.tail) {
		return err
	}
	return nil
}

// WriteAt appends. What lies between the end and offset, less than a block, becomes zeros.
func (f *directFile) WriteAt(p []byte, offset int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	gap := offset - f.size
	if gap < 0 || gap >= DirectBytes {
		return 0, &fs.PathError{Op: "write", Path: f.name, Err: fmt.Errorf("byte %d of a file of %d that is only appended to: %w", offset, f.size, syscall.EINVAL)}
	}
	if err := f.err(); err != nil {
		return 0, err
	}
	at := blockDown(f.size)
	zeros := [DirectBytes]byte{}
	parts := [][]byte{f.tail, zeros[:gap], p}
	rest := len(f.tail) + int(gap) + len(p)
	for rest >= DirectBytes {
		b := f.buffers.take()
		n := min(rest/DirectBytes*DirectBytes, len(b))
		fill(b[:n], parts)
		f.launch(b, n, at)
		at += int64(n)
		rest -= n
	}
	tail := make([]byte, rest, DirectBytes)
	fill(tail, parts)
	f.tail, f.waiting = tail, rest > 0
	f.size = offset + int64(len(p))
	return len(p), nil
}

// fill takes bytes out of parts.
func fill(b []byte, parts [][]byte) {
	for i := range parts {
		n := copy(b, parts[i])
		b, parts[i] = b[n:], parts[i][n:]
	}
}

// launch writes a buffer without waiting for it.
func (f *directFile) launch(b []byte, n int, at int64) {
	f.flying.Go(func() {
		_, err := f.raw.WriteAt(b[:n], at)
		f.buffers.writtenBytes.Add(int64(n))
		f.buffers.give(b)
		if err != nil {
			f.failing.Lock()
			defer f.failing.Unlock()
			f.failed = errors.Join(f.failed, err)
		}
	})
}

// err is why an earlier write failed. What it should have written is lost, so that the file is of no use from there on.
func (f *directFile) err() error {
	f.failing.Lock()
	defer f.failing.Unlock()
	return f.failed
}

// flush writes the last block, filled up with zeros, and waits for all writes.
func (f *directFile) flush() error {
	if f.waiting && f.err() == nil {
		b := f.buffers.take()
		n := copy(b, f.tail)
		clear(b[n:DirectBytes])
		f.waiting, f.padded = false, true
		f.launch(b, DirectBytes, blockDown(f.size))
	} else if len(f.tail) == 0 {
		f.padded = false
	}
	f.flying.Wait()
	return f.err()
}

// trim cuts the zeros behind the end off.
func (f *directFile) trim() error {
	if !f.padded {
		return nil
	}
	if err := f.raw.Truncate(f.size); err != nil {
		return err
	}
	f.padded = false
	return nil
}

// ReadAt reads what was written, which it waits for.
func (f *directFile) ReadAt(p []byte, offset int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.flush(); err != nil {
		return 0, err
	}
	if offset >= f.size {
		return 0, io.EOF
	}
	known := min(int64(len(p)), f.size-offset)
	n, err := f.buffers.read(f.raw, p[:known], offset)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// Sync makes bytes and length durable, the length without padding.
func (f *directFile) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.flush(); err != nil {
		return err
	}
	if err := f.trim(); err != nil {
		return err
	}
	return f.raw.Sync()
}

// SyncData makes the bytes durable; the file may end with the zeros of its last block.
func (f *directFile) SyncData() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.flush(); err != nil {
		return err
	}
	return f.raw.SyncData()
}

// Size returns the length without padding.
func (f *directFile) Size() (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size, nil
}

// Truncate is not for files that are appended to directly.
func (f *directFile) Truncate(int64) error {
	return &fs.PathError{Op: "truncate", Path: f.name, Err: errors.ErrUnsupported}
}

// Allocate is not for files that are appended to directly.
func (f *directFile) Allocate(int64) error {
	return &fs.PathError{Op: "allocate", Path: f.name, Err: errors.ErrUnsupported}
}

// Close writes what waits, cuts the padding off and closes the file. Whether all of it was written only a sync before tells for sure.
func (f *directFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.flush()
	if err == nil {
		err = f.trim()
	}
	return errors.Join(err, f.raw.Close())
}

// ReadBlocks reads the bytes of a file from one offset to another with the blocks that they lie in, into memory of their own, so that a file that is read directly
// needs no other buffer. It returns the offset at which the bytes begin.
func ReadBlocks(f io.ReaderAt, from, to int64) (int64, []byte, error) {
	first := blockDown(from)
	b := aligned(int(blockUp(to) - first))
	n, err := f.ReadAt(b, first)
	if first+int64(n) < to {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return first, nil, err
	}
	return first, b[:n], nil
}
