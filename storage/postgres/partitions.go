package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/model"
)

const (
	// minStep and maxStep bound the length of a partition of history, trendStep is that of trends: seconds.
	minStep   = 3600
	maxStep   = 86_400
	trendStep = 30 * 86_400
	// ahead is how far partitions are made in advance, and behind where a new table begins.
	ahead  = 2 * 86_400
	behind = 2 * 86_400
	// keepInterval is how often partitions are looked after.
	keepInterval = time.Minute
)

// partition is one range partition, [from,to) by clock.
type partition struct {
	name     string
	from, to int32
}

// listPartitions returns the partitions of a table by time, without the default one.
func listPartitions(ctx context.Context, x executor, k tableKey) ([]partition, error) {
	rows, err := x.Query(ctx, `SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = to_regclass($1)`, k.String())
	if err != nil {
		return nil, err
	}
	var parts []partition
	var name, bound string
	_, err = pgx.ForEachRow(rows, []any{&name, &bound}, func() error {
		p := partition{name: name}
		if _, err := fmt.Sscanf(bound, "FOR VALUES FROM (%d) TO (%d)", &p.from, &p.to); err == nil {
			parts = append(parts, p)
		}
		return nil
	})
	slices.SortFunc(parts, func(a, b partition) int { return int(int64(a.from) - int64(b.from)) })
	return parts, err
}

// makeAhead makes the partitions that are missing from the last one, or from shortly before now, to the near future.
func (db *DB) makeAhead(ctx context.Context, x executor, k tableKey, step int32, have []partition) error {
	now := db.o.Now() / int64(time.Second)
	next := (now - behind) / int64(step) * int64(step)
	if n := len(have); n > 0 {
		next = int64(have[n-1].to)
	}
	for next < now+max(ahead, 2*int64(step)) && next+int64(step) < 1<<31 {
		if err := makePartition(ctx, x, k, partition{from: int32(next), to: int32(next) + step}); err != nil {
			return err
		}
		next += int64(step)
	}
	return nil
}

// makePartition makes a partition beside the table and attaches it, which does not hold inserts into other partitions up. Values that
// lie in the default partition move into it.
func makePartition(ctx context.Context, x executor, k tableKey, p partition) error {
	p.name = fmt.Sprintf("%s_p%d_%d", k, p.from, p.to)
	for _, sql := range []string{
		"CREATE TABLE %[1]s (LIKE %[2]s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)",
		"ALTER TABLE %[1]s ADD CHECK (clock >= %[3]d AND clock < %[4]d)",
		"LOCK TABLE %[2]s_default IN SHARE ROW EXCLUSIVE MODE",
		"WITH moved AS (DELETE FROM %[2]s_default WHERE clock >= %[3]d AND clock < %[4]d RETURNING *) INSERT INTO %[1]s SELECT * FROM moved",
		"ALTER TABLE %[2]s ATTACH PARTITION %[1]s FOR VALUES FROM (%[3]d) TO (%[4]d)",
	} {
		if _, err := x.Exec(ctx, fmt.Sprintf(sql, p.name, k, p.from, p.to)); err != nil {
			return fmt.Errorf("make partition %s: %w", p.name, err)
		}
	}
	return nil
}

// runKeeper looks after partitions until the engine closes.
func (db *DB) runKeeper() {
	tick := time.NewTicker(keepInterval)
	defer tick.Stop()
	for {
		if err := db.keep(db.ctx); err != nil && db.ctx.Err() == nil {
			db.o.Logger.Warn("partitions could not be looked after, which is tried again", "error", err)
		}
		select {
		case <-db.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// keyed is a table and its state.
type keyed struct {
	key tableKey
	tableState
}

func (db *DB) allTables() []keyed {
	db.mu.RLock()
	defer db.mu.RUnlock()
	all := make([]keyed, 0, len(db.tables))
	for k, t := range db.tables {
		all = append(all, keyed{k, *t})
	}
	return all
}

// keep makes partitions ahead, fits their length to the volume, moves values out of default partitions, and compresses chunks.
func (db *DB) keep(ctx context.Context) error {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	var failed error
	if db.viewsDue.Swap(false) {
		if failed = db.keepViews(ctx, conn.Conn(), allViews()); failed != nil {
			db.viewsDue.Store(true)
		}
	}
	for _, t := range db.allTables() {
		switch t.mode {
		case Partitions:
			failed = errors.Join(failed, db.keepPartitions(ctx, conn.Conn(), t))
		case Timescale:
			if t.old == "" { // while rows move into it, they go to chunks of any age
				failed = errors.Join(failed, db.compressChunks(ctx, conn.Conn(), t.key))
			}
		}
	}
	now := db.o.Now()
	return errors.Join(failed, db.measure(ctx, conn.Conn()), db.measureRoom(ctx, conn.Conn(), now), db.dropEarly(ctx, conn.Conn(), now))
}

// measure takes note of what the tables take.
func (db *DB) measure(ctx context.Context, conn *pgx.Conn) error {
	var size, rows int64
	err := conn.QueryRow(ctx, `WITH RECURSIVE t(oid, mode) AS (SELECT to_regclass(name)::oid, mode FROM tidemark_tables UNION SELECT to_regclass(old)::oid, 'plain' FROM tidemark_tables UNION SELECT inhrelid, mode FROM pg_inherits, t WHERE inhparent = t.oid)
		SELECT coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE mode <> 'timescale'), 0)::bigint, coalesce(sum(c.reltuples) FILTER (WHERE c.reltuples > 0 AND c.relkind = 'r' AND c.relname LIKE 'history%'), 0)::bigint
		FROM t JOIN pg_class c ON c.oid = t.oid`).Scan(&size, &rows)
	if err != nil {
		return err
	}
	if db.caps.timescale != "" { // compressed chunks are no children of their tables
		var packed int64
		if err := conn.QueryRow(ctx, db.caps.hypertablesSizeSQL()).Scan(&packed); err != nil {
			return err
		}
		size += packed
	}
	db.sizeBytes.Store(size)
	db.rowsEstimate.Store(rows)
	return nil
}

func (db *DB) keepPartitions(ctx context.Context, conn *pgx.Conn, t keyed) error {
	db.shaping.Lock()
	defer db.shaping.Unlock()
	parts, err := listPartitions(ctx, conn, t.key)
	if err != nil {
		return err
	}
	if step, err := db.fitStep(ctx, conn, t, parts); err != nil {
		return err
	} else if step != t.step {
		t.step = step
		if _, err := db.execFenced(ctx, conn, "UPDATE tidemark_tables SET step = $1 WHERE name = $2", step, t.key.String()); err != nil {
			return err
		}
		db.mu.Lock()
		db.tables[t.key] = &tableState{mode: t.mode, step: step, old: t.old}
		db.mu.Unlock()
	}
	err = db.attempt(ctx, conn, func(tx pgx.Tx) error {
		have, err := lockPartitions(ctx, tx, t.key)
		if err != nil {
			return err
		}
		return db.makeAhead(ctx, tx, t.key, t.step, have)
	})
	if err != nil {
		return err
	}
	return db.emptyDefault(ctx, conn, t)
}

// fitStep returns the length for further partitions: shorter when the last whole one is too big, longer when it is far too small.
func (db *DB) fitStep(ctx context.Context, conn *pgx.Conn, t keyed, parts []partition) (int32, error) {
	now := db.o.Now() / int64(time.Second)
	for i := len(parts) - 1; i >= 0 && !t.key.trends; i-- {
		p := parts[i]
		if int64(p.to) > now {
			continue
		}
		var size int64
		if err := conn.QueryRow(ctx, "SELECT coalesce(pg_total_relation_size(to_regclass($1)), 0)", p.name).Scan(&size); err != nil {
			return 0, err
		}
		size = size * int64(t.step) / int64(p.to-p.from)
		switch {
		case size > db.o.PartitionBytes && t.step > minStep:
			return max(t.step/2, minStep), nil
		case size > 0 && size < db.o.PartitionBytes/8 && t.step < maxStep && t.step < db.o.partitionStep:
			return min(t.step*2, maxStep), nil
		}
		break
	}
	return t.step, nil
}

// emptyDefault makes partitions for values that had none.
func (db *DB) emptyDefault(ctx context.Context, conn *pgx.Conn, t keyed) error {
	const most = 64 // partitions in one round
	for range most {
		var clock *int32
		if err := conn.QueryRow(ctx, fmt.Sprintf("SELECT min(clock) FROM %s_default", t.key)).Scan(&clock); err != nil || clock == nil {
			return err
		}
		if err := db.partitionAt(ctx, conn, t.key, *clock, t.step); err != nil {
			return err
		}
	}
	return nil
}

// partitionAt makes a partition for a clock that has none. Whoever else does waits.
func (db *DB) partitionAt(ctx context.Context, conn *pgx.Conn, k tableKey, clock, step int32) error {
	return db.attempt(ctx, conn, func(tx pgx.Tx) error {
		parts, err := lockPartitions(ctx, tx, k)
		if err != nil || covered(parts, clock) {
			return err
		}
		p := gapAt(parts, clock, step)
		var late bool
		err = tx.QueryRow(ctx, fmt.Sprintf("SELECT EXISTS (SELECT FROM %s_default WHERE clock >= $1 AND clock < $2)", k), p.from, p.to).Scan(&late)
		if err != nil {
			return err
		}
		if late { // its rows move, and a statement that was planned before would find them in neither place
			if _, err := tx.Exec(ctx, fmt.Sprintf("LOCK TABLE %s IN ACCESS EXCLUSIVE MODE", k)); err != nil {
				return err
			}
		}
		return makePartition(ctx, tx, k, p)
	})
}

// lockPartitions lists partitions and keeps others from making new ones until the transaction ends.
func lockPartitions(ctx context.Context, tx pgx.Tx, k tableKey) ([]partition, error) {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(schemaLock)); err != nil {
		return nil, err
	}
	return listPartitions(ctx, tx, k)
}

func covered(parts []partition, clock int32) bool {
	return slices.ContainsFunc(parts, func(p partition) bool { return p.from <= clock && clock < p.to })
}

// gapAt returns a partition for clock between those that there are.
func gapAt(parts []partition, clock, step int32) partition {
	from := clock / step * step
	p := partition{from: from, to: int32(min(int64(from)+int64(step), 1<<31-1))}
	for _, other := range parts {
		if other.to <= clock {
			p.from = max(p.from, other.to)
		} else if other.from > clock {
			p.to = min(p.to, other.from)
		}
	}
	return p
}

// attempt runs fn in a transaction that does not wait long for locks, and again a few times with pauses if it had to, so that whoever
// queues behind it is held up for moments only.
func (db *DB) attempt(ctx context.Context, conn *pgx.Conn, fn func(pgx.Tx) error) error {
	const tries = 8
	pause := 100 * time.Millisecond
	for try := 1; ; try++ {
		err := db.fenced(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, briefly); err != nil {
				return err
			}
			return fn(tx)
		})
		if !isLocked(err) || try == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause *= 2
	}
}

// numericTypes are the value types that have trends.
var numericTypes = []model.ValueType{model.Float, model.Uint}
