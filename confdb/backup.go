package confdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// Backup writes a copy of the database, as it is at this moment, to a SQLite file that must not exist. Changes wait meanwhile,
// but for a database in PostgreSQL. A database that is read-only can be copied too.
func (d *DB) Backup(ctx context.Context, to string) (err error) {
	if d.postgres != nil {
		return d.wrap("copy", d.backupPostgres(ctx, to))
	}
	c, err := d.sql.Conn(ctx)
	if err != nil {
		return d.wrap("copy", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var readOnly bool
	if err := c.QueryRowContext(ctx, "PRAGMA query_only").Scan(&readOnly); err != nil {
		return d.wrap("copy", err)
	}
	if readOnly {
		// SQLite takes the new file for a change of this one. Nobody else has the connection meanwhile.
		if _, err := c.ExecContext(ctx, "PRAGMA query_only = OFF"); err != nil {
			return d.wrap("copy", err)
		}
		defer func() {
			_, restored := c.ExecContext(context.WithoutCancel(ctx), "PRAGMA query_only = ON")
			err = errors.Join(err, d.wrap("copy", restored))
		}()
	}
	_, err = c.ExecContext(ctx, "VACUUM INTO ?", to)
	return d.wrap("copy", err)
}

// BackupFile is Backup for the database in the folder of a stopped server. It reports fs.ErrNotExist when there is none.
func BackupFile(ctx context.Context, dir, to string) (err error) {
	path := filepath.Join(dir, FileName)
	if inPostgres, err := InPostgres(dir); err != nil || inPostgres {
		if err != nil {
			return err
		}
		d, err := Open(ctx, dir, Options{})
		if err != nil {
			return err
		}
		return errors.Join(d.Backup(ctx, to), d.Close())
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", dataSource(path))
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return fmt.Errorf("copy %s: %w", path, diskFull(err))
	}
	return nil
}

// diskFull makes SQLite's word for a full disk the system's, so that callers know it.
func diskFull(err error) error {
	var s *sqlite.Error
	if errors.As(err, &s) && s.Code()&0xff == sqlitelib.SQLITE_FULL {
		return fmt.Errorf("%w: %w", err, syscall.ENOSPC)
	}
	return err
}
