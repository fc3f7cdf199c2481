// Package vfs is the files as the engine and the catalog see them, so that tests can crash, fail and fill them.
//
// Three implementations: OS, an in-memory one that can be cloned as a crash would leave it, and one that fails on demand.
package vfs

import (
	"io"
	"io/fs"
)

// FS is a file system. Names are paths as the implementation understands them.
type FS interface {
	// Open opens an existing file for reading.
	Open(name string) (File, error)
	// OpenReadWrite opens an existing file for reading and writing, or creates it.
	OpenReadWrite(name string) (File, error)
	// OpenDirect opens an existing file past the system's cache: offsets, lengths and addresses in memory are multiples of DirectBytes, or reads and
	// writes fail. It fails with errors.ErrUnsupported where that is not to be had. Use OpenDirectly.
	OpenDirect(name string, writable bool) (File, error)
	// Create creates a file that must not exist, for reading and writing.
	Create(name string) (File, error)
	Remove(name string) error
	// Rename replaces newName if it exists. It is durable after SyncDir of the folder.
	Rename(oldName, newName string) error
	// Link makes newName a hard link of oldName.
	Link(oldName, newName string) error
	// Links returns how many names a file has.
	Links(name string) (int, error)
	MkdirAll(name string) error
	// List returns the names in a folder, sorted.
	List(dir string) ([]string, error)
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes creations, renames and removals in the folder durable.
	SyncDir(dir string) error
	// Lock takes an exclusive lock on a file, which it creates, and fails at once if somebody holds it.
	Lock(name string) (io.Closer, error)
	// Free returns the free and total bytes of the file system that holds name.
	Free(name string) (freeBytes, totalBytes int64, err error)
}

// File is an open file. Reads and writes are positional, so that one file serves several goroutines.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes the file's bytes and length durable.
	Sync() error
	// SyncData makes the bytes durable, and the length if it grew (fdatasync).
	SyncData() error
	// Size returns the length in bytes.
	Size() (int64, error)
	Truncate(sizeBytes int64) error
	// Allocate reserves room for the first sizeBytes bytes and extends the file to that length if it is shorter.
	Allocate(sizeBytes int64) error
}
