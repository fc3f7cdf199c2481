package scrape

import (
	"context"
	"testing"

	"tidemark/collect/series"
	"tidemark/config"
	"tidemark/model"
)

// taken is a sink and the items for it: everything is stored at once.
type taken struct {
	next model.ItemID
	rows int
}

func (s *taken) Put(_ context.Context, b *model.Batch) error {
	s.rows += b.Len()
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
	c, err := config.Parse("test.yaml", []byte("scrape: {scrape_configs: [{job_name: j, static_configs: [{targets: [a]}]}]}"))
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
	f.Add([]byte("{\"a b\",c=\"d\"} NaN\n"), "text/plain; version=1.0.0; escaping=allow-utf-8")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		sink := &taken{}
		tg := targetFor(t, sink)
		take := func(body []byte, contentType string) (counts, bool) {
			w := tg.job.s.o.Table.WriteWhole()
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
		w := tg.job.s.o.Table.WriteWhole()
		if _, err := tg.take(b.Context(), w, body, "text/plain", 1e18); err != nil {
			b.Fatal(err)
		}
		if err := w.Store(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
