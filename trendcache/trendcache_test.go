package trendcache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/memory"
)

const base = int64(1_700_002_800) * int64(time.Second)

// fake keeps values in memory and hours as they are appended.
type fake struct {
	*memory.Engine
	stored map[hour]map[model.ValueType]model.Trend
	items  []model.ItemID
	failed error
	mu     sync.Mutex // guards writes
	writes []int
}

func newFake(items ...model.ItemID) *fake {
	return &fake{Engine: memory.New(memory.Options{}), stored: map[hour]map[model.ValueType]model.Trend{}, items: items}
}

func (f *fake) lastOf(id model.ItemID) int64 {
	last := int64(math.MinInt64)
	for h := range f.stored {
		if h.item == id {
			last = max(last, h.at)
		}
	}
	return last
}

func (f *fake) Trends(ctx context.Context, q storage.Query, fn func(*storage.TrendColumns) error) error {
	for _, id := range q.Items {
		var all []finished
		for h, types := range f.stored {
			if h.item != id || !q.Range.Contains(h.at) {
				continue
			}
			for vt, t := range types {
				all = append(all, finished{id, vt, t})
			}
		}
		slices.SortFunc(all, func(a, b finished) int { return int(a.trend.At - b.trend.At) })
		last := f.lastOf(id)
		for _, h := range f.made(ctx, id) {
			if h.trend.At > last && q.Range.Contains(h.trend.At) {
				all = append(all, h)
			}
		}
		for _, h := range all {
			if err := fn(&storage.TrendColumns{Item: id, Type: h.valueType, Trends: []model.Trend{h.trend}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// made are the hours that history makes.
func (f *fake) made(ctx context.Context, id model.ItemID) []finished {
	var all []finished
	q := storage.Query{Items: []model.ItemID{id}, Range: model.TimeRange{From: math.MinInt64, To: math.MaxInt64}}
	_ = f.Engine.Trends(ctx, q, func(t *storage.TrendColumns) error {
		for _, trend := range t.Trends {
			all = append(all, finished{id, t.Type, trend})
		}
		return nil
	})
	return all
}

func (f *fake) AppendTrends(_ context.Context, columns []storage.TrendColumns) error {
	if f.failed != nil {
		return f.failed
	}
	n := 0
	for _, c := range columns {
		for _, t := range c.Trends {
			h := hour{c.Item, t.At}
			if f.stored[h] == nil {
				f.stored[h] = map[model.ValueType]model.Trend{}
			}
			f.stored[h][c.Type] = t
			n++
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes = append(f.writes, n)
	return nil
}

func (f *fake) UnsavedTrends(ctx context.Context, before int64, fn func(*storage.TrendColumns) error) error {
	for _, id := range f.items {
		last := f.lastOf(id)
		for _, h := range f.made(ctx, id) {
			if h.trend.At > last && h.trend.At < before {
				if err := fn(&storage.TrendColumns{Item: id, Type: h.valueType, Trends: []model.Trend{h.trend}}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// put stores a batch and hands it to the cache.
func put(t *testing.T, f *fake, c *Cache, b *model.Batch) {
	t.Helper()
	if _, err := f.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	c.Add(b)
}

// check compares the stored hours before a time with what history makes.
func check(t *testing.T, f *fake, before int64) {
	t.Helper()
	want := map[string]model.Trend{}
	for _, id := range f.items {
		for _, h := range f.made(context.Background(), id) {
			if h.trend.At < before {
				want[fmt.Sprint(id, h.valueType, h.trend.At-base)] = h.trend
			}
		}
	}
	got := 0
	for h, types := range f.stored {
		for vt, trend := range types {
			got++
			if w := want[fmt.Sprint(h.item, vt, h.at-base)]; w != trend {
				t.Errorf("item %d hour %+d: %+v\nexpected %+v", h.item, (h.at-base)/storage.Hour, trend, w)
			}
		}
	}
	if got != len(want) {
		t.Errorf("%d hours, expected %d", got, len(want))
	}
}

// TestCache_random lets values come early, late, twice, in place of others, over restarts and failures, and compares every hour.
func TestCache_random(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := newFake(1, 2, 3, 4)
		now := base
		o := Options{Engine: f, Now: func() int64 { return now }}
		// With a crash, or more waiting hours than there is room for, corrections of stored hours are lost: the others must be right.
		orderly := seed%2 == 0
		if !orderly {
			o.MaxWaiting = 1 + r.IntN(50)
		}
		c := New(o)
		for range 300 {
			b := &model.Batch{}
			for range r.IntN(5) {
				id, at := f.items[r.IntN(len(f.items))], now
				if orderly && r.IntN(8) == 0 {
					at -= r.Int64N(5 * storage.Hour)
				}
				switch {
				case id < 3, id == 4 && at/storage.Hour%3 == 0:
					b.AppendUint(id, at, r.Uint64())
				case r.IntN(10) == 0:
					b.AppendFloat(id, at, math.NaN())
				default:
					b.AppendFloat(id, at, float64(r.IntN(100))/4)
				}
			}
			put(t, f, c, b)
			if r.IntN(10) == 0 {
				put(t, f, c, b) // duplicates
			}
			now += r.Int64N(int64(20 * time.Minute))
			switch r.IntN(12) {
			case 0:
				f.failed = errors.New("away")
			case 1, 2:
				f.failed = nil
			case 3:
				if !orderly {
					c = New(o)
				}
			}
			_ = c.round(context.Background()) // may fail: it is tried again
		}
		f.failed = nil
		now = storage.HourOf(now) + storage.Hour + int64(2*time.Minute)
		for range 3 {
			if err := c.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		check(t, f, storage.HourOf(now))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestCache_spread proves that a turn of the hour is no spike.
func TestCache_spread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const items = 60_000
		f := newFake()
		c := New(Options{Engine: f, Spread: 5 * time.Minute})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		time.Sleep(time.Duration(storage.Hour - time.Now().UnixNano()%storage.Hour)) // to a full hour
		for range 2 {
			b := &model.Batch{}
			for id := range items {
				b.AppendUint(model.ItemID(id+1), time.Now().UnixNano(), 7)
			}
			for i := range b.Flags {
				b.Flags[i] = 0
			}
			c.Add(b)
			time.Sleep(time.Hour)
		}
		time.Sleep(2 * time.Minute)
		f.mu.Lock()
		writes, sum := len(f.writes), 0
		for _, n := range f.writes {
			sum += n
		}
		f.mu.Unlock()
		if sum == 0 || sum > items/2 {
			t.Errorf("%d hours were written in %d writes two minutes after the turn of the hour, expected some and less than half of %d", sum, writes, items)
		}
		time.Sleep(5 * time.Minute)
		if n := c.Waiting(); n != 0 {
			t.Errorf("%d hours wait after the spread, expected none", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
