package confdb

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"tidemark/model"
)

func TestUpdateProblems(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	record3(t, d) // problem 1 is over, problem 2 is open with severity warning, event 3 is a recovery
	const most = model.ActionAcknowledge | model.ActionMessage | model.ActionSeverity | model.ActionSuppress
	u := model.ProblemUpdate{User: 7, Author: "me", Actions: most, Message: "on it", Severity: model.Disaster, SuppressedUntil: model.Forever}
	done, err := d.UpdateProblems(ctx, []model.EventID{2}, u)
	if err != nil || len(done) != 1 || done[0].Actions != most || done[0].OldSeverity != model.Warning || done[0].Problem.TriggerID == 0 {
		t.Fatalf("UpdateProblems = %+v, %v", done, err)
	}
	list, _, err := d.Problems(ctx, ProblemFilter{Open: true})
	if err != nil || !list[0].Acknowledged || list[0].Severity != model.Disaster || list[0].SuppressedUntil != model.Forever {
		t.Errorf("problem 2 = %+v, %v", list, err)
	}
	open, err := d.OpenProblems(ctx)
	if err != nil || !reflect.DeepEqual(open, list) {
		t.Errorf("OpenProblems = %+v, %v, want %+v", open, err, list)
	}
	// What is so already changes nothing and is not noted.
	u.Actions, u.Message = most&^model.ActionMessage, ""
	if done, err := d.UpdateProblems(ctx, []model.EventID{2}, u); len(done) != 0 || err != nil {
		t.Errorf("the same again: %+v, %v", done, err)
	}
	back := model.ProblemUpdate{Author: "her", Actions: model.ActionUnacknowledge | model.ActionUnsuppress | model.ActionClose}
	if done, err := d.UpdateProblems(ctx, []model.EventID{2}, back); len(done) != 1 || done[0].Actions != back.Actions || done[0].WasSuppressedUntil != model.Forever || err != nil {
		t.Errorf("taken back: %+v, %v", done, err)
	}
	list, _, err = d.Problems(ctx, ProblemFilter{Open: true})
	if err != nil || len(list) != 1 || list[0].Acknowledged || list[0].SuppressedUntil != 0 {
		t.Errorf("problem 2 = %+v, %v", list, err)
	}
	updates, err := d.ProblemUpdates(ctx, 2)
	if err != nil || len(updates) != 2 || updates[0].Message != "on it" || updates[0].User != 7 || updates[0].Severity != model.Disaster || updates[1].Actions != back.Actions {
		t.Errorf("ProblemUpdates = %+v, %v", updates, err)
	}
}

// TestUpdateProblems_allOrNone changes nothing when one of the problems cannot be changed.
func TestUpdateProblems_allOrNone(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	record3(t, d)
	for _, tt := range []struct {
		name string
		ids  []model.EventID
		u    model.ProblemUpdate
		want error
	}{
		{"a recovery", []model.EventID{2, 3}, model.ProblemUpdate{Actions: model.ActionAcknowledge}, ErrNotFound},
		{"closing one that is over", []model.EventID{2, 1}, model.ProblemUpdate{Actions: model.ActionAcknowledge | model.ActionClose}, ErrInvalid},
		{"a long message", []model.EventID{2}, model.ProblemUpdate{Actions: model.ActionMessage, Message: strings.Repeat("x", maxTextBytes+1)}, ErrInvalid},
		{"many", make([]model.EventID, MaxUpdated+1), model.ProblemUpdate{Actions: model.ActionAcknowledge}, ErrInvalid},
	} {
		if done, err := d.UpdateProblems(ctx, tt.ids, tt.u); !errors.Is(err, tt.want) || done != nil {
			t.Errorf("%s: %v, %v, want %v", tt.name, done, err, tt.want)
		}
	}
	if list, _, err := d.Problems(ctx, ProblemFilter{Open: true}); err != nil || list[0].Acknowledged {
		t.Errorf("problem 2 = %+v, %v, want it unchanged", list, err)
	}
	// One that is over can be commented and its severity changed.
	u := model.ProblemUpdate{Actions: model.ActionMessage | model.ActionSeverity, Message: "it was the cable", Severity: model.Information}
	if done, err := d.UpdateProblems(ctx, []model.EventID{1}, u); len(done) != 1 || err != nil {
		t.Errorf("commenting one that is over: %+v, %v", done, err)
	}
}
