package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// compressAfter is the age at which a chunk is compressed: a week, as with Zabbix, and two hours for those who are late.
const compressAfter = 7*24*time.Hour + 2*time.Hour

// makeHypertable turns an empty table into a hypertable. Chunks are dropped and compressed by us, not by policies, which not every
// build of the extension has.
func (db *DB) makeHypertable(ctx context.Context, x executor, k tableKey, step int32) error {
	_, err := x.Exec(ctx, "SELECT create_hypertable($1::text::regclass, 'clock'::name, chunk_time_interval => $2::bigint, if_not_exists => true)", k.String(), int64(step))
	if err != nil || !db.caps.compression {
		return err
	}
	order := "clock, ns"
	if k.trends {
		order = "clock"
	}
	_, err = x.Exec(ctx, fmt.Sprintf("ALTER TABLE %s SET (timescaledb.compress, timescaledb.compress_segmentby = 'itemid', timescaledb.compress_orderby = '%s')", k, order))
	return err
}

// dropChunks drops the chunks that lie before cut.
func dropChunks(ctx context.Context, conn *pgx.Conn, k tableKey, cut int32) (int64, error) {
	size := func() (n int64, err error) {
		err = conn.QueryRow(ctx, "SELECT coalesce(hypertable_size($1::text::regclass), 0)", k.String()).Scan(&n)
		return n, err
	}
	before, err := size()
	if err != nil {
		return 0, err
	}
	if _, err := conn.Exec(ctx, "SELECT drop_chunks($1::text::regclass, older_than => $2::integer)", k.String(), cut); err != nil {
		return 0, fmt.Errorf("drop chunks of %s: %w", k, err)
	}
	after, err := size()
	return max(before-after, 0), err
}

// compressChunks compresses one old chunk of a table, so that a round stays short.
func (db *DB) compressChunks(ctx context.Context, conn *pgx.Conn, k tableKey) error {
	if !db.caps.compression {
		return nil
	}
	cut := int32((db.o.Now() - int64(compressAfter)) / int64(time.Second))
	var chunk string
	err := conn.QueryRow(ctx, `SELECT format('%I.%I', chunk_schema, chunk_name) FROM timescaledb_information.chunks
		WHERE hypertable_name = $1 AND NOT is_compressed AND range_end_integer <= $2 ORDER BY range_end_integer LIMIT 1`, k.String(), int64(cut)).Scan(&chunk)
	if err == pgx.ErrNoRows { //nolint:errorlint // pgx returns it bare
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "SELECT compress_chunk($1::text::regclass, if_not_compressed => true)", chunk); err != nil {
		return fmt.Errorf("compress %s: %w", chunk, err)
	}
	return nil
}
