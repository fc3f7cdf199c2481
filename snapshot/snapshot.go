// Package snapshot keeps point-in-time copies of a data folder: as a folder of hard links, and as a backup in another folder or an
// S3-compatible store.
//
//	FOLDER/snapshot.json      what belongs to the snapshot, and how much of each file; written last
//	FOLDER/engine/…           hard links of the engine's files, or copies where links are impossible
//	FOLDER/catalog/…, config.db, secret.key   copies
//
// It knows nothing of what the files mean. docs/design/0025-snapshots.md has the reasons.
package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	// ManifestName is the file that makes a folder a snapshot.
	ManifestName = "snapshot.json"
	// formatVersion is that of the manifest.
	formatVersion = 1
	// maxManifestBytes bounds a manifest that is read.
	maxManifestBytes = 64 << 20
	// maxFiles bounds the files of a snapshot.
	maxFiles = 1 << 18
	// tailBytes is how much of a file's end tells it from another of the same name and length.
	tailBytes = 4096
	// partial is the end of the name of a folder that is not finished.
	partial = ".partial"
	// maxDepth bounds how many snapshots a file is looked for in.
	maxDepth = 1000
)

// ErrDamaged says that a snapshot is not as its manifest says.
var ErrDamaged = errors.New("the snapshot is damaged")

// File is a file of a snapshot.
type File struct {
	// Path is relative to the data folder, with slashes.
	Path string `json:"path"`
	// Bytes is how much of the file belongs to the snapshot; a hard link may have grown since.
	Bytes int64 `json:"bytes"`
	// SHA256 is that of these bytes, in hexadecimal digits; empty for links, whose content has checksums of its own.
	SHA256 string `json:"sha256,omitempty"`
	// Tail identifies the last bytes of a file that never changes, so that an increment knows it again.
	Tail string `json:"tail,omitempty"`
	// In is the folder of the snapshot that has the file, relative to this one; empty when this one has it.
	In string `json:"in,omitempty"`
}

// Manifest says what belongs to a snapshot.
type Manifest struct {
	Format int    `json:"format"`
	Name   string `json:"name"`
	// CreatedAt is the moment of the snapshot.
	CreatedAt time.Time `json:"created_at"`
	// Version is that of the program that made it.
	Version string `json:"version"`
	// LSN is how far the engine's log is in it.
	LSN uint64 `json:"lsn"`
	// Encrypted says that a repository has the files encrypted with age.
	Encrypted bool   `json:"encrypted,omitempty"`
	Files     []File `json:"files"`
}

// Bytes is the size of all files together.
func (m *Manifest) Bytes() int64 {
	total := int64(0)
	for i := range m.Files {
		total += m.Files[i].Bytes
	}
	return total
}

var validName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)

// CheckName reports a name that no snapshot can have.
func CheckName(name string) error {
	if !validName.MatchString(name) || strings.HasSuffix(name, partial) {
		return fmt.Errorf("snapshot name %.80q: expected 1 to 64 letters, digits, dots, dashes and underscores, the first a letter or digit", name)
	}
	return nil
}

// decodeManifest reads a manifest and checks that it names no file outside the snapshot.
func decodeManifest(b []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, ManifestName, err)
	}
	if m.Format > formatVersion {
		return nil, fmt.Errorf("%s has format %d, written by a newer version; this one reads %d", ManifestName, m.Format, formatVersion)
	}
	if m.Format != formatVersion || len(m.Files) > maxFiles {
		return nil, fmt.Errorf("%w: %s has format %d and %d files, expected format %d and at most %d files", ErrDamaged, ManifestName, m.Format, len(m.Files), formatVersion, maxFiles)
	}
	seen := map[string]bool{}
	for i := range m.Files {
		f := &m.Files[i]
		if !filepath.IsLocal(f.Path) || filepath.ToSlash(filepath.Clean(f.Path)) != f.Path || f.Path == ManifestName || f.Bytes < 0 || seen[f.Path] {
			return nil, fmt.Errorf("%w: %s names the file %.200q of %d bytes, expected each file once, inside the snapshot", ErrDamaged, ManifestName, f.Path, f.Bytes)
		}
		seen[f.Path] = true
	}
	return m, nil
}

// Source is a snapshot that can be read, wherever it is.
type Source interface {
	Manifest() *Manifest
	// Open gives exactly the bytes of a file that belong to the snapshot.
	Open(ctx context.Context, f *File) (io.ReadCloser, error)
}

// Folder is a snapshot in a folder.
type Folder struct {
	Dir string
	// Copied says, of a snapshot just made, that links were impossible.
	Copied   bool
	manifest *Manifest
}

// OpenFolder reads the manifest of a snapshot.
func OpenFolder(dir string) (*Folder, error) {
	f, err := os.Open(filepath.Join(dir, ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no snapshot: it has no %s", dir, ManifestName)
	}
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	if len(b) > maxManifestBytes {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrDamaged, f.Name(), maxManifestBytes)
	}
	m, err := decodeManifest(b)
	if err != nil {
		return nil, fmt.Errorf("open snapshot %s: %w", dir, err)
	}
	return &Folder{Dir: dir, manifest: m}, nil
}

// Manifest says what belongs to the snapshot.
func (s *Folder) Manifest() *Manifest { return s.manifest }

// place returns where a file is: in this snapshot's folder or in the one that it was taken since.
func (s *Folder) place(f *File) (string, error) {
	dir, in := s.Dir, f.In
	for range maxDepth {
		if in == "" {
			return filepath.Join(dir, filepath.FromSlash(f.Path)), nil
		}
		dir = filepath.Join(dir, filepath.FromSlash(in))
		base, err := OpenFolder(dir)
		if err != nil {
			return "", fmt.Errorf("%s is in another snapshot: %w", f.Path, err)
		}
		k := base.Find(f.Path)
		if k == nil || k.Bytes != f.Bytes || k.Tail != f.Tail {
			return "", fmt.Errorf("%w: %s is not in %s as it was", ErrDamaged, f.Path, dir)
		}
		in = k.In
	}
	return "", fmt.Errorf("%w: %s is more than %d snapshots away", ErrDamaged, f.Path, maxDepth)
}

// Find returns a file of the snapshot, nil if it has none of the path.
func (s *Folder) Find(path string) *File {
	for i := range s.manifest.Files {
		if s.manifest.Files[i].Path == path {
			return &s.manifest.Files[i]
		}
	}
	return nil
}

// openFile opens a file and checks that it has all its bytes.
func (s *Folder) openFile(f *File) (*os.File, error) {
	name, err := s.place(f)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() < f.Bytes) {
		err = fmt.Errorf("%w: %s has %d bytes, expected %d", ErrDamaged, name, info.Size(), f.Bytes)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Open gives the bytes of a file that belong to the snapshot.
func (s *Folder) Open(_ context.Context, f *File) (io.ReadCloser, error) {
	file, err := s.openFile(f)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(file, 0, f.Bytes), file}, nil
}

// tailOf identifies the end of the first size bytes of a file.
func tailOf(r io.ReaderAt, size int64) (string, error) {
	b := make([]byte, min(size, tailBytes))
	if n, err := r.ReadAt(b, size-int64(len(b))); n < len(b) {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), nil
}

// TailOfFile identifies the end of a file that has exactly size bytes, as File.Tail does; of another one it is empty.
func TailOfFile(name string, size int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() != size || size == 0 {
		return "", err
	}
	return tailOf(f, size)
}

// encode is the manifest as it is stored.
func (m *Manifest) encode() ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", " ")
	err := e.Encode(m)
	return out.Bytes(), err
}

// WithTails is the manifest with the tails of the files that never change, which a snapshot of links does not note.
func (s *Folder) WithTails() (*Manifest, error) {
	m := *s.manifest
	m.Files = append([]File(nil), m.Files...)
	for i := range m.Files {
		f := &m.Files[i]
		if f.SHA256 != "" || f.Tail != "" {
			continue
		}
		file, err := s.openFile(f)
		if err != nil {
			return nil, err
		}
		f.Tail, err = tailOf(file, f.Bytes)
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
	return &m, nil
}

// DecodeManifest reads a manifest that came from elsewhere.
func DecodeManifest(b []byte) (*Manifest, error) { return decodeManifest(b) }
