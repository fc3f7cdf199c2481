package confdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tidemark/confdb/pgdriver"
	"tidemark/model"
)

// change is one transaction that changes configuration. It remembers which hosts it touched, so that they get a new
// revision when it commits.
type change struct {
	db    *DB
	tx    *sql.Tx
	stmts map[string]*sql.Stmt

	touched   map[model.HostID]bool
	all       bool           // a global macro changed: every host is touched
	deleted   []model.HostID // hosts that are gone when it commits
	templates bool           // the decoded template definitions are out of date
}

// change runs f in a transaction. Nothing of it stays when f or the commit fails.
func (d *DB) change(ctx context.Context, what string, f func(*change) error) error {
	tx, err := d.sql.BeginTx(ctx, nil)
	if err != nil {
		return d.wrap(what, err)
	}
	c := &change{db: d, tx: tx, stmts: make(map[string]*sql.Stmt), touched: make(map[model.HostID]bool)}
	if err := errors.Join(f(c), c.closeStatements()); err != nil {
		return d.wrap(what, errors.Join(err, tx.Rollback()))
	}
	changed, err := c.bump(ctx)
	if err != nil {
		return d.wrap(what, errors.Join(err, tx.Rollback()))
	}
	d.mu.Lock()
	for _, id := range c.deleted {
		delete(d.declared, id)
	}
	d.mu.Unlock()
	if c.templates {
		// Before the commit: this transaction holds the one connection, so nobody can read definitions in between.
		d.mu.Lock()
		d.definitions = nil
		d.mu.Unlock()
	}
	err = tx.Commit()
	if changed { // after an error, too: where the answer did not come it may have happened
		d.announce()
	}
	if changed && err == nil {
		d.changes.Inc()
	}
	return d.wrap(what, err)
}

// announce lets Changed deliver.
func (d *DB) announce() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// bump gives the touched hosts the next revision.
func (c *change) bump(ctx context.Context) (bool, error) {
	if len(c.touched) == 0 && !c.all {
		return false, nil
	}
	if _, err := c.tx.ExecContext(ctx, "UPDATE meta SET value = value + 1 WHERE name = 'revision'"); err != nil {
		return false, err
	}
	const newest = "(SELECT value FROM meta WHERE name = 'revision')"
	if c.all {
		_, err := c.tx.ExecContext(ctx, "UPDATE hosts SET revision = "+newest)
		return true, err
	}
	stmt, err := c.tx.PrepareContext(ctx, "UPDATE hosts SET revision = "+newest+" WHERE id = ?")
	if err != nil {
		return false, err
	}
	for _, id := range slices.Sorted(maps.Keys(c.touched)) {
		if _, err := stmt.ExecContext(ctx, id); err != nil {
			return false, errors.Join(err, stmt.Close())
		}
	}
	return true, stmt.Close()
}

func (c *change) touch(h model.HostID) { c.touched[h] = true }

func (c *change) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if s := c.stmts[query]; s != nil {
		return s, nil
	}
	s, err := c.tx.PrepareContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	c.stmts[query] = s
	return s, nil
}

func (c *change) closeStatements() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	c.stmts = nil
	return errors.Join(errs...)
}

// exec runs a statement. PostgreSQL may be sent it later, together with others, and its error comes then; see execNow.
func (c *change) exec(ctx context.Context, query string, args ...any) error {
	return c.execNow(pgdriver.Later(ctx), query, args...)
}

// execNow is exec for who looks at the error.
func (c *change) execNow(ctx context.Context, query string, args ...any) error {
	s, err := c.prepare(ctx, query)
	if err != nil {
		return err
	}
	_, err = s.ExecContext(ctx, args...)
	return err
}

// insert runs an INSERT and returns the id of the new row.
func (c *change) insert(ctx context.Context, query string, args ...any) (int64, error) {
	return c.id(ctx, query+" RETURNING id", args...)
}

// query calls scan for each row.
func (c *change) query(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	s, err := c.prepare(ctx, query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	return each(rows, scan)
}

// id returns the first column of the first row, or zero.
func (c *change) id(ctx context.Context, query string, args ...any) (int64, error) {
	var id int64
	err := c.query(ctx, func(r *sql.Rows) error {
		if id != 0 {
			return nil
		}
		return r.Scan(&id)
	}, query, args...)
	return id, err
}

// each calls scan for every row and closes rows.
func each(rows *sql.Rows, scan func(*sql.Rows) error) error {
	for rows.Next() {
		if err := scan(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}
