package spool

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
)

func record(n int) Record {
	b := &model.Batch{ArrivedAt: int64(n)}
	b.AppendUint(1, int64(n), uint64(n))
	b.AppendString(2, int64(n), model.Text, fmt.Sprint("line ", n))
	b.AppendFloat(3, int64(n), 0.5)
	b.Flags[0] = model.Late
	b.Marks = append(b.Marks, model.Mark{Key: "k", Value: fmt.Sprint(n), At: int64(n)})
	return Record{Batch: b, Classes: []uint8{0, 3, 15}}
}

func openAt(t *testing.T, fs vfs.FS) *Log {
	t.Helper()
	l, err := Open(fs, "/spool", Options{SegmentBytes: 2000})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func appendTo(t *testing.T, l *Log, n int) model.LSN {
	t.Helper()
	lsn, err := l.Append(record(n))
	if err != nil {
		t.Fatal(err)
	}
	return lsn
}

// numbers reads the numbers behind an LSN.
func numbers(t *testing.T, l *Log, from model.LSN) []int {
	t.Helper()
	var all []int
	err := l.Read(context.Background(), from, func(_ model.LSN, r Record) error {
		n := int(r.Batch.ArrivedAt)
		if want := record(n); !reflect.DeepEqual(want.Classes, r.Classes) || !reflect.DeepEqual(want.Batch, r.Batch) {
			t.Errorf("record %d is %+v", n, r.Batch)
		}
		all = append(all, n)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func upTo(from, to int) (all []int) {
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

func TestLog(t *testing.T) {
	fs := vfs.NewMem()
	l := openAt(t, fs)
	l.StartAt(1000)
	var lsns []model.LSN
	for n := range 100 {
		lsns = append(lsns, appendTo(t, l, n))
		if n%30 == 29 {
			id := l.ID()
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			l = openAt(t, fs)
			if l.ID() != id || l.End() != lsns[n] {
				t.Fatalf("id %x, end %d, expected %x, %d", l.ID(), l.End(), id, lsns[n])
			}
		}
	}
	for _, from := range []int{0, 29, 30, 50, 99} {
		if got := numbers(t, l, lsns[from]); !reflect.DeepEqual(got, upTo(from+1, 99)) {
			t.Errorf("behind %d: %v", from, got)
		}
	}
	size := l.SizeBytes()
	if err := l.Trim(lsns[80]); err != nil {
		t.Fatal(err)
	}
	if l.SizeBytes() >= size {
		t.Error("Trim removed nothing")
	}
	if got := numbers(t, l, lsns[80]); !reflect.DeepEqual(got, upTo(81, 99)) {
		t.Errorf("behind 80 after Trim: %v", got)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	if _, err := l.Append(record(1)); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("Append after Close: %v", err)
	}
}

// TestLog_large splits a batch into several records, with the marks in the last.
func TestLog_large(t *testing.T) {
	l := openAt(t, vfs.NewMem())
	b := &model.Batch{}
	for n := range 400 {
		b.AppendBytes(model.ItemID(n+1), 1, model.Text, make([]byte, 60_000))
	}
	b.Marks = []model.Mark{{Key: "k"}}
	end, err := l.Append(Record{Batch: b, Classes: make([]uint8, b.Len())})
	if err != nil {
		t.Fatal(err)
	}
	rows, records := 0, 0
	err = l.Read(context.Background(), 0, func(lsn model.LSN, r Record) error {
		rows += r.Batch.Len()
		records++
		if (len(r.Batch.Marks) > 0) != (lsn == end) {
			t.Errorf("record %d has marks %v", records, r.Batch.Marks)
		}
		return nil
	})
	if err != nil || rows != 400 || records < 2 {
		t.Errorf("%d rows in %d records, %v", rows, records, err)
	}
}

// TestLog_failures makes every operation of a short life fail once: what Sync acknowledged is there afterwards, and what Append refused is not.
func TestLog_failures(t *testing.T) {
	for n := int64(1); n < 400; n++ {
		mem := vfs.NewMem()
		failing := vfs.NewFailing(mem)
		failing.FailNth(n, vfs.OpWrite|vfs.OpSync|vfs.OpCreate|vfs.OpSyncDir|vfs.OpTruncate|vfs.OpRemove, syscall.EIO, false)
		l, err := Open(failing, "/spool", Options{SegmentBytes: 500})
		if err != nil {
			continue
		}
		durable, refused := map[int]bool{}, map[int]bool{}
		for k := range 20 {
			lsn, err := l.Append(record(k))
			if err != nil {
				refused[k] = true
				continue
			}
			if end, err := l.Sync(); err == nil && lsn <= end && !l.Lost(lsn) {
				durable[k] = true
			}
		}
		if len(durable) < 19 {
			t.Errorf("failure %d: only %d of 20 are durable", n, len(durable))
		}
		_ = l.Close() // may fail
		failing.SetRule(nil)
		l = openAt(t, mem)
		found := map[int]int{}
		for _, k := range numbers(t, l, 0) {
			found[k]++
		}
		for k := range 20 {
			if durable[k] && found[k] != 1 || refused[k] && found[k] != 0 || found[k] > 1 {
				t.Errorf("failure %d: record %d is there %d times; durable %v, refused %v", n, k, found[k], durable[k], refused[k])
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLog_torn cuts and spoils the end of the last segment: what is before it is read, and new records follow.
func TestLog_torn(t *testing.T) {
	for cut := int64(1); cut < 120; cut += 7 {
		fs := vfs.NewMem()
		l := openAt(t, fs)
		for n := range 5 {
			appendTo(t, l, n)
		}
		name := l.last().name
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		file, err := fs.OpenReadWrite(name)
		if err != nil {
			t.Fatal(err)
		}
		size, _ := file.Size()
		if cut%2 == 0 {
			err = file.Truncate(size - cut)
		} else {
			_, err = file.WriteAt([]byte{0xAA, 0x55}, size-cut-1)
		}
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		l = openAt(t, fs)
		appendTo(t, l, 9)
		if got := numbers(t, l, 0); len(got) != 5 || got[4] != 9 {
			t.Errorf("cut %d: %v, expected 0 to 3 and 9", cut, got)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = openAt(t, fs)
		if got := numbers(t, l, 0); len(got) != 5 || got[4] != 9 {
			t.Errorf("cut %d, opened again: %v, expected 0 to 3 and 9", cut, got)
		}
		_ = l.Close()
	}
}

func FuzzDecodePayload(f *testing.F) {
	f.Add(appendPayload(nil, record(1), 0, 3, true))
	f.Add(appendPayload(nil, record(2), 1, 2, false))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		r, err := decodePayload(p)
		if err != nil {
			return
		}
		again, err := decodePayload(appendPayload(nil, r, 0, r.Batch.Len(), true))
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Errorf("%+v, %v\nwas %+v", again, err, r)
		}
	})
}

func TestLog_Segments(t *testing.T) {
	l := openAt(t, vfs.NewMem())
	end := model.LSN(0)
	for n := range 60 {
		end = appendTo(t, l, n)
	}
	list := l.Segments()
	if len(list) < 2 || list[0].From != 0 || list[len(list)-1].To != end {
		t.Fatalf("segments %+v, want several from 0 to %d", list, end)
	}
	for i := 1; i < len(list); i++ {
		if list[i].From != list[i-1].To {
			t.Errorf("segment %d begins at %d, want %d", i, list[i].From, list[i-1].To)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A mark may be as long as its byte of length says.
func TestRecord_longMarks(t *testing.T) {
	text := strings.Repeat("m", 255)
	r := Record{Batch: &model.Batch{Marks: []model.Mark{{Key: text, Value: text, At: 1}}}, Classes: []uint8{}}
	got, err := decodePayload(appendPayload(nil, r, 0, 0, true))
	if err != nil || !reflect.DeepEqual(got.Batch.Marks, r.Batch.Marks) {
		t.Errorf("marks %+v, %v", got.Batch, err)
	}
}

// flipped is the content of a file with one bit set wrong.
func flipped(t *testing.T, fs vfs.FS, name string, at int64, mask byte) {
	t.Helper()
	file, err := fs.OpenReadWrite(name)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	_, err = file.ReadAt(b[:], at)
	b[0] ^= mask
	if err == nil {
		_, err = file.WriteAt(b[:], at)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestLog_everyByte spoils each byte of a segment that others follow: of its records only the one with the byte is missing, it is counted, and all
// others are read, before and after a restart. A damaged header costs nothing.
func TestLog_everyByte(t *testing.T) {
	const records = 30
	fs := vfs.NewMem()
	l := openAt(t, fs)
	id := l.ID()
	var ends []model.LSN
	for n := range records {
		ends = append(ends, appendTo(t, l, n))
	}
	name, size := l.segments[0].name, segmentHeaderBytes+int64(l.segments[0].end)
	if len(l.segments) < 2 || l.Close() != nil {
		t.Fatal("expected several segments")
	}
	for at := range size {
		mask := byte(1 << (at % 8))
		flipped(t, fs, name, at, mask)
		l, err := Open(fs, "/spool", Options{SegmentBytes: 2000})
		if err != nil {
			if at < 8 || at >= 12 || !strings.Contains(err.Error(), "use a newer program") {
				t.Fatalf("byte %d: %v", at, err)
			}
			flipped(t, fs, name, at, mask)
			continue
		}
		want, hit := []int{}, -1
		for n := range records {
			from := int64(0)
			if n > 0 {
				from = int64(ends[n-1])
			}
			if in := at - segmentHeaderBytes; in >= from && in < int64(ends[n]) {
				hit = n
				continue
			}
			want = append(want, n)
		}
		if got := numbers(t, l, 0); !reflect.DeepEqual(got, want) {
			t.Fatalf("byte %d: %v, expected all but %d", at, got, hit)
		}
		damage, places := l.Damage(), int64(0)
		if hit >= 0 {
			places = 1
		}
		if damage.Places != places || (damage.Bytes > 0) != (hit >= 0) || damage.TailBytes != 0 || l.ID() != id || l.End() != ends[records-1] {
			t.Fatalf("byte %d: damage %+v, id %x, end %d", at, damage, l.ID(), l.End())
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if hit >= 0 {
			flipped(t, fs, name, at, mask)
		}
	}
}

// TestLog_rots: damage that comes while the log is open is skipped and counted once, wherever reading begins.
func TestLog_rots(t *testing.T) {
	fs := vfs.NewMem()
	l := openAt(t, fs)
	var ends []model.LSN
	for n := range 10 {
		ends = append(ends, appendTo(t, l, n))
	}
	// The length of record 2, now beyond the segment; and a value of record 5.
	flipped(t, fs, l.last().name, segmentHeaderBytes+int64(ends[1])+1, 0x40)
	flipped(t, fs, l.last().name, segmentHeaderBytes+int64(ends[5])-20, 1)
	for range 2 {
		if got := numbers(t, l, 0); !reflect.DeepEqual(got, []int{0, 1, 3, 4, 6, 7, 8, 9}) {
			t.Errorf("read %v", got)
		}
		if got := numbers(t, l, ends[2]); !reflect.DeepEqual(got, []int{3, 4, 6, 7, 8, 9}) {
			t.Errorf("behind the damaged length %v", got)
		}
	}
	if damage := l.Damage(); damage.Places != 2 || damage.Bytes != int64(ends[2]-ends[1]+ends[5]-ends[4]) {
		t.Errorf("damage %+v", damage)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestLog_rotsAtItsEnd: the last record of a segment goes bad while the log is open. What is before and behind it is read, and it is counted once.
func TestLog_rotsAtItsEnd(t *testing.T) {
	fs := vfs.NewMem()
	l := openAt(t, fs)
	var ends []model.LSN
	for n := range 40 {
		ends = append(ends, appendTo(t, l, n))
	}
	if _, err := l.Sync(); err != nil || len(l.segments) < 3 {
		t.Fatalf("%d segments, %v", len(l.segments), err)
	}
	bad := slices.Index(ends, l.segments[0].end) // the last one of the first segment
	flipped(t, fs, l.segments[0].name, segmentHeaderBytes+int64(ends[bad])-5, 1)
	flipped(t, fs, l.last().name, segmentHeaderBytes+int64(ends[39]-l.last().base)-5, 1)
	want := slices.Delete(upTo(0, 38), bad, bad+1)
	for range 2 {
		if got := numbers(t, l, 0); !slices.Equal(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
		if got := numbers(t, l, ends[38]); len(got) != 0 {
			t.Errorf("behind the last valid one: %v", got)
		}
	}
	appendTo(t, l, 40)
	if got := numbers(t, l, 0); !slices.Equal(got, append(want, 40)) {
		t.Errorf("after one more: %v", got)
	}
	if damage := l.Damage(); damage.Places != 2 || damage.Bytes != int64(ends[bad]-ends[bad-1]+ends[39]-ends[38]) {
		t.Errorf("damage %+v", damage)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestLog_unreadable: a disk that does not answer is asked again, and only counts as damaged after a number of times.
func TestLog_unreadable(t *testing.T) {
	for _, recovers := range []bool{true, false} {
		failing := vfs.NewFailing(vfs.NewMem())
		l := openAt(t, failing)
		appendTo(t, l, 1)
		end := appendTo(t, l, 2)
		failing.SetRule(func(did vfs.Op, _ string, _ int) error {
			if did == vfs.OpRead {
				return syscall.EIO
			}
			return nil
		})
		read := func() error { return l.Read(t.Context(), 0, func(model.LSN, Record) error { return nil }) }
		for range maxUnread - 1 {
			if err := read(); !errors.Is(err, syscall.EIO) {
				t.Fatalf("read: %v, want an error of the disk", err)
			}
		}
		if recovers {
			failing.SetRule(nil)
			if got := numbers(t, l, 0); !slices.Equal(got, []int{1, 2}) || l.Damage().Places != 0 {
				t.Errorf("when the disk answers again: %v, %+v", got, l.Damage())
			}
			continue
		}
		if err := read(); err != nil || l.Damage().Bytes != int64(end) {
			t.Errorf("after %d tries: %v, %+v", maxUnread, err, l.Damage())
		}
	}
}
