// Package storagetest is the suite that every engine passes.
package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"tidemark/model"
	"tidemark/storage"
)

// Base is the time about which the suite's values lie, on a full hour: Unix nanoseconds.
const Base = int64(1_700_002_800) * int64(time.Second)

// Retention is the history that the engine under test must be opened with for the one class.
const Retention = 30 * 24 * time.Hour

// Now is the clock that the engine under test must be given.
func Now() int64 { return Base + int64(24*time.Hour) }

// Run runs the suite. open returns a new empty engine with the retention Retention and the clock Now; reopen, which may
// be nil, closes an engine and opens it again.
func Run(t *testing.T, open func(t *testing.T) storage.Engine, reopen func(t *testing.T, e storage.Engine) storage.Engine) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, e storage.Engine) storage.Engine
	}{
		{"types", testTypes},
		{"ranges", testRanges},
		{"newest", testNewest},
		{"duplicates", testDuplicates},
		{"moved", testMoved},
		{"late", testLate},
		{"expired", testExpired},
		{"skipped types", testSkippedTypes},
		{"trends", testTrends},
		{"late trends", testLateTrends},
		{"changing type", testChangingType},
		{"marks", testMarks},
		{"replay", testReplay},
		{"concurrent", testConcurrent},
		{"cancelled", testCancelled},
		{"completions", testCompletions},
		{"error of fn", testReaderError},
		{"large batch", testLargeBatch},
	} {
		for _, again := range []bool{false, true} {
			if again && reopen == nil {
				continue
			}
			name := test.name
			if again {
				name += " reopened"
			}
			t.Run(name, func(t *testing.T) {
				e := open(t)
				if again {
					e = &reopening{Engine: e, t: t, reopen: reopen}
				}
				test.run(t, e)
				if r, ok := e.(*reopening); ok {
					e = r.Engine
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if err := e.Close(); err != nil {
					t.Errorf("the second Close: %v", err)
				}
				if _, err := e.Append(context.Background(), model.NewBatch()); !errors.Is(err, storage.ErrClosed) {
					t.Errorf("Append after Close: %v, expected ErrClosed", err)
				}
			})
		}
	}
}

// reopening is an engine that is closed and opened again after every Append.
type reopening struct {
	storage.Engine
	t      *testing.T
	reopen func(t *testing.T, e storage.Engine) storage.Engine
}

func (r *reopening) Append(ctx context.Context, b *model.Batch) (model.LSN, error) {
	lsn, err := r.Engine.Append(ctx, b)
	r.Engine = r.reopen(r.t, r.Engine)
	return lsn, err
}

// as finds an optional interface.
func as[T any](t *testing.T, e storage.Engine) T {
	t.Helper()
	if r, ok := e.(*reopening); ok {
		e = r.Engine
	}
	x, ok := e.(T)
	if !ok {
		t.Fatalf("%T does not implement %T", e, &x)
	}
	return x
}

// Append appends a batch and waits until it is durable.
func Append(t testing.TB, e storage.Engine, b *model.Batch) model.LSN {
	t.Helper()
	c := model.NewCompletion()
	b.Done = append(b.Done, c)
	lsn, err := e.Append(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Done) != 0 {
		t.Error("Append left completions in the batch")
	}
	<-c.Done()
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	return lsn
}

// Value is a value as a reader sees it, comparable.
type Value struct {
	Item model.ItemID
	Type model.ValueType
	At   int64
	Bits uint64
	Text string
}

// String shows the value.
func (v Value) String() string {
	return fmt.Sprintf("item %d %v at base%+d: %#x %q", v.Item, v.Type, v.At-Base, v.Bits, v.Text)
}

// Collect reads a query's values and checks that each item's rise in time.
func Collect(t testing.TB, e storage.Engine, q storage.Query) []Value {
	t.Helper()
	var all []Value
	err := e.Read(context.Background(), q, func(c *model.Columns) error {
		for i, at := range c.At {
			v := Value{Item: c.Item, Type: c.Type, At: at, Bits: c.Bits[i]}
			if c.Type.InArena() {
				v.Bits, v.Text = 0, string(c.Bytes(i))
			}
			if n := len(all); n > 0 && all[n-1].Item == v.Item && all[n-1].At >= v.At {
				t.Errorf("%v comes behind %v", v, all[n-1])
			}
			all = append(all, v)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// All is a query for everything of some items.
func All(items ...model.ItemID) storage.Query {
	return storage.Query{Items: items, Range: model.TimeRange{From: math.MinInt64, To: math.MaxInt64}}
}

// Compare reports the first differences of two lists of values.
func Compare(t testing.TB, got, want []Value) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("%d values, expected %d", len(got), len(want))
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("value %d is missing: %v", i, want[i])
		case i >= len(want):
			t.Fatalf("value %d is too many: %v", i, got[i])
		case got[i] != want[i]:
			t.Fatalf("value %d: %v, expected %v", i, got[i], want[i])
		}
	}
}

// rows returns the values of a batch that an engine must now hold.
func rows(b *model.Batch) []Value {
	var all []Value
	for i := range b.Items {
		if b.Flags[i].Skipped() || b.Types[i] > model.Binary {
			continue
		}
		v := Value{Item: b.Items[i], Type: b.Types[i], At: b.At[i], Bits: b.Bits[i]}
		if v.Type.InArena() {
			v.Bits, v.Text = 0, string(b.Bytes(i))
		}
		all = append(all, v)
	}
	slices.SortStableFunc(all, func(a, b Value) int {
		if a.Item != b.Item {
			return int(int64(a.Item) - int64(b.Item))
		}
		return int(a.At - b.At)
	})
	return all
}

// floats and uints are values that are easily spoilt.
var (
	floats = []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1e-320, math.MaxFloat64, math.Inf(1), math.Inf(-1), 1e15 + 0.3}
	nans   = []uint64{0x7FF8000000000001, 0x7FF0000000000002, 0xFFF8000000000000, 0x7FFFFFFFFFFFFFFF}
	uints  = []uint64{0, 1, 1 << 53, 1<<53 + 1, 1 << 63, math.MaxUint64, 12345678901234567890}
)

func testTypes(t *testing.T, e storage.Engine) storage.Engine {
	b := &model.Batch{ArrivedAt: Base}
	at := Base
	next := func() int64 { at += int64(time.Second) + 7; return at }
	for range 3 {
		for _, f := range floats {
			b.AppendFloat(1, next(), f)
		}
		for _, n := range nans {
			b.Append(1, next(), model.Float, n)
		}
		for _, u := range uints {
			b.AppendUint(2, next(), u)
		}
		for i, s := range []string{"", "a", "zwölf\x00\xff", string(make([]byte, model.MaxTextBytes))} {
			b.AppendString(3, next(), model.Text, s)
			b.AppendString(4, next(), model.Character, s[:min(len(s), 255)])
			b.AppendBytes(5, next(), model.Binary, []byte(s))
			b.AppendLog(6, next(), model.Log{At: int64(i), Severity: 4, EventID: uint32(i), Source: "src", Text: s[:min(len(s), 60000)]})
		}
	}
	for _, at := range []int64{-5, 0, 5} {
		b.AppendUint(7, Base+at, uint64(at))
	}
	Append(t, e, b)
	for i, f := range b.Flags {
		if f != 0 {
			t.Errorf("row %d has flags %b", i, f)
		}
	}
	Compare(t, Collect(t, e, All(1, 2, 3, 4, 5, 6, 7)), rows(b))
	return e
}

// fill appends n values of one item, 10 s apart from Base on, in several batches.
func fill(t *testing.T, e storage.Engine, item model.ItemID, n int) []Value {
	var all []Value
	const parts = 4
	for p := range parts {
		b := &model.Batch{ArrivedAt: Base}
		for i := p * n / parts; i < (p+1)*n/parts; i++ {
			b.AppendFloat(item, Base+int64(i)*int64(10*time.Second), float64(i%17))
		}
		Append(t, e, b)
		all = append(all, rows(b)...)
	}
	return all
}

func testRanges(t *testing.T, e storage.Engine) storage.Engine {
	all := fill(t, e, 9, 3000)
	for _, r := range []model.TimeRange{
		{From: Base, To: Base + 1},
		{From: Base + 1, To: Base + 2},
		{From: all[100].At, To: all[200].At},
		{From: all[100].At + 1, To: all[200].At + 1},
		{From: all[2999].At, To: math.MaxInt64},
		{From: math.MinInt64, To: all[0].At},
		{From: all[7].At, To: all[7].At},
		{From: all[8].At, To: all[7].At},
		{From: all[1000].At, To: all[2500].At},
	} {
		var want []Value
		for _, v := range all {
			if r.Contains(v.At) {
				want = append(want, v)
			}
		}
		Compare(t, Collect(t, e, storage.Query{Items: []model.ItemID{8, 9}, Range: r}), want)
	}
	return e
}

func testNewest(t *testing.T, e storage.Engine) storage.Engine {
	all := fill(t, e, 9, 3000)
	late := &model.Batch{}
	late.AppendFloat(9, all[2998].At+1, 1)
	Append(t, e, late)
	all = slices.Insert(all, 2999, rows(late)...)
	for _, n := range []int{1, 2, 3, 10, 999, 1500, 3000, 5000} {
		q := All(9)
		q.Newest = n
		Compare(t, Collect(t, e, q), all[max(len(all)-n, 0):])
		q.Range = model.TimeRange{From: all[50].At, To: all[500].At}
		Compare(t, Collect(t, e, q), all[max(500-n, 50):500])
	}
	return e
}
