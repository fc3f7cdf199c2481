package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"tidemark/internal/vfs"
)

// digest reads all of r.
func digest(r io.Reader) (int64, string, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	return n, hex.EncodeToString(h.Sum(nil)), err
}

// View shows a part of a snapshot as a folder that can only be read: each file as long as it was then, wherever it is.
type View struct {
	vfs.FS
	snapshot *Folder
	part     string
}

// NewView shows the files of a part, such as "engine", under that name.
func NewView(s *Folder, part string) *View { return &View{FS: vfs.OS{}, snapshot: s, part: part} }

var errReadOnly = fmt.Errorf("a snapshot is not written to: %w", syscall.EROFS)

func (v *View) file(op, name string) (*File, error) {
	f := v.snapshot.Find(path.Clean(name))
	if f == nil || path.Dir(f.Path) != v.part {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return f, nil
}

// Open opens a file.
func (v *View) Open(name string) (vfs.File, error) {
	f, err := v.file("open", name)
	if err != nil {
		return nil, err
	}
	file, err := v.snapshot.openFile(f)
	if err != nil {
		return nil, err
	}
	return &viewFile{SectionReader: io.NewSectionReader(file, 0, f.Bytes), file: file}, nil
}

// OpenDirect is not for what is only read once in a while.
func (v *View) OpenDirect(name string, _ bool) (vfs.File, error) {
	return nil, &fs.PathError{Op: "open directly", Path: name, Err: errors.ErrUnsupported}
}

// List returns the names of the part.
func (v *View) List(dir string) ([]string, error) {
	if path.Clean(dir) != v.part {
		return nil, &fs.PathError{Op: "list", Path: dir, Err: fs.ErrNotExist}
	}
	var names []string
	for i := range v.snapshot.manifest.Files {
		if p := v.snapshot.manifest.Files[i].Path; path.Dir(p) == v.part {
			names = append(names, path.Base(p))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Stat describes a file.
func (v *View) Stat(name string) (fs.FileInfo, error) {
	f, err := v.file("stat", name)
	if err != nil {
		return nil, err
	}
	return viewInfo{name: path.Base(f.Path), size: f.Bytes}, nil
}

// What would change the snapshot is refused.

// OpenReadWrite is refused.
func (v *View) OpenReadWrite(string) (vfs.File, error) { return nil, errReadOnly }

// Create is refused.
func (v *View) Create(string) (vfs.File, error) { return nil, errReadOnly }

// Remove is refused.
func (v *View) Remove(string) error { return errReadOnly }

// Rename is refused.
func (v *View) Rename(string, string) error { return errReadOnly }

// Link is refused.
func (v *View) Link(string, string) error { return errReadOnly }

// MkdirAll is refused.
func (v *View) MkdirAll(string) error { return errReadOnly }

// Lock is refused.
func (v *View) Lock(string) (io.Closer, error) { return nil, errReadOnly }

type viewInfo struct {
	name string
	size int64
}

func (i viewInfo) Name() string       { return i.name }
func (i viewInfo) Size() int64        { return i.size }
func (i viewInfo) Mode() fs.FileMode  { return 0o440 }
func (i viewInfo) ModTime() time.Time { return time.Time{} }
func (i viewInfo) IsDir() bool        { return false }
func (i viewInfo) Sys() any           { return nil }

// viewFile is a file as long as it was when the snapshot was made.
type viewFile struct {
	*io.SectionReader
	file *os.File
}

func (f *viewFile) Close() error                       { return f.file.Close() }
func (f *viewFile) WriteAt([]byte, int64) (int, error) { return 0, errReadOnly }
func (f *viewFile) Sync() error                        { return errReadOnly }
func (f *viewFile) SyncData() error                    { return errReadOnly }
func (f *viewFile) Truncate(int64) error               { return errReadOnly }
func (f *viewFile) Allocate(int64) error               { return errReadOnly }
func (f *viewFile) Size() (int64, error)               { return f.SectionReader.Size(), nil }
