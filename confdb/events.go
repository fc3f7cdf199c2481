package confdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"tidemark/model"
)

// Record writes events, the states of triggers, and the LSN up to which triggers were evaluated, in one transaction.
// Events come in rising order of id; a recovery closes the problem that its ProblemID names. A state replaces the stored
// one of its trigger. An LSN below the stored one is passed over.
func (d *DB) Record(ctx context.Context, events []model.Event, states []model.TriggerState, evaluated model.LSN) error {
	tx, err := d.sql.BeginTx(ctx, nil)
	if err != nil {
		return d.wrap("record events", err)
	}
	if len(events) == 0 && len(states) == 0 && d.postgres != nil && d.postgres.Session != nil {
		// Servers that take over from each other do not wait for the disk: after a crash of the database the same values are evaluated again.
		_, err = tx.ExecContext(ctx, "SET LOCAL synchronous_commit = off")
	}
	if err = errors.Join(err, record(ctx, tx, events, states, evaluated)); err != nil {
		return d.wrap("record events", errors.Join(err, tx.Rollback()))
	}
	return d.wrap("record events", tx.Commit())
}

func record(ctx context.Context, tx *sql.Tx, events []model.Event, states []model.TriggerState, evaluated model.LSN) error {
	c := &change{tx: tx, stmts: make(map[string]*sql.Stmt)}
	for i := range events {
		if err := c.event(ctx, &events[i]); err != nil {
			return errors.Join(fmt.Errorf("event %d: %w", events[i].ID, err), c.closeStatements())
		}
	}
	for _, s := range states {
		err := c.exec(ctx, `INSERT INTO trigger_states (trigger_id, problem, error, changed_at, open_problem) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (trigger_id) DO UPDATE SET problem = excluded.problem, error = excluded.error,
			changed_at = excluded.changed_at, open_problem = excluded.open_problem`,
			s.TriggerID, s.Problem, s.Error, s.ChangedAt, s.OpenProblem)
		if err != nil {
			return errors.Join(fmt.Errorf("state of trigger %d: %w", s.TriggerID, err), c.closeStatements())
		}
	}
	// An LSN is the position in a log: far below the 63 bits that SQLite has.
	err := c.exec(ctx, "UPDATE meta SET value = ?1 WHERE name = 'evaluated' AND value < ?1", int64(evaluated))
	return errors.Join(err, c.closeStatements())
}

// putEvent inserts an event. PostgreSQL may have committed what it could not tell us of any more, and then the same event comes again.
const putEvent = `INSERT INTO events (id, trigger_id, host_id, at, problem, severity, name, opdata, tags, problem_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (id) DO UPDATE SET id = excluded.id
	WHERE events.trigger_id = excluded.trigger_id AND events.at = excluded.at AND events.problem = excluded.problem AND events.problem_id = excluded.problem_id`

func (c *change) event(ctx context.Context, e *model.Event) error {
	put, err := c.prepare(ctx, putEvent)
	if err != nil {
		return err
	}
	done, err := put.ExecContext(ctx, e.ID, e.TriggerID, e.HostID, e.At, e.Problem, e.Severity, e.Name, e.OpData, packTags(e.Tags), e.ProblemID)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, errors.New("another event has this id"))
	}
	if e.Problem {
		return c.exec(ctx, "INSERT INTO problems (event_id, host_id, at) VALUES (?, ?, ?) ON CONFLICT (event_id) DO NOTHING", e.ID, e.HostID, e.At)
	}
	return c.exec(ctx, "UPDATE problems SET recovered_at = ?, recovery_id = ? WHERE event_id = ? AND recovered_at = 0",
		max(e.At, 1), e.ID, e.ProblemID)
}

// TriggerStates returns the stored states in order of trigger id.
func (d *DB) TriggerStates(ctx context.Context) ([]model.TriggerState, error) {
	rows, err := d.sql.QueryContext(ctx, "SELECT trigger_id, problem, error, changed_at, open_problem FROM trigger_states ORDER BY trigger_id")
	if err != nil {
		return nil, d.wrap("read trigger states", err)
	}
	var list []model.TriggerState
	err = each(rows, func(r *sql.Rows) error {
		var s model.TriggerState
		err := r.Scan(&s.TriggerID, &s.Problem, &s.Error, &s.ChangedAt, &s.OpenProblem)
		list = append(list, s)
		return err
	})
	return list, d.wrap("read trigger states", err)
}

// Evaluated returns the last LSN that Record wrote; zero when none.
func (d *DB) Evaluated(ctx context.Context) (model.LSN, error) {
	var n int64
	err := d.sql.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'evaluated'").Scan(&n)
	return model.LSN(n), d.wrap("read evaluated LSN", err)
}

// MaxEventID returns the highest id that an event ever had, deleted ones too; zero when none.
func (d *DB) MaxEventID(ctx context.Context) (model.EventID, error) {
	var n model.EventID
	err := d.sql.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM events").Scan(&n)
	if err != nil {
		return 0, d.wrap("read highest event id", err)
	}
	var kept model.EventID
	err = d.sql.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'last_event'").Scan(&kept)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, d.wrap("read highest event id", err)
	}
	return max(n, kept), nil
}

// OpenProblems returns the problems that no recovery has closed, in order of event id.
func (d *DB) OpenProblems(ctx context.Context) ([]model.Problem, error) {
	list, _, err := d.problems(ctx, "p.recovered_at = 0", nil, "ORDER BY p.event_id")
	return list, err
}

// MaxListed bounds what Problems and Events return at once.
const MaxListed = 10_000

// ProblemFilter says which problems are wanted. Zero fields do not filter.
type ProblemFilter struct {
	// Open leaves out the problems that have recovered.
	Open bool
	// Hosts, if not empty, are the only ones.
	Hosts []model.HostID
	Host  model.HostID
	// MinSeverity is the lowest severity wanted.
	MinSeverity model.Severity
	// Severities, if not empty, are the severities wanted.
	Severities []model.Severity
	// Search is looked for in the name; letters of ASCII match in both cases.
	Search string
	// From and To bound the time at which the problem began, Unix nanoseconds; To is exclusive, zero is open.
	From, To int64
	// Before is the id of the last problem of the page before; zero is the first page.
	Before model.EventID
	// Limit is at most MaxListed; zero is 100.
	Limit int
}

// Problems lists problems, newest first, and how many there are without Before and Limit.
func (d *DB) Problems(ctx context.Context, f ProblemFilter) (list []model.Problem, total int, err error) {
	var where []string
	var args []any
	add := func(condition string, values ...any) {
		where, args = append(where, condition), append(args, values...)
	}
	if f.Open {
		add("p.recovered_at = 0")
	}
	if f.Host != 0 {
		add("p.host_id = ?", f.Host)
	}
	if len(f.Hosts) > 0 {
		add("p.host_id IN (SELECT value FROM json_each(?))", pack(f.Hosts))
	}
	if f.MinSeverity > 0 {
		add("e.severity >= ?", f.MinSeverity)
	}
	if len(f.Severities) > 0 {
		values := make([]any, len(f.Severities))
		for i, s := range f.Severities {
			values[i] = s
		}
		add("e.severity IN ("+strings.TrimSuffix(strings.Repeat("?,", len(values)), ",")+")", values...)
	}
	if f.Search != "" {
		add(`e.name LIKE ? ESCAPE '\'`, likePattern(f.Search))
	}
	if f.From != 0 {
		add("p.at >= ?", f.From)
	}
	if f.To != 0 {
		add("p.at < ?", f.To)
	}
	condition := "true"
	if len(where) > 0 {
		condition = strings.Join(where, " AND ")
	}
	err = d.sql.QueryRowContext(ctx, "SELECT count(*) FROM problems p JOIN events e ON e.id = p.event_id WHERE "+condition, args...).Scan(&total)
	if err != nil {
		return nil, 0, d.wrap("count problems", err)
	}
	if f.Before != 0 {
		condition += " AND p.event_id < ?"
		args = append(args, f.Before)
	}
	list, _, err = d.problems(ctx, condition, append(args, limit(f.Limit)), "ORDER BY p.event_id DESC LIMIT ?")
	return list, total, err
}

func limit(n int) int {
	switch {
	case n <= 0:
		return 100
	case n > MaxListed:
		return MaxListed
	}
	return n
}

// likePattern finds a text anywhere, its wildcards taken literally.
func likePattern(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text) + "%"
}

func (d *DB) problems(ctx context.Context, condition string, args []any, order string) ([]model.Problem, int, error) {
	rows, err := d.sql.QueryContext(ctx, `SELECT e.id, e.trigger_id, e.host_id, e.at, e.severity, e.name, e.opdata, e.tags,
		p.recovered_at, p.recovery_id, p.acknowledged, p.suppressed_until FROM problems p JOIN events e ON e.id = p.event_id WHERE `+condition+" "+order, args...)
	if err != nil {
		return nil, 0, d.wrap("read problems", err)
	}
	var list []model.Problem
	err = each(rows, func(r *sql.Rows) error {
		p := model.Problem{}
		p.Problem = true
		var tags string
		err := r.Scan(&p.ID, &p.TriggerID, &p.HostID, &p.At, &p.Severity, &p.Name, &p.OpData, &tags, &p.RecoveredAt, &p.RecoveryID, &p.Acknowledged,
			&p.SuppressedUntil)
		if err == nil {
			p.Tags, err = unpackTags(tags)
		}
		list = append(list, p)
		return err
	})
	return list, len(list), d.wrap("read problems", err)
}

// EventFilter says which events are wanted. Zero fields do not filter.
type EventFilter struct {
	Host    model.HostID
	Trigger model.TriggerID
	// From and To bound the event's time, Unix nanoseconds; To is exclusive, zero is open.
	From, To int64
	// Before is the id of the last event of the page before; zero is the first page.
	Before model.EventID
	// Limit is at most MaxListed; zero is 100.
	Limit int
}

// Events lists problems and recoveries as they were recorded, newest first.
func (d *DB) Events(ctx context.Context, f EventFilter) ([]model.Event, error) {
	rows, err := d.sql.QueryContext(ctx, `SELECT id, trigger_id, host_id, at, problem, severity, name, opdata, tags, problem_id FROM events
		WHERE (?1 = 0 OR host_id = ?1) AND (?2 = 0 OR trigger_id = ?2) AND at >= ?3 AND (?4 = 0 OR at < ?4) AND (?5 = 0 OR id < ?5)
		ORDER BY id DESC LIMIT ?6`, f.Host, f.Trigger, f.From, f.To, f.Before, limit(f.Limit))
	if err != nil {
		return nil, d.wrap("read events", err)
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
	return list, d.wrap("read events", err)
}

// ResetEvaluated sets the LSN up to which triggers were evaluated, also to a lower one: the store's log was lost, put back from a
// backup, or is another store's.
func (d *DB) ResetEvaluated(ctx context.Context, lsn model.LSN) error {
	_, err := d.sql.ExecContext(ctx, "UPDATE meta SET value = ? WHERE name = 'evaluated'", int64(lsn))
	return d.wrap("reset the evaluated LSN", err)
}

// TranslateEvaluated is ResetEvaluated for the promotion to an epoch: once for each, however often it is called.
func (d *DB) TranslateEvaluated(ctx context.Context, lsn model.LSN, epoch uint64) error {
	const what = "translate the evaluated LSN"
	tx, err := d.sql.BeginTx(ctx, nil)
	if err != nil {
		return d.wrap(what, err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	var done int64
	err = tx.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'translated_epoch'").Scan(&done)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return d.wrap(what, err)
	}
	if uint64(done) == epoch {
		return nil
	}
	if _, err := tx.ExecContext(ctx, "UPDATE meta SET value = ? WHERE name = 'evaluated'", int64(lsn)); err != nil {
		return d.wrap(what, err)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO meta (name, value) VALUES ('translated_epoch', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1", int64(epoch)); err != nil {
		return d.wrap(what, err)
	}
	return d.wrap(what, tx.Commit())
}

// ForgetTriggers deletes the states of triggers that are gone and closes their open problems now, without a recovery
// event. With nil it does so for all triggers that have a state or an open problem and do not exist, which is meant for the
// start: a crash may have come between a deletion and this call.
func (d *DB) ForgetTriggers(ctx context.Context, ids []model.TriggerID) error {
	const open = ` AND recovered_at = 0 AND event_id IN (SELECT e.id FROM problems p JOIN events e ON e.id = p.event_id
		WHERE p.recovered_at = 0 AND `
	now := d.now().UnixNano()
	tx, err := d.sql.BeginTx(ctx, nil)
	if err != nil {
		return d.wrap("forget triggers", err)
	}
	c := &change{tx: tx, stmts: make(map[string]*sql.Stmt)}
	if ids == nil {
		err = c.exec(ctx, "DELETE FROM trigger_states WHERE trigger_id NOT IN (SELECT id FROM triggers)")
		if err == nil {
			err = c.exec(ctx, "UPDATE problems SET recovered_at = ? WHERE true"+open+"e.trigger_id NOT IN (SELECT id FROM triggers))", now)
		}
	}
	for _, id := range ids {
		if err == nil {
			err = c.exec(ctx, "DELETE FROM trigger_states WHERE trigger_id = ?", id)
		}
		if err == nil {
			err = c.exec(ctx, "UPDATE problems SET recovered_at = ? WHERE true"+open+"e.trigger_id = ?)", now, id)
		}
	}
	if err = errors.Join(err, c.closeStatements()); err != nil {
		return d.wrap("forget triggers", errors.Join(err, tx.Rollback()))
	}
	return d.wrap("forget triggers", tx.Commit())
}

// PruneEvents deletes at most limit events that are older than before (Unix nanoseconds), problems that have recovered
// and recoveries, and returns how many. Open problems stay. It is meant to be called until it returns less than limit.
func (d *DB) PruneEvents(ctx context.Context, before int64, limit int) (int, error) {
	tx, err := d.sql.BeginTx(ctx, nil)
	if err != nil {
		return 0, d.wrap("prune events", err)
	}
	// The ids of deleted events are not given again.
	_, err = tx.ExecContext(ctx, `INSERT INTO meta (name, value) SELECT 'last_event', coalesce(max(id), 0) FROM events WHERE true
		ON CONFLICT (name) DO UPDATE SET value = CASE WHEN excluded.value > meta.value THEN excluded.value ELSE meta.value END`)
	var n int64
	if err == nil {
		var r sql.Result
		r, err = tx.ExecContext(ctx, `DELETE FROM events WHERE id IN (SELECT e.id FROM events e
			LEFT JOIN problems p ON p.event_id = e.id WHERE e.at < ? AND coalesce(p.recovered_at, 1) <> 0 ORDER BY e.id LIMIT ?)`, before, limit)
		if err == nil {
			n, err = r.RowsAffected()
		}
	}
	if err != nil {
		return 0, d.wrap("prune events", errors.Join(err, tx.Rollback()))
	}
	return int(n), d.wrap("prune events", tx.Commit())
}
