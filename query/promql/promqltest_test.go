package promql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	promstorage "github.com/prometheus/prometheus/storage"

	"tidemark/model"
	"tidemark/query"
	"tidemark/storage"
)

// fakeStore is a reader and a catalog of series with any labels, in memory.
type fakeStore struct {
	entries map[model.ItemID]model.Entry
	labels  map[model.ItemID]labels.Labels
	columns map[model.ItemID]*model.Columns
	trends  map[model.ItemID][]model.Trend
	byHash  map[string]model.ItemID
	// piece is how many values one call of a reader gets; small, so that every reader sees borders.
	piece int
	// reads counts the values that were handed out.
	reads int
}

func newFakeStore() *fakeStore {
	return &fakeStore{
		piece:   7,
		entries: map[model.ItemID]model.Entry{}, labels: map[model.ItemID]labels.Labels{},
		columns: map[model.ItemID]*model.Columns{}, trends: map[model.ItemID][]model.Trend{}, byHash: map[string]model.ItemID{},
	}
}

func (f *fakeStore) item(ls labels.Labels, vt model.ValueType, silence time.Duration) model.ItemID {
	if id, ok := f.byHash[ls.String()]; ok {
		return id
	}
	id := model.ItemID(len(f.byHash) + 1)
	f.byHash[ls.String()] = id
	f.labels[id] = ls
	f.entries[id] = model.Entry{ID: id, ValueType: vt, Interval: silence, Silence: silence, Metric: ls.Get("__name__")}
	f.columns[id] = &model.Columns{Item: id, Type: vt}
	return id
}

func (f *fakeStore) add(id model.ItemID, at int64, bits uint64) {
	c := f.columns[id]
	n, taken := slices.BinarySearch(c.At, at)
	if taken {
		c.Bits[n] = bits
		return
	}
	c.At, c.Bits = slices.Insert(c.At, n, at), slices.Insert(c.Bits, n, bits)
}

func (f *fakeStore) Read(_ context.Context, q storage.Query, fn func(*model.Columns) error) error {
	for _, id := range q.Items {
		c := f.columns[id]
		from, _ := slices.BinarySearch(c.At, q.Range.From)
		to, _ := slices.BinarySearch(c.At, q.Range.To)
		if q.Newest > 0 {
			from = max(from, to-q.Newest)
		}
		for ; from < to; from += f.piece {
			end := min(to, from+f.piece)
			f.reads += end - from
			if err := fn(&model.Columns{Item: id, Type: c.Type, At: c.At[from:end], Bits: c.Bits[from:end]}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fakeStore) Trends(_ context.Context, q storage.Query, fn func(*storage.TrendColumns) error) error {
	for _, id := range q.Items {
		var in []model.Trend
		for _, trend := range f.trends[id] {
			if q.Range.Contains(trend.At) {
				in = append(in, trend)
			}
		}
		if len(in) == 0 {
			continue
		}
		if err := fn(&storage.TrendColumns{Item: id, Type: f.columns[id].Type, Trends: in}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeStore) Item(id model.ItemID) (model.Entry, bool) { e, ok := f.entries[id]; return e, ok }

func (f *fakeStore) Labels(id model.ItemID) model.Labels {
	var ls model.Labels
	f.labels[id].Range(func(l labels.Label) { ls = append(ls, model.Label{Name: l.Name, Value: l.Value}) })
	return ls
}

func (f *fakeStore) OwnLabels(id model.ItemID) model.Labels { return f.Labels(id) }

func (f *fakeStore) Match(matchers ...*labels.Matcher) []model.ItemID {
	var ids []model.ItemID
	for id, ls := range f.labels {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(ls.Get(m.Name)) }) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b model.ItemID) int { return cmp.Compare(b, a) }) // no order is promised
	return ids
}

func (f *fakeStore) LabelNames(...*labels.Matcher) []string          { return nil }
func (f *fakeStore) LabelValues(string, ...*labels.Matcher) []string { return nil }

// testStorage lets Prometheus' own test files load their series into a fakeStore and read them through Queryable.
type testStorage struct {
	promstorage.Storage
	store *fakeStore
}

var errHistogram = errors.New("native histograms are not kept")

func (s *testStorage) Querier(mint, maxt int64) (promstorage.Querier, error) {
	q := query.New(s.store, s.store, query.Options{Now: func() time.Time { return time.Unix(1<<40, 0) }})
	return (&Queryable{querier: q}).Querier(mint, maxt)
}
func (s *testStorage) Close() error                                      { return nil }
func (s *testStorage) StartTime() (int64, error)                         { return math.MinInt64, nil }
func (s *testStorage) AppenderV2(context.Context) promstorage.AppenderV2 { return s }
func (s *testStorage) Commit() error                                     { return nil }
func (s *testStorage) Rollback() error                                   { return nil }
func (s *testStorage) Append(_ promstorage.SeriesRef, ls labels.Labels, _, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, _ promstorage.AppendV2Options) (promstorage.SeriesRef, error) {
	if h != nil || fh != nil {
		return 0, errHistogram
	}
	s.store.add(s.store.item(ls, model.Float, 0), t*int64(time.Millisecond), math.Float64bits(v))
	return 1, nil
}

// TestPrometheusFiles runs test files of the Prometheus project (Apache-2.0) through our storage and look-back.
func TestPrometheusFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.test")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	engine := promqltest.NewTestEngineWithOpts(t, promql.EngineOpts{
		MaxSamples: 50_000, Timeout: 100 * time.Second, LookbackDelta: MaxLookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 60_000 }, EnableAtModifier: true, EnableNegativeOffset: true,
		EnableDelayedNameRemoval: true, Parser: parser.NewParser(promqltest.TestParserOpts),
	})
	total := 0
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			ran := 0
			for _, part := range strings.Split("\n"+string(content), "\nclear") {
				if strings.Contains(part, "{{") || strings.Contains(part, "load_with_nhcb") {
					continue // native histograms, which are not kept
				}
				ran += strings.Count(part, "\neval ")
				promqltest.RunTestWithStorage(t, part, engine, func(testing.TB) promstorage.Storage {
					return &testStorage{store: newFakeStore()}
				})
			}
			total += ran
			if ran == 0 {
				t.Error("no expression of the file ran")
			}
		})
	}
	if total < 900 {
		t.Errorf("%d expressions ran, want at least 900", total)
	}
	t.Logf("%d expressions", total)
}

func seriesName(name string, pairs ...string) labels.Labels {
	return labels.FromStrings(append([]string{"__name__", name}, pairs...)...)
}

func newTestEngine(store *fakeStore, now int64) *Engine {
	return New(query.New(store, store, query.Options{Now: func() time.Time { return time.Unix(now, 0) }}), Options{})
}

// instant evaluates and prints a result in Prometheus' form.
func instant(t *testing.T, e *Engine, text string, at float64) string {
	t.Helper()
	out := ""
	err := e.Query(t.Context(), Request{Text: text, At: time.UnixMilli(int64(math.Round(at * 1000)))}, func(r *promql.Result) error {
		out = r.String()
		return r.Err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLookback_followsInterval(t *testing.T) {
	store := newFakeStore()
	fast := store.item(seriesName("fast"), model.Float, time.Second)
	slow := store.item(seriesName("slow"), model.Float, time.Hour)
	for _, id := range []model.ItemID{fast, slow} {
		store.add(id, 1000e9, math.Float64bits(1))
	}
	e := newTestEngine(store, 100_000)
	for _, c := range []struct {
		text string
		at   float64
		want bool
	}{
		{"fast", 999.999, false},
		{"fast", 1000, true},
		{"fast", 1299.999, true},
		{"fast", 1300, false},
		{"slow", 1000, true},
		{"slow", 8199.999, true},
		{"slow", 8200, false},
	} {
		if got := instant(t, e, c.text, c.at) != ""; got != c.want {
			t.Errorf("%s at %v: present %v, want %v", c.text, c.at, got, c.want)
		}
	}
	if got := instant(t, e, "count_over_time(fast[2000s])", 2900); got != `{} => 1 @[2900000]` {
		t.Errorf("a range selector sees stale markers: %s", got)
	}
}

func TestTimestamp_isExactToTheMillisecond(t *testing.T) {
	store := newFakeStore()
	id := store.item(seriesName("m"), model.Uint, time.Second)
	at := int64(1_790_000_000_123_456_789)
	store.add(id, at, math.MaxUint64)
	e := newTestEngine(store, at/1e9+10)
	if got, want := instant(t, e, "timestamp(m)", float64(at/1e9)+2), fmt.Sprintf("{} => 1790000000.123 @[%d]", (at/1e9+2)*1000); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := instant(t, e, "m", float64(at/1e9)+2), fmt.Sprintf(`{__name__="m"} => 18446744073709552000 @[%d]`, (at/1e9+2)*1000); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	store.add(id, at+1000, 5) // the same millisecond: the last counts
	if got, want := instant(t, e, "m", float64(at/1e9)+2), fmt.Sprintf(`{__name__="m"} => 5 @[%d]`, (at/1e9+2)*1000); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
