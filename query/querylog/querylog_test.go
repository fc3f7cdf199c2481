package querylog

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/model"
)

func newLog(dir string, limit int64) (*Log, *metrics.Set) {
	set := metrics.NewSet()
	return New(dir, limit, set, slog.New(slog.DiscardHandler)), set
}

// finish writes what waits, as the end of a server does.
func finish(t *testing.T, l *Log) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestLog(t *testing.T) {
	dir := t.TempDir()
	l, _ := newLog(dir, 1<<20)
	l.Put([]model.ItemID{5, 6, 7, 3}, model.TimeRange{From: 10, To: 20}, 0)
	l.Put([]model.ItemID{1}, model.TimeRange{From: math.MinInt64, To: math.MaxInt64}, 3)
	finish(t, l)
	l, _ = newLog(dir, 1<<20) // after a restart
	many := make([]model.ItemID, 200)
	for i := range many {
		many[i] = model.ItemID(2*i + 1)
	}
	l.Put(many, model.TimeRange{From: 1, To: 2}, 0)
	finish(t, l)
	got, err := Read(filepath.Join(dir, FileName))
	if err != nil || len(got) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if e := got[0]; !slices.Equal(e.Items, []model.ItemID{5, 6, 7, 3}) || e.Range != (model.TimeRange{From: 10, To: 20}) || e.Newest != 0 {
		t.Errorf("the first is %+v", e)
	}
	if e := got[1]; e.Range.From != math.MinInt64 || e.Range.To != math.MaxInt64 || e.Newest != 3 {
		t.Errorf("the second is %+v", e)
	}
	if e := got[2]; !slices.Equal(e.Items, many[:maxRuns]) {
		t.Errorf("the third has %d items, want the first %d", len(e.Items), maxRuns)
	}
	if info, err := os.Stat(filepath.Join(dir, FileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want a file for its owner alone", info.Mode(), err)
	}
}

// TestLog_bounds puts more than the log takes, and more than may wait.
func TestLog_bounds(t *testing.T) {
	dir := t.TempDir()
	l, set := newLog(dir, MinBytes)
	put := func(from, n int) {
		for i := range n {
			l.Put([]model.ItemID{model.ItemID(from + i)}, model.TimeRange{From: 1, To: 2}, 0)
		}
		finish(t, l)
	}
	for k := range 50 {
		put(k*100, 100)
	}
	size := int64(0)
	for _, suffix := range []string{"", olderSuffix} {
		info, err := os.Stat(filepath.Join(dir, FileName+suffix))
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > MinBytes || size < MinBytes/3 {
		t.Errorf("the files take %d of %d bytes", size, MinBytes)
	}
	got, err := Read(filepath.Join(dir, FileName))
	if err != nil || len(got) < 200 || got[len(got)-1].Items[0] != 4999 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	for i := 1; i < len(got); i++ {
		if got[i].Items[0] != got[i-1].Items[0]+1 {
			t.Fatalf("entry %d follows %d", got[i].Items[0], got[i-1].Items[0])
		}
	}
	put(0, 10_000)
	var text strings.Builder
	set.WritePrometheus(&text)
	if strings.Contains(text.String(), "querylog_dropped_entries_total 0\n") || !strings.Contains(text.String(), "querylog_waiting_bytes 0\n") {
		t.Errorf("after too many at once:\n%s", text.String())
	}
}

func TestRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	f := func(text string, entries int, want string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Read(name)
		if want == "" && (err != nil || len(got) != entries) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.80q: %d entries, %v; want %d, %q", text, len(got), err, entries, want)
		}
	}
	const good = `{"at":1,"from":1,"to":2,"items":[[1,3]]}` + "\n"
	f("", 0, "")
	f(good+good, 2, "")
	f(good+`{"at":1,"fr`, 1, "") // a crash cut it
	f(good+`{"at":1,"fr`+"\n"+good, 0, "line 2")
	f(`{"at":1,"from":2,"to":2,"items":[[1,3]]}`+"\n"+good, 0, "line 1")
	f(`{"at":1,"from":1,"to":2,"items":[[3,1]]}`+"\n"+good, 0, "items 3 to 1")
	f(`{"at":1,"from":1,"to":2,"items":[[0,18446744073709551615]]}`+"\n"+good, 0, "at most")
	f(`{"at":1,"from":1,"to":2,"items":[[1,60000],[1,60000]]}`+"\n"+good, 0, "at most")
	f(`{"at":1,"from":1,"to":2,"items":[],"value":3}`+"\n"+good, 0, "unknown field")
	f(strings.Repeat("x", maxLine+1), 0, "lines of at most")
	if _, err := Read(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a log that is not there: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"at":1,"from":1,"to":2,"newest":3,"items":[[1,3],[9,9]]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := parse(text)
		if err == nil && (len(e.Items) == 0 || len(e.Items) > maxItems || e.Range.From >= e.Range.To || e.Newest < 0) {
			t.Errorf("%q is read as %+v", text, e)
		}
	})
}
