package confdb

import (
	"context"
	"reflect"
	"testing"

	"tidemark/model"
)

func record3(t *testing.T, d *DB) {
	t.Helper()
	events := []model.Event{
		{ID: 1, TriggerID: 10, HostID: 1, At: 1000, Problem: true, Severity: model.High, Name: "Disk 90% full", Tags: []model.Tag{{Name: "a", Value: "b"}}},
		{ID: 2, TriggerID: 11, HostID: 2, At: 2000, Problem: true, Severity: model.Warning, Name: "Load_high", OpData: "7"},
		{ID: 3, TriggerID: 10, HostID: 1, At: 3000, Name: "Disk 90% full", Severity: model.High, ProblemID: 1},
	}
	states := []model.TriggerState{{TriggerID: 10, ChangedAt: 3000}, {TriggerID: 11, Problem: true, ChangedAt: 2000, OpenProblem: 2}}
	if err := d.Record(context.Background(), events, states, 77); err != nil {
		t.Fatal(err)
	}
}

func TestRecord_readBack(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	record3(t, d)
	open, err := d.OpenProblems(ctx)
	if err != nil || len(open) != 1 || open[0].ID != 2 || open[0].OpData != "7" || !open[0].Problem {
		t.Errorf("OpenProblems = %+v, %v", open, err)
	}
	states, err := d.TriggerStates(ctx)
	want := []model.TriggerState{{TriggerID: 10, ChangedAt: 3000}, {TriggerID: 11, Problem: true, ChangedAt: 2000, OpenProblem: 2}}
	if err != nil || !reflect.DeepEqual(states, want) {
		t.Errorf("TriggerStates = %+v, %v, want %+v", states, err, want)
	}
	if err := d.Record(ctx, nil, []model.TriggerState{{TriggerID: 10, Error: "unknown"}}, 70); err != nil {
		t.Fatal(err)
	}
	if lsn, err := d.Evaluated(ctx); lsn != 77 || err != nil {
		t.Errorf("Evaluated = %d, %v, want 77: it never falls", lsn, err)
	}
	if states, _ := d.TriggerStates(ctx); states[0].Error != "unknown" {
		t.Errorf("state of trigger 10 = %+v, want the newer one", states[0])
	}
	if id, err := d.MaxEventID(ctx); id != 3 || err != nil {
		t.Errorf("MaxEventID = %d, %v, want 3", id, err)
	}
}

func TestRecord_isOneTransaction(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	record3(t, d)
	events := []model.Event{{ID: 4, At: 1, Problem: true}, {ID: 3, At: 1, Problem: true}} // 3 is taken
	if err := d.Record(ctx, events, nil, 99); err == nil {
		t.Fatal("Record took an event twice")
	}
	if id, _ := d.MaxEventID(ctx); id != 3 {
		t.Errorf("MaxEventID = %d after a refused Record, want 3", id)
	}
	if lsn, _ := d.Evaluated(ctx); lsn != 77 {
		t.Errorf("Evaluated = %d after a refused Record, want 77", lsn)
	}
}

// TestRecord_again records once more what a lost connection left in doubt.
func TestRecord_again(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	record3(t, d)
	record3(t, d)
	list, total, err := d.Problems(ctx, ProblemFilter{})
	if err != nil || total != 2 || list[0].ID != 2 || list[0].RecoveredAt != 0 || list[1].RecoveredAt != 3000 {
		t.Errorf("problems after the second time: %d, %+v, %v", total, list, err)
	}
	if events, err := d.Events(ctx, EventFilter{}); err != nil || len(events) != 3 {
		t.Errorf("%d events after the second time, %v, want 3", len(events), err)
	}
}

func TestProblems_filters(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	record3(t, d)
	tests := []struct {
		name  string
		f     ProblemFilter
		ids   []model.EventID
		total int
	}{
		{"all, newest first", ProblemFilter{}, []model.EventID{2, 1}, 2},
		{"open", ProblemFilter{Open: true}, []model.EventID{2}, 1},
		{"host", ProblemFilter{Host: 1}, []model.EventID{1}, 1},
		{"severity", ProblemFilter{MinSeverity: model.Average}, []model.EventID{1}, 1},
		{"severities", ProblemFilter{Severities: []model.Severity{model.Warning, model.Disaster}}, []model.EventID{2}, 1},
		{"search", ProblemFilter{Search: "disk"}, []model.EventID{1}, 1},
		{"search takes % literally", ProblemFilter{Search: "0% f"}, []model.EventID{1}, 1},
		{"search takes _ literally", ProblemFilter{Search: "d_h"}, []model.EventID{2}, 1},
		{"time", ProblemFilter{From: 1500, To: 2001}, []model.EventID{2}, 1},
		{"page", ProblemFilter{Before: 2, Limit: 1}, []model.EventID{1}, 2},
		{"limit", ProblemFilter{Limit: 1}, []model.EventID{2}, 2},
	}
	for _, tt := range tests {
		list, total, err := d.Problems(ctx, tt.f)
		var ids []model.EventID
		for _, p := range list {
			ids = append(ids, p.ID)
		}
		if err != nil || !reflect.DeepEqual(ids, tt.ids) || total != tt.total {
			t.Errorf("%s: %v of %d, %v, want %v of %d", tt.name, ids, total, err, tt.ids, tt.total)
		}
	}
	events, err := d.Events(ctx, EventFilter{Trigger: 10})
	if err != nil || len(events) != 2 || events[0].ID != 3 || events[0].ProblemID != 1 || len(events[1].Tags) != 1 {
		t.Errorf("Events = %+v, %v", events, err)
	}
}

func TestPruneEvents(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	record3(t, d)
	if n, err := d.PruneEvents(ctx, 5000, 10); n != 2 || err != nil {
		t.Fatalf("PruneEvents = %d, %v, want 2", n, err)
	}
	if list, _ := d.OpenProblems(ctx); len(list) != 1 {
		t.Errorf("open problems after pruning: %+v, want the one", list)
	}
	if id, _ := d.MaxEventID(ctx); id != 3 {
		t.Errorf("MaxEventID = %d after pruning, want 3: ids are not given again", id)
	}
}

func TestForgetTriggers(t *testing.T) {
	ctx := context.Background()
	for name, ids := range map[string][]model.TriggerID{"named": {11, 10}, "all that do not exist": nil} {
		d := open(t, t.TempDir())
		record3(t, d)
		if err := d.ForgetTriggers(ctx, ids); err != nil {
			t.Fatal(err)
		}
		if list, _ := d.OpenProblems(ctx); len(list) != 0 {
			t.Errorf("%s: open problems %+v, want none", name, list)
		}
		if states, _ := d.TriggerStates(ctx); len(states) != 0 {
			t.Errorf("%s: states %+v, want none", name, states)
		}
		if list, total, err := d.Problems(ctx, ProblemFilter{}); total != 2 || list[0].RecoveredAt == 0 || list[1].RecoveredAt != 3000 {
			t.Errorf("%s: problems %+v, %v, want both kept", name, list, err)
		}
	}
	d := open(t, t.TempDir())
	importText(t, d, `"hosts":[`+owned("host", "h", "", "k")+`],"triggers":[{"name":"t","expression":"last(/h/k)>0"}]`)
	id := hosts(t, d)["h"].Triggers[0].ID
	err := d.Record(ctx, nil, []model.TriggerState{{TriggerID: id}}, 1)
	if err == nil {
		err = d.ForgetTriggers(ctx, nil)
	}
	if states, _ := d.TriggerStates(ctx); err != nil || len(states) != 1 {
		t.Errorf("states %+v, %v, want that of the trigger that exists", states, err)
	}
}
