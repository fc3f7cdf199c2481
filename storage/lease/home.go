package lease

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// homeSQL finds the schema of the tables of values and of the lease: where some of them are, else the first of the search path that is not the configuration's.
const homeSQL = `SELECT coalesce(quote_ident(coalesce(
	(SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = coalesce(to_regclass('tidemark_schema'), to_regclass('tidemark_lease'))),
	(SELECT s.name FROM unnest(current_schemas(false)) WITH ORDINALITY AS s(name, place)
		WHERE 2 > (SELECT count(*) FROM pg_tables t WHERE t.schemaname = s.name AND t.tablename IN ('goose_db_version', 'trigger_states')) ORDER BY s.place LIMIT 1),
	current_schema())), ''), current_setting('search_path')`

// SearchPath returns the search path with which connections find the tables in one place, whatever schemas are made later. With PostgreSQL's own, "$user", public, the tables
// of a role named tidemark would be in the schema public until the configuration makes a schema tidemark, and in that one from then on.
func SearchPath(ctx context.Context, conn interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) (string, error) {
	var home, path string
	if err := conn.QueryRow(ctx, homeSQL).Scan(&home, &path); err != nil {
		return "", fmt.Errorf("look for the schema of the tables: %w", err)
	}
	switch {
	case home == "": // none of the search path exists
		return path, nil
	case path == "":
		return home, nil
	}
	return home + ", " + path, nil
}
