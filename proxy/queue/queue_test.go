package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
)

// openQueue opens a queue with small segments.
func openQueue(t *testing.T, fs vfs.FS, limit int64) *Queue {
	t.Helper()
	q, err := Open(t.Context(), Options{
		Folder: "/proxy", FS: fs, LimitBytes: limit, SegmentBytes: 2000, MaxAge: 1000, IsRule: func(id model.ItemID) bool { return id == 9 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// crash is what a power cut leaves.
func crash(fs *vfs.Mem) *vfs.Mem { return fs.CrashClone(rand.New(rand.NewPCG(1, 2))) }

// batch has one value for each number, and the mark of a session.
func batch(arrived int64, numbers ...uint64) *model.Batch {
	b := &model.Batch{ArrivedAt: arrived}
	for _, n := range numbers {
		b.AppendUint(1, int64(n), n)
		b.Marks = []model.Mark{{Key: "session/1/x", Value: fmt.Sprint(n), At: arrived}}
	}
	return b
}

func add(t *testing.T, q *Queue, b *model.Batch) {
	t.Helper()
	if err := q.Append(b); err != nil {
		t.Fatal(err)
	}
}

// next returns the next batch with the texts of its values.
func next(t *testing.T, q *Queue, limit int) (*Batch, []string) {
	t.Helper()
	b, err := q.Next(t.Context(), limit, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	last := uint64(0)
	for _, r := range b.Rows {
		if r.ID <= last {
			t.Errorf("id %d behind %d", r.ID, last)
		}
		last = r.ID
		list = append(list, string(r.Value))
	}
	return b, list
}

func mark(q *Queue, key string) string {
	value := ""
	q.Marks(func(m model.Mark) {
		if m.Key == key {
			value = m.Value
		}
	})
	return value
}

// What waits is sent in order, under the same ids and the same session after a crash, until the server has it.
func TestQueue(t *testing.T) {
	fs := vfs.NewMem()
	q := openQueue(t, fs, 1<<20)
	for n := range uint64(60) {
		add(t, q, batch(int64(n), 2*n, 2*n+1))
	}
	first, values := next(t, q, 10)
	if len(values) != 10 || values[0] != "0" || values[9] != "9" || !first.More {
		t.Fatalf("first batch %v, more %t", values, first.More)
	}
	again, _ := next(t, q, 10)
	if !reflect.DeepEqual(first, again) {
		t.Errorf("the same batch came as %+v and %+v", first, again)
	}
	crashed := openQueue(t, crash(fs), 1<<20)
	if after, _ := next(t, crashed, 10); !reflect.DeepEqual(first, after) || crashed.Session() != q.Session() || len(q.Session()) != 32 {
		t.Errorf("after a crash the first batch is %+v of session %s, want %+v of %s", after, crashed.Session(), first, q.Session())
	}
	if s := crashed.State(); s.Values != 120 || mark(crashed, "session/1/x") != "119" {
		t.Errorf("after a crash %d values wait, the mark is %s", s.Values, mark(crashed, "session/1/x"))
	}
	q = crashed
	for seen := 0; seen < 120; {
		b, values := next(t, q, 10)
		for _, v := range values {
			if v != fmt.Sprint(seen) {
				t.Fatalf("found %s, want %d", v, seen)
			}
			seen++
		}
		if err := q.Acknowledge(b); err != nil {
			t.Fatal(err)
		}
	}
	if s := q.State(); s.Values != 0 || s.OldestAt != 0 || s.Bytes > 4000 {
		t.Errorf("when all is sent the queue has %+v", s)
	}
}

// Marks outlive the segments that they came in, and ids never come again.
func TestQueue_marksAndIDsSurvive(t *testing.T) {
	fs := vfs.NewMem()
	q := openQueue(t, fs, 1<<20)
	last := uint64(0)
	b := batch(1, 1)
	b.Marks = append(b.Marks, model.Mark{Key: "session/2/y", Value: "7", At: 1})
	add(t, q, b)
	for n := range uint64(100) {
		add(t, q, batch(2, n, n))
		all, _ := next(t, q, 1000)
		if last >= all.Rows[0].ID {
			t.Fatalf("id %d came again", all.Rows[0].ID)
		}
		last = all.Rows[len(all.Rows)-1].ID
		if err := q.Acknowledge(all); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		fs = crash(fs)
		q = openQueue(t, fs, 1<<20)
		if got := mark(q, "session/2/y"); got != "7" {
			t.Errorf("after a crash the old mark is %q", got)
		}
		add(t, q, batch(3, 5))
		if all, values := next(t, q, 10); len(values) != 1 || all.Rows[0].ID <= last {
			t.Errorf("after a crash the next value is %v with id %d, want one value with an id above %d", values, all.Rows[0].ID, last)
		} else if err := q.Acknowledge(all); err != nil {
			t.Fatal(err)
		}
	}
}

func TestQueue_rows(t *testing.T) {
	q := openQueue(t, vfs.NewMem(), 1<<20)
	b := &model.Batch{ArrivedAt: 5}
	b.AppendFloat(1, 1, 0.1)
	b.AppendUint(2, 2, math.MaxUint64)
	b.AppendString(3, 3, model.Text, "")
	b.AppendLog(4, 4, model.Log{At: 44, Severity: 2, EventID: 3, Source: "s", Text: "line"})
	b.AppendString(5, 5, model.Unsupported, "no such thing")
	b.AppendString(6, 6, model.Binary, "\x00")
	b.AppendString(9, 9, model.Binary, "[]")
	b.Marks = []model.Mark{{Key: "log/4", Value: "100 7", At: 8}, {Key: "log/x", Value: "1 1"}}
	add(t, q, b)
	got, err := q.Next(t.Context(), 100, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	id := got.Rows[0].ID
	want := []Row{
		{ID: id, Item: 1, At: 1, Value: []byte("0.1")},
		{ID: id + 1, Item: 2, At: 2, Value: []byte("18446744073709551615")},
		{ID: id + 2, Item: 3, At: 3, Value: []byte{}},
		{ID: id + 3, Item: 4, At: 4, Value: []byte("line"), Log: &model.Log{At: 44, Severity: 2, EventID: 3, Source: "s", Text: "line"}},
		{ID: id + 4, Item: 5, At: 5, Value: []byte("no such thing"), Unsupported: true},
		{ID: id + 5, Item: 6, At: 6, Value: []byte("AA==")},
		{ID: id + 6, Item: 9, At: 9, Value: []byte("[]")},
		{ID: id + 7, Item: 4, At: 8, Position: &Position{100, 7}},
	}
	if !reflect.DeepEqual(got.Rows, want) {
		t.Errorf("rows\n%+v, want\n%+v", got.Rows, want)
	}
}

// A full queue drops the oldest values, says how many, and keeps the newest.
func TestQueue_full(t *testing.T) {
	q := openQueue(t, vfs.NewMem(), 10_000)
	for n := range uint64(500) {
		add(t, q, batch(int64(n), n))
	}
	b, values := next(t, q, 10_000)
	s := q.State()
	if s.Bytes > 12_000 || s.Values != len(values) || s.Dropped.Values+len(values) != 500 || !strings.Contains(s.Dropped.Reason, "full") {
		t.Errorf("%d values are left in %+v", len(values), s)
	}
	if values[0] != fmt.Sprint(s.Dropped.Values) || values[len(values)-1] != "499" || s.OldestAt != int64(s.Dropped.Values) {
		t.Errorf("values %v are left of %+v", values, s)
	}
	// What is dropped while it is being sent does not bring the position back.
	for n := range uint64(500) {
		add(t, q, batch(int64(500+n), 500+n))
	}
	if err := q.Acknowledge(b); err != nil {
		t.Fatal(err)
	}
	if _, values := next(t, q, 1); values[0] == b.Rows[0].string() {
		t.Errorf("value %s came again", values[0])
	}
}

func (r *Row) string() string { return string(r.Value) }

func TestQueue_Age(t *testing.T) {
	q := openQueue(t, vfs.NewMem(), 1<<20)
	for n := range uint64(500) {
		add(t, q, batch(int64(10*n), n))
	}
	if err := q.Age(1000); err != nil || q.State().Dropped.Values != 0 {
		t.Fatalf("%v, %+v", err, q.State())
	}
	if err := q.Age(3000); err != nil {
		t.Fatal(err)
	}
	s := q.State()
	// Values that came before 2000 are too old; whole segments go.
	if s.Dropped.Values == 0 || s.OldestAt > 2000 || s.OldestAt < 1000 || s.Dropped.Values+s.Values != 500 {
		t.Errorf("%+v", s)
	}
}

// A damaged segment costs its rest, and no more.
func TestQueue_damage(t *testing.T) {
	fs := vfs.NewMem()
	q := openQueue(t, fs, 1<<20)
	for n := range uint64(200) {
		add(t, q, batch(int64(n), n))
	}
	list := q.log.Segments()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := fs.OpenReadWrite(fmt.Sprintf("/proxy/values/%016x.spool", uint64(list[1].From)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("damage"), 500); err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	q = openQueue(t, fs, 1<<20)
	var got []string
	for {
		b, values := next(t, q, 50)
		got = append(got, values...)
		if err := q.Acknowledge(b); err != nil {
			t.Fatal(err)
		}
		if !b.More {
			break
		}
	}
	if len(got) >= 200 || len(got) < 150 || got[0] != "0" || got[len(got)-1] != "199" || q.State().Values != 0 {
		t.Errorf("%d values are left: %v; %+v", len(got), got, q.State())
	}
}

// A batch that could not be written is as it was, and can be tried again.
func TestQueue_failures(t *testing.T) {
	failing := vfs.NewFailing(vfs.NewMem())
	q := openQueue(t, failing, 1<<20)
	add(t, q, batch(1, 1))
	for _, op := range []vfs.Op{vfs.OpWrite, vfs.OpSync} {
		failing.SetRule(func(did vfs.Op, name string, _ int) error {
			if did == op && strings.HasSuffix(name, ".spool") {
				return syscall.ENOSPC
			}
			return nil
		})
		b := &model.Batch{ArrivedAt: 2}
		b.AppendString(5, 5, model.Unsupported, "reason")
		if err := q.Append(b); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%v: %v", op, err)
		}
		failing.SetRule(nil)
		if err := q.Append(b); err != nil {
			t.Errorf("%v: %v", op, err)
		}
	}
	var values []string
	for more := true; more; {
		b, some := next(t, q, 10)
		more, values = b.More, append(values, some...)
		for _, r := range b.Rows {
			if r.Unsupported != (string(r.Value) == "reason") {
				t.Errorf("row %+v", r)
			}
		}
		if err := q.Acknowledge(b); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"1", "reason", "reason"}; !reflect.DeepEqual(values, want) || q.damaged.Get() != 0 {
		t.Errorf("values %v, want %v; %d segments count as damaged", values, want, q.damaged.Get())
	}
}

// Files that are damaged are begun anew.
func TestQueue_damagedFiles(t *testing.T) {
	fs := vfs.NewMem()
	q := openQueue(t, fs, 1<<20)
	add(t, q, batch(1, 1))
	b, _ := next(t, q, 10)
	if err := errors.Join(q.Acknowledge(b), q.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/proxy/position", "/proxy/marks"} {
		file, err := fs.OpenReadWrite(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt([]byte("x"), 12); err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
	}
	q = openQueue(t, fs, 1<<20)
	if after, _ := next(t, q, 10); !reflect.DeepEqual(after.Rows, b.Rows) {
		t.Errorf("without a position %+v is sent, want %+v again", after.Rows, b.Rows)
	}
	if mark(q, "session/1/x") != "1" {
		t.Error("the mark is lost though its record is there")
	}
}

func TestOpen_limit(t *testing.T) {
	if _, err := Open(context.Background(), Options{Folder: "/proxy", FS: vfs.NewMem(), LimitBytes: 1}); err == nil {
		t.Error("a queue of one byte opened")
	}
}

func FuzzDecodeMarks(f *testing.F) {
	f.Add([]byte{})
	f.Add(append(make([]byte, 8), 1, 'k', 1, 'v'))
	f.Add(append(make([]byte, 8), append([]byte{255}, make([]byte, 300)...)...))
	f.Fuzz(func(t *testing.T, p []byte) {
		list, err := decodeMarks(p)
		if err == nil && len(p) > 0 && len(list) == 0 {
			t.Error("no mark and no error")
		}
	})
}

// TestQueue_rotsAtItsEnd: the newest record goes bad while the queue is open. It is left out, and nothing seems to wait for ever.
func TestQueue_rotsAtItsEnd(t *testing.T) {
	fs := vfs.NewMem()
	q := openQueue(t, fs, 1<<20)
	add(t, q, batch(1, 1))
	add(t, q, batch(2, 2))
	list := q.log.Segments()
	file, err := fs.OpenReadWrite(fmt.Sprintf("/proxy/values/%016x.spool", uint64(list[0].From)))
	if err != nil {
		t.Fatal(err)
	}
	size, _ := file.Size()
	if _, err := file.WriteAt([]byte{0xff}, size-3); err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	b, got := next(t, q, 50)
	if err := q.Acknowledge(b); err != nil || len(got) != 1 || b.More {
		t.Errorf("%v, more %v, %v", got, b.More, err)
	}
	if s := q.State(); s.Values != 0 || q.damaged.Get() != 1 {
		t.Errorf("%+v, %d damaged places", s, q.damaged.Get())
	}
	add(t, q, batch(3, 3))
	if _, got := next(t, q, 50); len(got) != 1 || got[0] != "3" {
		t.Errorf("after one more: %v", got)
	}
}
