package postgres

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/storagetest"
)

// killDSN is the variable by which a child of the kill test knows that it is one.
const killDSN = "TIDEMARK_KILL_DSN"

// failing is a logger that fails the test when it is told of trouble.
func failing(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(failer{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type failer struct{ t testing.TB }

func (f failer) Write(p []byte) (int, error) {
	f.t.Errorf("the engine logs %s", p)
	return len(p), nil
}

func testOptions(t testing.TB, mode Mode, dir string) Options {
	return Options{
		SpoolDir: dir, Mode: mode, Classes: []Class{{History: storagetest.Retention}}, Now: storagetest.Now, FlushDelay: time.Millisecond,
		QueryTimeout: time.Minute, Logger: failing(t),
	}
}

func open(t testing.TB, dsn string, o Options) *DB {
	t.Helper()
	db, err := Open(context.Background(), dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// settled is an engine whose values are in the database when Append returns.
type settled struct{ *DB }

func (s settled) Append(ctx context.Context, b *model.Batch) (model.LSN, error) {
	lsn, err := s.DB.Append(ctx, b)
	if err == nil {
		err = s.flushed(ctx)
	}
	return lsn, err
}

// flushed waits until nothing is pending.
func (db *DB) flushed(ctx context.Context) error {
	for {
		wait := db.progress.Next()
		db.mu.RLock()
		left := len(db.queue) > 0 || db.spilled
		db.mu.RUnlock()
		if !left {
			return nil
		}
		poke(db.wake)
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		case <-db.ctx.Done():
			return storage.ErrClosed
		}
	}
}

func TestDB_suite(t *testing.T) {
	for _, mode := range []Mode{Plain, Partitions} {
		t.Run(string(mode), func(t *testing.T) { suiteOn(t, shared.database, mode) })
	}
}

// suiteOn runs the suite on empty places that fresh makes.
func suiteOn(t *testing.T, fresh func(testing.TB) string, mode Mode) {
	type place struct{ dsn, dir string }
	places := map[storage.Engine]place{}
	openAt := func(t *testing.T, p place) storage.Engine {
		e := settled{open(t, p.dsn, testOptions(t, mode, p.dir))}
		places[e] = p
		return e
	}
	storagetest.Run(t, func(t *testing.T) storage.Engine {
		return openAt(t, place{fresh(t), t.TempDir()})
	}, func(t *testing.T, e storage.Engine) storage.Engine {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		return openAt(t, places[e])
	})
}

// TestDB_suitePending runs the suite on values that are not in the database yet.
func TestDB_suitePending(t *testing.T) {
	dsn := shared.database(t)
	storagetest.Run(t, func(t *testing.T) storage.Engine {
		o := testOptions(t, Plain, t.TempDir())
		o.FlushDelay = time.Hour
		if _, err := pgtest.Exec(dsn, "DROP SCHEMA public CASCADE; CREATE SCHEMA public"); err != nil {
			t.Fatal(err)
		}
		return open(t, dsn, o)
	}, nil)
}

// textLogger writes warnings to a buffer.
func textLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
