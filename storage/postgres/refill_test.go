package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"tidemark/model"
	"tidemark/storage/spool"
	"tidemark/storage/storagetest"
)

// interrupted is a spool whose Append is followed by what the writer does meanwhile, before the record is queued up.
type interrupted struct {
	pendingLog
	meanwhile func()
}

func (s interrupted) Append(r spool.Record) (model.LSN, error) {
	lsn, err := s.pendingLog.Append(r)
	s.meanwhile()
	return lsn, err
}

// TestDB_refillBesideAppend lets the writer, when the database is back, find the record in the spool that Append has just written there and not queued up yet.
func TestDB_refillBesideAppend(t *testing.T) {
	for name, writes := range map[string]bool{"queued": false, "written": true} {
		t.Run(name, func(t *testing.T) {
			ctx, dsn, o := context.Background(), shared.database(t), killOptions(t, t.TempDir())
			o.FlushDelay, o.PendingBytes = time.Hour, 64<<10
			db := open(t, dsn, o)
			db.cancel() // the test is the writer
			db.loops.Wait()
			away := errors.New("away")
			db.away.Store(&away)
			n := uint64(0)
			add := func() {
				n++
				if _, err := db.Append(ctx, numbered(n)); err != nil {
					t.Fatal(err)
				}
			}
			for !db.spilled {
				add()
			}
			own := db.spool
			db.spool = interrupted{own, func() {
				if !db.writer.flush(ctx) || len(db.queue) > 0 {
					t.Fatalf("%d batches wait after the first transaction, %v", len(db.queue), db.away.Load())
				}
				if err := db.refill(ctx); err != nil || len(db.queue) != 2 {
					t.Fatalf("%d batches were found in the spool, %v, expected 2", len(db.queue), err)
				}
				if writes && !db.writer.flush(ctx) {
					t.Fatal(*db.away.Load())
				}
			}}
			add()
			db.spool = own
			checkOnce(t, db, n)
			for db.writer.flush(ctx) {
			}
			checkOnce(t, db, n)
			if rows, repeated := db.m.written.Get(), db.m.repeated.Get(); rows != n*killItems || repeated != 0 {
				t.Errorf("%d rows were written, expected %d; %d transactions were repeated", rows, n*killItems, repeated)
			}
			if len(db.queue) != 0 || db.pendingBytes != 0 || db.spilled || db.applied != own.End() {
				t.Errorf("%d batches and %d bytes wait, spilled: %v, applied %d of %d", len(db.queue), db.pendingBytes, db.spilled, db.applied, own.End())
			}
		})
	}
}

// checkOnce reads the numbers up to n.
func checkOnce(t *testing.T, db *DB, n uint64) {
	t.Helper()
	values := storagetest.Collect(t, db, storagetest.All(1))
	if len(values) != int(n) {
		t.Errorf("%d values, expected %d", len(values), n)
	}
	for i, v := range values {
		if v.Bits != uint64(i+1) {
			t.Fatalf("value %d is %v", i, v)
		}
	}
}
