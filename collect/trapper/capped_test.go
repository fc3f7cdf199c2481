package trapper

import (
	"strings"
	"testing"
)

// TestCapped: while the history cache is nearly full agents are asked to keep their values, and lose none; senders, which could not
// keep them, are served.
func TestCapped(t *testing.T) {
	capped := true
	h := start(t, Options{Capped: func() bool { return capped }})
	values := agentData(token, `{"id":1,"itemid":12,"value":"1"}`)
	checks := `{"request":"active checks","host":"h1","version":"7.0","session":"` + token + `"}`
	got := h.ask(values)
	if want := `{"response":"failed","info":"data collection is paused: the history cache is nearly full","upload":"disabled"}`; got != want {
		t.Errorf("answer to values %s, expected %s", got, want)
	}
	if rows := h.sink.taken(); len(rows) != 0 {
		t.Errorf("%d rows were taken", len(rows))
	}
	if got := h.ask(checks); !strings.HasPrefix(got, `{"response":"success","upload":"disabled"`) {
		t.Errorf("answer to active checks %s", got)
	}
	if got := h.counts(`{"request":"sender data","data":[{"host":"h1","key":"trap.f","value":"1"}]}`); got.Total != 1 || got.Processed != 1 {
		t.Errorf("a sender got %+v", got)
	}
	capped = false
	if got := h.ask(checks); strings.Contains(got, "upload") {
		t.Errorf("answer to active checks after the cache has room: %s", got)
	}
	if got := h.counts(values); got.Processed != 1 || got.Failed != 0 {
		t.Errorf("the same values again: %+v", got)
	}
}
