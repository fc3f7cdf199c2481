package alert

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tidemark/alert/media"
	"tidemark/model"
)

// laneKey names a queue: all alerts to one address, or, for media that do not group, those of one problem to it. Alerts of one lane are sent
// in their order, so that a ticket is not closed before it was opened.
type laneKey struct {
	media, to string
	problem   model.EventID
}

// lane is one queue.
type lane struct {
	key     laneKey
	waiting []*model.Alert
	// readyAt is when the lane is to be served; zero while it is empty, in the list of ready lanes, or being served.
	readyAt int64
	// lastSent is when the last message left, for the interval of groups.
	lastSent int64
}

// commandTimeout is how long a command is waited for, that of a proxy included.
const commandTimeout = 90 * time.Second

// commandAge is how long a command may wait: one that is run long after its reason does not repair what was wrong then.
const commandAge = 5 * time.Minute

// laneBatch bounds the alerts that go into one message.
const laneBatch = 10_000

// enqueue puts a stored alert into its lane.
func (a *Alerter) enqueue(alert *model.Alert, now int64) {
	key := laneKey{media: alert.Media, to: alert.To}
	ch := a.plan.channels[alert.Media]
	if ch == nil || !ch.grouped {
		key.problem = alert.ProblemID
	}
	l := a.lanes[key]
	if l == nil {
		l = &lane{key: key}
		a.lanes[key] = l
	}
	l.waiting = append(l.waiting, alert)
	a.waiting++
	if len(l.waiting) > 1 {
		return // the lane is on its way already
	}
	at := max(now, alert.NextAt)
	if key.problem == 0 {
		at = max(at, alert.CreatedAt+int64(ch.GroupWait.Or(groupWait)), l.lastSent+int64(ch.GroupInterval.Or(groupInterval)))
	}
	a.await(l, at)
}

// await sets when a lane is served.
func (a *Alerter) await(l *lane, at int64) {
	l.readyAt = at
	a.timers.add(timer{at: at, lane: l})
}

// markReady moves a lane whose time has come to those that wait for a session.
func (a *Alerter) markReady(l *lane) {
	l.readyAt = 0
	if len(l.waiting) == 0 {
		delete(a.lanes, l.key) // its interval is over
		return
	}
	a.ready[l.key.media] = append(a.ready[l.key.media], l)
}

// startDeliveries begins to serve ready lanes, as many at a time as the media types permit.
func (a *Alerter) startDeliveries(ctx context.Context, now int64) {
	for name, lanes := range a.ready {
		ch := a.plan.channels[name]
		limit := sessions
		if ch != nil {
			limit, _, _ = ch.Effort()
		}
		for len(lanes) > 0 && a.active[name] < limit {
			a.serve(ctx, ch, lanes[0], now)
			lanes = lanes[1:]
		}
		if len(lanes) == 0 {
			delete(a.ready, name)
		} else {
			a.ready[name] = lanes
		}
	}
}

// serve sends what a lane holds, by a goroutine of its own.
func (a *Alerter) serve(ctx context.Context, ch *channel, l *lane, now int64) {
	batch := l.waiting[:1]
	if l.key.problem == 0 {
		batch = l.waiting[:min(len(l.waiting), laneBatch)]
	}
	// Copies: the goroutine reads them without the lock.
	alerts := make([]model.Alert, len(batch))
	for i := range batch {
		alerts[i] = *batch[i]
		if p, ok := a.options.Problems.Problem(alerts[i].ProblemID); ok && ch != nil && ch.Zabbix != nil {
			alerts[i].Tags = p.Tags // what other messages of the problem have added since
		}
	}
	a.active[l.key.media]++
	if ch == nil || ch.Disabled || ch.problem != nil {
		reason := fmt.Errorf("media type %q was deleted: %w", l.key.media, media.ErrSettings)
		switch {
		case ch != nil && ch.Disabled:
			reason = fmt.Errorf("media type %q is disabled: %w", l.key.media, media.ErrSettings)
		case ch != nil:
			reason = ch.problem
		}
		a.finish(l, delivery{alerts: alerts, err: reason}, ch)
		return
	}
	if ch.runs() && now-alerts[0].CreatedAt > int64(commandAge) {
		a.finish(l, delivery{alerts: alerts, err: fmt.Errorf("the command was not run, because it could not be begun within %s: %w", commandAge, media.ErrSettings)}, ch)
		return
	}
	if a.once(ch) {
		// The claim stores the alerts as they are. What could not be stored of them before must not be put over it later.
		for i := range alerts {
			delete(a.pending.alerts, alerts[i].ID)
		}
	}
	parts := compose(ch, alerts, a.surroundings(), now)
	a.sending.Go(func() {
		start := time.Now()
		d := delivery{}
		if a.once(ch) {
			d = a.claim(ctx, alerts)
		}
		if d.err == nil {
			d = send(ctx, ch, parts)
		}
		a.sendingSeconds.Add(time.Since(start).Seconds())
		a.mu.Lock()
		defer a.mu.Unlock()
		a.finish(l, d, ch)
		a.poke()
	})
}

// once reports whether no alert of a channel may be sent twice.
func (a *Alerter) once(ch *channel) bool { return a.options.Once || ch.runs() }

// claim stores that alerts are about to be sent, where none may be sent twice. They belong to the caller.
func (a *Alerter) claim(ctx context.Context, alerts []model.Alert) delivery {
	claimed := make([]model.Alert, len(alerts))
	for i := range alerts {
		claimed[i] = alerts[i]
		claimed[i].State = model.AlertClaimed
	}
	err := a.options.Store.RecordAlerts(ctx, model.AlertChange{Alerts: claimed})
	if ctx.Err() != nil {
		return delivery{alerts: alerts, err: ctx.Err(), stopped: true}
	}
	if err != nil {
		a.storeFailures.Inc()
		return delivery{alerts: alerts, err: err, stopped: true, retryAt: a.now() + int64(storeRetry)}
	}
	return delivery{}
}

// delivery is how serving a lane went.
type delivery struct {
	// alerts were tried; the first sentCount of them arrived, the first begun may have.
	alerts           []model.Alert
	sentCount, begun int
	err              error
	// tags are those that a script has for the event of the alert.
	tags []model.Tag
	// stopped says that nothing was sent because the process ends or the store fails; then the failure is nobody's fault, and what was not begun is stored
	// as waiting again. retryAt is when it is tried again.
	stopped bool
	retryAt int64
}

// part is one message with the alerts in it.
type part struct {
	alerts  []model.Alert
	message media.Message
}

// send sends messages one after the other, up to the first that fails.
func send(ctx context.Context, ch *channel, parts []part) delivery {
	var d delivery
	for i := range parts {
		d.alerts = append(d.alerts, parts[i].alerts...)
	}
	for i := range parts {
		limit := sendTimeout
		if ch.runs() {
			limit = commandTimeout
		}
		one, cancel := context.WithTimeout(ctx, ch.Timeout.Or(limit))
		var err error
		if script, ok := ch.sender.(*media.JavaScript); ok {
			_, d.tags, err = script.SendTagged(one, parts[i].message)
		} else {
			_, err = ch.sender.Send(one, parts[i].message)
		}
		cancel()
		if err != nil {
			d.err, d.stopped = err, ctx.Err() != nil
			d.begun = d.sentCount + len(parts[i].alerts)
			return d
		}
		d.sentCount += len(parts[i].alerts)
	}
	return d
}

// finish takes up how serving a lane went.
func (a *Alerter) finish(l *lane, d delivery, ch *channel) {
	a.active[l.key.media]--
	if a.active[l.key.media] == 0 {
		delete(a.active, l.key.media)
	}
	now := a.now()
	tried := make(map[uint64]int, len(d.alerts))
	for i := range d.alerts {
		tried[d.alerts[i].ID] = i
	}
	var rest []*model.Alert
	retryAt := d.retryAt
	for _, alert := range l.waiting {
		i, ok := tried[alert.ID]
		switch {
		case !ok || i >= d.sentCount && d.stopped:
			rest = append(rest, alert)
			if ok && i >= d.begun && a.once(ch) { // it may be stored as claimed
				a.pending.alerts[alert.ID] = alert
			}
			continue
		case i < d.sentCount:
			alert.State, alert.SentAt, alert.Error = model.AlertSent, now, ""
			if d.sentCount > 1 {
				alert.Together = d.alerts[0].ID
			}
			a.sent.Inc()
		default:
			alert.Error = cut(d.err.Error(), maxTextBytes/16)
			if alert.Attempts+1 >= attemptsOf(ch) || media.Permanent(d.err) {
				alert.State, alert.SentAt = model.AlertFailed, now
				a.noteFailure(alert, d.err)
			} else {
				alert.NextAt = now + int64(backoff(ch, alert.Attempts))
				retryAt = max(retryAt, alert.NextAt)
				rest = append(rest, alert)
				a.retried.Inc()
			}
		}
		alert.Attempts++
		a.pending.alerts[alert.ID] = alert
	}
	a.waiting -= len(l.waiting) - len(rest)
	l.waiting = rest
	if len(d.tags) > 0 && l.key.problem != 0 {
		a.addTags(l, d.tags)
	}
	if d.sentCount > 0 {
		l.lastSent = now
	}
	a.next(l, ch, max(retryAt, now))
}

// next says when a lane is served again.
func (a *Alerter) next(l *lane, ch *channel, at int64) {
	grouped := l.key.problem == 0 && ch != nil
	switch {
	case len(l.waiting) > 0:
		if grouped {
			at = max(at, l.lastSent+int64(ch.GroupInterval.Or(groupInterval)))
		}
		a.await(l, at)
	case grouped && l.lastSent > 0:
		// The lane stays until its interval is over, so that the next message keeps it.
		a.await(l, l.lastSent+int64(ch.GroupInterval.Or(groupInterval)))
	default:
		delete(a.lanes, l.key)
	}
}

func attemptsOf(ch *channel) int {
	if ch == nil {
		return attempts
	}
	_, tries, _ := ch.Effort()
	return tries
}

// backoff is the wait after an attempt, counted from zero: it doubles up to a limit.
func backoff(ch *channel, attempt int) time.Duration {
	wait := retryEvery
	if ch != nil {
		_, _, wait = ch.Effort()
	}
	for ; attempt > 0 && wait < maxRetryWait; attempt-- {
		wait *= 2
	}
	return max(min(wait, maxRetryWait), time.Second)
}

// messageOf is the message of one alert by itself.
func messageOf(ch *channel, alert *model.Alert, s surroundings) media.Message {
	m := media.Message{
		To: alert.To, Subject: alert.Subject, Body: alert.Body, ID: "tidemark-alert-" + strconv.FormatUint(alert.ID, 10),
		Thread: "tidemark-problem-" + strconv.FormatUint(uint64(alert.ProblemID), 10),
	}
	if alert.Kind == model.AlertProblem && alert.Step <= 1 && ch.Mail != nil {
		m.ID = m.Thread // what follows refers to it
	}
	m.Expand = func(text string) string {
		return expand(text, maxTextBytes, func(macro string) string { return ch.value(macro, &m, alert, s) })
	}
	return m
}

// value returns a macro of a sender's own settings: what an alert keeps in the queue.
func (ch *channel) value(macro string, m *media.Message, alert *model.Alert, s surroundings) string {
	if v, ok := alert.Macros[macro]; ok {
		return v
	}
	if strings.HasPrefix(macro, "{$") {
		return s.userMacro(alert, macro)
	}
	body := macro[1 : len(macro)-1]
	at := time.Unix(0, alert.At).In(s.zone)
	problem := alert.Kind != model.AlertRecovery
	switch body {
	case "ALERT.SENDTO":
		return m.To
	case "ALERT.SUBJECT":
		return m.Subject
	case "ALERT.MESSAGE":
		return m.Body
	case "ALERT.KIND":
		return alert.Kind.String()
	case "ACTION.NAME":
		return alert.Action
	case "HOST.NAME":
		return alert.Host
	case "EVENT.ID", "EVENT.PROBLEM.ID":
		return strconv.FormatUint(uint64(alert.ProblemID), 10)
	case "EVENT.RECOVERY.ID":
		if problem {
			return unknownText
		}
		return strconv.FormatUint(uint64(alert.EventID), 10)
	case "EVENT.NAME":
		return alert.Name
	case "EVENT.SEVERITY", "TRIGGER.SEVERITY":
		return alert.Severity.String()
	case "EVENT.NSEVERITY", "TRIGGER.NSEVERITY":
		return strconv.Itoa(int(alert.Severity))
	case "EVENT.STATUS", "TRIGGER.STATUS":
		return status(problem)
	case "EVENT.VALUE", "TRIGGER.VALUE":
		return number(problem)
	case "EVENT.UPDATE.STATUS":
		return number(alert.Kind == model.AlertUpdate)
	case "EVENT.DATE":
		return at.Format(dateForm)
	case "EVENT.TIME":
		return at.Format(timeForm)
	case "EVENT.TIMESTAMP":
		return strconv.FormatInt(at.Unix(), 10)
	}
	if name, ok := strings.CutPrefix(body, "SECRET."); ok {
		if v, ok := ch.Secrets[name]; ok {
			return v
		}
		return unknownText
	}
	if name, ok := strings.CutPrefix(body, "EVENT."); ok {
		if v, ok := tagMacro(name, alert.Tags); ok {
			return v
		}
	}
	return macro
}

// noteFailure logs and counts an alert that is given up.
func (a *Alerter) noteFailure(alert *model.Alert, err error) {
	if errors.Is(err, media.ErrHeld) {
		a.heldCommands.Inc()
		a.options.Logger.Info("alerting: a command was held back", "alert", alert.ID, "media", alert.Media, "problem", alert.ProblemID, "reason", err)
		return
	}
	a.failed.Inc()
	a.options.Logger.Error("alerting: an alert could not be sent", "alert", alert.ID, "media", alert.Media, "problem", alert.ProblemID, "error", err)
}
