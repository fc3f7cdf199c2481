package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"tidemark/model"
	"tidemark/storage"
)

// fakeStore is a reader and a catalog in memory.
type fakeStore struct {
	entries map[model.ItemID]model.Entry
	own     map[model.ItemID]model.Labels
	batches map[model.ItemID]*model.Batch
	trends  map[model.ItemID][]model.Trend
	// reads counts calls of Read, err is what they return.
	reads int
	err   error
}

func newFakeStore() *fakeStore {
	return &fakeStore{
		entries: map[model.ItemID]model.Entry{}, own: map[model.ItemID]model.Labels{},
		batches: map[model.ItemID]*model.Batch{}, trends: map[model.ItemID][]model.Trend{},
	}
}

func (f *fakeStore) item(vt model.ValueType, interval time.Duration, units string, own ...model.Label) model.ItemID {
	id := model.ItemID(len(f.entries) + 1)
	f.entries[id] = model.Entry{ID: id, Host: "h", Key: fmt.Sprintf("k%d", id), ValueType: vt, Interval: interval, Silence: interval, Units: units}
	f.own[id] = own
	f.batches[id] = &model.Batch{}
	return id
}

func (f *fakeStore) Read(_ context.Context, q storage.Query, fn func(*model.Columns) error) error {
	f.reads++
	if f.err != nil {
		return f.err
	}
	for _, id := range q.Items {
		b := f.batches[id]
		if b == nil {
			continue
		}
		from, _ := slices.BinarySearch(b.At, q.Range.From)
		to, _ := slices.BinarySearch(b.At, q.Range.To)
		if q.Newest > 0 {
			from = max(from, to-q.Newest)
		}
		for ; from < to; from++ {
			// One value a call is the worst case; each may have its own type.
			c := &model.Columns{Item: id, Type: b.Types[from], At: b.At[from : from+1], Bits: b.Bits[from : from+1], Arena: b.Arena}
			if err := fn(c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fakeStore) Trends(_ context.Context, q storage.Query, fn func(*storage.TrendColumns) error) error {
	for _, id := range q.Items {
		for _, t := range f.trends[id] {
			if q.Range.Contains(t.At) {
				if err := fn(&storage.TrendColumns{Item: id, Type: f.entries[id].ValueType, Trends: []model.Trend{t}}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (f *fakeStore) Item(id model.ItemID) (model.Entry, bool)        { e, ok := f.entries[id]; return e, ok }
func (f *fakeStore) Labels(id model.ItemID) model.Labels             { return f.own[id] }
func (f *fakeStore) OwnLabels(id model.ItemID) model.Labels          { return f.own[id] }
func (f *fakeStore) Match(...*labels.Matcher) []model.ItemID         { return nil }
func (f *fakeStore) LabelNames(...*labels.Matcher) []string          { return nil }
func (f *fakeStore) LabelValues(string, ...*labels.Matcher) []string { return nil }

func newTestQuerier(f *fakeStore, now time.Time, options Options) *Querier {
	options.Now = func() time.Time { return now }
	return New(f, f, options)
}

func TestValues(t *testing.T) {
	f := newFakeStore()
	id := f.item(model.Uint, time.Second, "")
	for i := range int64(10) {
		f.batches[id].AppendUint(id, i, math.MaxUint64-uint64(i))
	}
	q := newTestQuerier(f, time.Unix(100, 0), Options{})
	for _, c := range []struct {
		r          model.TimeRange
		limit      int
		descending bool
		want       []int64
	}{
		{model.TimeRange{From: 0, To: 10}, 3, false, []int64{0, 1, 2}},
		{model.TimeRange{From: 0, To: 10}, 3, true, []int64{9, 8, 7}},
		{model.TimeRange{From: 8, To: 100}, 3, false, []int64{8, 9}},
		{model.TimeRange{From: 0, To: 2}, 5, true, []int64{1, 0}},
		{model.TimeRange{From: 20, To: 30}, 5, true, nil},
	} {
		values, err := q.Values(t.Context(), id, c.r, c.limit, c.descending)
		if err != nil {
			t.Fatal(err)
		}
		var at []int64
		for _, v := range values {
			at = append(at, v.At)
			if v.Bits != math.MaxUint64-uint64(v.At) || v.Type != model.Uint {
				t.Errorf("value %+v", v)
			}
		}
		if !slices.Equal(at, c.want) {
			t.Errorf("%+v: got %v", c, at)
		}
	}
}

func TestQuerier_limits(t *testing.T) {
	f := newFakeStore()
	id := f.item(model.Text, time.Second, "")
	for i := range int64(10) {
		f.batches[id].AppendString(id, i, model.Text, "0123456789")
	}
	var limit *LimitError
	_, err := newTestQuerier(f, time.Unix(100, 0), Options{MaxBytes: 200}).Values(t.Context(), id, model.TimeRange{To: 10}, 10, false)
	if !errors.As(err, &limit) || limit.Limit != 200 {
		t.Errorf("bytes: %v", err)
	}
	q := newTestQuerier(f, time.Unix(100, 0), Options{MaxItems: 1, Concurrent: 1})
	if err := q.Read(t.Context(), []model.ItemID{1, 2}, model.TimeRange{To: 1}, 0, nil); !errors.As(err, &limit) {
		t.Errorf("items: %v", err)
	}
	f.err = storage.ErrTooMuch
	if _, err = q.Values(t.Context(), id, model.TimeRange{To: 10}, 10, false); !errors.As(err, &limit) {
		t.Errorf("engine: %v", err)
	}
	_, end, err := q.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := q.Begin(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a second query with one slot: %v", err)
	}
	end()
	if _, end, err = q.Begin(t.Context()); err != nil {
		t.Errorf("after the first ended: %v", err)
	}
	end()
}
