package alert

import (
	"context"
	"slices"
	"strconv"
	"time"

	"tidemark/alert/media"
	"tidemark/model"
)

// occasion is a reason to tell somebody something.
type occasion struct {
	action     *compiledAction
	escalation *escalation
	kind       model.AlertKind
	// event is the problem, or for a recovery the event that ended it.
	event        *model.Event
	step         int
	acknowledged bool
	update       *model.ProblemUpdate
	now          int64
}

// tell makes the alerts of an occasion. They are sent after they were stored.
func (a *Alerter) tell(ctx context.Context, o occasion) {
	texts := a.newTexts(ctx, &o)
	told := make(map[model.AlertTarget]bool)
	for _, operation := range o.action.operations(o.kind) {
		if o.kind == model.AlertProblem && !operation.covers(o.step) || !operation.applies(o.acknowledged) {
			continue
		}
		targets := a.targets(&operation, &o)
		if operation.Involved {
			// A machine that ran a command is told of nothing: what runs at the recovery is named there.
			targets = append(targets, slices.DeleteFunc(slices.Clone(o.escalation.Told), func(t model.AlertTarget) bool { return a.plan.channels[t.Media].runs() })...)
		}
		for _, target := range targets {
			same := model.AlertTarget{Media: target.Media, To: target.To}
			if told[same] {
				continue
			}
			told[same] = true
			a.add(texts, &o, &operation, target)
		}
	}
}

// targets are the addresses of an operation's receivers.
func (a *Alerter) targets(operation *Operation, o *occasion) []model.AlertTarget {
	var list []model.AlertTarget
	now := time.Unix(0, o.now).In(a.options.Zone)
	for _, name := range operation.Receivers {
		r := a.plan.receivers[name]
		if r == nil {
			continue
		}
		for i := range r.Media {
			m := &r.Media[i]
			if (len(operation.Media) == 0 || slices.Contains(operation.Media, m.Media)) && m.wants(o.escalation.Problem.Severity, now) {
				list = append(list, model.AlertTarget{Receiver: r.Name, Media: m.Media, To: m.To})
			}
		}
	}
	return list
}

// add makes one alert.
func (a *Alerter) add(texts *texts, o *occasion, operation *Operation, target model.AlertTarget) {
	problem := &o.escalation.Problem
	alert := &model.Alert{
		ID: a.nextAlert, Action: o.action.Name, Kind: o.kind, EventID: o.event.ID, ProblemID: problem.ID, Severity: problem.Severity,
		Host: texts.host(), Name: problem.Name, Tags: problem.Tags, Step: o.step, Receiver: target.Receiver, Media: target.Media, To: target.To,
		CreatedAt: o.now, At: o.event.At,
	}
	a.nextAlert++
	ch := a.plan.channels[target.Media]
	text := operation.Text
	html := false
	if ch != nil {
		text = text.or(ch.text(o.kind))
		html = ch.Mail != nil && ch.Mail.HTML
	}
	text = text.or(builtIn(o.kind))
	alert.Subject, alert.Body = texts.fill(text, target, html)
	switch {
	case ch.runs():
		alert.Subject, alert.Body = cut("Command: "+ch.Command.Line, media.MaxSubjectBytes), ""
		alert.Macros = map[string]string{"{HOST.ID}": strconv.FormatUint(uint64(problem.HostID), 10)}
	case ch != nil && ch.Zabbix != nil:
		alert.Macros = texts.values(ch.macros, problem.HostID)
	}
	if o.kind == model.AlertProblem && o.escalation.HeldUntil > o.now {
		alert.Body += "\n" + flapNote
	}
	if a.waiting+len(a.pending.alerts) >= maxWaiting {
		a.dropped.Inc()
		alert.State, alert.SentAt, alert.Error = model.AlertFailed, o.now, "the queue is full"
	}
	a.pending.alerts[alert.ID] = alert
	if o.kind == model.AlertProblem && !slices.Contains(o.escalation.Told, target) {
		o.escalation.Told = append(o.escalation.Told, target)
	}
}

// flapNote is added to the message of a trigger that flaps.
const flapNote = "This trigger changes often. Its further changes are held back until it has calmed down."

// or fills what is empty from another text.
func (t Text) or(other Text) Text {
	if t.Subject == "" {
		t.Subject = other.Subject
	}
	if t.Message == "" {
		t.Message = other.Message
	}
	return t
}

// text returns the media type's own text of a kind.
func (m *Media) text(kind model.AlertKind) Text {
	switch kind {
	case model.AlertRecovery:
		return m.Recovery
	case model.AlertUpdate:
		return m.Update
	case model.AlertProblem:
		return m.Problem
	}
	return Text{}
}

// builtIn returns the text of a kind that is used when nothing else is set.
func builtIn(kind model.AlertKind) Text {
	const facts = "Host: {HOST.NAME}\nSeverity: {EVENT.SEVERITY}\nData: {EVENT.OPDATA}\nProblem: {EVENT.ID}\n{EVENT.URL}"
	switch kind {
	case model.AlertRecovery:
		return Text{"Resolved after {EVENT.DURATION}: {EVENT.NAME}", "{EVENT.NAME}\nResolved at {EVENT.RECOVERY.TIME} on {EVENT.RECOVERY.DATE}, after {EVENT.DURATION}\n" + facts}
	case model.AlertUpdate:
		return Text{"Updated: {EVENT.NAME}", "{USER.FULLNAME} {EVENT.UPDATE.ACTION} at {EVENT.UPDATE.TIME} on {EVENT.UPDATE.DATE}\n{EVENT.UPDATE.MESSAGE}\n" + facts}
	case model.AlertCancelled:
		return Text{"Not watched any more: {EVENT.NAME}", "The trigger or its host was deleted or disabled; nothing more will come about this problem.\n{EVENT.NAME}\n" + facts}
	}
	return Text{"{EVENT.SEVERITY}: {HOST.NAME}: {EVENT.NAME}", "{EVENT.NAME}\nBegan at {EVENT.TIME} on {EVENT.DATE}\n" + facts}
}
