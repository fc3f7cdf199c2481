package server

import (
	"testing"
	"time"

	"tidemark/model"
)

func TestValueSeen(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	last := map[model.ItemID]int64{}
	asked := 0
	v := &valueSeen{
		items: func(model.HostID) []model.ItemID { return []model.ItemID{1, 2} },
		item: func(id model.ItemID) (model.Entry, bool) {
			return model.Entry{ID: id, Interval: time.Duration(id-1) * time.Hour}, true
		},
		lastAt: func(id model.ItemID) int64 { return last[id] },
		stored: func([]model.ItemID) int64 { asked++; return now.Add(-48 * time.Hour).UnixNano() },
		now:    func() time.Time { return now }, hosts: map[model.HostID]valueSeenHost{}, forgotAt: now,
	}
	f := func(what string, wantAge time.Duration, wantFresh bool) {
		t.Helper()
		now = now.Add(valueSeenFor)
		at, fresh := v.Host(7)
		if age := now.Sub(time.Unix(0, at)); fresh != wantFresh || age.Round(time.Minute) != wantAge {
			t.Errorf("%s: %s ago, fresh %v; want %s, %v", what, age, fresh, wantAge, wantFresh)
		}
	}
	f("only stored values", 48*time.Hour, false)
	f("the store is asked once", 48*time.Hour, false)
	if asked != 1 {
		t.Errorf("the store was asked %d times", asked)
	}
	last[1] = now.Add(-20 * time.Hour).UnixNano()
	f("nobody says how often it comes", 20*time.Hour, true)
	last[1], last[2] = now.Add(-30*time.Hour).UnixNano(), now.Add(-2*time.Hour).UnixNano()
	f("comes every hour", 2*time.Hour, true)
	last[1] = now.Add(-time.Minute).UnixNano()
	f("another one is newer", time.Minute, true)
	last[1], last[2] = now.Add(-20*time.Hour).UnixNano(), now.Add(-time.Hour).UnixNano()
	f("the first one is fresh, and not the newest", time.Hour, true)
	last[1], last[2] = now.Add(-30*time.Hour).UnixNano(), now.Add(-4*time.Hour).UnixNano()
	f("four hours late", 4*time.Hour, false)
	last[2] = now.UnixNano()
	if at, fresh := v.Host(7); fresh || at == last[2] {
		t.Error("what was found is not kept for a while")
	}
}
