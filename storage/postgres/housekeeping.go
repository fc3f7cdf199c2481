package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/storage"
)

// Housekeeping says what is kept, what goes next, and what went.
type Housekeeping struct {
	Mode Mode `json:"mode"`
	// SizeBytes is what all tables take, LimitBytes what they may; zero is no limit.
	SizeBytes  int64 `json:"size_bytes"`
	LimitBytes int64 `json:"limit_bytes"`
	// Room is that of the whole database.
	Room    Room               `json:"room"`
	Tables  []HousekeptTable   `json:"tables"`
	Dropped []DroppedPartition `json:"dropped"`
}

// HousekeptTable is a table of one value type and retention class.
type HousekeptTable struct {
	Name string `json:"name"`
	Mode Mode   `json:"mode"`
	// KeepSeconds is its retention; zero is for ever.
	KeepSeconds int64 `json:"keep_seconds"`
	Bytes       int64 `json:"bytes"`
	// Pieces are its partitions or chunks; zero for a plain table.
	Pieces int `json:"pieces"`
	// Next is the piece that goes first, nil when none will.
	Next *NextDrop `json:"next,omitempty"`
}

// NextDrop is a partition or chunk that will be dropped. Times are Unix seconds; DueAt is when it is past its retention, and it goes earlier if the
// tables are beyond their limit.
type NextDrop struct {
	Name  string `json:"name"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Bytes int64  `json:"bytes"`
	DueAt int64  `json:"due_at"`
}

// DroppedPartition is something that housekeeping removed since the start of the process.
type DroppedPartition struct {
	Table string `json:"table"`
	Name  string `json:"name"`
	// At is when, Unix seconds.
	At int64 `json:"at"`
	// Reason is retention, size, or early for want of room.
	Reason string `json:"reason"`
	// Bytes became free; Rows were deleted, of plain tables only, whose room is used again but not given back.
	Bytes  int64   `json:"bytes"`
	Rows   int64   `json:"rows,omitempty"`
	TookMs float64 `json:"took_ms"`
}

// maxDropped bounds how many removals are remembered.
const maxDropped = 200

// noteDrop remembers a removal.
func (db *DB) noteDrop(d DroppedPartition, start time.Time) {
	d.At, d.TookMs = db.o.Now()/int64(time.Second), float64(time.Since(start).Microseconds())/1000
	db.mu.Lock()
	defer db.mu.Unlock()
	db.dropped = append(db.dropped, d)
	if n := len(db.dropped) - maxDropped; n > 0 {
		db.dropped = slices.Delete(db.dropped, 0, n)
	}
}

// piece is a partition or a chunk.
type piece struct {
	partition
	keyed
	bytes int64
}

// pieces are the partitions or chunks of a table by time, with their sizes.
func (db *DB) pieces(ctx context.Context, conn *pgx.Conn, t keyed) ([]piece, error) {
	var list []piece
	switch t.mode {
	case Partitions:
		parts, err := listPartitions(ctx, conn, t.key)
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			list = append(list, piece{partition: p, keyed: t})
			if err := conn.QueryRow(ctx, "SELECT coalesce(pg_total_relation_size(to_regclass($1)), 0)", p.name).Scan(&list[len(list)-1].bytes); err != nil {
				return nil, err
			}
		}
	case Timescale:
		rows, err := conn.Query(ctx, fmt.Sprintf(`SELECT c.chunk_name::text, c.range_start_integer, c.range_end_integer, coalesce(s.total_bytes, 0)
			FROM timescaledb_information.chunks c LEFT JOIN %s.chunks_detailed_size($1::text::regclass) s USING (chunk_schema, chunk_name)
			WHERE c.hypertable_schema = current_schema() AND c.hypertable_name = $1 ORDER BY c.range_start_integer`, db.caps.schema), t.key.String())
		if err != nil {
			return nil, err
		}
		var name string
		var from, to, size int64
		_, err = pgx.ForEachRow(rows, []any{&name, &from, &to, &size}, func() error {
			list = append(list, piece{partition: partition{name: name, from: clampClock(from), to: clampClock(to)}, keyed: t, bytes: size})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// drop removes a piece, and of a hypertable all that are older too.
func (db *DB) drop(ctx context.Context, conn *pgx.Conn, p piece, reason string) (int64, error) {
	start := time.Now()
	var freed int64
	var err error
	if p.mode == Timescale {
		freed, err = db.dropChunks(ctx, conn, p.key, p.to)
	} else {
		freed, err = db.dropPartition(ctx, conn, p.key, p.partition)
	}
	if err == nil {
		db.noteDrop(DroppedPartition{Table: p.key.String(), Name: p.name, Reason: reason, Bytes: freed}, start)
	}
	return freed, err
}

// keepOf is the retention of a table; zero is for ever.
func (db *DB) keepOf(k tableKey) time.Duration {
	classes := *db.kept.Load()
	switch {
	case int(k.class) >= len(classes):
		return 0 // a class that is no longer configured keeps what it has
	case k.trends:
		return classes[k.class].Trends
	}
	return classes[k.class].History
}

// SetClasses changes how long the retention classes keep; their number stays what it was at Open. What is too old by now goes with the next Prune.
func (db *DB) SetClasses(classes []Class) error {
	if len(classes) != len(db.o.Classes) {
		return fmt.Errorf("retention classes: %d, expected %d as at the start", len(classes), len(db.o.Classes))
	}
	if err := checkClasses(classes); err != nil {
		return err
	}
	classes = slices.Clone(classes)
	db.kept.Store(&classes)
	return nil
}

func checkClasses(classes []Class) error {
	for i, c := range classes {
		if c.History < 0 || c.Trends < 0 {
			return fmt.Errorf("retention class %d: history %v, trends %v, expected none below zero", i, c.History, c.Trends)
		}
	}
	return nil
}

// Housekeeping looks at all tables.
func (db *DB) Housekeeping(ctx context.Context) (Housekeeping, error) {
	if db.closed.Load() {
		return Housekeeping{}, storage.ErrClosed
	}
	h := Housekeeping{Mode: db.modeNow(), LimitBytes: db.o.SizeBytes, Room: db.Room(), Tables: []HousekeptTable{}, Dropped: []DroppedPartition{}}
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return h, asAway(ctx, err)
	}
	defer conn.Release()
	for _, t := range db.sortedTables() {
		row, err := db.housekept(ctx, conn.Conn(), t)
		if err != nil {
			return h, asAway(ctx, fmt.Errorf("look at %s: %w", t.key, err))
		}
		h.Tables = append(h.Tables, row)
		h.SizeBytes += row.Bytes
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	h.Dropped = append(h.Dropped, db.dropped...)
	return h, nil
}

func (db *DB) housekept(ctx context.Context, conn *pgx.Conn, t keyed) (HousekeptTable, error) {
	keep := int64(db.keepOf(t.key) / time.Second)
	row := HousekeptTable{Name: t.key.String(), Mode: t.mode, KeepSeconds: keep}
	list, err := db.pieces(ctx, conn, t)
	if err != nil {
		return row, err
	}
	row.Pieces = len(list)
	for _, p := range list {
		row.Bytes += p.bytes
	}
	if t.mode != Timescale { // what is in no piece: a plain table, the default partition, rows that have not moved yet
		names := []string{t.key.String(), t.key.String() + "_default"}
		if t.old != "" {
			names = append(names, t.old)
		}
		var rest int64
		if err := conn.QueryRow(ctx, "SELECT coalesce(sum(pg_total_relation_size(to_regclass(n))), 0)::bigint FROM unnest($1::text[]) n WHERE to_regclass(n) IS NOT NULL", names).Scan(&rest); err != nil {
			return row, err
		}
		row.Bytes += rest
	}
	if len(list) > 0 && (keep > 0 || db.o.SizeBytes > 0 && !t.key.trends) {
		p := list[0]
		row.Next = &NextDrop{Name: p.name, From: int64(p.from), To: int64(p.to), Bytes: p.bytes}
		if keep > 0 {
			row.Next.DueAt = int64(p.to) + keep
		}
	}
	return row, nil
}
