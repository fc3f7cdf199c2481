package remotewrite_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"tidemark/wire/nativehistogram"
	"tidemark/wire/remotewrite"
)

// collector writes down what it receives.
type collector struct {
	lines []string
	name  string
}

func (c *collector) Series(s *remotewrite.Series) error {
	var b strings.Builder
	for _, l := range s.Labels {
		fmt.Fprintf(&b, "%s=%q ", l.Name, l.Value)
	}
	c.name = fmt.Sprintf("%shelp=%q unit=%q histograms=%d exemplars=%d", b.String(), s.Help, s.Unit, s.Histograms, s.Exemplars)
	c.lines = append(c.lines, c.name)
	return nil
}

func (c *collector) Sample(at int64, value float64) error {
	c.lines = append(c.lines, fmt.Sprintf("%s %d %x", c.name, at, value))
	return nil
}

func (c *collector) Histogram(at int64, h *nativehistogram.Histogram) error {
	c.lines = append(c.lines, fmt.Sprintf("%s %d histogram %+v", c.name, at, *h))
	return nil
}

func firstMessage(t testing.TB) []byte {
	t.Helper()
	body, err := (&prompb.WriteRequest{
		Timeseries: []prompb.TimeSeries{
			{
				Labels:    []prompb.Label{{Name: "__name__", Value: "up"}, {Name: "job", Value: "node"}},
				Samples:   []prompb.Sample{{Value: 1.5, Timestamp: 1000}, {Value: -2, Timestamp: -5}},
				Exemplars: []prompb.Exemplar{{Value: 1}},
			},
			{Labels: []prompb.Label{{Name: "__name__", Value: "h"}}, Histograms: []prompb.Histogram{{
				Count: &prompb.Histogram_CountInt{CountInt: 9}, Sum: 3, Schema: -1, ZeroThreshold: 0.5, ZeroCount: &prompb.Histogram_ZeroCountInt{ZeroCountInt: 2}, Timestamp: 7,
				PositiveSpans: []prompb.BucketSpan{{Offset: -2, Length: 3}}, PositiveDeltas: []int64{4, -3, 2}, NegativeSpans: []prompb.BucketSpan{{Offset: 1, Length: 1}}, NegativeDeltas: []int64{1},
			}}},
		},
		Metadata: []prompb.MetricMetadata{{MetricFamilyName: "up", Help: "Whether it is up."}},
	}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func secondMessage(t testing.TB) []byte {
	t.Helper()
	body, err := (&writev2.Request{
		Symbols: []string{"", "__name__", "up", "job", "node", "Whether it is up.", "bool"},
		Timeseries: []writev2.TimeSeries{{
			LabelsRefs: []uint32{1, 2, 3, 4}, Samples: []writev2.Sample{{Value: 1.5, Timestamp: 1000}},
			Metadata: writev2.Metadata{HelpRef: 5, UnitRef: 6}, Histograms: []writev2.Histogram{{
				Count: &writev2.Histogram_CountFloat{CountFloat: 1.5}, Schema: -53, CustomValues: []float64{1, 2}, PositiveSpans: []writev2.BucketSpan{{Length: 1}}, PositiveCounts: []float64{1.5}, Timestamp: 8,
			}}, Exemplars: []writev2.Exemplar{{}, {}},
		}},
	}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestDecode(t *testing.T) {
	f := func(body []byte, version remotewrite.Version, want ...string) {
		t.Helper()
		c := &collector{}
		if err := remotewrite.Decode(body, version, c); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.lines, "\n"); got != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
	}
	up := `__name__="up" job="node" help="" unit="" histograms=0 exemplars=1`
	f(firstMessage(t), remotewrite.V1, up, up+" 1000 0x1.8p+00", up+" -5 -0x1p+01", `__name__="h" help="" unit="" histograms=1 exemplars=0`,
		`__name__="h" help="" unit="" histograms=1 exemplars=0 7 histogram {Schema:-1 Count:9 Sum:3 ZeroCount:2 ZeroThreshold:0.5 Positive:{Spans:[{Offset:-2 Length:3}] Counts:[4 1 3]} Negative:{Spans:[{Offset:1 Length:1}] Counts:[1]} Custom:[]}`)
	up = `__name__="up" job="node" help="Whether it is up." unit="bool" histograms=1 exemplars=2`
	f(secondMessage(t), remotewrite.V2, up, up+" 1000 0x1.8p+00",
		up+" 8 histogram {Schema:-53 Count:1.5 Sum:0 ZeroCount:0 ZeroThreshold:0 Positive:{Spans:[{Offset:0 Length:1}] Counts:[1.5]} Negative:{Spans:[] Counts:[]} Custom:[1 2]}")
	f(nil, remotewrite.V1)
}

func TestDecode_refuses(t *testing.T) {
	v2 := func(r writev2.Request) []byte {
		body, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	for name, c := range map[string]struct {
		body    []byte
		version remotewrite.Version
	}{
		"cut":           {firstMessage(t)[:30], remotewrite.V1},
		"length bomb":   {[]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f}, remotewrite.V1},
		"no such label": {v2(writev2.Request{Symbols: []string{"", "a"}, Timeseries: []writev2.TimeSeries{{LabelsRefs: []uint32{1, 9}}}}), remotewrite.V2},
		"odd labels":    {v2(writev2.Request{Symbols: []string{"", "a"}, Timeseries: []writev2.TimeSeries{{LabelsRefs: []uint32{1}}}}), remotewrite.V2},
		"first symbol":  {v2(writev2.Request{Symbols: []string{"a"}}), remotewrite.V2},
		"many labels":   {v2(writev2.Request{Symbols: []string{"", "a"}, Timeseries: []writev2.TimeSeries{{LabelsRefs: make([]uint32, 2*remotewrite.MaxLabels+2)}}}), remotewrite.V2},
	} {
		t.Run(name, func(t *testing.T) {
			if err := remotewrite.Decode(c.body, c.version, &collector{}); !errors.Is(err, remotewrite.ErrMessage) {
				t.Errorf("got %v, want ErrMessage", err)
			}
		})
	}
}

// FuzzDecode compares with the official package on what both take: as many series and samples come out.
func FuzzDecode(f *testing.F) {
	f.Add(firstMessage(f), false)
	f.Add(secondMessage(f), true)
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f}, false)
	f.Fuzz(func(t *testing.T, body []byte, second bool) {
		version := remotewrite.V1
		if second {
			version = remotewrite.V2
		}
		c := &collector{}
		err := remotewrite.Decode(body, version, c)
		if err != nil || second {
			return
		}
		var official prompb.WriteRequest
		if official.Unmarshal(body) != nil {
			return
		}
		want := 0
		for _, s := range official.Timeseries {
			want += 1 + len(s.Samples) + len(s.Histograms)
		}
		if len(c.lines) != want {
			t.Errorf("%d series and samples, the official package has %d", len(c.lines), want)
		}
	})
}
