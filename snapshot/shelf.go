package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// enginePart is the folder of the engine's files in a snapshot.
const enginePart = "engine"

// Shelf is the folder of snapshots that a server keeps beside its data. All its methods may be called at the same time.
type Shelf struct {
	dir string
	// drop permits DropOldest.
	drop bool

	mu   sync.Mutex
	list []*Folder // oldest first
	// held counts the snapshots that have each of the engine's files.
	held    map[string]int
	dropped int
	damaged []string
}

// OpenShelf reads what is kept in a folder, which need not exist, and removes what was not finished. With drop the oldest snapshot goes
// when the engine needs its room.
func OpenShelf(dir string, drop bool) (*Shelf, error) {
	s := &Shelf{dir: dir, drop: drop, held: map[string]int{}}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the kept snapshots: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if strings.HasSuffix(e.Name(), partial) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return nil, fmt.Errorf("remove an unfinished snapshot: %w", err)
			}
			continue
		}
		f, err := OpenFolder(filepath.Join(dir, e.Name()))
		if err != nil {
			s.damaged = append(s.damaged, e.Name())
			continue
		}
		s.put(f)
	}
	return s, nil
}

// Dir is the folder.
func (s *Shelf) Dir() string { return s.dir }

// Damaged are the names of folders that are no snapshots.
func (s *Shelf) Damaged() []string { return s.damaged }

func (s *Shelf) put(f *Folder) {
	s.list = append(s.list, f)
	slices.SortStableFunc(s.list, func(a, b *Folder) int { return a.manifest.CreatedAt.Compare(b.manifest.CreatedAt) })
	for i := range f.manifest.Files {
		if name, ok := engineFile(f.manifest.Files[i].Path); ok {
			s.held[name]++
		}
	}
}

func engineFile(p string) (string, bool) {
	return path.Base(p), path.Dir(p) == enginePart
}

// Begin starts a snapshot on the shelf.
func (s *Shelf) Begin(name string) (*Writer, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.dir, 0o750); err != nil {
		return nil, err
	}
	return Create(filepath.Join(s.dir, name), nil)
}

// Put takes a finished snapshot over.
func (s *Shelf) Put(f *Folder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(f)
}

// List returns the snapshots, oldest first.
func (s *Shelf) List() []*Folder {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// Get returns a snapshot; false when there is none of the name.
func (s *Shelf) Get(name string) (*Folder, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.list {
		if f.manifest.Name == name {
			return f, true
		}
	}
	return nil, false
}

// Holds reports whether a snapshot has the engine's file of that name.
func (s *Shelf) Holds(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[name] > 0
}

// Dropped is how many snapshots went for their room.
func (s *Shelf) Dropped() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// DropOldest removes the oldest snapshot when the settings allow that, and reports whether it did.
func (s *Shelf) DropOldest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.drop || len(s.list) == 0 {
		return false
	}
	s.dropped++
	return s.remove(0) == nil
}

// Remove removes a snapshot. It reports fs.ErrNotExist when there is none of the name.
func (s *Shelf) Remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.list {
		if f.manifest.Name == name {
			return s.remove(i)
		}
	}
	return fmt.Errorf("snapshot %s: %w", name, fs.ErrNotExist)
}

// remove takes a snapshot off the list and from the disk: under another name first, so that half of one is never taken for one.
func (s *Shelf) remove(i int) error {
	f := s.list[i]
	if err := os.Rename(f.Dir, f.Dir+partial); err != nil {
		return fmt.Errorf("remove a snapshot: %w", err)
	}
	s.list = slices.Delete(s.list, i, i+1)
	for k := range f.manifest.Files {
		if name, ok := engineFile(f.manifest.Files[k].Path); ok {
			s.held[name]--
		}
	}
	return os.RemoveAll(f.Dir + partial)
}

// Expire returns the names of those that are more than keep newest, oldest first.
func (s *Shelf) Expire(keep int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for i := 0; i < len(s.list)-keep; i++ {
		names = append(names, s.list[i].manifest.Name)
	}
	return names
}

// AutomaticName is the name of a snapshot that a server makes by itself.
func AutomaticName(at time.Time) string { return at.UTC().Format("auto-20060102T150405Z") }
