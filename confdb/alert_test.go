package confdb

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"tidemark/model"
)

func TestAlerts_readBack(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	d := open(t, dir)
	record3(t, d)
	if l, err := d.LoadAlerts(ctx, 0); err != nil || l.LastEvent != 3 || len(l.Escalations) != 0 {
		t.Fatalf("first LoadAlerts = %+v, %v, want to begin behind the newest event", l, err)
	}
	if err := d.Record(ctx, []model.Event{{ID: 4, TriggerID: 12, At: 9, Problem: true, Name: "n"}}, nil, 78); err != nil {
		t.Fatal(err)
	}
	escalation := model.Escalation{
		Action: "a", ProblemID: 2, CurrentID: 2, Step: 2, NextAt: 50, Told: []model.AlertTarget{{Receiver: "r", Media: "m", To: "t"}},
	}
	first := model.Alert{ID: 7, Action: "a", EventID: 2, ProblemID: 2, Step: 1, Receiver: "r", Media: "m", To: "t", Tags: []model.Tag{{Name: "x", Value: "y"}}, Subject: "s", Body: "b", CreatedAt: 5, At: 4, NextAt: 6, Macros: map[string]string{"{HOST.ID}": "1"}}
	second := first
	second.ID, second.State, second.SentAt, second.Together = 8, model.AlertSent, 9, 7
	change := model.AlertChange{LastEvent: 3, Escalations: []model.Escalation{escalation, {Action: "b", ProblemID: 1, CurrentID: 1}}, Alerts: []model.Alert{first, second}, Tags: map[model.EventID][]model.Tag{2: {{Name: "ticket", Value: "T-1"}}, 99: {{Name: "a"}}}}
	if err := d.RecordAlerts(ctx, change); err != nil {
		t.Fatal(err)
	}
	if err := d.PutAlertObjects(ctx, []model.AlertObject{{Kind: "media", Name: "x", Body: []byte(`{}`)}, {Kind: "media", Name: "y", Body: []byte(`{}`)}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(t, dir)
	l, err := d.LoadAlerts(ctx, 1500)
	if err != nil {
		t.Fatal(err)
	}
	if l.LastEvent != 3 || l.LastAlert != 8 || len(l.Objects) != 2 || !reflect.DeepEqual(l.Waiting, []model.Alert{first}) {
		t.Errorf("LoadAlerts = %+v", l)
	}
	if len(l.Recent) != 2 || l.Recent[0].ID != 2 || l.Recent[1].ID != 3 {
		t.Errorf("recent events = %+v, want 2 and 3", l.Recent)
	}
	if len(l.Escalations) != 2 || l.Escalations[1].Problem.Name != "Load_high" || !reflect.DeepEqual(l.Escalations[1].Told, escalation.Told) {
		t.Errorf("escalations = %+v", l.Escalations)
	}
	if tags := l.Escalations[1].Problem.Tags; !slices.Contains(tags, model.Tag{Name: "ticket", Value: "T-1"}) {
		t.Errorf("tags of the event = %v", tags)
	}
	if list, err := d.EventsAfter(ctx, l.LastEvent, 10); err != nil || len(list) != 1 || list[0].ID != 4 {
		t.Errorf("EventsAfter = %+v, %v", list, err)
	}
	err = d.RecordAlerts(ctx, model.AlertChange{LastEvent: 2, Ended: []model.Escalation{{Action: "b", ProblemID: 1}}, PruneBefore: 100})
	if err == nil {
		err = d.PutAlertObjects(ctx, nil, []model.AlertObject{{Kind: "media", Name: "x"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if l, err = d.LoadAlerts(ctx, 0); err != nil || l.LastEvent != 3 || l.LastAlert != 8 || len(l.Escalations) != 1 || len(l.Objects) != 1 {
		t.Errorf("LoadAlerts = %+v, %v", l, err)
	}
	if list, err := d.Alerts(ctx, model.AlertFilter{}); err != nil || len(list) != 1 || list[0].ID != 7 {
		t.Errorf("alerts after pruning: %+v, %v, want the waiting one", list, err)
	}
	if list, err := d.Alerts(ctx, model.AlertFilter{States: []model.AlertState{model.AlertSent}, Problem: 2, Before: 9}); err != nil || len(list) != 0 {
		t.Errorf("sent alerts: %+v, %v, want none", list, err)
	}
}
