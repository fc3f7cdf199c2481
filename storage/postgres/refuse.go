package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// refuseDatabase says why tables cannot be made in a database, and what to do, before any is.
func refuseDatabase(ctx context.Context, pool *pgxpool.Pool) error {
	var encoding, role, database, schema string
	var readOnly, may bool
	err := pool.QueryRow(ctx, `SELECT current_setting('server_encoding'), current_user::text, current_database()::text, coalesce(current_schema()::text, ''),
		pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean, coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)`).
		Scan(&encoding, &role, &database, &schema, &readOnly, &may)
	switch {
	case err != nil:
		return fmt.Errorf("look at the database: %w", err)
	case encoding != "UTF8":
		return fmt.Errorf("the database %s is encoded in %s, which cannot hold every text; make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", database, encoding)
	case readOnly:
		return fmt.Errorf("the database %s can only be read there: it is a replica, or default_transaction_read_only is on; name the server that can be written"+
			" (with several hosts in the connection string target_session_attrs=read-write finds it)", database)
	case schema == "":
		return fmt.Errorf("no schema of the search path exists in the database %s; CREATE SCHEMA it, or name another one by search_path in the connection string", database)
	case !may:
		return fmt.Errorf("the role %s may not make tables in the schema %s of the database %s; GRANT CREATE ON SCHEMA %[2]s TO %[1]s, or make it the owner of the database", role, schema, database)
	}
	return nil
}
