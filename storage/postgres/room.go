package postgres

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Where the room of a database was learnt from.
const (
	RoomSetting = "setting"
	RoomDisk    = "disk"
)

const (
	// sampleEvery is the time between two kept sizes, sampleKeep how long they stay, sampleSpan how far growth looks back and sampleLeast the least that
	// it is worked out from. A week has the days on which partitions are dropped and those on which they are not.
	sampleEvery = time.Hour
	sampleKeep  = 31 * 24 * time.Hour
	sampleSpan  = 7 * 24 * time.Hour
	sampleLeast = time.Hour
	// unknownDays is the forecast of the metric when there is none, and the longest.
	unknownDays = 3650
)

// Room is how large the database is, how fast it grows, and when its room is used up. What is not known is nil.
type Room struct {
	DatabaseBytes int64 `json:"database_bytes"`
	// WALBytes is what the write-ahead log takes; only members of pg_monitor may ask for it.
	WALBytes *int64 `json:"wal_bytes"`
	// GrowthPerDay is by how much the database grew, WALPerDay what was written to the log, in bytes a day over the last week.
	GrowthPerDay *float64 `json:"growth_per_day_bytes"`
	WALPerDay    *float64 `json:"wal_per_day_bytes"`
	// TotalBytes is the room: storage.database_space, or that of the disk when the database is on this machine. FreeBytes of it are free.
	TotalBytes  int64    `json:"total_bytes"`
	FreeBytes   int64    `json:"free_bytes"`
	Source      string   `json:"source"`
	UsedPercent *float64 `json:"used_percent"`
	// FullDays is in how many days it is used up at the present growth.
	FullDays *float64 `json:"full_days"`
	// EarlyDropPercent is the use from which the oldest partitions go before their time; zero is never.
	EarlyDropPercent int `json:"early_drop_percent"`
	// MeasuredAt is Unix seconds; zero is never.
	MeasuredAt int64 `json:"measured_at"`
}

// size is a kept measurement.
type size struct{ at, bytes, wal int64 }

// Room returns the last measurement, a minute ago at most.
func (db *DB) Room() Room {
	if r := db.room.Load(); r != nil {
		return *r
	}
	return Room{EarlyDropPercent: db.o.EarlyDropPercent}
}

// measureRoom takes note of the database's size and keeps it once an hour.
func (db *DB) measureRoom(ctx context.Context, conn *pgx.Conn, now int64) error {
	r := Room{EarlyDropPercent: db.o.EarlyDropPercent, MeasuredAt: now / int64(time.Second)}
	var wal int64
	err := conn.QueryRow(ctx, "SELECT pg_database_size(current_database()), (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint").Scan(&r.DatabaseBytes, &wal)
	if err != nil {
		return err
	}
	if r.WALBytes, err = db.walBytes(ctx, conn); err != nil {
		return err
	}
	if err := db.fillRoom(ctx, conn, &r); err != nil {
		return err
	}
	at := size{r.MeasuredAt, r.DatabaseBytes, wal}
	then, err := db.keepSize(ctx, conn, at)
	if err != nil {
		return err
	}
	r.forecast(then, at)
	db.room.Store(&r)
	return nil
}

// walBytes asks for the size of the write-ahead log, once only if that is forbidden.
func (db *DB) walBytes(ctx context.Context, conn *pgx.Conn) (*int64, error) {
	if db.walHidden.Load() {
		return nil, nil
	}
	var n int64
	err := conn.QueryRow(ctx, "SELECT coalesce(sum(size), 0)::bigint FROM pg_ls_waldir()").Scan(&n)
	var refused *pgconn.PgError
	if errors.As(err, &refused) { // forbidden, or a database without such files
		db.walHidden.Store(true)
		return nil, nil
	}
	return &n, err
}

// fillRoom finds out how much room there is.
func (db *DB) fillRoom(ctx context.Context, conn *pgx.Conn, r *Room) error {
	if db.o.RoomBytes > 0 {
		used := r.DatabaseBytes
		if r.WALBytes != nil {
			used += *r.WALBytes
		}
		r.Source, r.TotalBytes, r.FreeBytes = RoomSetting, db.o.RoomBytes, max(db.o.RoomBytes-used, 0)
		r.setUsed(100 * float64(used) / float64(db.o.RoomBytes))
		return nil
	}
	if !sameMachine(conn.Config().Host) {
		return nil
	}
	var dir string
	err := conn.QueryRow(ctx, "SELECT CASE WHEN pg_has_role('pg_read_all_settings', 'USAGE') THEN current_setting('data_directory') ELSE '' END").Scan(&dir)
	if err != nil || dir == "" {
		return err
	}
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil || s.Blocks == 0 { // in a container, or a folder that is closed to us
		return nil
	}
	// As df counts: what root keeps for itself is neither used nor there to be used.
	r.Source, r.TotalBytes, r.FreeBytes = RoomDisk, int64(s.Blocks-s.Bfree+s.Bavail)*s.Bsize, int64(s.Bavail)*s.Bsize
	r.setUsed(100 * (1 - float64(r.FreeBytes)/float64(max(r.TotalBytes, 1))))
	return nil
}

func (r *Room) setUsed(percent float64) { r.UsedPercent = &percent }

// sameMachine reports whether a host of a connection string is this machine.
func sameMachine(host string) bool {
	return strings.HasPrefix(host, "/") || host == "localhost" || host == "127.0.0.1" || host == "::1"
}

// keepSize keeps a measurement if the last one is old enough, and returns the one that growth counts from.
func (db *DB) keepSize(ctx context.Context, conn *pgx.Conn, now size) (then size, err error) {
	_, err = db.execFenced(ctx, conn, "INSERT INTO tidemark_sizes SELECT $1, $2, $3 WHERE NOT EXISTS (SELECT FROM tidemark_sizes WHERE at > $1 - $4::bigint) ON CONFLICT DO NOTHING",
		now.at, now.bytes, now.wal, int64(sampleEvery/time.Second))
	if err != nil {
		return then, err
	}
	if _, err := db.execFenced(ctx, conn, "DELETE FROM tidemark_sizes WHERE at < $1", now.at-int64(sampleKeep/time.Second)); err != nil {
		return then, err
	}
	err = conn.QueryRow(ctx, "SELECT at, bytes, wal FROM tidemark_sizes WHERE at >= $1 ORDER BY at LIMIT 1", now.at-int64(sampleSpan/time.Second)).Scan(&then.at, &then.bytes, &then.wal)
	if errors.Is(err, pgx.ErrNoRows) {
		return now, nil
	}
	return then, err
}

// forecast works out growth, and when the room is used up.
func (r *Room) forecast(then, now size) {
	span := time.Duration(now.at-then.at) * time.Second
	if span < sampleLeast {
		return
	}
	days := span.Hours() / 24
	growth := float64(now.bytes-then.bytes) / days
	r.GrowthPerDay = &growth
	if now.wal >= then.wal { // less after a restore or on another server
		wal := float64(now.wal-then.wal) / days
		r.WALPerDay = &wal
	}
	if growth > 0 && r.Source != "" {
		full := float64(r.FreeBytes) / growth
		r.FullDays = &full
	}
}

// dropEarly drops the oldest history while the room is used beyond the percentage that the options say; values of the minimum age and the running
// pieces stay. What it has to win is worked out from one measurement, so room that others take meanwhile costs no values before the next look.
func (db *DB) dropEarly(ctx context.Context, conn *pgx.Conn, now int64) error {
	r := db.Room()
	if db.o.EarlyDropPercent == 0 || r.UsedPercent == nil || *r.UsedPercent <= float64(db.o.EarlyDropPercent) {
		return nil
	}
	db.shaping.Lock()
	defer db.shaping.Unlock()
	want := int64((*r.UsedPercent - float64(db.o.EarlyDropPercent)) / 100 * float64(r.TotalBytes))
	freed, err := db.dropOldest(ctx, conn, now-int64(db.o.MinimumAge), want, "early")
	db.m.early.AddInt64(freed)
	if freed > 0 {
		db.o.Logger.Warn("the room for the database runs out: the oldest values were dropped before their time, as storage.early_drop says", "bytes", freed, "used_percent", *r.UsedPercent)
	}
	return errors.Join(err, db.measureRoom(ctx, conn, now))
}

// roomGauges are the metrics of the room. What is not known is zero, the days until it is used up then the longest.
func (db *DB) roomGauges() {
	set := db.o.Metrics
	gauge := func(name string, otherwise float64, value func(Room) *float64) {
		set.NewGauge(name, func() float64 {
			if v := value(db.Room()); v != nil {
				return *v
			}
			return otherwise
		})
	}
	whole := func(n int64) *float64 { f := float64(n); return &f }
	gauge("tidemark_postgres_database_bytes", 0, func(r Room) *float64 { return whole(r.DatabaseBytes) })
	gauge("tidemark_postgres_wal_bytes", 0, func(r Room) *float64 {
		if r.WALBytes == nil {
			return nil
		}
		return whole(*r.WALBytes)
	})
	gauge("tidemark_postgres_wal_per_day_bytes", 0, func(r Room) *float64 { return r.WALPerDay })
	gauge("tidemark_postgres_growth_per_day_bytes", 0, func(r Room) *float64 { return r.GrowthPerDay })
	gauge("tidemark_postgres_room_bytes", 0, func(r Room) *float64 { return whole(r.TotalBytes) })
	gauge("tidemark_postgres_room_used_percent", 0, func(r Room) *float64 { return r.UsedPercent })
	gauge("tidemark_postgres_room_full_days", unknownDays, func(r Room) *float64 {
		if r.FullDays == nil {
			return nil
		}
		full := min(*r.FullDays, unknownDays)
		return &full
	})
}
