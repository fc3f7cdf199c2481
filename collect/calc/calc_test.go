package calc

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/collect/poller"
	"tidemark/expr"
	"tidemark/model"
)

// world holds items with one value each.
type world struct {
	revision    uint64
	items       map[expr.Ref]*model.Item
	values      map[model.ItemID]float64
	at          int64
	unsupported map[model.ItemID]bool
	asks        map[string]int
	matched     int
}

func newWorld() *world {
	return &world{
		items: map[expr.Ref]*model.Item{}, values: map[model.ItemID]float64{}, unsupported: map[model.ItemID]bool{}, asks: map[string]int{},
		at: time.Now().UnixNano() - int64(time.Second),
	}
}

func (w *world) add(id model.ItemID, host, key string, v float64) {
	w.revision++
	w.items[expr.Ref{Host: host, Key: key}] = &model.Item{ID: id, Key: key, ValueType: model.Float}
	w.values[id] = v
}

func (w *world) Revision() uint64 { return w.revision }

func (w *world) HostName(id model.HostID) (string, bool) { return fmt.Sprintf("h%d", id), true }

func (w *world) ItemByKey(host, key string) (model.ItemID, model.ValueType, bool) {
	i := w.items[expr.Ref{Host: host, Key: key}]
	if i == nil {
		return 0, 0, false
	}
	return i.ID, i.ValueType, true
}

func (w *world) Match(q *expr.Query, fn func(model.ItemID, model.ValueType, string) bool) {
	w.matched++
	for _, ref := range slices.SortedFunc(maps.Keys(w.items), func(a, b expr.Ref) int { return strings.Compare(a.String(), b.String()) }) {
		i := w.items[ref]
		if q.MatchHost(ref.Host) && q.MatchKey(ref.Key) && q.Match([]string{"all"}, nil) && !fn(i.ID, i.ValueType, ref.Key) {
			return
		}
	}
}

func (w *world) Unsupported(id model.ItemID) bool { return w.unsupported[id] }

func (w *world) Ask(item model.ItemID, _ model.ValueType, span time.Duration, count int) {
	w.asks[fmt.Sprintf("%d %s #%d", item, span, count)]++
}

func (w *world) Release(item model.ItemID, span time.Duration, count int) {
	key := fmt.Sprintf("%d %s #%d", item, span, count)
	if w.asks[key]--; w.asks[key] == 0 {
		delete(w.asks, key)
	}
}

func (w *world) Last(_ context.Context, item model.ItemID, n int, at int64, dst *expr.Sample) (bool, error) {
	v, ok := w.values[item]
	*dst = expr.Sample{At: w.at, Type: model.Float, Bits: math.Float64bits(v)}
	return ok && n == 1 && at >= w.at, nil
}

func (w *world) First(ctx context.Context, item model.ItemID, r expr.Range, dst *expr.Sample) (bool, error) {
	return w.Last(ctx, item, 1, r.To-1, dst)
}

func (w *world) Summary(_ context.Context, item model.ItemID, _ expr.Range, _ expr.Aggregate, dst *expr.Summary) error {
	*dst = expr.Summary{}
	if v, ok := w.values[item]; ok {
		*dst = expr.Summary{Count: 1, Sum: v, Min: v, Max: v}
	}
	return nil
}

func (w *world) Read(_ context.Context, item model.ItemID, _ expr.Range, dst *model.Columns) error {
	*dst = model.Columns{Item: item, Type: model.Float, At: []int64{w.at}, Bits: []uint64{math.Float64bits(w.values[item])}}
	return nil
}

func check(t *testing.T, c *Checker, id model.ItemID, formula string) string {
	t.Helper()
	results := make([]poller.Result, 1)
	c.Check(t.Context(), []*poller.Task{{Item: &model.Item{ID: id, HostID: 1, Type: model.Calculated, Params: formula}}}, results)
	if results[0].Outcome == poller.NotSupported {
		return "not supported: " + string(results[0].Text)
	}
	return string(results[0].Text)
}

// A formula that cannot be read is quoted in part, which could be of a secret.
func TestCheck_secrets(t *testing.T) {
	results := make([]poller.Result, 1)
	item := &model.Item{
		ID: 1, HostID: 1, Type: model.Calculated, Params: "1 + hunter 2", Collect: &model.Collect{Secrets: []model.Macro{{Name: "{$PW}", Value: "hunter 2"}}},
	}
	New(Options{Items: newWorld()}).Check(t.Context(), []*poller.Task{{Item: item}}, results)
	if text := string(results[0].Text); results[0].Outcome != poller.NotSupported || strings.Contains(text, "hunter") || !strings.Contains(text, "the reason is not shown") {
		t.Errorf("the reason is %q", text)
	}
}

func TestCheck(t *testing.T) {
	w := newWorld()
	w.add(1, "h1", "a", 3)
	w.add(2, "h1", "net[eth0,in]", 10)
	w.add(3, "h2", "net[eth1,in]", 20)
	w.add(4, "h2", "bad", 0)
	w.unsupported[4] = true
	c := New(Options{Items: w, Values: w})
	f := func(formula, want string) {
		t.Helper()
		if got := check(t, c, 100, formula); got != want {
			t.Errorf("%s: %s, want %s", formula, got, want)
		}
	}
	f("last(//a)*2", "6")
	f("last(/h2/net[eth1,in])-last(//a)", "17")
	f("avg(//a,5m)", "3")
	f("sum(last_foreach(/*/net[*,in]))", "30")
	f(`sum(last_foreach(/*/net[*,in]?[group="none"]))`, "not supported: the formula cannot be evaluated: not enough values in the period")
	f("count(last_foreach(//net[*,in]))", "1")
	f("nodata(//a,1m)", "0")
	f("concat(last(//a),\"!\")", "3!")
	f("last(/h2/bad)", "not supported: the formula cannot be evaluated: last(/h2/bad): the item is not supported")
	f("last(//none)", "not supported: the formula cannot be evaluated: item //none does not exist")
	f("last(//a", "not supported: the formula cannot be evaluated: column 9: expected , or ) in the arguments of last, found the end")
	f("", "not supported: the formula cannot be evaluated: it is empty")
	f("last_foreach(/*/a?[x=1])", "not supported: the formula cannot be evaluated: /*/a?[x=1]: column 1: expected group or tag in a filter, found 'x'")
	f("trendavg(//a,1h:now/h)", "not supported: the formula cannot be evaluated: trendavg(//a,1h:now/h): there are no trends here")
	if len(w.asks) != 1 {
		t.Errorf("the last formula alone asks, but %v are asked for", w.asks)
	}
	c.Forget([]model.ItemID{100, 7})
	if len(w.asks) != 0 || len(c.Formulas()) != 0 {
		t.Errorf("after the item is gone %v are asked for", w.asks)
	}
}

// TestChanges checks that formulas follow the configuration.
func TestChanges(t *testing.T) {
	w := newWorld()
	c := New(Options{Items: w, Values: w})
	const formula, many = "last(//a)", "sum(last_foreach(/*/a))"
	if got := check(t, c, 1, formula); !strings.Contains(got, "does not exist") {
		t.Fatal(got)
	}
	if got := check(t, c, 2, many); !strings.Contains(got, "not enough values") {
		t.Fatal(got)
	}
	w.add(5, "h1", "a", 8)
	if got := check(t, c, 1, formula); got != "8" {
		t.Errorf("after the item came: %s", got)
	}
	before := w.matched
	for range 3 {
		check(t, c, 2, many)
	}
	if w.matched != before {
		t.Errorf("the pattern was looked for %d times within %s", w.matched-before, manyEvery)
	}
	c.formulas[2].manyAt = time.Now().Add(-manyEvery)
	if got := check(t, c, 2, many); got != "8" || w.matched != before+1 {
		t.Errorf("later: %s, looked for %d times", got, w.matched-before)
	}
	// Nothing changes: nothing is looked for again.
	c.formulas[2].manyAt = time.Now().Add(-manyEvery)
	check(t, c, 2, many)
	if w.matched != before+1 {
		t.Errorf("looked for %d times", w.matched-before)
	}
	if fmt.Sprint(w.asks) != "map[5 0s #1:2]" {
		t.Errorf("asked for %v", w.asks)
	}
}

func BenchmarkCheck(b *testing.B) {
	w := newWorld()
	for i := range 1000 {
		w.add(model.ItemID(i+1), fmt.Sprintf("h%d", i), "a", float64(i))
	}
	c := New(Options{Items: w, Values: w})
	for name, text := range map[string]string{"one": "last(//a)*8", "foreach1000": "avg(last_foreach(/*/a))"} {
		b.Run(name, func(b *testing.B) {
			task := []*poller.Task{{Item: &model.Item{ID: 5000, HostID: 1, Params: text}}}
			results := make([]poller.Result, 1)
			b.ReportAllocs()
			for b.Loop() {
				c.Check(b.Context(), task, results)
				if results[0].Outcome != poller.Value {
					b.Fatal(string(results[0].Text))
				}
			}
		})
	}
}
