package requests

import (
	"strings"
	"testing"
	"time"

	"tidemark/catalog"
	"tidemark/model"
	"tidemark/wire/queryplan"
)

// A profile has the newest plan up to the end of its range, and says when the plan changed.
func TestProfile_plan(t *testing.T) {
	h := newHistory(t, time.Hour)
	r := h.store.reader()
	i, err := r.Instance("db 1/" + testAddress)
	if err != nil {
		t.Fatal(err)
	}
	profile := func(id string, to time.Time) *Plan {
		t.Helper()
		p, err := r.Profile(t.Context(), i, id, model.TimeRange{From: h.begin.UnixNano(), To: to.UnixNano()}, 100)
		if err != nil {
			t.Fatal(err)
		}
		return p.Plan
	}
	if p := profile("aa01", h.end); p != nil {
		t.Errorf("a plan that nobody told: %+v", p)
	}
	entries, _, err := h.store.catalog.Declare(t.Context(), 1, "db 1", []catalog.Declaration{{Key: `mongo.plan["` + testAddress + `",aa01]`, ValueType: model.Text, Interval: 10 * time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	put := func(minutes int, text string) {
		h.store.batch.AppendBytes(entries[0].ID, h.begin.Add(time.Duration(minutes)*time.Minute).UnixNano(), model.Text, []byte(text))
	}
	put(10, queryplan.Encode(&queryplan.Plan{Summary: "IXSCAN {a: 1}"}))
	put(20, queryplan.Encode(&queryplan.Plan{Summary: "COLLSCAN", Scans: true}))
	put(30, `{"broken`)
	put(40, queryplan.Encode(&queryplan.Plan{Summary: "COLLSCAN", Scans: true, Rejected: 3}))
	h.store.flush()
	at := func(minutes int) int64 { return h.begin.Add(time.Duration(minutes) * time.Minute).UnixNano() }
	if p := profile("aa01", h.begin.Add(15*time.Minute)); p == nil || p.Summary != "IXSCAN {a: 1}" || p.ChangedAt != 0 {
		t.Errorf("before the change: %+v", p)
	}
	if p := profile("aa01", h.end); p == nil || p.Summary != "COLLSCAN" || p.Rejected != 3 || p.At != at(40) || p.ChangedAt != at(20) || !strings.HasPrefix(p.Before, "IXSCAN") {
		t.Errorf("after the change: %+v", p)
	}
	for _, id := range []string{"aa02", WholeID} {
		if p := profile(id, h.end); p != nil {
			t.Errorf("%s has the plan %+v", id, p)
		}
	}
}
