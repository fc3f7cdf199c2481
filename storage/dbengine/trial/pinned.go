package trial

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"tidemark/internal/vfs"
	"tidemark/storage/dbengine"
)

// pins are the files of the user's pairs, open for reading: whatever the server does with their names, their bytes stay there until they are
// closed, also when this process is killed.
type pins map[string]*os.File

// pin opens the files of a pair.
func (p pins) pin(dir string, pair *dbengine.ClosedPair) error {
	for _, name := range []string{pair.Name, pair.JournalName} {
		if p[name] != nil {
			continue
		}
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		p[name] = f
	}
	return nil
}

func (p pins) close() error {
	var errs []error
	for name, f := range p {
		errs = append(errs, f.Close())
		delete(p, name)
	}
	return errors.Join(errs...)
}

// overlay is a folder of its own in which some of the pinned files seem to be. They are read where they are and never written to; removing or
// renaming one only takes it out of sight. Everything else is in the folder.
type overlay struct {
	vfs.OS
	dir string

	mu    sync.Mutex
	files map[string]*os.File
}

// pinned returns the file that seems to have a name; nil for none.
func (o *overlay) pinned(name string) *os.File {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.files[filepath.Clean(name)]
}

func newOverlay(dir string, from pins, pairs []dbengine.ClosedPair) *overlay {
	o := &overlay{dir: dir, files: map[string]*os.File{}}
	for i := range pairs {
		for _, name := range []string{pairs[i].Name, pairs[i].JournalName} {
			o.files[filepath.Join(dir, name)] = from[name]
		}
	}
	return o
}

// Open opens a file.
func (o *overlay) Open(name string) (vfs.File, error) {
	if f := o.pinned(name); f != nil {
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		return &pinnedFile{SectionReader: io.NewSectionReader(f, 0, info.Size())}, nil
	}
	return o.OS.Open(name)
}

// OpenDirect opens a file past the cache; one that is pinned is read as it was opened.
func (o *overlay) OpenDirect(name string, writable bool) (vfs.File, error) {
	if o.pinned(name) != nil {
		return nil, &fs.PathError{Op: "open directly", Path: name, Err: errors.ErrUnsupported}
	}
	return o.OS.OpenDirect(name, writable)
}

// OpenReadWrite opens a file; one that is pinned refuses to be written to.
func (o *overlay) OpenReadWrite(name string) (vfs.File, error) {
	if o.pinned(name) != nil {
		return o.Open(name)
	}
	f, err := o.OS.OpenReadWrite(name)
	return scratchFile(name, f), err
}

// Create creates a file.
func (o *overlay) Create(name string) (vfs.File, error) {
	if o.pinned(name) != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	f, err := o.OS.Create(name)
	return scratchFile(name, f), err
}

// SyncDir does nothing: what is in the scratch folder need not outlive anything.
func (o *overlay) SyncDir(string) error { return nil }

// scratchFile spares the disk what is not measured: the log of the engine, which is opened again for each candidate and round.
func scratchFile(name string, f vfs.File) vfs.File {
	if f == nil || strings.Contains(name, ".ndf") || strings.Contains(name, ".njf") {
		return f
	}
	return lightFile{f}
}

// lightFile is neither allocated nor synced.
type lightFile struct{ vfs.File }

func (lightFile) Sync() error                      { return nil }
func (lightFile) SyncData() error                  { return nil }
func (f lightFile) Allocate(sizeBytes int64) error { return f.Truncate(sizeBytes) }

// Remove removes a file, one that is pinned from sight only.
func (o *overlay) Remove(name string) error {
	if o.pinned(name) == nil {
		return o.OS.Remove(name)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.files, filepath.Clean(name))
	return nil
}

// Rename gives a file another name.
func (o *overlay) Rename(oldName, newName string) error {
	oldName, newName = filepath.Clean(oldName), filepath.Clean(newName)
	o.mu.Lock()
	defer o.mu.Unlock()
	if f := o.files[oldName]; f != nil {
		delete(o.files, oldName)
		o.files[newName] = f
		return nil
	}
	delete(o.files, newName)
	return o.OS.Rename(oldName, newName)
}

// Link makes a hard link of a file that is not pinned.
func (o *overlay) Link(oldName, newName string) error {
	if o.pinned(oldName) != nil {
		return fmt.Errorf("link %s: %w", oldName, errReadOnly)
	}
	return o.OS.Link(oldName, newName)
}

// List returns the names in a folder.
func (o *overlay) List(dir string) ([]string, error) {
	names, err := o.OS.List(dir)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	for name := range o.files {
		if filepath.Dir(name) == filepath.Clean(dir) {
			names = append(names, filepath.Base(name))
		}
	}
	o.mu.Unlock()
	slices.Sort(names)
	return names, nil
}

// Stat describes a file.
func (o *overlay) Stat(name string) (fs.FileInfo, error) {
	if f := o.pinned(name); f != nil {
		return f.Stat()
	}
	return o.OS.Stat(name)
}

// forget has the kernel give back what it keeps of the engine's files in memory, so that the next read comes from the disk. What it does not give
// back, as on a file system in memory, only makes the reads quicker.
func (o *overlay) forget() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.files {
		_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	}
	names, err := o.OS.List(o.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".ndf") && !strings.HasSuffix(name, ".njf") {
			continue
		}
		f, err := os.Open(filepath.Join(o.dir, name))
		if err != nil {
			return err
		}
		_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

var errReadOnly = fmt.Errorf("the files of the store are only read: %w", syscall.EROFS)

// pinnedFile reads a pinned file. Closing it leaves that open.
type pinnedFile struct{ *io.SectionReader }

func (*pinnedFile) Close() error                       { return nil }
func (*pinnedFile) WriteAt([]byte, int64) (int, error) { return 0, errReadOnly }
func (*pinnedFile) Sync() error                        { return nil }
func (*pinnedFile) SyncData() error                    { return nil }
func (*pinnedFile) Truncate(int64) error               { return errReadOnly }
func (*pinnedFile) Allocate(int64) error               { return errReadOnly }
func (f *pinnedFile) Size() (int64, error)             { return f.SectionReader.Size(), nil }
