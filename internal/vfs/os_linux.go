package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// OS is the operating system's file system. Its zero value is ready.
type OS struct{}

var _ FS = OS{}

// Open opens an existing file for reading.
func (OS) Open(name string) (File, error) { return openOS(name, os.O_RDONLY) }

// OpenReadWrite opens or creates a file for reading and writing.
func (OS) OpenReadWrite(name string) (File, error) { return openOS(name, os.O_RDWR|os.O_CREATE) }

// OpenDirect opens a file with O_DIRECT, if the kernel says that blocks of DirectBytes will do, or does not say. A file system that is in memory only
// has no direct I/O.
func (OS) OpenDirect(name string, writable bool) (File, error) {
	flag := os.O_RDONLY
	if writable {
		flag = os.O_RDWR
	}
	f, err := openOS(name, flag|syscall.O_DIRECT)
	if errors.Is(err, syscall.EINVAL) {
		return nil, &fs.PathError{Op: "open directly", Path: name, Err: errors.ErrUnsupported}
	}
	if err != nil {
		return nil, err
	}
	o := directOS{f.(osFile)}
	if err := o.control("statx", checkDirect); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return o, nil
}

// checkDirect fails with errors.ErrUnsupported if the kernel knows that a file cannot be read and written in blocks of DirectBytes.
func checkDirect(fd int) error {
	var system unix.Statfs_t
	if err := unix.Fstatfs(fd, &system); err != nil {
		return err
	}
	if system.Type == unix.TMPFS_MAGIC || system.Type == unix.RAMFS_MAGIC {
		return fmt.Errorf("the file system is in memory: %w", errors.ErrUnsupported)
	}
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st); err != nil || st.Mask&unix.STATX_DIOALIGN == 0 {
		return nil //nolint:nilerr // an older kernel, or a file system that does not say: writing a block tells
	}
	memory, offset := st.Dio_mem_align, st.Dio_offset_align
	if memory == 0 || offset == 0 || DirectBytes%memory != 0 || DirectBytes%offset != 0 {
		return fmt.Errorf("blocks of %d bytes at addresses that are multiples of %d are asked for: %w", offset, memory, errors.ErrUnsupported)
	}
	return nil
}

// Create creates a file that must not exist.
func (OS) Create(name string) (File, error) { return openOS(name, os.O_RDWR|os.O_CREATE|os.O_EXCL) }

// Remove removes a file or an empty folder.
func (OS) Remove(name string) error { return os.Remove(name) }

// Rename replaces newName if it exists.
func (OS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

// Link makes a hard link.
func (OS) Link(oldName, newName string) error { return os.Link(oldName, newName) }

// Links returns how many names a file has.
func (OS) Links(name string) (int, error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Nlink), nil
	}
	return 1, nil
}

// MkdirAll creates a folder and those above it, readable by its owner's group.
func (OS) MkdirAll(name string) error { return os.MkdirAll(name, 0o750) }

// List returns the names in a folder, sorted.
func (OS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Stat describes a file.
func (OS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// SyncDir makes the folder's entries durable.
func (OS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // the file system has no such operation; entries are durable at once or never
	}
	return errors.Join(err, d.Close())
}

// Lock takes flock(2) on a file, which goes away with the process.
func (OS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", name, ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return f, nil
}

// Free asks statfs(2) for what an ordinary user may still write.
func (OS) Free(name string) (freeBytes, totalBytes int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(name, &s); err != nil {
		return 0, 0, &os.PathError{Op: "statfs", Path: name, Err: err}
	}
	return int64(s.Bavail) * s.Bsize, int64(s.Blocks) * s.Bsize, nil
}

// osFile is an open file of the operating system.
type osFile struct{ *os.File }

// directOS is a file that was opened with O_DIRECT.
type directOS struct{ osFile }

// ReadAt reads at an offset. At the end of a file that is no multiple of a block the kernel reads what there is, and then is asked for the rest at an
// offset that it need not take.
func (f directOS) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.osFile.ReadAt(p, offset)
	if n%DirectBytes != 0 && errors.Is(err, syscall.EINVAL) {
		err = io.EOF
	}
	return n, err
}

func openOS(name string, flag int) (File, error) {
	f, err := os.OpenFile(filepath.Clean(name), flag, 0o640)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// SyncData is fdatasync(2).
func (f osFile) SyncData() error { return f.control("fdatasync", syscall.Fdatasync) }

// Size returns the length in bytes.
func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Allocate is fallocate(2), or zeros where the file system lacks it.
func (f osFile) Allocate(sizeBytes int64) error {
	err := f.control("fallocate", func(fd int) error { return syscall.Fallocate(fd, 0, 0, sizeBytes) })
	if !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOSYS) {
		return err
	}
	at, err := f.Size()
	if err != nil {
		return err
	}
	zeros := make([]byte, 64<<10)
	for at < sizeBytes {
		n := min(sizeBytes-at, int64(len(zeros)))
		if _, err := f.WriteAt(zeros[:n], at); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// control runs a system call on the file, again after signals.
func (f osFile) control(op string, call func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for {
			failed = call(int(fd))
			if failed != syscall.EINTR {
				return
			}
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return &os.PathError{Op: op, Path: f.Name(), Err: err}
	}
	return nil
}
