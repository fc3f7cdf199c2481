package confdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tidemark/model"
)

const (
	// maxRecentEvents bounds the events that LoadAlerts returns for the detection of flapping.
	maxRecentEvents = 100_000
	// pruneAlerts bounds the alerts deleted in one transaction.
	pruneAlerts = 10_000
	// maxAlertObjectBytes bounds one object; imported media types hold whole scripts.
	maxAlertObjectBytes = 256 << 10
	eventFields         = "e.id, e.trigger_id, e.host_id, e.at, e.problem, e.severity, e.name, e.opdata, e.tags, e.problem_id"
)

// LoadAlerts reads what RecordAlerts and PutAlertObjects wrote, and the events since a time (Unix nanoseconds) that were
// looked at already. Escalations whose problem was deleted are left out.
func (d *DB) LoadAlerts(ctx context.Context, since int64) (model.AlertsLoaded, error) {
	var l model.AlertsLoaded
	err := d.alertCounters(ctx, &l)
	if err == nil {
		l.Objects, err = d.alertObjects(ctx)
	}
	if err == nil {
		l.Escalations, err = d.escalations(ctx)
	}
	if err == nil {
		l.Waiting, err = d.alerts(ctx, "state IN (0, 3) ORDER BY id")
	}
	if err == nil {
		l.Recent, err = d.eventList(ctx, `SELECT `+eventFields+` FROM events e WHERE e.id <= ? AND e.at >= ? ORDER BY e.id DESC LIMIT ?`,
			l.LastEvent, since, maxRecentEvents)
	}
	for i, j := 0, len(l.Recent)-1; i < j; i, j = i+1, j-1 {
		l.Recent[i], l.Recent[j] = l.Recent[j], l.Recent[i]
	}
	return l, d.wrap("read alerts", err)
}

func (d *DB) alertCounters(ctx context.Context, l *model.AlertsLoaded) error {
	err := d.sql.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'last_alert'").Scan(&l.LastAlert)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	err = d.sql.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'alerted_event'").Scan(&l.LastEvent)
	if errors.Is(err, sql.ErrNoRows) {
		// Alerting starts here: what happened before is not news.
		if l.LastEvent, err = d.MaxEventID(ctx); err == nil {
			_, err = d.sql.ExecContext(ctx, "INSERT INTO meta (name, value) VALUES ('alerted_event', ?)", l.LastEvent)
		}
	}
	return err
}

func (d *DB) alertObjects(ctx context.Context) ([]model.AlertObject, error) {
	rows, err := d.sql.QueryContext(ctx, "SELECT kind, name, body FROM alert_objects ORDER BY kind, name")
	if err != nil {
		return nil, err
	}
	var list []model.AlertObject
	err = each(rows, func(r *sql.Rows) error {
		var o model.AlertObject
		var body string
		if err := r.Scan(&o.Kind, &o.Name, &body); err != nil {
			return err
		}
		// One whose secrets cannot be read is left out and logged; the others go on.
		if o.Body = []byte(d.secrets.shown(body, alertObjectPlace(o.Kind, o.Name))); len(o.Body) > 0 {
			list = append(list, o)
		}
		return nil
	})
	return list, err
}

func (d *DB) escalations(ctx context.Context) ([]model.Escalation, error) {
	rows, err := d.sql.QueryContext(ctx, `SELECT action, problem_id, current_id, recovery_id, step, next_at, held_until, told FROM escalations
		WHERE problem_id IN (SELECT id FROM events) ORDER BY problem_id, action`)
	if err != nil {
		return nil, err
	}
	var list []model.Escalation
	err = each(rows, func(r *sql.Rows) error {
		var e model.Escalation
		var told string
		err := r.Scan(&e.Action, &e.ProblemID, &e.CurrentID, &e.RecoveryID, &e.Step, &e.NextAt, &e.HeldUntil, &told)
		if err == nil && told != "" {
			err = json.Unmarshal([]byte(told), &e.Told)
		}
		list = append(list, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	events := make(map[model.EventID]model.Event, len(list))
	named, err := d.eventList(ctx, `SELECT `+eventFields+` FROM events e WHERE e.id IN
		(SELECT problem_id FROM escalations UNION SELECT current_id FROM escalations UNION SELECT recovery_id FROM escalations)`)
	for _, e := range named {
		events[e.ID] = e
	}
	for i := range list {
		e := &list[i]
		e.Problem, e.Current, e.Recovery = events[e.ProblemID], events[e.CurrentID], events[e.RecoveryID]
	}
	return list, err
}

// EventsAfter returns at most limit events with a higher id, in order of id.
func (d *DB) EventsAfter(ctx context.Context, id model.EventID, limit int) ([]model.Event, error) {
	list, err := d.eventList(ctx, `SELECT `+eventFields+` FROM events e WHERE e.id > ? ORDER BY e.id LIMIT ?`, id, limit)
	return list, d.wrap("read events", err)
}

func (d *DB) eventList(ctx context.Context, query string, args ...any) ([]model.Event, error) {
	rows, err := d.sql.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	var list []model.Event
	err = each(rows, func(r *sql.Rows) error {
		var e model.Event
		var tags string
		err := r.Scan(&e.ID, &e.TriggerID, &e.HostID, &e.At, &e.Problem, &e.Severity, &e.Name, &e.OpData, &tags, &e.ProblemID)
		if err == nil {
			e.Tags, err = unpackTags(tags)
		}
		list = append(list, e)
		return err
	})
	return list, err
}

// RecordAlerts writes a change in one transaction: all of it or nothing.
func (d *DB) RecordAlerts(ctx context.Context, r model.AlertChange) error {
	return d.change(ctx, "record alerts", func(c *change) error {
		for i := range r.Ended {
			if err := c.exec(ctx, "DELETE FROM escalations WHERE problem_id = ? AND action = ?", r.Ended[i].ProblemID, r.Ended[i].Action); err != nil {
				return fmt.Errorf("end of the escalation of problem %d: %w", r.Ended[i].ProblemID, err)
			}
		}
		for i := range r.Escalations {
			if err := c.escalation(ctx, &r.Escalations[i]); err != nil {
				return fmt.Errorf("escalation of problem %d: %w", r.Escalations[i].ProblemID, err)
			}
		}
		last := uint64(0)
		for i := range r.Alerts {
			last = max(last, r.Alerts[i].ID)
			if err := c.alert(ctx, &r.Alerts[i]); err != nil {
				return fmt.Errorf("alert %d: %w", r.Alerts[i].ID, err)
			}
		}
		if r.PruneBefore != 0 {
			err := c.exec(ctx, `DELETE FROM alerts WHERE id IN (SELECT id FROM alerts WHERE created_at < ? AND state <> 0 LIMIT ?)`, r.PruneBefore, pruneAlerts)
			if err != nil {
				return err
			}
		}
		for id, tags := range r.Tags {
			if err := c.addTags(ctx, id, tags); err != nil {
				return fmt.Errorf("tags of event %d: %w", id, err)
			}
		}
		const keep = `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = CASE WHEN excluded.value > meta.value THEN excluded.value ELSE meta.value END`
		return errors.Join(c.exec(ctx, keep, "alerted_event", r.LastEvent), c.exec(ctx, keep, "last_alert", last))
	})
}

func (c *change) escalation(ctx context.Context, e *model.Escalation) error {
	told := ""
	if len(e.Told) > 0 {
		text, err := json.Marshal(e.Told)
		if err != nil {
			return err
		}
		told = string(text)
	}
	return c.exec(ctx, `INSERT INTO escalations (action, problem_id, current_id, recovery_id, step, next_at, held_until, told) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (problem_id, action) DO UPDATE SET current_id = excluded.current_id, recovery_id = excluded.recovery_id, step = excluded.step,
		next_at = excluded.next_at, held_until = excluded.held_until, told = excluded.told`,
		e.Action, e.ProblemID, e.CurrentID, e.RecoveryID, e.Step, e.NextAt, e.HeldUntil, told)
}

// maxEventTags bounds the tags of one event.
const maxEventTags = 200

// addTags adds tags to an event that it does not have yet; an event that is gone is passed over.
func (c *change) addTags(ctx context.Context, id model.EventID, more []model.Tag) error {
	var text string
	err := c.tx.QueryRowContext(ctx, "SELECT tags FROM events WHERE id = ?", id).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	tags, err := unpackTags(text)
	if err != nil {
		return err
	}
	for _, tag := range more {
		if len(tags) < maxEventTags && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return c.exec(ctx, "UPDATE events SET tags = ? WHERE id = ?", packTags(tags), id)
}

func (c *change) alert(ctx context.Context, a *model.Alert) error {
	macros := ""
	if len(a.Macros) > 0 {
		text, err := json.Marshal(a.Macros)
		if err != nil {
			return err
		}
		macros = string(text)
	}
	return c.exec(ctx, `INSERT INTO alerts (id, action, kind, event_id, problem_id, severity, host, name, tags, step, receiver, media, sent_to,
		subject, body, state, attempts, next_at, created_at, sent_at, at, error, together, macros) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET action = excluded.action, kind = excluded.kind, event_id = excluded.event_id, problem_id = excluded.problem_id,
		severity = excluded.severity, host = excluded.host, name = excluded.name, tags = excluded.tags, step = excluded.step, receiver = excluded.receiver,
		media = excluded.media, sent_to = excluded.sent_to, subject = excluded.subject, body = excluded.body, state = excluded.state,
		attempts = excluded.attempts, next_at = excluded.next_at, created_at = excluded.created_at, sent_at = excluded.sent_at, at = excluded.at,
		error = excluded.error, together = excluded.together, macros = excluded.macros`,
		a.ID, a.Action, a.Kind, a.EventID, a.ProblemID, a.Severity, a.Host, a.Name, packTags(a.Tags), a.Step, a.Receiver, a.Media, a.To,
		a.Subject, a.Body, a.State, a.Attempts, a.NextAt, a.CreatedAt, a.SentAt, a.At, a.Error, a.Together, macros)
}

// Alerts lists alerts, newest first.
func (d *DB) Alerts(ctx context.Context, f model.AlertFilter) ([]model.Alert, error) {
	where, args := []string{"true"}, []any{}
	if f.Problem != 0 {
		where, args = append(where, "problem_id = ?"), append(args, f.Problem)
	}
	if f.Before != 0 {
		where, args = append(where, "id < ?"), append(args, f.Before)
	}
	if len(f.Hosts) > 0 {
		where = append(where, "event_id IN (SELECT id FROM events WHERE host_id IN (SELECT value FROM json_each(?)))")
		args = append(args, pack(f.Hosts))
	}
	if len(f.States) > 0 {
		where = append(where, "state IN ("+strings.TrimSuffix(strings.Repeat("?,", len(f.States)), ",")+")")
		for _, s := range f.States {
			args = append(args, s)
		}
	}
	list, err := d.alerts(ctx, strings.Join(where, " AND ")+" ORDER BY id DESC LIMIT ?", append(args, limit(f.Limit))...)
	return list, d.wrap("read alerts", err)
}

func (d *DB) alerts(ctx context.Context, condition string, args ...any) ([]model.Alert, error) {
	rows, err := d.sql.QueryContext(ctx, `SELECT id, action, kind, event_id, problem_id, severity, host, name, tags, step, receiver, media, sent_to,
		subject, body, state, attempts, next_at, created_at, sent_at, at, error, together, macros FROM alerts WHERE `+condition, args...)
	if err != nil {
		return nil, err
	}
	var list []model.Alert
	err = each(rows, func(r *sql.Rows) error {
		var a model.Alert
		var tags, macros string
		err := r.Scan(&a.ID, &a.Action, &a.Kind, &a.EventID, &a.ProblemID, &a.Severity, &a.Host, &a.Name, &tags, &a.Step, &a.Receiver, &a.Media, &a.To,
			&a.Subject, &a.Body, &a.State, &a.Attempts, &a.NextAt, &a.CreatedAt, &a.SentAt, &a.At, &a.Error, &a.Together, &macros)
		if err == nil {
			a.Tags, err = unpackTags(tags)
		}
		if err == nil && macros != "" {
			err = json.Unmarshal([]byte(macros), &a.Macros)
		}
		list = append(list, a)
		return err
	})
	return list, err
}

// PutAlertObjects stores objects over those with the same kind and name and deletes others, in one transaction.
func (d *DB) PutAlertObjects(ctx context.Context, puts, deletes []model.AlertObject) error {
	return d.change(ctx, "store alert objects", func(c *change) error {
		for _, o := range deletes {
			if err := c.exec(ctx, "DELETE FROM alert_objects WHERE kind = ? AND name = ?", o.Kind, o.Name); err != nil {
				return err
			}
		}
		for _, o := range puts {
			if err := d.putObject(ctx, c, "alert_objects", alertObjectPlace(o.Kind, o.Name), o); err != nil {
				return err
			}
		}
		return nil
	})
}

// putObject stores an object with its secrets sealed for place, over one with the same kind and name.
func (d *DB) putObject(ctx context.Context, c *change, table, place string, o model.AlertObject) error {
	if len(o.Body) > maxAlertObjectBytes {
		return fmt.Errorf("%s %q: %w; %d bytes, at most %d", o.Kind, o.Name, ErrInvalid, len(o.Body), maxAlertObjectBytes)
	}
	body, err := d.secrets.seal(string(o.Body), place)
	if err != nil {
		return fmt.Errorf("%s %q: %w", o.Kind, o.Name, err)
	}
	return c.exec(ctx, "INSERT INTO "+table+" (kind, name, body) VALUES (?, ?, ?) ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body",
		o.Kind, o.Name, body)
}
