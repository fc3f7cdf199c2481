package confdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"tidemark/model"
)

// A plan writes what an import would write and takes it back. A small one does so in the database itself, in some milliseconds; a large
// one would keep all changes waiting for as long as its import takes, and works on a copy of the configuration instead.
const (
	// maxPlanInPlaceBytes is the size of a file that is planned in the database itself.
	maxPlanInPlaceBytes = 256 << 10
	// maxPlanOwners is how many hosts and templates one plan takes.
	maxPlanOwners = 50_000
	// planPattern names the folders of copies, beside the database.
	planPattern = "plan-*"
	// firstPlannedID is above every id that a catalog gives, so that a plan uses none of them up.
	firstPlannedID = 1 << 62
)

// ErrPlanning says that a large plan is being made, and that another one must wait.
var ErrPlanning = errors.New("another large plan is being made; try again when it is done")

// notPlanned are the tables that no import reads or writes. They may be far larger than the configuration.
var notPlanned = map[string]bool{
	"goose_db_version": true, "events": true, "problems": true, "acknowledgements": true, "trigger_states": true, "escalations": true, "alerts": true,
	"users": true, "user_groups": true, "sessions": true, "tokens": true, "audit": true, "dashboards": true, "dashboard_versions": true,
}

// plannedIDs gives ids that are forgotten with the plan.
type plannedIDs struct{ next atomic.Int64 }

func (p *plannedIDs) NextItemID() (model.ItemID, error) {
	return model.ItemID(firstPlannedID + p.next.Add(1)), nil
}

// planOnCopy is Import for a plan that would take long.
func (d *DB) planOnCopy(ctx context.Context, name string, src []byte, o ImportOptions) (_ *Report, err error) {
	if !d.planning.TryLock() {
		return nil, ErrPlanning
	}
	defer d.planning.Unlock()
	dir, err := os.MkdirTemp(d.dir, planPattern)
	if err != nil {
		return nil, d.wrap("plan", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := d.copyConfiguration(ctx, dir); err != nil {
		return nil, d.wrap("copy the configuration for a plan", err)
	}
	scratch, err := Open(ctx, dir, Options{IDs: &plannedIDs{}, Now: d.now})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	// Secrets stay sealed with this database's key.
	scratch.secrets = d.secrets
	return scratch.importThen(ctx, name, src, o, nil)
}

// copyConfiguration makes a database in dir with all that an import may look at. Changes wait meanwhile: for about a
// sixth of the time that the import takes.
func (d *DB) copyConfiguration(ctx context.Context, dir string) (err error) {
	if d.postgres != nil {
		_, err := d.copyToFile(ctx, dir, notPlanned)
		return err
	}
	scratch, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	if err := scratch.Close(); err != nil {
		return err
	}
	conn, err := d.sql.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := conn.ExecContext(ctx, "ATTACH ? AS plan", filepath.Join(dir, FileName)); err != nil {
		return err
	}
	defer func() {
		_, detached := conn.ExecContext(context.WithoutCancel(ctx), "DETACH plan")
		err = errors.Join(err, detached)
	}()
	defer func() { err = errors.Join(err, checkReferences(context.WithoutCancel(ctx), conn)) }()
	// The copy is worth nothing after a crash. Without a look at references, which the database has checked, whole pages of index are copied.
	for _, pragma := range []string{"PRAGMA plan.journal_mode = OFF", "PRAGMA plan.synchronous = OFF", "PRAGMA foreign_keys = OFF"} {
		if _, err := conn.ExecContext(ctx, pragma); err != nil {
			return err
		}
	}
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{})
	if err != nil {
		return err
	}
	if err := copyTables(ctx, tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// checkReferences makes the connection look at references again. One that does not is thrown away.
func checkReferences(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "PRAGMA foreign_keys = ON")
	if err != nil {
		err = errors.Join(err, conn.Raw(func(any) error { return driver.ErrBadConn }))
	}
	return err
}

func copyTables(ctx context.Context, tx *sql.Tx) error {
	var tables []string
	rows, err := tx.QueryContext(ctx, "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
	if err != nil {
		return err
	}
	err = each(rows, func(r *sql.Rows) error {
		var table string
		err := r.Scan(&table)
		tables = append(tables, table)
		return err
	})
	if err != nil {
		return err
	}
	for _, table := range tables {
		if notPlanned[table] {
			continue
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("DELETE FROM plan.%q", table)); err != nil {
			return fmt.Errorf("table %s: %w", table, err)
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO plan.%q SELECT * FROM main.%q", table, table)); err != nil {
			return fmt.Errorf("table %s: %w", table, err)
		}
	}
	return nil
}

// removePlans removes copies that a crash left.
func removePlans(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, planPattern))
	for _, name := range left {
		err = errors.Join(err, os.RemoveAll(name))
	}
	return err
}
