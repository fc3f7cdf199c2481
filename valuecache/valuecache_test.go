package valuecache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tidemark/expr"
	"tidemark/model"
	"tidemark/storage"
)

const second = int64(time.Second)

// store is a history in memory. It stores one value per item and instant, as an engine does.
type store struct {
	mu     sync.Mutex
	values map[model.ItemID][]stored
	reads  int
	err    error
}

type stored struct {
	at    int64
	t     model.ValueType
	float float64
	uint  uint64
	text  string
}

func newStore() *store { return &store{values: make(map[model.ItemID][]stored)} }

// append stores one value and adds it to b with the flags an engine would set.
func (h *store) append(b *model.Batch, item model.ItemID, v stored) {
	h.mu.Lock()
	defer h.mu.Unlock()
	vs := h.values[item]
	i, taken := slices.BinarySearchFunc(vs, v.at, func(v stored, at int64) int { return cmp.Compare(v.at, at) })
	switch v.t {
	case model.Float:
		b.AppendFloat(item, v.at, v.float)
	case model.Uint:
		b.AppendUint(item, v.at, v.uint)
	default:
		b.AppendString(item, v.at, v.t, v.text)
	}
	row := b.Len() - 1
	if taken {
		b.Flags[row] = model.Duplicate
		return
	}
	if i < len(vs) {
		b.Flags[row] = model.Late
	}
	h.values[item] = slices.Insert(vs, i, v)
}

func (h *store) Read(_ context.Context, q storage.Query, fn func(*model.Columns) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads++
	if h.err != nil {
		return h.err
	}
	for _, item := range q.Items {
		b := model.NewBatch()
		var vs []stored
		for _, v := range h.values[item] {
			if q.Range.Contains(v.at) {
				vs = append(vs, v)
			}
		}
		if q.Newest > 0 && len(vs) > q.Newest {
			vs = vs[len(vs)-q.Newest:]
		}
		for _, v := range vs {
			switch v.t {
			case model.Float:
				b.AppendFloat(item, v.at, v.float)
			case model.Uint:
				b.AppendUint(item, v.at, v.uint)
			default:
				b.AppendString(item, v.at, v.t, v.text)
			}
		}
		// In two parts, as an engine may.
		half := b.Len() / 2
		for _, part := range [][2]int{{0, half}, {half, b.Len()}} {
			if part[0] == part[1] {
				continue
			}
			c := model.Columns{Item: item, Type: b.Types[part[0]], At: b.At[part[0]:part[1]], Bits: b.Bits[part[0]:part[1]], Arena: b.Arena}
			if err := fn(&c); err != nil {
				return err
			}
		}
	}
	return nil
}

// in returns the values of a range by plain search.
func (h *store) in(item model.ItemID, r expr.Range) []stored {
	h.mu.Lock()
	defer h.mu.Unlock()
	var vs []stored
	for _, v := range h.values[item] {
		if v.at < r.To && (r.Count > 0 || v.at >= r.From) {
			vs = append(vs, v)
		}
	}
	if r.Count > 0 && len(vs) > r.Count {
		vs = vs[len(vs)-r.Count:]
	}
	return vs
}

func (v stored) number() float64 {
	if v.t == model.Uint {
		return float64(v.uint)
	}
	return v.float
}

// near compares sums: equal up to rounding of the greatest partial sum.
func near(a, b, scale float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-12*max(1, scale)
}

// check compares every question about a range with the plain answer.
func check(t interface{ Fatalf(string, ...any) }, c *Cache, h *store, item model.ItemID, r expr.Range) {
	ctx := context.Background()
	want := h.in(item, r)
	var columns model.Columns
	if err := c.Read(ctx, item, r, &columns); err != nil {
		t.Fatalf("Read %+v: %v", r, err)
	}
	if len(columns.At) != len(want) {
		t.Fatalf("Read %+v gives %d values, want %d", r, len(columns.At), len(want))
	}
	scale := 0.0
	sum, least, greatest := 0.0, math.Inf(1), math.Inf(-1)
	for i, v := range want {
		same := columns.At[i] == v.at
		switch v.t {
		case model.Float:
			same = same && columns.Bits[i] == math.Float64bits(v.float)
		case model.Uint:
			same = same && columns.Bits[i] == v.uint
		default:
			same = same && string(columns.Bytes(i)) == v.text
		}
		if !same {
			t.Fatalf("Read %+v value %d at %d, want %+v", r, i, columns.At[i], v)
		}
		scale += math.Abs(v.number())
		sum += v.number()
		least, greatest = min(least, v.number()), max(greatest, v.number())
	}
	for want3, expected := range map[expr.Aggregate]float64{expr.WantCount: 0, expr.WantSum: sum, expr.WantMin: least, expr.WantMax: greatest} {
		var s expr.Summary
		if err := c.Summary(ctx, item, r, want3, &s); err != nil {
			t.Fatalf("Summary: %v", err)
		}
		if s.Count != uint64(len(want)) {
			t.Fatalf("Summary %+v counts %d, want %d", r, s.Count, len(want))
		}
		if len(want) == 0 || !want[0].t.Numeric() {
			continue
		}
		got := map[expr.Aggregate]float64{expr.WantCount: 0, expr.WantSum: s.Sum, expr.WantMin: s.Min, expr.WantMax: s.Max}[want3]
		if !near(got, expected, scale) {
			t.Fatalf("Summary %+v of %d values: aggregate %d is %v, want %v", r, len(want), want3, got, expected)
		}
	}
	var sample expr.Sample
	found, err := c.First(ctx, item, r, &sample)
	if err != nil || found != (len(want) > 0) || found && sample.At != want[0].at {
		t.Fatalf("First %+v = %v %v %v", r, sample.At, found, err)
	}
	if r.Count > 0 {
		found, err = c.Last(ctx, item, r.Count, r.To-1, &sample)
		if err != nil || found != (len(want) == r.Count) || found && sample.At != want[0].at {
			t.Fatalf("Last %+v = %v %v %v", r, sample.At, found, err)
		}
	}
}

var checkedTypes = []model.ValueType{model.Float, model.Uint, model.Text}

func drawValue(t *rapid.T, vt model.ValueType, at int64) stored {
	v := stored{at: at, t: vt}
	switch vt {
	case model.Float:
		v.float = rapid.SampledFrom([]float64{0, 1, -1, 0.1, 3, 1e15, -2.5, 1e300, math.MaxFloat64 / 1e10}).Draw(t, "float")
	case model.Uint:
		v.uint = rapid.SampledFrom([]uint64{0, 1, 7, 1 << 40, math.MaxUint64}).Draw(t, "uint")
	default:
		v.text = rapid.StringN(0, 5, 20).Draw(t, "text")
	}
	return v
}

// TestCache_equalsPlainSearch feeds random values, late and repeated ones among them, and asks at random times.
func TestCache_equalsPlainSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newStore()
		vt := rapid.SampledFrom(checkedTypes).Draw(t, "type")
		now := 1_000_000 * second
		earlier := model.NewBatch()
		for range rapid.IntRange(0, 50).Draw(t, "stored before") {
			h.append(earlier, 1, drawValue(t, vt, now-int64(rapid.IntRange(1, 200).Draw(t, "ago"))*second))
		}
		c := New(Options{History: h, MaxBytes: int64(rapid.SampledFrom([]int{1, 1 << 20}).Draw(t, "limit"))})
		span, count := time.Duration(rapid.IntRange(0, 90).Draw(t, "span"))*time.Second, rapid.IntRange(1, 40).Draw(t, "count")
		c.Ask(1, vt, span, count)
		for range rapid.IntRange(1, 40).Draw(t, "batches") {
			b := model.NewBatch()
			for range rapid.IntRange(1, 30).Draw(t, "rows") {
				at := now - int64(rapid.SampledFrom([]int{0, 0, 0, 0, 1, 5, 60, 300}).Draw(t, "late"))*second
				h.append(b, 1, drawValue(t, vt, at))
				now += int64(rapid.IntRange(0, 3).Draw(t, "step")) * second / 2
			}
			c.Add(b)
			for range rapid.IntRange(0, 4).Draw(t, "questions") {
				at := now - int64(rapid.SampledFrom([]int{0, 0, 1, 20, 100}).Draw(t, "back"))*second
				check(t, c, h, 1, expr.Range{To: at + 1, Count: rapid.IntRange(1, count).Draw(t, "n")})
				if back := span / 3; span > 10*time.Second {
					end := at - int64(back)
					check(t, c, h, 1, expr.Range{From: end - int64(back), To: end + 1, Span: back, Shift: 1})
					check(t, c, h, 1, expr.Range{From: at - int64(back), To: at + 1, Span: back})
					check(t, c, h, 1, expr.Range{To: end + 1, Count: rapid.IntRange(1, count).Draw(t, "n"), Shift: 1})
				}
				if span > 0 {
					check(t, c, h, 1, expr.Range{From: at - int64(span), To: at + 1, Span: span})
				}
			}
		}
	})
}

// TestCache_slidesExactly moves windows over many values, where rounding would gather.
func TestCache_slidesExactly(t *testing.T) {
	for _, vt := range []model.ValueType{model.Float, model.Uint} {
		h := newStore()
		c := New(Options{History: h})
		c.Ask(1, vt, 100*time.Second, 50)
		for i := range int64(5000) {
			b := model.NewBatch()
			at := i * second
			if i%7 == 0 {
				at -= 3*second + second/2
			}
			f := float64(i%13) * 0.1
			if i%500 == 0 {
				f = 1e300
			}
			if i%1700 == 1 {
				f = math.Inf(1)
			}
			h.append(b, 1, stored{at: at, t: vt, float: f, uint: uint64(i*i) << 30})
			c.Add(b)
			if i%11 == 0 {
				check(t, c, h, 1, expr.Range{From: at - 100*second, To: at + 1, Span: 100 * time.Second})
				check(t, c, h, 1, expr.Range{To: at + 1, Count: 50})
			}
			b.Free()
		}
		if h.reads > 3 {
			t.Errorf("%s: %d reads of the history, want at most 3", vt, h.reads)
		}
	}
}

// TestCache_shiftedCountsCauseNoReads asks for #5 as of an hour ago with each value.
func TestCache_shiftedCountsCauseNoReads(t *testing.T) {
	h := newStore()
	c := New(Options{History: h})
	c.Ask(1, model.Float, time.Hour+time.Second, 6)
	b := model.NewBatch()
	for i := range int64(3000) {
		b.Reset()
		at := i * 10 * second
		h.append(b, 1, stored{at: at, t: model.Float, float: float64(i)})
		c.Add(b)
		var s expr.Summary
		if err := c.Summary(context.Background(), 1, expr.Range{To: at - 3600*second + 1, Count: 5, Shift: 1}, expr.WantSum, &s); err != nil {
			t.Fatal(err)
		}
		if want := max(0, min(5, i-359)); s.Count != uint64(want) {
			t.Fatalf("value %d: %d values, want %d", i, s.Count, want)
		}
	}
	if h.reads > 3 {
		t.Errorf("%d reads of the history", h.reads)
	}
}

func TestCache_readsHistoryOnce(t *testing.T) {
	h := newStore()
	b := model.NewBatch()
	for i := range int64(600) {
		h.append(b, 1, stored{at: i * second, t: model.Float, float: 1})
	}
	c := New(Options{History: h})
	c.Ask(1, model.Float, 5*time.Minute, 1)
	c.Ask(2, model.Float, 5*time.Minute, 1)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for _, item := range []model.ItemID{1, 2, 3} {
				var s expr.Summary
				if err := c.Summary(context.Background(), item, expr.Range{From: 300 * second, To: 600 * second, Span: 5 * time.Minute}, expr.WantSum, &s); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if h.reads != 2 {
		t.Errorf("%d reads, want one for each item that is asked for", h.reads)
	}
	var sample expr.Sample
	for range 3 {
		if found, err := c.Last(context.Background(), 2, 5, 600*second, &sample); found || err != nil {
			t.Errorf("a value of an empty item: %v", err)
		}
	}
	if h.reads != 3 {
		t.Errorf("%d reads, want that there is nothing to be remembered", h.reads)
	}
}

// TestCache_oldValuesCauseNoReads is a storm of values dated 1970.
func TestCache_oldValuesCauseNoReads(t *testing.T) {
	h := newStore()
	c := New(Options{History: h})
	c.Ask(1, model.Float, 5*time.Minute, 1)
	b := model.NewBatch()
	h.append(b, 1, stored{at: 1e9 * second, t: model.Float, float: 1})
	c.Add(b)
	for i := range int64(1000) {
		b.Reset()
		h.append(b, 1, stored{at: i * second, t: model.Float})
		c.Add(b)
		var s expr.Summary
		err := c.Summary(context.Background(), 1, expr.Range{From: (i - 300) * second, To: i*second + 1, Span: 5 * time.Minute}, expr.WantSum, &s)
		if !errors.Is(err, expr.ErrTooOld) {
			t.Fatalf("error %v, want ErrTooOld", err)
		}
	}
	if h.reads != 0 {
		t.Errorf("%d reads", h.reads)
	}
}

func TestCache_failedReadIsNotRepeatedAtOnce(t *testing.T) {
	h := newStore()
	h.err = errors.New("disk gone")
	now := time.Unix(1000, 0)
	c := New(Options{History: h, Now: func() time.Time { return now }})
	c.Ask(1, model.Float, time.Minute, 1)
	ask := func() error {
		var s expr.Summary
		return c.Summary(context.Background(), 1, expr.Range{From: 0, To: 60 * second, Span: time.Minute}, expr.WantSum, &s)
	}
	for range 10 {
		if err := ask(); !errors.Is(err, h.err) {
			t.Fatalf("error %v", err)
		}
	}
	if h.reads != 1 {
		t.Errorf("%d reads, want 1", h.reads)
	}
	h.err, now = nil, now.Add(retryAfter)
	if err := ask(); err != nil {
		t.Errorf("after the failure: %v", err)
	}
}

func TestCache_forgetsWhatNobodyAsksFor(t *testing.T) {
	h := newStore()
	c := New(Options{History: h})
	c.Ask(1, model.Text, time.Hour, 1)
	c.Ask(1, model.Text, 0, 3)
	c.Ask(2, model.Float, 0, 1)
	for i := range int64(2000) {
		b := model.NewBatch()
		h.append(b, 1, stored{at: i * second, t: model.Text, text: fmt.Sprint("value ", i)})
		c.Add(b)
		b.Free()
	}
	wide := c.UsedBytes()
	c.Release(1, time.Hour, 1)
	for i := range int64(300) {
		b := model.NewBatch()
		h.append(b, 1, stored{at: (2000 + i) * second, t: model.Text, text: "x"})
		c.Add(b)
		b.Free()
	}
	if c.UsedBytes() > wide/4 {
		t.Errorf("%d bytes after the wide ask is gone, %d before", c.UsedBytes(), wide)
	}
	check(t, c, h, 1, expr.Range{To: 3000 * second, Count: 3})
	c.Release(1, 0, 3)
	c.Release(2, 0, 1)
	if c.UsedBytes() != 0 || c.Len() != 0 {
		t.Errorf("%d bytes of %d items nobody asks for", c.UsedBytes(), c.Len())
	}
}

func TestCache_staysUnderItsLimit(t *testing.T) {
	h := newStore()
	const limit = 200 << 10
	c := New(Options{History: h, MaxBytes: limit})
	for item := range model.ItemID(100) {
		c.Ask(item+1, model.Float, time.Hour, 1)
	}
	b := model.NewBatch()
	for i := range int64(400) {
		b.Reset()
		for item := range model.ItemID(100) {
			h.append(b, item+1, stored{at: i * second, t: model.Float, float: float64(i)})
		}
		c.Add(b)
		if c.UsedBytes() > limit {
			t.Fatalf("%d bytes after batch %d", c.UsedBytes(), i)
		}
	}
	for item := range model.ItemID(100) {
		check(t, c, h, item+1, expr.Range{From: 350 * second, To: 400 * second, Span: 50 * time.Second})
	}
}

func TestWarm_readsManyItemsAtOnce(t *testing.T) {
	h := newStore()
	b := model.NewBatch()
	c := New(Options{History: h})
	for item := range model.ItemID(1200) {
		c.Ask(item+1, model.Float, time.Minute, 1)
		for i := range int64(5) {
			h.append(b, item+1, stored{at: (100 + i) * second, t: model.Float, float: float64(i)})
		}
	}
	if err := c.Warm(context.Background(), 110*second); err != nil {
		t.Fatal(err)
	}
	if h.reads != 3 {
		t.Errorf("%d reads, want 3", h.reads)
	}
	for item := range model.ItemID(1200) {
		check(t, c, h, item+1, expr.Range{From: 55 * second, To: 110 * second, Span: time.Minute})
	}
	if h.reads != 3 {
		t.Errorf("%d reads after warming, want none", h.reads-3)
	}
}

func TestWarm_survivesAFailure(t *testing.T) {
	h := newStore()
	b := model.NewBatch()
	h.append(b, 1, stored{at: 100 * second, t: model.Float, float: 1})
	c := New(Options{History: h})
	c.Ask(1, model.Float, time.Minute, 1)
	h.err = errors.New("disk gone")
	if err := c.Warm(context.Background(), 110*second); err != nil {
		t.Fatal(err)
	}
	h.err = nil
	check(t, c, h, 1, expr.Range{From: 55 * second, To: 110 * second, Span: time.Minute})
}

func TestLastText(t *testing.T) {
	h := newStore()
	c := New(Options{History: h})
	b := model.NewBatch()
	for item, vt := range map[model.ItemID]model.ValueType{1: model.Float, 2: model.Uint, 3: model.Text} {
		c.Ask(item, vt, 0, 1)
		h.append(b, item, stored{at: second, t: vt, float: 1.5, uint: math.MaxUint64, text: "hello"})
	}
	c.Ask(4, model.LogEntry, 0, 1)
	b.AppendLog(4, second, model.Log{Source: "s", Text: "line"})
	c.Add(b)
	for item, want := range map[model.ItemID]string{1: "1.5", 2: "18446744073709551615", 3: "hello", 4: "line", 5: ""} {
		if got, ok := c.LastText(context.Background(), item, 2*second); got != want || ok != (want != "") {
			t.Errorf("item %d is %q, want %q", item, got, want)
		}
	}
}

// BenchmarkSummary shows that the cost of a value does not depend on the window's length.
func BenchmarkSummary(b *testing.B) {
	for _, span := range []time.Duration{5 * time.Minute, 24 * time.Hour} {
		for name, want := range map[string]expr.Aggregate{"avg": expr.WantSum, "min": expr.WantMin, "count": expr.WantCount} {
			b.Run(fmt.Sprintf("%s,%s", name, span), func(b *testing.B) {
				c := New(Options{History: newStore()})
				c.Ask(1, model.Float, span, 1)
				batch := model.NewBatch()
				at := int64(0)
				step := func() {
					batch.Reset()
					at += second
					batch.AppendFloat(1, at, float64(at%1013))
					c.Add(batch)
					var s expr.Summary
					if err := c.Summary(b.Context(), 1, expr.Range{From: at - int64(span), To: at + 1, Span: span}, want, &s); err != nil {
						b.Fatal(err)
					}
				}
				for range int(span/time.Second) + 100 {
					step()
				}
				b.ReportAllocs()
				for b.Loop() {
					step()
				}
			})
		}
	}
}
