package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o640); err != nil {
		t.Fatal(err)
	}
}

// make makes a snapshot of two engine files, of which one counts in part, and a secret.
func makeSnapshot(t *testing.T, data, to string, since *Folder) *Folder {
	t.Helper()
	ctx := context.Background()
	w, err := Create(to, since)
	if err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int64{"a": 5, "b": 3} {
		if err := w.Link(ctx, filepath.Join(data, "engine", name), "engine/"+name, size); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.AddFile(ctx, filepath.Join(data, privateFile), privateFile); err != nil {
		t.Fatal(err)
	}
	f, err := w.Commit("test", 7, time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func dataFolder(t *testing.T) string {
	t.Helper()
	data := t.TempDir()
	write(t, filepath.Join(data, "engine/a"), "aaaaa")
	write(t, filepath.Join(data, "engine/b"), "bbb, and more since")
	write(t, filepath.Join(data, privateFile), "key")
	if err := os.Chmod(filepath.Join(data, privateFile), 0o600); err != nil {
		t.Fatal(err)
	}
	return data
}

func restored(t *testing.T, s Source) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	if err := Restore(context.Background(), s, dir, nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"engine/a": "aaaaa", "engine/b": "bbb", privateFile: "key"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("restored %s is %q, %v, want %q", name, got, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, privateFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %v, %v", info.Mode(), err)
	}
	return dir
}

func TestFolder(t *testing.T) {
	data := dataFolder(t)
	to := filepath.Join(t.TempDir(), "snap")
	makeSnapshot(t, data, to, nil)
	s, err := OpenFolder(to)
	if err != nil {
		t.Fatal(err)
	}
	if s.Manifest().LSN != 7 || s.Manifest().Bytes() != 11 {
		t.Errorf("the manifest is %+v", s.Manifest())
	}
	if list, err := Verify(context.Background(), s, nil); err != nil || len(list) != 0 {
		t.Errorf("Verify: %v, %v", list, err)
	}
	restored(t, s)
	if err := Restore(context.Background(), s, data, nil); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("Restore over data: %v", err)
	}
	if _, err := Create(to, nil); err == nil {
		t.Error("Create over a snapshot succeeded")
	}
	write(t, filepath.Join(to, privateFile), "KEY")
	if err := os.Truncate(filepath.Join(to, "engine/a"), 4); err != nil {
		t.Fatal(err)
	}
	if list, err := Verify(context.Background(), s, nil); err != nil || len(list) != 2 {
		t.Errorf("Verify of two damaged files: %v, %v", list, err)
	}
	dir := filepath.Join(t.TempDir(), "no")
	if err := Restore(context.Background(), s, dir, nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("Restore of a damaged snapshot: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a damaged snapshot was restored to %s", dir)
	}
}

// TestWriter_since copies what links cannot have, and leaves in the snapshot before what that has.
func TestWriter_since(t *testing.T) {
	data := dataFolder(t)
	base := t.TempDir()
	copying := func(name string, since *Folder) *Folder {
		w, err := Create(filepath.Join(base, name), since)
		if err != nil {
			t.Fatal(err)
		}
		w.copied = true // as on another file system
		ctx := context.Background()
		for file, size := range map[string]int64{"a": 5, "b": 3} {
			if err := w.Link(ctx, filepath.Join(data, "engine", file), "engine/"+file, size); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.AddFile(ctx, filepath.Join(data, privateFile), privateFile); err != nil {
			t.Fatal(err)
		}
		f, err := w.Commit("test", 1, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	one := copying("one", nil)
	two := copying("two", one)
	same := func(name string) bool {
		a, errA := os.Stat(filepath.Join(base, "one/engine", name))
		b, errB := os.Stat(filepath.Join(base, "two/engine", name))
		return errA == nil && errB == nil && os.SameFile(a, b)
	}
	if !same("a") || !same("b") {
		t.Error("files that did not change were copied again")
	}
	restored(t, two)
	// Where they cannot be linked either, the manifest says where they are.
	m := *two.manifest
	m.Files = append([]File(nil), m.Files...)
	for i := range m.Files {
		if m.Files[i].Path == "engine/a" {
			m.Files[i].In = "../one"
		}
	}
	if err := os.Remove(filepath.Join(two.Dir, "engine/a")); err != nil {
		t.Fatal(err)
	}
	restored(t, &Folder{Dir: two.Dir, manifest: &m})
	if err := os.RemoveAll(one.Dir); err != nil {
		t.Fatal(err)
	}
	list, err := Verify(context.Background(), &Folder{Dir: two.Dir, manifest: &m}, nil)
	if err == nil && len(list) == 0 {
		t.Error("Verify passes although the snapshot before is gone")
	}
}

func TestShelf(t *testing.T) {
	data := dataFolder(t)
	dir := filepath.Join(t.TempDir(), "snapshots")
	s, err := OpenShelf(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		s.Put(makeSnapshot(t, data, filepath.Join(dir, name), nil))
	}
	write(t, filepath.Join(dir, "three"+partial, "engine/a"), "half")
	write(t, filepath.Join(dir, "other", "file"), "no snapshot")
	if s, err = OpenShelf(dir, true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "three"+partial)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("an unfinished snapshot is still there")
	}
	if len(s.List()) != 2 || len(s.Damaged()) != 1 || !s.Holds("a") || s.Holds("c") || s.Holds(privateFile) {
		t.Errorf("the shelf has %d snapshots, damaged %q, holds a %v", len(s.List()), s.Damaged(), s.Holds("a"))
	}
	if names := s.Expire(1); len(names) != 1 || names[0] != "one" {
		t.Errorf("Expire: %q", names)
	}
	if err := s.Remove("one"); err != nil || !s.Holds("a") {
		t.Errorf("Remove: %v, still held %v", err, s.Holds("a"))
	}
	if !s.DropOldest() || s.DropOldest() || s.Holds("a") || s.Dropped() != 1 {
		t.Errorf("DropOldest dropped %d, held %v", s.Dropped(), s.Holds("a"))
	}
	if err := s.Remove("one"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Remove of nothing: %v", err)
	}
	for _, name := range []string{"", "../x", ".x", "a/b", strings.Repeat("x", 65), "x.partial"} {
		if _, err := s.Begin(name); err == nil {
			t.Errorf("a snapshot can be called %q", name)
		}
	}
}

func FuzzDecodeManifest(f *testing.F) {
	f.Add([]byte(`{"format":1,"files":[{"path":"engine/a","bytes":5}]}`))
	f.Add([]byte(`{"format":1,"files":[{"path":"../a","bytes":5}]}`))
	f.Add([]byte(`{"format":9}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeManifest(b)
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if !filepath.IsLocal(file.Path) || file.Bytes < 0 || strings.HasPrefix(file.Path, "..") {
				t.Fatalf("taken: %+v", file)
			}
		}
		again, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if n, err := decodeManifest(again); err != nil || len(n.Files) != len(m.Files) {
			t.Fatalf("written again it is %s: %v", bytes.TrimSpace(again), err)
		}
	})
}
