package histcache

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"tidemark/model"
)

// flood fills a cache with values of item 1, as one request does.
func flood(t *testing.T, c *Cache, values int, at func(i int) int64) {
	t.Helper()
	const rows = 16 << 10
	for begin := 0; begin < values; begin += rows {
		b := model.NewBatch()
		b.ArrivedAt = 2e18
		for i := begin; i < min(values, begin+rows); i++ {
			b.AppendUint(1, at(i), uint64(i))
		}
		if err := c.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// others puts n batches of five values of other items and returns how many values were taken before the last of them came.
func others(t *testing.T, c *Cache, n int) (before int) {
	t.Helper()
	for i := range n {
		b := model.NewBatch()
		b.ArrivedAt = 2e18
		for k := range 5 {
			b.AppendUint(model.ItemID(100+5*i+k), 2e18, 0)
		}
		if err := c.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	left := 5 * n
	for left > 0 {
		b, size, err := c.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range b.Items {
			if item >= 100 {
				left--
			}
		}
		before += b.Len()
		c.Done(size)
	}
	return before
}

// TestFairness_burst: one item that delivers 300,000 values holds up others by no more than six Takes, 120,000 values, which is
// less than a second at a third of the speed that is promised.
func TestFairness_burst(t *testing.T) {
	c := New(Options{})
	flood(t, c, 300_000, func(i int) int64 { return 2e18 + int64(i) })
	if before := others(t, c, 1000); before > 6*DefaultTakeValues {
		t.Errorf("%d values were taken before those of other items, want at most %d", before, 6*DefaultTakeValues)
	}
}

// TestFairness_stormOf1970 has values of many items that are very old, half of all.
func TestFairness_stormOf1970(t *testing.T) {
	c := New(Options{})
	for begin := 0; begin < 600_000; begin += 10_000 {
		b := model.NewBatch()
		b.ArrivedAt = 2e18
		for i := range 10_000 {
			b.AppendUint(model.ItemID(1_000_000+begin+i), int64(begin+i), 0)
		}
		if err := c.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if before := others(t, c, 1000); before > 6*DefaultTakeValues {
		t.Errorf("%d values were taken before the fresh ones, want at most %d", before, 6*DefaultTakeValues)
	}
}

// TestLanes_keepOrder: whatever comes when, every value comes out once, values of an item in their order but for very old ones, each
// completion behind its last value, and in the end nothing is counted.
func TestLanes_keepOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(Options{TakeValues: 8, LimitBytes: 1 << 20})
		ctx := context.Background()
		next, seen := map[model.ItemID]uint64{}, map[model.ItemID]uint64{}
		pending := map[*model.Completion]int{}
		old, oldSeen, count := 0, 0, 0
		take := func() {
			b, size, err := c.Take(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for i, item := range b.Items {
				if b.At[i] == 0 {
					oldSeen++
				} else if b.Bits[i] != seen[item] {
					t.Fatalf("item %d gave value %d, want %d", item, b.Bits[i], seen[item])
				} else {
					seen[item]++
				}
				if b.Types[i] == model.Text && string(b.Bytes(i)) != "x" {
					t.Fatalf("text %q", b.Bytes(i))
				}
			}
			count -= b.Len()
			b.Finish(nil)
			c.Done(size)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if count > 0 && rapid.IntRange(0, 3).Draw(t, "take") == 0 {
				take()
				continue
			}
			b := model.NewBatch()
			b.ArrivedAt = 2e18
			for range rapid.IntRange(0, 40).Draw(t, "rows") {
				item := model.ItemID(rapid.IntRange(1, 3).Draw(t, "item"))
				if rapid.IntRange(0, 9).Draw(t, "old") == 0 {
					b.AppendString(item, 0, model.Text, "x")
					old++
					continue
				}
				for range rapid.SampledFrom([]int{1, 1, 1, 700}).Draw(t, "values") {
					b.AppendUint(item, 2e18, next[item])
					next[item]++
				}
			}
			done := model.NewCompletion()
			b.Done = append(b.Done, done)
			pending[done] = 1
			b.Marks = append(b.Marks, model.Mark{Key: "k"})
			count += b.Len()
			if len(b.Items)*30 > 1<<19 {
				t.Skip("too large")
			}
			if used, limit := c.Used(); used+b.SizeBytes()+256 > limit/2 {
				for count > b.Len() {
					take()
				}
			}
			if err := c.Put(ctx, b); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		for {
			if b, size, err := c.Take(ctx); errors.Is(err, ErrClosed) {
				break
			} else {
				for i, item := range b.Items {
					if b.At[i] == 0 {
						oldSeen++
					} else {
						if b.Bits[i] != seen[item] {
							t.Fatalf("item %d gave value %d, want %d", item, b.Bits[i], seen[item])
						}
						seen[item]++
					}
				}
				b.Finish(nil)
				c.Done(size)
			}
		}
		for item, n := range next {
			if seen[item] != n {
				t.Fatalf("item %d gave %d values, want %d", item, seen[item], n)
			}
		}
		for done := range pending {
			select {
			case <-done.Done():
			default:
				t.Fatal("a completion is not done")
			}
		}
		counted := slices.ContainsFunc(c.tallies, func(t tally) bool { return t != tally{} })
		if oldSeen != old || counted || c.used != 0 || c.bulkUsed != 0 || c.values != 0 {
			t.Fatalf("%d of %d old values; left: tallies %t, %d bytes, %d in bulk, %d values", oldSeen, old, counted, c.used, c.bulkUsed, c.values)
		}
	})
}

// TestBulk_doesNotFillTheCache: who floods waits when the bulk lane has half of the cache; others do not.
func TestBulk_doesNotFillTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{TakeValues: 100, LimitBytes: 1 << 20})
		stuck := make(chan error, 1)
		go func() {
			for {
				b := model.NewBatch()
				for range 1000 {
					b.AppendUint(1, 1, 0)
				}
				if err := c.Put(context.Background(), b); err != nil {
					stuck <- err
					return
				}
			}
		}()
		synctest.Wait()
		if c.bulkUsed > c.limitBytes/2 || c.bulkUsed < c.limitBytes/3 {
			t.Errorf("the bulk lane has %d of %d bytes, want nearly half", c.bulkUsed, c.limitBytes)
		}
		if before := others(t, c, 20); before > 20*1000 {
			t.Errorf("%d values came before", before)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-stuck; !errors.Is(err, ErrClosed) {
			t.Errorf("the flooding Put ended with %v", err)
		}
	})
}

func TestCapped(t *testing.T) {
	c := New(Options{LimitBytes: 100})
	f := func(used int, want bool) {
		t.Helper()
		c.used = used
		if got := c.Capped(); got != want {
			t.Errorf("at %d %% capped is %t", used, got)
		}
	}
	f(0, false)
	f(79, false)
	f(80, true)
	f(70, true)
	f(60, true)
	f(59, false)
	f(79, false)
	f(120, true)
}

func BenchmarkPutBehind(b *testing.B) {
	for _, behind := range []bool{false, true} {
		name := "calm"
		if behind {
			name = "behind"
		}
		b.Run(name, func(b *testing.B) {
			c := New(Options{TakeValues: 10_000, LimitBytes: 1 << 40})
			put := func(n int) {
				batch := model.NewBatch()
				for k := range 1000 {
					batch.AppendUint(model.ItemID((n*1000+k)%100_000), int64(n), 0)
				}
				if err := c.Put(context.Background(), batch); err != nil {
					b.Fatal(err)
				}
			}
			if behind {
				for n := range 50 {
					put(n)
				}
			}
			b.ResetTimer()
			for n := range b.N {
				put(n)
				if n%10 == 9 {
					batch, size, err := c.Take(context.Background())
					if err != nil {
						b.Fatal(err)
					}
					batch.Free()
					c.Done(size)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*1000), "ns/value")
		})
	}
}
