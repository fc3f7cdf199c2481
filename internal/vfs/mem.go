package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"
)

// ErrLocked means that somebody else holds the lock.
var ErrLocked = errors.New("in use by another process")

// sectorBytes is the unit in which un-synced bytes are lost: what a disk writes at once.
const sectorBytes = 512

// Mem is a file system in memory for tests. It remembers what was synced, so that CrashClone can make a copy as a
// power cut would leave it. All methods may be called at the same time.
type Mem struct {
	mu       sync.Mutex
	entries  map[string]*inode // current names
	durable  map[string]*inode // names as of the last SyncDir
	pending  []dirOp           // what changed since, in order
	folders  map[string]bool
	locks    map[string]bool
	capacity int64 // zero: none
	buffered bool  // there is no direct I/O
	onSync   func()
}

var _ FS = (*Mem)(nil)

// inode is a file without its names.
type inode struct {
	data []byte
	// old holds the content that sectors had at the last sync, for those written since.
	old    map[int64][sectorBytes]byte
	synced int64 // length at the last sync
}

// dirOp is one change of names: from loses its file if set, to gets file if set.
type dirOp struct {
	from, to string
	file     *inode
}

// NewMem returns an empty file system.
func NewMem() *Mem {
	return &Mem{
		entries: map[string]*inode{}, durable: map[string]*inode{},
		folders: map[string]bool{"/": true, ".": true}, locks: map[string]bool{},
	}
}

// SetCapacity limits the bytes of all files; writes past it fail with ENOSPC. Zero takes the limit away.
func (m *Mem) SetCapacity(sizeBytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = sizeBytes
}

// SetDirect says whether files can be opened directly, as they can from the start on.
func (m *Mem) SetDirect(direct bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.buffered = !direct
}

// OnSync makes f run after every Sync, SyncData and SyncDir, without any lock held.
func (m *Mem) OnSync(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onSync = f
}

// UsedBytes is the length of all files that have a name.
func (m *Mem) UsedBytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used()
}

func (m *Mem) used() int64 {
	total := int64(0)
	seen := map[*inode]bool{}
	for _, n := range m.entries {
		if !seen[n] {
			seen[n] = true
			total += int64(len(n.data))
		}
	}
	return total
}

func (m *Mem) synced() {
	m.mu.Lock()
	f := m.onSync
	m.mu.Unlock()
	if f != nil {
		f()
	}
}

func notExist(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

// Open opens an existing file for reading.
func (m *Mem) Open(name string) (File, error) {
	name = path.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.entries[name]
	if n == nil {
		return nil, notExist("open", name)
	}
	return m.open(name, n, false), nil
}

func (m *Mem) open(name string, n *inode, writable bool) File {
	return &memFile{fs: m, node: n, name: name, writable: writable}
}

// OpenReadWrite opens or creates a file.
func (m *Mem) OpenReadWrite(name string) (File, error) {
	name = path.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.entries[name]
	if n == nil {
		var err error
		if n, err = m.create(name); err != nil {
			return nil, err
		}
	}
	return m.open(name, n, true), nil
}

// OpenDirect opens an existing file that refuses whatever is not aligned, as the strictest file system would.
func (m *Mem) OpenDirect(name string, writable bool) (File, error) {
	name = path.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.buffered {
		return nil, &fs.PathError{Op: "open directly", Path: name, Err: errors.ErrUnsupported}
	}
	n := m.entries[name]
	if n == nil {
		return nil, notExist("open", name)
	}
	return &memFile{fs: m, node: n, name: name, writable: writable, direct: true}, nil
}

// Create creates a file that must not exist.
func (m *Mem) Create(name string) (File, error) {
	name = path.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries[name] != nil || m.folders[name] {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	n, err := m.create(name)
	if err != nil {
		return nil, err
	}
	return m.open(name, n, true), nil
}

func (m *Mem) create(name string) (*inode, error) {
	if !m.folders[path.Dir(name)] {
		return nil, notExist("create", name)
	}
	n := &inode{old: map[int64][sectorBytes]byte{}}
	m.entries[name] = n
	m.pending = append(m.pending, dirOp{to: name, file: n})
	return n, nil
}

// Remove removes a file or an empty folder.
func (m *Mem) Remove(name string) error {
	name = path.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.folders[name] {
		for other := range m.entries {
			if path.Dir(other) == name {
				return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOTEMPTY}
			}
		}
		delete(m.folders, name)
		return nil
	}
	if m.entries[name] == nil {
		return notExist("remove", name)
	}
	delete(m.entries, name)
	m.pending = append(m.pending, dirOp{from: name})
	return nil
}

// Rename replaces newName if it exists.
func (m *Mem) Rename(oldName, newName string) error {
	oldName, newName = path.Clean(oldName), path.Clean(newName)
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.entries[oldName]
	if n == nil {
		return notExist("rename", oldName)
	}
	if !m.folders[path.Dir(newName)] {
		return notExist("rename", newName)
	}
	delete(m.entries, oldName)
	m.entries[newName] = n
	m.pending = append(m.pending, dirOp{from: oldName, to: newName, file: n})
	return nil
}

// Link makes a hard link.
func (m *Mem) Link(oldName, newName string) error {
	oldName, newName = path.Clean(oldName), path.Clean(newName)
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.entries[oldName]
	if n == nil {
		return notExist("link", oldName)
	}
	if m.entries[newName] != nil {
		return &fs.PathError{Op: "link", Path: newName, Err: fs.ErrExist}
	}
	m.entries[newName] = n
	m.pending = append(m.pending, dirOp{to: newName, file: n})
	return nil
}

// Links returns how many names a file has.
func (m *Mem) Links(name string) (int, error) {
	name = path.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.entries[name]
	if n == nil {
		return 0, notExist("stat", name)
	}
	count := 0
	for _, other := range m.entries {
		if other == n {
			count++
		}
	}
	return count, nil
}

// MkdirAll creates a folder and those above it. Folders are durable at once.
func (m *Mem) MkdirAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name = path.Clean(name); !m.folders[name]; name = path.Dir(name) {
		if m.entries[name] != nil {
			return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
		}
		m.folders[name] = true
	}
	return nil
}

// List returns the names in a folder, sorted.
func (m *Mem) List(dir string) ([]string, error) {
	dir = path.Clean(dir)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.folders[dir] {
		return nil, notExist("list", dir)
	}
	var names []string
	for name := range m.entries {
		if path.Dir(name) == dir {
			names = append(names, path.Base(name))
		}
	}
	for name := range m.folders {
		if name != dir && path.Dir(name) == dir {
			names = append(names, path.Base(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Stat describes a file or folder.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	name = path.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.folders[name] {
		return memInfo{name: path.Base(name), mode: fs.ModeDir | 0o750}, nil
	}
	n := m.entries[name]
	if n == nil {
		return nil, notExist("stat", name)
	}
	return memInfo{name: path.Base(name), size: int64(len(n.data)), mode: 0o640}, nil
}

// SyncDir makes the names in the folder durable.
func (m *Mem) SyncDir(dir string) error {
	dir = path.Clean(dir)
	m.mu.Lock()
	rest := m.pending[:0]
	for _, op := range m.pending {
		if (op.from == "" || path.Dir(op.from) == dir) && (op.to == "" || path.Dir(op.to) == dir) {
			op.apply(m.durable)
		} else if path.Dir(op.from) == dir || path.Dir(op.to) == dir {
			op.apply(m.durable) // a move between folders is one transaction
		} else {
			rest = append(rest, op)
		}
	}
	m.pending = rest
	m.mu.Unlock()
	m.synced()
	return nil
}

func (op dirOp) apply(names map[string]*inode) {
	if op.from != "" {
		delete(names, op.from)
	}
	if op.to != "" {
		names[op.to] = op.file
	}
}

// Lock takes an exclusive lock within this Mem.
func (m *Mem) Lock(name string) (io.Closer, error) {
	name = path.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locks[name] {
		return nil, fmt.Errorf("lock %s: %w", name, ErrLocked)
	}
	if m.entries[name] == nil {
		if _, err := m.create(name); err != nil {
			return nil, err
		}
	}
	m.locks[name] = true
	return &memLock{fs: m, name: name}, nil
}

// Free returns what the capacity leaves, or a large number without one.
func (m *Mem) Free(string) (freeBytes, totalBytes int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	total := m.capacity
	if total == 0 {
		total = 1 << 50
	}
	return max(total-m.used(), 0), total, nil
}

type memLock struct {
	fs   *Mem
	name string
}

// Close gives the lock back.
func (l *memLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	delete(l.fs.locks, l.name)
	return nil
}

type memInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) Mode() fs.FileMode  { return i.mode }
func (i memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memInfo) Sys() any           { return nil }
