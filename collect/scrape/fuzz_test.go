package scrape

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"tidemark/collect/series"
	"tidemark/config"
	"tidemark/model"
)

// taken is a sink and the items for it: everything is stored at once.
type taken struct {
	next model.ItemID
	rows int
	// all are the values, if they are kept.
	keep bool
	all  []string
}

func (s *taken) Put(_ context.Context, b *model.Batch) error {
	s.rows += b.Len()
	for i := range b.Len() {
		if !s.keep {
			break
		}
		s.all = append(s.all, fmt.Sprintf("%d %d %x", b.Items[i], b.At[i], b.Bits[i]))
	}
	b.Finish(nil)
	b.Free()
	return nil
}

func (s *taken) Hosts(_ context.Context, hosts []series.Host) ([]model.HostID, error) {
	ids := make([]model.HostID, len(hosts))
	for i := range ids {
		ids[i] = 1
	}
	return ids, nil
}

func (s *taken) Declare(_ context.Context, _ model.HostID, list []series.Declaration) ([]model.ItemID, error) {
	ids := make([]model.ItemID, len(list))
	for i := range ids {
		s.next++
		ids[i] = s.next
	}
	return ids, nil
}

func (s *taken) Takes(id model.ItemID) (there, enabled bool) { return id > 0 && id <= s.next, true }

func (s *taken) Each(func(string, model.ItemID)) {}

func targetFor(t testing.TB, sink *taken) *target {
	t.Helper()
	return targetWith(t, sink, "")
}

// targetWith has more settings of the job, each with a comma behind.
func targetWith(t testing.TB, sink *taken, more string) *target {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte("scrape: {scrape_configs: [{"+more+"job_name: j, static_configs: [{targets: [a]}]}]}"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Jobs: c.Scrape.Jobs, Table: series.New(series.Options{Items: sink, Sink: sink})})
	if err != nil {
		t.Fatal(err)
	}
	tg, err := s.jobs[0].newTarget("static", "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

// FuzzTake: as many values are stored as were counted, twice the same answer declares nothing new, and an empty one ends every series.
func FuzzTake(f *testing.F) {
	f.Add([]byte("# HELP a h\n# TYPE a counter\na{b=\"c\"} 1\nd 2 3\n"), "text/plain")
	f.Add([]byte("# TYPE a counter\na_total 1.0 2.0 # {x=\"y\"} 3\n# EOF\n"), "application/openmetrics-text; version=1.0.0")
	f.Add(exported(f, nil), protobuf)
	f.Add([]byte("{\"a b\",c=\"d\"} NaN\n"), "text/plain; version=1.0.0; escaping=allow-utf-8")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		sink := &taken{}
		tg := targetWith(t, sink, "scrape_native_histograms: true, ")
		take := func(body []byte, contentType string) (counts, bool) {
			w := tg.job.s.write()
			c, err := tg.take(t.Context(), w, body, contentType, 1e18)
			if err != nil {
				w.Drop()
				return c, false
			}
			if err := w.Store(t.Context()); err != nil {
				t.Fatal(err)
			}
			return c, true
		}
		c, ok := take(body, contentType)
		if !ok {
			if len(tg.cache.entries) != 0 {
				t.Errorf("%d series are left of an answer that does not count", len(tg.cache.entries))
			}
			return
		}
		if sink.rows > c.kept {
			t.Errorf("%d values of %d samples", sink.rows, c.kept)
		}
		declared := sink.next
		if again, ok := take(body, contentType); !ok || again.kept != c.kept || again.added != 0 || again.stale != 0 || sink.next != declared {
			t.Errorf("the same answer again: %+v after %+v, %d items after %d", again, c, sink.next, declared)
		}
		if end, ok := take(nil, "text/plain"); !ok || len(tg.cache.entries) != 0 || end.stale > c.kept {
			t.Errorf("an empty answer: %+v, %d series left", end, len(tg.cache.entries))
		}
	})
}

// sameAsParsed has two targets take answers, one of which parses each, and compares what they store and count. It returns how many answers were
// not parsed by the other.
func sameAsParsed(t *testing.T, contentType string, bodies ...[]byte) int {
	t.Helper()
	fast, simple := &taken{keep: true}, &taken{keep: true}
	a, b := targetFor(t, fast), targetFor(t, simple)
	saved := 0
	for n, body := range bodies {
		take := func(tg *target) (counts, string) {
			w := tg.job.s.write()
			c, err := tg.take(t.Context(), w, body, contentType, int64(1e18+n))
			if err != nil {
				w.Drop()
				return c, err.Error()
			}
			if err := w.Store(t.Context()); err != nil {
				t.Fatal(err)
			}
			return c, ""
		}
		b.cache.form.order = nil
		before := a.cache.form.order
		gotCounts, got := take(a)
		if wantCounts, want := take(b); gotCounts != wantCounts || got != want {
			t.Errorf("answer %d: %+v %s, want %+v %s", n, gotCounts, got, wantCounts, want)
		}
		slices.Sort(fast.all) // Stale markers come in any order.
		slices.Sort(simple.all)
		if !slices.Equal(fast.all, simple.all) {
			t.Errorf("answer %d: %q, want %q", n, fast.all, simple.all)
		}
		if now := a.cache.form.order; len(before) > 0 && len(now) > 0 && &before[0] == &now[0] {
			saved++
		}
		fast.all, simple.all = nil, nil
	}
	return saved
}

func TestTake_again(t *testing.T) {
	f := func(want int, contentType string, bodies ...string) {
		t.Helper()
		var list [][]byte
		for _, b := range bodies {
			list = append(list, []byte(b))
		}
		if got := sameAsParsed(t, contentType, list...); got != want {
			t.Errorf("%d of %q were not parsed, want %d", got, bodies, want)
		}
	}
	const plain = "text/plain; version=0.0.4"
	f(1, plain, "# HELP a h\n# TYPE a counter\na{b=\"c d\"} 1\ne 2\n", "# HELP a h\n# TYPE a counter\na{b=\"c d\"} 1.5e3\ne NaN\n", "# HELP a h\n# TYPE a counter\na{b=\"c d\"} +Inf\ne -0\n")
	f(0, plain, "a 1\nb 2\n", "a 1\n", "a 1\nc 2\n", "b 1\na 2\n", "a 1\nb 2\nc 3\n")
	f(1, plain, "a 1\na 2\nb 3\n", "a 4\na 5\nb 6\n", "a 7\na 8\nb 9\n")
	f(0, plain, "a 1 1000\n", "a 1 2000\n", "a 1 1\n")
	f(0, plain, "a 1\n", "a x\n", "a 1_0\n", "a 0x1p3\n", "a\n", "a 2")
	f(2, plain, "a 1\n", "a x\n", "a 2\n", "a 3\n", "a 4\n")
	f(0, plain, "a\t1\n", "a\t2\n")
	f(0, plain, "# TYPE a counter\na 1\n", "# TYPE a gauge\na 2\n", "# TYPE a counte\na 3\n")
	f(0, "application/openmetrics-text; version=1.0.0", "a 1\n# EOF\n", "a 2\n# EOF\n")
}

// FuzzTake_again: an answer that looks like the one before is taken as if it was parsed.
func FuzzTake_again(f *testing.F) {
	f.Add([]byte("# HELP a h\na{b=\"c\"} 1\nd 2\n"), []byte("# HELP a h\na{b=\"c\"} 7\nd NaN\n"), "text/plain")
	f.Add([]byte("a 1 5\n"), []byte("a 2 6\n"), "text/plain")
	f.Fuzz(func(t *testing.T, one, two []byte, contentType string) { sameAsParsed(t, contentType, one, two, one) })
}

// Benchmark of one scrape of 1,000 series that are known.
func BenchmarkTake(b *testing.B) {
	sink := &taken{}
	tg := targetFor(b, sink)
	var body []byte
	for i := range 1000 {
		body = append(body, "node_cpu_seconds_total{cpu=\""+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676))+"\",mode=\"idle\"} 12345.678\n"...)
	}
	b.ReportAllocs()
	for b.Loop() {
		w := tg.job.s.write()
		if _, err := tg.take(b.Context(), w, body, "text/plain", 1e18); err != nil {
			b.Fatal(err)
		}
		if err := w.Store(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
