package promql

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"

	"tidemark/model"
	"tidemark/query"
)

const day = 24 * 3600

// agedStore has a gauge and a counter at 10 s for four days, of which the history holds only the last two.
func agedStore() *fakeStore {
	store := newFakeStore()
	gauge := store.item(seriesName("gauge"), model.Float, 10*time.Second)
	counter := store.item(seriesName("counter"), model.Uint, 10*time.Second)
	total := uint64(0)
	for hour := range 4 * 24 {
		g := model.Trend{At: int64(hour) * 3600e9, Count: 360, Min: math.Float64bits(0), Max: math.Float64bits(359), Sum: 359 * 360 / 2, Last: math.Float64bits(359)}
		c := model.Trend{At: g.At, Count: 360, Increase: 3600}
		for i := range int64(360) {
			at := g.At + i*10e9
			total += 10
			if hour == 30 && i == 100 {
				total = 10 // a reset inside an hour that only trends remember
			}
			if hour >= 48 {
				store.add(gauge, at, math.Float64bits(float64(i)))
				store.add(counter, at, total)
			}
		}
		if hour < 95 {
			store.trends[gauge] = append(store.trends[gauge], g)
			store.trends[counter] = append(store.trends[counter], c)
		}
	}
	return store
}

func TestTrends_whereHistoryEnds(t *testing.T) {
	e := newTestEngine(agedStore(), 4*day)
	for _, c := range []struct {
		text string
		at   float64
		want string
	}{
		// Hour 40 has trends only.
		{"gauge", 40*3600 + 1800, `{__name__="gauge"} => 179.5`},
		{"gauge", 60*3600 + 1005, `{__name__="gauge"} => 100`},
		{"max_over_time(gauge[6h])", 40 * 3600, `{} => 359`},
		{"min_over_time(gauge[6h])", 40 * 3600, `{} => 0`},
		{"avg_over_time(gauge[6h])", 40 * 3600, `{} => 179.5`},
		{"sum_over_time(gauge[2h])", 40 * 3600, `{} => 129240`},
		{"count_over_time(gauge[6h])", 40 * 3600, `{} => 2160`},
		{"round(rate(counter[12h]), 0.001)", 36 * 3600, `{} => 1`},
		{"round(increase(counter[12h]))", 36 * 3600, `{} => 43200`},
		// Half of the window is in trends, half in history.
		{"round(rate(counter[12h]), 0.001)", 54 * 3600, `{} => 1`},
		{"max_over_time(gauge[12h])", 54 * 3600, `{} => 359`},
		{"absent(gauge)", 40*3600 + 1800, ``},
	} {
		got, _, _ := strings.Cut(instant(t, e, c.text, c.at), " @")
		if got != c.want {
			t.Errorf("%s at %v: got %q, want %q", c.text, c.at, got, c.want)
		}
	}
}

func TestTrends_areAnnounced(t *testing.T) {
	e := newTestEngine(agedStore(), 4*day)
	for text, want := range map[string]string{
		"max_over_time(gauge[6h])":    "PromQL info: values before 1970-01-02T16:00:00Z are hourly trends",
		"count_over_time(gauge[6h])":  "PromQL info: values before 1970-01-02T16:00:00Z are hourly trends",
		"stddev_over_time(gauge[6h])": "stddev_over_time() cannot be answered from trends",
	} {
		err := e.Query(t.Context(), Request{Text: text, At: time.Unix(40*3600, 0)}, func(r *promql.Result) error {
			if got := fmt.Sprint(r.Warnings.AsErrors()); !strings.Contains(got, want) {
				t.Errorf("%s: warnings %s", text, got)
			}
			return r.Err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestSelect_readsOnlyWhatIsNeeded(t *testing.T) {
	store := newFakeStore()
	id := store.item(seriesName("m"), model.Float, time.Second)
	for i := range int64(10_000) {
		store.add(id, i*1e9, math.Float64bits(1))
	}
	e := newTestEngine(store, 10_000)
	for text, want := range map[string]int{"m": 300, "m offset 1000s": 300, "rate(m[60s])": 60, "count_over_time(m[100s:10s])": 400} {
		store.reads = 0
		instant(t, e, text, 9000)
		if store.reads != want {
			t.Errorf("%s read %d values, want %d", text, store.reads, want)
		}
	}
}

func TestQuery_limits(t *testing.T) {
	store := newFakeStore()
	for s := range 10 {
		id := store.item(seriesName("m", "n", fmt.Sprint(s)), model.Float, time.Second)
		for i := range int64(100) {
			store.add(id, i*1e9, math.Float64bits(1))
		}
	}
	run := func(options query.Options, request Request) error {
		e := New(query.New(store, store, options), Options{MaxSamples: 500})
		return e.Query(t.Context(), request, func(r *promql.Result) error { return r.Err })
	}
	at := time.Unix(99, 0)
	var limit *query.LimitError
	if err := run(query.Options{MaxItems: 9}, Request{Text: "sum(m)", At: at}); !errors.As(err, &limit) || limit.Limit != 9 {
		t.Errorf("too many series: %v", err)
	}
	if err := run(query.Options{MaxBytes: 10 * 99 * 16}, Request{Text: "sum(m)", At: at}); !errors.As(err, &limit) {
		t.Errorf("too many bytes: %v", err)
	}
	if err := run(query.Options{}, Request{Text: "sum(m)", At: at}); err != nil {
		t.Errorf("within limits: %v", err)
	}
	var tooMany promql.ErrTooManySamples
	if err := run(query.Options{}, Request{Text: "m", From: time.Unix(0, 0), To: at, Step: time.Second}); !errors.As(err, &tooMany) {
		t.Errorf("too many samples: %v", err)
	}
	var input *InputError
	for _, r := range []Request{
		{Text: "m{", At: at},
		{Text: "m", From: at, To: at.Add(-1), Step: time.Second},
		{Text: "m", From: at, To: at.Add(11_002 * time.Second), Step: time.Second},
		{Text: "m", At: at, Lookback: 1000 * time.Hour},
		{Text: strings.Repeat("1+", 40_000) + "1", At: at},
	} {
		if err := run(query.Options{}, r); !errors.As(err, &input) {
			t.Errorf("%.20s: %v", r.Text, err)
		}
	}
}

func TestQuery_lookbackParameter(t *testing.T) {
	store := newFakeStore()
	store.add(store.item(seriesName("m"), model.Float, 0), 0, 0)
	e := newTestEngine(store, 1000)
	for lookback, want := range map[time.Duration]int{0: 1, time.Minute: 0, 10 * time.Minute: 1} {
		err := e.Query(t.Context(), Request{Text: "m", At: time.Unix(200, 0), Lookback: lookback}, func(r *promql.Result) error {
			if v, err := r.Vector(); err != nil || len(v) != want {
				t.Errorf("look-back %v: %v, %v", lookback, v, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// benchStore has 1,000 series with one value every 15 s over a day.
func benchStore() *fakeStore {
	store := newFakeStore()
	store.piece = 1024
	for s := range 1000 {
		id := store.item(seriesName("m", "n", fmt.Sprint(s)), model.Uint, 15*time.Second)
		c := store.columns[id]
		for i := range int64(5760) {
			c.At, c.Bits = append(c.At, i*15e9), append(c.Bits, uint64(i*7))
		}
	}
	return store
}

func BenchmarkRange(b *testing.B) {
	store := benchStore()
	e := New(query.New(store, store, query.Options{}), Options{})
	for _, text := range []string{"m", "sum(rate(m[5m]))"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				err := e.Query(b.Context(), Request{Text: text, From: time.Unix(300, 0), To: time.Unix(day, 0), Step: time.Minute},
					func(r *promql.Result) error { return r.Err })
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
