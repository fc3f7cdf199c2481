package postgres

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/model"
	"tidemark/storage/storagetest"
)

// fillDays stores values of several days, and moves the clock behind them.
func fillDays(t *testing.T, db *DB, now *int64, days int64) {
	t.Helper()
	for d := range days {
		b := &model.Batch{}
		for i := range int64(2000) {
			b.AppendUint(1, *now+i*int64(time.Second), uint64(d))
		}
		storagetest.Append(t, settled{db}, b)
		*now += day
		db.mustKeep(t)
	}
}

func TestDB_room(t *testing.T) {
	now := storagetest.Base
	dsn := shared.database(t)
	db := clocked(t, dsn, Partitions, &now, nil)
	fillDays(t, db, &now, 2)
	r := db.Room()
	if r.Source != RoomDisk || r.TotalBytes <= r.FreeBytes || r.UsedPercent == nil || r.DatabaseBytes < 1<<20 || r.WALBytes == nil || *r.WALBytes < 1<<20 {
		t.Errorf("a database on this machine has the room %+v", r)
	}
	if r.GrowthPerDay == nil || *r.GrowthPerDay <= 0 || r.WALPerDay == nil || *r.WALPerDay < *r.GrowthPerDay/10 || r.FullDays == nil || *r.FullDays <= 0 {
		t.Errorf("after two days with values the room is %+v, expected growth and a forecast", r)
	}
	var text bytes.Buffer
	db.o.Metrics.WritePrometheus(&text)
	for _, name := range []string{"database_bytes", "wal_bytes", "wal_per_day_bytes", "growth_per_day_bytes", "room_bytes", "room_used_percent", "room_full_days", "early_dropped_bytes_total"} {
		if !strings.Contains(text.String(), "tidemark_postgres_"+name+" ") {
			t.Errorf("no metric %s", name)
		}
	}
	// What was measured is in the database, so a restarted server goes on from there.
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	now += int64(time.Hour)
	again := clocked(t, dsn, Partitions, &now, nil)
	again.mustKeep(t)
	if r := again.Room(); r.GrowthPerDay == nil {
		t.Errorf("a restarted engine has the room %+v, expected growth", r)
	}
	h, err := again.Housekeeping(context.Background())
	if err != nil || h.Room.DatabaseBytes == 0 {
		t.Errorf("housekeeping says %+v, %v", h.Room, err)
	}
}

// TestDB_roomHidden has a role that may not look at the log or the folder.
func TestDB_roomHidden(t *testing.T) {
	dsn := shared.database(t)
	if _, err := pgtest.Exec(dsn, "DROP ROLE IF EXISTS modest; CREATE ROLE modest LOGIN; GRANT ALL ON SCHEMA public TO modest"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pgtest.Exec(dsn, "DROP OWNED BY modest; DROP ROLE modest"); err != nil {
			t.Error(err)
		}
	})
	o := testOptions(t, Partitions, t.TempDir())
	o.EarlyDropPercent = 50
	db := open(t, strings.Replace(dsn, "user=postgres", "user=modest", 1), o)
	db.mustKeep(t)
	db.mustKeep(t)
	if r := db.Room(); r.WALBytes != nil || r.Source != "" || r.UsedPercent != nil || r.DatabaseBytes == 0 {
		t.Errorf("the room is %+v, expected the size alone", r)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDB_dropEarly drops the oldest days when the room runs out, only when told to, and never what is young.
func TestDB_dropEarly(t *testing.T) {
	now := storagetest.Base
	db := clocked(t, shared.database(t), Partitions, &now, nil)
	db.o.Classes[0].History, db.o.Logger = 0, testOptions(t, Plain, "").Logger
	fillDays(t, db, &now, 6)
	count := func() int { return len(storagetest.Collect(t, db, storagetest.All(1))) }
	r := db.Room()
	db.o.RoomBytes = (r.DatabaseBytes + *r.WALBytes) * 100 / 91
	db.mustKeep(t)
	if got := count(); got != 12000 {
		t.Fatalf("%d values, expected all 12000: dropping early is off", got)
	}
	var told bytes.Buffer
	db.o.Logger = textLogger(&told)
	db.o.EarlyDropPercent, db.o.MinimumAge = 90, 10*24*time.Hour
	db.mustKeep(t)
	if got := count(); got != 12000 {
		t.Fatalf("%d values, expected all 12000: none is older than the minimum age", got)
	}
	db.o.MinimumAge = 0
	conn, err := db.pool.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	// The log is the whole cluster's, so its size moves with other tests: a measurement of which 300,000 bytes are too much.
	used := 91.0
	db.room.Store(&Room{TotalBytes: 30_000_000, UsedPercent: &used})
	err = db.dropEarly(context.Background(), conn.Conn(), now)
	conn.Release()
	if err != nil {
		t.Fatal(err)
	}
	got := count()
	if got >= 12000 || got < 4000 || !strings.Contains(told.String(), "early_drop") {
		t.Errorf("%d values, told %q; expected that the oldest are gone and that it was told", got, told.String())
	}
	h, err := db.Housekeeping(context.Background())
	if err != nil || len(h.Dropped) == 0 || h.Dropped[0].Reason != "early" {
		t.Errorf("dropped %+v, %v", h.Dropped, err)
	}
}
