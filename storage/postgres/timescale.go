package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// compressAfter is the age at which a chunk is compressed: a week, as with Zabbix, and two hours for those who are late.
const compressAfter = 7*24*time.Hour + 2*time.Hour

const (
	// mergeAfter is how long no value must have come for any compressed chunk before late ones are merged: the writer would wait for the chunk that is merged.
	mergeAfter = 10 * time.Minute
	// mergeAnyway is the time after which one chunk is merged although they keep coming.
	mergeAnyway = 6 * time.Hour
	// compressTimeout bounds the compression of one chunk, of which a day's may have gigabytes.
	compressTimeout = 2 * time.Hour
)

// The functions of the extension that we call, where the installed version has them. Versions rename them, so what counts is which are
// there, not the number of the version.
const (
	createHypertable = "create_hypertable"
	dropChunksName   = "drop_chunks"
	byRange          = "by_range"               // since 2.13
	toColumnstore    = "convert_to_columnstore" // since 2.18, in place of compress_chunk
	compressChunk    = "compress_chunk"
	recompressChunk  = "recompress_chunk" // before 2.14 compress_chunk leaves a chunk with late values as it is
)

// capabilities are what the database can do, found out at Open.
type capabilities struct {
	// version is PostgreSQL's number, such as 150014.
	version int
	// timescale is the version of the extension that is created in the database; empty for none. schema is where its functions are, quoted.
	timescale, schema string
	// license is that of the installed build: "timescale", or "apache" for one without compression.
	license   string
	functions []string
	// limitsUnpacking says that one transaction may touch only so many rows of compressed chunks (since 2.14).
	limitsUnpacking bool
	// tellsPartial says that the extension's list of chunks tells which compressed ones have values that are not.
	tellsPartial bool
}

// unpackingLimit bounds the rows of compressed chunks that a transaction touches, 100,000 unless somebody set it.
const unpackingLimit = "timescaledb.max_tuples_decompressed_per_dml_transaction"

// probe finds out what the database can do. A version is never refused for being new.
func probe(ctx context.Context, conn *pgx.Conn) (capabilities, error) {
	var c capabilities
	wanted := []string{createHypertable, dropChunksName, byRange, toColumnstore, compressChunk, recompressChunk}
	err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, coalesce(x.version, ''), coalesce(x.schema, ''),
			coalesce(current_setting('timescaledb.license', true), ''), coalesce(x.functions, '{}'), current_setting($2, true) IS NOT NULL,
			EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('_timescaledb_catalog.chunk') AND attname = 'status')
		FROM (SELECT 1) AS one LEFT JOIN (
			SELECT e.extversion AS version, quote_ident(n.nspname) AS schema,
				ARRAY(SELECT DISTINCT p.proname::text FROM pg_proc p WHERE p.pronamespace = e.extnamespace AND p.proname = ANY ($1::text[])) AS functions
			FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'timescaledb') x ON true`, wanted, unpackingLimit).
		Scan(&c.version, &c.timescale, &c.schema, &c.license, &c.functions, &c.limitsUnpacking, &c.tellsPartial)
	if err != nil {
		return c, fmt.Errorf("find out what the database can do: %w", err)
	}
	if c.version < minVersion {
		return c, fmt.Errorf("PostgreSQL %d, expected 12 or newer", c.version/10_000)
	}
	return c, nil
}

// minVersion is the first PostgreSQL whose partitioned tables may have a primary key and a default partition, and prune while they run.
const minVersion = 120_000

func (c *capabilities) has(function string) bool { return slices.Contains(c.functions, function) }

// checkTimescale says why mode Timescale is not possible, or nil.
func (c *capabilities) checkTimescale() error {
	if c.timescale == "" {
		return errors.New("mode timescale: the extension timescaledb is not created in this database; CREATE EXTENSION timescaledb, or choose another mode")
	}
	for _, f := range []string{createHypertable, dropChunksName} {
		if !c.has(f) {
			return fmt.Errorf("mode timescale: the extension timescaledb %s has no function %s; choose mode partitions", c.timescale, f)
		}
	}
	return nil
}

// compression says that the installed build may compress chunks and takes values for those that it has compressed, which builds without by_range may refuse where
// there is a primary key: one late value would keep the writer from storing anything.
func (c *capabilities) compression() bool {
	return c.timescale != "" && c.license == "timescale" && (c.has(toColumnstore) || c.has(compressChunk) && c.has(byRange))
}

// permitUnpacking lets a transaction store values from a time on, however many rows of compressed chunks they touch. Beyond the limit of the extension all of it
// would be refused, again and again. It takes note that they come.
func (db *DB) permitUnpacking(ctx context.Context, tx pgx.Tx, from int64) error {
	now := db.o.Now()
	if from >= now-int64(compressAfter) {
		return nil
	}
	db.lateAt.Store(now)
	if !db.caps.limitsUnpacking {
		return nil
	}
	_, err := tx.Exec(ctx, "SET LOCAL "+unpackingLimit+" = 0")
	return err
}

// hypertableSQL makes the table $1 a hypertable with chunks of $2 seconds.
func (c *capabilities) hypertableSQL() string {
	if c.has(byRange) {
		return fmt.Sprintf("SELECT %[1]s.create_hypertable($1::text::regclass, %[1]s.by_range('clock', $2::bigint), create_default_indexes => false, if_not_exists => true)", c.schema)
	}
	return fmt.Sprintf("SELECT %s.create_hypertable($1::text::regclass, 'clock'::name, chunk_time_interval => $2::bigint, create_default_indexes => false, if_not_exists => true)", c.schema)
}

// compressionSQL permits the chunks of a hypertable to be compressed.
func (c *capabilities) compressionSQL(k tableKey) string {
	order := "clock, ns"
	if k.trends {
		order = "clock"
	}
	if c.has(toColumnstore) {
		return fmt.Sprintf("ALTER TABLE %s SET (timescaledb.enable_columnstore, timescaledb.segmentby = 'itemid', timescaledb.orderby = '%s')", k, order)
	}
	return fmt.Sprintf("ALTER TABLE %s SET (timescaledb.compress, timescaledb.compress_segmentby = 'itemid', timescaledb.compress_orderby = '%s')", k, order)
}

// compressSQL compresses the chunk $1.
func (c *capabilities) compressSQL() string {
	if c.has(toColumnstore) {
		return fmt.Sprintf("CALL %s.convert_to_columnstore($1::text::regclass, if_not_columnstore => true)", c.schema)
	}
	return fmt.Sprintf("SELECT %s.compress_chunk($1::text::regclass, if_not_compressed => true)", c.schema)
}

// mergeSQL compresses what is not compressed of the chunk $1, which is compressed.
func (c *capabilities) mergeSQL() string {
	if c.has(toColumnstore) || !c.has(recompressChunk) {
		return c.compressSQL()
	}
	return fmt.Sprintf("CALL %s.recompress_chunk($1::text::regclass, if_not_compressed => true)", c.schema)
}

// makeHypertable turns an empty table into a hypertable. Chunks are dropped and compressed by us, not by policies, which not every
// build of the extension has.
func (db *DB) makeHypertable(ctx context.Context, x executor, k tableKey, step int32) error {
	_, err := x.Exec(ctx, db.caps.hypertableSQL(), k.String(), int64(step))
	if err != nil || !db.caps.compression() {
		return err
	}
	_, err = x.Exec(ctx, db.caps.compressionSQL(k))
	return err
}

// hypertableSizeSQL is of what a hypertable named $1 takes, with what is compressed.
func (c *capabilities) hypertableSizeSQL() string {
	return fmt.Sprintf("SELECT coalesce(%s.hypertable_size($1::text::regclass), 0)::bigint", c.schema)
}

// hypertablesSizeSQL is the same of all hypertables that we made.
func (c *capabilities) hypertablesSizeSQL() string {
	return fmt.Sprintf("SELECT coalesce(sum(%s.hypertable_size(to_regclass(name))), 0)::bigint FROM tidemark_tables WHERE mode = 'timescale'", c.schema)
}

// dropChunks drops the chunks of a table that lie before cut.
func (db *DB) dropChunks(ctx context.Context, conn *pgx.Conn, k tableKey, cut int32) (int64, error) {
	var before, after int64
	if err := conn.QueryRow(ctx, db.caps.hypertableSizeSQL(), k.String()).Scan(&before); err != nil {
		return 0, err
	}
	if _, err := db.execFenced(ctx, conn, fmt.Sprintf("SELECT %s.drop_chunks($1::text::regclass, older_than => $2::integer)", db.caps.schema), k.String(), cut); err != nil {
		return 0, fmt.Errorf("drop chunks of %s: %w", k, err)
	}
	err := conn.QueryRow(ctx, db.caps.hypertableSizeSQL(), k.String()).Scan(&after)
	return max(before-after, 0), err
}

// chunksSQL finds chunks of the hypertable $1 in the order of time.
const chunksSQL = `SELECT format('%I.%I', i.chunk_schema, i.chunk_name) FROM timescaledb_information.chunks i
	WHERE i.hypertable_schema = current_schema() AND i.hypertable_name = $1 AND `

// compressChunks compresses one old chunk of a table, so that a round stays short, or merges the late values of one.
func (db *DB) compressChunks(ctx context.Context, conn *pgx.Conn, k tableKey) error {
	if !db.caps.compression() {
		return nil
	}
	cut := (db.o.Now() - int64(compressAfter)) / int64(time.Second)
	found, err := db.packChunk(ctx, conn, db.caps.compressSQL(), "NOT i.is_compressed AND i.range_end_integer <= $2 ORDER BY i.range_end_integer LIMIT 1", k.String(), cut)
	if found || err != nil {
		return err
	}
	return db.mergeLate(ctx, conn, k)
}

// mergeLate compresses the values that came for one compressed chunk. The extension keeps them, and what it had to unpack for them, in a table of the chunk that is
// not compressed, for good unless it is told.
func (db *DB) mergeLate(ctx context.Context, conn *pgx.Conn, k tableKey) error {
	now := db.o.Now()
	if !db.caps.tellsPartial || now-db.lateAt.Load() < int64(mergeAfter) && now-db.mergedAt.Load() < int64(mergeAnyway) {
		return nil
	}
	const partial = `i.is_compressed AND EXISTS (SELECT FROM _timescaledb_catalog.chunk c WHERE c.schema_name = i.chunk_schema AND c.table_name = i.chunk_name AND c.status & 8 <> 0)
		ORDER BY i.range_end_integer LIMIT 1`
	found, err := db.packChunk(ctx, conn, db.caps.mergeSQL(), partial, k.String())
	if found {
		db.mergedAt.Store(now)
	}
	return err
}

// packChunk runs a statement on the chunk that a condition finds, if there is one.
func (db *DB) packChunk(ctx context.Context, conn *pgx.Conn, statement, condition string, args ...any) (found bool, err error) {
	var chunk string
	err = conn.QueryRow(ctx, chunksSQL+condition, args...).Scan(&chunk)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, err := conn.Exec(ctx, fmt.Sprintf("SET statement_timeout = %d", compressTimeout.Milliseconds())); err != nil {
		return true, err
	}
	defer conn.Exec(context.WithoutCancel(ctx), "RESET statement_timeout") //nolint:errcheck // a lost connection has no settings
	// Not in a transaction of its own, which the procedure may not like; it changes how rows are kept, not which there are.
	if _, err := conn.Exec(ctx, statement, chunk); err != nil {
		return true, fmt.Errorf("compress %s: %w", chunk, err)
	}
	return true, nil
}
