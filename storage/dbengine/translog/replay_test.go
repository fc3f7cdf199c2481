package translog

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
)

// openLog opens the log in a folder of a file system.
func openLog(t *testing.T, fsys vfs.FS, dir string) *Log {
	t.Helper()
	o := Options{
		FS: fsys, Dir: dir, SegmentBytes: MinSegmentBytes, RetryDelay: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		Reserve: func(int64) error { return nil }, Released: func(int64) {}, Durable: func(model.LSN) {}, Synced: func(int, time.Duration) {},
	}
	l, _, err := Open(t.Context(), o, 0, func(model.LSN, byte, []byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// ends are those of the records that Replay gives from an LSN on.
func ends(t *testing.T, l *Log, from model.LSN) (all []model.LSN) {
	t.Helper()
	err := l.Replay(t.Context(), from, func(end model.LSN, kind byte, payload []byte) error {
		if kind != KindBatch || len(payload) != 1000 || payload[0] != payload[999] {
			t.Errorf("record %d has kind %d and %d bytes", end, kind, len(payload))
		}
		all = append(all, end)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestLog_Replay gives the durable records behind any LSN: where one begins, and in the middle of one; in several files, the last of which is written to;
// and behind damage.
func TestLog_Replay(t *testing.T) {
	fsys, dir := vfs.NewMem(), "log"
	if err := fsys.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, fsys, dir)
	var written []model.LSN
	write := func(records int) {
		for n := range records {
			payload := slices.Repeat([]byte{byte(n)}, 1000)
			written = append(written, l.Append(KindBatch, payload))
			if err := l.Wait(context.Background(), l.End()); err != nil {
				t.Fatal(err)
			}
		}
	}
	compare := func(what string, from model.LSN, want []model.LSN) {
		t.Helper()
		if got := ends(t, l, from); !slices.Equal(got, want) {
			t.Fatalf("%s, from %d: %d records, expected %d", what, from, len(got), len(want))
		}
	}
	everywhere := func(what string) {
		t.Helper()
		compare(what, 0, written)
		for i, end := range written {
			compare(what, end, written[i+1:])
			compare(what, end-1, written[i:])
			compare(what, end-500, written[i:])
		}
		compare(what, l.End()+1000, nil)
	}
	write(100)
	everywhere("as written")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openLog(t, fsys, dir)
	everywhere("opened again")
	write(20)
	everywhere("written to again")
	// A damaged record in the middle of the first file is left out, and so is nothing else.
	file, err := fsys.OpenReadWrite(filepath.Join(dir, l.segments[0].file))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("damage"), headerBytes+int64(written[4]-l.segments[0].first)+200); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	damaged := slices.Delete(slices.Clone(written), 5, 6)
	compare("damaged", 0, damaged)
	compare("before the damaged record", written[3], damaged[4:])
	compare("behind the record before it", written[4], written[6:])
	compare("inside it", written[4]+100, written[6:])
	compare("behind it", written[5], written[6:])
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
