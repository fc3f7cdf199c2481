package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Progress says how far a copy, a check or a restore is.
type Progress struct {
	File       string `json:"file"`
	DoneBytes  int64  `json:"done_bytes"`
	TotalBytes int64  `json:"total_bytes"`
}

// Writer makes a snapshot in a folder that does not exist yet. Until Commit the folder has another name.
type Writer struct {
	dir, work string
	since     *Folder
	files     []File
	folders   map[string]bool
	// unsynced are files and folders that Commit syncs, all at once: the disk does that in the time of one.
	unsynced []string
	// copied says that links are impossible between the data folder and the snapshot.
	copied bool
}

// Create begins a snapshot. Files that since, which may be nil, has too are linked to that one's, or left there where links are impossible.
func Create(dir string, since *Folder) (*Writer, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if since != nil {
		base := *since
		if base.Dir, err = filepath.Abs(base.Dir); err != nil {
			return nil, err
		}
		since = &base
	}
	if _, err := os.Lstat(dir); err == nil {
		return nil, fmt.Errorf("%s exists already; expected a new folder", dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	w := &Writer{dir: dir, work: dir + partial, since: since, folders: map[string]bool{}}
	if err := removePartial(w.work); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(w.work, 0o750); err != nil {
		return nil, err
	}
	return w, nil
}

// removePartial removes what an interrupted Create left.
func removePartial(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.RemoveAll(dir)
}

// target makes the folder of a path and returns the file's name.
func (w *Writer) target(path string) (string, error) {
	if !filepath.IsLocal(path) {
		return "", fmt.Errorf("%q is no path inside a snapshot", path)
	}
	name := filepath.Join(w.work, filepath.FromSlash(path))
	dir := filepath.Dir(name)
	if !w.folders[dir] {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return "", err
		}
		w.folders[dir] = true
	}
	return name, nil
}

// Link takes the first bytes of a file that never change into the snapshot: by a hard link, or by a copy where that is impossible.
func (w *Writer) Link(ctx context.Context, source, path string, size int64) error {
	name, err := w.target(path)
	if err != nil {
		return err
	}
	f := File{Path: path, Bytes: size}
	if w.copied {
		if done, err := w.known(source, &f); done || err != nil {
			return err
		}
	} else if err := os.Link(source, name); err == nil {
		w.files = append(w.files, f)
		return nil
	} else if !linkImpossible(err) {
		return err
	} else {
		w.copied = true
		return w.Link(ctx, source, path, size)
	}
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	return w.copyFrom(ctx, io.NewSectionReader(in, 0, size), f, name, 0o640)
}

// linkImpossible tells a file system that cannot have the link from a failure.
func linkImpossible(err error) bool {
	for _, no := range []error{syscall.EXDEV, syscall.EPERM, syscall.ENOTSUP, syscall.EMLINK, syscall.ENOSYS} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// known leaves a file out that the snapshot before has, and reports whether it did.
func (w *Writer) known(source string, f *File) (bool, error) {
	file, err := os.Open(source)
	if err != nil {
		return false, err
	}
	defer file.Close()
	if f.Tail, err = tailOf(file, f.Bytes); err != nil {
		return false, err
	}
	return w.knownTail(f)
}

// knownTail is known for a file whose tail is set.
func (w *Writer) knownTail(f *File) (bool, error) {
	if w.since == nil {
		return false, nil
	}
	old := w.since.Find(f.Path)
	if old == nil || old.Bytes != f.Bytes || f.Bytes == 0 {
		return false, nil
	}
	theirs, err := w.since.openFile(old)
	if err != nil {
		return false, err
	}
	defer theirs.Close()
	tail, err := tailOf(theirs, old.Bytes)
	if err != nil || tail != f.Tail {
		return false, err
	}
	f.SHA256 = old.SHA256
	name, err := w.target(f.Path)
	if err != nil {
		return false, err
	}
	if err := os.Link(theirs.Name(), name); err == nil {
		w.files = append(w.files, *f)
		return true, nil
	} else if !linkImpossible(err) {
		return false, err
	}
	if f.In, err = filepath.Rel(w.dir, w.since.Dir); err != nil || old.Tail != f.Tail {
		f.In = ""
		return false, nil
	}
	f.In = filepath.ToSlash(f.In)
	w.files = append(w.files, *f)
	return true, nil
}

// Add copies what r gives into the snapshot.
func (w *Writer) Add(ctx context.Context, r io.Reader, path string, mode fs.FileMode) error {
	name, err := w.target(path)
	if err != nil {
		return err
	}
	return w.copyFrom(ctx, r, File{Path: path, Bytes: -1}, name, mode)
}

// AddFile copies a whole file into the snapshot, with its mode. A file that is not there is left out.
func (w *Writer) AddFile(ctx context.Context, source, path string) error {
	in, err := os.Open(source)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	return w.Add(ctx, in, path, info.Mode().Perm())
}

// Take takes the files of another snapshot on this machine over, as Link and AddFile do. progress may be nil.
func (w *Writer) Take(ctx context.Context, from *Folder, progress func(Progress)) error {
	at := Progress{TotalBytes: from.manifest.Bytes()}
	for i := range from.manifest.Files {
		f := &from.manifest.Files[i]
		source, err := from.place(f)
		if err != nil {
			return err
		}
		if at.File = f.Path; progress != nil {
			progress(at)
		}
		if f.SHA256 == "" {
			err = w.Link(ctx, source, f.Path, f.Bytes)
		} else if err = w.AddFile(ctx, source, f.Path); err == nil {
			err = w.sameAs(f)
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", f.Path, err)
		}
		at.DoneBytes += f.Bytes
	}
	return nil
}

// sameAs compares the file that was added last with what it is a copy of.
func (w *Writer) sameAs(f *File) error {
	if len(w.files) == 0 || w.files[len(w.files)-1].Path != f.Path {
		return fmt.Errorf("%w: the file is missing", ErrDamaged)
	}
	if got := w.files[len(w.files)-1].SHA256; got != f.SHA256 {
		return fmt.Errorf("%w: SHA-256 %s, expected %s", ErrDamaged, got, f.SHA256)
	}
	return nil
}

// copyFrom copies a file and notes its checksum.
func (w *Writer) copyFrom(ctx context.Context, r io.Reader, f File, name string, mode fs.FileMode) error {
	n, sum, err := makeFile(ctx, r, name, mode)
	if err == nil {
		err = w.syncLater(name, n)
	}
	if err != nil {
		return err
	}
	if f.Bytes >= 0 && n != f.Bytes {
		return fmt.Errorf("%s: %d bytes read, expected %d", f.Path, n, f.Bytes)
	}
	f.Bytes, f.SHA256 = n, sum
	w.files = append(w.files, f)
	return nil
}

// Place is where a file of the snapshot is to be written by somebody else, who also syncs it; Placed takes it over.
func (w *Writer) Place(path string) (string, error) { return w.target(path) }

// Placed notes a file that was written to its Place.
func (w *Writer) Placed(ctx context.Context, path string) error {
	name, err := w.target(path)
	if err != nil {
		return err
	}
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	h := sha256.New()
	n, err := io.Copy(h, &cancelling{ctx, in})
	w.files = append(w.files, File{Path: path, Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))})
	return err
}

// writeFile makes a file of what r gives, synced, and returns its length and SHA-256.
func writeFile(ctx context.Context, r io.Reader, name string, mode fs.FileMode) (int64, string, error) {
	n, sum, err := makeFile(ctx, r, name, mode)
	if err == nil {
		err = syncPath(name)
	}
	return n, sum, err
}

// makeFile is writeFile without a sync.
func makeFile(ctx context.Context, r io.Reader, name string, mode fs.FileMode) (int64, string, error) {
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	n, err := io.Copy(out, io.TeeReader(&cancelling{ctx, r}, h))
	return n, hex.EncodeToString(h.Sum(nil)), errors.Join(err, out.Close())
}

// cancelling ends reading when the context does.
type cancelling struct {
	ctx context.Context
	r   io.Reader
}

func (c *cancelling) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// Commit writes the manifest and gives the folder its name. The snapshot is durable when it returns.
func (w *Writer) Commit(version string, lsn uint64, at time.Time) (*Folder, error) {
	m := &Manifest{Format: formatVersion, Name: filepath.Base(w.dir), CreatedAt: at.UTC(), Version: version, LSN: lsn, Files: w.files}
	if err := w.commit(m); err != nil {
		return nil, fmt.Errorf("finish snapshot %s: %w", w.dir, err)
	}
	return &Folder{Dir: w.dir, Copied: w.copied, manifest: m}, nil
}

func (w *Writer) commit(m *Manifest) error {
	b, err := m.encode()
	if err != nil {
		return err
	}
	manifest := filepath.Join(w.work, ManifestName)
	if err := os.WriteFile(manifest, b, 0o640); err != nil {
		return err
	}
	w.folders[w.work] = true
	w.unsynced = slices.AppendSeq(append(w.unsynced, manifest), maps.Keys(w.folders))
	if err := w.syncAll(); err != nil {
		return err
	}
	if err := os.Rename(w.work, w.dir); err != nil {
		return err
	}
	return syncPath(filepath.Dir(w.dir))
}

// Abort removes what was written.
func (w *Writer) Abort() error { return os.RemoveAll(w.work) }

// Fetch takes a file from another place, unless the snapshot before has it. f.Tail should be set.
func (w *Writer) Fetch(ctx context.Context, f File, open func() (io.ReadCloser, error)) error {
	f.In = ""
	if f.Tail != "" {
		if done, err := w.knownTail(&f); done || err != nil {
			return err
		}
	}
	name, err := w.target(f.Path)
	if err != nil {
		return err
	}
	in, err := open()
	if err != nil {
		return err
	}
	defer in.Close()
	mode := fs.FileMode(0o640)
	if filepath.Base(f.Path) == privateFile {
		mode = 0o600
	}
	want := f.SHA256
	if err := w.copyFrom(ctx, in, f, name, mode); err != nil {
		return err
	}
	if got := w.files[len(w.files)-1].SHA256; want != "" && got != want {
		return fmt.Errorf("%w: %s has SHA-256 %s, expected %s", ErrDamaged, f.Path, got, want)
	}
	return nil
}
