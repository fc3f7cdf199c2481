package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"tidemark/confdb"
)

// runForTest runs a server over a folder until the test ends or stop is called, and returns the address of its page.
func runForTest(t *testing.T, o Options) (s *Server, url string, stop func()) {
	t.Helper()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	o.HTTP, o.Trapper, o.Version = listen(), listen(), "test"
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return s, "http://" + o.HTTP.Addr().String(), stop
}

func write(t *testing.T, to, contentType string, message []byte) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to+"/api/v1/write", bytes.NewReader(snappy.Encode(nil, message)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Content-Encoding", "snappy")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text), a.Header
}

// instant answers an instant query as "{labels} value" lines, sorted.
func instant(t *testing.T, at, query string, when time.Time) []string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/api/v1/query?query="+url.QueryEscape(query)+"&time="+fmt.Sprintf("%.3f", float64(when.UnixMilli())/1000), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.NewDecoder(a.Body).Decode(&answer); err != nil || answer.Error != "" {
		t.Fatal(err, answer.Error)
	}
	var out []string
	for _, r := range answer.Data.Result {
		labels, err := json.Marshal(r.Metric)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %v", labels, r.Value[1]))
	}
	slices.Sort(out)
	return out
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func labelsOf(pairs ...string) []prompb.Label {
	var out []prompb.Label
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, prompb.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	return out
}

func first(t *testing.T, r prompb.WriteRequest) []byte {
	t.Helper()
	b, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	v1Type = "application/x-protobuf"
	v2Type = "application/x-protobuf;proto=io.prometheus.write.v2.Request"
)

func TestRemoteWrite(t *testing.T) {
	dir := t.TempDir()
	s, at, stop := runForTest(t, Options{Data: dir, Logger: slog.New(slog.DiscardHandler)})
	now := time.Now().Truncate(time.Second)
	message := func(v float64, when time.Time) []byte {
		return first(t, prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
			{Labels: labelsOf("__name__", "avail", "host", "own", "instance", "a:9100", "job", "node", "key", "k", "le", ""), Samples: []prompb.Sample{{Value: v, Timestamp: when.UnixMilli()}}},
			{Labels: labelsOf("__name__", "size", "host", "own", "instance", "a:9100", "job", "node", "key", "k"), Samples: []prompb.Sample{{Value: 8, Timestamp: when.UnixMilli()}}},
		}})
	}
	for range 2 { // sent again, as after a lost answer: nothing is doubled
		if status, text, _ := write(t, at, v1Type, message(2, now.Add(-30*time.Second))); status != http.StatusNoContent {
			t.Fatal(status, text)
		}
	}
	write(t, at, v1Type, message(4, now))
	expect(t, instant(t, at, `avail`, now), `{"__name__":"avail","host":"own","instance":"a:9100","job":"node","key":"k"} 4`)
	// Series with the labels that they came with can be divided.
	expect(t, instant(t, at, `avail / size`, now), `{"host":"own","instance":"a:9100","job":"node","key":"k"} 0.5`)
	expect(t, instant(t, at, `count_over_time(avail{key="k"}[5m])`, now), `{"host":"own","instance":"a:9100","job":"node","key":"k"} 2`)
	if h, ok := s.cache.Snapshot().Host("a_9100 node"); !ok || h.Name != "a:9100 node" || h.Groups[0] != confdb.MetricsGroup {
		t.Errorf("host %+v, want one for the target", h)
	}

	stale := math.Float64frombits(value.StaleNaN)
	write(t, at, v1Type, message(stale, now.Add(time.Second)))
	expect(t, instant(t, at, `avail`, now.Add(2*time.Second)))
	stop()

	_, at, _ = runForTest(t, Options{Data: dir})
	expect(t, instant(t, at, `avail`, now), `{"__name__":"avail","host":"own","instance":"a:9100","job":"node","key":"k"} 4`)
	expect(t, instant(t, at, `avail`, now.Add(2*time.Second)))
	write(t, at, v1Type, message(6, now.Add(3*time.Second)))
	expect(t, instant(t, at, `sum by (job) (count_over_time(avail[5m]))`, now.Add(4*time.Second)), `{"job":"node"} 3`)
}

// A native histogram is stored as a classic one, out of which quantiles are computed; a slower one beside it with other buckets adds up.
func TestRemoteWrite_nativeHistogram(t *testing.T) {
	_, at, _ := runForTest(t, Options{Data: t.TempDir()})
	now := time.Now().Truncate(time.Second)
	send := func(when time.Time, low, high int64) {
		t.Helper()
		h := prompb.Histogram{
			Count: &prompb.Histogram_CountInt{CountInt: uint64(low + high)}, Sum: 12.5, Schema: 0, Timestamp: when.UnixMilli(), ZeroThreshold: 1e-9,
			PositiveSpans: []prompb.BucketSpan{{Offset: 1, Length: 1}, {Offset: 1, Length: 1}}, PositiveDeltas: []int64{low, high - low},
		}
		body := first(t, prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{Labels: labelsOf("__name__", "took", "job", "web"), Histograms: []prompb.Histogram{h}}}})
		if status, text, _ := write(t, at, v1Type, body); status != http.StatusNoContent {
			t.Fatal(status, text)
		}
	}
	send(now.Add(-60*time.Second), 0, 0)
	send(now, 30, 90)
	expect(t, instant(t, at, `took_count`, now), `{"__name__":"took_count","job":"web"} 120`)
	expect(t, instant(t, at, `took_sum`, now), `{"__name__":"took_sum","job":"web"} 12.5`)
	expect(t, instant(t, at, `took_bucket{le=~"2|4|8"}`, now), `{"__name__":"took_bucket","job":"web","le":"2"} 30`, `{"__name__":"took_bucket","job":"web","le":"4"} 30`, `{"__name__":"took_bucket","job":"web","le":"8"} 120`)
	// 30 of 120 lie between 1 and 2, 90 between 4 and 8: the median is a third into those.
	expect(t, instant(t, at, `round(histogram_quantile(0.5, sum by (le) (took_bucket)), 0.001)`, now), `{} 5.333`)
	expect(t, instant(t, at, `round(histogram_quantile(0.125, sum by (le) (increase(took_bucket[2m]))), 0.001)`, now), `{} 1.5`)
	expect(t, instant(t, at, `took`, now))
}

func TestRemoteWrite_partial(t *testing.T) {
	_, at, _ := runForTest(t, Options{Data: t.TempDir()})
	now := time.Now()
	r := writev2.Request{
		Symbols: []string{"", "__name__", "good", "bad\xff", "job", "x", "Help."},
		Timeseries: []writev2.TimeSeries{
			{LabelsRefs: []uint32{1, 2, 4, 5}, Samples: []writev2.Sample{{Value: 1, Timestamp: now.UnixMilli()}}, Metadata: writev2.Metadata{HelpRef: 6}},
			{LabelsRefs: []uint32{1, 3}, Samples: []writev2.Sample{{Value: 1, Timestamp: now.UnixMilli()}}},
			{LabelsRefs: []uint32{1, 2}, Histograms: []writev2.Histogram{{Timestamp: now.UnixMilli(), PositiveDeltas: []int64{1}}}},
		},
	}
	body, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	status, text, header := write(t, at, v2Type, body)
	if status != http.StatusBadRequest || !strings.Contains(text, "1 samples are stored; 1 samples refused: invalid labels") || !strings.Contains(text, "1 native histograms refused") {
		t.Errorf("status %d: %s", status, text)
	}
	if header.Get("X-Prometheus-Remote-Write-Samples-Written") != "1" || header.Get("X-Prometheus-Remote-Write-Histograms-Written") != "0" {
		t.Errorf("headers %v", header)
	}
	expect(t, instant(t, at, `good`, now.Add(time.Second)), `{"__name__":"good","job":"x"} 1`)
	for name, c := range map[string]struct {
		contentType string
		body        []byte
		status      int
	}{
		"type":  {"text/plain", nil, http.StatusUnsupportedMediaType},
		"proto": {"application/x-protobuf;proto=other", nil, http.StatusUnsupportedMediaType},
		"bytes": {v1Type, []byte{0x0a, 0x05}, http.StatusBadRequest},
	} {
		if status, text, _ := write(t, at, c.contentType, c.body); status != c.status {
			t.Errorf("%s: status %d (%s), want %d", name, status, text, c.status)
		}
	}
	bomb, err := http.Post(at+"/api/v1/write", v1Type, bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}))
	if err != nil {
		t.Fatal(err)
	}
	bomb.Body.Close()
	if bomb.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d for a body that says it has 4 GiB", bomb.StatusCode)
	}
}

// Hosts of targets whose series are gone make room.
func TestSeries_expire(t *testing.T) {
	s, at, _ := runForTest(t, Options{Data: t.TempDir()})
	old := time.Now()
	write(t, at, v1Type, first(t, prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
		{Labels: labelsOf("__name__", "up", "instance", "pod-1", "job", "pods"), Samples: []prompb.Sample{{Value: 1, Timestamp: old.UnixMilli()}}},
	}}))
	if len(s.seriesItems.metricHosts()) != 1 || s.series.Len() != 1 {
		t.Fatal("expected a host and a series")
	}
	if _, err := s.ExpireItems(t.Context(), old.Add(8*24*time.Hour).UnixNano()); err != nil {
		t.Fatal(err)
	}
	if hosts := s.seriesItems.metricHosts(); len(hosts) != 0 || s.series.Len() != 0 {
		t.Errorf("%d hosts and %d series are left after 8 days without a value", len(hosts), s.series.Len())
	}
}
