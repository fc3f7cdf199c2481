package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
)

var update = flag.Bool("update", false, "write testdata anew")

// goldenLog is a log with one record of each kind.
func goldenLog() []byte {
	b := appendHeader(nil, 1)
	for _, payload := range [][]byte{
		appendReserve(nil, 4098),
		appendDeclare(nil, definition{
			id: 2, hostID: 7, host: "db1", key: "net.if.in[eth0]", metric: "net_if_in", name: "Incoming", units: "B", help: "Bytes received.",
			labels:   model.Labels{{Name: "ifname", Value: "eth0"}, {Name: "type", Value: "counter"}},
			interval: time.Second, valueType: model.Uint, seenAt: 1_790_000_000,
		}),
		appendDeclare(nil, definition{id: 3, hostID: 7, host: "db1", key: "system.uname", metric: "system_uname", valueType: model.Character, seenAt: 1_790_000_001}),
		appendForget(nil, []model.ItemID{3}),
	} {
		b = appendFrame(b, int64(len(b)), payload)
	}
	return b
}

func TestFormat_golden(t *testing.T) {
	const file = "testdata/catalog-v1.log"
	if *update {
		if err := os.WriteFile(file, goldenLog(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(golden, goldenLog()) {
		t.Error("the format that is written differs from the golden file; a change needs a new format version")
	}
	fsys := newFS(t)
	writeLog(t, fsys, 1, golden)
	c := open(t, fsys, Options{})
	e, ok := c.ByKey(7, "net.if.in[eth0]")
	if !ok || e.ID != 2 || e.Units != "B" || e.Interval != time.Second || c.Len() != 1 || c.OwnLabels(2).Get("ifname") != "eth0" {
		t.Errorf("read %+v, %d items", e, c.Len())
	}
	if id, _ := c.NextItemID(); id != 4098 {
		t.Errorf("next id %d, want 4098", id)
	}
}

func writeLog(t testing.TB, fsys vfs.FS, number int, content []byte) {
	t.Helper()
	if err := fsys.MkdirAll("/data/catalog"); err != nil {
		t.Fatal(err)
	}
	f, err := fsys.Create(fmt.Sprintf("/data/catalog/catalog-%010d.log", number))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close(), fsys.SyncDir("/data/catalog")); err != nil {
		t.Fatal(err)
	}
}

// longLog has n declared items with the ids 1 to n.
func longLog(n int) []byte {
	b := appendHeader(nil, 1)
	b = appendFrame(b, int64(len(b)), appendReserve(nil, 5000))
	for i := range n {
		key := fmt.Sprintf("item[%d]", i)
		b = appendFrame(b, int64(len(b)), appendDeclare(nil, definition{id: model.ItemID(i + 1), hostID: 1, host: "h", key: key, seenAt: 1}))
	}
	return b
}

func TestOpen_tornTail(t *testing.T) {
	whole := longLog(3)
	for cut := headerBytes; cut <= len(whole); cut++ {
		fsys := newFS(t)
		writeLog(t, fsys, 1, whole[:cut])
		c := open(t, fsys, Options{})
		before := c.Len()
		e := declare(t, c, 1, Declaration{Key: "new"})[0]
		if cut > headerBytes && e.ID <= 3 {
			t.Fatalf("cut at %d: id %d was given twice", cut, e.ID)
		}
		_ = c.Close()
		c = open(t, fsys, Options{})
		if _, ok := c.Item(e.ID); !ok || c.Len() != before+1 {
			t.Fatalf("cut at %d: %d items after reopening, want %d", cut, c.Len(), before+1)
		}
	}
}

func TestOpen_damage(t *testing.T) {
	whole := longLog(200)
	r := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		content := slices.Clone(whole)
		at := r.IntN(len(content) - 100) // far enough from the end that it is no torn tail
		content[at] ^= byte(1 + r.IntN(255))
		fsys := newFS(t)
		writeLog(t, fsys, 1, content)
		c := open(t, fsys, Options{})
		want := 199
		if at < headerBytes {
			want = 0
		} else if at < headerBytes+frameBytes+3 {
			want = 200 // the reservation was hit
		}
		if c.Len() != want {
			t.Fatalf("byte %d damaged: %d items, want %d", at, c.Len(), want)
		}
		if id, err := c.NextItemID(); err != nil || id <= 200 {
			t.Fatalf("byte %d damaged: id %d, %v", at, id, err)
		}
		names, _ := fsys.List("/data/catalog")
		if len(names) != 2 || !slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, ".damaged") }) {
			t.Fatalf("byte %d damaged: files %v", at, names)
		}
		_ = c.Close()
		if c = open(t, fsys, Options{}); c.Len() != want {
			t.Fatalf("byte %d damaged: %d items after the second start", at, c.Len())
		}
	}
}

func TestOpen_leftovers(t *testing.T) {
	fsys := newFS(t)
	writeLog(t, fsys, 1, longLog(2))
	newer := appendHeader(nil, 2)
	newer = appendFrame(newer, int64(len(newer)), appendReserve(nil, 9000))
	writeLog(t, fsys, 2, newer)
	c := open(t, fsys, Options{})
	names, _ := fsys.List("/data/catalog")
	if c.Len() != 0 || len(names) != 1 || names[0] != "catalog-0000000002.log" {
		t.Errorf("%d items, files %v", c.Len(), names)
	}
}

func TestOpen_newerFormat(t *testing.T) {
	header := appendHeader(nil, 1)
	binary.LittleEndian.PutUint16(header[8:], 2)
	binary.LittleEndian.PutUint32(header[28:], crc32.Checksum(header[:28], castagnoli))
	fsys := newFS(t)
	writeLog(t, fsys, 1, header)
	_, err := Open(t.Context(), fsys, "/data/catalog", Options{})
	var newer *VersionError
	if !errors.As(err, &newer) || newer.Version != 2 {
		t.Errorf("error %v", err)
	}
}

func TestOpen_unreadable(t *testing.T) {
	mem := newFS(t)
	writeLog(t, mem, 1, longLog(2))
	fsys := vfs.NewFailing(mem)
	fsys.FailNth(1, vfs.OpRead, errors.New("input/output error"), false)
	c := open(t, fsys, Options{})
	if id, err := c.NextItemID(); err != nil || id < idSkip {
		t.Errorf("id %d, %v", id, err)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	b := goldenLog()[headerBytes:]
	for len(b) > 0 {
		n := frameBytes + int(binary.LittleEndian.Uint32(b))
		f.Add(b[frameBytes:n])
		b = b[n:]
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := decodeRecord(payload)
		if err != nil || r.kind != recordDeclare {
			return
		}
		again, err := decodeRecord(appendDeclare(nil, r.item))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(r) {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	f.Add(goldenLog())
	f.Add(longLog(3)[:90])
	f.Fuzz(func(t *testing.T, content []byte) {
		fsys := vfs.NewMem()
		writeLog(t, fsys, 1, content)
		c, err := Open(t.Context(), fsys, "/data/catalog", Options{})
		var newer *VersionError
		if errors.As(err, &newer) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		n := c.Len()
		if _, _, err := c.Declare(t.Context(), 1<<40, "h", []Declaration{{Key: "k"}}); err != nil {
			t.Fatal(err)
		}
		if c.Len() != n+1 {
			t.Fatalf("%d items, want %d", c.Len(), n+1)
		}
	})
}
