package postgres

import (
	"context"
	"testing"
	"time"

	"tidemark/storage"
	"tidemark/storage/storagetest"
)

// killDSN is the variable by which a child of the kill test knows that it is one.
const killDSN = "TIDEMARK_KILL_DSN"

func testOptions(mode Mode, dir string) Options {
	return Options{
		SpoolDir: dir, Mode: mode, Classes: []Class{{History: storagetest.Retention}}, Now: storagetest.Now, FlushDelay: 2 * time.Millisecond,
		QueryTimeout: time.Minute,
	}
}

func TestDB_suite(t *testing.T) {
	for _, mode := range []Mode{Plain, Partitions} {
		t.Run(string(mode), func(t *testing.T) {
			type place struct{ dsn, dir string }
			places := map[storage.Engine]place{}
			open := func(t *testing.T, p place) storage.Engine {
				db, err := Open(context.Background(), p.dsn, testOptions(mode, p.dir))
				if err != nil {
					t.Fatal(err)
				}
				places[db] = p
				return db
			}
			storagetest.Run(t, func(t *testing.T) storage.Engine {
				return open(t, place{shared.database(t), t.TempDir()})
			}, func(t *testing.T, e storage.Engine) storage.Engine {
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				return open(t, places[e])
			})
		})
	}
}
