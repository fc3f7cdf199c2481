package alert

import (
	"context"
	"strings"
	"time"

	"tidemark/model"
)

// Updated tells what somebody did to problems, after it was stored. The messages are stored when it returns. A problem that is suppressed no
// more goes on with its steps.
func (a *Alerter) Updated(ctx context.Context, updates []model.StoredUpdate) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.poke()
	for i := range updates {
		for _, e := range a.current[updates[i].Problem.ID] {
			a.updated(ctx, e, &updates[i])
		}
	}
	return a.commit(ctx)
}

func (a *Alerter) updated(ctx context.Context, e *escalation, u *model.StoredUpdate) {
	for _, event := range []*model.Event{&e.Problem, &e.Current} {
		if event.ID == u.Problem.ID {
			event.Severity = u.Problem.Severity
		}
	}
	now := a.now()
	// After a restart only the time of the next step says that it waits for the end of the suppression.
	if waits := e.paused || e.NextAt != 0 && e.NextAt == u.WasSuppressedUntil; waits && e.RecoveryID == 0 && u.Actions.Has(model.ActionSuppress|model.ActionUnsuppress) {
		e.NextAt = now
		a.save(e)
	}
	action := a.plan.action(e.Action)
	if action == nil || action.Disabled {
		return
	}
	a.tell(ctx, occasion{action: action, escalation: e, kind: model.AlertUpdate, event: &e.Problem, acknowledged: u.Problem.Acknowledged, update: &u.ProblemUpdate, now: now})
}

// Suppression is why and until when the messages of a problem are held back.
type Suppression struct {
	// Maintenance is its name; empty when only somebody suppressed the problem.
	Maintenance string
	// Until is its end, Unix nanoseconds or model.Forever; zero is for a problem that is not suppressed.
	Until int64
}

// Suppressions returns for each of some open problems whether it is suppressed now.
func (a *Alerter) Suppressions(problems []model.Problem) []Suppression {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	out := make([]Suppression, len(problems))
	for i := range problems {
		p := &problems[i]
		if p.RecoveredAt != 0 {
			continue
		}
		s := &out[i]
		s.Maintenance, s.Until, _ = a.suppression(&p.Event, now)
		if p.SuppressedUntil > now {
			s.Until = max(s.Until, p.SuppressedUntil)
		}
	}
	return out
}

// maxHistory bounds the updates in {EVENT.UPDATE.HISTORY}.
const maxHistory = 100

// history is what was done to the problem so far, the newest first.
func (t *texts) history() string {
	list, err := t.updates()
	if err != nil {
		t.alerter.options.Logger.Warn("alerting: the updates of a problem cannot be read for a message", "problem", t.o.escalation.Problem.ID, "error", err)
		return unknownText
	}
	var b strings.Builder
	zone := t.alerter.options.Zone
	for i := len(list) - 1; i >= max(0, len(list)-maxHistory); i-- {
		u := &list[i]
		b.WriteString(time.Unix(0, u.At).In(zone).Format(dateForm+" "+timeForm) + " \"" + u.Author + "\"\nActions: " + u.Words(zone) + ".\n")
		if u.Message != "" {
			b.WriteString(u.Message + "\n")
		}
		b.WriteString("\n")
	}
	return strings.TrimSpace(b.String())
}
