package vfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// TestOpenDirectly does random appends, syncs and reads on each file system and compares with the same bytes in memory.
func TestOpenDirectly(t *testing.T) {
	for name, f := range map[string]FS{"os": OS{}, "mem": NewMem(), "failing": NewFailing(NewMem())} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, f.MkdirAll(dir))
			buffers := NewBuffers(2, 3*DirectBytes)
			r := rand.New(rand.NewPCG(1, 2))
			for range 20 {
				if !appendDirectly(t, f, filepath.Join(dir, "x"), buffers, r) {
					t.Log("the file system of the test's folder has no direct I/O")
					return // the others have it in any case
				}
			}
			if held := buffers.HeldBytes(); held > buffers.LimitBytes() || held == 0 {
				t.Errorf("buffers take %d bytes, expected some and at most %d", held, buffers.LimitBytes())
			}
		})
	}
}

// appendDirectly makes a file of a random start that was written as usual, and appends to it directly.
func appendDirectly(t *testing.T, f FS, name string, buffers *Buffers, r *rand.Rand) bool {
	t.Helper()
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(1 + r.IntN(255))
		}
		return b
	}
	want := random(r.IntN(3 * DirectBytes))
	plain, err := f.Create(name)
	must(t, err)
	_, err = plain.WriteAt(want, 0)
	must(t, errors.Join(err, plain.Sync(), plain.Close()))
	file, err := OpenDirectly(f, name, true, buffers)
	if errors.Is(err, errors.ErrUnsupported) {
		return false
	}
	must(t, err)
	for range 30 {
		switch r.IntN(5) {
		case 0:
			must(t, file.SyncData())
			info, err := f.Stat(name)
			must(t, err)
			if size := info.Size(); size != blockUp(int64(len(want))) && size != int64(len(want)) {
				t.Fatalf("after a sync of data the file has %d bytes, expected %d, filled up to a block or not", size, len(want))
			}
		case 1:
			must(t, file.Sync())
			if got := read(t, f, name); got != string(want) {
				t.Fatalf("after a sync there are %d bytes, expected %d", len(got), len(want))
			}
		case 2:
			readDirectly(t, file, want, r)
		default:
			gap := r.IntN(64)
			b := random(r.IntN(9 * DirectBytes))
			_, err := file.WriteAt(b, int64(len(want)+gap))
			must(t, err)
			want = append(append(want, make([]byte, gap)...), b...)
			if size, err := file.Size(); err != nil || size != int64(len(want)) {
				t.Fatalf("size %d %v, expected %d", size, err, len(want))
			}
		}
	}
	must(t, file.Close())
	if got := read(t, f, name); got != string(want) {
		t.Fatalf("after the end there are %d bytes, expected %d", len(got), len(want))
	}
	reader, err := OpenDirectly(f, name, false, buffers)
	must(t, err)
	for range 20 {
		readDirectly(t, reader, want, r)
	}
	from := r.IntN(len(want))
	start, b, err := ReadBlocks(reader, int64(from), int64(len(want)))
	if err != nil || !bytes.Equal(b[int64(from)-start:], want[from:]) {
		t.Errorf("blocks from %d on: %d bytes from %d, %v", from, len(b), start, err)
	}
	if _, _, err := ReadBlocks(reader, int64(from), int64(len(want)+1)); !errors.Is(err, io.EOF) {
		t.Errorf("blocks behind the end: %v", err)
	}
	must(t, errors.Join(reader.Close(), f.Remove(name)))
	return true
}

func readDirectly(t *testing.T, file File, want []byte, r *rand.Rand) {
	t.Helper()
	from := r.IntN(len(want) + 1)
	got := make([]byte, r.IntN(5*DirectBytes))
	n, err := file.ReadAt(got, int64(from))
	if expected := min(len(got), len(want)-from); n != expected || !bytes.Equal(got[:n], want[from:from+n]) {
		t.Fatalf("read %d bytes from %d of %d: %d, %v", len(got), from, len(want), n, err)
	}
	if n < len(got) && !errors.Is(err, io.EOF) || n == len(got) && err != nil {
		t.Fatalf("read %d of %d bytes: %v", n, len(got), err)
	}
}

// TestMem_direct checks that what is not aligned is refused, and that there may be no direct I/O at all.
func TestMem_direct(t *testing.T) {
	m := NewMem()
	write(t, m, "x", "12345", 0, true)
	f, err := m.OpenDirect("x", true)
	must(t, err)
	b := aligned(2 * DirectBytes)
	for _, wrong := range []struct {
		p      []byte
		offset int64
	}{{b[:DirectBytes], 512}, {b[:512], 0}, {b[1 : 1+DirectBytes], 0}} {
		if _, err := f.WriteAt(wrong.p, wrong.offset); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("write of %d bytes at %d: %v", len(wrong.p), wrong.offset, err)
		}
		if _, err := f.ReadAt(wrong.p, wrong.offset); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("read of %d bytes at %d: %v", len(wrong.p), wrong.offset, err)
		}
	}
	if n, err := f.ReadAt(b[:DirectBytes], 0); n != 5 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d bytes, %v", n, err)
	}
	m.SetDirect(false)
	if _, err := m.OpenDirect("x", false); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without direct I/O: %v", err)
	}
	if _, err := m.CrashClone(rand.New(rand.NewPCG(1, 1))).OpenDirect("x", false); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without direct I/O, after a crash: %v", err)
	}
}

// TestOpenDirectly_failure loses a write that is under way: the sync after it says so, as do all that come later.
func TestOpenDirectly_failure(t *testing.T) {
	f := NewFailing(NewMem())
	write(t, f, "x", "start", 0, true)
	file, err := OpenDirectly(f, "x", true, NewBuffers(2, DirectBytes))
	must(t, err)
	f.FailNth(2, OpWrite, syscall.EIO, false)
	_, err = file.WriteAt(make([]byte, 5*DirectBytes), 5)
	must(t, err)
	for range 2 {
		if err := file.SyncData(); !errors.Is(err, syscall.EIO) {
			t.Errorf("sync after a failed write: %v", err)
		}
	}
	if _, err := file.WriteAt([]byte("more"), 5+5*DirectBytes); !errors.Is(err, syscall.EIO) {
		t.Errorf("write after a failed one: %v", err)
	}
	if err := file.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("close after a failed write: %v", err)
	}
}

// TestOpenDirectly_appends refuses what is not at the end.
func TestOpenDirectly_appends(t *testing.T) {
	m := NewMem()
	write(t, m, "x", "start", 0, true)
	file, err := OpenDirectly(m, "x", true, NewBuffers(2, DirectBytes))
	must(t, err)
	for _, at := range []int64{0, 4, 5 + DirectBytes} {
		if _, err := file.WriteAt([]byte("x"), at); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("write at %d: %v", at, err)
		}
	}
	if err := file.Truncate(1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("truncate: %v", err)
	}
	if err := file.Allocate(1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("allocate: %v", err)
	}
	must(t, file.Close())
}

// TestBuffers lets many take buffers, of which there are two.
func TestBuffers(t *testing.T) {
	b := NewBuffers(2, DirectBytes)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 50 {
				p := b.take()
				p[0]++
				b.give(p)
			}
		})
	}
	all.Wait()
	if held := b.HeldBytes(); held > 2*2*DirectBytes || held > b.LimitBytes() {
		t.Errorf("%d bytes, expected at most two buffers", held)
	}
}

// TestStream reads files of all kinds of lengths once, directly and not, and one that is shorter than was said.
func TestStream(t *testing.T) {
	m := NewMem()
	r := rand.New(rand.NewPCG(5, 6))
	for _, size := range []int{0, 1, DirectBytes, streamBytes - 1, streamBytes, streamBytes + 1, 3*streamBytes + 77} {
		want := make([]byte, size)
		for rest := want; len(rest) >= 8; rest = rest[8:] {
			binary.LittleEndian.PutUint64(rest, r.Uint64())
		}
		plain, err := m.OpenReadWrite("x")
		must(t, err)
		_, err = plain.WriteAt(want, 0)
		must(t, err)
		direct, err := OpenDirectly(m, "x", false, NewBuffers(2, DirectBytes))
		must(t, err)
		for _, f := range []File{plain, direct} {
			s := NewStream(f, int64(size))
			got, err := io.ReadAll(s)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d of %d bytes, %v", len(got), size, err)
			}
			if n, err := s.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("behind the end: %d, %v", n, err)
			}
			short := NewStream(f, int64(size)+1)
			if _, err := io.ReadAll(short); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("a file of %d bytes that lacks one: %v", size, err)
			}
			must(t, errors.Join(s.Close(), short.Close(), f.Close()))
		}
		must(t, m.Remove("x"))
	}
}
