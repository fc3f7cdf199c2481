package vfs

import (
	"io"
	"io/fs"
	"sync"
	"syscall"
)

// Op is a kind of operation that a Failing can make fail.
type Op uint16

// The kinds of operations; they combine with |.
const (
	OpOpen Op = 1 << iota
	OpCreate
	OpRemove
	OpRename
	OpList
	OpSyncDir
	OpRead
	OpWrite
	OpSync
	OpTruncate
	OpAllocate
	OpStat
	// OpAny is all of them.
	OpAny Op = 1<<iota - 1
)

// Failing is a file system that fails on demand. Without a rule it passes everything on.
type Failing struct {
	FS
	mu    sync.Mutex
	rule  func(op Op, name string, sizeBytes int) error
	count int64
}

var _ FS = (*Failing)(nil)

// NewFailing returns a Failing over f.
func NewFailing(f FS) *Failing { return &Failing{FS: f} }

// SetRule makes every operation ask rule first, one at a time; an error of it is the operation's result. size is the
// number of bytes of a read, write or allocation. A nil rule heals.
func (f *Failing) SetRule(rule func(op Op, name string, sizeBytes int) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rule = rule
}

// FailNth makes the n-th operation (from 1) of the given kinds fail with err, and those after it too if sticky.
func (f *Failing) FailNth(n int64, ops Op, err error, sticky bool) {
	seen := int64(0)
	f.SetRule(func(op Op, _ string, _ int) error {
		if op&ops == 0 {
			return nil
		}
		seen++
		if seen == n || (sticky && seen > n) {
			return err
		}
		return nil
	})
}

// FillAfter makes writes and allocations fail with ENOSPC after sizeBytes more bytes.
func (f *Failing) FillAfter(sizeBytes int64) {
	f.SetRule(func(op Op, _ string, n int) error {
		if op&(OpWrite|OpAllocate|OpCreate) == 0 {
			return nil
		}
		if sizeBytes -= int64(n); sizeBytes < 0 {
			return syscall.ENOSPC
		}
		return nil
	})
}

// Count returns the number of operations so far.
func (f *Failing) Count() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

func (f *Failing) ask(op Op, name string, size int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if f.rule == nil {
		return nil
	}
	if err := f.rule(op, name, size); err != nil {
		return &fs.PathError{Op: "failing", Path: name, Err: err}
	}
	return nil
}

// Open opens an existing file for reading.
func (f *Failing) Open(name string) (File, error) { return f.open(OpOpen, name, f.FS.Open) }

// OpenReadWrite opens or creates a file.
func (f *Failing) OpenReadWrite(name string) (File, error) {
	return f.open(OpOpen, name, f.FS.OpenReadWrite)
}

// OpenDirect opens an existing file past the cache.
func (f *Failing) OpenDirect(name string, writable bool) (File, error) {
	return f.open(OpOpen, name, func(name string) (File, error) { return f.FS.OpenDirect(name, writable) })
}

// Create creates a file that must not exist.
func (f *Failing) Create(name string) (File, error) { return f.open(OpCreate, name, f.FS.Create) }

func (f *Failing) open(op Op, name string, open func(string) (File, error)) (File, error) {
	if err := f.ask(op, name, 0); err != nil {
		return nil, err
	}
	file, err := open(name)
	if err != nil {
		return nil, err
	}
	return &failingFile{File: file, fs: f, name: name}, nil
}

// Remove removes a file.
func (f *Failing) Remove(name string) error {
	if err := f.ask(OpRemove, name, 0); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

// Rename replaces newName if it exists.
func (f *Failing) Rename(oldName, newName string) error {
	if err := f.ask(OpRename, oldName, 0); err != nil {
		return err
	}
	return f.FS.Rename(oldName, newName)
}

// List returns the names in a folder.
func (f *Failing) List(dir string) ([]string, error) {
	if err := f.ask(OpList, dir, 0); err != nil {
		return nil, err
	}
	return f.FS.List(dir)
}

// Stat describes a file.
func (f *Failing) Stat(name string) (fs.FileInfo, error) {
	if err := f.ask(OpStat, name, 0); err != nil {
		return nil, err
	}
	return f.FS.Stat(name)
}

// SyncDir makes names durable.
func (f *Failing) SyncDir(dir string) error {
	if err := f.ask(OpSyncDir, dir, 0); err != nil {
		return err
	}
	return f.FS.SyncDir(dir)
}

// Lock is never failed.
func (f *Failing) Lock(name string) (io.Closer, error) { return f.FS.Lock(name) }

// failingFile is an open file of a Failing.
type failingFile struct {
	File
	fs   *Failing
	name string
}

func (f *failingFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.fs.ask(OpRead, f.name, len(p)); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, offset)
}

// WriteAt, when it fails, has written the first half, as a real disk may.
func (f *failingFile) WriteAt(p []byte, offset int64) (int, error) {
	if err := f.fs.ask(OpWrite, f.name, len(p)); err != nil {
		half := len(p) / 2
		if m, ok := f.File.(*memFile); ok && m.direct {
			half = half / DirectBytes * DirectBytes
		}
		n, _ := f.File.WriteAt(p[:half], offset)
		return n, err
	}
	return f.File.WriteAt(p, offset)
}

// Sync, when it fails on a Mem, loses what it should have made durable.
func (f *failingFile) Sync() error {
	if err := f.fs.ask(OpSync, f.name, 0); err != nil {
		if m, ok := f.File.(*memFile); ok {
			m.loseUnsynced()
		}
		return err
	}
	return f.File.Sync()
}

func (f *failingFile) SyncData() error { return f.Sync() }

func (f *failingFile) Truncate(size int64) error {
	if err := f.fs.ask(OpTruncate, f.name, 0); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *failingFile) Allocate(size int64) error {
	grown := int64(0)
	if have, err := f.File.Size(); err == nil {
		grown = max(size-have, 0)
	}
	if err := f.fs.ask(OpAllocate, f.name, int(grown)); err != nil {
		return err
	}
	return f.File.Allocate(size)
}
