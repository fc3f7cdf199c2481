package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"filippo.io/age"
)

// Store is where a repository keeps its objects: a folder, or a bucket.
type Store interface {
	// Put stores an object of a known length whole or not at all.
	Put(ctx context.Context, key string, r io.Reader, sizeBytes int64) error
	// Get reports fs.ErrNotExist when there is no such object.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	// List returns the keys that begin with a prefix, in any order.
	List(ctx context.Context, prefix string) ([]string, error)
	Remove(ctx context.Context, key string) error
}

const (
	backupPrefix = "backups/"
	objectPrefix = "objects/"
	// maxBackups bounds the backups of a repository.
	maxBackups = 10_000
)

// Repository keeps backups in a Store. Files are stored once, by the SHA-256 of their content, whichever backups have them.
//
//	backups/NAME.json       the manifest, written last
//	objects/SHA-256[.age]   the content of a file; .age when it is encrypted
type Repository struct {
	Store Store
	// Recipients encrypt what is stored; none stores in the clear.
	Recipients []age.Recipient
	// Identities decrypt.
	Identities []age.Identity
}

// Saved is what Save did.
type Saved struct {
	Name  string `json:"name"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
	// NewFiles and NewBytes were not in the repository before.
	NewFiles int   `json:"new_files"`
	NewBytes int64 `json:"new_bytes"`
	// Removed are the backups that were too many.
	Removed []string `json:"removed"`
}

// Save stores a snapshot under a name that the repository does not have yet.
func (r *Repository) Save(ctx context.Context, s Source, name string, progress func(Progress)) (*Saved, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	saving, err := r.begin(ctx, name)
	if err != nil {
		return nil, err
	}
	m := *s.Manifest()
	m.Name, m.Files = name, slices.Clone(m.Files)
	m.Encrypted = len(r.Recipients) > 0
	at := Progress{TotalBytes: m.Bytes()}
	done := &Saved{Name: name, Files: len(m.Files), Bytes: at.TotalBytes, Removed: []string{}}
	for i := range m.Files {
		f := &m.Files[i]
		f.In = ""
		at.File = f.Path
		fresh, err := saving.file(ctx, s, f, m.Encrypted)
		if err != nil {
			return nil, fmt.Errorf("back up %s: %w", f.Path, err)
		}
		if fresh {
			done.NewFiles++
			done.NewBytes += f.Bytes
		}
		at.DoneBytes += f.Bytes
		if progress != nil {
			progress(at)
		}
	}
	b, err := m.encode()
	if err != nil {
		return nil, err
	}
	return done, r.Store.Put(ctx, backupPrefix+name+".json", bytes.NewReader(b), int64(len(b)))
}

// saving is one Save.
type saving struct {
	*Repository
	objects map[string]bool
	// known are the contents of files of earlier backups that never change.
	known map[fileKey]string
}

type fileKey struct {
	path, tail string
	bytes      int64
}

func (r *Repository) begin(ctx context.Context, name string) (*saving, error) {
	list, err := r.Backups(ctx)
	if err != nil {
		return nil, err
	}
	s := &saving{Repository: r, objects: map[string]bool{}, known: map[fileKey]string{}}
	for _, m := range list {
		if m.Name == name {
			return nil, fmt.Errorf("the repository has a backup %s already", name)
		}
		for i := range m.Files {
			if f := &m.Files[i]; f.Tail != "" {
				s.known[fileKey{f.Path, f.Tail, f.Bytes}] = f.SHA256
			}
		}
	}
	keys, err := r.Store.List(ctx, objectPrefix)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		s.objects[k] = true
	}
	return s, nil
}

// file stores the content of a file if the repository does not have it, and reports whether it did.
func (s *saving) file(ctx context.Context, from Source, f *File, encrypted bool) (bool, error) {
	if sum := s.known[fileKey{f.Path, f.Tail, f.Bytes}]; f.Tail != "" && sum != "" && s.objects[objectKey(sum, encrypted)] {
		f.SHA256 = sum
		return false, nil
	}
	if f.SHA256 == "" {
		in, err := from.Open(ctx, f)
		if err != nil {
			return false, err
		}
		n, sum, err := digest(&cancelling{ctx, in})
		if err = errors.Join(err, in.Close()); err != nil {
			return false, err
		}
		if n != f.Bytes {
			return false, fmt.Errorf("%w: %d bytes, expected %d", ErrDamaged, n, f.Bytes)
		}
		f.SHA256 = sum
	}
	key := objectKey(f.SHA256, encrypted)
	if s.objects[key] {
		return false, nil
	}
	in, err := from.Open(ctx, f)
	if err != nil {
		return false, err
	}
	defer in.Close()
	s.objects[key] = true
	return true, s.put(ctx, key, f, in)
}

// put stores a file's content, which must have the checksum that the manifest says.
func (s *saving) put(ctx context.Context, key string, f *File, in io.Reader) error {
	h := sha256.New()
	checked := &checkedReader{r: io.TeeReader(&cancelling{ctx, in}, h), sum: func() error {
		if got := hex.EncodeToString(h.Sum(nil)); got != f.SHA256 {
			return fmt.Errorf("%w: SHA-256 %s, expected %s", ErrDamaged, got, f.SHA256)
		}
		return nil
	}}
	if len(s.Recipients) == 0 {
		return s.Store.Put(ctx, key, checked, f.Bytes)
	}
	size, err := s.encryptedSize(f.Bytes)
	if err != nil {
		return err
	}
	out, write := io.Pipe()
	go func() { // ends with the pipe, which Put reads or closes
		w, err := age.Encrypt(write, s.Recipients...)
		if err == nil {
			if _, err = io.Copy(w, checked); err == nil {
				err = w.Close()
			}
		}
		write.CloseWithError(err)
	}()
	err = s.Store.Put(ctx, key, out, size)
	return errors.Join(err, out.Close())
}

// encryptedSize is the length of a file in age's format: a header that depends on the recipients only, a nonce, and 16 bytes for each
// chunk of 64 KiB. Stores want to know it before they are sent something.
func (r *Repository) encryptedSize(plain int64) (int64, error) {
	var empty counter
	w, err := age.Encrypt(&empty, r.Recipients...)
	if err != nil {
		return 0, err
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	const chunk, tag = 64 << 10, 16
	return int64(empty) - tag + plain + tag*max((plain+chunk-1)/chunk, 1), nil
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// checkedReader gives an error in place of the end when what was read is not what it should be.
type checkedReader struct {
	r   io.Reader
	sum func() error
}

func (c *checkedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if errors.Is(err, io.EOF) {
		if wrong := c.sum(); wrong != nil {
			return n, wrong
		}
	}
	return n, err
}

func objectKey(sum string, encrypted bool) string {
	if encrypted {
		return objectPrefix + sum + ".age"
	}
	return objectPrefix + sum
}

var validSum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Backups returns the manifests of all backups, oldest first.
func (r *Repository) Backups(ctx context.Context) ([]*Manifest, error) {
	keys, err := r.Store.List(ctx, backupPrefix)
	if err != nil {
		return nil, err
	}
	if len(keys) > maxBackups {
		return nil, fmt.Errorf("the repository has %d backups, expected at most %d; remove some with --keep", len(keys), maxBackups)
	}
	var list []*Manifest
	for _, key := range keys {
		if !strings.HasSuffix(key, ".json") {
			continue
		}
		m, err := r.manifest(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", key, err)
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b *Manifest) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Name, b.Name))
	})
	return list, nil
}

func (r *Repository) manifest(ctx context.Context, key string) (*Manifest, error) {
	in, err := r.Store.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, maxManifestBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxManifestBytes {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrDamaged, maxManifestBytes)
	}
	m, err := decodeManifest(b)
	if err != nil {
		return nil, err
	}
	for i := range m.Files {
		if !validSum.MatchString(m.Files[i].SHA256) {
			return nil, fmt.Errorf("%w: %s has no SHA-256", ErrDamaged, m.Files[i].Path)
		}
	}
	return m, nil
}

// Open returns a backup by its name, or the newest when name is empty.
func (r *Repository) Open(ctx context.Context, name string) (Source, error) {
	if name != "" {
		if err := CheckName(name); err != nil {
			return nil, err
		}
		m, err := r.manifest(ctx, backupPrefix+name+".json")
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the repository has no backup %s", name)
		}
		if err != nil {
			return nil, err
		}
		return &stored{m, r}, nil
	}
	list, err := r.Backups(ctx)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("the repository has no backups")
	}
	return &stored{list[len(list)-1], r}, nil
}

// Keep removes all but the newest backups, and the objects that no other needs. Nobody may save at the same time.
func (r *Repository) Keep(ctx context.Context, keep int) (removed []string, err error) {
	list, err := r.Backups(ctx)
	if err != nil {
		return nil, err
	}
	removed = []string{}
	needed := map[string]bool{}
	for i, m := range list {
		if i < len(list)-keep {
			if err := r.Store.Remove(ctx, backupPrefix+m.Name+".json"); err != nil {
				return removed, err
			}
			removed = append(removed, m.Name)
			continue
		}
		for k := range m.Files {
			needed[objectKey(m.Files[k].SHA256, m.Encrypted)] = true
		}
	}
	keys, err := r.Store.List(ctx, objectPrefix)
	if err != nil {
		return removed, err
	}
	for _, key := range keys {
		if !needed[key] {
			if err := r.Store.Remove(ctx, key); err != nil {
				return removed, err
			}
		}
	}
	return removed, nil
}

// stored is a backup as a source.
type stored struct {
	m *Manifest
	r *Repository
}

func (s *stored) Manifest() *Manifest { return s.m }

// Open gives the content of a file, decrypted.
func (s *stored) Open(ctx context.Context, f *File) (io.ReadCloser, error) {
	in, err := s.r.Store.Get(ctx, objectKey(f.SHA256, s.m.Encrypted))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: the content of %s is missing", ErrDamaged, f.Path)
	}
	if err != nil || !s.m.Encrypted {
		return in, err
	}
	if len(s.r.Identities) == 0 {
		return nil, errors.Join(errors.New("the backup is encrypted; give the key with --identity"), in.Close())
	}
	clear, err := age.Decrypt(in, s.r.Identities...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("decrypt %s: %w", f.Path, err), in.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{&damagedReader{clear, f.Path}, in}, nil
}

// damagedReader says that what cannot be decrypted is damaged.
type damagedReader struct {
	r    io.Reader
	path string
}

func (d *damagedReader) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: decrypt %s: %w", ErrDamaged, d.path, err)
	}
	return n, err
}
