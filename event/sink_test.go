package event

import (
	"errors"
	"slices"
	"testing"
	"time"

	"tidemark/model"
)

// sink keeps the ids it was told of.
type sink struct{ ids []model.EventID }

func (s *sink) Put(events []model.Event) {
	for _, e := range events {
		s.ids = append(s.ids, e.ID)
	}
}

func TestRecord_tellsSinkOnce(t *testing.T) {
	m := &memory{err: nil}
	told := &sink{}
	l, err := Open(t.Context(), Options{Store: m, Objects: m, Sink: told, Now: func() time.Time { return time.Unix(200, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	m.err = errors.New("full")
	if err := l.Record(t.Context(), 1, []model.StateChange{problem(1, 100)}); err == nil {
		t.Fatal("Record did not tell the error of the store")
	}
	if len(told.ids) != 0 {
		t.Errorf("told of %v before they were stored", told.ids)
	}
	m.err = nil
	if err := l.Record(t.Context(), 2, []model.StateChange{recovery(1, 101)}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(told.ids, []model.EventID{1, 2}) {
		t.Errorf("told of %v, want 1 and 2 once each", told.ids)
	}
}

func TestMacros(t *testing.T) {
	m := &memory{triggers: map[model.TriggerID]model.Trigger{1: {ID: 1, Name: "load", Expression: "last(/web/k)>5", Severity: model.High}}}
	l, _ := open(t, m)
	f := func(trigger model.TriggerID, macro, want string) {
		t.Helper()
		e := model.Event{ID: 9, TriggerID: trigger, At: 150 * second, Problem: true, Severity: model.High, Name: "load"}
		if got := l.Macros(t.Context(), &e)(macro); got != want {
			t.Errorf("%s = %q, want %q", macro, got, want)
		}
	}
	f(1, "{HOST.NAME}", "WEB")
	f(1, "{ITEM.VALUE1}", "4 KB")
	f(1, "{TRIGGER.NAME}", "load")
	f(1, "{HOST.CONN}", "10.0.0.1")
	f(1, "{HOST.PORT1}", "10050")
	f(1, "{HOST.DNS}", "*UNKNOWN*")
	f(1, "{EVENT.NSEVERITY}", "4")
	f(1, "{?last(//k)}", "<last(/web/k)@150>")
	f(1, "{ACTION.NAME}", "{ACTION.NAME}")
	f(1, "{}", "{}")
	f(2, "{HOST.NAME}", "*UNKNOWN*")
	f(2, "{TRIGGER.NAME}", "load")
}

func TestAddTags(t *testing.T) {
	m := &memory{triggers: map[model.TriggerID]model.Trigger{1: {ID: 1, Tags: []model.Tag{{Name: "a", Value: "b"}}}}}
	l, _ := open(t, m)
	if err := l.Record(t.Context(), 1, []model.StateChange{problem(1, 100)}); err != nil {
		t.Fatal(err)
	}
	before := l.Problems()
	changed, unsubscribe := l.Subscribe()
	defer unsubscribe()
	l.AddTags(1, []model.Tag{{Name: "a", Value: "b"}, {Name: "ticket", Value: "T-1"}})
	l.AddTags(9, []model.Tag{{Name: "x"}})
	select {
	case <-changed:
	default:
		t.Error("the subscriber heard nothing")
	}
	if now := l.Problems(); len(before[0].Tags) != 1 || len(now[0].Tags) != 2 {
		t.Errorf("tags %v, then %v", before[0].Tags, now[0].Tags)
	}
	if err := l.Record(t.Context(), 2, []model.StateChange{recovery(1, 101)}); err != nil {
		t.Fatal(err)
	}
	if e := m.records[len(m.records)-1].Events[0]; len(e.Tags) != 2 {
		t.Errorf("tags of the recovery: %v", e.Tags)
	}
}
