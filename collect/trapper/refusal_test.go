package trapper

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

// TestServer_refusal tells peers why nothing is taken, from the moment on that it is so.
func TestServer_refusal(t *testing.T) {
	var fenced atomic.Bool
	h := start(t, Options{Refusal: func() error {
		if fenced.Load() {
			return errors.New("send to the new primary")
		}
		return nil
	}})
	const values = `{"request":"sender data","data":[{"host":"h1","key":"trap.f","value":"1"}]}`
	if got := h.counts(values); got.Processed != 1 {
		t.Errorf("before: %+v", got)
	}
	fenced.Store(true)
	for _, request := range []string{values, `{"request":"active checks","host":"h1"}`, `{"request":"agent data","host":"h1","data":[]}`, `{"request":"proxy config","host":"p"}`} {
		if answer := h.ask(request); !strings.Contains(answer, `"failed"`) || !strings.Contains(answer, "send to the new primary") {
			t.Errorf("%s is answered %s", request, answer)
		}
	}
	if rows := h.sink.taken(); len(rows) != 1 {
		t.Errorf("taken: %v, want the value from before alone", rows)
	}
	if n := h.refused(notPrimary); n != 4 {
		t.Errorf("%d requests counted as refused, want 4", n)
	}
}
