// Package datafile is an append-only file of extents.
//
//	datafile-1-0000000001.ndf    header 64 B | extent | extent | …
//
// Extents start at multiples of 64 bytes. A datafile can be read without its journalfile: Scan finds every intact
// extent. format/datafile.md documents every byte.
package datafile

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"tidemark/internal/vfs"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
)

// Align is what extents start at multiples of, in bytes.
const Align = 64

// MaxBytes bounds a datafile.
const MaxBytes = 1 << 32

// ID names a pair of datafile and journalfile: the generation and number in their names.
type ID struct{ Generation, Number uint32 }

// Name returns the datafile's name.
func (id ID) Name() string { return fmt.Sprintf("datafile-%d-%010d.ndf", id.Generation, id.Number) }

// JournalName returns the journalfile's name.
func (id ID) JournalName() string {
	return fmt.Sprintf("journalfile-%d-%010d.njf", id.Generation, id.Number)
}

// Extent returns the identity of an extent of the datafile.
func (id ID) Extent(sequence uint64) extent.Identity {
	return extent.Identity{Generation: id.Generation, File: id.Number, Sequence: sequence}
}

// Less orders pairs from old to new.
func (id ID) Less(o ID) bool {
	if id.Number != o.Number {
		return id.Number < o.Number
	}
	return id.Generation < o.Generation
}

// ParseName returns the ID in the name of a datafile or journalfile, and which of them it is.
func ParseName(name string) (id ID, journal, ok bool) {
	rest, isData := strings.CutPrefix(name, "datafile-")
	if !isData {
		if rest, journal = strings.CutPrefix(name, "journalfile-"); !journal {
			return ID{}, false, false
		}
	}
	if _, err := fmt.Sscanf(rest, "%d-%d", &id.Generation, &id.Number); err != nil {
		return ID{}, false, false
	}
	if journal {
		return id, true, id.JournalName() == name
	}
	return id, false, id.Name() == name
}

// File is an open datafile.
type File struct {
	ID   ID
	name string
	f    vfs.File
}

// Create makes a new datafile with its header, synced. The folder is not synced.
func Create(fsys vfs.FS, dir string, id ID) (*File, error) {
	name := filepath.Join(dir, id.Name())
	f, err := fsys.Create(name)
	if err != nil {
		return nil, err
	}
	h := header.Header{Magic: header.Datafile, Generation: id.Generation, Number: id.Number}
	_, err = f.WriteAt(h.Append(nil), 0)
	if err == nil {
		err = f.SyncData()
	}
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", id.Name(), errors.Join(err, f.Close(), fsys.Remove(name)))
	}
	return &File{ID: id, name: id.Name(), f: f}, nil
}

// Open opens a datafile and checks its header. Writable files can be appended to.
func Open(fsys vfs.FS, dir string, id ID, writable bool) (*File, error) {
	open := fsys.Open
	if writable {
		open = fsys.OpenReadWrite
	}
	f, err := open(filepath.Join(dir, id.Name()))
	if err != nil {
		return nil, err
	}
	if err := CheckHeader(f, header.Datafile, id); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", id.Name(), err), f.Close())
	}
	return &File{ID: id, name: id.Name(), f: f}, nil
}

// Reopen opens a datafile for reading whose header was checked before.
//
// With buffers it is read past the system's cache, if the file system takes that.
func Reopen(fsys vfs.FS, dir string, id ID, buffers *vfs.Buffers) (*File, error) {
	name := filepath.Join(dir, id.Name())
	if buffers != nil {
		if f, err := vfs.OpenDirectly(fsys, name, false, buffers); !errors.Is(err, errors.ErrUnsupported) {
			return &File{ID: id, name: id.Name(), f: f}, err
		}
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	return &File{ID: id, name: id.Name(), f: f}, nil
}

// OpenDirectly opens a datafile whose header was checked before for appending past the system's cache, see vfs.OpenDirectly.
func OpenDirectly(fsys vfs.FS, dir string, id ID, buffers *vfs.Buffers) (*File, error) {
	f, err := vfs.OpenDirectly(fsys, filepath.Join(dir, id.Name()), true, buffers)
	if err != nil {
		return nil, err
	}
	return &File{ID: id, name: id.Name(), f: f}, nil
}

// CheckHeader reads the header at the start of f and compares it with what the file's name says.
func CheckHeader(f io.ReaderAt, magic header.Magic, id ID) error {
	b := make([]byte, header.Bytes)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	h, err := header.Decode(b[:n], magic)
	if err != nil {
		return err
	}
	if h.Generation != id.Generation || h.Number != id.Number {
		return fmt.Errorf("%w: it belongs to generation %d, number %d", header.ErrHeader, h.Generation, h.Number)
	}
	return nil
}

// ReadHeader returns the header of a datafile.
func ReadHeader(fsys vfs.FS, dir string, id ID) (header.Header, error) {
	f, err := fsys.Open(filepath.Join(dir, id.Name()))
	if err != nil {
		return header.Header{}, err
	}
	defer f.Close()
	b := make([]byte, header.Bytes)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return header.Header{}, err
	}
	return header.Decode(b[:n], header.Datafile)
}

// ReadAt reads len(p) bytes at offset; fewer are an error.
func (f *File) ReadAt(p []byte, offset int64) error {
	n, err := f.f.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	return fmt.Errorf("read %s at byte %d: %w", f.name, offset, err)
}

// WriteAt writes an extent, or several with their padding, at offset.
func (f *File) WriteAt(p []byte, offset int64) error {
	if _, err := f.f.WriteAt(p, offset); err != nil {
		return fmt.Errorf("write %s at byte %d: %w", f.name, offset, err)
	}
	return nil
}

// Sync makes the extents durable.
func (f *File) Sync() error { return f.f.SyncData() }

// SyncAll makes the extents and the length durable, without what fills up the last block of a file that is written directly.
func (f *File) SyncAll() error { return f.f.Sync() }

// Raw is the file itself.
func (f *File) Raw() io.ReaderAt { return f.f }

// Size returns the length of the file.
func (f *File) Size() (int64, error) { return f.f.Size() }

// Truncate cuts the file.
func (f *File) Truncate(sizeBytes int64) error { return f.f.Truncate(sizeBytes) }

// Close closes the file.
func (f *File) Close() error { return f.f.Close() }

// Damage is a stretch of a datafile that holds no intact extent.
type Damage struct {
	From, To int64
	Err      error
}

// Scan calls fn for every intact extent from byte offset from on and returns the stretches between them. The bytes
// are valid during the call. It returns the offset behind the last intact extent.
func (f *File) Scan(from int64, fn func(offset int64, sequence uint64, b []byte) error) (int64, []Damage, error) {
	size, err := f.Size()
	if err != nil {
		return from, nil, err
	}
	var damage []Damage
	end := from
	buf := make([]byte, 0, 256<<10)
	for at := align(from); at+extent.HeaderBytes <= size; {
		b, sequence, err := f.readExtent(buf, at, size)
		if err != nil {
			if !errors.Is(err, extent.ErrExtent) {
				return end, damage, err
			}
			if k := len(damage); k > 0 && damage[k-1].To == at {
				damage[k-1].To = at + Align
			} else {
				damage = append(damage, Damage{From: at, To: at + Align, Err: err})
			}
			at += Align
			continue
		}
		if err := fn(at, sequence, b); err != nil {
			return end, damage, err
		}
		end = at + int64(len(b))
		at = align(end)
		buf = b[:0]
	}
	return end, damage, nil
}

func align(offset int64) int64 { return (max(offset, header.Bytes) + Align - 1) / Align * Align }

// readExtent reads and parses the extent at an offset.
func (f *File) readExtent(buf []byte, at, size int64) ([]byte, uint64, error) {
	var head [extent.HeaderBytes]byte
	if err := f.ReadAt(head[:], at); err != nil {
		return nil, 0, err
	}
	n, id, err := extent.Peek(head[:])
	if err != nil {
		return nil, 0, err
	}
	if at+int64(n) > size {
		return nil, 0, fmt.Errorf("%w: %d bytes at byte %d of a file of %d", extent.ErrExtent, n, at, size)
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	b := buf[:n]
	if err := f.ReadAt(b, at); err != nil {
		return nil, 0, err
	}
	if id != f.ID.Extent(id.Sequence) {
		return nil, 0, fmt.Errorf("%w: %v in this file", extent.ErrExtent, id)
	}
	if _, err := extent.ParseHead(b, id); err != nil {
		return nil, 0, err
	}
	return b, id.Sequence, nil
}
