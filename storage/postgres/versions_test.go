package postgres

import (
	"fmt"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/storage/storagetest"
)

// programsOf gives the programs of a version.
func programsOf(t *testing.T, version int) string {
	t.Helper()
	bin, remove, err := pgtest.Programs("../..", version)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	return bin
}

// TestVersions runs the suite, the life of partitions, the measuring of the room and the advice on each version beside Debian's 15.
func TestVersions(t *testing.T) {
	for _, version := range pgtest.Versions {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			t.Parallel()
			c, err := startClusterOf(programsOf(t, version), "-cfsync=off", "-cautovacuum=off", "-cshared_buffers=16MB")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Remove)
			if text, err := pgtest.Exec(c.DSN("postgres"), "SELECT current_setting('server_version_num')::int / 10000"); err != nil || text != fmt.Sprintf("%d\n", version) {
				t.Fatalf("version %q, %v", text, err)
			}
			t.Run("suite", func(t *testing.T) { suiteOn(t, c.schema, Partitions) })
			t.Run("partitions", func(t *testing.T) { partitionsOn(t, c) })
			t.Run("room", func(t *testing.T) { roomOn(t, c) })
			t.Run("advise", func(t *testing.T) {
				if list, err := Advise(t.Context(), c.DSN("postgres")); err != nil || len(list) == 0 {
					t.Errorf("advice %v, %v", list, err)
				}
			})
		})
	}
}

// schema makes an empty schema, which costs far less than a database.
func (c *cluster) schema(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("s%d", databases.Add(1))
	if _, err := pgtest.Exec(c.DSN("postgres"), "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	return c.DSN("postgres") + " search_path=" + name
}

// roomOn measures the room of a database twice, a day apart.
func roomOn(t *testing.T, c *cluster) {
	now := storagetest.Base
	db := clocked(t, c.database(t), Partitions, &now, nil)
	fillDays(t, db, &now, 1)
	now += day
	db.mustKeep(t)
	if r := db.Room(); r.WALBytes == nil || r.GrowthPerDay == nil || r.Source != RoomDisk || time.Duration(r.MeasuredAt)*time.Second != time.Duration(now)/time.Second*time.Second {
		t.Errorf("the room is %+v", r)
	}
}
