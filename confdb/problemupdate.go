package confdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"tidemark/model"
)

// MaxUpdated bounds the problems of one update.
const MaxUpdated = 1000

// UpdateProblems changes problems as somebody asked, all or none, and returns what each of them is afterwards, in order of ids. What is so
// already is left out of an update, and so is an update of which nothing is left. Closing and the like of a problem that is over is
// ErrInvalid, an unknown one ErrNotFound. It notes that a problem was closed and does not close it.
func (d *DB) UpdateProblems(ctx context.Context, ids []model.EventID, u model.ProblemUpdate) ([]model.StoredUpdate, error) {
	switch {
	case len(ids) > MaxUpdated:
		return nil, d.wrap("update problems", fmt.Errorf("%d problems, expected at most %d: %w", len(ids), MaxUpdated, ErrInvalid))
	case len(u.Message) > maxTextBytes:
		return nil, d.wrap("update problems", fmt.Errorf("message: %w; %d bytes, at most %d", ErrInvalid, len(u.Message), maxTextBytes))
	}
	u.At = d.now().UnixNano()
	var stored []model.StoredUpdate
	err := d.change(ctx, "update problems", func(c *change) error {
		for _, id := range ids {
			one, err := c.updateProblem(ctx, id, u)
			if err != nil {
				return fmt.Errorf("problem %d: %w", id, err)
			}
			if one.Actions != 0 {
				stored = append(stored, one)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return stored, nil
}

func (c *change) updateProblem(ctx context.Context, id model.EventID, u model.ProblemUpdate) (model.StoredUpdate, error) {
	out := model.StoredUpdate{ProblemUpdate: u}
	p := &out.Problem
	p.ID, p.Problem = id, true
	err := c.tx.QueryRowContext(ctx, `SELECT e.trigger_id, e.host_id, e.severity, p.recovered_at, p.acknowledged, p.suppressed_until
		FROM problems p JOIN events e ON e.id = p.event_id WHERE p.event_id = ?`, id).
		Scan(&p.TriggerID, &p.HostID, &p.Severity, &p.RecoveredAt, &p.Acknowledged, &p.SuppressedUntil)
	if errors.Is(err, sql.ErrNoRows) {
		return out, ErrNotFound
	}
	if err != nil {
		return out, err
	}
	out.OldSeverity, out.WasSuppressedUntil = p.Severity, p.SuppressedUntil
	if p.RecoveredAt != 0 && u.Actions.Has(model.ActionClose|model.ActionSuppress|model.ActionUnsuppress) {
		return out, fmt.Errorf("it is over, so that it can only be acknowledged, commented and given another severity: %w", ErrInvalid)
	}
	out.Actions = applyUpdate(p, &u)
	if out.Actions == 0 {
		return out, nil
	}
	err = c.exec(ctx, "UPDATE problems SET acknowledged = ?, suppressed_until = ? WHERE event_id = ?", p.Acknowledged, p.SuppressedUntil, id)
	if err == nil && out.Actions.Has(model.ActionSeverity) {
		err = c.exec(ctx, "UPDATE events SET severity = ? WHERE id = ?", p.Severity, id)
	}
	if err != nil {
		return out, err
	}
	if !out.Actions.Has(model.ActionSeverity) {
		out.OldSeverity, out.Severity = 0, 0
	}
	if !out.Actions.Has(model.ActionSuppress) {
		out.SuppressedUntil = 0
	}
	return out, c.exec(ctx, `INSERT INTO acknowledgements (event_id, at, author, message, actions, user_id, old_severity, new_severity, suppressed_until)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, id, out.At, out.Author, out.Message, out.Actions, out.User, out.OldSeverity, out.Severity, out.SuppressedUntil)
}

// applyUpdate changes a problem and returns the actions that changed something.
func applyUpdate(p *model.Problem, u *model.ProblemUpdate) model.ProblemActions {
	done := u.Actions & model.ActionClose
	if u.Actions.Has(model.ActionMessage) && u.Message != "" {
		done |= model.ActionMessage
	}
	if u.Actions.Has(model.ActionAcknowledge) && !p.Acknowledged {
		done, p.Acknowledged = done|model.ActionAcknowledge, true
	}
	if u.Actions.Has(model.ActionUnacknowledge) && p.Acknowledged {
		done, p.Acknowledged = done|model.ActionUnacknowledge, false
	}
	if u.Actions.Has(model.ActionSeverity) && u.Severity != p.Severity {
		done, p.Severity = done|model.ActionSeverity, u.Severity
	}
	if u.Actions.Has(model.ActionSuppress) && u.SuppressedUntil != p.SuppressedUntil {
		done, p.SuppressedUntil = done|model.ActionSuppress, u.SuppressedUntil
	}
	if u.Actions.Has(model.ActionUnsuppress) && p.SuppressedUntil > u.At {
		done, p.SuppressedUntil = done|model.ActionUnsuppress, 0
	}
	return done
}

// ProblemUpdates lists what was done to a problem, oldest first.
func (d *DB) ProblemUpdates(ctx context.Context, id model.EventID) ([]model.ProblemUpdate, error) {
	rows, err := d.sql.QueryContext(ctx, `SELECT at, author, message, actions, user_id, old_severity, new_severity, suppressed_until
		FROM acknowledgements WHERE event_id = ? ORDER BY id`, id)
	if err != nil {
		return nil, d.wrap("read updates of a problem", err)
	}
	var list []model.ProblemUpdate
	err = each(rows, func(r *sql.Rows) error {
		var u model.ProblemUpdate
		err := r.Scan(&u.At, &u.Author, &u.Message, &u.Actions, &u.User, &u.OldSeverity, &u.Severity, &u.SuppressedUntil)
		list = append(list, u)
		return err
	})
	return list, d.wrap("read updates of a problem", err)
}
