package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/storage"
)

// Prune drops partitions or chunks past their retention, and the oldest beyond Options.SizeBytes; plain tables get bounded deletes. It
// returns the bytes that became free, which is none for deletes.
func (db *DB) Prune(ctx context.Context, now int64) (int64, error) {
	if db.closed.Load() {
		return 0, storage.ErrClosed
	}
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	db.shaping.Lock()
	defer db.shaping.Unlock()
	freed, failed := db.dropDetached(ctx, conn.Conn())
	for _, t := range db.allTables() {
		keep := db.keepOf(t.key)
		cut := (now - int64(keep)) / int64(time.Second)
		if keep == 0 || cut <= 0 {
			continue
		}
		n, err := db.pruneTable(ctx, conn.Conn(), t, int32(cut))
		freed += n
		if err == nil && t.old != "" {
			n, err = db.ageOld(ctx, conn.Conn(), t, int32(cut))
			freed += n
		}
		failed = errors.Join(failed, err)
	}
	n, err := db.fitSize(ctx, conn.Conn(), now)
	return freed + n, errors.Join(failed, err, db.pruneMarks(ctx, conn.Conn()))
}

func (db *DB) pruneTable(ctx context.Context, conn *pgx.Conn, t keyed, cut int32) (int64, error) {
	if t.mode == Plain {
		start := time.Now()
		n, err := db.deleteOld(ctx, conn, t.key.String(), cut)
		if n > 0 {
			db.noteDrop(DroppedPartition{Table: t.key.String(), Name: t.key.String(), Reason: "retention", Rows: n}, start)
		}
		return 0, err
	}
	list, err := db.pieces(ctx, conn, t)
	if err != nil {
		return 0, err
	}
	freed := int64(0)
	for _, p := range list {
		if p.to > cut {
			break
		}
		n, err := db.drop(ctx, conn, p, "retention")
		freed += n
		if err != nil {
			return freed, err
		}
	}
	if t.mode == Partitions {
		_, err = db.execFenced(ctx, conn, fmt.Sprintf("DELETE FROM %s_default WHERE clock < $1", t.key), cut)
	}
	return freed, err
}

// ageOld drops the table that rows came from, or stayed behind in, once the last of them is past its retention.
func (db *DB) ageOld(ctx context.Context, conn *pgx.Conn, t keyed, cut int32) (int64, error) {
	var over bool
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM tidemark_tables WHERE name = $1 AND old = $2 AND high < $3 AND (checked OR since = $4))",
		t.key.String(), t.old, cut, int32(math.MaxInt32)).Scan(&over)
	if err != nil || !over {
		return 0, err
	}
	return db.dropOld(ctx, conn, t.key, t.old)
}

// droppedPrefix begins the names of partitions that were detached to be dropped.
const droppedPrefix = "tidemark_dropped_"

// dropPartition detaches a partition, which takes a moment, and then drops it, which nobody waits for.
func (db *DB) dropPartition(ctx context.Context, conn *pgx.Conn, k tableKey, p partition) (int64, error) {
	start := time.Now()
	err := db.attempt(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s", k, p.name)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, fmt.Sprintf("ALTER TABLE %s RENAME TO %s%s", p.name, droppedPrefix, p.name))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("drop partition %s: %w", p.name, err)
	}
	freed, err := db.dropDetached(ctx, conn)
	db.o.Logger.Info("partition dropped", "name", p.name, "bytes", freed, "seconds", time.Since(start).Seconds())
	return freed, err
}

// dropDetached drops what was detached, also by a process that ended before it could.
func (db *DB) dropDetached(ctx context.Context, conn *pgx.Conn) (int64, error) {
	rows, err := conn.Query(ctx, `SELECT relname FROM pg_class WHERE starts_with(relname, $1) AND relkind = 'r' AND pg_table_is_visible(oid)`, droppedPrefix)
	if err != nil {
		return 0, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, err
	}
	freed := int64(0)
	for _, name := range names {
		var size int64
		if err := conn.QueryRow(ctx, "SELECT pg_total_relation_size(to_regclass($1))", name).Scan(&size); err != nil {
			return freed, err
		}
		if _, err := db.execFenced(ctx, conn, "DROP TABLE "+name); err != nil {
			return freed, err
		}
		freed += size
	}
	return freed, nil
}

// fitSize drops the oldest partitions or chunks until all tables together are within Options.SizeBytes. The running ones stay.
func (db *DB) fitSize(ctx context.Context, conn *pgx.Conn, now int64) (int64, error) {
	if err := db.measure(ctx, conn); err != nil || db.o.SizeBytes == 0 || db.sizeBytes.Load() <= db.o.SizeBytes {
		return 0, err
	}
	return db.dropOldest(ctx, conn, now, db.sizeBytes.Load()-db.o.SizeBytes, "size")
}

// dropOldest drops the oldest partitions or chunks of history that end before a time until so many bytes are free.
func (db *DB) dropOldest(ctx context.Context, conn *pgx.Conn, before, want int64, reason string) (int64, error) {
	var all []piece
	for _, t := range db.allTables() {
		if t.key.trends {
			continue
		}
		list, err := db.pieces(ctx, conn, t)
		if err != nil {
			return 0, err
		}
		all = append(all, slices.DeleteFunc(list, func(p piece) bool { return int64(p.to) > before/int64(time.Second) })...)
	}
	slices.SortFunc(all, func(a, b piece) int { return int(int64(a.to) - int64(b.to)) })
	freed := int64(0)
	for _, p := range all {
		if freed >= want {
			break
		}
		n, err := db.drop(ctx, conn, p, reason)
		freed += n
		if err != nil {
			return freed, err
		}
	}
	return freed, nil
}

// deleteOld deletes rows of a plain table by item, which its key makes cheap to find, in small transactions with pauses.
func (db *DB) deleteOld(ctx context.Context, conn *pgx.Conn, table string, cut int32) (int64, error) {
	const perStatement = 200
	db.mu.RLock()
	ids := slices.Clone(db.ids)
	db.mu.RUnlock()
	deleted := int64(0)
	for chunk := range slices.Chunk(ids, perStatement) {
		items := make([]int64, len(chunk))
		for i, id := range chunk {
			items[i] = int64(id)
		}
		tag, err := db.execFenced(ctx, conn, fmt.Sprintf("DELETE FROM %s t USING unnest($1::bigint[]) AS w(itemid) WHERE t.itemid = w.itemid AND t.clock < $2", table), items, cut)
		if err != nil {
			return deleted, err
		}
		deleted += tag.RowsAffected()
		if tag.RowsAffected() == 0 {
			continue
		}
		select { // inserts come first
		case <-ctx.Done():
			return deleted, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return deleted, nil
}
