package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tidemark/internal/vfs"
)

// privateFile is readable by its owner only, wherever it came from.
const privateFile = "secret.key"

// restoring is the end of the name of a folder that is being restored.
const restoring = ".restoring"

// Restore makes a data folder of a snapshot. dir must not exist, or be empty. Until all is there and synced the folder has
// another name, so that nothing is taken for whole that is not.
func Restore(ctx context.Context, s Source, dir string, progress func(Progress)) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%s is not empty; expected a new folder", dir)
	}
	work := filepath.Clean(dir) + restoring
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	m := s.Manifest()
	at := Progress{TotalBytes: m.Bytes()}
	folders := map[string]bool{work: true}
	if err := os.MkdirAll(work, 0o750); err != nil {
		return err
	}
	for i := range m.Files {
		f := &m.Files[i]
		at.File = f.Path
		name := filepath.Join(work, filepath.FromSlash(f.Path))
		folders[filepath.Dir(name)] = true
		if err := restoreFile(ctx, s, f, name, func(n int64) {
			at.DoneBytes += n
			if progress != nil {
				progress(at)
			}
		}); err != nil {
			return fmt.Errorf("restore %s: %w", f.Path, err)
		}
	}
	for folder := range folders {
		if err := syncPath(folder); err != nil {
			return err
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(work, dir); err != nil {
		return err
	}
	return syncPath(filepath.Dir(filepath.Clean(dir)))
}

// restoreFile writes one file and compares its length and checksum.
func restoreFile(ctx context.Context, s Source, f *File, name string, advance func(int64)) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	in, err := s.Open(ctx, f)
	if err != nil {
		return err
	}
	defer in.Close()
	mode := fs.FileMode(0o640)
	if strings.HasSuffix(f.Path, privateFile) {
		mode = 0o600
	}
	n, sum, err := writeFile(ctx, &counting{in, advance}, name, mode)
	if err != nil {
		return err
	}
	if n != f.Bytes || f.SHA256 != "" && sum != f.SHA256 {
		return fmt.Errorf("%w: %d bytes with SHA-256 %s, expected %d with %s", ErrDamaged, n, sum, f.Bytes, f.SHA256)
	}
	return nil
}

// counting tells how much was read.
type counting struct {
	io.Reader
	advance func(int64)
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.advance(int64(n))
	return n, err
}

// Damage is a file of a snapshot that is not as it should be.
type Damage struct {
	File string `json:"file"`
	Text string `json:"text"`
}

// Verify reads every file and compares its length, and its checksum where the manifest has one. What the files mean is for others to check.
func Verify(ctx context.Context, s Source, progress func(Progress)) ([]Damage, error) {
	m := s.Manifest()
	at := Progress{TotalBytes: m.Bytes()}
	var list []Damage
	for i := range m.Files {
		f := &m.Files[i]
		at.File = f.Path
		err := verifyFile(ctx, s, f, func(n int64) {
			at.DoneBytes += n
			if progress != nil {
				progress(at)
			}
		})
		if ctx.Err() != nil {
			return list, ctx.Err()
		}
		if errors.Is(err, ErrDamaged) {
			list = append(list, Damage{File: f.Path, Text: err.Error()})
		} else if err != nil {
			return list, fmt.Errorf("verify %s: %w", f.Path, err)
		}
	}
	return list, nil
}

// openOnce opens a file that is read once: one in a folder past the system's cache, if its file system takes that.
func openOnce(ctx context.Context, s Source, f *File) (io.ReadCloser, error) {
	folder, ok := s.(*Folder)
	if !ok {
		return s.Open(ctx, f)
	}
	file, err := folder.openFile(f) // it checks the file
	if err != nil {
		return nil, err
	}
	direct, err := vfs.OpenDirectly(vfs.OS{}, file.Name(), false, vfs.NewBuffers(2, vfs.DirectBytes))
	if err != nil {
		return streamed{vfs.NewStream(file, f.Bytes), file}, nil
	}
	if err := file.Close(); err != nil {
		return nil, errors.Join(err, direct.Close())
	}
	return streamed{vfs.NewStream(direct, f.Bytes), direct}, nil
}

// streamed is a stream that closes its file.
type streamed struct {
	*vfs.Stream
	file io.Closer
}

// Close ends both.
func (s streamed) Close() error { return errors.Join(s.Stream.Close(), s.file.Close()) }

func verifyFile(ctx context.Context, s Source, f *File, advance func(int64)) error {
	in, err := openOnce(ctx, s, f)
	if err != nil {
		return err
	}
	defer in.Close()
	n, sum, err := digest(&cancelling{ctx, &counting{in, advance}})
	if err != nil {
		return err
	}
	if n != f.Bytes || f.SHA256 != "" && sum != f.SHA256 {
		return fmt.Errorf("%w: %d bytes with SHA-256 %s, expected %d with %s", ErrDamaged, n, sum, f.Bytes, f.SHA256)
	}
	return nil
}
