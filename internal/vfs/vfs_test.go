package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write creates or opens a file and writes b at an offset.
func write(t *testing.T, f FS, name string, b string, offset int64, sync bool) {
	t.Helper()
	file, err := f.OpenReadWrite(name)
	must(t, err)
	_, err = file.WriteAt([]byte(b), offset)
	must(t, err)
	if sync {
		must(t, file.SyncData())
	}
	must(t, file.Close())
}

func read(t *testing.T, f FS, name string) string {
	t.Helper()
	file, err := f.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "absent"
	}
	must(t, err)
	size, err := file.Size()
	must(t, err)
	b := make([]byte, size)
	if n, err := file.ReadAt(b, 0); n != len(b) || (err != nil && !errors.Is(err, io.EOF)) {
		t.Fatalf("%d of %d bytes: %v", n, size, err)
	}
	must(t, file.Close())
	return string(b)
}

// TestFS_contract runs the same steps on every implementation.
func TestFS_contract(t *testing.T) {
	for name, f := range map[string]FS{"os": OS{}, "mem": NewMem(), "failing": NewFailing(NewMem())} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "b")
			at := func(name string) string { return filepath.Join(dir, name) }
			must(t, f.MkdirAll(dir))
			must(t, f.MkdirAll(dir))
			if _, err := f.Open(at("x")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("open what is not there: %v", err)
			}
			file, err := f.Create(at("x"))
			must(t, err)
			if _, err := f.Create(at("x")); !errors.Is(err, fs.ErrExist) {
				t.Errorf("create what is there: %v", err)
			}
			must(t, file.Allocate(100))
			_, err = file.WriteAt([]byte("end"), 200)
			must(t, err)
			must(t, file.Allocate(50))
			must(t, file.Sync())
			if size, err := file.Size(); err != nil || size != 203 {
				t.Errorf("size %d %v, expected 203", size, err)
			}
			b := make([]byte, 10)
			if n, err := file.ReadAt(b, 198); n != 5 || !errors.Is(err, io.EOF) || !bytes.Equal(b[:5], []byte("\x00\x00end")) {
				t.Errorf("read %d bytes %q: %v", n, b, err)
			}
			must(t, file.Truncate(2))
			must(t, file.Truncate(4))
			must(t, file.Close())
			if got := read(t, f, at("x")); got != "\x00\x00\x00\x00" {
				t.Errorf("content %q", got)
			}
			must(t, f.Link(at("x"), at("y")))
			write(t, f, at("z"), "z", 0, true)
			must(t, f.Rename(at("z"), at("x")))
			must(t, f.SyncDir(dir))
			if names, err := f.List(dir); err != nil || !slices.Equal(names, []string{"x", "y"}) {
				t.Errorf("list %q %v", names, err)
			}
			if read(t, f, at("x")) != "z" || read(t, f, at("y")) != "\x00\x00\x00\x00" {
				t.Error("rename or link mixed the files up")
			}
			info, err := f.Stat(at("y"))
			if err != nil || info.Size() != 4 || info.IsDir() {
				t.Errorf("stat %v %v", info, err)
			}
			must(t, f.Remove(at("y")))
			if err := f.Remove(at("y")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("remove twice: %v", err)
			}
			lock, err := f.Lock(at("LOCK"))
			must(t, err)
			if _, err := f.Lock(at("LOCK")); !errors.Is(err, ErrLocked) {
				t.Errorf("lock twice: %v", err)
			}
			must(t, lock.Close())
			lock, err = f.Lock(at("LOCK"))
			must(t, err)
			must(t, lock.Close())
			if free, total, err := f.Free(dir); err != nil || free < 0 || total < free {
				t.Errorf("free %d of %d: %v", free, total, err)
			}
		})
	}
}

func TestMem_crashCloneKeepsWhatWasSynced(t *testing.T) {
	m := NewMem()
	must(t, m.MkdirAll("/d"))
	write(t, m, "/d/synced", "synced", 0, true)
	write(t, m, "/d/removed", "removed", 0, true)
	write(t, m, "/d/old", "renamed", 0, true)
	must(t, m.SyncDir("/d"))
	write(t, m, "/d/synced", "later.", 0, false)
	write(t, m, "/d/synced", "far", 5000, false)
	write(t, m, "/d/new", "new", 0, true)
	must(t, m.Remove("/d/removed"))
	must(t, m.Rename("/d/old", "/d/renamed"))
	seen := map[string]bool{}
	for seed := range uint64(300) {
		c := m.CrashClone(rand.New(rand.NewPCG(seed, 0)))
		synced := read(t, c, "/d/synced")
		switch {
		case synced[:6] != "synced" && synced[:6] != "later.":
			t.Fatalf("content %q", synced[:6])
		case len(synced) != 6 && len(synced) != 5003:
			t.Fatalf("length %d", len(synced))
		case len(synced) == 5003 && synced[5000:] != "far" && synced[5000:] != "\x00\x00\x00":
			t.Fatalf("end %q", synced[5000:])
		}
		seen[synced[:6]] = true
		if len(synced) > 6 {
			seen[synced[5000:]] = true
		} else {
			seen["short"] = true
		}
		for _, name := range []string{"new", "removed"} {
			got := read(t, c, "/d/"+name)
			if got != name && got != "absent" {
				t.Fatalf("%s is %q", name, got)
			}
			seen[name+got] = true
		}
		a, b := read(t, c, "/d/old"), read(t, c, "/d/renamed")
		if (a == "renamed") == (b == "renamed") {
			t.Fatalf("a renaming was torn: %q and %q", a, b)
		}
		seen["renamed"+a] = true
	}
	if len(seen) != 11 {
		t.Errorf("only these fates were seen: %v", seen)
	}
	if read(t, m.Clone(), "/d/renamed") != "renamed" || len(read(t, m.Clone(), "/d/synced")) != 5003 {
		t.Error("a plain clone lost something")
	}
}

func TestMem_capacity(t *testing.T) {
	m := NewMem()
	m.SetCapacity(100)
	f, err := m.Create("/x")
	must(t, err)
	must(t, f.Allocate(90))
	if _, err := f.WriteAt(make([]byte, 20), 85); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write past the capacity: %v", err)
	}
	if free, _, _ := m.Free("/"); free != 10 || m.UsedBytes() != 90 {
		t.Errorf("%d free, %d used", free, m.UsedBytes())
	}
	must(t, f.Close())
	if err := f.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	must(t, m.Remove("/x"))
	if m.UsedBytes() != 0 {
		t.Errorf("%d bytes used by nothing", m.UsedBytes())
	}
}

func TestFailing(t *testing.T) {
	mem := NewMem()
	f := NewFailing(mem)
	file, err := f.Create("/x")
	must(t, err)
	f.FailNth(2, OpWrite|OpSync, syscall.EIO, false)
	_, err = file.WriteAt([]byte("abcd"), 0)
	must(t, err)
	if err := file.SyncData(); !errors.Is(err, syscall.EIO) {
		t.Errorf("second operation: %v", err)
	}
	must(t, file.SyncData())
	if got := read(t, f, "/x"); got != "\x00\x00\x00\x00" {
		t.Errorf("%q: a failed sync must lose what was not on disk", got)
	}
	f.FailNth(1, OpWrite, syscall.EIO, true)
	for range 2 {
		if n, err := file.WriteAt([]byte("efgh"), 0); n != 2 || !errors.Is(err, syscall.EIO) {
			t.Errorf("%d bytes written: %v", n, err)
		}
	}
	f.FillAfter(6)
	_, err = file.WriteAt([]byte("ijkl"), 0)
	must(t, err)
	if _, err := file.WriteAt([]byte("mnop"), 4); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("full: %v", err)
	}
	f.SetRule(nil)
	_, err = file.WriteAt([]byte("mnop"), 4)
	must(t, err)
	if got := read(t, f, "/x"); got != "ijklmnop" || f.Count() == 0 {
		t.Errorf("%q after %d operations", got, f.Count())
	}
	must(t, file.Close())
}
