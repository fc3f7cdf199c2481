package alert

import (
	"testing"
	"time"

	"tidemark/model"
)

// BenchmarkHandle measures a problem and its recovery through ten actions of which one fits, stored but not sent.
func BenchmarkHandle(b *testing.B) {
	w := newWorld()
	w.host(1, "Db1", "Linux")
	a, err := Open(b.Context(), Options{Store: w, Objects: w, Problems: w, Names: w, Zone: time.UTC})
	if err != nil {
		b.Fatal(err)
	}
	text := single + "actions:\n"
	for i := range 10 {
		severity := "disaster"
		if i == 9 {
			severity = "high"
		}
		text += "  - {name: a" + string(rune('0'+i)) + ", conditions: [{type: host_group, value: Linux}, {type: severity, value: " + severity + "}], operations: [{receivers: [first]}]}\n"
	}
	c, err := Parse([]byte(text))
	if err == nil {
		err = a.Apply(b.Context(), c, true)
	}
	if err != nil {
		b.Fatal(err)
	}
	id := model.EventID(1)
	for b.Loop() {
		problem := model.Event{ID: id, TriggerID: model.TriggerID(id), HostID: 1, Problem: true, Severity: model.High, Name: "disk"}
		recovery := problem
		recovery.ID, recovery.Problem, recovery.ProblemID = id+1, false, id
		w.open[id] = model.Problem{Event: problem}
		a.mu.Lock()
		a.handle(b.Context(), &problem)
		a.runDue(b.Context(), a.now())
		delete(w.open, id)
		a.handle(b.Context(), &recovery)
		a.pending = newPending()
		a.mu.Unlock()
		id += 2
	}
}
