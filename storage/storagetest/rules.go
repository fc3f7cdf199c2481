package storagetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"
	"testing"
	"time"

	"tidemark/model"
	"tidemark/storage"
)

func testDuplicates(t *testing.T, e storage.Engine) storage.Engine {
	all := fill(t, e, 9, 2000)
	text := &model.Batch{}
	for i := range 100 {
		text.AppendString(10, Base+int64(i), model.Text, fmt.Sprint("line ", i))
	}
	Append(t, e, text)
	all = append(all, rows(text)...)
	again := &model.Batch{}
	for _, v := range all {
		if v.Type == model.Text {
			again.AppendString(v.Item, v.At, v.Type, v.Text)
		} else {
			again.Append(v.Item, v.At, v.Type, v.Bits)
		}
	}
	Append(t, e, again)
	for i, f := range again.Flags {
		if f != model.Duplicate {
			t.Fatalf("row %d sent again has flags %b, expected Duplicate", i, f)
		}
		if again.At[i] != all[i].At {
			t.Fatalf("row %d sent again was moved", i)
		}
	}
	Compare(t, Collect(t, e, All(9, 10)), all)
	return e
}

func testMoved(t *testing.T, e storage.Engine) storage.Engine {
	for round := range 2 { // the second round finds only duplicates
		b := &model.Batch{}
		for i := range 50 {
			b.AppendString(3, Base, model.Text, fmt.Sprint("line ", i))
		}
		b.AppendUint(4, Base, 1)
		b.AppendUint(4, Base, 2)
		b.AppendUint(4, Base+1, 3)
		b.AppendFloat(5, Base, 0)
		b.AppendFloat(5, Base, math.Copysign(0, -1))
		Append(t, e, b)
		for i, f := range b.Flags {
			want := model.Moved
			switch {
			case round == 1:
				want = model.Duplicate
			case i == 0 || i == 50 || i == 53:
				want = 0
			case i == 52: // Base+1 is taken by the one moved there
				want = model.Moved
			}
			if f != want {
				t.Errorf("round %d row %d has flags %b, expected %b", round, i, f, want)
			}
		}
		if round == 0 && (b.At[49] != Base+49 || b.At[51] != Base+1 || b.At[52] != Base+2) {
			t.Errorf("moved to %d %d %d", b.At[49]-Base, b.At[51]-Base, b.At[52]-Base)
		}
		if got := Collect(t, e, All(3, 4, 5)); len(got) != 55 {
			t.Errorf("%d values, expected 55", len(got))
		}
	}
	return e
}

func testLate(t *testing.T, e storage.Engine) storage.Engine {
	all := fill(t, e, 9, 2000)
	for round := range 3 {
		b := &model.Batch{}
		for i := round; i < 1990; i += 7 {
			b.AppendFloat(9, all[0].At+int64(i)*int64(10*time.Second)+int64(round)+1, float64(round))
		}
		b.AppendFloat(9, all[0].At-1-int64(round), 7)
		Append(t, e, b)
		for i, f := range b.Flags {
			if f != model.Late {
				t.Fatalf("row %d has flags %b, expected Late", i, f)
			}
		}
		all = append(all, rows(b)...)
		Append(t, e, b) // once more: duplicates
		for i, f := range b.Flags {
			if f&model.Duplicate == 0 {
				t.Fatalf("row %d sent again has flags %b, expected Duplicate", i, f)
			}
		}
	}
	byTime := map[int64]Value{}
	for _, v := range all {
		byTime[v.At] = v
	}
	got := Collect(t, e, All(9))
	if len(got) != len(byTime) {
		t.Errorf("%d values, expected %d", len(got), len(byTime))
	}
	for _, v := range got {
		if byTime[v.At] != v {
			t.Errorf("%v, expected %v", v, byTime[v.At])
		}
	}
	return e
}

func testExpired(t *testing.T, e storage.Engine) storage.Engine {
	b := &model.Batch{}
	for _, at := range []int64{0, 1_000_000_000, Now() - int64(Retention) - 1, Now() - int64(Retention), Base} {
		b.AppendUint(2, at, 5)
	}
	Append(t, e, b)
	for i, f := range b.Flags {
		if (f&model.Expired != 0) != (i < 3) {
			t.Errorf("row %d has flags %b", i, f)
		}
	}
	if got := Collect(t, e, All(2)); len(got) != 2 {
		t.Errorf("%d values, expected 2", len(got))
	}
	return e
}

func testSkippedTypes(t *testing.T, e storage.Engine) storage.Engine {
	b := &model.Batch{}
	b.AppendString(2, Base, model.Raw, "raw")
	b.AppendString(2, Base+1, model.Unsupported, "cannot")
	b.AppendUint(2, Base+2, 1)
	Append(t, e, b)
	Append(t, e, &model.Batch{})
	if got := Collect(t, e, All(2)); len(got) != 1 || got[0].Bits != 1 {
		t.Errorf("%v, expected only the number", got)
	}
	return e
}

// trendsOf reads all trends of an item.
func trendsOf(t *testing.T, e storage.Engine, q storage.Query) []model.Trend {
	t.Helper()
	var all []model.Trend
	err := e.Trends(context.Background(), q, func(c *storage.TrendColumns) error {
		all = append(all, c.Trends...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func testTrends(t *testing.T, e storage.Engine) storage.Engine {
	b := &model.Batch{}
	for i, v := range []uint64{math.MaxUint64, math.MaxUint64 - 1, 5, 9} {
		b.AppendUint(2, Base+int64(i)*int64(20*time.Minute), v)
	}
	for i, v := range []float64{3, math.NaN(), -1, 2} {
		b.AppendFloat(3, Base+int64(i)*int64(time.Minute), v)
	}
	b.AppendString(4, Base, model.Text, "no number")
	Append(t, e, b)
	got := trendsOf(t, e, All(2))
	want := []model.Trend{
		{
			At: Base, Count: 3, Min: 5, Max: math.MaxUint64, First: math.MaxUint64, Last: 5,
			SumHigh: 2, SumLow: 2, Increase: float64(uint64(math.MaxUint64-1)) + 5,
		},
		{At: Base + storage.Hour, Count: 1, Min: 9, Max: 9, First: 9, Last: 9, SumLow: 9, Increase: 4},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("trends %+v\nexpected %+v", got, want)
	}
	q := All(2)
	q.Newest = 1
	if got := trendsOf(t, e, q); len(got) != 1 || got[0] != want[1] {
		t.Errorf("newest trend %+v, expected %+v", got, want[1])
	}
	q = storage.Query{Items: []model.ItemID{2}, Range: model.TimeRange{From: Base + 1, To: Base + 2*storage.Hour}}
	if got := trendsOf(t, e, q); len(got) != 1 || got[0] != want[1] {
		t.Errorf("trends of the second hour %+v, expected %+v", got, want[1])
	}
	float := model.Trend{
		At: Base, Count: 3, Min: math.Float64bits(-1), Max: math.Float64bits(3), First: math.Float64bits(3),
		Last: math.Float64bits(2), Sum: 4, Increase: -1 + 3,
	}
	if got := trendsOf(t, e, All(3)); len(got) != 1 || got[0] != float {
		t.Errorf("trends %+v, expected %+v", got, float)
	}
	if got := trendsOf(t, e, All(4, 5)); len(got) != 0 {
		t.Errorf("trends of a text: %+v", got)
	}
	return e
}

func testLateTrends(t *testing.T, e storage.Engine) storage.Engine {
	add := func(at time.Duration, v uint64) {
		b := &model.Batch{}
		b.AppendUint(2, Base+int64(at), v)
		Append(t, e, b)
	}
	add(time.Minute, 10)
	add(time.Hour+time.Minute, 20)
	add(2*time.Hour+time.Minute, 30)
	add(30*time.Minute, 15)          // corrects the first hour and the increase of the second
	add(2*time.Hour+time.Second, 28) // late within the running hour
	add(30*time.Minute, 15)          // a duplicate changes nothing
	add(2*time.Hour+2*time.Minute, 33)
	want := []model.Trend{
		{At: Base, Count: 2, Min: 10, Max: 15, First: 10, Last: 15, SumLow: 25, Increase: 5},
		{At: Base + storage.Hour, Count: 1, Min: 20, Max: 20, First: 20, Last: 20, SumLow: 20, Increase: 5},
		{At: Base + 2*storage.Hour, Count: 3, Min: 28, Max: 33, First: 28, Last: 33, SumLow: 91, Increase: 13},
	}
	got := trendsOf(t, e, All(2))
	if len(got) != len(want) {
		t.Fatalf("%d trends, expected %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("trend %d is %+v\nexpected %+v", i, got[i], want[i])
		}
	}
	return e
}

func testChangingType(t *testing.T, e storage.Engine) storage.Engine {
	b := &model.Batch{}
	for i := range 300 {
		at := Base + int64(i)*int64(time.Second)
		switch i / 20 % 3 {
		case 0:
			b.AppendUint(2, at, uint64(i))
		case 1:
			b.AppendFloat(2, at, float64(i))
		case 2:
			b.AppendString(2, at, model.Text, fmt.Sprint(i))
		}
	}
	Append(t, e, b)
	Compare(t, Collect(t, e, All(2)), rows(b))
	return e
}

func testMarks(t *testing.T, e storage.Engine) storage.Engine {
	want := map[string]model.Mark{}
	for i := range 20 {
		b := &model.Batch{}
		if i%2 == 0 {
			b.AppendUint(2, Base+int64(i), uint64(i))
		}
		m := model.Mark{Key: fmt.Sprint("session/1/", i%7), Value: fmt.Sprint(i), At: Base + int64(i)}
		b.Marks = append(b.Marks, m)
		want[m.Key] = m
		Append(t, e, b)
	}
	got := map[string]model.Mark{}
	as[storage.Marker](t, e).Marks(func(m model.Mark) { got[m.Key] = m })
	if !maps.Equal(got, want) {
		t.Errorf("marks %v\nexpected %v", got, want)
	}
	return e
}

func testReplay(t *testing.T, e storage.Engine) storage.Engine {
	var lsns []model.LSN
	for i := range 10 {
		b := &model.Batch{ArrivedAt: Base + int64(i)}
		b.AppendUint(2, Base+int64(i/2), uint64(i))
		b.AppendString(3, Base+int64(i), model.Text, fmt.Sprint("line ", i))
		b.AppendString(3, Base+int64(i), model.Text, fmt.Sprint("line ", i)) // a duplicate is not replayed
		lsns = append(lsns, Append(t, e, b))
	}
	r := as[storage.Replayer](t, e)
	if r.LastLSN() < lsns[9] {
		t.Errorf("last LSN %d, expected at least %d", r.LastLSN(), lsns[9])
	}
	for from := range lsns {
		k := from + 1
		err := r.Replay(context.Background(), lsns[from], func(lsn model.LSN, b *model.Batch) error {
			if k >= len(lsns) {
				return fmt.Errorf("a record at LSN %d too many", lsn)
			}
			if lsn != lsns[k] || b.Len() != 2 || b.Bits[0] != uint64(k) || b.ArrivedAt != Base+int64(k) || string(b.Bytes(1)) != fmt.Sprint("line ", k) {
				return fmt.Errorf("record at LSN %d (expected %d): %+v", lsn, lsns[k], b)
			}
			if moved := b.Flags[0]&model.Moved != 0; moved != (k%2 == 1 || k > 1) {
				return fmt.Errorf("record %d has flags %b", k, b.Flags[0])
			}
			k++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if k != len(lsns) {
			t.Errorf("replay from %d ended at record %d of %d", from, k, len(lsns))
		}
	}
	if err := r.Replay(context.Background(), 0, func(model.LSN, *model.Batch) error { return errTest }); !errors.Is(err, errTest) {
		t.Errorf("error of fn: %v", err)
	}
	r.Release(lsns[9])
	return e
}

var errTest = errors.New("test")

func testConcurrent(t *testing.T, e storage.Engine) storage.Engine {
	if _, ok := e.(*reopening); ok {
		return e // an engine cannot be opened again under its users
	}
	const writers, batches, perBatch = 8, 20, 50
	var wg sync.WaitGroup
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				Collect(t, e, All(1, 2, 3, 4))
				trendsOf(t, e, All(1, 2, 3, 4))
			}
		}
	})
	for w := range writers {
		wg.Go(func() {
			for i := range batches {
				b := &model.Batch{}
				for k := range perBatch {
					// Two writers share an item, so that order differs but not the set of values.
					at := Base + int64(i*perBatch+k)*int64(time.Second)
					b.AppendUint(model.ItemID(1+w/2), at+int64(w%2), uint64(w)<<32|uint64(i*perBatch+k))
				}
				Append(t, e, b)
			}
		})
	}
	wg.Wait()
	close(stop)
	reader.Wait()
	if got := Collect(t, e, All(1, 2, 3, 4)); len(got) != writers*batches*perBatch {
		t.Errorf("%d values, expected %d", len(got), writers*batches*perBatch)
	}
	return e
}

func testCancelled(t *testing.T, e storage.Engine) storage.Engine {
	fill(t, e, 9, 100)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b := &model.Batch{}
	b.AppendUint(2, Base, 1)
	c := model.NewCompletion()
	b.Done = append(b.Done, c)
	if r, ok := e.(*reopening); ok {
		e = r.Engine
	}
	if _, err := e.Append(ctx, b); !errors.Is(err, context.Canceled) {
		t.Errorf("Append with a cancelled context: %v", err)
	}
	if len(b.Done) != 1 {
		t.Error("a failed Append took the completion")
	}
	if err := e.Read(ctx, All(9), func(*model.Columns) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("Read with a cancelled context: %v", err)
	}
	if err := e.Trends(ctx, All(9), func(*storage.TrendColumns) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("Trends with a cancelled context: %v", err)
	}
	if got := Collect(t, e, All(2)); len(got) != 0 {
		t.Errorf("a failed Append stored %v", got)
	}
	return e
}

// testCompletions relies on Completion's panic when it is finished too often.
func testCompletions(t *testing.T, e storage.Engine) storage.Engine {
	var all []*model.Completion
	for i := range 50 {
		b := &model.Batch{}
		b.AppendUint(2, Base+int64(i/2), uint64(i/2)) // every second one is a duplicate
		shared := model.NewCompletion()
		shared.Add(2)
		b.Done = append(b.Done, shared, shared, shared, model.NewCompletion())
		all = append(all, b.Done...)
		if _, err := e.Append(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range all {
		<-c.Done()
		if c.Err() != nil {
			t.Fatal(c.Err())
		}
	}
	return e
}

func testReaderError(t *testing.T, e storage.Engine) storage.Engine {
	fill(t, e, 9, 2000)
	calls := 0
	err := e.Read(context.Background(), All(9, 9), func(*model.Columns) error { calls++; return errTest })
	if !errors.Is(err, errTest) || calls != 1 {
		t.Errorf("error %v after %d calls, expected the reader's after one", err, calls)
	}
	return e
}

func testLargeBatch(t *testing.T, e storage.Engine) storage.Engine {
	b := &model.Batch{}
	for i := range 30_000 {
		b.AppendUint(model.ItemID(1+i%3), Base+int64(i)*int64(time.Millisecond), uint64(i)*0x9E3779B97F4A7C15)
	}
	for i := range 300 {
		b.AppendString(9, Base+int64(i), model.Text, fmt.Sprintf("%d %0*d", i, 20_000, i))
	}
	Append(t, e, b)
	Compare(t, Collect(t, e, All(1, 2, 3, 9)), rows(b))
	return e
}
