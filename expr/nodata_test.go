package expr

import (
	"testing"
	"time"

	"tidemark/model"
)

// Values that come by a proxy are missing only once the proxy has sent all that is older; a strict nodata does not wait.
func TestNodata_proxy(t *testing.T) {
	f := func(text string, item Item, want float64, wantKnown bool) {
		t.Helper()
		e, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		item.ID, item.Type = 1, model.Float
		m := Machine{Values: sliceValues{batch: historyBatch()}, Zone: time.UTC}
		r := m.Evaluate(t.Context(), e.Program, []Item{item}, Moment{At: 1001 * second, Now: 1001 * second})
		if known := r.Failure.Code == FailNone; known != wantKnown || known && r.Value != want {
			t.Errorf("%s with %+v: %v, known %v, want %v, %v", text, item, r.Value, known, want, wantKnown)
		}
	}
	const plain, strict = "nodata(/h/f,10s)", "nodata(/h/f,10s,strict)"
	old := Item{NewestAt: 980 * second, Since: 1}
	f(plain, old, 1, true)
	behind := old
	behind.ProxySince = 995 * second
	f(plain, behind, 0, false)
	f(strict, behind, 1, true)
	silent := old
	silent.Lag = 15 * time.Second
	f(plain, silent, 0, true)
	f(strict, silent, 1, true)
	silent.Lag = 5 * time.Second
	f(plain, silent, 1, true)
}
