package alert

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidemark/model"
)

// update changes a problem as the store and the event log would, and tells the process of it.
func (p *process) update(t *testing.T, id model.EventID, u model.ProblemUpdate) {
	t.Helper()
	w := p.w
	w.mu.Lock()
	problem := w.open[id]
	stored := model.StoredUpdate{ProblemUpdate: u, WasSuppressedUntil: problem.SuppressedUntil}
	stored.At, stored.OldSeverity = time.Now().UnixNano(), problem.Severity
	switch {
	case u.Actions.Has(model.ActionSuppress):
		problem.SuppressedUntil = u.SuppressedUntil
	case u.Actions.Has(model.ActionUnsuppress):
		problem.SuppressedUntil = 0
	}
	if u.Actions.Has(model.ActionSeverity) {
		problem.Severity = u.Severity
		i := slices.IndexFunc(w.events, func(e model.Event) bool { return e.ID == id })
		w.events[i].Severity = u.Severity
	}
	problem.Acknowledged = problem.Acknowledged || u.Actions.Has(model.ActionAcknowledge)
	stored.Problem = problem
	w.open[id] = problem
	w.updates[id] = append(w.updates[id], stored.ProblemUpdate)
	w.mu.Unlock()
	if err := p.Updated(t.Context(), []model.StoredUpdate{stored}); err != nil {
		t.Fatal(err)
	}
}

const steps = single + `
actions:
  - name: a
    step_duration: 1m
    operations: [{receivers: [first], to: -1}]
    update: [{involved: true}]
  - {name: all, send_suppressed: true, step_duration: 1m, operations: [{receivers: [second], to: 2, subject: "2nd"}], recovery: []}
`

// TestUpdated_suppressed holds steps back until the end of the suppression, or until somebody ends it, also over a restart.
func TestUpdated_suppressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		p := w.start(t, steps)
		from := time.Now()
		id := w.problem(7, model.High, "disk")
		p.tell(id)
		after(30 * time.Second)
		p.update(t, id, model.ProblemUpdate{Author: "me", Actions: model.ActionSuppress | model.ActionMessage, Message: "known", SuppressedUntil: from.Add(10 * time.Minute).UnixNano()})
		after(9*time.Minute + 25*time.Second)
		expectLines(t, w.lines(from), "0 first P1 disk", "0 second 2nd",
			"30 first U1 commented and suppressed until "+from.Add(10*time.Minute).Format("2006.01.02 15:04:05")+" known", "60 second 2nd")
		after(10 * time.Second)
		lines := w.lines(from)
		expectLines(t, lines[4:], "600 first P1 disk") // it comes back
		p.update(t, id, model.ProblemUpdate{Author: "me", Actions: model.ActionSuppress, SuppressedUntil: model.Forever})
		after(time.Hour)
		expectLines(t, w.lines(from)[5:], "605 first U1 suppressed indefinitely")
		p.stop()
		p = w.start(t, "")
		defer p.stop()
		after(time.Hour)
		expectLines(t, w.lines(from)[6:])
		p.update(t, id, model.ProblemUpdate{Author: "me", Actions: model.ActionUnsuppress})
		after(5 * time.Second)
		got := w.lines(from)[6:]
		if len(got) != 2 || !slices.ContainsFunc(got, func(l string) bool { return strings.HasSuffix(l, "first P1 disk") }) ||
			!slices.ContainsFunc(got, func(l string) bool { return strings.HasSuffix(l, "first U1 unsuppressed") }) {
			t.Errorf("after the suppression was ended: %q", got)
		}
	})
}

// TestUpdated_severity uses the new severity for who is told and what messages say.
func TestUpdated_severity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.host(1, "Db1")
		p := w.start(t, `
media: [{name: ticket, ticket: true, webhook: {url: "https://t.example/"}}]
receivers:
  - {name: all, media: [{media: ticket, to: all}]}
  - {name: bad, media: [{media: ticket, to: bad, severities: [disaster]}]}
actions:
  - name: a
    step_duration: 1m
    operations: [{receivers: [all, bad], to: 2, subject: "{EVENT.SEVERITY} {EVENT.NSEVERITY}"}]
    update:
      - {receivers: [all], subject: "{USER.FULLNAME} {EVENT.UPDATE.ACTION} {ACK.MESSAGE}|{EVENT.UPDATE.SEVERITY} {EVENT.UPDATE.NSEVERITY}|{EVENT.ACK.STATUS}", message: "{EVENT.UPDATE.HISTORY}"}
    recovery: [{receivers: [all], subject: "{EVENT.SEVERITY}"}]
`)
		defer p.stop()
		from := time.Now()
		id := w.problem(7, model.High, "disk")
		p.tell(id)
		after(time.Second)
		p.update(t, id, model.ProblemUpdate{Author: "ada", Actions: model.ActionAcknowledge, Severity: model.High})
		after(time.Second)
		p.update(t, id, model.ProblemUpdate{Author: "ada", Actions: model.ActionSeverity | model.ActionMessage | model.ActionClose, Message: "worse", Severity: model.Disaster})
		after(2 * time.Minute)
		p.tell(w.recovery(id))
		after(time.Second)
		expectLines(t, w.lines(from), "0 all high 4", "1 all ada acknowledged |high 4|Yes", "2 all ada commented, changed severity from high to disaster and closed worse|disaster 5|Yes",
			"60 all disaster 5", "60 bad disaster 5", "122 all disaster")
		want := "\"ada\"\nActions: commented, changed severity from high to disaster and closed.\nworse\n\n"
		if body := w.messages()[2].body; !strings.Contains(body, want) || !strings.HasSuffix(body, "Actions: acknowledged.") {
			t.Errorf("history: %q", body)
		}
	})
}
