package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// briefly is how long a change of what others read may wait for them, and with it everybody who wants to read it next.
	briefly = "SET LOCAL lock_timeout = '300ms'"
	// Error codes of PostgreSQL.
	lockNotAvailable = "55P03"
	deadlockDetected = "40P01"
)

// prepareViews makes the views that are missing or not as they should be, at the start. It waits neither for the disk, because whoever reads them does not know
// of a crash in between, nor for somebody who reads a view for hours.
func (db *DB) prepareViews(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "SET synchronous_commit = off"); err != nil {
		return err
	}
	defer conn.Exec(context.WithoutCancel(ctx), "RESET synchronous_commit") //nolint:errcheck // a lost connection has no settings
	return db.keepViews(ctx, conn, allViews())
}

// keepViews makes views that are missing or not as they should be, each in a transaction of its own: one that held several could wait in a circle with a
// report that reads the same ones.
func (db *DB) keepViews(ctx context.Context, conn *pgx.Conn, keys []tableKey) error {
	for _, k := range keys {
		err := db.fenced(ctx, conn, func(tx pgx.Tx) error {
			current, err := db.viewIsCurrent(ctx, tx, k)
			if err != nil || current {
				return err
			}
			return db.tryViews(ctx, tx, []tableKey{k})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tryViews makes views at the end of a transaction. Those that somebody reads right now are left as they are, and the keeper makes them later.
func (db *DB) tryViews(ctx context.Context, tx pgx.Tx, keys []tableKey) error {
	err := pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error {
		if _, err := part.Exec(ctx, briefly); err != nil {
			return err
		}
		return db.makeViews(ctx, part, keys)
	})
	if isLocked(err) {
		if !db.viewsDue.Swap(true) {
			db.o.Logger.Info("a view is being read and is changed later; until then it may lack the newest table", "error", err)
		}
		return nil
	}
	return err
}

// isLocked reports whether somebody else had what a statement needed for too long.
func isLocked(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refused.Code == lockNotAvailable || refused.Code == deadlockDetected)
}

// makeViews makes the views with Zabbix's names over the tables of all classes. A table of that name, such as Zabbix's own, is left alone.
func (db *DB) makeViews(ctx context.Context, x executor, keys []tableKey) error {
	done := map[string]bool{}
	for _, k := range keys {
		if done[k.view()] {
			continue
		}
		done[k.view()] = true
		var taken bool
		if err := x.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass($1) AND relkind <> 'v')", k.view()).Scan(&taken); err != nil {
			return err
		}
		if taken {
			db.o.Logger.Warn("a table has the name of a view, which is not made", "name", k.view())
			continue
		}
		text, err := viewText(ctx, x, k)
		if err != nil {
			return err
		}
		if _, err := x.Exec(ctx, fmt.Sprintf("CREATE OR REPLACE VIEW %[1]s AS %[2]s; COMMENT ON VIEW %[1]s IS '%[3]s'", k.view(), text, viewMark(text))); err != nil {
			return fmt.Errorf("create view %s: %w", k.view(), err)
		}
	}
	return nil
}

// viewIsCurrent reports whether a view need not be made, by the mark that makeViews left: PostgreSQL gives back another text than it was given, and to replace a
// view one must be alone with it.
func (db *DB) viewIsCurrent(ctx context.Context, x executor, k tableKey) (bool, error) {
	text, err := viewText(ctx, x, k)
	if err != nil {
		return false, err
	}
	var current bool
	err = x.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass($1) AND relkind = 'v' AND obj_description(oid, 'pg_class') = $2)", k.view(), viewMark(text)).Scan(&current)
	return current, err
}

// viewMark is the comment of a view that has a text.
func viewMark(text string) string {
	return fmt.Sprintf("Tidemark: all retention classes together (%.6x)", sha256.Sum256([]byte(text)))
}

// viewText is what a view should be.
func viewText(ctx context.Context, x executor, k tableKey) (string, error) {
	found := map[tableKey]*tableState{}
	if err := readTables(ctx, x, found); err != nil {
		return "", err
	}
	var parts []string
	for class := range uint8(MaxClasses) {
		part := tableKey{valueType: k.valueType, class: class, trends: k.trends}
		if t := found[part]; t != nil {
			parts = append(parts, part.source(t.old))
		}
	}
	return k.selection(parts), nil
}

// selection is the body of a view.
func (k tableKey) selection(parts []string) string {
	if len(parts) == 0 {
		typed := map[string]string{"itemid": "bigint", "num": "bigint"}
		for _, c := range strings.Split(k.ddl(), ", ") {
			if name, kind, ok := strings.Cut(strings.TrimSuffix(c, " NOT NULL"), " "); ok && typed[name] == "" {
				typed[name] = kind
			}
		}
		var columns []string
		for _, name := range strings.Split(k.public(), ", ") {
			columns = append(columns, fmt.Sprintf("NULL::%s AS %s", typed[name], name))
		}
		return "SELECT " + strings.Join(columns, ", ") + " WHERE false"
	}
	for i, p := range parts {
		parts[i] = "SELECT " + k.public() + " FROM " + p + " AS t"
	}
	return strings.Join(parts, " UNION ALL ")
}
