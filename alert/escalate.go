package alert

import (
	"context"
	"slices"
	"time"

	"tidemark/model"
)

const (
	// recheckEvery is how often a step that waits for another problem is looked at again.
	recheckEvery = 30 * time.Second
	// maxMissing is how often a problem may be neither open nor recovered before its escalation ends: its recovery may still be on the way.
	maxMissing = 3
	// maxDependencies bounds the triggers looked at behind one, as Zabbix bounds their levels.
	maxDependencies = 1000
)

// dueAt is the next moment at which something is to be done; zero for none.
func (e *escalation) dueAt() int64 {
	if e.RecoveryID != 0 {
		return e.HeldUntil
	}
	return e.NextAt
}

// schedule sets the timer of an escalation.
func (a *Alerter) schedule(e *escalation) { a.timers.add(timer{at: e.dueAt(), escalation: e}) }

// save notes that an escalation changed.
func (a *Alerter) save(e *escalation) {
	a.pending.escalations[e.key()] = e
	a.schedule(e)
}

// end takes an escalation out.
func (a *Alerter) end(e *escalation) {
	key := e.key()
	a.unlink(e)
	delete(a.escalations, key)
	if held := (heldKey{e.Action, e.Problem.TriggerID}); a.heldBy[held] == e {
		delete(a.heldBy, held)
	}
	delete(a.pending.escalations, key)
	a.pending.ended[key] = model.Escalation{Action: e.Action, ProblemID: e.ProblemID}
	e.NextAt, e.RecoveryID = 0, 0
}

func (a *Alerter) unlink(e *escalation) {
	rest := slices.DeleteFunc(a.current[e.CurrentID], func(o *escalation) bool { return o == e })
	if len(rest) == 0 {
		delete(a.current, e.CurrentID)
	} else {
		a.current[e.CurrentID] = rest
	}
}

// handle looks at one event.
func (a *Alerter) handle(ctx context.Context, e *model.Event) {
	now := a.now()
	a.noteChange(e, now)
	if e.Problem {
		a.begin(e, now)
		return
	}
	for _, escalation := range slices.Clone(a.current[e.ProblemID]) {
		a.recover(ctx, escalation, e, now)
	}
}

// begin starts the escalations of a problem.
func (a *Alerter) begin(e *model.Event, now int64) {
	if len(a.plan.actions) == 0 {
		return
	}
	s := a.subject(e, now)
	for _, action := range a.plan.actions {
		key := escalationKey{action.Name, e.ID}
		if action.Disabled || a.escalations[key] != nil || !action.rule.holds(action.Evaluation, &s) {
			continue
		}
		if held := a.heldBy[heldKey{action.Name, e.TriggerID}]; held != nil {
			a.held.Inc()
			a.unlink(held)
			delete(a.heldBy, heldKey{action.Name, e.TriggerID})
			held.CurrentID, held.Current, held.RecoveryID, held.Recovery = e.ID, *e, 0, model.Event{}
			held.HeldUntil = now + int64(action.flapWithin)
			a.current[e.ID] = append(a.current[e.ID], held)
			a.save(held)
			continue
		}
		if len(a.escalations) >= maxEscalations {
			a.dropped.Inc()
			a.options.Logger.Error("alerting: too many escalations; a problem is not told", "limit", maxEscalations, "problem", e.ID, "action", action.Name)
			continue
		}
		started := &escalation{Escalation: model.Escalation{
			Action: action.Name, ProblemID: e.ID, CurrentID: e.ID, Step: 1, NextAt: now + int64(action.Delay), Problem: *e, Current: *e,
		}}
		if a.flapping(action, e.TriggerID, now) {
			started.HeldUntil = now + int64(action.flapWithin)
		}
		a.escalations[key] = started
		a.current[e.ID] = append(a.current[e.ID], started)
		a.save(started)
	}
}

// subject is what conditions see of an event.
func (a *Alerter) subject(e *model.Event, now int64) subject {
	s := subject{event: e, now: time.Unix(0, now).In(a.options.Zone)}
	if t, ok := a.options.Objects.TriggerByID(e.TriggerID); ok {
		s.trigger = t
		if t.TemplateID != 0 {
			s.template = a.options.Objects.Template(t.TemplateID)
		}
	}
	if h, ok := a.options.Objects.HostByID(e.HostID); ok {
		s.host = h
	}
	_, _, s.suppressed = a.suppression(e, now)
	return s
}

// recover ends an escalation, or holds the recovery back while the trigger flaps.
func (a *Alerter) recover(ctx context.Context, e *escalation, recovery *model.Event, now int64) {
	action := a.plan.action(e.Action)
	if action == nil || len(e.Told) == 0 {
		a.end(e)
		return
	}
	if e.HeldUntil > now || a.flapping(action, e.Problem.TriggerID, now) {
		a.held.Inc()
		a.heldBy[heldKey{e.Action, e.Problem.TriggerID}] = e
		e.RecoveryID, e.Recovery, e.HeldUntil = recovery.ID, *recovery, now+int64(action.flapWithin)
		a.save(e)
		return
	}
	a.tellRecovery(ctx, action, e, recovery, now)
}

func (a *Alerter) tellRecovery(ctx context.Context, action *compiledAction, e *escalation, recovery *model.Event, now int64) {
	a.tell(ctx, occasion{action: action, escalation: e, kind: model.AlertRecovery, event: recovery, now: now})
	a.end(e)
}

// runDue does the steps that are due, a page at most, and reports whether there are more.
func (a *Alerter) runDue(ctx context.Context, now int64) bool {
	for range pageSize {
		t, ok := a.timers.take(now)
		switch {
		case !ok:
			return false
		case t.lane != nil:
			a.markReady(t.lane)
		default:
			a.runStep(ctx, t.escalation, now)
		}
	}
	return true
}

// runStep does the next step of an escalation.
func (a *Alerter) runStep(ctx context.Context, e *escalation, now int64) {
	action := a.plan.action(e.Action)
	if action == nil || action.Disabled {
		a.end(e)
		return
	}
	if e.RecoveryID != 0 {
		// The trigger has calmed down, and it is over.
		recovery := e.Recovery
		a.tellRecovery(ctx, action, e, &recovery, now)
		return
	}
	problem, open := a.options.Problems.Problem(e.CurrentID)
	if !open {
		a.runMissing(ctx, action, e, now)
		return
	}
	e.missing = 0
	if until, ok := a.paused(action, e, &problem, now); ok {
		e.paused, e.NextAt = true, until
		a.save(e)
		return
	}
	e.paused = false
	if problem.Acknowledged && action.StopWhenAcknowledged && e.Step > 1 {
		e.NextAt = 0
		a.save(e)
		return
	}
	a.tell(ctx, occasion{action: action, escalation: e, kind: model.AlertProblem, event: &e.Problem, step: e.Step, acknowledged: problem.Acknowledged, now: now})
	length := int64(action.stepLength(e.Step))
	next := e.NextAt + length
	if next <= now { // after a stop, steps are not made up for at once
		next = now + length
	}
	if !action.stepsAfter(e.Step) {
		next = 0
	}
	e.Step, e.NextAt = e.Step+1, next
	a.save(e)
}

// runMissing handles a problem that is not open although no recovery came.
func (a *Alerter) runMissing(ctx context.Context, action *compiledAction, e *escalation, now int64) {
	t, known := a.options.Objects.TriggerByID(e.Problem.TriggerID)
	h, hostKnown := a.options.Objects.HostByID(e.Problem.HostID)
	gone := !known || !t.Enabled || e.Problem.HostID != 0 && (!hostKnown || !h.Enabled)
	if e.missing++; !gone && e.missing < maxMissing {
		e.NextAt = now + int64(recheckEvery)
		a.save(e)
		return
	}
	a.cancelled.Inc()
	if gone && len(e.Told) > 0 && !action.QuietCancel {
		a.tell(ctx, occasion{action: action, escalation: e, kind: model.AlertCancelled, event: &e.Problem, now: now})
	}
	a.end(e)
}

// paused reports until when a step has to wait: for the end of a maintenance or suppression, or of a problem that the trigger depends on.
func (a *Alerter) paused(action *compiledAction, e *escalation, problem *model.Problem, now int64) (int64, bool) {
	if !action.SendSuppressed {
		_, until, ok := a.suppression(&e.Current, now)
		if until = max(until, problem.SuppressedUntil); ok || until > now {
			return max(until, now+1), true
		}
	}
	if a.dependent(e.Problem.TriggerID) {
		return now + int64(recheckEvery), true
	}
	return 0, false
}

// dependent reports whether a trigger that this one depends on, directly or behind others, is in PROBLEM.
func (a *Alerter) dependent(id model.TriggerID) bool {
	seen := map[model.TriggerID]bool{id: true}
	for todo := []model.TriggerID{id}; len(todo) > 0 && len(seen) < maxDependencies; todo = todo[1:] {
		t, ok := a.options.Objects.TriggerByID(todo[0])
		if !ok {
			continue
		}
		for _, master := range t.DependsOn {
			if seen[master] {
				continue
			}
			seen[master] = true
			if s, ok := a.options.Problems.State(master); ok && s.Problem {
				return true
			}
			todo = append(todo, master)
		}
	}
	return false
}

// suppression returns the maintenance in which an event is suppressed, and until when.
func (a *Alerter) suppression(e *model.Event, now int64) (name string, until int64, ok bool) {
	if len(a.plan.maintenances) == 0 {
		return "", 0, false
	}
	host, known := a.options.Objects.HostByID(e.HostID)
	if !known {
		return "", 0, false
	}
	at := time.Unix(0, now).In(a.options.Zone)
	for i := range a.plan.maintenances {
		m := &a.plan.maintenances[i]
		if !m.ofHost(host) || !m.ofTags(e.Tags) {
			continue
		}
		if end, in := m.Until(at); in && end.UnixNano() > until {
			name, until, ok = m.Name, end.UnixNano(), true
		}
	}
	return name, until, ok
}

// HasNoData reports whether there is any maintenance without data, in force or not.
func (a *Alerter) HasNoData() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.plan.maintenances, func(m Maintenance) bool { return m.NoData })
}

// NoData reports whether a host is in a maintenance without data now: values of its items are not wanted.
func (a *Alerter) NoData(host *model.Host) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := time.Unix(0, a.now()).In(a.options.Zone)
	return slices.ContainsFunc(a.plan.maintenances, func(m Maintenance) bool {
		if !m.NoData || !m.ofHost(host) {
			return false
		}
		_, in := m.Until(at)
		return in
	})
}

// noteChange remembers when a trigger changed. Of more triggers than are remembered, changes are told each for itself.
func (a *Alerter) noteChange(e *model.Event, now int64) {
	times, known := a.flaps[e.TriggerID]
	if !known && len(a.flaps) >= maxEscalations {
		return
	}
	times = append(times, now)
	if drop := len(times) - maxChanges; drop > 0 {
		times = times[drop:]
	}
	a.flaps[e.TriggerID] = times
}

// forgetChanges drops the triggers that have been quiet for longer than any action looks back.
func (a *Alerter) forgetChanges(now int64) {
	for id, times := range a.flaps {
		if times[len(times)-1] < now-int64(maxWithin) {
			delete(a.flaps, id)
		}
	}
}

// flapping reports whether a trigger changed so often that its changes are held back. A trigger with multiple events does not flap.
func (a *Alerter) flapping(action *compiledAction, id model.TriggerID, now int64) bool {
	if action.Flapping.Off {
		return false
	}
	if t, ok := a.options.Objects.TriggerByID(id); ok && t.MultipleEvents {
		return false
	}
	times := a.flaps[id]
	return len(times) >= action.flapChanges && times[len(times)-action.flapChanges] > now-int64(action.flapWithin)
}

// heldKey names an escalation whose recovery is held back because its trigger flaps: an action has one a trigger.
type heldKey struct {
	action  string
	trigger model.TriggerID
}
