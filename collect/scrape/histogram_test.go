package scrape

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tidemark/collect/series"
	"tidemark/model"
)

const protobuf = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

// exporter is a program with client_golang's own exposition: a histogram that is native, or native and classic, and a counter.
type exporter struct {
	*httptest.Server
	times *prometheus.HistogramVec
	kinds []string
}

func startExporter(t testing.TB, classic []float64) *exporter {
	t.Helper()
	registry := prometheus.NewRegistry()
	e := &exporter{times: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "request_seconds", Help: "How long requests take.", NativeHistogramBucketFactor: 1.1, Buckets: classic, NativeHistogramZeroThreshold: 1e-6,
	}, []string{"path"})}
	requests := prometheus.NewCounter(prometheus.CounterOpts{Name: "requests_total", Help: "Requests."})
	registry.MustRegister(e.times, requests)
	requests.Add(7)
	for n := range 200 {
		e.times.WithLabelValues("/").Observe(float64(n) / 100)
	}
	e.times.WithLabelValues("/a").Observe(-3)
	e.times.WithLabelValues("/a").Observe(0)
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		e.kinds = append(e.kinds, w.Header().Get("Content-Type"))
	}))
	t.Cleanup(e.Close)
	return e
}

// exported is what the program says in protobuf.
func exported(t testing.TB, classic []float64) []byte {
	t.Helper()
	e := startExporter(t, classic)
	r, err := http.NewRequest(http.MethodGet, e.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", acceptNative)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/vnd.google.protobuf") {
		t.Fatalf("%s, %v", a.Header.Get("Content-Type"), err)
	}
	return body
}

// named is a sink that knows series by their labels.
type named struct {
	taken
	byName map[string]model.ItemID
	values map[model.ItemID]float64
}

func (s *named) Declare(_ context.Context, _ model.HostID, list []series.Declaration) ([]model.ItemID, error) {
	ids := make([]model.ItemID, len(list))
	for i := range list {
		s.next++
		ids[i] = s.next
		s.byName[fmt.Sprint(list[i].Metric, list[i].Labels)] = s.next
	}
	return ids, nil
}

func (s *named) Put(_ context.Context, b *model.Batch) error {
	for i := range b.Len() {
		s.values[b.Items[i]] = math.Float64frombits(b.Bits[i])
	}
	b.Finish(nil)
	b.Free()
	return nil
}

// of are the values of series whose labels hold all of these texts.
func (s *named) of(texts ...string) []float64 {
	var list []float64
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(name, text) }) {
			list = append(list, s.values[s.byName[name]])
		}
	}
	return list
}

func scrapeOnce(t *testing.T, e *exporter, more string) (*named, counts) {
	t.Helper()
	sink := &named{byName: map[string]model.ItemID{}, values: map[model.ItemID]float64{}}
	tg := targetWith(t, &sink.taken, more)
	tg.job.s.o.Table = series.New(series.Options{Items: sink, Sink: sink})
	tg, err := tg.job.newTarget("static", e.Listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var c counts
	for range 2 { // the second time everything is known
		body, kind, err := tg.ask(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		w := tg.job.s.o.Table.WriteWhole(sink)
		if c, err = tg.take(t.Context(), w, body, kind, 1e18); err != nil {
			t.Fatal(err)
		}
		if err := w.Store(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return sink, c
}

// A program with client_golang's histograms is asked in protobuf, and its native histogram is kept with the counts of its buckets.
func TestNativeHistogram(t *testing.T) {
	e := startExporter(t, nil)
	s, c := scrapeOnce(t, e, "scrape_native_histograms: true, ")
	if !strings.HasPrefix(e.kinds[0], "application/vnd.google.protobuf") || c.added != 0 || c.kept != len(s.byName) || c.stale != 0 {
		t.Errorf("%s, %+v, %d series", e.kinds[0], c, len(s.byName))
	}
	f := func(want float64, texts ...string) {
		t.Helper()
		if got := s.of(texts...); len(got) != 1 || math.Abs(got[0]-want) > 1e-9 {
			t.Errorf("%q: %v, want %v", texts, got, want)
		}
	}
	f(7, "requests_total")
	f(200, "request_seconds_count", "path /}")
	f(199, "request_seconds_sum", "path /}")
	f(200, "request_seconds_bucket", "path /}", "le +Inf")
	f(101, "request_seconds_bucket", "path /}", "{le 1}")
	f(2, "request_seconds_bucket", "path /a", "le +Inf")
	if n := len(s.of("request_seconds_bucket", "path /}")); n < 40 {
		t.Errorf("%d buckets, expected those of a factor of 1.1", n)
	}
	coarse, _ := scrapeOnce(t, e, "scrape_native_histograms: true, native_histogram_bucket_limit: 10, ")
	if n := len(coarse.of("request_seconds_bucket", "path /}")); n < 5 || n > 24 {
		t.Errorf("%d buckets with a limit of 10", n)
	}
}

// Without the setting the text format is asked for, where the histogram has its classic buckets only; with both settings it has both.
func TestNativeHistogram_classic(t *testing.T) {
	e := startExporter(t, []float64{0.5, 1.5})
	text, _ := scrapeOnce(t, e, "")
	if strings.Contains(e.kinds[0], "protobuf") || len(text.of("request_seconds_bucket", "path /}")) != 3 {
		t.Errorf("%s: %d buckets", e.kinds[0], len(text.of("request_seconds_bucket", "path /}")))
	}
	native, _ := scrapeOnce(t, e, "scrape_native_histograms: true, ")
	both, _ := scrapeOnce(t, e, "scrape_native_histograms: true, always_scrape_classic_histograms: true, ")
	if got := both.of("request_seconds_bucket", "path /}", "le 0.5}"); len(native.of("request_seconds_bucket", "path /}", "le 1.5}")) != 0 || len(both.of("request_seconds_bucket", "path /}", "le 1.5}")) != 1 || len(got) != 1 || got[0] != 51 {
		t.Errorf("classic buckets beside native ones: %v", got)
	}
	if got := both.of("request_seconds_count", "path /}"); len(got) != 1 || got[0] != 200 {
		t.Errorf("counts %v", got)
	}
}
